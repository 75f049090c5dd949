//! Changes that are seen all or not at all: nodes whose last word would be stored are copied, with all above them, so that
//! direct entries alone publish.

use fibula::net::Key;
use fibula::unstable::memory::{Cell, OutOfMemory};

use super::fill::{Sink, place};
use super::layout::{LeafWord, Node, SLOTS, rest_bits};
use super::prepared::{Bases, Prepared};

impl<L: LeafWord> Prepared<L> {
    /// Returns the most units that raising retires: those on the way to each node whose last word is to be stored.
    pub(super) fn raises(&self) -> usize {
        self.bases.iter().map(|bases| bases.level + 1).sum()
    }

    /// Replaces the stores of nodes' last words by stores of direct entries.
    ///
    /// # Errors
    /// When memory runs out; what is prepared still is.
    pub(super) fn raise<K: Key>(&mut self) -> Result<(), OutOfMemory> {
        let (nodes, entries) = (self.nodes.mark(), self.entries.len());
        let mut bases = core::mem::take(&mut self.bases);
        // What is above comes before what is below.
        bases.sort_unstable_by_key(|bases| (bases.begin, bases.level));
        let rest = rest_bits(K::BITS, 0);
        let mut raised = Ok(());
        for group in bases.chunk_by(|one, other| one.begin >> rest == other.begin >> rest) {
            raised = raised.and_then(|()| self.raise_entry::<K>(group, entries));
        }
        if raised.is_ok() {
            bases.clear();
        } else {
            self.nodes.back_to(nodes);
            self.entries.truncate(entries);
        }
        self.bases = bases;
        raised
    }

    /// Raises the stores below one entry; it may be among the first ones that are prepared, and is stored again then.
    fn raise_entry<K: Key>(&mut self, bases: &[Bases], prepared: usize) -> Result<(), OutOfMemory> {
        let at = (bases[0].begin >> rest_bits(K::BITS, 0)) as usize;
        let stored = self.entries[..prepared].binary_search_by_key(&at, |entry| entry.at as usize);
        let entry = stored.map_or_else(|_| self.direct[at].read(), |number| self.entries[number].word);
        let node = self.raised::<K>(0, self.node(entry), bases)?;
        let root = self.nodes(&[node])?;
        self.give_up_root(entry)?;
        self.store_entry(at, root)
    }

    /// Returns what a node of a level becomes with the stores to it and to what is below.
    fn raised<K: Key>(&mut self, level: usize, old: Node, bases: &[Bases]) -> Result<Node, OutOfMemory> {
        let (mut node, mut below) = (old, bases);
        if let [first, rest @ ..] = bases
            && first.level == level
        {
            (node, below) = (Node::new([old.vector, old.leafvec, first.word]), rest);
        }
        if below.is_empty() {
            return Ok(node);
        }
        let mut children = [Node::default(); SLOTS];
        let count = node.children() as usize;
        for (child, to) in children[..count].iter_mut().enumerate() {
            *to = self.node(node.nodes + child as u32);
        }
        let slot_of = |bases: &Bases| place::<K>(bases.begin, level + 1).0 as u32;
        for group in below.chunk_by(|one, other| slot_of(one) == slot_of(other)) {
            let child = (node.node(slot_of(&group[0])) - node.nodes) as usize;
            children[child] = self.raised::<K>(level + 1, children[child], group)?;
        }
        let nodes = self.nodes(&children[..count])?;
        self.nodes.give_up(node.nodes, node.children(), &mut self.budget)?;
        Ok(Node { nodes, ..node })
    }
}
