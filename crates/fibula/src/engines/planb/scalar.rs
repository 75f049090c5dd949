//! The walk down the tree, one key or several in step, with the node search as a parameter; and that search in portable
//! code.

use core::cell::Cell;
use core::hint::black_box;

use crate::net::{Key, NextHop};
use crate::simd::{self, IN_REGISTERS, Tree, TreeWalks, each_lane, each_value};

use super::layout::{Code, Node, NodeWord, PlanB, lower, upper, word};

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

/// In the place of a number of levels: any number.
pub const ANY: usize = usize::MAX;

/// How a batch holds its keys.
pub trait Order<K: Key> {
    /// The type of a key in the batch.
    type Item: Copy;
    /// Whether making a key of it takes an instruction.
    const TURNED: bool;

    /// Returns the key.
    fn key(item: Self::Item) -> K;
}

/// As keys.
pub struct Host;

impl<K: Key> Order<K> for Host {
    type Item = K;
    const TURNED: bool = false;

    #[inline(always)]
    fn key(item: K) -> K {
        item
    }
}

/// As bytes in network order.
pub struct Network;

impl<K: Key> Order<K> for Network {
    type Item = K::Bytes;
    const TURNED: bool = true;

    #[inline(always)]
    fn key(item: K::Bytes) -> K {
        K::from_network(item)
    }
}

/// Keys are prefetched this many bytes ahead.
const AHEAD: usize = 2048;

/// Marks a branch as rare: the compiler moves it out of line, and the common case runs without a jump.
#[cold]
#[inline]
fn rare() {}

/// Bytes of a cache line.
const LINE: usize = 64;

