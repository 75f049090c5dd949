//! The view of a table that lookups read, and lookups in portable code: one key, and a block of keys in stages.

use crate::fib::parts::intervals;
use crate::fib::parts::lanes::Deferred;
use crate::net::Key;
use crate::simd::{LANES, LINE_WORDS as WORDS, Nodes, Walks, half_of, put};

use super::layout::{Forest, NARROW, ROOTS, TREE_LINES, WIDE, below_bit, block_bit, cut, head, slot, window};

/// A table as kernels read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) direct_bits: u32,
    pub(super) first: u32,
    pub(super) direct: &'a [u32],
    pub(super) slots: &'a [u32],
    pub(super) nodes: Nodes<'a>,
}

/// What the stages of a block pass on to each other.
pub(super) struct Scratch<'a, K> {
    /// The windows of the keys, one vector for every vector of keys.
    pub(super) windows: &'a mut [[u32; LANES]],
    /// Lanes whose trees have roots; after the roots, lanes whose values lead to records or blocks.
    pub(super) noted: Deferred,
    /// Keys of the next block.
    pub(super) next: &'a [K],
}

/// Returns how many of the first `COUNT` words of a line, which ascend, lie strictly below `key`. Two or three words
/// select a third, and two more decide the rest: no branch, and at most three loads deep.
#[inline(always)]
pub(super) fn rank_first<const COUNT: u32>(line: &[u32; WORDS], key: u32) -> u32 {
    let below = |at: u32| u32::from(line[at as usize % WORDS] < key);
    let first = if COUNT == WORDS as u32 { 8 * below(7) } else { 0 };
    let mut third = 3 * (below(first + 2) + below(first + 5));
    if COUNT == NARROW {
        third += 3 * below(8);
    }
    // There is no key after the last one.
    let second =
        if COUNT == NARROW { below(third + 1) & u32::from(third < 9) } else { below(first + third + 1) };
    let second = if COUNT == WIDE { second & u32::from(third < 6) } else { second };
    first + third + below(first + third) + second
}

/// Returns the value of a leaf that follows `rank` of its keys.
#[inline(always)]
fn value<const LEAF_KEYS: u32>(line: &[u32; WORDS], rank: u32) -> u32 {
    if LEAF_KEYS == NARROW {
        half_of(line, (2 * LEAF_KEYS + rank) as usize % (2 * WORDS)).into()
    } else {
        line[(LEAF_KEYS + rank) as usize % WORDS]
    }
}

/// Returns the record or block to which a value leads that is not a next hop.
#[inline(always)]
pub(super) fn below_place<const LEAF_KEYS: u32>(value: u32) -> usize {
    (value & const { block_bit(LEAF_KEYS) - 1 }) as usize
}

impl View<'_> {
    /// Returns the value for an upper part. `inner` and `leaf` return how many keys of a node lie strictly below a
    /// window.
    #[inline(always)]
    pub(super) fn one<K: Key, const LEAF_KEYS: u32>(
        self,
        upper: u64,
        inner: impl Fn(&[u32; WORDS], u32) -> u32,
        leaf: impl Fn(&[u32; WORDS], u32) -> u32,
    ) -> u32 {
        let index = (head::<K>(upper) >> (32 - self.direct_bits)).wrapping_sub(self.first);
        let window = window(upper);
        let mut at = self.slots[slot(self.direct[(index as usize).min(self.direct.len() - 1)], window)];
        while at & ROOTS > 0 {
            at = past_root(self.nodes.at(at), window, at, &inner);
        }
        at += (1 + inner(self.nodes.at(at), window)) * Nodes::LINE;
        let line = self.nodes.at(at);
        value::<LEAF_KEYS>(line, leaf(line, window))
    }
}

/// Looks up one key: [`View::one`] in portable code.
pub(super) fn one<K: Key, const LEAF_KEYS: u32>(view: View<'_>, upper: u64) -> u32 {
    view.one::<K, LEAF_KEYS>(upper, rank_first::<{ WORDS as u32 }>, rank_first::<LEAF_KEYS>)
}

/// Returns the place to which a root leads, which has one root less.
#[inline(always)]
fn past_root(line: &[u32; WORDS], window: u32, at: u32, inner: impl Fn(&[u32; WORDS], u32) -> u32) -> u32 {
    at - 1 + (1 + inner(line, window) * TREE_LINES[(at & ROOTS) as usize]) * Nodes::LINE
}

