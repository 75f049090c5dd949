//! Random numbers for tests.

/// Numbers that look random, the same ones in every run.
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `end`, which is at most 2^31.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
