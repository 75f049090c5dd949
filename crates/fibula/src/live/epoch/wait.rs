//! Waiting for readers, for a limited time.

use std::thread;
use std::time::{Duration, Instant};

use super::{Domain, RetireList, Stalled};

/// Steps of waiting in which the thread keeps its core, twice as long each time: a few microseconds in all.
const SPINS: u32 = 8;
/// Steps after those in which it lets other threads run.
const YIELDS: u32 = 16;
/// The first sleep after those, doubled until [`LONGEST`].
const SHORTEST: Duration = Duration::from_micros(50);
/// The longest sleep: the time that a reader's end may go unnoticed.
const LONGEST: Duration = Duration::from_millis(1);

impl<T> RetireList<T> {
    /// Reclaims until at most `limit_bytes` are left or no reader keeps any. Call it between changes: items that were
    /// retired since the last [`advance`](Self::advance) are not waited for.
    ///
    /// Readers cannot wake the writer, because that would cost them a read-modify-write: this spins, then yields, then
    /// sleeps for up to a millisecond at a time.
    ///
    /// # Errors
    /// When `timeout` is over: the reader that keeps the oldest item from being freed.
    pub(crate) fn wait(
        &mut self,
        domain: &Domain,
        limit_bytes: usize,
        timeout: Duration,
        mut free: impl FnMut(T),
    ) -> Result<(), Stalled> {
        let start = Instant::now();
        let mut step = 0;
        loop {
            let stalled = self.collect(domain, &mut free);
            let Some(stalled) = stalled.filter(|_| self.bytes() > limit_bytes) else { return Ok(()) };
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(stalled);
            }
            pause(step, left);
            step += 1;
        }
    }
}

/// Waits a little, longer at every step, `left` at most.
fn pause(step: u32, left: Duration) {
    if step < SPINS {
        (0..1_u32 << step).for_each(|_| core::hint::spin_loop());
    } else if step < SPINS + YIELDS {
        thread::yield_now();
    } else {
        // Five doublings reach the longest sleep, and more could overflow.
        let doublings = (step - SPINS - YIELDS).min(5);
        thread::sleep((SHORTEST * (1 << doublings)).min(LONGEST).min(left));
    }
}
