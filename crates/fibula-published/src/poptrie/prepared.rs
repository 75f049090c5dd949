//! What a change has prepared: new nodes and leaves beside those that lookups reach, and the words that will lead to them.

use core::sync::atomic::Ordering;

use fibula::unstable::in_place::{Publication, StoredWords};
use fibula::unstable::memory::{Budget, Cell, OutOfMemory, Shared};
use fibula::unstable::parts::arena::Arena;

use super::fill::Sink;
use super::layout::{LEAF, LeafWord, NODE_WORDS, Node};

/// Numbers of the arrays.
pub(super) const DIRECT: u8 = 0;
pub(super) const NODES: u8 = 1;
pub(super) const LEAVES: u8 = 2;

/// A direct entry to store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) at: u32,
    pub(super) word: u32,
}

/// The last word of a node to store: the places of its leaves and children, whose numbers stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bases {
    pub(super) node: u32,
    pub(super) word: u64,
    /// Level of the node, and its first address.
    pub(super) level: usize,
    pub(super) begin: u128,
}

/// The arrays, and what is prepared.
pub(super) struct Prepared<L: LeafWord> {
    pub(super) direct: Shared<u32>,
    pub(super) nodes: Arena<u64>,
    pub(super) leaves: Arena<L>,
    pub(super) budget: Budget,
    /// In ascending order.
    pub(super) entries: Vec<Entry>,
    /// Of nodes that lookups reach and go on to reach: those above may be written anew, with the same places.
    pub(super) bases: Vec<Bases>,
    /// Why the form has to be built anew, if it has to be.
    pub(super) refused: Option<&'static str>,
}

impl<L: LeafWord> Prepared<L> {
    /// Returns a node.
    pub(super) fn node(&self, index: u32) -> Node {
        let words = self.nodes.at(index).first_chunk::<NODE_WORDS>();
        words.map(|words| Node::new(words.each_ref().map(Cell::read))).unwrap_or_default()
    }

    /// Returns the next hop of a slot that is a leaf.
    pub(super) fn leaf(&self, node: &Node, slot: u32) -> u32 {
        use super::layout::Leaf;
        self.leaves.at(node.leaf(slot))[0].next_hop()
    }

    /// Gives up the leaves and the children of a node, but not what is below these.
    pub(super) fn give_up(&mut self, node: &Node) -> Result<(), OutOfMemory> {
        self.nodes.give_up(node.nodes, node.children(), &mut self.budget)?;
        self.leaves.give_up(node.leaves, node.leaf_count(), &mut self.budget)
    }

    /// Gives up all that a node leads to.
    pub(super) fn give_up_below(&mut self, node: &Node) -> Result<(), OutOfMemory> {
        for child in 0..node.children() {
            self.give_up_below(&self.node(node.nodes + child))?;
        }
        self.give_up(node)
    }

    /// Gives up what a direct entry leads to.
    fn give_up_entry(&mut self, entry: u32) -> Result<(), OutOfMemory> {
        if entry & LEAF == 0 {
            self.give_up_below(&self.node(entry))?;
            self.give_up_root(entry)?;
        }
        Ok(())
    }

    /// Gives up the node of a direct entry alone.
    pub(super) fn give_up_root(&mut self, entry: u32) -> Result<(), OutOfMemory> {
        self.nodes.give_up(entry, 1, &mut self.budget)
    }

    /// Prepares the store of a direct entry.
    pub(super) fn store_entry(&mut self, at: usize, word: u32) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.entries, Entry { at: at as u32, word })
    }

    /// Prepares the store of the last word of a node.
    pub(super) fn store_bases(&mut self, bases: Bases) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.bases, bases)
    }

    /// Forgets what is prepared.
    pub(super) fn abandon(&mut self) {
        self.nodes.back_to(Default::default());
        self.leaves.back_to(Default::default());
        self.entries.clear();
        self.bases.clear();
        self.refused = None;
    }

    /// Publishes entries and words of nodes, each with all that it leads to, and tells of each if wanted.
    pub(super) fn publish(&mut self, publication: &mut dyn Publication, listens: bool) {
        for entry in &self.entries {
            let at = entry.at as usize;
            self.direct[at].store(entry.word, Ordering::Release);
            if listens {
                publication.stored(StoredWords::part(DIRECT, &self.direct[..], at..at + 1));
            }
        }
        for Bases { node, word, .. } in self.bases.drain(..) {
            let at = node as usize * NODE_WORDS + 2;
            self.nodes.words[at].store(word, Ordering::Release);
            if listens {
                publication.stored(self.nodes.stored(at..at + 1));
            }
        }
    }

    /// Tells of new units.
    pub(super) fn emit_units(&self, publication: &mut dyn Publication) {
        self.leaves.emit(publication);
        self.nodes.emit(publication);
    }

    /// Tells of the direct entries.
    pub(super) fn emit_direct(&self, publication: &mut dyn Publication) {
        publication.stored(StoredWords::whole(DIRECT, &self.direct[..], self.direct.len()));
    }

    /// Retires what was replaced.
    pub(super) fn retire(&mut self, publication: &mut dyn Publication) {
        self.entries.clear();
        self.nodes.retire(publication);
        self.leaves.retire(publication);
    }
}

impl<L: LeafWord> Sink for Prepared<L> {
    fn nodes(&mut self, nodes: &[Node]) -> Result<u32, OutOfMemory> {
        if nodes.is_empty() || self.refused.is_some() {
            return Ok(0);
        }
        let Some(place) = self.nodes.take(nodes.len() as u32, &mut self.budget)? else {
            self.refused = Some("more nodes than there are places for");
            return Ok(0);
        };
        self.nodes.write(place, nodes.iter().flat_map(|node| node.words()));
        Ok(place)
    }

    fn leaves(&mut self, words: &[u32]) -> Result<u32, OutOfMemory> {
        if words.iter().any(|&word| word > L::MOST) {
            self.refused = Some("a next hop of more than 16 bits");
        }
        if words.is_empty() || self.refused.is_some() {
            return Ok(0);
        }
        let Some(place) = self.leaves.take(words.len() as u32, &mut self.budget)? else {
            self.refused = Some("more leaves than there are places for");
            return Ok(0);
        };
        self.leaves.write(place, words.iter().map(|&word| L::of(word)));
        Ok(place)
    }

    fn entries(&mut self, first: usize, count: usize, word: u32) -> Result<(), OutOfMemory> {
        for at in first..first + count {
            let old = self.direct[at].read();
            if old != LEAF | word {
                self.give_up_entry(old)?;
                self.store_entry(at, LEAF | word)?;
            }
        }
        Ok(())
    }

    fn root(&mut self, entry: usize, node: Node) -> Result<(), OutOfMemory> {
        let index = self.nodes(&[node])?;
        self.give_up_entry(self.direct[entry].read())?;
        self.store_entry(entry, index)
    }
}
