//! The memory of 10,000 VRFs, and the cost of columns of (VRF, address) in them.
//!
//! Ten VRFs are full tables of both families that differ by 1 %: `dfz4-2023` and `dfz6-2024` of the folder that `FIBULA_DATA`
//! names, else generated ones. The others have 10 to 1,000 routes of these, sizes log-uniform, three quarters of them IPv4;
//! half of them are copies of 100 templates. All answers are compared with the RIBs'.

mod columns;
mod tables;

use std::time::Instant;

use clap::Args;
use fibula::vrf::{Options, Statistics, Vrf, Vrfs};

use super::Outcome;
use crate::command::figures::FigureTables;

/// Options of `fibula-lab measure vrfs`.
#[derive(Debug, Args)]
pub(in crate::command) struct VrfsArgs {
    /// Number of VRFs
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    vrfs: usize,

    /// Timed runs
    #[arg(long, value_name = "NUMBER", default_value_t = 7)]
    runs: usize,

    /// Keys in a run
    #[arg(long, value_name = "NUMBER", default_value_t = 1 << 16)]
    keys: usize,

    /// Keep the figures in records/values
    #[arg(long)]
    record: bool,
}

impl VrfsArgs {
    /// Returns the options that differ from their defaults.
    fn given(&self) -> Vec<String> {
        let all = [("--vrfs", self.vrfs, 10_000), ("--runs", self.runs, 7), ("--keys", self.keys, 1 << 16)];
        let given = all.into_iter().filter(|(_, number, default)| number != default);
        given.flat_map(|(name, number, _)| [name.to_owned(), number.to_string()]).collect()
    }
}

pub(super) fn run(args: &VrfsArgs) -> Outcome {
    let mut figures = FigureTables::new("vrfs", &args.given());
    if std::env::var_os("FIBULA_DATA").is_some() {
        figures.command.insert_str(0, "FIBULA_DATA=FOLDER ");
    }
    let all = tables::all(args.vrfs)?;
    let start = Instant::now();
    let (vrfs, numbers) = fill(&all)?;
    let seconds = start.elapsed().as_secs_f64();
    memory(&mut figures, &vrfs.statistics()?, seconds);
    columns::measure(&mut figures, &vrfs, &numbers, &all, args)?;
    vrfs.check()?;
    figures.keep(args.record)
}

/// Makes the VRFs.
fn fill(all: &[tables::VrfTables]) -> Outcome<(Vrfs, Vec<Vrf>)> {
    let vrfs = Vrfs::with_options(Options::default())?;
    let mut numbers = Vec::new();
    for tables in all {
        let vrf = vrfs.create()?;
        vrfs.swap(vrf, &mut tables.ribs())?;
        numbers.push(vrf);
    }
    Ok((vrfs, numbers))
}

/// Prints a table of the memory of the VRFs.
fn memory(figures: &mut FigureTables, statistics: &Statistics, seconds: f64) {
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
        ("IPv4 engines", structures.v4.lookup_bytes),
        ("IPv6 engines", structures.v6.lookup_bytes),
        ("held for lookups, all", lookup.held_bytes()),
        ("RIBs", statistics.routes.held_bytes()),
        ("bookkeeping", statistics.bookkeeping.held_bytes()),
    ] {
        figures.row(vec![name.to_owned(), format!("{:.2}", bytes as f64 / 1e6)]);
    }
}
