//! Two clocks: the wall's, and the time that a thread had the processor.
//!
//! On a shared machine a thread is taken from its core now and then. The wall's clock goes on, and a structure that was
//! measured at that moment looks slow; the thread's own clock stands. One thread is therefore timed by its own clock. It
//! hides nothing, as lookups neither sleep nor wait nor hand work to others; what the others leave in the caches is seen
//! all the same. Several threads are timed by the wall: that they are kept waiting is what is asked about them.

use std::time::{Duration, Instant};

/// What a stretch of work took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// By the wall's clock.
    pub wall: Duration,
    /// By the thread's own clock, where the system has one and there was one thread.
    pub thread: Option<Duration>,
}

impl Spent {
    /// The time that rates are made of.
    pub(super) fn counted(self) -> Duration {
        self.thread.unwrap_or(self.wall)
    }

    /// Times `work` in this thread.
    pub(super) fn on(work: impl FnOnce()) -> Self {
        let (wall, thread) = (Instant::now(), thread_time());
        work();
        let spent = thread_time().zip(thread).map(|(end, start)| end.saturating_sub(start));
        Self { wall: wall.elapsed(), thread: spent }
    }
}

/// What the calling thread has had of its core so far.
#[cfg(unix)]
fn thread_time() -> Option<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?))
}

#[cfg(not(unix))]
fn thread_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_has_no_processor() {
        let spent = Spent::on(|| std::thread::sleep(Duration::from_millis(20)));
        assert!(spent.wall >= Duration::from_millis(20));
        assert!(spent.counted() <= spent.wall);
        assert_eq!(spent.thread.is_some(), cfg!(unix));
    }
}
