//! A changed entry: the nodes on the way to its changed prefixes, up to words that can be stored alone.
//!
//! A node is three words, of which the last one says where its leaves and children are. Whoever reads a node may see the
//! last word before or after it is stored, so the bit maps, which say how many these are, must be right for both: a node
//! whose bit maps stay is changed by its last word. A node whose bit maps change is written anew with all of its siblings,
//! and published by the last word of the node above, or by the direct entry.

use fibula::net::{Key, Prefix, Routes};
use fibula::unstable::memory::OutOfMemory;
use fibula::unstable::parts::by_entry::{Meets, by_entry};

use super::fill::{Filling, Sink, place};
use super::layout::{LEAF, LeafWord, Node, SLOTS, direct_bits, rest_bits};
use super::prepared::{Bases, Prepared};

/// What a node becomes.
enum Becomes {
    /// It leads to what it did, below which everything is prepared.
    Same,
    /// It has the same bit maps.
    Bases(Node),
    /// It has others.
    Node(Node),
    /// All of its addresses have one next hop.
    Leaf(u32),
}

/// Slots of a node whose child changes, as bits.
struct Changed {
    /// The child is another node.
    fresh: u64,
    /// The child keeps its bit maps, and is changed by its last word.
    based: u64,
}

impl<K: Key> Filling<K> {
    /// Prepares a direct entry for prefixes that lie within it.
    pub(super) fn change_entry<L: LeafWord>(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        prepared: &mut Prepared<L>,
    ) -> Result<(), OutOfMemory> {
        use fibula::unstable::memory::Cell;
        let Some(first) = prefixes.first() else { return Ok(()) };
        let all = Prefix::of(first.addr(), direct_bits(K::BITS) as u8);
        let at = super::layout::direct(all.addr());
        let entry = prepared.direct[at].read();
        if entry & LEAF != 0 {
            return self.sweep(after, all, 0, prepared);
        }
        let begin = all.addr().to_bits();
        let word = match self.change(0, entry, begin, prefixes, after, prepared)? {
            Becomes::Same => return Ok(()),
            Becomes::Bases(node) => {
                return prepared.store_bases(Bases { node: entry, word: node.bases(), level: 0, begin });
            }
            Becomes::Node(node) => prepared.nodes(&[node])?,
            Becomes::Leaf(word) => LEAF | word,
        };
        prepared.give_up_root(entry)?;
        prepared.store_entry(at, word)
    }

    /// Prepares a node of a level, which has the addresses from `begin` on, for prefixes that lie within it.
    fn change<L: LeafWord>(
        &mut self,
        level: usize,
        index: u32,
        begin: u128,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        prepared: &mut Prepared<L>,
    ) -> Result<Becomes, OutOfMemory> {
        let old = prepared.node(index);
        let rest = rest_bits(K::BITS, level + 1);
        let slot_of = |address: K| place::<K>(address.to_bits(), level + 1).0;
        let all = place::<K>(begin, level + 1).1;
        let slot_len = K::BITS - rest as u8;
        let mut alone = match self.change_alone(level, &old, begin, prefixes, after, prepared)? {
            Some(Becomes::Same) => return Ok(Becomes::Same),
            alone => alone,
        };
        self.open[level].vector = 0;
        let (mut fresh, mut based) = (0, 0);
        let mut next = 0;
        for meets in by_entry(prefixes, slot_len) {
            let (first, last) = match meets {
                Meets::Whole(prefix) => (slot_of(prefix.addr()), slot_of(prefix.last())),
                Meets::Within(inside) => (slot_of(inside[0].addr()), slot_of(inside[0].addr())),
            };
            self.keep(level, &old, next..first, prepared);
            next = last + 1;
            match meets {
                Meets::Whole(prefix) => {
                    for slot in (first..=last).filter(|&slot| old.is_node(slot as u32)) {
                        let node = prepared.node(old.node(slot as u32));
                        prepared.give_up_below(&node)?;
                        fresh |= 1 << slot;
                    }
                    self.sweep(after, prefix, level + 1, prepared)?;
                }
                Meets::Within(inside) if old.is_node(first as u32) => {
                    let (slot, child) = (first as u32, old.node(first as u32));
                    let begin = begin | (slot as u128) << rest;
                    let becomes = match alone.take() {
                        Some(becomes) => becomes,
                        None => self.change(level + 1, child, begin, inside, after, prepared)?,
                    };
                    let open = &mut self.open[level];
                    match becomes {
                        Becomes::Same => open.push(slot, prepared.node(child)),
                        Becomes::Bases(node) => {
                            based |= 1 << slot;
                            open.push(slot, node);
                        }
                        Becomes::Node(node) => {
                            fresh |= 1 << slot;
                            open.push(slot, node);
                        }
                        Becomes::Leaf(word) => open.words[first] = word,
                    }
                }
                Meets::Within(inside) => {
                    let slot = Prefix::of(inside[0].addr(), slot_len);
                    self.sweep(after, slot, level + 1, prepared)?;
                }
            }
        }
        self.keep(level, &old, next..all, prepared);
        self.finish(level, &old, begin, Changed { fresh, based }, prepared)
    }

