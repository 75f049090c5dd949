//! Lookups in portable code, and the view of the levels that kernels read.

use fibula::net::{Key, NextHop};
use fibula::unstable::simd::{Halves, Words};

use super::layout::{CHUNK, LEVELS, PAD, Sail};

/// The levels as kernels read them, and how the parts of a key lie in a lane of 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) levels: [Halves<'a>; LEVELS],
    /// Next hop of each code; unused where codes are ids.
    pub(super) next_hops: Words<'a>,
    /// Right shift of a lane that leaves the bits up to those of each level.
    pub(super) shifts: [u32; LEVELS],
    /// Bits of the key that select an entry of a chunk of each level.
    pub(super) bits: [u32; LEVELS],
}

impl<K: Key> Sail<K> {
    /// Returns the levels as kernels read them.
    pub(super) fn view(&self) -> View<'_> {
        // A gather needs a table even where no entry leads to a chunk.
        let level = |at: usize| &self.levels[if self.levels[at].len() > PAD { at } else { 0 }];
        View {
            levels: [Halves::new(level(0)), Halves::new(level(1)), Halves::new(level(2))],
            next_hops: Words::new(self.next_hops.as_deref().unwrap_or(&[0])),
            shifts: Self::REST.map(|rest| u32::from(32 - K::BITS + rest)),
            bits: Self::BITS.map(u32::from),
        }
    }

    /// Returns the code of a key.
    #[inline(always)]
    fn resolve(&self, key: K) -> u16 {
        let [first, second, third] = Self::BITS;
        let mut entry = self.levels[0][key.window(0, first) as usize];
        for (level, offset, bits) in [(1, first, second), (2, first + second, third)] {
            if entry & CHUNK == 0 {
                break;
            }
            let chunk = usize::from(entry & !CHUNK) << bits;
            entry = self.levels[level][chunk | key.window(offset, bits) as usize];
        }
        entry
    }

    /// Looks up one key.
    #[inline(always)]
    pub(super) fn one(&self, key: K) -> Option<NextHop> {
        let code = self.resolve(key);
        NextHop::new(match &self.next_hops {
            None => code.into(),
            Some(next_hops) => next_hops[usize::from(code)],
        })
    }

    /// Looks up a batch.
    pub(super) fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        for (&key, result) in keys.iter().zip(results) {
            *result = self.one(key);
        }
    }
}
