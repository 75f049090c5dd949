//! Quick measurements of lookups and builds.
//!
//! Each measurement counts the wrong answers of the engine to the same keys: a benchmark with a wrong answer has
//! failed. Machines are shared and noisy, so compare medians of engines that were measured in turn,
//! as the benchmark of `fibula-lab` does.

use core::hint::black_box;
use std::time::{Duration, Instant};

use fibula::fib::registry::Engine;
use fibula::fib::{BuildError, Fib};
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Routes};

/// Passes shorter than this are repeated within a run, so that the clock's resolution does not matter.
const RUN_TIME_MIN: Duration = Duration::from_millis(2);

/// The fewest runs, unless they would take far longer than the budget.
const RUNS_MIN: usize = 3;

/// How to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Keys a call of the engine.
    pub batch: usize,
    /// Time to spend on timed runs; the warm-up comes on top. At least three runs are made, unless they would take
    /// more than four times this.
    pub budget: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { batch: 256, budget: Duration::from_secs(1) }
    }
}

/// How fast lookups were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Million lookups a second, median of the runs; 0 if there were no keys.
    pub mlps_median: f64,
    /// The slowest run.
    pub mlps_min: f64,
    /// The fastest run.
    pub mlps_max: f64,
    /// Number of timed runs.
    pub runs: usize,
    /// Number of keys with a wrong answer.
    pub wrong: usize,
}

/// Measures [`Fib::lookup_batch`] with all keys, in batches. The warm-up compares every answer with `expected`.
///
/// # Panics
/// If `keys` and `expected` differ in length, or the batch is 0.
pub fn measure_lookups<K: Key>(
    fib: &dyn Fib<K>,
    keys: &[K],
    expected: &[Option<NextHop>],
    settings: &Settings,
) -> Measurement {
    assert_eq!(keys.len(), expected.len(), "every key needs an expected answer");
    assert!(settings.batch > 0, "a batch holds at least one key");
    let mut results = vec![None; settings.batch.min(keys.len())];
    let mut wrong = 0;
    for (keys, expected) in keys.chunks(settings.batch).zip(expected.chunks(settings.batch)) {
        let results = &mut results[..keys.len()];
        fib.lookup_batch(keys, results);
        wrong += results.iter().zip(expected).filter(|(found, expected)| found != expected).count();
    }
    let pass = || {
        for keys in keys.chunks(settings.batch) {
            let results = &mut results[..keys.len()];
            fib.lookup_batch(black_box(keys), results);
            black_box(results);
        }
    };
    timed(keys.len(), settings.budget, wrong, pass)
}

/// Measures [`Fib::lookup_key`], one key a call; calls may overlap in the processor. The warm-up compares every answer
/// with `expected`. The batch of the settings is ignored.
///
/// # Panics
/// If `keys` and `expected` differ in length.
pub fn measure_single<K: Key>(
    fib: &dyn Fib<K>,
    keys: &[K],
    expected: &[Option<NextHop>],
    settings: &Settings,
) -> Measurement {
    assert_eq!(keys.len(), expected.len(), "every key needs an expected answer");
    let wrong = keys.iter().zip(expected).filter(|&(&key, &expected)| fib.lookup(key) != expected).count();
    let pass = || {
        for &key in black_box(keys) {
            black_box(fib.lookup(key));
        }
    };
    timed(keys.len(), settings.budget, wrong, pass)
}

/// Builds an engine and returns it with the nanoseconds that took.
///
/// # Errors
/// If the build fails.
pub fn measure_build<K: Key>(
    engine: &Engine<K>,
    routes: &dyn Routes<K>,
    limits: Limits,
) -> Result<(Box<dyn Fib<K>>, u64), BuildError> {
    let start = Instant::now();
    let fib = engine.build(routes, limits)?;
    let build_time_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok((fib, build_time_ns))
}

/// Runs passes over `keys` keys until the budget is used.
fn timed(keys: usize, budget: Duration, wrong: usize, mut pass: impl FnMut()) -> Measurement {
    let mut rates = Vec::new();
    if keys > 0 {
        let start = Instant::now();
        pass();
        let once = start.elapsed().max(Duration::from_nanos(1));
        let passes = RUN_TIME_MIN.as_nanos().div_ceil(once.as_nanos()).max(1);
        let start = Instant::now();
        while rates.is_empty() || {
            let spent = start.elapsed();
            spent < budget || rates.len() < RUNS_MIN && spent < budget * 4
        } {
            let run = Instant::now();
            for _ in 0..passes {
                pass();
            }
            let seconds = run.elapsed().as_secs_f64();
            rates.push(keys as f64 * passes as f64 / seconds / 1e6);
        }
    }
    rates.sort_unstable_by(f64::total_cmp);
    Measurement {
        mlps_median: median(&rates),
        mlps_min: rates.first().copied().unwrap_or(0.0),
        mlps_max: rates.last().copied().unwrap_or(0.0),
        runs: rates.len(),
        wrong,
    }
}

/// Returns the median of sorted numbers; 0 if there are none.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2],
        len => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_any_number_of_runs() {
        assert!(median(&[]) == 0.0);
        assert!(median(&[3.0]) == 3.0);
        assert!(median(&[1.0, 2.0]) == 1.5);
        assert!(median(&[1.0, 2.0, 9.0]) == 2.0);
    }
}
