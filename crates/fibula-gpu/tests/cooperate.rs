//! Division, order and failures, with a device that is a structure on the processor and fails when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use fibula::fib::Fib;
use fibula::memory::Limits;
use fibula::net::{NextHop, Route, RouteSlice};

use fibula_gpu::cooperate::{Cooperative, Options, Share};
use fibula_gpu::device::{Lane, Loaded};
use fibula_gpu::{GpuError, Image};

/// A table of a device that looks up in a structure of the processor when it is waited for, and fails after some calls.
struct Fake {
    fib: Arc<dyn Fib<u32>>,
    /// Calls that succeed before all others fail.
    good: Arc<AtomicIsize>,
}

impl Fake {
    fn new(fib: Arc<dyn Fib<u32>>, good: isize) -> Self {
        Self { fib, good: Arc::new(AtomicIsize::new(good)) }
    }
}

fn call(good: &AtomicIsize) -> Result<(), GpuError> {
    let failed = || GpuError::Failed { what: "a call", said: "planned".to_owned() };
    if good.fetch_sub(1, Ordering::Relaxed) > 0 { Ok(()) } else { Err(failed()) }
}

impl Loaded for Fake {
    fn key_words(&self) -> usize {
        1
    }

    fn lane(&self, keys: usize) -> Result<Box<dyn Lane>, GpuError> {
        let (fib, good) = (Arc::clone(&self.fib), Arc::clone(&self.good));
        Ok(Box::new(FakeLane { fib, good, keys: vec![0; keys], found: vec![0; keys], count: 0 }))
    }

    fn store(&self, _: usize, _: &[u32]) -> Result<(), GpuError> {
        Ok(())
    }
}

struct FakeLane {
    fib: Arc<dyn Fib<u32>>,
    good: Arc<AtomicIsize>,
    keys: Vec<u32>,
    found: Vec<u32>,
    count: usize,
}

impl Lane for FakeLane {
    fn keys(&mut self) -> Result<&mut [u32], GpuError> {
        call(&self.good)?;
        Ok(&mut self.keys)
    }

    fn start(&mut self, count: usize, _: u32) -> Result<(), GpuError> {
        call(&self.good)?;
        // What is there before the answers must never be taken for them.
        self.found.fill(u32::MAX);
        self.count = count;
        Ok(())
    }

    fn start_resident(&mut self, _: usize) -> Result<(), GpuError> {
        call(&self.good)
    }

    fn wait(&mut self) -> Result<&[u32], GpuError> {
        call(&self.good)?;
        for (found, &key) in self.found.iter_mut().zip(&self.keys[..self.count]) {
            *found = self.fib.lookup_key(key).map_or(0, NextHop::id);
        }
        Ok(&self.found[..self.count])
    }
}

type Work = (Arc<dyn Fib<u32>>, Vec<u32>, Vec<Option<NextHop>>);

/// Returns a structure, addresses and their answers.
fn work(count: u32) -> Work {
    let route = |prefix: &str, id| Route::new(prefix.parse().unwrap(), NextHop::new(id).unwrap());
    let routes =
        [route("10.0.0.0/8", 1), route("10.1.0.0/16", 2), route("10.1.2.0/24", 3), route("192.0.2.1/32", 4)];
    let fib = fibula_published::find::<u32>("dir-17-bitmap")
        .unwrap()
        .build(&RouteSlice::new(&routes).unwrap(), Limits::default());
    let fib: Arc<dyn Fib<u32>> = fib.unwrap().into();
    let keys: Vec<u32> =
        (0..count).map(|at| 0x0a00_0000 + at.wrapping_mul(0x9e37_79b1) % 0x0200_0000).collect();
    let right = keys.iter().map(|&key| fib.lookup_key(key)).collect();
    (fib, keys, right)
}

fn options(buffers: usize, threads: usize, share: Share) -> Options {
    let mut options = Options::default();
    (options.buffer_keys, options.buffers, options.threads) = (100, buffers, threads);
    (options.share, options.chunk_keys) = (share, 16);
    options
}

