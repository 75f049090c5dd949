//! Ranges to nodes, in one sweep that makes a node when its last slot is known.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::ranges::{self, Merge};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};

use super::NAME;
use super::layout::{LEAF, Leaves, Node, Poptrie, SLOTS, STRIDE, direct_bits, levels};

impl<K: Key> Poptrie<K> {
    /// Builds the trie of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when it needs more than 2^31 nodes or leaves.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let memory = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let narrow = |id: u32| if id <= u32::from(u16::MAX) { Ok(()) } else { Err(()) };
        let leaves = match routes.try_for_each(Prefix::ALL, |route| narrow(route.next_hop.id())) {
            Ok(()) => Leaves::Narrow(Buffer::new()),
            Err(()) => Leaves::Wide(Buffer::new()),
        };
        let direct = budget.buffer(1 << direct_bits(K::BITS)).map_err(memory)?;
        let open = budget.buffer(levels(K::BITS)).map_err(memory)?;
        let fib = Self { direct, nodes: Buffer::new(), leaves, keys: PhantomData };
        let mut filling = Filling { fib, open, done: 0, word: 0, budget };
        filling.open.resize(levels(K::BITS), Open::EMPTY);
        // A range ends where the next one begins, and is filled in then.
        ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            if let Some(last) = range.start.previous() {
                filling.fill(last.to_bits())?;
            }
            filling.word = NextHop::word(range.next_hop);
            Ok(())
        })
        .and_then(|()| filling.fill(u128::MAX >> (128 - u32::from(K::BITS))))
        .map_err(memory)?;
        filling.finish()
    }
}

/// A node under construction, whose slots are filled from the first on.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Next hop of each slot; unused where a slot is a node.
    words: [u32; SLOTS],
    /// The slots that are nodes.
    vector: u64,
    /// Those nodes, without gaps.
    nodes: [Node; SLOTS],
}

impl Open {
    const EMPTY: Self = Self { words: [0; SLOTS], vector: 0, nodes: [EMPTY; SLOTS] };
}

const EMPTY: Node = Node { vector: 0, leafvec: 0, leaves: 0, nodes: 0 };

/// The trie under construction.
struct Filling<K> {
    fib: Poptrie<K>,
    /// The open node of each level, from the level below the direct table on.
    open: Buffer<Open>,
    /// Addresses below this one are filled; all of them where it has wrapped to 0.
    done: u128,
    /// Next hop of the addresses from `done` on, 0 for no route.
    word: u32,
    budget: Budget,
}

impl<K: Key> Filling<K> {
    /// Gives the addresses up to `last` the current next hop.
    fn fill(&mut self, last: u128) -> Result<(), OutOfMemory> {
        let mut at = self.done;
        loop {
            // The coarsest slot that begins here and ends by `last`.
            let (mut level, mut rest) = (0, u32::from(K::BITS) - direct_bits(K::BITS));
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
                let entries = slots as usize;
                self.fib.direct.resize(self.fib.direct.len() + entries, LEAF | self.word);
                at = begin.wrapping_add((entries as u128) << rest);
            } else {
                // The last level reads past the end of the key, so an address has several slots.
                let spare = (STRIDE * level as u32).saturating_sub(u32::from(K::BITS) - direct_bits(K::BITS));
                let in_node = (SLOTS >> spare) as u128;
                let first = (begin >> rest) & (in_node - 1);
                let count = slots.min(in_node - first);
                let filled = (first as usize) << spare..((first + count) as usize) << spare;
                self.open[level - 1].words[filled].fill(self.word);
                at = begin.wrapping_add(count << rest);
                if first + count == in_node {
                    self.close(level - 1, begin)?;
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
    fn close(&mut self, level: usize, at: u128) -> Result<(), OutOfMemory> {
        let mut level = level;
        loop {
            let node = self.node(level)?;
            // Key bits after those of the slot that the node fills.
            let rest = u32::from(K::BITS) - direct_bits(K::BITS) - STRIDE * level as u32;
            let Some(above) = level.checked_sub(1) else {
                let index = self.fib.nodes.len() as u32;
                self.budget.push(&mut self.fib.nodes, node)?;
                self.fib.direct.push(index);
                return Ok(());
            };
            let slot = (at >> rest) as usize & (SLOTS - 1);
            let open = &mut self.open[above];
            open.nodes[open.vector.count_ones() as usize] = node;
            open.vector |= 1 << slot;
            if slot < SLOTS - 1 {
                return Ok(());
            }
            level = above;
        }
    }

    /// Returns the node of an open level, having stored its children and leaves, and empties the level.
    fn node(&mut self, level: usize) -> Result<Node, OutOfMemory> {
        let Self { fib, open, budget, .. } = self;
        let Open { words, vector, nodes } = &mut open[level];
        let vector = core::mem::take(vector);
        let children = &nodes[..vector.count_ones() as usize];
        let node =
            Node { vector, leafvec: 0, leaves: fib.leaves.len() as u32, nodes: fib.nodes.len() as u32 };
        budget.reserve(&mut fib.nodes, children.len())?;
        fib.nodes.extend_from_slice(children);
        let (mut leafvec, mut last) = (0, None);
        for (slot, &word) in words.iter().enumerate().filter(|&(slot, _)| vector >> slot & 1 == 0) {
            if last != Some(word) {
                leafvec |= 1 << slot;
                fib.leaves.push(word, budget)?;
                last = Some(word);
            }
        }
        Ok(Node { leafvec, ..node })
    }

    fn finish(self) -> Result<Poptrie<K>, BuildError> {
        let Self { mut fib, open, mut budget, .. } = self;
        budget.free(open);
        let most = 1 << 31;
        for (what, count) in [("nodes", fib.nodes.len()), ("leaves", fib.leaves.len())] {
            if count as u64 > most {
                return Err(BuildError::limit(NAME, what, most, count as u64));
            }
        }
        budget.shrink(&mut fib.nodes);
        match &mut fib.leaves {
            Leaves::Narrow(leaves) => budget.shrink(leaves),
            Leaves::Wide(leaves) => budget.shrink(leaves),
        }
        Ok(fib)
    }
}

impl Leaves {
    fn push(&mut self, word: u32, budget: &mut Budget) -> Result<(), OutOfMemory> {
        match self {
            Self::Narrow(leaves) => budget.push(leaves, word as u16),
            Self::Wide(leaves) => budget.push(leaves, word),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Narrow(leaves) => leaves.len(),
            Self::Wide(leaves) => leaves.len(),
        }
    }
}