impl<K: Key, N: Node> PlanB<K, N> {
    /// Returns the walks of the words at their leaves. All run in step, because they have the same number of levels.
    /// `rank` returns how many keys of a node lie strictly below a word; `again` is called after each level.
    #[inline(always)]
    fn descend<const LEVELS: usize, const COUNT: usize>(
        &self,
        words: impl Fn(usize) -> N::Word,
        again: impl Fn(),
        rank: impl Fn(&N, N::Word) -> usize,
    ) -> TreeWalks<'_, N, COUNT> {
        // A constant, where it is one: the bounds of the tree are then one comparison.
        let levels = if const { LEVELS == ANY } { self.levels } else { LEVELS as u32 };
        let mut walks = Tree::new(&self.nodes, N::KEYS, levels).walks::<COUNT>();
        // Not a function: the compiler would call it, instead of writing it out at its places.
        macro_rules! step {
            () => {
                walks.step(N::KEYS, |node, lane| rank(node, words(lane)));
                again();
            };
        }
        macro_rules! unrolled {
            ($($level:literal)*) => { $(if const { $level < LEVELS } { step!(); })* };
        }
        if const { LEVELS == ANY } {
            for _ in 0..levels {
                step!();
            }
        } else {
            const { assert!(LEVELS == ANY || LEVELS <= 6) };
            unrolled!(0 1 2 3 4 5);
        }
        walks
    }

    /// Returns the interval of a word, whose walk is at its leaf.
    #[inline(always)]
    fn interval<const COUNT: usize>(
        &self,
        walks: &TreeWalks<'_, N, COUNT>,
        lane: usize,
        word: N::Word,
        rank: impl Fn(&N, N::Word) -> usize,
    ) -> usize {
        // Codes are numbered from the first leaf on, and the walk counts from the root.
        let (before, leaf) = walks.leaf(N::KEYS, lane);
        before - self.leaf_first * N::KEYS + rank(leaf, word)
    }

    /// Returns the next hop of a key in an interval.
    #[inline(always)]
    fn answer<C: Code>(&self, codes: &[C], interval: usize, key: K) -> Option<NextHop> {
        let code = codes[interval];
        // A code past the end of the next hops is that of a block: the bounds check, which is there anyway, tells them apart.
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

    /// Looks up the keys in whole groups of `COUNT`, and returns how many keys these groups have.
    #[inline(always)]
    fn groups<O: Order<K>, C: Code, const LEVELS: usize, const COUNT: usize>(
        &self,
        codes: &[C],
        keys: &[O::Item],
        results: &mut [Option<NextHop>],
        rank: impl Fn(&N, N::Word) -> usize + Copy,
    ) -> usize {
        let (groups, _) = keys.as_chunks::<COUNT>();
        let (of_groups, _) = results.as_chunks_mut::<COUNT>();
        for (keys, results) in groups.iter().zip(of_groups) {
            // Constants, so that the branches which a kernel does not take are not compiled into it.
            let early = const { O::TURNED || COUNT <= IN_REGISTERS };
            let mut turned = [N::Word::MAX; COUNT];
            if const { O::TURNED || COUNT <= IN_REGISTERS } {
                each_lane::<COUNT>(|lane| turned[lane] = word::<K, N::Word>(upper(O::key(keys[lane]))));
            }
            let mut walks = if const { COUNT <= IN_REGISTERS } {
                self.descend::<LEVELS, COUNT>(|lane| turned[lane], || (), rank)
            } else if const { O::TURNED } {
                // In network order, words are turned once and kept in memory.
                let words = Cell::new(black_box(&turned));
                self.descend::<LEVELS, COUNT>(
                    |lane| words.get()[lane],
                    || words.set(black_box(&turned)),
                    rank,
                )
            } else {
                // In host order, words are read from the keys again at each level: a broadcast from memory costs no more than
                // one from a register, and 32 words would not stay in registers.
                let words = Cell::new(keys);
                let word = |lane: usize| word::<K, N::Word>(upper(O::key(words.get()[lane])));
                self.descend::<LEVELS, COUNT>(word, || words.set(black_box(keys)), rank)
            };
            let word_of = |lane: usize| match early {
                true => turned[lane],
                false => word::<K, N::Word>(upper(O::key(keys[lane]))),
            };
            let mut blocks = 0_u32;
            let places = walks.ranks(N::KEYS, |leaf, lane| {
                // Once a cache line of keys. The prefetch may go past the batch, because callers hold their batches side by side.
                if lane.is_multiple_of(LINE / size_of::<O::Item>()) {
                    simd::fetch_past(keys, lane + AHEAD / size_of::<O::Item>());
                }
                rank(leaf, word_of(lane))
            });
            each_value(codes, places, |lane, code| {
                let word = match self.next_hops.get(code.next_hop()) {
                    Some(&word) => word,
                    None => {
                        rare();
                        blocks |= 1 << lane;
                        0
                    }
                };
                results[lane] = NextHop::new(word);
            });
            // Blocks are rare. Their lookups come after the loop above, because a call in it would spill its registers.
            while blocks != 0 {
                let lane = blocks.trailing_zeros() as usize;
                blocks &= blocks - 1;
                results[lane] = self.answer(codes, places[lane], O::key(keys[lane]));
            }
        }
        groups.len() * COUNT
    }

    /// Looks up a batch: `MANY` keys at a time, then fewer, then one.
    #[inline(always)]
    pub fn batch<O: Order<K>, C: Code, const LEVELS: usize, const MANY: usize>(
        &self,
        codes: &[C],
        keys: &[O::Item],
        results: &mut [Option<NextHop>],
        rank: impl Fn(&N, N::Word) -> usize + Copy,
    ) {
        let mut done = self.groups::<O, C, LEVELS, MANY>(codes, keys, results, rank);
        // The rest goes in ever smaller groups, because a walk of its own would wait for every load.
        if const { MANY > 16 } {
            done += self.groups::<O, C, LEVELS, 16>(codes, &keys[done..], &mut results[done..], rank);
        }
        if const { MANY > 8 } {
            done += self.groups::<O, C, LEVELS, 8>(codes, &keys[done..], &mut results[done..], rank);
        }
        done += self.groups::<O, C, LEVELS, 4>(codes, &keys[done..], &mut results[done..], rank);
        self.groups::<O, C, LEVELS, 1>(codes, &keys[done..], &mut results[done..], rank);
    }

    /// Looks up one key.
    #[inline(always)]
    pub(super) fn one_of<C: Code, const LEVELS: usize>(
        &self,
        codes: &[C],
        key: K,
        rank: impl Fn(&N, N::Word) -> usize + Copy,
    ) -> Option<NextHop> {
        let word = word::<K, N::Word>(upper(key));
        let walk = self.descend::<LEVELS, 1>(|_| word, || (), rank);
        self.answer(codes, self.interval(&walk, 0, word, rank), key)
    }

    /// Looks up one key, with this search of nodes.
    #[inline(always)]
    pub fn one<C: Code>(
        &self,
        codes: &[C],
        key: K,
        rank: impl Fn(&N, N::Word) -> usize + Copy,
    ) -> Option<NextHop> {
        self.one_of::<C, ANY>(codes, key, rank)
    }

    /// Looks up a batch in portable code.
    pub fn batch_by_thirds<O: Order<K>, C: Code, const LEVELS: usize>(
        &self,
        codes: &[C],
        keys: &[O::Item],
        results: &mut [Option<NextHop>],
    ) {
        self.batch::<O, C, LEVELS, 8>(codes, keys, results, rank_by_thirds);
    }

    /// Looks up one key in portable code.
    pub fn one_by_thirds<C: Code, const LEVELS: usize>(&self, codes: &[C], key: K) -> Option<NextHop> {
        self.one_of::<C, LEVELS>(codes, key, rank_by_thirds)
    }

    /// Returns the number of keys strictly below `word`.
    #[cfg(test)]
    pub fn rank(&self, word: N::Word) -> usize {
        let walk = self.descend::<ANY, 1>(|_| word, || (), rank_by_thirds);
        self.interval(&walk, 0, word, rank_by_thirds)
    }
}
