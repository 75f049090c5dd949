//! Remainders by a number that is known before the dividends: a multiplication and shifts, in vectors too.

/// A divisor of 32-bit numbers (Granlund and Montgomery, Division by invariant integers using multiplication, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Divisor {
    /// The divisor.
    pub(crate) size: u32,
    /// What the dividend is multiplied by, of which the upper half counts.
    pub(crate) magic: u32,
    /// Right shift of what that leaves of the dividend.
    pub(crate) first: u32,
    /// Right shift of the sum, which is the quotient then.
    pub(crate) second: u32,
}

impl Divisor {
    /// Returns the divisor.
    ///
    /// # Panics
    /// When it is 0.
    pub(crate) fn new(size: u32) -> Self {
        assert!(size > 0, "a divisor");
        let log = 32 - (size - 1).leading_zeros();
        let magic = ((1u64 << 32) * ((1u64 << log) - u64::from(size)) / u64::from(size) + 1) as u32;
        Self { size, magic, first: log.min(1), second: log.saturating_sub(1) }
    }

    /// Returns `number` modulo the divisor.
    #[inline(always)]
    pub(crate) fn remainder(self, number: u32) -> u32 {
        let high = ((u64::from(self.magic) * u64::from(number)) >> 32) as u32;
        let quotient = (high + ((number - high) >> self.first)) >> self.second;
        number.wrapping_sub(quotient.wrapping_mul(self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_those_of_the_division() {
        let sizes = (1..300).chain((0..32).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        let more = [2_434_631, 284_163, 4_656_206, u32::MAX - 1, u32::MAX];
        for size in sizes.chain(more).filter(|&size| size > 0) {
            let divisor = Divisor::new(size);
            let mixed = (0..200u32).map(|at| at.wrapping_mul(0x9e37_79b9));
            let around = [0, 1, size - 1, size, size.wrapping_add(1), u32::MAX - 1, u32::MAX, 1 << 31];
            for number in mixed.chain(around) {
                assert_eq!(divisor.remainder(number), number % size, "{number} by {size}");
            }
        }
    }
}
