//! The loops that are timed.

use core::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use fibula::fib::Fib;
use fibula::net::{Key, NextHop};

use super::native::{Prepared, Shape, Structure};

/// A part of the keys, and how often to look all of it up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load<'a, K> {
    pub(super) keys: &'a [K],
    pub(super) passes: usize,
}

/// Time that the lookups take on this many threads. All start together, each with its own part of the keys; the
/// time is that of the last one to finish.
pub(super) fn time<K: Key>(
    structure: &Structure<K>,
    shape: Shape,
    load: Load<'_, K>,
    threads: usize,
) -> Duration {
    if threads == 1 {
        let mut track = Track::new(structure, shape, load.keys);
        let start = Instant::now();
        track.run(shape, load.passes);
        return start.elapsed();
    }
    let barrier = Barrier::new(threads);
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let barrier = &barrier;
        let work = |keys| {
            scope.spawn(move || {
                let mut track = Track::new(structure, shape, keys);
                barrier.wait();
                let start = Instant::now();
                track.run(shape, load.passes);
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

/// A structure with the keys it is about to look up, in the form it takes, and room for its answers.
enum Track<'a, K: Key> {
    Fib { fib: &'a dyn Fib<K>, keys: &'a [K], results: Vec<Option<NextHop>> },
    Native { prepared: Box<dyn Prepared + 'a>, keys: usize },
}

/// Keys whose answers are kept at once where each key is a call of its own.
const SINGLES: usize = 256;

impl<'a, K: Key> Track<'a, K> {
    fn new(structure: &'a Structure<K>, shape: Shape, keys: &'a [K]) -> Self {
        let batch = step(shape).min(keys.len());
        match structure {
            Structure::Fib(fib) => Self::Fib { fib: fib.as_ref(), keys, results: vec![None; batch] },
            Structure::Native(native) => {
                Self::Native { prepared: native.prepare(keys, batch), keys: keys.len() }
            }
        }
    }

    fn run(&mut self, shape: Shape, passes: usize) {
        for _ in 0..passes {
            match self {
                Self::Fib { fib, keys, results } => match shape {
                    Shape::Single => single(*fib, black_box(keys)),
                    Shape::Batch(batch) => batches(*fib, keys, batch, results),
                    Shape::Dependent => dependent(*fib, black_box(keys)),
                },
                Self::Native { prepared, keys } => prepared.lookup(shape, 0..*keys),
            }
        }
    }

    /// The answers of the keys from `first` on, looked up in the way they are timed.
    fn answer(&mut self, shape: Shape, first: usize, answers: &mut [Option<NextHop>]) {
        let range = first..first + answers.len();
        match self {
            Self::Fib { fib, keys, .. } => match shape {
                Shape::Batch(_) => fib.lookup_batch(&keys[range], answers),
                Shape::Single | Shape::Dependent => {
                    keys[range].iter().zip(answers).for_each(|(&key, answer)| *answer = fib.lookup(key));
                }
            },
            Self::Native { prepared, .. } => {
                prepared.lookup(shape, range);
                prepared.take(answers);
            }
        }
    }
}

/// Keys of a block, of which there are answers at once.
fn step(shape: Shape) -> usize {
    match shape {
        Shape::Batch(batch) => batch,
        Shape::Single | Shape::Dependent => SINGLES,
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
    structure: &Structure<K>,
    shape: Shape,
    keys: &[K],
    expected: &[Option<NextHop>],
    threads: usize,
) -> (usize, Duration) {
    let start = Instant::now();
    let wrong = std::thread::scope(|scope| {
        let checks: Vec<_> = parts(keys, threads)
            .zip(parts(expected, threads))
            .map(|(keys, expected)| scope.spawn(move || wrong(structure, shape, keys, expected)))
            .collect();
        checks.into_iter().map(|check| check.join().expect("lookups do not panic")).sum()
    });
    (wrong, start.elapsed())
}

/// Number of keys that the structure answers otherwise than expected.
pub(super) fn wrong<K: Key>(
    structure: &Structure<K>,
    shape: Shape,
    keys: &[K],
    expected: &[Option<NextHop>],
) -> usize {
    let mut track = Track::new(structure, shape, keys);
    let mut results = vec![None; step(shape).min(keys.len())];
    let mut wrong = 0;
    for (block, expected) in expected.chunks(step(shape)).enumerate() {
        let results = &mut results[..expected.len()];
        // What the block before left must not pass for an answer.
        results.fill(NextHop::new(u32::MAX));
        track.answer(shape, block * step(shape), results);
        wrong += results.iter().zip(expected).filter(|(found, expected)| found != expected).count();
    }
    wrong
}
