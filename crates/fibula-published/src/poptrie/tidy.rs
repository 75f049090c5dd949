//! Moves of units towards the beginning of their arrays, node by node in the order of addresses, parents first.

use fibula::net::Key;
use fibula::unstable::memory::{Cell, OutOfMemory};

use super::fill::place;
use super::layout::{LEAF, LeafWord, Node, rest_bits};
use super::prepared::{Bases, Prepared};

/// Direct entries without a node that count as one step.
const SCANNED: usize = 64;

/// Most levels of nodes.
const LEVELS: usize = 19;

/// The node that is looked at next, by an address that it has and its level. There may be no such node any more.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    at: u128,
    level: usize,
}

/// A node on the way to the one that is looked at. It may be in a unit that was moved in this pass.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    /// Where it will be.
    index: u32,
    node: Node,
}

/// The way to a node.
struct Path {
    steps: [Step; LEVELS],
    len: usize,
}

impl<L: LeafWord> Prepared<L> {
    /// Prepares moves, looking at so many nodes. Returns where to go on.
    pub(super) fn tidy<K: Key>(&mut self, cursor: Cursor, count: usize) -> Result<Cursor, OutOfMemory> {
        let mut cursor = cursor;
        let mut path = Path { steps: [Step::default(); LEVELS], len: 0 };
        for _ in 0..count {
            if path.len == 0 && !self.enter::<K>(&mut cursor, &mut path)? {
                if cursor.at == 0 {
                    break;
                }
                continue;
            }
            self.move_node::<K>(&cursor, &mut path)?;
            if !self.advance::<K>(&mut cursor, &mut path) {
                // A node is looked at once in a pass, so that no store replaces another.
                break;
            }
        }
        Ok(cursor)
    }

    /// Finds the first node from the cursor on. Returns whether it did before it had looked at many entries.
    fn enter<K: Key>(&mut self, cursor: &mut Cursor, path: &mut Path) -> Result<bool, OutOfMemory> {
        let rest = rest_bits(K::BITS, 0);
        let first = (cursor.at >> rest) as usize;
        let end = (first + SCANNED).min(self.direct.len());
        let Some(at) = (first..end).find(|&at| self.direct[at].read() & LEAF == 0) else {
            *cursor =
                Cursor { at: if end == self.direct.len() { 0 } else { (end as u128) << rest }, level: 0 };
            return Ok(false);
        };
        if at != first {
            *cursor = Cursor { at: (at as u128) << rest, level: 0 };
        }
        let entry = self.direct[at].read();
        path.steps[0] = Step { index: entry, node: self.node(entry) };
        path.len = 1;
        if entry >= self.nodes.used()
            && let Some(to) = self.nodes.take_back(1, &mut self.budget)?
        {
            self.nodes.write(to, path.steps[0].node.words());
            self.give_up_root(entry)?;
            self.store_entry(at, to)?;
            path.steps[0].index = to;
        }
        while path.len <= cursor.level {
            let slot = place::<K>(cursor.at, path.len).0 as u32;
            if !path.steps[path.len - 1].node.is_node(slot) {
                break;
            }
            self.step_down(path, slot);
        }
        cursor.level = path.len - 1;
        Ok(true)
    }

    /// Adds the child in a slot of the last node to the way.
    fn step_down(&self, path: &mut Path, slot: u32) {
        let index = path.steps[path.len - 1].node.node(slot);
        path.steps[path.len] = Step { index, node: self.node(index) };
        path.len += 1;
    }

    /// Prepares moves of the children and the leaves of the last node of the way.
    fn move_node<K: Key>(&mut self, cursor: &Cursor, path: &mut Path) -> Result<(), OutOfMemory> {
        let level = path.len - 1;
        let step = &mut path.steps[level];
        let old = step.node;
        if old.vector != 0
            && old.nodes >= self.nodes.used()
            && let Some(to) = self.nodes.take_back(old.children(), &mut self.budget)?
        {
            let words = self.nodes.unit_words(old.nodes, old.children());
            self.nodes.write(to, words.iter().map(Cell::read));
            self.nodes.give_up(old.nodes, old.children(), &mut self.budget)?;
            step.node.nodes = to;
        }
        if old.leafvec != 0
            && old.leaves >= self.leaves.used()
            && let Some(to) = self.leaves.take_back(old.leaf_count(), &mut self.budget)?
        {
            let words = self.leaves.unit_words(old.leaves, old.leaf_count());
            self.leaves.write(to, words.iter().map(Cell::read));
            self.leaves.give_up(old.leaves, old.leaf_count(), &mut self.budget)?;
            step.node.leaves = to;
        }
        let Step { index, node } = *step;
        if node == old {
            return Ok(());
        }
        let rest = rest_bits(K::BITS, level);
        let begin = cursor.at >> rest << rest;
        self.store_bases(Bases { node: index, word: node.bases(), level, begin })
    }

    /// Moves the cursor to the node after the last one of the way. Returns false after the last one of all.
    fn advance<K: Key>(&self, cursor: &mut Cursor, path: &mut Path) -> bool {
        let mut next = path.steps[path.len - 1].node.vector;
        loop {
            if next != 0 {
                let (slot, rest) = (next.trailing_zeros(), rest_bits(K::BITS, path.len));
                let above = rest_bits(K::BITS, path.len - 1);
                *cursor =
                    Cursor { at: cursor.at >> above << above | u128::from(slot) << rest, level: path.len };
                self.step_down(path, slot);
                return true;
            }
            path.len -= 1;
            let slot = place::<K>(cursor.at, path.len.max(1)).0 as u32;
            if path.len == 0 {
                let entry = (cursor.at >> rest_bits(K::BITS, 0)) as usize + 1;
                let is_last = entry == self.direct.len();
                *cursor = Cursor {
                    at: if is_last { 0 } else { (entry as u128) << rest_bits(K::BITS, 0) },
                    level: 0,
                };
                return !is_last;
            }
            next = path.steps[path.len - 1].node.vector & u64::MAX.checked_shl(slot + 1).unwrap_or(0);
        }
    }
}
