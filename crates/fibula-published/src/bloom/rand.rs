//! C's `rand()`, the hash function of the paper's baseline: seeded by the key, successive outputs are successive hashes.
//!
//! The generator is the additive feedback generator of the GNU C library, the `rand()` of the systems that the paper
//! measured on: `r[i] = r[i-3] + r[i-31]`, seeded by a linear congruence, with the first 310 numbers dropped. Seeding costs
//! about 350 steps, and every key of every filter is a seed: that is what the paper calls costly.

use super::hash::Sequence;

/// Words of state.
const STATE: usize = 31;

/// Distance of the two words that are added.
const APART: usize = 3;

/// Numbers that are dropped after seeding.
pub(crate) const DROPPED: u32 = 310;

/// The generator, seeded.
#[derive(Debug, Clone)]
pub(crate) struct Rand {
    state: [u32; STATE],
    at: usize,
}

impl Rand {
    /// Seeds the generator, and drops so many numbers; [`DROPPED`] makes it the `rand()` of the library.
    pub(crate) fn seeded(seed: u32, dropped: u32) -> Self {
        let mut state = [0; STATE];
        // Seed 0 is seed 1, as a state of zeros would stay one.
        let mut word = i64::from(if seed == 0 { 1 } else { seed as i32 });
        state[0] = word as u32;
        for next in &mut state[1..] {
            // 16807 times the word before it, modulo 2^31 - 1, by Schrage's method, whose quotient is rounded to zero.
            word = 16_807 * (word % 127_773) - 2_836 * (word / 127_773);
            if word < 0 {
                word += 2_147_483_647;
            }
            *next = word as u32;
        }
        // The first word that is replaced is the fourth, which the first one is added to.
        let mut rand = Self { state, at: APART };
        for _ in 0..dropped {
            rand.next();
        }
        rand
    }
}

impl Sequence for Rand {
    #[inline]
    fn next(&mut self) -> u32 {
        let behind = self.at + STATE - APART;
        let behind = if behind >= STATE { behind - STATE } else { behind };
        let word = self.state[self.at].wrapping_add(self.state[behind]);
        self.state[self.at] = word;
        self.at = if self.at + 1 == STATE { 0 } else { self.at + 1 };
        // The lowest bit is the least random one.
        word >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_library() {
        let first = |seed| {
            let mut rand = Rand::seeded(seed, DROPPED);
            [(); 4].map(|()| rand.next())
        };
        assert_eq!(first(1), [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915]);
        assert_eq!(first(0), first(1));
        assert_eq!(first(42)[..2], [71_876_166, 708_592_740]);
        assert_eq!(first(0x0a00_0000)[..2], [620_562_046, 1_379_873_445]);
        assert_eq!(first(0x8000_0000)[..2], [1_336_741_213, 1_210_407_648]);
        assert_eq!(first(u32::MAX)[..2], [254_925_627, 1_205_188_300]);
    }
}
