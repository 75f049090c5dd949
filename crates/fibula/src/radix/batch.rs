//! Changes in batches: room reserved ahead, walks in step, and a log that undoes them.

use crate::memory::OutOfMemory;
use crate::net::{Change, Key, NextHop, Prefix, Route};

use super::{ChangedNode, NODES_PER_INSERT, ROOT, RadixNode, RadixTree};

/// Walks in step: enough that the loads of all of them take longer than one from memory.
pub(super) const LANES: usize = 32;

/// What a prefix had before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before<K> {
    /// The prefix that was changed.
    pub prefix: Prefix<K>,
    /// Its next hop before the change; `None` if it was not present.
    pub next_hop: Option<NextHop>,
    /// The route of all of its addresses after the change, if the walk to it showed that there is only one. That holds after
    /// the whole batch if no other prefix that the batch changes has an address in common with this one.
    pub sole: Option<Sole>,
}

/// The only route of some addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sole {
    /// Its next hop; `None` if there is no route.
    pub next_hop: Option<NextHop>,
    /// The length of its prefix.
    pub len: u8,
}

/// Numbers of changes by what they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Changes after which the routes were others.
    pub changed: usize,
    /// Inserted routes that were present with the same next hop.
    pub unchanged: usize,
    /// Removed prefixes that were not present.
    pub absent: usize,
}

impl Tally {
    fn count<K: Key>(&mut self, change: &Change<K>, before: Option<NextHop>) {
        let number = match change {
            Change::Insert(route) if before == Some(route.next_hop) => &mut self.unchanged,
            Change::Remove(_) if before.is_none() => &mut self.absent,
            _ => &mut self.changed,
        };
        *number += 1;
    }
}

impl<K: Key> RadixTree<K> {
    /// Applies all `changes` in order, or none of them.
    ///
    /// # Errors
    /// When there is no memory for the inserts; the tree is unchanged.
    pub fn apply(&mut self, changes: &[Change<K>]) -> Result<(), OutOfMemory> {
        self.reserve_for(changes)?;
        self.apply_each(changes, |_, _, _| {})
    }

    /// Applies all `changes` in order, or none of them, and replaces what is in `log` by an entry for each change, in order.
    ///
    /// # Errors
    /// When there is no memory for the inserts or the log; the tree is unchanged, and the log is empty.
    pub fn apply_logged(
        &mut self,
        changes: &[Change<K>],
        log: &mut Vec<Before<K>>,
    ) -> Result<Tally, OutOfMemory> {
        log.clear();
        log.try_reserve(changes.len()).map_err(|_| OutOfMemory {
            wanted_bytes: changes.len().saturating_mul(size_of::<Before<K>>()),
            used_bytes: self.budget.used_bytes(),
            limit_bytes: None,
        })?;
        self.reserve_for(changes)?;
        let mut tally = Tally::default();
        self.apply_each(changes, |change, before, sole| {
            tally.count(change, before);
            log.push(Before { prefix: change.prefix(), next_hop: before, sole });
        })?;
        Ok(tally)
    }

    /// Undoes the changes of a log and empties it, if the tree has not changed since. Never allocates.
    pub fn undo(&mut self, log: &mut Vec<Before<K>>) {
        while let Some(before) = log.pop() {
            match before.next_hop {
                // The tree had this route and all the others, with no more nodes than there is room for.
                Some(next_hop) => {
                    let undone = self.insert(Route::new(before.prefix, next_hop));
                    debug_assert!(undone.is_ok(), "the tree was changed or shrunk after the log was written");
                }
                None => {
                    self.remove(before.prefix);
                }
            }
        }
    }

    /// Calls `each` for the routes that contain each prefix, itself included, with the index of the prefix: prefix by prefix,
    /// shortest first. Walks to all prefixes of a block in step, then along each.
    pub fn covers_batch(&self, prefixes: &[Prefix<K>], mut each: impl FnMut(usize, Route<K>)) {
        for (number, block) in prefixes.chunks(LANES).enumerate() {
            // What is on the ways is in the cache afterwards.
            self.walk_in_step(block.iter().copied());
            for (at, &prefix) in block.iter().enumerate() {
                self.covers(prefix).for_each(|route| each(number * LANES + at, route));
            }
        }
    }

    /// Makes room for all inserts.
    fn reserve_for(&mut self, changes: &[Change<K>]) -> Result<(), OutOfMemory> {
        let inserts = changes.iter().filter(|change| matches!(change, Change::Insert(_))).count();
        let spare = self.nodes.capacity() - self.nodes.len() + self.free_len;
        if spare < NODES_PER_INSERT * inserts {
            // Counting new prefixes takes a walk per change, so it is done only if the tree would have to grow. A prefix
            // that is removed and added again needs no count: every tree on the way has only prefixes that are present
            // now or new, and fewer prefixes never need more nodes.
            let mut inserts = 0;
            for block in changes.chunks(LANES) {
                self.walk_in_step(block.iter().map(Change::prefix));
                let adds = |change: &&Change<K>| matches!(change, Change::Insert(route) if self.get(route.prefix).is_none());
                inserts += block.iter().filter(adds).count();
            }
            self.reserve(inserts)?;
        }
        Ok(())
    }

