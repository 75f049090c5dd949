//! The walk down the trie: one key, and a block of keys level by level.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use fibula::net::{Key, NextHop};
use fibula::unstable::memory::Cell;
use fibula::unstable::simd;

use super::layout::{LEAF, Leaf, NODE_WORDS, Poptrie, STRIDE, direct, direct_bits, levels, slot, up_to};

/// Keys that walk down side by side.
const BLOCK: usize = 128;

/// The words of a node.
type Words = [AtomicU64; NODE_WORDS];

/// Returns whether a slot is an internal node, and the index of that node or of the slot's leaf. `order` is that of the load
/// of the word that a writer changes, the last one; `count` counts ones.
///
/// Of the words, only those that decide are loaded, behind a branch.
#[inline(always)]
fn step(
    [vector, leafvec, bases]: &Words,
    slot: u32,
    order: Ordering,
    count: impl Fn(u64) -> u32,
) -> (bool, u32) {
    let (vector, up_to) = (vector.read(), up_to(slot));
    if vector >> slot & 1 != 0 {
        let base = (bases.load(order) >> 32) as u32;
        (true, base.wrapping_add(count(vector & up_to)).wrapping_sub(1))
    } else {
        let base = bases.load(order) as u32;
        (false, base.wrapping_add(count(leafvec.read() & up_to)).wrapping_sub(1))
    }
}

/// The same without a branch: all words are loaded, and what decides is chosen.
#[inline(always)]
fn choose([vector, leafvec, bases]: &Words, slot: u32) -> (bool, u32) {
    let (vector, leafvec, bases) = (vector.read(), leafvec.read(), bases.read());
    let is_node = vector >> slot & 1;
    let ones = leafvec ^ (leafvec ^ vector) & is_node.wrapping_neg();
    let base = (bases >> (32 * is_node)) as u32;
    (is_node != 0, base.wrapping_add((ones & up_to(slot)).count_ones()).wrapping_sub(1))
}

impl<K: Key> Poptrie<K> {
    /// Looks up one key. What an entry or the last word of a node leads to was written before it.
    #[inline(always)]
    pub(super) fn one<L: Leaf>(&self, leaves: &[L], key: K) -> Option<NextHop> {
        let entry = self.direct[direct(key)].load(Ordering::Acquire);
        if entry & LEAF != 0 { NextHop::new(entry & !LEAF) } else { self.walk_down(leaves, key, entry) }
    }

    /// Looks up one key from a node on. Not inlined, so that keys that end before it need none of its registers.
    #[inline(never)]
    fn walk_down<L: Leaf>(&self, leaves: &[L], key: K, entry: u32) -> Option<NextHop> {
        let (set, mut entry, mut offset) = (simd::chosen(), entry, direct_bits(K::BITS));
        loop {
            let node = self.nodes[entry as usize * NODE_WORDS..].first_chunk()?;
            let (is_node, next) =
                step(node, slot(key, offset), Ordering::Acquire, |ones| set.count_ones(ones));
            if !is_node {
                return NextHop::new(leaves[next as usize].next_hop());
            }
            entry = next;
            offset += STRIDE;
        }
    }

    /// Looks up a batch, each block of it level by level: no key waits for another, and no branch depends on a key.
    #[inline(always)]
    pub(super) fn batch<L: Leaf>(&self, leaves: &[L], keys: &[K], results: &mut [Option<NextHop>]) {
        for (keys, results) in keys.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
            self.block(leaves, keys, NextHop::words(results));
        }
    }

    #[inline(always)]
    fn block<L: Leaf>(&self, leaves: &[L], keys: &[K], words: &mut [u32]) {
        // The keys that are still walking. Each key is written, and the count decides whether it stays.
        let mut walking = [0u8; BLOCK + 1];
        let mut count = 0;
        for (at, (&key, word)) in keys.iter().zip(&mut *words).enumerate() {
            let entry = self.direct[direct(key)].read();
            *word = entry & !LEAF;
            walking[count] = at as u8;
            count += usize::from(entry & LEAF == 0);
        }
        // A writer publishes what it wrote by an entry, or by the last word of a node.
        fence(Ordering::Acquire);
        // All keys that walk past the direct table: their words become indices of leaves.
        let left = walking;
        let left_count = count;
        let nodes: &[Words] = self.nodes.as_chunks().0;
        let mut offset = direct_bits(K::BITS);
        for _ in 0..levels(K::BITS) {
            if count == 0 {
                break;
            }
            // The list is rewritten in place: a key is written at or before the place that it is read from.
            let walkers = core::mem::take(&mut count);
            for index in 0..walkers {
                let at = walking[index];
                let (key, word) = (keys[usize::from(at)], &mut words[usize::from(at)]);
                let (node, slot) = (&nodes[*word as usize], slot(key, offset));
                // Keys of IPv4 end in their first node, which a branch foresees; those of IPv6 in any.
                let (is_node, next) = if K::BITS > 64 {
                    choose(node, slot)
                } else {
                    step(node, slot, Ordering::Relaxed, u64::count_ones)
                };
                *word = next;
                walking[count] = at;
                count += usize::from(is_node);
            }
            fence(Ordering::Acquire);
            offset += STRIDE;
        }
        for &at in &left[..left_count] {
            let word = &mut words[usize::from(at)];
            *word = leaves[*word as usize].next_hop();
        }
    }
}
