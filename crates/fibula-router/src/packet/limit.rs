//! Rate limits.

use std::sync::atomic::{AtomicU64, Ordering};

/// A bucket of tokens that fills with time. Time is passed in.
#[derive(Debug, Clone)]
pub struct Bucket {
    per_second: u64,
    burst: u64,
    /// Tokens, in billionths.
    tokens: u64,
    last_ns: u64,
}

const ONE: u64 = 1_000_000_000;

impl Bucket {
    /// Makes a full bucket of `burst` tokens that gains `per_second`.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Self {
        let burst = u64::from(burst) * ONE;
        Self { per_second: u64::from(per_second), burst, tokens: burst, last_ns: 0 }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let passed = now_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now_ns);
        self.tokens = self.tokens.saturating_add(passed.saturating_mul(self.per_second)).min(self.burst);
        if self.tokens < ONE {
            return false;
        }
        self.tokens -= ONE;
        true
    }
}

/// A bucket of tokens that threads share.
///
/// It holds the time at which it is full again (the generic cell rate algorithm: ITU-T I.371, annex A), in one word. A packet that
/// passes writes the word, and one that is refused only reads it. So a flood writes it no more often than the rate says, and threads
/// that refuse packets do not slow each other down.
///
/// Of all threads together, at most `burst + rate * t` packets pass in any `t` seconds. Where the clocks of threads differ by `d`, the
/// bound is that of `t + d` seconds.
#[derive(Debug)]
pub struct SharedBucket {
    /// Time of a token, in [`SHARE`]s of a nanosecond, rounded up so that the rate is an upper bound.
    interval: u64,
    /// Time of a burst but for its first token.
    depth: u64,
    /// When the bucket is full again.
    full: AtomicU64,
}

/// Parts of a nanosecond in which a shared bucket keeps time. 36 years fit.
const SHARE: u64 = 16;

impl SharedBucket {
    /// Makes a full bucket of `burst` tokens that gains `per_second`. Both must be at least 1, otherwise it has one token, or gains one
    /// a second.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Self {
        let interval = (ONE * SHARE).div_ceil(u64::from(per_second.max(1)));
        let depth = interval.saturating_mul(u64::from(burst.max(1)) - 1);
        Self { interval, depth, full: AtomicU64::new(0) }
    }

    /// Takes a token, if there is one.
    pub fn take(&self, now_ns: u64) -> bool {
        let now = now_ns.saturating_mul(SHARE);
        let mut full = self.full.load(Ordering::Relaxed);
        loop {
            // Without a write, so that a flood does not pull the word from thread to thread.
            if full > now.saturating_add(self.depth) {
                return false;
            }
            // From now on if it is full already, because time beyond the burst gives no tokens.
            let next = full.max(now).saturating_add(self.interval);
            match self.full.compare_exchange_weak(full, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => full = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bucket that is filled and emptied in exact arithmetic, for one clock that never goes back.
    struct Oracle {
        interval: u128,
        most: u128,
        held: u128,
        last: u128,
    }

    impl Oracle {
        fn new(rate: u32, burst: u32) -> Self {
            let interval = (16_000_000_000_u128).div_ceil(u128::from(rate));
            let most = interval * u128::from(burst);
            Self { interval, most, held: most, last: 0 }
        }

        fn take(&mut self, now_ns: u64) -> bool {
            let now = u128::from(now_ns) * 16;
            self.held = (self.held + (now - self.last)).min(self.most);
            self.last = now;
            let passes = self.held >= self.interval;
            self.held -= if passes { self.interval } else { 0 };
            passes
        }
    }

    fn next(random: &mut u64) -> u64 {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *random >> 33
    }

    #[test]
    fn shared_buckets_decide_as_exact_ones() {
        let mut random = 7;
        for (rate, burst) in
            [(1, 1), (1, 5), (3, 2), (10, 10), (999, 7), (1000, 1), (65_537, 300), (10_000_000, 4)]
        {
            let (bucket, mut oracle) = (SharedBucket::new(rate, burst), Oracle::new(rate, burst));
            let (mut now, mut passed) = (0_u64, 0_u32);
            for _ in 0..20_000 {
                // From floods to pauses that fill the bucket.
                let step = 2_000_000_000 / u64::from(rate);
                now += match next(&mut random) % 8 {
                    0..6 => 0,
                    _ if next(&mut random).is_multiple_of(4 * u64::from(burst)) => {
                        next(&mut random) % (step * u64::from(burst) + 1)
                    }
                    _ => next(&mut random) % step.max(2),
                };
                let passes = oracle.take(now);
                assert_eq!(bucket.take(now), passes, "{rate} {burst} at {now}");
                passed += u32::from(passes);
            }
            assert!((2_000..20_000).contains(&passed), "{rate} {burst}: {passed} of 20000 say little");
        }
    }

    #[test]
    fn threads_with_different_clocks_stay_within_the_bound_together() {
        let mut random = 3;
        for (rate, burst) in [(5, 1), (100, 8), (7_919, 64)] {
            let bucket = SharedBucket::new(rate, burst);
            let (mut now, mut passed) = (1_000_000_000_u64, Vec::new());
            for _ in 0..20_000 {
                now += next(&mut random) % (1_000_000_000 / u64::from(rate));
                // A thread reads its clock once a burst, so its time is older than that of others.
                let late = next(&mut random) % 3_000_000;
                if bucket.take(now - late) {
                    passed.push(now);
                }
            }
            // Of any packets that passed, the last came at least as late after the first as the rate demands.
            let late = 3_000_000;
            for count in [2, 10, 100, 1000] {
                for run in passed.windows(count.min(passed.len())) {
                    let time = u128::from(run[run.len() - 1] - run[0] + late);
                    let most = u128::from(burst) + u128::from(rate) * time / 1_000_000_000;
                    assert!(run.len() as u128 <= most + 1, "{rate} {burst}: {} in {time} ns", run.len());
                }
            }
        }
    }

    #[test]
    fn threads_share_one_burst() {
        let bucket = SharedBucket::new(1, 1000);
        let passed = std::thread::scope(|scope| {
            let run = || (0..1000).filter(|_| bucket.take(5)).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
        assert_eq!(passed, 1000);
        // Neither nothing nor the end of time is out of bounds.
        let edge = SharedBucket::new(0, 0);
        assert_eq!([0, 0, u64::MAX].map(|now| edge.take(now)), [true, false, true]);
    }

    #[test]
    fn bursts_pass_and_then_the_rate() {
        let mut bucket = Bucket::new(10, 5);
        let taken = |bucket: &mut Bucket, now| (0..100).filter(|_| bucket.take(now)).count();
        assert_eq!(taken(&mut bucket, 0), 5);
        assert_eq!(taken(&mut bucket, 100_000_000), 1);
        assert_eq!(taken(&mut bucket, 50_000_000), 0, "time does not go back");
        assert_eq!(taken(&mut bucket, 400_000_000), 3);
        assert_eq!(taken(&mut bucket, u64::MAX), 5, "no more than the burst");
        assert_eq!(taken(&mut Bucket::new(0, 0), 1), 0);
    }
}
