//! One key, and a block of keys in stages.

use crate::fib::parts::lanes::{self, BLOCK, Noted};
use crate::fib::parts::upper;
use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{self, LANES, Present, half_of, put};

use super::kernel;
use super::layout::{
    Forest, Line, NARROW, ROOTS_BITS, TREE_LINES, WIDE, WORDS, block_bit, cut, head, slot, window,
};

/// A table as kernels see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) direct_bits: u32,
    pub(super) first: u32,
    pub(super) direct: &'a [u32],
    pub(super) slots: &'a [u32],
    pub(super) lines: &'a [Line],
}

/// What the stages of a block leave to one another.
pub(super) struct Scratch {
    /// The first upper bits.
    pub(super) heads: [[u32; LANES]; BLOCK],
    /// The last upper bits.
    pub(super) windows: [[u32; LANES]; BLOCK],
    /// Roots of the trees of noted lanes.
    pub(super) roots: [[u32; LANES]; BLOCK],
    /// Lanes whose trees have roots.
    pub(super) rooted: Noted,
    /// Lanes that lead to blocks.
    pub(super) blocked: Noted,
}

impl Scratch {
    #[inline]
    fn new() -> Self {
        let empty = [[0; LANES]; BLOCK];
        Self { heads: empty, windows: empty, roots: empty, rooted: Noted::new(), blocked: Noted::new() }
    }
}

/// How many of the first `COUNT` words of a line lie strictly below `key`, which ascend: halving without a branch.
#[inline(always)]
pub(super) fn rank_first<const COUNT: u32>(line: &[u32; WORDS], key: u32) -> u32 {
    let (mut first, mut count) = (0, COUNT as usize);
    while count > 1 {
        let half = count / 2;
        first += if line[(first + half - 1) % WORDS] < key { half } else { 0 };
        count -= half;
    }
    (first + usize::from(line[first % WORDS] < key)) as u32
}

/// The value of a leaf behind so many of its keys.
#[inline(always)]
fn value<const LEAF_KEYS: u32>(line: &Line, rank: u32) -> u32 {
    if LEAF_KEYS == NARROW {
        half_of(&line.0, (2 * LEAF_KEYS + rank) as usize % (2 * WORDS)).into()
    } else {
        line.0[(LEAF_KEYS + rank) as usize % WORDS]
    }
}

impl View<'_> {
    /// The value for an upper part. `inner` and `leaf` say how many keys of a node lie strictly below a window.
    #[inline(always)]
    pub(super) fn one<K: Key, const LEAF_KEYS: u32>(
        self,
        upper: u64,
        inner: impl Fn(&[u32; WORDS], u32) -> u32,
        leaf: impl Fn(&[u32; WORDS], u32) -> u32,
    ) -> u32 {
        let index = (head::<K>(upper) >> (32 - self.direct_bits)).wrapping_sub(self.first);
        let window = window(upper);
        let tree = self.slots[slot(self.direct[(index as usize).min(self.direct.len() - 1)], window)];
        let mut at = tree >> ROOTS_BITS;
        for roots in (0..=tree as usize & ((1 << ROOTS_BITS) - 1)).rev() {
            at += 1 + inner(&self.lines[at as usize].0, window) * TREE_LINES[roots % TREE_LINES.len()];
        }
        let line = &self.lines[at as usize];
        value::<LEAF_KEYS>(line, leaf(&line.0, window))
    }

    /// From slots to values, for windows and places of trees: the stages that search nodes. No key waits for another,
    /// and no branch depends on one but for the number of roots.
    #[inline(always)]
    pub(super) fn descend<const LEAF_KEYS: u32>(
        self,
        scratch: &Scratch,
        found: &mut [[u32; LANES]],
        inner: impl Fn(&[u32; WORDS], u32) -> u32,
        leaf: impl Fn(&[u32; WORDS], u32) -> u32,
    ) {
        let windows = scratch.windows.as_flattened();
        let found = found.as_flattened_mut();
        for &lane in scratch.rooted.lanes() {
            let lane = usize::from(lane);
            let (mut at, window) = (found[lane], windows[lane]);
            for roots in (1..=scratch.roots.as_flattened()[lane] as usize).rev() {
                at += 1 + inner(&self.lines[at as usize].0, window) * TREE_LINES[roots % TREE_LINES.len()];
            }
            put(&mut found[lane], at);
        }
        // By fours, all of them searched before the first is stored.
        let fours = || windows.as_chunks::<4>().0.iter();
        for (places, windows) in found.as_chunks_mut::<4>().0.iter_mut().zip(fours()) {
            let next: [u32; 4] = core::array::from_fn(|lane| {
                let at = places[lane];
                at + 1 + inner(&self.lines[at as usize].0, windows[lane])
            });
            places.iter_mut().zip(next).for_each(|(place, next)| put(place, next));
        }
        for (places, windows) in found.as_chunks_mut::<4>().0.iter_mut().zip(fours()) {
            let values: [u32; 4] = core::array::from_fn(|lane| {
                let line = &self.lines[places[lane] as usize];
                value::<LEAF_KEYS>(line, leaf(&line.0, windows[lane]))
            });
            places.iter_mut().zip(values).for_each(|(place, value)| put(place, value));
        }
    }
}

