//! The loops that are timed.

use core::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use fibula::fib::Fib;
use fibula::net::{Key, Keys, NextHop};
use fibula::simd::{Present, fetch};

use super::clock::Spent;
use super::native::{KeyPrefetch, Prepared, Shape, Structure};
use super::plan::Order;

/// How an engine is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallForm {
    pub(super) shape: Shape,
    pub(super) order: Order,
    /// The instruction set for batches of our engines. Single lookups use the one chosen for the process.
    pub(super) isa: Present,
}

/// Some of the keys, and how often to look all of them up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load<'a, K> {
    pub(super) keys: &'a [K],
    pub(super) passes: usize,
}

/// Times the lookups on this many threads. All start together, each with its own part of the keys, and the time ends
/// when the last one finishes.
pub(super) fn time<K: Key>(
    structure: &Structure<K>,
    way: CallForm,
    load: Load<'_, K>,
    threads: usize,
) -> Spent {
    if threads == 1 {
        let mut pass = Pass::new(structure, way, load.keys);
        let elsewhere = pass.time(load.passes);
        return elsewhere.unwrap_or_else(|| Spent::on(|| pass.run(load.passes)));
    }
    let barrier = Barrier::new(threads);
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let barrier = &barrier;
        let work = |keys| {
            scope.spawn(move || {
                let mut pass = Pass::new(structure, way, keys);
                barrier.wait();
                let start = Instant::now();
                pass.run(load.passes);
                (start, Instant::now())
            })
        };
        let workers: Vec<_> = parts(load.keys, threads).map(work).collect();
        workers.into_iter().map(|worker| worker.join().expect("lookups do not panic")).collect()
    });
    // Each thread reads the clock itself, because a thread that waits for the others may wake late.
    let start = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    let wall = start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start);
    Spent { wall, thread: None }
}

/// Divides the keys among the threads, as evenly as possible.
fn parts<K>(keys: &[K], threads: usize) -> impl Iterator<Item = &[K]> {
    (0..threads).map(move |at| &keys[keys.len() * at / threads..keys.len() * (at + 1) / threads])
}

/// An engine with its keys, in the form it takes, and room for its answers.
struct Pass<'a, K: Key> {
    way: CallForm,
    /// Bytes of the next batch to prefetch before each batch.
    ahead: usize,
    input: Input<'a, K>,
}

