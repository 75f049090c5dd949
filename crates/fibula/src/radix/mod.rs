//! A path-compressed radix tree of prefixes, for every family.
//!
//! This is the tree of BSD's routing table, which the DXR paper keeps as its primary database (sections 3 and 4.3),
//! except that each node stores its whole bit string, so that a search never has to back up.
//!
//! ```text
//!                 [ /0 ]                      node: key, len, next hop or none, two children by the bit
//!                /      \                           after the prefix
//!      [10/8 -> A]      [192.0.2/23]          a node without a next hop has two children
//!           |            /        \           node 0 is the root, prefix /0, always present
//!      [10.1/16 -> B] [.2/24->C] [.3/24->D]
//! ```
//!
//! Nodes are in one buffer, which uses huge pages if it is large, and refer to each other by index. A node takes 20
//! bytes for IPv4 and 32 for IPv6. A table of `n` routes has at most `2n` nodes. Freed nodes are chained through
//! `children[0]` and reused.
//!
//! Walks to long prefixes begin at a slot of an index, which has the node to begin at. A batch of changes first walks to
//! all its prefixes a step at a time, which loads their nodes; then each change begins two nodes before the end of its
//! walk, unless another change has moved that one.
//!
//! # Cost
//!
//! Nanoseconds of CPU time on full tables, in random order, on an AMD EPYC (Zen 4) with 1 MB of L2 and 32 MB of L3. The
//! command is `fibula-lab measure rib FILE`; batches are of 64 changes.
//!
//! | | dfz4-2023 | without | dfz6-2024 | without |
//! |---|---|---|---|---|
//! | exact match | 610 | 960 | 810 | 930 |
//! | longest match | 430 | 960 | 710 | 910 |
//! | insert and remove, each | 400 | 560 | 560 | 610 |
//! | a change of a batch | 115 | 740 | 155 | 740 |
//! | the same, then [`Routes::visit_from_parent`] | 270 | 1140 | 380 | 1290 |
//! | memory, MB | 37.7 | 35.7 | 16.5 | 14.7 |
//!
//! "Without" is without slots and walks in step, and with `parent` and `visit` in the place of `visit_from_parent`. With
//! walks in step alone, a change of a batch takes 170 and 220 ns; with slots alone, 460 and 500; with both, but each change
//! beginning at its slot again, 150 and 280. Walks of 16 in step take a tenth to a quarter more, walks of 64 as long as
//! those of 32. Prefetching the second cache line of nodes that have two gains nothing, so nodes are not aligned.
//!
//! Invariants, which [`RadixTree::check`] checks: (1) a child's prefix extends its parent's and continues with
//! the bit of its side; (2) every node but the root has a next hop or two children; (3) bits after a node's length
//! are zero; (4) every node is reachable once or is on the free chain; (5) the count of routes is right; (6) every slot has
//! the longest node, and the longest route, that contain it.

mod batch;
mod check;
mod index;
#[cfg(test)]
mod index_tests;
mod iter;
mod preorder;
#[cfg(test)]
mod tests;

use core::ops::ControlFlow;

use crate::memory::{self, Budget, Buffer, Limits, Memory, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Route, Routes};

pub use batch::{Before, Sole, Tally};
use index::{Index, IndexSlot};
pub use iter::{CoveringRoutes, Subtree};

/// The root's index. The root is never a child, so as a child this means "none".
const ROOT: u32 = 0;

/// A new prefix takes its own node and, where two paths diverge, a branching one.
const NODES_PER_INSERT: usize = 2;

/// Length of nodes on the free chain, so that nothing is found in them.
const FREE: u8 = u8::MAX;

#[derive(Debug, Clone, Copy)]
struct RadixNode<K> {
    key: K,
    children: [u32; 2],
    /// 0 for none.
    next_hop: u32,
    len: u8,
}

const _: () = assert!(size_of::<RadixNode<u32>>() == 20);
const _: () = assert!(size_of::<RadixNode<u128>>() == 32);

impl<K: Key> RadixNode<K> {
    fn prefix(&self) -> Prefix<K> {
        Prefix::of(self.key, self.len)
    }

    fn route(&self) -> Option<Route<K>> {
        NextHop::new(self.next_hop).map(|next_hop| Route::new(self.prefix(), next_hop))
    }

