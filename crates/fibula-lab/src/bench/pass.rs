//! The loops that are timed.

use core::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use fibula::fib::Fib;
use fibula::net::{Key, NextHop};

/// How keys are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One key a call, each call free to overlap the next.
    Single,
    /// So many keys a call.
    Batch(usize),
    /// One key a call, and no key before the answer to the one before it.
    Dependent,
}

impl Shape {
    pub(super) fn new(dependent: bool, batch: usize) -> Self {
        match (dependent, batch) {
            (true, _) => Self::Dependent,
            (false, 1) => Self::Single,
            (false, batch) => Self::Batch(batch),
        }
    }
}

/// A part of the keys, and how often to look all of it up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load<'a, K> {
    pub(super) keys: &'a [K],
    pub(super) passes: usize,
}

/// Time that the lookups take on this many threads. All start together, each with its own part of the keys; the
/// time is that of the last one to finish.
pub(super) fn time<K: Key>(fib: &dyn Fib<K>, shape: Shape, load: Load<'_, K>, threads: usize) -> Duration {
    if threads == 1 {
        let mut results = results(shape, load.keys.len());
        let start = Instant::now();
        run(fib, shape, load, &mut results);
        return start.elapsed();
    }
    let barrier = Barrier::new(threads);
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let barrier = &barrier;
        let work = |keys| {
            scope.spawn(move || {
                let mut results = results(shape, <[K]>::len(keys));
                barrier.wait();
                let start = Instant::now();
                run(fib, shape, Load { keys, ..load }, &mut results);
                (start, Instant::now())
            })
        };
        let workers: Vec<_> = parts(load.keys, threads).map(work).collect();
        workers.into_iter().map(|worker| worker.join().expect("lookups do not panic")).collect()
    });
    // Each thread reads the clock itself: one that only waits for them may be late to wake.
    let start = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start)
}

/// One part of the keys for each thread: as equal as whole keys allow, and all keys in one of them.
fn parts<K>(keys: &[K], threads: usize) -> impl Iterator<Item = &[K]> {
    (0..threads).map(move |at| &keys[keys.len() * at / threads..keys.len() * (at + 1) / threads])
}

fn results(shape: Shape, keys: usize) -> Vec<Option<NextHop>> {
    match shape {
        Shape::Batch(batch) => vec![None; batch.min(keys)],
        Shape::Single | Shape::Dependent => Vec::new(),
    }
}

fn run<K: Key>(fib: &dyn Fib<K>, shape: Shape, load: Load<'_, K>, results: &mut [Option<NextHop>]) {
    for _ in 0..load.passes {
        match shape {
            Shape::Single => single(fib, black_box(load.keys)),
            Shape::Batch(batch) => batches(fib, load.keys, batch, results),
            Shape::Dependent => dependent(fib, black_box(load.keys)),
        }
    }
}

fn single<K: Key>(fib: &dyn Fib<K>, keys: &[K]) {
    for &key in keys {
        black_box(fib.lookup(key));
    }
}

fn batches<K: Key>(fib: &dyn Fib<K>, keys: &[K], batch: usize, results: &mut [Option<NextHop>]) {
    for keys in keys.chunks(batch) {
        let results = &mut results[..keys.len()];
        fib.lookup_batch(black_box(keys), results);
        black_box(results);
    }
}

/// Each key is combined with a number that is made of the last answer and is always 0, which neither compiler
/// nor processor can know.
fn dependent<K: Key>(fib: &dyn Fib<K>, keys: &[K]) {
    let nothing = black_box(0_u32);
    let mut last = 0;
    for &key in keys {
        let key = key.xor(K::from_bits(u128::from(last & nothing)));
        last = fib.lookup(key).map_or(0, NextHop::id);
    }
    black_box(last);
}

/// Looks all keys up as the timed run will, on as many threads, and compares every answer. The number of wrong
/// ones, and the time.
pub(super) fn check<K: Key>(
    fib: &dyn Fib<K>,
    shape: Shape,
    keys: &[K],
    expected: &[Option<NextHop>],
    threads: usize,
) -> (usize, Duration) {
    let start = Instant::now();
    let wrong = std::thread::scope(|scope| {
        let checks: Vec<_> = parts(keys, threads)
            .zip(parts(expected, threads))
            .map(|(keys, expected)| scope.spawn(move || wrong(fib, shape, keys, expected)))
            .collect();
        checks.into_iter().map(|check| check.join().expect("lookups do not panic")).sum()
    });
    (wrong, start.elapsed())
}

/// Number of keys that `fib` answers otherwise than expected.
pub(super) fn wrong<K: Key>(
    fib: &dyn Fib<K>,
    shape: Shape,
    keys: &[K],
    expected: &[Option<NextHop>],
) -> usize {
    match shape {
        Shape::Batch(batch) => {
            let mut results = results(shape, keys.len());
            let differ = |(keys, expected): (&[K], &[Option<NextHop>])| {
                // What the batch before left must not pass for an answer.
                let results = &mut results[..keys.len()];
                results.fill(NextHop::new(u32::MAX));
                fib.lookup_batch(keys, results);
                results.iter().zip(expected).filter(|(found, expected)| found != expected).count()
            };
            keys.chunks(batch).zip(expected.chunks(batch)).map(differ).sum()
        }
        Shape::Single | Shape::Dependent => {
            keys.iter().zip(expected).filter(|&(&key, &expected)| fib.lookup(key) != expected).count()
        }
    }
}
