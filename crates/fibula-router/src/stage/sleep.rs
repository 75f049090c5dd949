//! Sleep of a thread whose rings are empty, until another thread puts something into one of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::Thread;
use std::time::Duration;

/// The sleep of one thread, which others end.
#[derive(Debug, Default)]
pub struct Sleeper {
    is_asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Sleeper {
    /// Sleeps until [`wake`](Self::wake), for some time at most. Does not sleep if `is_needed` returns `true`, which looks for what
    /// others have left before they saw the sleep. Only one thread may sleep here.
    pub fn sleep(&self, most: Duration, is_needed: impl FnOnce() -> bool) {
        self.thread.get_or_init(std::thread::current);
        self.is_asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence of `wake`: this thread sees what the other has left, or the other sees the sleep.
        fence(Ordering::SeqCst);
        if !is_needed() {
            std::thread::park_timeout(most);
        }
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    /// Ends the sleep, after something was left for the thread. Costs a fence if the thread is awake.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed)
            && self.is_asleep.swap(false, Ordering::Relaxed)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nothing_that_is_left_is_slept_over() {
        const ROUNDS: u64 = 20_000;
        let sleeper = Arc::new(Sleeper::default());
        let (left, taken) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let thread = std::thread::spawn({
            let (sleeper, left, taken) = (Arc::clone(&sleeper), Arc::clone(&left), Arc::clone(&taken));
            move || {
                for round in 1..=ROUNDS {
                    while left.load(Ordering::Acquire) < round {
                        // If nobody ended the sleep, the test would not end.
                        sleeper.sleep(Duration::from_secs(3600), || left.load(Ordering::Relaxed) >= round);
                    }
                    taken.store(round, Ordering::Release);
                }
            }
        });
        for round in 1..=ROUNDS {
            left.store(round, Ordering::Release);
            sleeper.wake();
            while taken.load(Ordering::Acquire) < round {
                std::thread::yield_now();
            }
        }
        thread.join().unwrap();
    }
}
