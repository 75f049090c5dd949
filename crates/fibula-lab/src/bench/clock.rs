//! Two clocks: wall-clock time, and the processor time of a thread.
//!
//! On a shared machine a thread loses its core now and then. Wall-clock time goes on, and the engine that was
//! measured at that moment looks slow; the processor time of the thread stops. One thread is therefore timed by its
//! processor time. This hides nothing, because lookups neither sleep nor wait nor hand work to other threads, and
//! the state in which other programs leave the caches still counts. Several threads are timed by wall-clock time, because their
//! waiting for each other is part of the result.

use std::time::{Duration, Instant};

/// The time that a stretch of work took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// Wall-clock time.
    pub wall: Duration,
    /// Processor time of the thread, where the system has such a clock and there was one thread.
    pub thread: Option<Duration>,
}

impl Spent {
    /// Returns the time that rates are computed from.
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

/// Returns the processor time of the calling thread so far.
#[cfg(unix)]
pub(crate) fn thread_time() -> Option<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?))
}

#[cfg(not(unix))]
pub(crate) fn thread_time() -> Option<Duration> {
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
