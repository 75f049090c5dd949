//! Loads tables and prints what they held and how long it took:
//! `cargo run --release -p fibula-feed --example load FILE...`

use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use fibula_feed::compression::Decompressor;
use fibula_feed::{LoadError, LoadOptions, load};

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
    let table = load(path, &LoadOptions::default(), &mut |_| ())?;
    let load_time_ms = start.elapsed().as_millis();

    let start = Instant::now();
    let decompressor = File::open(path).and_then(Decompressor::new);
    // A cut that ends this is in the report.
    let _ = decompressor.and_then(|mut input| io::copy(&mut input, &mut io::sink()));
    let decompress_time_ms = start.elapsed().as_millis();

    let report = &table.report;
    println!("{path}: {}, {} lines", report.compression, report.lines);
    println!("  {} IPv4 and {} IPv6 routes", report.routes_v4, report.routes_v6);
    println!("  {} next hops", table.next_hops.len());
    println!("  {load_time_ms} ms, of which {decompress_time_ms} ms to decompress");
    if let Some(truncation) = &report.truncated {
        println!("  {truncation}");
    }
    if report.bad_lines > 0 {
        println!("  {} bad lines", report.bad_lines);
    }
    for bad in &report.first_bad {
        println!("  {bad}\n    {}", bad.excerpt());
    }
    Ok(())
}
