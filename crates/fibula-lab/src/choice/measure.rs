//! Measures all structures over a table.

use core::hint::black_box;
use std::error::Error;
use std::time::{Duration, Instant};

use fibula::auto::Workload;
use fibula::fib::registry::{self, Role};
use fibula::fib::{self, Fib};
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, RouteSlice};
use fibula::simd::{Isa, Present};

use super::{BATCHES, Plan, Rates, Structure, Table};
use crate::traffic;

/// Keys of each traffic: more lines of a large structure than a second-level cache holds.
const KEYS: usize = 1 << 17;

/// Rounds in which all structures are timed in turn; rates are medians.
const ROUNDS: usize = 5;

/// Passes over the keys are repeated until a timing is this long.
const SHORTEST: Duration = Duration::from_micros(700);

/// A structure that is so many times slower than the fastest one, in every batch that is tried first, keeps these rates.
const BEHIND: f64 = 2.5;

/// Numbers of the batches that are tried first.
const FIRST: [usize; 3] = [0, 3, 5];

/// Measures all structures but the oracles, with every instruction set that this machine has.
///
/// # Errors
/// If the table cannot be generated, or a structure answers wrong.
pub fn measure<K: Key>(plan: &Plan) -> Result<Table, Box<dyn Error>> {
    let routes = plan.routes::<K>()?;
    let slice = RouteSlice::new(&routes)?;
    let counted = Workload::default().with_table(&slice);
    let mut traffics = Vec::new();
    let reference = registry::find::<K>("range-search")?.build(&slice, Limits::default())?;
    for name in ["match", "zipf"] {
        let pattern = traffic::find::<K>(name).ok_or("no such traffic")?;
        let keys = (pattern.generate)(&slice, KEYS, plan.spec.seed)?;
        let mut expected = vec![None; keys.len()];
        reference.lookup_batch(&keys, &mut expected);
        traffics.push((keys, expected));
    }

    let (mut structures, mut built) = (Vec::new(), Vec::new());
    for algorithm in fib::algorithms::<K>() {
        if matches!(algorithm.role, Role::Oracle { .. }) {
            continue;
        }
        let fib = algorithm.build(&slice, Limits::default());
        let lookup_bytes = fib.as_ref().ok().map(|fib| fib.memory().lookup_bytes);
        structures.push(Structure { algorithm: algorithm.name.to_owned(), lookup_bytes });
        built.extend(fib.ok().map(|fib| (algorithm, fib)));
    }
    let mut rates = Vec::new();
    for isa in Present::all() {
        // A structure without kernels for the set runs those of a smaller one, which are measured with that.
        let fibs: Vec<_> =
            built.iter().filter(|(algorithm, _)| algorithm.isas.contains(&isa.isa())).collect();
        for (algorithm, fib) in &fibs {
            for (keys, expected) in &traffics {
                let mut found = vec![None; keys.len()];
                fib.lookup_batch_on(isa, keys, &mut found);
                if found != *expected {
                    return Err(format!("{}: {} answers wrong", plan.name, algorithm.name).into());
                }
            }
        }
        let timed = |fib: &dyn Fib<K>, batch: usize| {
            let logarithms = traffics.iter().map(|(keys, _)| rate(fib, isa, keys, batch).ln());
            (logarithms.sum::<f64>() / traffics.len() as f64).exp()
        };
        let tried: Vec<[f64; 3]> =
            fibs.iter().map(|(_, fib)| FIRST.map(|at| timed(&**fib, BATCHES[at]))).collect();
        let best: [f64; 3] =
            core::array::from_fn(|at| tried.iter().map(|rates| rates[at]).fold(0.0, f64::max));
        let is_near = |rates: &[f64; 3]| rates.iter().zip(best).any(|(rate, best)| rate * BEHIND > best);
        // The others keep what they were tried with: of the next smaller batch that was.
        let of_batch = |batch: usize| FIRST.iter().rposition(|&first| first <= batch).unwrap_or(0);
        let mut mlps: Vec<[f64; BATCHES.len()]> =
            tried.iter().map(|rates| core::array::from_fn(|batch| rates[of_batch(batch)])).collect();
        let mut near: Vec<_> =
            fibs.iter().zip(&tried).zip(&mut mlps).filter(|((_, tried), _)| is_near(tried)).collect();
        for (number, &batch) in BATCHES.iter().enumerate() {
            let mut rounds = vec![Vec::with_capacity(ROUNDS); near.len()];
            for _ in 0..ROUNDS {
                for ((((_, fib), _), _), rounds) in near.iter().zip(&mut rounds) {
                    rounds.push(timed(&**fib, batch));
                }
            }
            for ((_, mlps), mut rounds) in near.iter_mut().zip(rounds) {
                rounds.sort_by(f64::total_cmp);
                mlps[number] = rounds[ROUNDS / 2];
            }
        }
        rates.extend(fibs.iter().zip(mlps).map(|((algorithm, _), mlps)| Rates {
            isa: isa.isa(),
            algorithm: algorithm.name.to_owned(),
            mlps,
        }));
    }
    Ok(Table {
        name: plan.name.clone(),
        family: plan.family,
        is_held_out: plan.is_held_out,
        routes: counted.routes,
        host_routes: counted.host_routes,
        wide_routes: counted.wide_routes,
        ranges: counted.ranges,
        structures,
        rates,
    })
}

/// Returns the million lookups a second of each structure over these keys, medians of rounds in which all are timed in
/// turn; `None` for those that are three times slower than the fastest one over the first keys, which takes most of the
/// time off. Answers are not checked. A dozen structures take about a tenth of a second.
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
    let mut rounds = vec![Vec::with_capacity(ROUNDS); fibs.len()];
    for _ in 0..ROUNDS {
        for ((fib, rounds), _) in fibs.iter().zip(&mut rounds).zip(&is_near).filter(|(_, near)| **near) {
            rounds.push(rate(*fib, isa, keys, batch));
        }
    }
    let median = |mut rounds: Vec<f64>| {
        rounds.sort_by(f64::total_cmp);
        rounds.get(rounds.len() / 2).copied()
    };
    rounds.into_iter().map(median).collect()
}

/// Keys that slow structures are dropped after.
const FEW_KEYS: usize = 1 << 13;

/// Returns the million lookups a second of one timing. Single lookups run with the chosen set, which is forced to this one
/// meanwhile.
fn rate<K: Key>(fib: &dyn Fib<K>, isa: Present, keys: &[K], batch: usize) -> f64 {
    let mut results: Vec<Option<NextHop>> = vec![None; batch];
    if batch == 1 {
        force(isa.isa());
    }
    let mut done = 0;
    let start = Instant::now();
    while start.elapsed() < SHORTEST {
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
        done += keys.len();
    }
    done as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn force(isa: Isa) {
    fibula::simd::force(Some(isa)).expect("a set that is present");
}
