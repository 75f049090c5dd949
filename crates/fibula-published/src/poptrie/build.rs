//! Routes to tables: nodes and leaves one after the other, as the sweep makes them.

use core::marker::PhantomData;

use fibula::fib::BuildError;
use fibula::net::{Key, Prefix, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits, OutOfMemory};

use super::NAME;
use super::fill::{Filling, Sink};
use super::layout::{LEAF, LeafWord, NODE_WORDS, Node, Poptrie, direct_bits};

impl<K: Key> Poptrie<K> {
    /// Builds the trie of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when it needs more than 2^31 nodes or leaves.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        if is_narrow(routes) {
            Ok(Arrays::<u16>::build(routes, &mut budget)?.into_trie())
        } else {
            Ok(Arrays::<u32>::build(routes, &mut budget)?.into_trie())
        }
    }
}

/// Returns whether all next hops have 16 bits.
pub(super) fn is_narrow<K: Key>(routes: &dyn Routes<K>) -> bool {
    let narrow = |id: u32| if id <= u16::MOST { Ok(()) } else { Err(()) };
    routes.try_for_each(Prefix::ALL, |route| narrow(route.next_hop.id())).is_ok()
}

/// The arrays under construction.
pub(super) struct Arrays<'a, L> {
    pub(super) direct: Buffer<u32>,
    pub(super) nodes: Buffer<u64>,
    pub(super) leaves: Buffer<L>,
    budget: &'a mut Budget,
}

impl<'a, L: LeafWord> Arrays<'a, L> {
    /// Builds the arrays of the routes.
    ///
    /// # Errors
    /// As for [`Poptrie::build`].
    pub(super) fn build<K: Key>(routes: &dyn Routes<K>, budget: &'a mut Budget) -> Result<Self, BuildError> {
        let memory = |error| BuildError::memory(NAME, error);
        let direct = budget.buffer(1 << direct_bits(K::BITS)).map_err(memory)?;
        let mut filling = Filling::<K>::new(budget).map_err(memory)?;
        let mut arrays = Self { direct, nodes: Buffer::new(), leaves: Buffer::new(), budget };
        filling.sweep(routes, Prefix::ALL, 0, &mut arrays).map_err(memory)?;
        let Self { nodes, leaves, budget, .. } = &mut arrays;
        budget.free(filling.open);
        let most = 1 << 31;
        for (what, count) in [("nodes", nodes.len() / NODE_WORDS), ("leaves", leaves.len())] {
            if count as u64 > most {
                return Err(BuildError::limit(NAME, what, most, count as u64));
            }
        }
        budget.shrink(nodes);
        budget.shrink(leaves);
        Ok(arrays)
    }

    fn into_trie<K>(self) -> Poptrie<K> {
        let Self { direct, nodes, leaves, .. } = self;
        let leaves = L::leaves(leaves.into());
        Poptrie { direct: direct.into(), nodes: nodes.into(), leaves, ends: None, keys: PhantomData }
    }
}

impl<L: LeafWord> Sink for Arrays<'_, L> {
    fn nodes(&mut self, nodes: &[Node]) -> Result<u32, OutOfMemory> {
        let first = self.nodes.len() / NODE_WORDS;
        self.budget.reserve(&mut self.nodes, NODE_WORDS * nodes.len())?;
        for node in nodes {
            self.nodes.extend_from_slice(&node.words());
        }
        Ok(first as u32)
    }

    fn leaves(&mut self, words: &[u32]) -> Result<u32, OutOfMemory> {
        let first = self.leaves.len();
        self.budget.reserve(&mut self.leaves, words.len())?;
        self.leaves.extend(words.iter().map(|&word| L::of(word)));
        Ok(first as u32)
    }

    fn entries(&mut self, _first: usize, count: usize, word: u32) -> Result<(), OutOfMemory> {
        self.direct.resize(self.direct.len() + count, LEAF | word);
        Ok(())
    }

    fn root(&mut self, _entry: usize, node: Node) -> Result<(), OutOfMemory> {
        let index = self.nodes(&[node])?;
        self.direct.push(index);
        Ok(())
    }
}
