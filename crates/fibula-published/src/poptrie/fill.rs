//! Ranges of addresses to nodes, in one sweep that makes a node when its last slot is known.

use core::marker::PhantomData;

use fibula::net::{Key, NextHop, Prefix, Routes};
use fibula::unstable::memory::{Budget, Buffer, OutOfMemory};
use fibula::unstable::parts::ranges::{self, Merge};

use super::layout::{LEAF, Node, SLOTS, STRIDE, levels, rest_bits};

/// Where nodes and leaves are stored.
pub(super) trait Sink {
    /// Stores the children of a node, if there are any, and returns the index of the first one.
    fn nodes(&mut self, nodes: &[Node]) -> Result<u32, OutOfMemory>;

    /// Stores the leaves of a node, if there are any, and returns the index of the first one.
    fn leaves(&mut self, words: &[u32]) -> Result<u32, OutOfMemory>;

    /// Takes the next hop of so many direct entries.
    fn entries(&mut self, first: usize, count: usize, word: u32) -> Result<(), OutOfMemory>;

    /// Takes the node of a direct entry.
    fn root(&mut self, entry: usize, node: Node) -> Result<(), OutOfMemory>;
}

/// A node under construction, whose slots are filled from the first on.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenRoute {
    /// Next hop of each slot; unused where a slot is a node.
    pub(super) words: [u32; SLOTS],
    /// The slots that are nodes.
    pub(super) vector: u64,
    /// Those nodes, without gaps.
    pub(super) nodes: [Node; SLOTS],
}

impl OpenRoute {
    const EMPTY: Self = Self { words: [0; SLOTS], vector: 0, nodes: [EMPTY; SLOTS] };

    /// Makes a slot after all others a node.
    pub(super) fn push(&mut self, slot: u32, node: Node) {
        self.nodes[self.vector.count_ones() as usize] = node;
        self.vector |= 1 << slot;
    }

    /// Returns the nodes.
    pub(super) fn children(&self) -> &[Node] {
        &self.nodes[..self.vector.count_ones() as usize]
    }

    /// Returns the bit map of leaves that differ from the one before, and how many these are; they are written to `leaves`.
    pub(super) fn leaves(&self, leaves: &mut [u32; SLOTS]) -> (u64, usize) {
        let (mut leafvec, mut last, mut count) = (0, None, 0);
        for (slot, &word) in self.words.iter().enumerate().filter(|&(slot, _)| self.vector >> slot & 1 == 0) {
            if last != Some(word) {
                leafvec |= 1 << slot;
                leaves[count] = word;
                count += 1;
                last = Some(word);
            }
        }
        (leafvec, count)
    }
}

const EMPTY: Node = Node { vector: 0, leafvec: 0, leaves: 0, nodes: 0 };

/// Nodes under construction.
#[derive(Debug)]
pub(super) struct Filling<K> {
    /// The open node of each level, from the level below the direct table on.
    pub(super) open: Buffer<OpenRoute>,
    /// The level whose slots are the largest that are filled: 0 for direct entries.
    top: usize,
    /// Addresses below this one are filled; all of them where it has wrapped to 0.
    done: u128,
    /// Next hop of the addresses from `done` on, 0 for no route.
    word: u32,
    keys: PhantomData<fn(K)>,
}

impl<K: Key> Filling<K> {
    pub(super) fn new(budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let mut open = budget.buffer(levels(K::BITS))?;
        open.resize(levels(K::BITS), OpenRoute::EMPTY);
        Ok(Self { open, top: 0, done: 0, word: 0, keys: PhantomData })
    }

    /// Fills whole slots from the routes: direct entries where `top` is 0, else slots of the open node of the level above.
    pub(super) fn sweep(
        &mut self,
        routes: &dyn Routes<K>,
        within: Prefix<K>,
        top: usize,
        sink: &mut impl Sink,
    ) -> Result<(), OutOfMemory> {
        (self.top, self.done) = (top, within.addr().to_bits());
        // Nodes that were taken apart, or that a failure left open.
        self.open[top..].iter_mut().for_each(|open| open.vector = 0);
        // A range ends where the next one begins, and is filled in then.
        ranges::try_for_each(routes, within, Merge::EqualNeighbours, |range| {
            if let Some(last) = range.start.previous().filter(|_| range.start != within.addr()) {
                self.fill(last.to_bits(), sink)?;
            }
            self.word = NextHop::word(range.next_hop);
            Ok(())
        })?;
        self.fill(within.last().to_bits(), sink)
    }

    /// Gives the addresses up to `last` the current next hop.
    fn fill(&mut self, last: u128, sink: &mut impl Sink) -> Result<(), OutOfMemory> {
        let mut at = self.done;
        loop {
            // The coarsest slot that begins here and ends by `last`.
            let (mut level, mut rest) = (self.top, rest_bits(K::BITS, self.top));
            let fits = |rest: u32| {
                let inside = (1u128 << rest) - 1;
                at & inside == 0 && last - at >= inside
            };
            // A direct entry has no room for next hops from 2^31 on.
            while !fits(rest) || (level == 0 && self.word & LEAF != 0) {
                level += 1;
                rest = rest.saturating_sub(STRIDE);
            }
            let begin = at;
            let inside = (1 << rest) - 1;
            let slots = ((last - at) >> rest) + u128::from((last - at) & inside == inside);
            if level == 0 {
                sink.entries((begin >> rest) as usize, slots as usize, self.word)?;
                at = begin.wrapping_add(slots << rest);
            } else {
                let (first, in_node) = place::<K>(begin, level);
                let count = slots.min((in_node - first) as u128) as usize;
                let spare = SLOTS / in_node;
                self.open[level - 1].words[first * spare..(first + count) * spare].fill(self.word);
                at = begin.wrapping_add((count as u128) << rest);
                if first + count == in_node && level > self.top {
                    self.close(level - 1, begin, sink)?;
                }
            }
            if at > last || at <= begin {
                self.done = at;
                return Ok(());
            }
        }
    }

    /// Makes the node of a level whose slots are all known, and then each node above whose last slot it fills; `at` is
    /// an address of the last slot.
    fn close(&mut self, level: usize, at: u128, sink: &mut impl Sink) -> Result<(), OutOfMemory> {
        let mut level = level;
        loop {
            let node = self.node(level, sink)?;
            let Some(above) = level.checked_sub(1) else {
                return sink.root((at >> rest_bits(K::BITS, 0)) as usize, node);
            };
            let slot = place::<K>(at, level).0;
            self.open[above].push(slot as u32, node);
            if slot < SLOTS - 1 || level == self.top {
                return Ok(());
            }
            level = above;
        }
    }

    /// Returns the node of an open level, having stored its children and leaves, and empties the level.
    fn node(&mut self, level: usize, sink: &mut impl Sink) -> Result<Node, OutOfMemory> {
        let open = &mut self.open[level];
        let mut leaves = [0; SLOTS];
        let (leafvec, count) = open.leaves(&mut leaves);
        let nodes = sink.nodes(open.children())?;
        let vector = core::mem::take(&mut open.vector);
        Ok(Node { vector, leafvec, leaves: sink.leaves(&leaves[..count])?, nodes })
    }
}

/// Returns the slot of an address among those of a node of a level, and how many these are: the last level reads past the
/// end of the key, so that several slots have the same addresses there and are counted as one.
pub(super) fn place<K: Key>(at: u128, level: usize) -> (usize, usize) {
    let rest = rest_bits(K::BITS, level);
    let bits = rest_bits(K::BITS, level - 1) - rest;
    ((at >> rest) as usize & ((1 << bits) - 1), 1 << bits)
}
