//! The search by lengths: one key, and a block of keys step by step.

use fibula::net::{Key, NextHop};
use fibula::unstable::simd;

use super::layout::Hbs;

/// Keys that are searched for side by side.
const BLOCK: usize = 64;

/// Where a search is.
#[derive(Debug, Clone, Copy)]
struct Walk {
    /// The rank whose table is next.
    at: u8,
    /// The rank of bit 0 of `origins`; [`UNMARKED`] before the first hit.
    first: u8,
    /// The ranks that are left.
    origins: u64,
}

/// No marker was met: all lengths of a subtree are left.
const UNMARKED: u8 = u8::MAX;

impl<K: Key> Hbs<K> {
    /// Returns where all searches begin; `None` if there are no lengths.
    #[inline(always)]
    fn begin(&self) -> Option<Walk> {
        let last = self.tree.len().checked_sub(1)?;
        Some(Walk { at: self.tree.part(0, last) as u8, first: UNMARKED, origins: 0 })
    }

    /// Looks in the table of the next length, from a slot on. Returns whether other lengths are left.
    #[inline(always)]
    fn step(&self, walk: &mut Walk, key: K, slot: usize, best: &mut u32) -> bool {
        let Walk { at, first, origins } = *walk;
        let table = &self.tables[usize::from(at)];
        let (first, origins) = if let Some(entry) = table.find_from(key.and(table.mask), slot) {
            if entry.best != 0 {
                *best = entry.best;
            }
            (at + 1, entry.origins)
        } else if first == UNMARKED {
            // Nothing of this length: all shorter ones of the subtree are left, which begins at rank 0.
            if at == 0 {
                return false;
            }
            walk.at = self.tree.part(0, usize::from(at) - 1) as u8;
            return true;
        } else {
            (first, origins & ((1 << (at - first)) - 1))
        };
        if origins == 0 {
            return false;
        }
        let rank = |bit: u32| usize::from(first) + bit as usize;
        let at = self.tree.part(rank(origins.trailing_zeros()), rank(63 - origins.leading_zeros()));
        *walk = Walk { at: at as u8, first, origins };
        true
    }

    /// Returns where the search in the next table begins.
    #[inline(always)]
    fn home(&self, walk: &Walk, key: K) -> usize {
        let table = &self.tables[usize::from(walk.at)];
        table.home(key.and(table.mask))
    }

    /// Looks up one key.
    #[inline(always)]
    pub(super) fn one(&self, key: K) -> Option<NextHop> {
        let mut best = self.default;
        if let Some(mut walk) = self.begin() {
            let mut goes_on = true;
            while goes_on {
                let slot = self.home(&walk, key);
                goes_on = self.step(&mut walk, key, slot, &mut best);
            }
        }
        NextHop::new(best)
    }

    /// Looks up a batch, each block of it step by step: the slots of all its keys are fetched before any is read.
    #[inline(always)]
    pub(super) fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let words = NextHop::words(results);
        words.fill(self.default);
        let Some(begin) = self.begin() else { return };
        for (keys, words) in keys.chunks(BLOCK).zip(words.chunks_mut(BLOCK)) {
            self.block(begin, keys, words);
        }
    }

    #[inline(always)]
    fn block(&self, begin: Walk, keys: &[K], words: &mut [u32]) {
        let (mut walks, mut slots) = ([begin; BLOCK], [0; BLOCK]);
        // The keys that are still searched for. Each is written, and the count decides whether it stays.
        let mut left = [0u8; BLOCK];
        let mut count = keys.len();
        for (at, &key) in keys.iter().enumerate() {
            left[at] = at as u8;
            slots[at] = self.fetch(&begin, key);
        }
        while count > 0 {
            let searched = core::mem::take(&mut count);
            for index in 0..searched {
                let number = left[index];
                let at = usize::from(number);
                let (key, walk) = (keys[at], &mut walks[at]);
                let goes_on = self.step(walk, key, slots[at], &mut words[at]);
                left[count] = number;
                if goes_on {
                    slots[at] = self.fetch(walk, key);
                    count += 1;
                }
            }
        }
    }

    /// Fetches the slot where the search in the next table begins, and returns it.
    #[inline(always)]
    fn fetch(&self, walk: &Walk, key: K) -> usize {
        let slot = self.home(walk, key);
        simd::fetch(&self.tables[usize::from(walk.at)].slots[slot..=slot]);
        slot
    }
}
