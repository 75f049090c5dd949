//! Random numbers that a seed determines for good: integer arithmetic on the words of xoshiro256++.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Starts the stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // SplitMix64 fills the state, as the authors of xoshiro advise. It is written out because `seed_from_u64` may
        // change between versions.
        let mut state = seed;
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        }
        Self(Xoshiro256PlusPlus::from_seed(bytes))
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns 128 random bits.
    #[inline]
    pub fn wide(&mut self) -> u128 {
        u128::from(self.word()) << 64 | u128::from(self.word())
    }

    /// Returns a number from 0 to `bound - 1`, all equally likely.
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        // Lemire, "Fast random integer generation in an interval" (2019): the high half of a product, drawn
        // again where the low half falls into the part that would favour some numbers.
        loop {
            let product = u128::from(self.word()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a number from 0 to `last`, all equally likely.
    pub fn up_to(&mut self, last: u128) -> u128 {
        if let Ok(last) = u64::try_from(last)
            && let Some(bound) = last.checked_add(1)
        {
            return self.below(bound).into();
        }
        let shift = last.leading_zeros();
        loop {
            let number = self.wide() >> shift;
            if number <= last {
                return number;
            }
        }
    }

    /// Returns true `share` times in a thousand.
    #[inline]
    pub fn permille(&mut self, share: u32) -> bool {
        self.below(1000) < u64::from(share)
    }

    /// Returns true `share` times in a hundred.
    #[inline]
    pub fn percent(&mut self, share: u8) -> bool {
        self.below(100) < u64::from(share)
    }

    /// Puts the items in random order, all orders equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// Draws indices in proportion to weights.
#[derive(Debug, Clone)]
pub struct Weighted {
    /// The sum of the weights up to and including each index.
    sums: Vec<u64>,
}

impl Weighted {
    /// Takes one weight for each index. None if all weights are zero, or there are none.
    #[must_use]
    pub fn new(weights: impl IntoIterator<Item = u64>) -> Option<Self> {
        let sums: Vec<u64> = weights
            .into_iter()
            .scan(0u64, |sum, weight| {
                *sum = sum.saturating_add(weight);
                Some(*sum)
            })
            .collect();
        (*sums.last()? > 0).then_some(Self { sums })
    }

    /// Draws an index.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> usize {
        let at = random.below(self.sums[self.sums.len() - 1]);
        self.sums.partition_point(|&sum| sum <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_sequence() {
        // The first words of xoshiro256++ with the state that SplitMix64 makes from seed 0.
        let mut random = Random::new(0);
        let words = [random.word(), random.word(), random.word()];
        assert_eq!(words, [0x5317_5d61_490b_23df, 0x61da_6f3d_c380_d507, 0x5c0f_df91_ec9a_7bfc]);
    }

    #[test]
    fn draws_stay_within_their_bounds_and_reach_both_ends() {
        let mut random = Random::new(1);
        for last in [0u128, 1, 6, 255, u128::from(u64::MAX), u128::from(u64::MAX) + 1, u128::MAX] {
            let draws: Vec<u128> = (0..500).map(|_| random.up_to(last)).collect();
            assert!(draws.iter().all(|&draw| draw <= last));
            assert!(draws.iter().any(|&draw| draw <= last / 4));
            assert!(draws.iter().any(|&draw| draw >= last - last / 4));
        }
        assert!((0..1000).all(|_| !random.permille(0) && random.permille(1000)));
    }

    #[test]
    fn weights_are_kept_to() {
        let mut random = Random::new(2);
        let weighted = Weighted::new([0, 1, 0, 3]).unwrap();
        let mut counts = [0; 4];
        for _ in 0..4000 {
            counts[weighted.draw(&mut random)] += 1;
        }
        assert_eq!((counts[0], counts[2]), (0, 0));
        assert!((900..1100).contains(&counts[1]), "{counts:?}");
        assert!(Weighted::new([0, 0]).is_none());
        assert!(Weighted::new([]).is_none());
    }
}
