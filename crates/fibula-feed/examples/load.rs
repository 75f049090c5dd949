//! Loads tables and prints what they held and how long it took:
//! `cargo run --release -p fibula-feed --example load FILE...`

use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use fibula_feed::compression::Decompressor;
use fibula_feed::{LoadError, LoadOptions, Loader};

fn main() -> ExitCode {
    for path in std::env::args().skip(1) {
        if let Err(error) = show(&path) {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn show(path: &str) -> Result<(), LoadError> {
    let start = Instant::now();
    let mut options = LoadOptions::default();
    options.threads = std::thread::available_parallelism().map_or(1, usize::from);
    if std::env::var_os("BEST").is_some() {
        options.selection = fibula_feed::Selection::Best;
    }
    let table = Loader::new(options).load(path)?;
    let load_time_ms = start.elapsed().as_millis();

    let start = Instant::now();
    let decompressor = File::open(path).and_then(Decompressor::new);
    // A cut that ends this is in the report.
    let _ = decompressor.and_then(|mut input| io::copy(&mut input, &mut io::sink()));
    let decompress_time_ms = start.elapsed().as_millis();

    let report = table.report();
    println!("{path}: {}, {} lines", report.compression, report.lines);
    println!("  {} IPv4 and {} IPv6 routes", report.routes_v4, report.routes_v6);
    println!("  {} next hops", table.next_hops.len());
    println!("  {load_time_ms} ms, of which {decompress_time_ms} ms to decompress");
    if let Some(truncation) = &report.truncated {
        println!("  {truncation}");
    }
    if report.bad_lines > 0 {
        println!("  {} bad lines or records", report.bad_lines);
    }
    for fault in &report.faults {
        println!("  {fault}");
    }
    for counts in report.peers.iter().filter(|counts| counts.chosen != [false; 2]) {
        println!("  {}: announced {:?}, withdrawn {:?}", counts.peer, counts.announced, counts.withdrawn);
    }
    for bad in &report.first_bad {
        println!("  {bad}\n    {}", bad.excerpt());
    }
    Ok(())
}
