//! Measures the nanoseconds of a lookup by the C library and of the same lookup in Rust. The programs of `instructions-c` run in turn.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::instructions_c::{KEYS, check_answers, programs};
use crate::programs::{Compiler, output, processor, root};
use crate::{End, Outcome};

/// Number of pairs of runs. Their median is the result.
const PAIRS: usize = 15;

/// Two numbers of passes, of which start and build cancel.
const PASSES: [u32; 2] = [1, 8_001];

/// The last figures of each processor.
type Records = BTreeMap<String, Record>;

#[derive(Serialize, Deserialize)]
struct Record {
    day: String,
    /// With "-dirty" where something was not committed.
    commit: String,
    rustc: String,
    load_before: String,
    pairs: usize,
    /// By calls of 32 addresses ("bulk") and of one ("single").
    kinds: BTreeMap<String, Times>,
}

/// Medians, and the least and the greatest of the ratios of all pairs.
#[derive(Serialize, Deserialize)]
struct Times {
    rust_nanoseconds: f64,
    c_nanoseconds: f64,
    ratio: f64,
    ratios: [f64; 2],
}

pub(crate) fn show() -> Outcome<End> {
    measure().map(|_| End::Good)
}

pub(crate) fn record() -> Outcome<End> {
    let commit = output(Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(root()))?;
    let day = output(Command::new("date").arg("+%F"))?;
    let load = fs::read_to_string("/proc/loadavg")?.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let record = Record {
        day: day.trim().to_owned(),
        commit: commit.trim().to_owned(),
        rustc: Compiler::this()?.rustc,
        load_before: load,
        pairs: PAIRS,
        kinds: measure()?,
    };
    if record.commit.ends_with("-dirty") {
        return Err("there are changes that are not committed: a record names its commit".into());
    }
    let mut records: Records = match fs::read_to_string(file()) {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Records::new(),
    };
    records.insert(processor(), record);
    fs::write(file(), serde_json::to_string_pretty(&records)? + "\n")?;
    println!("recorded in {}", file().display());
    Ok(End::Good)
}

fn file() -> PathBuf {
    root().join("records/c.json")
}

fn measure() -> Outcome<BTreeMap<String, Times>> {
    let [rust, c] = programs()?;
    let mut kinds = BTreeMap::new();
    for kind in ["bulk", "single"] {
        check_answers(&[&rust, &c], kind)?;
        let mut pairs = Vec::new();
        for _ in 0..PAIRS {
            pairs.push([per_lookup(&rust, kind)?, per_lookup(&c, kind)?]);
        }
        let ratios: Vec<f64> = pairs.iter().map(|[rust, c]| c / rust).collect();
        let times = Times {
            rust_nanoseconds: hundredths(median(pairs.iter().map(|pair| pair[0]))),
            c_nanoseconds: hundredths(median(pairs.iter().map(|pair| pair[1]))),
            ratio: hundredths(median(ratios.iter().copied())),
            ratios: [f64::min, f64::max]
                .map(|end| hundredths(ratios.iter().copied().reduce(end).unwrap_or_default())),
        };
        println!(
            "{kind}: {} ns in Rust, {} ns in C, ratio {} ({} to {})",
            times.rust_nanoseconds, times.c_nanoseconds, times.ratio, times.ratios[0], times.ratios[1]
        );
        kinds.insert(kind.to_owned(), times);
    }
    Ok(kinds)
}

/// Returns the nanoseconds of a lookup in one run.
fn per_lookup(program: &Path, kind: &str) -> Outcome<f64> {
    let mut nanoseconds = [0.0; 2];
    for (passes, nanoseconds) in PASSES.into_iter().zip(&mut nanoseconds) {
        let begin = Instant::now();
        output(Command::new(program).args([kind, &passes.to_string()]))?;
        *nanoseconds = begin.elapsed().as_secs_f64() * 1e9;
    }
    Ok((nanoseconds[1] - nanoseconds[0]) / (f64::from(PASSES[1] - PASSES[0]) * KEYS))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
