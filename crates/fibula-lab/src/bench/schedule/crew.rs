//! Threads that share the work of a run.

use core::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::ThreadPool;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::row::Division;

/// The cores of some threads, and a pool of as many for the run-time.
pub(super) struct WorkerPool {
    cores: Vec<usize>,
    /// `None` if the system has no threads for it.
    pool: Option<ThreadPool>,
}

/// A counter on a cache line of its own: threads that take chunks would else disturb those that read the memory beside it.
#[repr(align(128))]
struct Counter(AtomicUsize);

/// When a thread began and when it was done.
type Span = (Instant, Instant);

impl WorkerPool {
    /// Makes a crew with a thread for each of these cores.
    pub(super) fn new(cores: &[usize]) -> Self {
        let all = cores.to_vec();
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(cores.len())
            .start_handler(move |thread| pin(all[thread % all.len()]))
            .build();
        Self { cores: cores.to_vec(), pool: pool.ok() }
    }

    /// Does so many passes over so many items, and returns the time by the wall clock. `work` gets ranges of items, which together
    /// cover each pass once, and the state that `state` made for its thread.
    pub(super) fn run<S>(
        &self,
        form: Division,
        chunk: usize,
        (items, passes): (usize, usize),
        state: &(impl Fn() -> S + Sync),
        work: &(impl Fn(&mut S, Range<usize>) + Sync),
    ) -> Duration {
        let threads = self.cores.len();
        let chunks = items.div_ceil(chunk.max(1));
        let range = |number: usize| {
            let first = number % chunks * chunk;
            first..(first + chunk).min(items)
        };
        match (form, &self.pool) {
            (Division::Static, _) => self.by_hand(&|thread| {
                let share = items * thread / threads..items * (thread + 1) / threads;
                let mut state = state();
                let begin = Instant::now();
                (0..passes).for_each(|_| work(&mut state, share.clone()));
                (begin, Instant::now())
            }),
            (Division::Rayon, Some(pool)) => pool.install(|| {
                let begin = Instant::now();
                let all = (0..chunks * passes).into_par_iter();
                all.for_each_init(state, |state, number| work(state, range(number)));
                begin.elapsed()
            }),
            (Division::Dynamic | Division::Rayon, _) => {
                let next = Counter(AtomicUsize::new(0));
                self.by_hand(&|_| {
                    let mut state = state();
                    let begin = Instant::now();
                    loop {
                        let number = next.0.fetch_add(1, Ordering::Relaxed);
                        if number >= chunks * passes {
                            return (begin, Instant::now());
                        }
                        work(&mut state, range(number));
                    }
                })
            }
        }
    }

    /// Starts a thread for each core, and returns the time from the first beginning to the last end.
    fn by_hand(&self, thread: &(impl Fn(usize) -> Span + Sync)) -> Duration {
        let barrier = Barrier::new(self.cores.len());
        let spans: Vec<Span> = std::thread::scope(|scope| {
            let start = |(number, &core): (usize, &usize)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    pin(core);
                    barrier.wait();
                    thread(number)
                })
            };
            let threads: Vec<_> = self.cores.iter().enumerate().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("lookups do not panic")).collect()
        });
        let begin = spans.iter().map(|span| span.0).min();
        let end = spans.iter().map(|span| span.1).max();
        begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin)
    }
}

/// Returns the cores that this process may use; without the first one, if that is left to the manager.
pub(super) fn cores(reserve: bool) -> Vec<usize> {
    let all = allowed();
    if reserve && !all.is_empty() { all[1..].to_vec() } else { all }
}

/// Returns whether threads can be pinned.
pub(super) const fn pins() -> bool {
    cfg!(target_os = "linux")
}

#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

/// Pins the calling thread to a core. Where that is refused, it goes on wherever the system puts it.
#[cfg(target_os = "linux")]
fn pin(core: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set);
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}