    /// Changes a node whose prefixes all lie in one slot that leads to another node, which is nearly always so. The result is
    /// `Same` if the words of this node stay, `None` if the prefixes do not lie so, and otherwise that of the other node.
    fn change_alone<L: LeafWord>(
        &mut self,
        level: usize,
        old: &Node,
        begin: u128,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        prepared: &mut Prepared<L>,
    ) -> Result<Option<Becomes>, OutOfMemory> {
        let rest = rest_bits(K::BITS, level + 1);
        let Some(Meets::Within(inside)) = by_entry(prefixes, K::BITS - rest as u8).next() else {
            return Ok(None);
        };
        let slot = place::<K>(inside[0].addr().to_bits(), level + 1).0 as u32;
        if inside.len() != prefixes.len() || !old.is_node(slot) {
            return Ok(None);
        }
        let (child, begin) = (old.node(slot), begin | u128::from(slot) << rest);
        let becomes = self.change(level + 1, child, begin, inside, after, prepared)?;
        if let Becomes::Bases(node) = becomes {
            // The last word of the other node is enough: this one leads to it as before.
            prepared.store_bases(Bases { node: child, word: node.bases(), level: level + 1, begin })?;
            return Ok(Some(Becomes::Same));
        }
        Ok(Some(becomes))
    }

    /// Writes the leaves and children of a node whose slots are filled, as far as they differ, and decides what it becomes.
    fn finish<L: LeafWord>(
        &self,
        level: usize,
        old: &Node,
        begin: u128,
        changed: Changed,
        prepared: &mut Prepared<L>,
    ) -> Result<Becomes, OutOfMemory> {
        let Changed { fresh, based } = changed;
        let rest = rest_bits(K::BITS, level + 1);
        let open = &self.open[level];
        let mut words = [0; SLOTS];
        let (leafvec, count) = open.leaves(&mut words);
        if open.vector == 0 && count == 1 && (level > 0 || words[0] & LEAF == 0) {
            prepared.give_up(old)?;
            return Ok(Becomes::Leaf(words[0]));
        }
        let mut node = Node { vector: open.vector, leafvec, ..*old };
        let same = leafvec == old.leafvec && {
            let leaves = prepared.leaves.at(old.leaves).iter().zip(&words[..count]);
            leaves.into_iter().all(|(leaf, &word)| super::layout::Leaf::next_hop(leaf) == word)
        };
        if !same {
            node.leaves = prepared.leaves(&words[..count])?;
            prepared.leaves.give_up(old.leaves, old.leaf_count(), &mut prepared.budget)?;
        }
        if node.vector != old.vector || fresh != 0 {
            node.nodes = prepared.nodes(open.children())?;
            prepared.nodes.give_up(old.nodes, old.children(), &mut prepared.budget)?;
        } else {
            for slot in (0..SLOTS as u32).filter(|slot| based >> slot & 1 == 1) {
                let child = Node { leafvec: 0, leaves: 0, nodes: 0, ..*old }.node(slot) as usize;
                let word = open.nodes[child].bases();
                let begin = begin | (slot as u128) << rest;
                prepared.store_bases(Bases { node: old.node(slot), word, level: level + 1, begin })?;
            }
        }
        Ok(if (node.vector, node.leafvec) != (old.vector, old.leafvec) {
            Becomes::Node(node)
        } else if node != *old {
            Becomes::Bases(node)
        } else {
            Becomes::Same
        })
    }

    /// Fills slots of the open node of a level with what they had, so many as addresses tell apart.
    fn keep<L: LeafWord>(
        &mut self,
        level: usize,
        old: &Node,
        slots: core::ops::Range<usize>,
        prepared: &Prepared<L>,
    ) {
        let spare = SLOTS / place::<K>(0, level + 1).1;
        let open = &mut self.open[level];
        let mut word = None;
        for slot in slots.start * spare..slots.end * spare {
            if old.is_node(slot as u32) {
                open.push(slot as u32, prepared.node(old.node(slot as u32)));
                continue;
            }
            // A leaf is read where it begins.
            if word.is_none() || old.leafvec >> slot & 1 == 1 {
                word = Some(prepared.leaf(old, slot as u32));
            }
            open.words[slot] = word.unwrap_or_default();
        }
    }
}
