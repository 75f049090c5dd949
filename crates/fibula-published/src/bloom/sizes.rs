//! Sizes of a Bloom filter from the false-positive ratio (Bloomfwd, equations 1 to 3).

use core::f64::consts::LN_2;

/// A false-positive ratio in percent, 1 to 99.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(u8);

impl Ratio {
    /// Returns the ratio.
    ///
    /// # Panics
    /// Unless it is from 1 to 99.
    #[must_use]
    pub const fn percent(percent: u8) -> Self {
        assert!(percent >= 1 && percent <= 99, "a ratio between 0 and 1");
        Self(percent)
    }

    /// Returns the binary logarithm of 1/f.
    fn log(self) -> f64 {
        (100.0 / f64::from(self.0)).log2()
    }

    /// Returns the size of a filter of `entries`, in bits: `m = n * log2(1/f) / ln 2`, rounded up (equation 3). A filter
    /// has at least one bit.
    #[must_use]
    pub fn bits(self, entries: u64) -> u64 {
        ((entries as f64 * self.log() / LN_2).ceil() as u64).max(1)
    }

    /// Returns the number of hash functions, `k = log2(1/f)` rounded up (equations 1 and 2).
    #[must_use]
    pub fn hashes(self) -> u32 {
        self.log().ceil() as u32
    }

    /// Returns the ratio that a full filter of this size really has, `(1 - e^(-kn/m))^k`. It differs from the wanted one
    /// because `k` is rounded.
    #[must_use]
    pub fn expected(self) -> f64 {
        let k = f64::from(self.hashes());
        (1.0 - (-k * LN_2 / self.log()).exp()).powf(k)
    }
}
