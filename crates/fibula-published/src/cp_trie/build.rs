//! Ranges of addresses to levels, in one sweep that makes a node when its last slot is known.

use core::marker::PhantomData;

use fibula::fib::{BuildError, Fib};
use fibula::net::{Key, NextHop, Prefix, Route, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits, OutOfMemory};
use fibula::unstable::parts::ranges::{self, Merge};

use super::NAME;
use super::layout::{CpTrie, LEAF, Leaf, Level, SLOTS_MAX, Strides, WORD_BITS, Word};

/// Most nodes of a level: their numbers are in direct entries.
const NODES_MAX: u64 = 1 << 31;

/// Most leaves of a level: their counts have 32 bits.
const LEAVES_MAX: u64 = 1 << 32;

/// Builds the trie of the routes, with leaves as wide as they need.
///
/// # Errors
/// When memory runs out, and when a level has more than 2^31 nodes or 2^32 leaves.
pub(super) fn build<K: Key>(
    routes: &dyn Routes<K>,
    strides: Strides,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    let is_narrow = |route: Route<K>| if route.next_hop.id() <= u16::MOST { Ok(()) } else { Err(()) };
    if routes.try_for_each(Prefix::ALL, is_narrow).is_ok() {
        Ok(Box::new(CpTrie::<K, u16>::build(routes, strides, limits)?))
    } else {
        Ok(Box::new(CpTrie::<K, u32>::build(routes, strides, limits)?))
    }
}

impl<K: Key, L: Leaf> CpTrie<K, L> {
    /// Builds the trie of the routes, whose next hops fit the leaves.
    ///
    /// # Errors
    /// As for [`build`].
    pub(super) fn build(
        routes: &dyn Routes<K>,
        strides: Strides,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        let memory = |error| BuildError::memory(NAME, error);
        let mut filling = Filling::<K, L>::new(strides, limits).map_err(memory)?;
        filling.sweep(routes).map_err(memory)?;
        let Filling { trie, mut budget, open, .. } = filling;
        budget.free(open);
        let mut trie = trie;
        for (at, level) in trie.levels.iter_mut().enumerate() {
            let nodes = (level.words.len() / strides.words(K::BITS, at)) as u64;
            for (what, count, most) in
                [("nodes", nodes, NODES_MAX), ("leaves", level.leaves.len() as u64, LEAVES_MAX)]
            {
                if count > most {
                    return Err(BuildError::limit(NAME, what, most, count));
                }
            }
            budget.shrink(&mut level.words);
            budget.shrink(&mut level.leaves);
        }
        Ok(trie)
    }
}

/// A node under construction, whose slots are filled from the first on.
#[derive(Debug, Clone, Copy)]
struct OpenRoute {
    /// Next hop of each slot; unused where a slot is a node.
    next_hops: [u32; SLOTS_MAX],
    /// A bit for each slot that is a node, in words of 64.
    nodes: [u64; SLOTS_MAX >> WORD_BITS],
}

/// A trie under construction.
struct Filling<K, L: Copy> {
    trie: CpTrie<K, L>,
    /// The open node of each level.
    open: Buffer<OpenRoute>,
    budget: Budget,
    /// Addresses below this one are filled; all of them where it has wrapped to 0.
    done: u128,
    /// Next hop of the addresses from `done` on, 0 for no route.
    next_hop: u32,
}

impl<K: Key, L: Leaf> Filling<K, L> {
    fn new(strides: Strides, limits: Limits) -> Result<Self, OutOfMemory> {
        let mut budget = Budget::new(limits);
        let direct = budget.buffer(1 << strides.direct)?;
        let count = strides.levels(K::BITS);
        let mut levels = budget.vec(count)?;
        levels.extend((0..count).map(|_| Level { words: Buffer::new(), leaves: Buffer::new() }));
        let mut open = budget.buffer(count)?;
        open.resize(count, OpenRoute { next_hops: [0; SLOTS_MAX], nodes: [0; SLOTS_MAX >> WORD_BITS] });
        let trie = CpTrie { direct, levels, strides, keys: PhantomData };
        Ok(Self { trie, open, budget, done: 0, next_hop: 0 })
    }

    /// Returns the bits of the key after a slot of a level of nodes; those after a direct entry for `None`.
    fn rest(&self, level: Option<usize>) -> u8 {
        let strides = self.trie.strides;
        let Some(level) = level else { return K::BITS - strides.direct };
        let (offset, bits) = strides.of_level(K::BITS, level);
        K::BITS - offset - bits
    }

