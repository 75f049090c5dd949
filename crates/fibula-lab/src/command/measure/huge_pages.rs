//! The gain from huge pages.
//!
//! Builds each engine for a table with and without huge pages, in turn. Then both look up the same MATCH keys in
//! batches of 256, again in turn, and the ratio of their rates is printed: the median over the pairs of runs. Times
//! are processor times of the thread, so that other programs disturb less.

use std::hint::black_box;

use fibula::fib::Fib;
use fibula::memory::Limits;
use fibula::net::{Key, Route, RouteSlice, Routes};
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic;

use super::{Outcome, cpu_ns};

const KEYS: usize = 1 << 20;
const BATCH: usize = 256;
const PAIRS: usize = 15;
const BUILDS: usize = 5;
/// The fewest nanoseconds of a run.
const RUN_TIME_MIN: f64 = 60e6;

pub(super) fn run(table: &str, engines: &[String]) -> Outcome {
    match table {
        "ipv4" => race::<u32>(&generate(&TableSpec::ipv4(), &Profile::ipv4())?, engines),
        "ipv6" => race::<u128>(&generate(&TableSpec::ipv6(), &Profile::ipv6())?, engines),
        file => {
            let table = Loader::new(LoadOptions::default()).load(file)?;
            race(&table.ribs.v4.iter().collect::<Vec<_>>(), engines)?;
            race(&table.ribs.v6.iter().collect::<Vec<_>>(), engines)
        }
    }
}

fn race<K: Key>(routes: &[Route<K>], engines: &[String]) -> Outcome {
    if routes.is_empty() {
        return Ok(());
    }
    let routes = RouteSlice::new(routes)?;
    let keys = traffic::find::<K>("match").map(|pattern| (pattern.generate)(&routes, KEYS, 1));
    let keys = keys.ok_or("there is no MATCH")??;
    println!("{}: {} routes; in huge pages now: {}", K::FAMILY, routes.len(), in_huge_pages());
    for engine in fibula_published::engines::<K>() {
        if !engines.iter().any(|name| name == engine.name) {
            continue;
        }
        let forbidden = Limits { huge_pages: false, ..Limits::default() };
        let build = |limits| -> Outcome<_> {
            let start = cpu_ns();
            let fib = engine.build(&routes, limits)?;
            Ok((fib, cpu_ns() - start))
        };
        // The first builds get memory that was never used before.
        let (mut huge, mut small) = (build(Limits::default())?, build(forbidden)?);
        let mut builds = Vec::new();
        for _ in 0..BUILDS {
            drop(huge);
            huge = build(Limits::default())?;
            drop(small);
            small = build(forbidden)?;
            builds.push((huge.1 / 1e6, small.1 / 1e6));
        }
        builds.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
        let (huge_ms, small_ms) = builds[BUILDS / 2];
        let backed = in_huge_pages();
        let (huge, small) = (huge.0, small.0);
        let passes = (RUN_TIME_MIN / pass(&*huge, &keys).max(1.0)).ceil() as usize;
        pass(&*small, &keys);
        let rate = |fib| (0..passes).map(|_| pass(fib, &keys)).sum::<f64>() / (passes * KEYS) as f64;
        let mut pairs: Vec<(f64, f64)> = (0..PAIRS)
            .map(|turn| {
                // They take turns to be first.
                if turn % 2 == 0 {
                    let huge = rate(&*huge);
                    (huge, rate(&*small))
                } else {
                    let small = rate(&*small);
                    (rate(&*huge), small)
                }
            })
            .collect();
        pairs.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
        let ratio = |at: usize| pairs[at].1 / pairs[at].0;
        let median = pairs[PAIRS / 2];
        println!(
            "{}: {:.2} MiB asked, {backed} in huge pages; {:.2} and {:.2} M/s, {:.2} x ({:.2} to {:.2}); \
             built in {huge_ms:.0} and {small_ms:.0} ms",
            engine.name,
            huge.memory().huge_bytes as f64 / f64::from(1 << 20),
            1e3 / median.0,
            1e3 / median.1,
            ratio(PAIRS / 2),
            ratio(PAIRS / 10),
            ratio(PAIRS - 1 - PAIRS / 10),
        );
    }
    Ok(())
}

/// Returns the nanoseconds that one pass over the keys takes in this thread.
fn pass<K: Key>(fib: &dyn Fib<K>, keys: &[K]) -> f64 {
    let mut results = [None; BATCH];
    let start = cpu_ns();
    for keys in keys.chunks(BATCH) {
        fib.lookup_batch(black_box(keys), &mut results[..keys.len()]);
        black_box(&results);
    }
    cpu_ns() - start
}

/// Returns how much memory this process has in huge pages.
fn in_huge_pages() -> String {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    line.map_or("unknown", str::trim).to_owned()
}