    /// Returns whether the node's prefix contains `key`.
    #[inline]
    fn contains(&self, key: K) -> bool {
        key.xor(self.key).and(K::mask(self.len)) == K::ZERO
    }

    /// Returns the side on which `key` continues below this node, which must not be a host prefix.
    #[inline]
    fn side(&self, key: K) -> usize {
        usize::from(key.bit(self.len))
    }
}

/// A path-compressed radix tree; the module describes its layout.
#[derive(Debug)]
pub struct RadixTree<K> {
    /// Empty until the first insert, so that an empty tree takes no memory.
    nodes: Buffer<RadixNode<K>>,
    /// First free node, `ROOT` for none.
    free: u32,
    free_len: usize,
    routes: usize,
    index: Index<K>,
    budget: Budget,
}

impl<K: Key> Clone for RadixTree<K> {
    fn clone(&self) -> Self {
        let (nodes, index) = (self.nodes.clone(), self.index.clone());
        let mut budget = self.budget.of_copy(&nodes);
        budget.add(index.memory().held_bytes());
        Self { nodes, free: self.free, free_len: self.free_len, routes: self.routes, index, budget }
    }
}

impl<K: Key> Default for RadixTree<K> {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl<K: Key> RadixTree<K> {
    /// Returns an empty tree that stays within `limits`.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            nodes: Buffer::new(),
            free: ROOT,
            free_len: 0,
            routes: 0,
            index: Index::new(),
            budget: Budget::new(limits),
        }
    }

    /// Returns the number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes
    }

    /// Returns whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes == 0
    }

    /// Returns the memory that the tree occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let live = self.nodes.len() - self.free_len;
        Memory { lookup_bytes: live * size_of::<RadixNode<K>>(), ..memory::of(&self.nodes) }
            + self.index.memory()
    }

    /// Returns the limits.
    pub fn limits(&self) -> Limits {
        self.budget.limits()
    }

    /// Changes the limits, which apply to later inserts only.
    pub fn set_limits(&mut self, limits: Limits) {
        self.budget.set_limits(limits);
    }

    /// Replaces the next hop of every route, in no particular order. Never allocates.
    pub fn map_next_hops(&mut self, mut replace: impl FnMut(Route<K>) -> NextHop) {
        for node in self.nodes.iter_mut() {
            if let Some(next_hop) = NextHop::new(node.next_hop) {
                node.next_hop = replace(Route::new(node.prefix(), next_hop)).id();
            }
        }
    }

    /// Reserves memory for `inserts` new prefixes, so that this many inserts cannot fail.
    ///
    /// # Errors
    /// When the memory limit is reached or the allocator fails; the tree is unchanged.
    pub fn reserve(&mut self, inserts: usize) -> Result<(), OutOfMemory> {
        if inserts > 0 {
            self.reserve_nodes(inserts.saturating_mul(NODES_PER_INSERT))?;
        }
        Ok(())
    }

    /// Reserves memory for new nodes, and adds the root. Returns whether the tree grew. A prefix that had no
    /// slots may have them after that, so that a walk to it begins at the root.
    #[inline]
    fn reserve_nodes(&mut self, wanted: usize) -> Result<bool, OutOfMemory> {
        let root = usize::from(self.nodes.is_empty());
        let wanted = wanted.saturating_add(root).saturating_sub(self.free_len);
        let grows = self.nodes.capacity() - self.nodes.len() < wanted;
        if grows {
            self.grow(wanted)?;
        }
        if root == 1 {
            self.nodes.push(RadixNode { key: K::ZERO, children: [ROOT; 2], next_hop: 0, len: 0 });
        }
        Ok(grows)
    }

    /// Makes room for so many more nodes, and the index as long as that needs. Gives up the index if there is no room otherwise.
    #[cold]
    fn grow(&mut self, wanted: usize) -> Result<(), OutOfMemory> {
        if self.nodes.len().saturating_add(wanted) > u32::MAX as usize {
            return Err(OutOfMemory {
                wanted_bytes: wanted.saturating_mul(size_of::<RadixNode<K>>()),
                used_bytes: self.budget.used_bytes(),
                limit_bytes: Some(u32::MAX as usize * size_of::<RadixNode<K>>()),
            });
        }
        if self.budget.reserve_an_eighth(&mut self.nodes, wanted).is_err() {
            // Nodes have all that there is, so that there are as many as without an index.
            self.index.give_up(&mut self.budget);
            self.budget.reserve(&mut self.nodes, wanted)?;
        }
        self.index.fit(&self.nodes, self.nodes.capacity(), &mut self.budget);
        Ok(())
    }

    /// Returns where a walk to this prefix begins.
    #[inline]
    fn start(&self, key: K, len: u8) -> u32 {
        self.index.start(key, len).map_or(ROOT, |slot| slot.node)
    }

    /// Adds the route, or replaces the next hop of its prefix. Returns the previous next hop.
    ///
    /// # Errors
    /// When the memory limit is reached or the allocator fails; the tree is unchanged.
    pub fn insert(&mut self, route: Route<K>) -> Result<Option<NextHop>, OutOfMemory> {
        let changed = self.insert_from(self.start(route.prefix.addr(), route.prefix.len()), route)?;
        Ok(changed.before)
    }

    /// Inserts, beginning at a node on the way, which is the root for what has slots.
    fn insert_from(&mut self, start: u32, route: Route<K>) -> Result<ChangedNode, OutOfMemory> {
        if self.nodes.is_empty() {
            self.reserve_nodes(0)?;
        }
        let (key, len) = (route.prefix.addr(), route.prefix.len());
        // The last node with a route, for the slots.
        let (mut at, mut cover) = (start, ROOT);
        let is_leaf = loop {
            let node = &self.nodes[at as usize];
            if node.len == len {
                let is_leaf = node.children == [ROOT; 2];
                return Ok(ChangedNode { before: self.set(at, cover, route.next_hop), is_leaf, cover });
            }
            if node.next_hop != 0 {
                cover = at;
            }
            let side = node.side(key);
            let next = node.children[side];
            if next == ROOT {
                // A node with less than two children has a route, so that the cover is known wherever the walk began.
                self.reserve_nodes(1)?;
                let leaf = self.add(at, route.prefix, [ROOT; 2], route.next_hop.id());
                self.nodes[at as usize].children[side] = leaf;
                self.index.replace_cover(route.prefix, cover, leaf);
                break true;
            }
            let child = &self.nodes[next as usize];
            let common = key.common_len(child.key).min(child.len).min(len);
            if common == child.len {
                at = next;
                continue;
            }
            let child_side = usize::from(child.key.bit(common));
            if self.reserve_nodes(if common == len { 1 } else { 2 })? {
                // The prefix may have slots now, and the cover may be above the start.
                return self.insert_from(ROOT, route);
            }
            let mut children = [ROOT; 2];
            children[child_side] = next;
            let between = if common == len {
                let between = self.add(at, route.prefix, children, route.next_hop.id());
                self.index.replace_cover(route.prefix, cover, between);
                between
            } else {
                let between = self.add(at, Prefix::of(key, common), children, 0);
                let leaf = self.add(between, route.prefix, [ROOT; 2], route.next_hop.id());
                self.nodes[between as usize].children[1 - child_side] = leaf;
                self.index.replace_cover(route.prefix, cover, leaf);
                between
            };
            self.nodes[at as usize].children[side] = between;
            break common < len;
        };
        self.routes += 1;
        Ok(ChangedNode { before: None, is_leaf, cover })
    }

    fn set(&mut self, at: u32, cover: u32, next_hop: NextHop) -> Option<NextHop> {
        let old = core::mem::replace(&mut self.nodes[at as usize].next_hop, next_hop.id());
        if old == 0 {
            self.routes += 1;
            if at != ROOT {
                self.index.replace_cover(self.nodes[at as usize].prefix(), cover, at);
            }
        }
        NextHop::new(old)
    }

    /// Writes a node below another, for which [`reserve_nodes`](Self::reserve_nodes) has made room.
    fn add(&mut self, above: u32, prefix: Prefix<K>, children: [u32; 2], next_hop: u32) -> u32 {
        let node = RadixNode { key: prefix.addr(), children, next_hop, len: prefix.len() };
        let at = if self.free == ROOT {
            debug_assert!(self.nodes.len() < self.nodes.capacity());
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = self.nodes[at as usize].children[0];
            self.free_len -= 1;
            self.nodes[at as usize] = node;
            at
        };
        if let Some(part) = self.index.missing_block(prefix) {
            // The node above is not in this part, or there would be a block already.
            self.index.add_block(part, IndexSlot { node: above, cover: self.descend(part).parent });
        }
        self.index.replace_node(prefix, above, at);
        at
    }

    fn release(&mut self, at: u32) {
        let node = &mut self.nodes[at as usize];
        node.children = [self.free, ROOT];
        node.next_hop = 0;
        node.len = FREE;
        self.free = at;
        self.free_len += 1;
    }

    /// Removes the prefix and returns its next hop, if it was present. Never allocates.
    pub fn remove(&mut self, prefix: Prefix<K>) -> Option<NextHop> {
        self.remove_from(self.start(prefix.addr(), prefix.len()), prefix).before
    }

    /// Removes, beginning at a node on the way, which is the root for what has slots.
    fn remove_from(&mut self, start: u32, prefix: Prefix<K>) -> ChangedNode {
        const ABSENT: ChangedNode = ChangedNode { before: None, is_leaf: false, cover: ROOT };
        if self.nodes.is_empty() {
            return ABSENT;
        }
        let (mut above, mut parent, mut at, mut cover) = (start, start, start, ROOT);
        while self.nodes[at as usize].len < prefix.len() {
            let node = &self.nodes[at as usize];
            if node.next_hop != 0 {
                cover = at;
            }
            let next = node.children[node.side(prefix.addr())];
            if next == ROOT || !self.nodes[next as usize].prefix().covers(prefix) {
                return ABSENT;
            }
            (above, parent, at) = (parent, at, next);
        }
        if start != ROOT && (at == start || parent == start && self.nodes[start as usize].next_hop == 0) {
            // The node above the start may get another child.
            return self.remove_from(ROOT, prefix);
        }
        let node = &mut self.nodes[at as usize];
        let Some(old) = NextHop::new(core::mem::take(&mut node.next_hop)) else { return ABSENT };
        let is_leaf = node.children == [ROOT; 2];
        self.routes -= 1;
        if at != ROOT {
            self.index.replace_cover(prefix, at, cover);
            self.splice(parent, at);
            self.splice(above, parent);
        }
        ChangedNode { before: Some(old), is_leaf, cover }
    }

    /// Removes node `at` if it has neither a route nor two children; its only child, if any, takes its place.
    fn splice(&mut self, parent: u32, at: u32) {
        let node = &self.nodes[at as usize];
        if at == ROOT || node.next_hop != 0 || node.children.iter().all(|&child| child != ROOT) {
            return;
        }
        let only = node.children[0].max(node.children[1]);
        let side = self.nodes[parent as usize].side(node.key);
        let prefix = node.prefix();
        self.nodes[parent as usize].children[side] = only;
        self.index.replace_node(prefix, at, parent);
        self.release(at);
    }

    /// Returns the next hop of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: Prefix<K>) -> Option<NextHop> {
        let node = self.nodes.get(self.descend(prefix).top? as usize)?;
        if node.len == prefix.len() { NextHop::new(node.next_hop) } else { None }
    }

    /// Walks to `prefix`.
    fn descend(&self, prefix: Prefix<K>) -> WalkEnd {
        let IndexSlot { node: mut at, cover: mut parent } = self.slot(prefix.addr(), prefix.len());
        loop {
            let Some(node) = self.nodes.get(at as usize) else { return WalkEnd { parent, top: None } };
            if node.len >= prefix.len() {
                return WalkEnd { parent, top: prefix.covers(node.prefix()).then_some(at) };
            }
            if !node.contains(prefix.addr()) {
                return WalkEnd { parent, top: None };
            }
            if node.next_hop != 0 {
                parent = at;
            }
            at = node.children[node.side(prefix.addr())];
            if at == ROOT {
                return WalkEnd { parent, top: None };
            }
        }
    }

    /// Returns the slot where a walk begins that looks for routes on its way too.
    #[inline]
    fn slot(&self, key: K, len: u8) -> IndexSlot {
        self.index.start(key, len).unwrap_or(IndexSlot { node: ROOT, cover: ROOT })
    }

    /// Returns the longest route that contains `key`.
    #[must_use]
    pub fn lookup_prefix(&self, key: K) -> Option<Route<K>> {
        self.deepest(key, K::BITS).and_then(RadixNode::route)
    }

    /// Returns the next hop of the longest prefix that contains `key`.
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: K) -> Option<NextHop> {
        self.deepest(key, K::BITS).and_then(|node| NextHop::new(node.next_hop))
    }

    /// Returns the longest route that contains `prefix`, apart from `prefix` itself.
    #[must_use]
    pub fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        let longest = prefix.len().checked_sub(1)?;
        self.deepest(prefix.addr(), longest).and_then(RadixNode::route)
    }

    /// Returns the deepest node that has a route, at most `longest` bits, and contains `key`.
    #[inline]
    fn deepest(&self, key: K, longest: u8) -> Option<&RadixNode<K>> {
        // Slots have nodes of at most `longest` bits if they have those before the next bit.
        let slot = self.slot(key, longest.saturating_add(1));
        let mut node = self.nodes.get(slot.node as usize)?;
        let mut best = Some(&self.nodes[slot.cover as usize]).filter(|cover| cover.next_hop != 0);
        loop {
            if node.next_hop != 0 {
                best = Some(node);
            }
            // Checked before `side` would read past the last bit.
            if node.len >= longest {
                return best;
            }
            let next = node.children[node.side(key)];
            if next == ROOT {
                return best;
            }
            node = &self.nodes[next as usize];
            if node.len > longest || !node.contains(key) {
                return best;
            }
        }
    }

    /// Returns all routes in order: by address, then by length.
    #[must_use]
    pub fn iter(&self) -> Subtree<'_, K> {
        self.subnets(Prefix::ALL)
    }

    /// Returns the routes inside `prefix`, itself included, in order.
    #[must_use]
    pub fn subnets(&self, prefix: Prefix<K>) -> Subtree<'_, K> {
        Subtree::new(&self.nodes, self.descend(prefix).top)
    }

    /// Returns the routes after `prefix` in the order of [`iter`](Self::iter), whether it is there or not.
    #[must_use]
    pub fn iter_after(&self, prefix: Prefix<K>) -> Subtree<'_, K> {
        Subtree::after(&self.nodes, prefix)
    }

    /// Returns the routes that contain `prefix`, itself included, shortest first.
    #[must_use]
    pub fn covers(&self, prefix: Prefix<K>) -> CoveringRoutes<'_, K> {
        CoveringRoutes::new(&self.nodes, prefix)
    }

    /// Returns whether any route has an address in common with `prefix`.
    #[must_use]
    pub fn overlaps(&self, prefix: Prefix<K>) -> bool {
        self.covers(prefix).next().is_some() || self.subnets(prefix).next().is_some()
    }

    /// Removes all routes and keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.truncate(1);
        if let Some(root) = self.nodes.first_mut() {
            root.children = [ROOT; 2];
            root.next_hop = 0;
        }
        (self.free, self.free_len, self.routes) = (ROOT, 0, 0);
        self.index.clear();
    }

    /// Frees spare capacity after the last node.
    pub fn shrink(&mut self) {
        self.budget.shrink(&mut self.nodes);
        self.index.fit(&self.nodes, self.nodes.len(), &mut self.budget);
    }
}