    fn sweep(&mut self, routes: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        // A range ends where the next one begins, and is filled in then.
        ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            if let Some(last) = range.start.previous() {
                self.fill(last.to_bits())?;
            }
            self.next_hop = NextHop::word(range.next_hop);
            Ok(())
        })?;
        self.fill(K::MAX.to_bits())
    }

    /// Gives the addresses up to `last` the current next hop.
    fn fill(&mut self, last: u128) -> Result<(), OutOfMemory> {
        loop {
            let at = self.done;
            // The coarsest slot that begins here and ends by `last`.
            let fits = |rest: u8| {
                let inside = (1u128 << rest) - 1;
                at & inside == 0 && last - at >= inside
            };
            // A direct entry has no room for next hops from 2^31 on.
            let mut level = None;
            while !fits(self.rest(level)) || (level.is_none() && self.next_hop & LEAF != 0) {
                level = Some(level.map_or(0, |level| level + 1));
            }
            let rest = self.rest(level);
            let inside = (1u128 << rest) - 1;
            let slots = ((last - at) >> rest) + u128::from((last - at) & inside == inside);
            let Some(level) = level else {
                let direct = &mut self.trie.direct;
                direct.resize(direct.len() + slots as usize, LEAF | self.next_hop);
                self.done = at.wrapping_add(slots << rest);
                if self.done > last || self.done <= at {
                    return Ok(());
                }
                continue;
            };
            let (first, in_node) = self.slot(at, level);
            let count = slots.min((in_node - first) as u128) as usize;
            self.open[level].next_hops[first..first + count].fill(self.next_hop);
            self.done = at.wrapping_add((count as u128) << rest);
            if first + count == in_node {
                self.close(level, at)?;
            }
            if self.done > last || self.done <= at {
                return Ok(());
            }
        }
    }

    /// Returns the slot of an address in a node of a level, and how many these are.
    fn slot(&self, at: u128, level: usize) -> (usize, usize) {
        let (_, bits) = self.trie.strides.of_level(K::BITS, level);
        ((at >> self.rest(Some(level))) as usize & ((1 << bits) - 1), 1 << bits)
    }

    /// Makes the node of a level whose slots are all known, and then each node above whose last slot it fills; `at` is
    /// an address of the last slot.
    fn close(&mut self, level: usize, at: u128) -> Result<(), OutOfMemory> {
        let mut level = level;
        loop {
            let number = self.trie.levels[level].words.len() / self.trie.strides.words(K::BITS, level);
            self.node(level)?;
            let Some(above) = level.checked_sub(1) else {
                self.trie.direct.push(number as u32 & !LEAF);
                return Ok(());
            };
            // Nodes are numbered in the order of their slots, so that a count finds them.
            let (slot, in_node) = self.slot(at, above);
            self.open[above].nodes[slot >> WORD_BITS] |= 1 << (slot & 63);
            if slot + 1 < in_node {
                return Ok(());
            }
            level = above;
        }
    }

    /// Appends the open node of a level, and empties it.
    fn node(&mut self, level: usize) -> Result<(), OutOfMemory> {
        let (_, bits) = self.trie.strides.of_level(K::BITS, level);
        let slots = 1usize << bits;
        let (open, to) = (&mut self.open[level], &mut self.trie.levels[level]);
        let before = to.words.last().map_or((0, 0), |word| {
            (
                word.nodes_before.wrapping_add(word.nodes.count_ones()),
                word.leaves_before.wrapping_add(word.leaves.count_ones()),
            )
        });
        let (mut nodes_before, mut leaves_before) = before;
        let mut last = None;
        self.budget.reserve(&mut to.leaves, slots)?;
        for (at, part) in open.next_hops[..slots].chunks(64).enumerate() {
            let nodes = core::mem::take(&mut open.nodes[at]);
            let mut leaves = 0;
            for (bit, &next_hop) in part.iter().enumerate().filter(|&(bit, _)| nodes >> bit & 1 == 0) {
                if last != Some(next_hop) {
                    leaves |= 1 << bit;
                    to.leaves.push(L::of(next_hop));
                    last = Some(next_hop);
                }
            }
            self.budget.push(&mut to.words, Word { nodes, leaves, nodes_before, leaves_before })?;
            nodes_before = nodes_before.wrapping_add(nodes.count_ones());
            leaves_before = leaves_before.wrapping_add(leaves.count_ones());
        }
        Ok(())
    }
}
