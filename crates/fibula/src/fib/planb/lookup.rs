//! The walk down, alone and many in step.

use crate::fib::{CheckError, Fib};
use crate::memory::Memory;
use crate::net::{Key, NextHop};
use crate::simd::{self, Present};

use super::layout::{Code, Codes, Node, Word, lower, upper, word};
use super::{PlanB, kernel};

/// How many of `keys` lie strictly below `word`; they ascend. Two keys say which third of eight to look at, its two
/// keys say the rest: four comparisons, two loads deep, no branch. Wider nodes choose one of their eights first.
#[inline]
pub(super) fn below<W: Word, const KEYS: usize>(keys: &[W; KEYS], word: W) -> usize {
    let is_below = |key: W| usize::from(key < word);
    let (eights, rest) = keys.as_chunks::<8>();
    if eights.is_empty() {
        return rest.iter().map(|&key| is_below(key)).sum();
    }
    let eight: usize = eights[..eights.len() - 1].iter().map(|keys| is_below(keys[7])).sum();
    let keys = &eights[eight];
    let third = 3 * (is_below(keys[2]) + is_below(keys[5]));
    eight * 8 + third + is_below(keys[third]) + is_below(keys[third + 1])
}

/// Calls `body` for each of `COUNT` lanes, at most 16, one after the other in the code as well: what the lanes hold
/// then stays in registers, where a loop that the compiler leaves a loop keeps it in memory, at half the rate.
#[inline(always)]
fn each_lane<const COUNT: usize>(mut body: impl FnMut(usize)) {
    const { assert!(COUNT <= 16) };
    macro_rules! lanes {
        ($($lane:literal)*) => { $(if $lane < COUNT { body($lane); })* };
    }
    lanes!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

impl<K: Key, N: Node> PlanB<K, N> {
    /// The intervals of the words, all walks in step: they have the same number of levels. `rank` says how many keys
    /// of a node lie strictly below a word.
    #[inline(always)]
    fn search<const COUNT: usize>(
        &self,
        words: &[N::Word; COUNT],
        rank: impl Fn(&N, N::Word) -> usize,
    ) -> [usize; COUNT] {
        let mut at = [0; COUNT];
        for _ in 0..self.levels {
            each_lane::<COUNT>(|lane| {
                at[lane] = at[lane] * (N::KEYS + 1) + 1 + rank(&self.nodes[at[lane]], words[lane]);
            });
        }
        each_lane::<COUNT>(|lane| {
            at[lane] = (at[lane] - self.leaf_first) * N::KEYS + rank(&self.nodes[at[lane]], words[lane]);
        });
        at
    }

    #[inline(always)]
    fn answer<C: Code>(&self, codes: &[C], interval: usize, key: K) -> Option<NextHop> {
        let code = codes[interval];
        // A code beyond the next hops is a block's.
        let word = match self.next_hops.get(code.next_hop()) {
            Some(&word) => word,
            None => self.beyond(code.block(), lower(key)),
        };
        NextHop::new(word)
    }

    /// Where the block leads for a lower half. Rare, and kept out of the walk's registers.
    #[inline(never)]
    fn beyond(&self, block: usize, lower: u64) -> u32 {
        self.blocks.find(block, lower)
    }

    /// The lookups of the first keys, `COUNT` at a time; returns how many there were.
    #[inline(always)]
    fn groups<C: Code, const COUNT: usize>(
        &self,
        codes: &[C],
        keys: &[K],
        results: &mut [Option<NextHop>],
        rank: impl Fn(&N, N::Word) -> usize + Copy,
    ) -> usize {
        let (groups, _) = keys.as_chunks::<COUNT>();
        let (of_groups, _) = results.as_chunks_mut::<COUNT>();
        for (keys, results) in groups.iter().zip(of_groups) {
            let mut words = [N::Word::MAX; COUNT];
            each_lane::<COUNT>(|lane| words[lane] = word::<K, N::Word>(upper(keys[lane])));
            let intervals = self.search(&words, rank);
            each_lane::<COUNT>(|lane| results[lane] = self.answer(codes, intervals[lane], keys[lane]));
        }
        groups.len() * COUNT
    }

    /// The lookups of a batch: `MANY` at a time, then fewer, then one.
    #[inline(always)]
    pub(super) fn batch<C: Code, const MANY: usize>(
        &self,
        codes: &[C],
        keys: &[K],
        results: &mut [Option<NextHop>],
        rank: impl Fn(&N, N::Word) -> usize + Copy,
    ) {
        let mut done = self.groups::<C, MANY>(codes, keys, results, rank);
        if MANY > 8 {
            done += self.groups::<C, 8>(codes, &keys[done..], &mut results[done..], rank);
        }
        done += self.groups::<C, 4>(codes, &keys[done..], &mut results[done..], rank);
        self.groups::<C, 1>(codes, &keys[done..], &mut results[done..], rank);
    }

    /// A lookup alone.
    #[inline(always)]
    pub(super) fn one<C: Code>(
        &self,
        codes: &[C],
        key: K,
        rank: impl Fn(&N, N::Word) -> usize,
    ) -> Option<NextHop> {
        let [interval] = self.search(&[word::<K, N::Word>(upper(key))], rank);
        self.answer(codes, interval, key)
    }

    /// [`Self::batch`] in portable code.
    pub(super) fn batch_by_thirds<C: Code>(&self, codes: &[C], keys: &[K], results: &mut [Option<NextHop>]) {
        self.batch::<C, 8>(codes, keys, results, N::below);
    }

    /// [`Self::one`] in portable code.
    pub(super) fn one_by_thirds<C: Code>(&self, codes: &[C], key: K) -> Option<NextHop> {
        self.one(codes, key, N::below)
    }

    /// Number of keys strictly below `word`.
    #[cfg(test)]
    pub(super) fn rank(&self, word: N::Word) -> usize {
        let [rank] = self.search(&[word], N::below);
        rank
    }
}

impl<K: Key, N: Node> Fib<K> for PlanB<K, N> {
    fn lookup(&self, key: K) -> Option<NextHop> {
        match &self.codes {
            Codes::Narrow(codes) => kernel::one(simd::chosen(), self, codes, key),
            Codes::Wide(codes) => kernel::one(simd::chosen(), self, codes, key),
        }
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        match &self.codes {
            Codes::Narrow(codes) => kernel::batch(isa, self, codes, keys, results),
            Codes::Wide(codes) => kernel::batch(isa, self, codes, keys, results),
        }
    }

    fn memory(&self) -> Memory {
        self.bytes()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
