//! The gain from huge pages, and the slowest calls.
//!
//! Builds each engine for a table with and without huge pages, in turn. Then both look up the same MATCH keys in
//! batches of 256, again in turn, and the ratio of their rates is shown: the median over the pairs of runs. Those times
//! are processor times of the thread, so that other programs disturb less. Calls of 32 keys are timed one by one by the clock on the
//! wall, whose own time is subtracted: their mean, and the times that half, 99 % and 99.9 % of them stay below.

use std::hint::black_box;
use std::time::Instant;

use clap::Args;
use fibula::fib::Fib;
use fibula::memory::Limits;
use fibula::net::{Key, Route, RouteSlice, Routes};
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic;

use super::{Outcome, cpu_ns, engine};
use crate::command::figures::FigureTables;

const KEYS: usize = 1 << 20;
const BATCH: usize = 256;
/// Keys of a call that is timed by itself: a burst of packets.
const BURST: usize = 32;
/// Passes over the keys in such calls.
const BURST_PASSES: usize = 8;
const PAIRS: usize = 15;
const BUILDS: usize = 5;
/// The fewest nanoseconds of a run.
const RUN_TIME_MIN: f64 = 60e6;

/// Options of `fibula-lab measure huge-pages`.
#[derive(Debug, Args)]
pub(in crate::command) struct HugePagesArgs {
    /// The tables, or ipv4 or ipv6 for a generated one
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<String>,

    /// Measure this engine; may be repeated [default: those of the library]
    #[arg(long = "engine", value_name = "NAME", value_parser = engine(), hide_possible_values = true)]
    engines: Vec<String>,

    /// Keep the figures in records/values
    #[arg(long)]
    record: bool,
}

pub(super) fn run(args: &HugePagesArgs) -> Outcome {
    let mut figures = FigureTables::new("huge_pages", &args.tables);
    for table in &args.tables {
        match table.as_str() {
            "ipv4" => race::<u32>(&mut figures, &generate(&TableSpec::ipv4(), &Profile::ipv4())?, args)?,
            "ipv6" => race::<u128>(&mut figures, &generate(&TableSpec::ipv6(), &Profile::ipv6())?, args)?,
            file => {
                let table = Loader::new(LoadOptions::default()).load(file)?;
                race(&mut figures, &table.ribs.v4.iter().collect::<Vec<_>>(), args)?;
                race(&mut figures, &table.ribs.v6.iter().collect::<Vec<_>>(), args)?;
            }
        }
    }
    figures.keep(args.record)
}

/// An engine with the huge pages that it asks for, and without.
struct Pair<K: Key> {
    name: &'static str,
    huge: Box<dyn Fib<K>>,
    small: Box<dyn Fib<K>>,
}

fn race<K: Key>(figures: &mut FigureTables, routes: &[Route<K>], args: &HugePagesArgs) -> Outcome {
    if routes.is_empty() {
        return Ok(());
    }
    let routes = RouteSlice::new(routes)?;
    let keys = traffic::find::<K>("match").map(|pattern| (pattern.generate)(&routes, KEYS, 1));
    let keys = keys.ok_or("there is no MATCH")??;
    let own: Vec<&str> = fibula::fib::engines::<K>().iter().map(|engine| engine.name).collect();
    let is_wanted = |name: &str| match args.engines.is_empty() {
        true => own.contains(&name),
        false => args.engines.iter().any(|wanted| wanted == name),
    };
    let title = format!(
        "{} {} routes: MATCH in batches of {BATCH} with and without huge pages, medians of {PAIRS} pairs",
        routes.len(),
        K::FAMILY
    );
    figures.table(
        title,
        &[
            "",
            "MB asked for in huge pages",
            "with, M/s",
            "without, M/s",
            "with over without",
            "80 % of pairs",
            "built, ms",
            "without, ms",
        ],
    );
    let mut pairs = Vec::new();
    for engine in fibula_published::engines::<K>().into_iter().filter(|engine| is_wanted(engine.name)) {
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
        let pair = Pair { name: engine.name, huge: huge.0, small: small.0 };
        figures.row(rates(&pair, &keys, builds[BUILDS / 2]));
        pairs.push(pair);
    }
    let title = format!("The same in calls of {BURST} keys, nanoseconds of a call");
    figures.table(title, &["", "mean", "half below", "99 % below", "99.9 % below"]);
    let clock = clock_ns();
    for Pair { name, huge, small } in &pairs {
        for (fib, pages) in [(huge, ""), (small, ", without huge pages")] {
            let times = bursts(&**fib, &keys, clock);
            let below = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let cells = [mean, below(0.5), below(0.99), below(0.999)].map(|ns| format!("{ns:.0}"));
            figures.row([vec![format!("`{name}`{pages}")], cells.to_vec()].concat());
        }
    }
    Ok(())
}

/// Looks up in both forms of an engine in turn, and returns the row of their rates.
fn rates<K: Key>(pair: &Pair<K>, keys: &[K], (huge_ms, small_ms): (f64, f64)) -> Vec<String> {
    let (huge, small) = (&*pair.huge, &*pair.small);
    let passes = (RUN_TIME_MIN / pass(huge, keys).max(1.0)).ceil() as usize;
    pass(small, keys);
    let time = |fib| (0..passes).map(|_| pass(fib, keys)).sum::<f64>() / (passes * KEYS) as f64;
    let mut pairs: Vec<(f64, f64)> = (0..PAIRS)
        .map(|turn| {
            // They take turns to be first.
            if turn % 2 == 0 {
                let huge = time(huge);
                (huge, time(small))
            } else {
                let small = time(small);
                (time(huge), small)
            }
        })
        .collect();
    pairs.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let ratio = |at: usize| pairs[at].1 / pairs[at].0;
    let median = pairs[PAIRS / 2];
    vec![
        format!("`{}`", pair.name),
        format!("{:.2}", huge.memory().huge_bytes as f64 / 1e6),
        format!("{:.0}", 1e3 / median.0),
        format!("{:.0}", 1e3 / median.1),
        format!("{:.2}", ratio(PAIRS / 2)),
        format!("{:.2} to {:.2}", ratio(PAIRS / 10), ratio(PAIRS - 1 - PAIRS / 10)),
        format!("{huge_ms:.0}"),
        format!("{small_ms:.0}"),
    ]
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

/// Returns the nanoseconds that reading the clock takes: the median.
fn clock_ns() -> f64 {
    let mut times: Vec<f64> = (0..100_001).map(|_| Instant::now().elapsed().as_secs_f64() * 1e9).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Returns the nanoseconds of each call of [`BURST`] keys, in ascending order, without those of the clock.
fn bursts<K: Key>(fib: &dyn Fib<K>, keys: &[K], clock: f64) -> Vec<f64> {
    let mut results = [None; BURST];
    let mut times = Vec::with_capacity(BURST_PASSES * keys.len() / BURST);
    for _ in 0..BURST_PASSES {
        for keys in keys.chunks_exact(BURST) {
            let start = Instant::now();
            fib.lookup_batch(black_box(keys), &mut results);
            black_box(&results);
            times.push((start.elapsed().as_secs_f64() * 1e9 - clock).max(0.0));
        }
    }
    times.sort_by(f64::total_cmp);
    times
}
