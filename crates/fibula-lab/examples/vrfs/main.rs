//! Measures VRFs: what 10,000 of them take, and what columns of (VRF, address) in them cost.
//!
//! ```text
//! vrfs [--vrfs COUNT] [--runs COUNT] [--keys COUNT] [--json FILE]
//! ```
//!
//! Ten VRFs are full tables of both families that differ by 1 %: `dfz4-2023` and `dfz6-2024` of the folder that `FIBULA_DATA`
//! names, else generated ones. The others have 10 to 1,000 routes of these, sizes log-uniform, three quarters of them IPv4;
//! half of them are copies of 100 templates. All answers are compared with the RIBs'.

mod columns;
mod tables;

use std::error::Error;
use std::time::Instant;

use fibula::vrf::{Options, Statistics, Vrf, Vrfs};
use fibula_lab::bench::Machine;
use serde_json::{Value, json};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// What the command line says.
pub(crate) struct Arguments {
    vrfs: usize,
    runs: usize,
    keys: usize,
    json: Option<String>,
}

fn main() -> Outcome {
    let arguments = arguments()?;
    let all = tables::all(arguments.vrfs)?;
    println!("{} VRFs, the first ten full: {}", all.len(), tables::source());
    let start = Instant::now();
    let (vrfs, numbers) = fill(&all)?;
    let seconds = start.elapsed().as_secs_f64();
    let statistics = vrfs.statistics()?;
    let memory = memory(&statistics, seconds);
    let lines = columns::measure(&vrfs, &numbers, &all, &arguments)?;
    vrfs.check()?;
    if let Some(path) = &arguments.json {
        let record = json!({
            "machine": Machine::this().name(),
            "tables": tables::source(),
            "memory": memory,
            "columns": lines,
        });
        std::fs::write(path, serde_json::to_string_pretty(&record)? + "\n")?;
    }
    Ok(())
}

fn arguments() -> Outcome<Arguments> {
    let mut arguments = Arguments { vrfs: 10_000, runs: 7, keys: 1 << 16, json: None };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().ok_or("vrfs [--vrfs COUNT] [--runs COUNT] [--keys COUNT] [--json FILE]")?;
        match name.as_str() {
            "--vrfs" => arguments.vrfs = value.parse()?,
            "--runs" => arguments.runs = value.parse()?,
            "--keys" => arguments.keys = value.parse()?,
            "--json" => arguments.json = Some(value),
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

/// Prints what the VRFs take, and returns it.
fn memory(statistics: &Statistics, seconds: f64) -> Value {
    let mb = |bytes: usize| bytes as f64 / 1e6;
    let Statistics { blocks, structures, block_count, in_blocks, structure_count, route_count, .. } =
        statistics;
    println!("made in {seconds:.1} s; {} IPv4 and {} IPv6 routes", route_count.v4, route_count.v6);
    let lookup = statistics.lookup();
    let rows = [
        ("lookup bytes, MB", mb(lookup.lookup_bytes)),
        ("directory", mb(statistics.directory.lookup_bytes)),
        ("IPv4 blocks", mb(blocks.v4.lookup_bytes)),
        ("IPv6 blocks", mb(blocks.v6.lookup_bytes)),
        ("IPv4 structures", mb(structures.v4.lookup_bytes)),
        ("IPv6 structures", mb(structures.v6.lookup_bytes)),
        ("held for lookups", mb(lookup.held_bytes())),
        ("RIBs", mb(statistics.routes.held_bytes())),
        ("bookkeeping", mb(statistics.bookkeeping.held_bytes())),
    ];
    for (name, value) in rows {
        println!("  {name:20} {value:9.2}");
    }
    println!(
        "  {} IPv4 tables in {} blocks, {} IPv6 tables in {}; {} and {} structures",
        in_blocks.v4, block_count.v4, in_blocks.v6, block_count.v6, structure_count.v4, structure_count.v6
    );
    let mut value = json!({
        "vrfs": statistics.vrfs,
        "seconds": seconds,
        "ipv4_routes": route_count.v4,
        "ipv6_routes": route_count.v6,
        "ipv4_tables_in_blocks": in_blocks.v4,
        "ipv4_blocks": block_count.v4,
        "ipv6_tables_in_blocks": in_blocks.v6,
        "ipv6_blocks": block_count.v6,
    });
    for (name, megabytes) in rows {
        value[format!("{name}, MB").replace(", MB, MB", ", MB")] = json!(megabytes);
    }
    value
}
