//! Measures VRFs: what 10,000 of them take, and what columns of (VRF, address) in them cost.
//!
//! ```text
//! vrfs [--record] [--vrfs COUNT] [--runs COUNT] [--keys COUNT]
//! ```
//!
//! Ten VRFs are full tables of both families that differ by 1 %: `dfz4-2023` and `dfz6-2024` of the folder that `FIBULA_DATA`
//! names, else generated ones. The others have 10 to 1,000 routes of these, sizes log-uniform, three quarters of them IPv4;
//! half of them are copies of 100 templates. All answers are compared with the RIBs'.

mod columns;
#[path = "../figures/mod.rs"]
mod figures;
mod tables;

use std::error::Error;
use std::time::Instant;

use fibula::vrf::{Options, Statistics, Vrf, Vrfs};
use figures::Figures;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// What the command line says.
pub(crate) struct Arguments {
    vrfs: usize,
    runs: usize,
    keys: usize,
}

fn main() -> Outcome {
    let mut given: Vec<String> = std::env::args().skip(1).collect();
    let is_recorded = figures::take_record(&mut given);
    let mut figures = Figures::new("vrfs", &given);
    if std::env::var_os("FIBULA_DATA").is_some() {
        figures.command.insert_str(0, "FIBULA_DATA=FOLDER ");
    }
    let arguments = arguments(&given)?;
    let all = tables::all(arguments.vrfs)?;
    let start = Instant::now();
    let (vrfs, numbers) = fill(&all)?;
    let seconds = start.elapsed().as_secs_f64();
    memory(&mut figures, &vrfs.statistics()?, seconds);
    columns::measure(&mut figures, &vrfs, &numbers, &all, &arguments)?;
    vrfs.check()?;
    if is_recorded { figures.write(&figures::root()) } else { Ok(()) }
}

fn arguments(given: &[String]) -> Outcome<Arguments> {
    let mut arguments = Arguments { vrfs: 10_000, runs: 7, keys: 1 << 16 };
    let mut given = given.iter();
    while let Some(name) = given.next() {
        let value = given.next().ok_or("vrfs [--record] [--vrfs COUNT] [--runs COUNT] [--keys COUNT]")?;
        match name.as_str() {
            "--vrfs" => arguments.vrfs = value.parse()?,
            "--runs" => arguments.runs = value.parse()?,
            "--keys" => arguments.keys = value.parse()?,
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    Ok(arguments)
}

/// Makes the VRFs.
fn fill(all: &[tables::Tables]) -> Outcome<(Vrfs, Vec<Vrf>)> {
    let vrfs = Vrfs::with_options(Options::default())?;
    let mut numbers = Vec::new();
    for tables in all {
        let vrf = vrfs.create()?;
        vrfs.swap(vrf, &mut tables.ribs())?;
        numbers.push(vrf);
    }
    Ok((vrfs, numbers))
}

/// A table of what the VRFs take.
fn memory(figures: &mut Figures, statistics: &Statistics, seconds: f64) {
    let Statistics { vrfs, blocks, structures, block_count, in_blocks, structure_count, route_count, .. } =
        statistics;
    let title = format!(
        "{vrfs} VRFs, the first ten full ({}): {} IPv4 and {} IPv6 routes, made in {seconds:.1} s; {} IPv4 tables are in {} \
         blocks and {} structures, {} IPv6 tables in {} and {}",
        tables::source(),
        route_count.v4,
        route_count.v6,
        in_blocks.v4,
        block_count.v4,
        structure_count.v4,
        in_blocks.v6,
        block_count.v6,
        structure_count.v6
    );
    figures.table(title, &["", "MB"]);
    let lookup = statistics.lookup();
    for (name, bytes) in [
        ("lookup bytes, all", lookup.lookup_bytes),
        ("directory", statistics.directory.lookup_bytes),
        ("IPv4 blocks", blocks.v4.lookup_bytes),
        ("IPv6 blocks", blocks.v6.lookup_bytes),
        ("IPv4 structures", structures.v4.lookup_bytes),
        ("IPv6 structures", structures.v6.lookup_bytes),
        ("held for lookups, all", lookup.held_bytes()),
        ("RIBs", statistics.routes.held_bytes()),
        ("bookkeeping", statistics.bookkeeping.held_bytes()),
    ] {
        figures.row(vec![name.to_owned(), format!("{:.2}", bytes as f64 / 1e6)]);
    }
}