/// Walks from trees to values: the stages that search nodes. On entry the lanes whose trees have roots are deferred, on
/// return no lane is. No key waits for another. `roots` is the union of the bits of all trees' numbers of roots.
#[inline(always)]
pub(super) fn descend<K, const LEAF_KEYS: u32>(
    mut walks: Walks<'_>,
    roots: u32,
    scratch: &mut Scratch<'_, K>,
    inner: impl Fn(&[u32; WORDS], u32) -> u32,
    leaf: impl Fn(&[u32; WORDS], u32) -> u32,
) {
    let Scratch { windows, noted, next } = scratch;
    // In most tables no tree has more than one root, so this branch is predicted, and more lists would need room.
    if roots > 1 {
        for lane in noted.lanes() {
            while walks.place((*lane).into()) & ROOTS > 1 {
                walks.step(core::slice::from_ref(lane), windows, |line, window, at| {
                    past_root(line, window, at, &inner)
                });
            }
        }
    }
    walks.step(noted.lanes(), windows, |line, window, at| {
        (at & !ROOTS) + (1 + inner(line, window) * TREE_LINES[1]) * Nodes::LINE
    });
    noted.clear();
    walks.descend(windows, next, inner, |line, window| value::<LEAF_KEYS>(line, leaf(line, window)));
}

/// Looks up a block of keys. Lanes whose values lead to records or blocks are deferred.
pub(super) fn block<K: Key, const LEAF_KEYS: u32>(
    view: View<'_>,
    keys: &[[K; LANES]],
    found: &mut [[u32; LANES]],
    scratch: &mut Scratch<'_, K>,
) {
    // First stage: entries, and with them the places of slots.
    let keys = keys.as_flattened();
    let windows = scratch.windows.as_flattened_mut();
    let last = view.direct.len() - 1;
    for ((&key, window_of), place) in keys.iter().zip(windows).zip(found.as_flattened_mut()) {
        let upper = intervals::upper(key, cut::<K>().upper_bits);
        let index = (head::<K>(upper) >> (32 - view.direct_bits)).wrapping_sub(view.first);
        let window = window(upper);
        let entry = view.direct[(index as usize).min(last)];
        put(window_of, window);
        put(place, slot(entry, window) as u32);
    }
    // Second stage: slots, which are trees.
    let (mut noted, mut roots) = (0, 0);
    for (lane, place) in found.as_flattened_mut().iter_mut().enumerate() {
        let tree = view.slots[*place as usize];
        roots |= tree;
        // No branch, because one lane in four has roots.
        noted = scratch.noted.lane_after(noted, lane, tree & ROOTS > 0);
        put(place, tree);
    }
    scratch.noted.set_count(noted);
    let mut walks = Walks::new(view.nodes, found);
    for _ in 0..keys.len() / LANES {
        let places = *walks.lanes().before();
        walks.lanes().push(places);
    }
    let roots = roots & ROOTS;
    descend::<K, LEAF_KEYS>(walks, roots, scratch, rank_first::<{ WORDS as u32 }>, rank_first::<LEAF_KEYS>);
    let found = found.as_flattened();
    if found.iter().fold(0, |all, &value| all | value) & below_bit(LEAF_KEYS) != 0 {
        let below = |lane: &usize| found[*lane] & below_bit(LEAF_KEYS) != 0;
        (0..found.len()).filter(below).for_each(|lane| scratch.noted.lane(lane));
    }
}

impl<K: Key> Forest<K> {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        let Self { direct_bits, first, .. } = *self;
        View { direct_bits, first, direct: &self.direct, slots: &self.slots, nodes: Nodes::new(&self.lines) }
    }

    /// Returns the next hop of a value, or that of its record or block for the key.
    #[inline(always)]
    pub(super) fn answer<const LEAF_KEYS: u32>(&self, value: u32, key: K) -> u32 {
        if value & const { below_bit(LEAF_KEYS) } == 0 {
            value
        } else {
            self.find_below::<LEAF_KEYS>(value, key)
        }
    }

    /// Returns the next hop for the key in the record or block of a value.
    pub(super) fn find_below<const LEAF_KEYS: u32>(&self, value: u32, key: K) -> u32 {
        let lower = intervals::lower(key, cut::<K>().upper_bits);
        let place = below_place::<LEAF_KEYS>(value);
        if value & const { block_bit(LEAF_KEYS) } == 0 {
            self.records.find(place, lower)
        } else {
            self.blocks.find(place, lower)
        }
    }
}