    /// Applies the changes and calls `each` with every one, the next hop that its prefix had, and [`Before::sole`].
    fn apply_each(
        &mut self,
        changes: &[Change<K>],
        mut each: impl FnMut(&Change<K>, Option<NextHop>, Option<Sole>),
    ) -> Result<(), OutOfMemory> {
        if let [change] = changes {
            // There is nothing to overlap with.
            let prefix = change.prefix();
            let slot = self.slot(prefix.addr(), prefix.len());
            let (before, sole) = self.apply_one(change, slot.node, slot.cover)?;
            each(change, before, sole);
            return Ok(());
        }
        for block in changes.chunks(LANES) {
            let WalkedBlock { starts, covers } = self.walk_in_step(block.iter().map(Change::prefix));
            for (change, (start, above)) in block.iter().zip(starts.into_iter().zip(covers)) {
                let start = self.still(start, change.prefix());
                let (before, sole) = self.apply_one(change, start, above)?;
                each(change, before, sole);
            }
        }
        Ok(())
    }

    /// Applies a change, beginning at a node on the way. `above` is the last node with a route above the prefix, as it was when
    /// the walk began.
    fn apply_one(
        &mut self,
        change: &Change<K>,
        start: u32,
        above: u32,
    ) -> Result<(Option<NextHop>, Option<Sole>), OutOfMemory> {
        match *change {
            Change::Insert(route) => {
                let ChangedNode { before, is_leaf, .. } = self.insert_from(start, route)?;
                let sole = Sole { next_hop: Some(route.next_hop), len: route.prefix.len() };
                Ok((before, is_leaf.then_some(sole)))
            }
            Change::Remove(prefix) => {
                let ChangedNode { before, is_leaf, cover } = self.remove_from(start, prefix);
                // Above the start only the walk before has looked.
                let cover = if cover == ROOT { above } else { cover };
                let sole =
                    |node: &RadixNode<K>| Sole { next_hop: NextHop::new(node.next_hop), len: node.len };
                Ok((before, self.nodes.get(cover as usize).filter(|_| is_leaf).map(sole)))
            }
        }
    }

    /// Returns the node if a walk to the prefix may begin there after other changes, or the root. What is in the tree and
    /// contains the prefix is on the way to it; the slots need all of the way.
    fn still(&self, start: u32, prefix: Prefix<K>) -> u32 {
        let on_the_way = |node: &&RadixNode<K>| node.len <= prefix.len() && node.contains(prefix.addr());
        match self.nodes.get(start as usize).filter(on_the_way) {
            Some(_) if !self.index.has(prefix.len()) => start,
            _ => ROOT,
        }
    }

    /// Walks to the first [`LANES`] prefixes, a step of every walk at a time, so that the loads of one do not wait for those of
    /// another.
    pub(super) fn walk_in_step(&self, prefixes: impl Iterator<Item = Prefix<K>>) -> WalkedBlock {
        let (mut starts, mut covers) = ([ROOT; LANES], [ROOT; LANES]);
        let mut walks = [BatchWalk { key: K::ZERO, len: 0, parent: ROOT, at: ROOT }; LANES];
        let (mut going, mut count) = ([0; LANES], 0);
        for (walk, prefix) in walks.iter_mut().zip(prefixes) {
            (walk.key, walk.len) = (prefix.addr(), prefix.len());
            self.index.fetch(walk.key, walk.len);
            going[count] = count;
            count += 1;
        }
        if count <= 1 {
            // There is nothing to overlap with.
            let slot = self.slot(walks[0].key, walks[0].len);
            return WalkedBlock { starts: [slot.node; LANES], covers: [slot.cover; LANES] };
        }
        for (walk, (start, cover)) in walks.iter_mut().zip(starts.iter_mut().zip(&mut covers)).take(count) {
            let slot = self.slot(walk.key, walk.len);
            (*start, *cover) = (slot.node, slot.cover);
            (walk.parent, walk.at) = (*start, *start);
            self.fetch(*start);
            // It is not on the way, and visits of what is inside a prefix begin with it.
            self.fetch(slot.cover);
        }
        while count > 0 {
            let mut left = 0;
            for at in 0..count {
                let lane = going[at];
                let walk = &mut walks[lane];
                let Some(node) = self.nodes.get(walk.at as usize) else { continue };
                if node.len >= walk.len || !node.contains(walk.key) {
                    continue;
                }
                if node.next_hop != 0 {
                    covers[lane] = walk.at;
                }
                let next = node.children[node.side(walk.key)];
                if next == ROOT {
                    continue;
                }
                self.fetch(next);
                (starts[lane], walk.parent, walk.at) = (walk.parent, walk.at, next);
                going[left] = lane;
                left += 1;
            }
            count = left;
        }
        WalkedBlock { starts, covers }
    }

    /// Prefetches a node.
    #[inline]
    fn fetch(&self, at: u32) {
        crate::simd::fetch_at(&self.nodes, at as usize);
    }
}

/// The ends of walks in step, for each prefix of a block.
pub(super) struct WalkedBlock {
    /// Where a walk may begin that ends two nodes further down, as removals need both.
    starts: [u32; LANES],
    /// The last node with a route above the prefix, or the root.
    covers: [u32; LANES],
}

/// A walk under way.
#[derive(Clone, Copy)]
struct BatchWalk<K> {
    key: K,
    len: u8,
    parent: u32,
    at: u32,
}
