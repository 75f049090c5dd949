//! A filter as kernels read it, the search that follows it, and the code that is left to the compiler.

use crate::bloom::divisor::Divisor;
use crate::bloom::hash::{Hash, Hashes, Stored};
use crate::bloom::level::Level;
use fibula::unstable::parts::lanes::BLOCK;
use fibula::unstable::simd::{LANES, Words};

/// Keys of a block.
pub(super) const KEYS: usize = BLOCK * LANES;

/// A filter, and the mask of the keys that it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// Upper and lower 32 bits of the mask; of keys of 32 bits, the lower ones.
    pub(super) mask: [u32; 2],
    pub(super) size: Divisor,
    pub(super) hashes: u32,
    pub(super) bits: Words<'a>,
}

impl<'a> View<'a> {
    /// Returns the filter of a level, which has entries.
    pub(super) fn of<S: Stored>(level: &'a Level<S>) -> Self {
        let mask = (S::leading(u128::MAX).masked(level.len).widened() >> (128 - S::BITS)) as u64;
        let filter = &level.filter;
        Self {
            mask: [(mask >> 32) as u32, mask as u32],
            size: filter.size,
            hashes: filter.hashes,
            bits: Words::new(&filter.bits),
        }
    }

    /// Looks up hashes in the filter: `1` where it has all of a lane. `next` are the first ones.
    #[inline(always)]
    fn has(&self, mut next: [u32; LANES], step: [u32; LANES]) -> u8 {
        let mut found = [1u32; LANES];
        let words = self.bits.slice();
        for _ in 0..self.hashes {
            let at = next.map(|hash| self.size.remainder(hash));
            for (found, at) in found.iter_mut().zip(at) {
                // A remainder is below the number of bits.
                let word = words.get((at / u32::BITS) as usize).copied().unwrap_or(0);
                *found &= word >> (at % u32::BITS);
            }
            for (next, step) in next.iter_mut().zip(step) {
                *next = next.wrapping_add(step);
            }
        }
        (0..LANES).fold(0, |bits, lane| bits | (found[lane] as u8 & 1) << lane)
    }

    /// Hashes a vector of keys of 32 bits and looks up the hashes in the filter.
    #[inline(always)]
    pub(super) fn probe32(&self, hash: Hash, keys: &[u32; LANES], firsts: &mut [u32; LANES]) -> u8 {
        let keys = keys.map(|key| key & self.mask[1]);
        *firsts = keys.map(|key| hash.first(key));
        self.has(*firsts, keys.map(|key| hash.second(key)))
    }

    /// Hashes a vector of keys of 64 bits and looks up the hashes in the filter.
    #[inline(always)]
    pub(super) fn probe64(&self, high: &[u32; LANES], low: &[u32; LANES], firsts: &mut [u32; LANES]) -> u8 {
        let key =
            |lane: usize| u64::from(high[lane] & self.mask[0]) << 32 | u64::from(low[lane] & self.mask[1]);
        let mixed: [u64; LANES] = core::array::from_fn(|lane| key(lane).mixed(0));
        *firsts = mixed.map(|mixed| mixed as u32);
        self.has(*firsts, mixed.map(|mixed| (mixed >> 32) as u32))
    }
}

/// A lane whose prefix the filter may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// The lane of the block.
    pub(super) lane: u8,
    /// The first hash of its key.
    pub(super) first: u32,
}

/// The lanes of a block that filters passed.
pub(super) struct Candidates {
    all: [Candidate; KEYS],
    heads: [u32; KEYS],
    count: usize,
}

impl Candidates {
    /// Returns no lanes.
    pub(super) fn none() -> Self {
        Self { all: [Candidate { lane: 0, first: 0 }; KEYS], heads: [0; KEYS], count: 0 }
    }

    /// Takes those of these vectors whose bits are set.
    #[inline]
    pub(super) fn take(&mut self, passed: &[u8], firsts: &[[u32; LANES]]) {
        self.count = 0;
        for (at, (&bits, firsts)) in passed.iter().zip(firsts).enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let lane = bits.trailing_zeros() as usize;
                self.all[self.count] = Candidate { lane: (at * LANES + lane) as u8, first: firsts[lane] };
                self.count += 1;
                bits &= bits - 1;
            }
        }
    }

    /// Searches the hash table of the level for the candidates, and tells of each next hop that is found.
    #[inline]
    pub(super) fn search<S: Stored, H: Hashes<S>>(
        &mut self,
        level: &Level<S>,
        hashes: H,
        key: impl Fn(usize) -> S,
        mut found: impl FnMut(usize, u32),
    ) {
        let candidates = &self.all[..self.count];
        // All buckets before any entry: the loads of one kind are independent, so the processor overlaps them.
        for (candidate, head) in candidates.iter().zip(&mut self.heads) {
            let key = key(candidate.lane.into()).masked(level.len);
            *head = level.head(hashes.bucket(key, candidate.first, &mut hashes.sequence(key)));
        }
        for (candidate, &head) in candidates.iter().zip(&self.heads) {
            let lane = usize::from(candidate.lane);
            match level.search(head, key(lane).masked(level.len)) {
                0 => {}
                next_hop => found(lane, next_hop),
            }
        }
    }
}
