//! The walk down, alone and many in step.

use crate::fib::{CheckError, Fib};
use crate::memory::Memory;
use crate::net::{Key, NextHop};
use crate::simd::Present;

use super::PlanB;
use super::layout::{Code, Codes, Node, Word, lower, upper, word};

/// Walks that go down side by side in a batch.
const LANES: usize = 8;

/// Walks side by side in what is left of a batch.
const FEW: usize = 4;

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

impl<K: Key, N: Node> PlanB<K, N> {
    /// The intervals of the words, all walks in step: they have the same number of levels.
    #[inline]
    fn search<const COUNT: usize>(&self, words: &[N::Word; COUNT]) -> [usize; COUNT] {
        let mut at = [0; COUNT];
        for _ in 0..self.levels {
            for (at, &word) in at.iter_mut().zip(words) {
                *at = *at * (N::KEYS + 1) + 1 + self.nodes[*at].below(word);
            }
        }
        for (at, &word) in at.iter_mut().zip(words) {
            *at = (*at - self.leaf_first) * N::KEYS + self.nodes[*at].below(word);
        }
        at
    }

    #[inline]
    fn answer<C: Code>(&self, codes: &[C], interval: usize, key: K) -> Option<NextHop> {
        let code = codes[interval];
        // A code beyond the next hops is a block's.
        let word = match self.next_hops.get(code.next_hop()) {
            Some(&word) => word,
            None => self.beyond(code.block(), lower(key)),
        };
        NextHop::new(word)
    }

    /// Where the block leads for a lower half.
    fn beyond(&self, block: usize, lower: u64) -> u32 {
        let pieces = self.blocks.pieces(block);
        let ends = &self.blocks.ends[pieces.clone()];
        self.blocks.next_hops[pieces.start + ends.partition_point(|&end| end < lower)]
    }

    #[inline]
    fn group<C: Code, const COUNT: usize>(
        &self,
        codes: &[C],
        keys: &[K; COUNT],
        results: &mut [Option<NextHop>; COUNT],
    ) {
        let intervals = self.search(&keys.map(|key| word::<K, N::Word>(upper(key))));
        for ((interval, &key), result) in intervals.into_iter().zip(keys).zip(results) {
            *result = self.answer(codes, interval, key);
        }
    }

    fn batch<C: Code>(&self, codes: &[C], keys: &[K], results: &mut [Option<NextHop>]) {
        let (many, keys) = keys.as_chunks::<LANES>();
        let (many_results, results) = results.as_chunks_mut::<LANES>();
        for (keys, results) in many.iter().zip(many_results) {
            self.group(codes, keys, results);
        }
        let (few, keys) = keys.as_chunks::<FEW>();
        let (few_results, results) = results.as_chunks_mut::<FEW>();
        for (keys, results) in few.iter().zip(few_results) {
            self.group(codes, keys, results);
        }
        for (&key, result) in keys.iter().zip(results) {
            *result = self.one(codes, key);
        }
    }

    #[inline]
    fn one<C: Code>(&self, codes: &[C], key: K) -> Option<NextHop> {
        let [interval] = self.search(&[word::<K, N::Word>(upper(key))]);
        self.answer(codes, interval, key)
    }

    /// Number of keys strictly below `word`.
    #[cfg(test)]
    pub(super) fn rank(&self, word: N::Word) -> usize {
        let [rank] = self.search(&[word]);
        rank
    }
}

impl<K: Key, N: Node> Fib<K> for PlanB<K, N> {
    fn lookup(&self, key: K) -> Option<NextHop> {
        match &self.codes {
            Codes::Narrow(codes) => self.one(codes, key),
            Codes::Wide(codes) => self.one(codes, key),
        }
    }

    fn lookup_batch_on(&self, _isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        match &self.codes {
            Codes::Narrow(codes) => self.batch(codes, keys, results),
            Codes::Wide(codes) => self.batch(codes, keys, results),
        }
    }

    fn memory(&self) -> Memory {
        self.bytes()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