/// The node that a change of a prefix ended at.
struct ChangedNode {
    /// The next hop that it had.
    before: Option<NextHop>,
    /// Whether it has no routes inside.
    is_leaf: bool,
    /// The last node with a route above it, from where the walk began; the root if there is none.
    cover: u32,
}

/// The end of a walk to a prefix.
struct WalkEnd {
    /// The last node on the way that has a route, or the root.
    parent: u32,
    /// The topmost node inside the prefix, if there is one.
    top: Option<u32>,
}

impl<K: Key> Routes<K> for RadixTree<K> {
    fn len(&self) -> usize {
        self.routes
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.subnets(within).try_for_each(each)
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.parent(prefix)
    }

    fn visit_from_parent(
        &self,
        within: Prefix<K>,
        each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let WalkEnd { parent, top } = self.descend(within);
        let parent = self.nodes.get(parent as usize).filter(|node| node.len < within.len());
        parent.and_then(RadixNode::route).map_or(ControlFlow::Continue(()), &mut *each)?;
        // Most prefixes have none inside them, and need no stack for those.
        match top.map(|top| &self.nodes[top as usize]) {
            None => ControlFlow::Continue(()),
            Some(node) if node.children == [ROOT; 2] => node.route().map_or(ControlFlow::Continue(()), each),
            Some(_) => Subtree::new(&self.nodes, top).try_for_each(each),
        }
    }
}