#[test]
fn answers_are_in_order_whoever_finds_them() {
    let (fib, keys, right) = work(5_000);
    for buffers in 1..4 {
        for threads in 0..3 {
            for share in [
                Share::Measured,
                Share::Fixed(0.0),
                Share::Fixed(0.5),
                Share::Fixed(1.0),
                Share::Fixed(f64::NAN),
            ] {
                let device = Arc::new(Fake::new(Arc::clone(&fib), isize::MAX));
                let mut both = Cooperative::new(device, options(buffers, threads, share)).unwrap();
                for count in [0, 1, 15, 16, 17, 99, 1_000, 5_000] {
                    let mut found = vec![NextHop::new(u32::MAX); count];
                    let report = both.lookup(&*fib, &keys[..count], &mut found).unwrap();
                    assert_eq!(found, right[..count], "{buffers} {threads} {share:?} {count}");
                    assert_eq!(report.device_keys + report.processor_keys, count);
                    assert_eq!((report.redone_keys, &report.failure), (0, &None));
                    let mut end = 0;
                    for batch in &report.batches {
                        assert!(batch.first >= end, "batches ascend");
                        end = batch.first + batch.keys;
                    }
                }
            }
        }
    }
}

#[test]
fn fixed_shares_are_kept() {
    let (fib, keys, _) = work(1_600);
    for (share, expected) in [(0.0, 0), (0.25, 400), (0.8, 1_280), (1.0, 1_600)] {
        let device = Arc::new(Fake::new(Arc::clone(&fib), isize::MAX));
        let mut both = Cooperative::new(device, options(2, 1, Share::Fixed(share))).unwrap();
        let report = both.lookup(&*fib, &keys, &mut vec![None; keys.len()]).unwrap();
        assert_eq!(report.device_keys, expected);
    }
}

#[test]
fn a_device_that_fails_at_any_call_costs_no_answer() {
    let (fib, keys, right) = work(2_000);
    let mut redone = 0;
    for good in 0..60 {
        for (buffers, threads) in [(1, 0), (2, 0), (2, 2), (3, 1)] {
            let device = Arc::new(Fake::new(Arc::clone(&fib), good));
            let mut both = Cooperative::new(device, options(buffers, threads, Share::Measured)).unwrap();
            for round in 0..2 {
                let mut found = vec![NextHop::new(u32::MAX); keys.len()];
                let report = both.lookup(&*fib, &keys, &mut found).unwrap();
                assert_eq!(found, right, "{good} good calls, {buffers} buffers, {threads} threads");
                assert_eq!(report.device_keys + report.processor_keys, keys.len());
                redone += report.redone_keys;
                if threads == 0 {
                    // It has to come to the failure: the device is alone.
                    assert!(report.failure.is_some() && both.failure().is_some());
                    assert!(
                        round == 0 || report.device_keys == 0,
                        "a device that has failed is not used again"
                    );
                }
            }
        }
    }
    assert!(redone > 1_000);
}

#[test]
fn lengths_that_differ_are_refused() {
    let (fib, keys, _) = work(10);
    let device = Arc::new(Fake::new(Arc::clone(&fib), isize::MAX));
    let mut both = Cooperative::new(device, options(2, 1, Share::Measured)).unwrap();
    let refused = both.lookup(&*fib, &keys, &mut [None; 9]);
    assert_eq!(refused, Err(GpuError::Room { keys: 10, room: 9 }));
}

#[test]
fn what_no_device_knows_is_refused_by_name() {
    let none = RouteSlice::<u32>::new(&[]).unwrap();
    let fib = fibula_published::find::<u32>("radix").unwrap().build(&none, Limits::default()).unwrap();
    let error = Image::of(&*fib, "radix").unwrap_err();
    assert!(
        error.to_string().starts_with("no coprocessor looks up in 'radix'; there are: bloomfwd, dir-24-8")
    );
}

#[test]
fn a_device_that_fails_with_a_fixed_share_leaves_it_to_the_processor() {
    let (fib, keys, right) = work(2_000);
    for (good, threads) in [(0, 0), (0, 2), (5, 1)] {
        let device = Arc::new(Fake::new(Arc::clone(&fib), good));
        let mut both = Cooperative::new(device, options(2, threads, Share::Fixed(0.9))).unwrap();
        let mut found = vec![NextHop::new(u32::MAX); keys.len()];
        let report = both.lookup(&*fib, &keys, &mut found).unwrap();
        assert!(found == right && report.failure.is_some());
    }
}

#[test]
fn a_chunk_is_no_larger_than_a_buffer() {
    let (fib, keys, right) = work(5_000);
    let device = Arc::new(Fake::new(Arc::clone(&fib), isize::MAX));
    let mut options = options(2, 0, Share::Measured);
    options.chunk_keys = 1_000;
    let mut both = Cooperative::new(device, options).unwrap();
    let mut found = vec![None; keys.len()];
    let report = both.lookup(&*fib, &keys, &mut found).unwrap();
    assert_eq!((report.device_keys, found), (5_000, right));
}
