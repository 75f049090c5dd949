//! The walk down the tree, one key or several in step, with the node search as a parameter; and that search in portable
//! code.

use crate::net::{Key, NextHop};

use super::layout::{Code, Node, PlanB, Word, lower, upper, word};

/// Returns how many keys of a node lie strictly below `word`. Two keys select a third of eight keys, and the two keys
/// of that third decide the rest: four comparisons, two loads deep, no branch. A wider node first selects one of its
/// eights.
#[inline]
fn rank_by_thirds<N: Node>(node: &N, word: N::Word) -> usize {
    let is_below = |key: N::Word| usize::from(key < word);
    let (eights, rest) = node.keys().as_chunks::<8>();
    if eights.is_empty() {
        return rest.iter().map(|&key| is_below(key)).sum();
    }
    let eight: usize = eights[..eights.len() - 1].iter().map(|keys| is_below(keys[7])).sum();
    let keys = &eights[eight];
    let third = 3 * (is_below(keys[2]) + is_below(keys[5]));
    eight * 8 + third + is_below(keys[third]) + is_below(keys[third + 1])
}

/// Calls `body` for each of `COUNT` lanes, at most 16, without a loop in the code. The values of the lanes then stay in
/// registers; a loop that the compiler does not unroll keeps them in memory, at half the rate.
#[inline(always)]
fn each_lane<const COUNT: usize>(mut body: impl FnMut(usize)) {
    const { assert!(COUNT <= 16) };
    macro_rules! lanes {
        ($($lane:literal)*) => { $(if $lane < COUNT { body($lane); })* };
    }
    lanes!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

impl<K: Key, N: Node> PlanB<K, N> {
    /// Returns the intervals of the words. All walks run in step, because they have the same number of levels. `rank`
    /// returns how many keys of a node lie strictly below a word.
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

    /// Returns the next hop of a key in an interval.
    #[inline(always)]
    fn answer<C: Code>(&self, codes: &[C], interval: usize, key: K) -> Option<NextHop> {
        let code = codes[interval];
        // A code past the end of the next hops is that of a block.
        let word = match self.next_hops.get(code.next_hop()) {
            Some(&word) => word,
            None => self.find_in_block(code.block(), lower(key)),
        };
        NextHop::new(word)
    }

    /// Returns the next hop of a lower half in a block. Rare, and not inlined, to leave the registers to the walk.
    #[inline(never)]
    fn find_in_block(&self, block: usize, lower: u64) -> u32 {
        self.blocks.find(block, lower)
    }

    /// Looks up as many of the first keys as are a multiple of `COUNT`, and returns their number.
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

    /// Looks up a batch: `MANY` keys at a time, then fewer, then one.
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

    /// Looks up one key.
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

    /// Looks up a batch in portable code.
    pub(super) fn batch_by_thirds<C: Code>(&self, codes: &[C], keys: &[K], results: &mut [Option<NextHop>]) {
        self.batch::<C, 8>(codes, keys, results, rank_by_thirds);
    }

    /// Looks up one key in portable code.
    pub(super) fn one_by_thirds<C: Code>(&self, codes: &[C], key: K) -> Option<NextHop> {
        self.one(codes, key, rank_by_thirds)
    }

    /// Returns the number of keys strictly below `word`.
    #[cfg(test)]
    pub(super) fn rank(&self, word: N::Word) -> usize {
        let [rank] = self.search(&[word], rank_by_thirds);
        rank
    }
}