enum Input<'a, K: Key> {
    Fib { fib: &'a dyn Fib<K>, keys: &'a [K], results: Vec<Option<NextHop>> },
    Network { fib: &'a dyn Fib<K>, keys: Vec<K::Bytes>, results: Vec<Option<NextHop>> },
    Native { prepared: Box<dyn Prepared + 'a>, keys: usize },
}

/// Keys of a block where each key is a call of its own.
const SINGLES: usize = 256;

impl<'a, K: Key> Pass<'a, K> {
    fn new(structure: &'a Structure<K>, way: CallForm, keys: &'a [K]) -> Self {
        let batch = step(way.shape).min(keys.len());
        let input = match (structure, way.order) {
            (Structure::Fib(fib), Order::Host) => {
                Input::Fib { fib: fib.as_ref(), keys, results: vec![None; batch] }
            }
            (Structure::Fib(fib), Order::Network) => {
                let keys = keys.iter().map(|key| key.to_network()).collect();
                Input::Network { fib: fib.as_ref(), keys, results: vec![None; batch] }
            }
            (Structure::Native(native), _) => {
                Input::Native { prepared: native.prepare(keys, batch), keys: keys.len() }
            }
        };
        let by_loop = structure.key_prefetch(way.isa) == KeyPrefetch::Loop;
        Self { way, ahead: if by_loop { PREFETCH_BYTES } else { 0 }, input }
    }

    fn run(&mut self, passes: usize) {
        let CallForm { shape, isa, .. } = self.way;
        for _ in 0..passes {
            match &mut self.input {
                Input::Fib { fib, keys, results } => match shape {
                    Shape::Single => single(*fib, black_box(keys)),
                    Shape::Batch(batch) => batches(keys, batch, self.ahead, results, |keys, results| {
                        fib.lookup_batch_on(isa, keys, results);
                    }),
                    Shape::Dependent => dependent(*fib, black_box(keys)),
                },
                Input::Network { fib, keys, results } => {
                    batches(keys, step(shape), self.ahead, results, |keys, results| {
                        fib.lookup_keys_on(isa, Keys::Network(keys), results);
                    });
                }
                Input::Native { prepared, keys } => prepared.lookup(shape, 0..*keys),
            }
        }
    }

    /// Does [`run`](Self::run) in another program, if the engine is there; the time it took.
    fn time(&mut self, passes: usize) -> Option<Spent> {
        match &mut self.input {
            Input::Native { prepared, .. } => prepared.time(self.way.shape, passes),
            Input::Fib { .. } | Input::Network { .. } => None,
        }
    }

    /// Looks up the keys from `first` on, with the same calls as the timed run.
    fn answer(&mut self, first: usize, answers: &mut [Option<NextHop>]) {
        let CallForm { shape, isa, .. } = self.way;
        let range = first..first + answers.len();
        match &mut self.input {
            Input::Fib { fib, keys, .. } => match shape {
                Shape::Batch(_) => fib.lookup_batch_on(isa, &keys[range], answers),
                Shape::Single | Shape::Dependent => {
                    keys[range].iter().zip(answers).for_each(|(&key, answer)| *answer = fib.lookup(key));
                }
            },
            Input::Network { fib, keys, .. } => {
                fib.lookup_keys_on(isa, Keys::Network(&keys[range]), answers);
            }
            Input::Native { prepared, .. } => {
                prepared.lookup(shape, range);
                prepared.take(answers);
            }
        }
    }
}

/// Returns the number of keys whose answers are kept at once.
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

/// The most bytes of the next batch that are prefetched: more would evict the engine from the caches.
/// `rival/dpdk/shim.c` has the same number.
const PREFETCH_BYTES: usize = 4096;

fn batches<T>(
    keys: &[T],
    batch: usize,
    ahead_bytes: usize,
    results: &mut [Option<NextHop>],
    lookup: impl Fn(&[T], &mut [Option<NextHop>]),
) {
    let mut done = 0;
    for batch_keys in keys.chunks(batch) {
        done += batch_keys.len();
        // The first keys of the next batch are prefetched before this one is looked up, unless the kernel does it.
        let ahead = batch.min(ahead_bytes / size_of::<T>());
        fetch(&keys[done..keys.len().min(done + ahead)]);
        let results = &mut results[..batch_keys.len()];
        lookup(black_box(batch_keys), results);
        black_box(results);
    }
}

/// Each key is combined with a number that is computed from the last answer and is always 0, which neither compiler
/// nor processor can know. The number is in both ends of the key: the upper half of an IPv6 key is a register of its own.
fn dependent<K: Key>(fib: &dyn Fib<K>, keys: &[K]) {
    let nothing = black_box(0_u32);
    let mut last = 0;
    for &key in keys {
        let number = u128::from(last & nothing);
        let key = key.xor(K::from_bits(number | number << K::BITS.saturating_sub(32)));
        last = fib.lookup(key).map_or(0, NextHop::id);
    }
    black_box(last);
}

/// Looks all keys up as the timed run will, on as many threads, and compares every answer. Returns the number of
/// wrong ones, and the time.
pub(super) fn check<K: Key>(
    structure: &Structure<K>,
    way: CallForm,
    keys: &[K],
    expected: &[Option<NextHop>],
    threads: usize,
) -> (usize, Duration) {
    let start = Instant::now();
    let wrong = std::thread::scope(|scope| {
        let checks: Vec<_> = parts(keys, threads)
            .zip(parts(expected, threads))
            .map(|(keys, expected)| scope.spawn(move || wrong(structure, way, keys, expected)))
            .collect();
        checks.into_iter().map(|check| check.join().expect("lookups do not panic")).sum()
    });
    (wrong, start.elapsed())
}

/// Returns the number of keys whose answer is not the expected one.
pub(super) fn wrong<K: Key>(
    structure: &Structure<K>,
    way: CallForm,
    keys: &[K],
    expected: &[Option<NextHop>],
) -> usize {
    let mut pass = Pass::new(structure, way, keys);
    let mut results = vec![None; step(way.shape).min(keys.len())];
    let (step, mut wrong) = (step(way.shape), 0);
    for (block, expected) in expected.chunks(step).enumerate() {
        let results = &mut results[..expected.len()];
        // An answer left from the block before must not count.
        results.fill(NextHop::new(u32::MAX));
        pass.answer(block * step, results);
        wrong += results.iter().zip(expected).filter(|(found, expected)| found != expected).count();
    }
    wrong
}