/// A block of keys without vectors; lanes that lead to blocks are noted.
pub(super) fn block<K: Key, const LEAF_KEYS: u32>(
    view: View<'_>,
    keys: &[[K; LANES]],
    found: &mut [[u32; LANES]],
    scratch: &mut Scratch,
) {
    let keys = keys.as_flattened();
    let windows = scratch.windows.as_flattened_mut();
    let last = view.direct.len() - 1;
    for ((&key, window_of), place) in keys.iter().zip(&mut *windows).zip(found.as_flattened_mut()) {
        let upper = upper::upper(key, cut::<K>().upper_bits);
        let index = (head::<K>(upper) >> (32 - view.direct_bits)).wrapping_sub(view.first);
        let window = window(upper);
        let entry = view.direct[(index as usize).min(last)];
        put(window_of, window);
        put(place, slot(entry, window) as u32);
    }
    for (lane, place) in found.as_flattened_mut().iter_mut().enumerate() {
        let tree = view.slots[*place as usize];
        let roots = tree & ((1 << ROOTS_BITS) - 1);
        if roots > 0 {
            scratch.rooted.lane(lane);
            scratch.roots.as_flattened_mut()[lane] = roots;
        }
        put(place, tree >> ROOTS_BITS);
    }
    view.descend::<LEAF_KEYS>(scratch, found, rank_first::<{ WORDS as u32 }>, rank_first::<LEAF_KEYS>);
    let found = found.as_flattened();
    if found.iter().fold(0, |all, &value| all | value) & block_bit(LEAF_KEYS) != 0 {
        let blocked = |lane: &usize| found[*lane] & block_bit(LEAF_KEYS) != 0;
        (0..found.len()).filter(blocked).for_each(|lane| scratch.blocked.lane(lane));
    }
}

impl<K: Key> Forest<K> {
    #[inline]
    fn view(&self) -> View<'_> {
        let Self { direct_bits, first, .. } = *self;
        View { direct_bits, first, direct: &self.direct, slots: &self.slots, lines: &self.lines }
    }

    /// What a value says: a next hop, or what its block has for the key.
    #[inline(always)]
    fn answer<const LEAF_KEYS: u32>(&self, value: u32, key: K) -> u32 {
        let bit = const { block_bit(LEAF_KEYS) };
        if value & bit == 0 { value } else { self.find_in_block(value & !bit, key) }
    }

    #[cold]
    fn find_in_block(&self, block: u32, key: K) -> u32 {
        self.blocks.find(block as usize, upper::lower(key, cut::<K>().upper_bits))
    }

    fn one<const LEAF_KEYS: u32>(&self, isa: Present, key: K) -> u32 {
        let upper = upper::upper(key, cut::<K>().upper_bits);
        self.answer::<LEAF_KEYS>(kernel::one::<K, LEAF_KEYS>(isa, self.view(), upper), key)
    }

    fn batch<const LEAF_KEYS: u32>(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        if keys.len() < LANES {
            for (&key, result) in keys.iter().zip(results) {
                *result = NextHop::new(self.one::<LEAF_KEYS>(isa, key));
            }
            return;
        }
        let view = self.view();
        let mut scratch = Scratch::new();
        let mut done = 0;
        lanes::in_blocks(keys, results, |block, found| {
            // What comes next is asked for while this is worked through: stages have no loads to spare at their start.
            done += BLOCK * LANES;
            let next = keys.len().min(done)..keys.len().min(done + BLOCK * LANES);
            simd::fetch(&keys[next]);
            scratch.rooted.clear();
            scratch.blocked.clear();
            kernel::block::<K, LEAF_KEYS>(isa, view, block, found, &mut scratch);
            let (block, found) = (block.as_flattened(), found.as_flattened_mut());
            for lane in scratch.blocked.lanes().iter().map(|&lane| usize::from(lane)) {
                found[lane] = self.answer::<LEAF_KEYS>(found[lane], block[lane]);
            }
        });
    }
}

impl<K: Key> Fib<K> for Forest<K> {
    fn lookup(&self, key: K) -> Option<NextHop> {
        let isa = simd::chosen();
        NextHop::new(if self.leaf_keys == NARROW {
            self.one::<NARROW>(isa, key)
        } else {
            self.one::<WIDE>(isa, key)
        })
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if self.leaf_keys == NARROW {
            self.batch::<NARROW>(isa, keys, results);
        } else {
            self.batch::<WIDE>(isa, keys, results);
        }
    }

    fn memory(&self) -> Memory {
        memory::of(&self.direct) + memory::of(&self.slots) + memory::of(&self.lines) + self.blocks.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
