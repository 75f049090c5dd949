//! The walk down the trie: one key, and a block of keys level by level.

use fibula::net::{Key, NextHop};
use fibula::unstable::simd;

use super::layout::{CpTrie, LEAF, Leaf, Word, place, up_to};

/// Keys that walk down side by side.
const BLOCK: usize = 128;

/// Returns whether a slot is a node, and the number of that node in the next level or of the slot's leaf in this one; `count`
/// counts ones. There is no branch: both bit maps are loaded, and one of them is counted.
#[inline(always)]
fn step(word: &Word, bit: u32, count: impl Fn(u64) -> u32) -> (bool, u32) {
    let is_node = word.nodes >> bit & 1;
    let ones = word.leaves ^ (word.leaves ^ word.nodes) & is_node.wrapping_neg();
    let before = if is_node != 0 { word.nodes_before } else { word.leaves_before };
    (is_node != 0, before.wrapping_add(count(ones & up_to(bit))).wrapping_sub(1))
}

impl<K: Key, L: Leaf> CpTrie<K, L> {
    /// Returns the direct entry of a key.
    #[inline(always)]
    fn entry(&self, key: K) -> u32 {
        self.direct[key.window(0, self.strides.direct) as usize]
    }

    /// Looks up one key.
    #[inline(always)]
    pub(super) fn one(&self, key: K) -> Option<NextHop> {
        let entry = self.entry(key);
        if entry & LEAF != 0 { NextHop::new(entry & !LEAF) } else { self.walk_down(key, entry) }
    }

    /// Looks up one key from a node on. Not inlined, so that keys that end before it need none of its registers.
    #[inline(never)]
    fn walk_down(&self, key: K, node: u32) -> Option<NextHop> {
        let (set, mut node) = (simd::chosen(), node);
        for (at, level) in self.levels.iter().enumerate() {
            let (word, bit) = place(self.strides, at, node, key);
            let (is_node, next) = step(&level.words[word], bit, |ones| set.count_ones(ones));
            if !is_node {
                return NextHop::new(level.leaves[next as usize].next_hop());
            }
            node = next;
        }
        None
    }

    /// Looks up a batch, each block of it level by level: no key waits for another, and no branch depends on a key.
    #[inline(always)]
    pub(super) fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        for (keys, results) in keys.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
            self.block(keys, NextHop::words(results));
        }
    }

    #[inline(always)]
    fn block(&self, keys: &[K], words: &mut [u32]) {
        // The keys that are still walking. Each key is written, and the count decides whether it stays.
        let mut walking = [0u8; BLOCK + 1];
        let mut count = 0;
        for (at, (&key, word)) in keys.iter().zip(&mut *words).enumerate() {
            let entry = self.entry(key);
            *word = entry & !LEAF;
            walking[count] = at as u8;
            count += usize::from(entry & LEAF == 0);
        }
        // The keys whose leaves are in a level: their words are indices until all have walked it.
        let mut ended = [0u8; BLOCK + 1];
        for (at, level) in self.levels.iter().enumerate() {
            if count == 0 {
                break;
            }
            // The list is rewritten in place: a key is written at or before the place that it is read from.
            let walkers = core::mem::take(&mut count);
            let mut ends = 0;
            let next_words = self.levels.get(at + 1).map_or(&level.words[..], |next| &next.words[..]);
            for index in 0..walkers {
                let number = walking[index];
                let (key, node) = (keys[usize::from(number)], &mut words[usize::from(number)]);
                let (word, bit) = place(self.strides, at, *node, key);
                let (is_node, next) = step(&level.words[word], bit, u64::count_ones);
                *node = next;
                walking[count] = number;
                ended[ends] = number;
                count += usize::from(is_node);
                ends += usize::from(!is_node);
                // A leaf's number leads to some word of the next level or past its end, where a hint does no harm.
                let (word, _) = place(self.strides, (at + 1).min(self.levels.len() - 1), next, key);
                simd::fetch_past(next_words, word);
            }
            for &number in &ended[..ends] {
                let word = &mut words[usize::from(number)];
                *word = level.leaves[*word as usize].next_hop();
            }
        }
    }
}
