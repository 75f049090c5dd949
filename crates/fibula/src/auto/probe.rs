//! Rates of several engines over the same keys, quickly: what tables are fitted to traffic with, and choices are made and recorded with.

use core::hint::black_box;
use std::time::{Duration, Instant};

use crate::fib::Fib;
use crate::net::{Key, NextHop};
use crate::simd::{self, Present};

/// Rounds in which all engines are timed in turn. Of an engine's rates the best counts: whatever else a machine does makes
/// a round slower, and none faster.
pub const ROUNDS: usize = 5;

/// Returns the number of keys of each traffic for a table with `ranges` ranges: four a range, from 2^17, which are more lines than a
/// second-level cache holds, to 2^20. Few keys touch a part of a table of 2^24 entries, which is then as fast as a small one.
#[must_use]
pub const fn keys_for(ranges: usize) -> usize {
    let (least, most) = (1 << 17, 1 << 20);
    if ranges >= most / 4 {
        most
    } else if ranges <= least / 4 {
        least
    } else {
        (4 * ranges).next_power_of_two()
    }
}

/// Passes over the keys are repeated until a timing is this long.
const SHORTEST: Duration = Duration::from_micros(700);

/// Returns the million lookups a second of each engine over these keys, the best of [rounds](ROUNDS) in which all are timed in
/// turn; `None` for those that are three times slower than the fastest one over the first keys, which takes most of the
/// time off. Answers are not checked. A dozen engines take about a tenth of a second.
#[must_use]
pub fn probe<K: Key>(fibs: &[&dyn Fib<K>], isa: Present, keys: &[K], batch: usize) -> Vec<Option<f64>> {
    if keys.is_empty() {
        return vec![None; fibs.len()];
    }
    let batch = batch.clamp(1, keys.len());
    let first = &keys[..keys.len().min(FEW_KEYS.next_multiple_of(batch))];
    let tried: Vec<f64> = fibs.iter().map(|fib| rate(*fib, isa, first, batch)).collect();
    let best = tried.iter().copied().fold(0.0, f64::max);
    let is_near: Vec<bool> = tried.iter().map(|rate| rate * 3.0 > best).collect();
    let mut rates: Vec<Option<f64>> = is_near.into_iter().map(|near| near.then_some(0.0)).collect();
    for _ in 0..ROUNDS {
        for (fib, best) in fibs.iter().zip(&mut rates) {
            if let Some(best) = best {
                *best = best.max(rate(*fib, isa, keys, batch));
            }
        }
    }
    rates
}

/// Keys that slow engines are dropped after.
const FEW_KEYS: usize = 1 << 13;

/// Returns the million lookups a second of one timing, after a pass over the keys that is not timed. Single lookups run with the
/// chosen set, which is forced to this one, and stays so.
///
/// # Panics
/// If the batch is 0.
#[must_use]
pub fn rate<K: Key>(fib: &dyn Fib<K>, isa: Present, keys: &[K], batch: usize) -> f64 {
    rate_of(fib, isa, keys, batch, SHORTEST)
}

/// Like [`rate`], with passes repeated until the timing is so long.
///
/// # Panics
/// If the batch is 0.
#[must_use]
pub fn rate_of<K: Key>(fib: &dyn Fib<K>, isa: Present, keys: &[K], batch: usize, shortest: Duration) -> f64 {
    let mut results: Vec<Option<NextHop>> = vec![None; batch];
    if batch == 1 {
        simd::force(Some(isa.isa())).expect("a set that is present");
    }
    let mut pass = || {
        if batch == 1 {
            keys.iter().for_each(|&key| {
                black_box(fib.lookup_key(black_box(key)));
            });
        } else {
            for keys in keys.chunks(batch) {
                fib.lookup_batch_on(isa, black_box(keys), &mut results[..keys.len()]);
                black_box(&mut results);
            }
        }
    };
    // Others have taken the place of the engine in the caches.
    pass();
    let mut passes = 0;
    let start = Instant::now();
    while passes == 0 || start.elapsed() < shortest {
        pass();
        passes += 1;
    }
    (passes * keys.len()) as f64 / start.elapsed().as_secs_f64() / 1e6
}
