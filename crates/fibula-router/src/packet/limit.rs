//! Rate limits.

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

#[cfg(test)]
mod tests {
    use super::*;

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
