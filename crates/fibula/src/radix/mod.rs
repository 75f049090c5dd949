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
//! Invariants, which [`RadixTree::check`] checks: (1) a child's prefix extends its parent's and continues with
//! the bit of its side; (2) every node but the root has a next hop or two children; (3) bits after a node's length
//! are zero; (4) every node is reachable once or is on the free chain; (5) the count of routes is right.

mod iter;
#[cfg(test)]
mod tests;

use core::ops::ControlFlow;

use crate::check::CheckError;
use crate::memory::{self, Budget, Buffer, Limits, Memory, OutOfMemory};
use crate::net::{Change, Key, NextHop, Prefix, Route, Routes};

pub use iter::{Covers, Subtree};

/// The root's index. The root is never a child, so as a child this means "none".
const ROOT: u32 = 0;

/// A new prefix takes its own node and, where two paths diverge, a branching one.
const NODES_PER_INSERT: usize = 2;

#[derive(Debug, Clone, Copy)]
struct Node<K> {
    key: K,
    children: [u32; 2],
    /// 0 for none.
    next_hop: u32,
    len: u8,
}

const _: () = assert!(size_of::<Node<u32>>() == 20);
const _: () = assert!(size_of::<Node<u128>>() == 32);

impl<K: Key> Node<K> {
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
    nodes: Buffer<Node<K>>,
    /// First free node, `ROOT` for none.
    free: u32,
    free_len: usize,
    routes: usize,
    budget: Budget,
}

impl<K: Key> Clone for RadixTree<K> {
    fn clone(&self) -> Self {
        let nodes = self.nodes.clone();
        let budget = self.budget.of_copy(&nodes);
        Self { nodes, free: self.free, free_len: self.free_len, routes: self.routes, budget }
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
        Self { nodes: Buffer::new(), free: ROOT, free_len: 0, routes: 0, budget: Budget::new(limits) }
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
        Memory { lookup_bytes: live * size_of::<Node<K>>(), ..memory::of(&self.nodes) }
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
        if inserts == 0 {
            return Ok(());
        }
        let root = usize::from(self.nodes.is_empty());
        let wanted =
            inserts.saturating_mul(NODES_PER_INSERT).saturating_add(root).saturating_sub(self.free_len);
        if self.nodes.len().saturating_add(wanted) > u32::MAX as usize {
            return Err(OutOfMemory {
                wanted_bytes: wanted.saturating_mul(size_of::<Node<K>>()),
                used_bytes: self.budget.used_bytes(),
                limit_bytes: Some(u32::MAX as usize * size_of::<Node<K>>()),
            });
        }
        self.budget.reserve(&mut self.nodes, wanted)?;
        if root == 1 {
            self.nodes.push(Node { key: K::ZERO, children: [ROOT; 2], next_hop: 0, len: 0 });
        }
        Ok(())
    }

    /// Adds the route, or replaces the next hop of its prefix. Returns the previous next hop.
    ///
    /// # Errors
    /// When the memory limit is reached or the allocator fails; the tree is unchanged.
    pub fn insert(&mut self, route: Route<K>) -> Result<Option<NextHop>, OutOfMemory> {
        if self.nodes.is_empty() {
            self.reserve(1)?;
        }
        let (key, len) = (route.prefix.addr(), route.prefix.len());
        let mut at = ROOT;
        loop {
            let node = &self.nodes[at as usize];
            if node.len == len {
                return Ok(self.set(at, route.next_hop));
            }
            let side = node.side(key);
            let next = node.children[side];
            if next == ROOT {
                self.reserve(1)?;
                let leaf = self.add(route.prefix, [ROOT; 2], route.next_hop.id());
                self.nodes[at as usize].children[side] = leaf;
                break;
            }
            let child = &self.nodes[next as usize];
            let common = key.common_len(child.key).min(child.len).min(len);
            if common == child.len {
                at = next;
                continue;
            }
            let child_side = usize::from(child.key.bit(common));
            let mut children = [ROOT; 2];
            children[child_side] = next;
            self.reserve(1)?;
            let between = if common == len {
                self.add(route.prefix, children, route.next_hop.id())
            } else {
                children[1 - child_side] = self.add(route.prefix, [ROOT; 2], route.next_hop.id());
                self.add(Prefix::of(key, common), children, 0)
            };
            self.nodes[at as usize].children[side] = between;
            break;
        }
        self.routes += 1;
        Ok(None)
    }

    fn set(&mut self, at: u32, next_hop: NextHop) -> Option<NextHop> {
        let old = core::mem::replace(&mut self.nodes[at as usize].next_hop, next_hop.id());
        self.routes += usize::from(old == 0);
        NextHop::new(old)
    }

    /// Writes a node, for which [`reserve`](Self::reserve) has made room.
    fn add(&mut self, prefix: Prefix<K>, children: [u32; 2], next_hop: u32) -> u32 {
        let node = Node { key: prefix.addr(), children, next_hop, len: prefix.len() };
        if self.free == ROOT {
            debug_assert!(self.nodes.len() < self.nodes.capacity());
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        let at = self.free;
        self.free = self.nodes[at as usize].children[0];
        self.free_len -= 1;
        self.nodes[at as usize] = node;
        at
    }

    fn release(&mut self, at: u32) {
        let node = &mut self.nodes[at as usize];
        node.children = [self.free, ROOT];
        node.next_hop = 0;
        self.free = at;
        self.free_len += 1;
    }

    /// Applies all `changes` in order, or none of them.
    ///
    /// # Errors
    /// When there is no memory for the inserts; the tree is unchanged.
    pub fn apply(&mut self, changes: &[Change<K>]) -> Result<(), OutOfMemory> {
        let inserts = changes.iter().filter(|change| matches!(change, Change::Insert(_))).count();
        let spare = self.nodes.capacity() - self.nodes.len() + self.free_len;
        if spare < NODES_PER_INSERT * inserts {
            // Counting new prefixes takes a walk per change, so it is done only if the tree would have to grow. A prefix
            // that is removed and added again needs no count: every tree on the way has only prefixes that are present
            // now or new, and fewer prefixes never need more nodes.
            let adds = |change: &&Change<K>| matches!(change, Change::Insert(route) if self.get(route.prefix).is_none());
            let inserts = changes.iter().filter(adds).count();
            self.reserve(inserts)?;
        }
        for &change in changes {
            match change {
                Change::Insert(route) => {
                    self.insert(route)?;
                }
                Change::Remove(prefix) => {
                    self.remove(prefix);
                }
            }
        }
        Ok(())
    }

    /// Removes the prefix and returns its next hop, if it was present. Never allocates.
    pub fn remove(&mut self, prefix: Prefix<K>) -> Option<NextHop> {
        if self.nodes.is_empty() {
            return None;
        }
        let (mut above, mut parent, mut at) = (ROOT, ROOT, ROOT);
        while self.nodes[at as usize].len < prefix.len() {
            let node = &self.nodes[at as usize];
            let next = node.children[node.side(prefix.addr())];
            if next == ROOT || !self.nodes[next as usize].prefix().covers(prefix) {
                return None;
            }
            (above, parent, at) = (parent, at, next);
        }
        let old = NextHop::new(core::mem::take(&mut self.nodes[at as usize].next_hop))?;
        self.routes -= 1;
        if at != ROOT {
            self.splice(parent, at);
            self.splice(above, parent);
        }
        Some(old)
    }

    /// Removes node `at` if it has neither a route nor two children; its only child, if any, takes its place.
    fn splice(&mut self, parent: u32, at: u32) {
        let node = &self.nodes[at as usize];
        if at == ROOT || node.next_hop != 0 || node.children.iter().all(|&child| child != ROOT) {
            return;
        }
        let only = node.children[0].max(node.children[1]);
        let side = self.nodes[parent as usize].side(node.key);
        self.nodes[parent as usize].children[side] = only;
        self.release(at);
    }

    /// Returns the next hop of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: Prefix<K>) -> Option<NextHop> {
        let node = self.nodes.get(self.descend(prefix)? as usize)?;
        if node.len == prefix.len() { NextHop::new(node.next_hop) } else { None }
    }

    /// Returns the topmost node inside `prefix`, if there is one.
    fn descend(&self, prefix: Prefix<K>) -> Option<u32> {
        let mut at = ROOT;
        loop {
            let node = self.nodes.get(at as usize)?;
            if node.len >= prefix.len() {
                return prefix.covers(node.prefix()).then_some(at);
            }
            at = node.children[node.side(prefix.addr())];
            // A longer child is tested against `prefix` above; a shorter one must be on the path to it.
            if at == ROOT || !self.nodes[at as usize].prefix().overlaps(prefix) {
                return None;
            }
        }
    }

    /// Returns the longest route that contains `key`.
    #[must_use]
    pub fn lookup_prefix(&self, key: K) -> Option<Route<K>> {
        self.deepest(key, K::BITS).and_then(Node::route)
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
        self.deepest(prefix.addr(), longest).and_then(Node::route)
    }

    /// Returns the deepest node that has a route, at most `longest` bits, and contains `key`.
    #[inline]
    fn deepest(&self, key: K, longest: u8) -> Option<&Node<K>> {
        let mut node = self.nodes.first()?;
        let mut best = None;
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
        Subtree::new(&self.nodes, self.descend(prefix))
    }

    /// Returns the routes that contain `prefix`, itself included, shortest first.
    #[must_use]
    pub fn covers(&self, prefix: Prefix<K>) -> Covers<'_, K> {
        Covers::new(&self.nodes, prefix)
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
    }

    /// Frees spare capacity after the last node.
    pub fn shrink(&mut self) {
        self.budget.shrink(&mut self.nodes);
    }

    /// Checks the module's invariants.
    ///
    /// # Errors
    /// The first invariant that does not hold, and the node.
    pub fn check(&self) -> Result<(), CheckError> {
        let fail = |holds, invariant, at: u32| CheckError::unless(holds, invariant, at as usize);
        let mut stack: Vec<u32> = if self.nodes.is_empty() { Vec::new() } else { vec![ROOT] };
        let (mut reached, mut routes) = (0, 0);
        while let Some(at) = stack.pop() {
            let node = &self.nodes[at as usize];
            reached += 1;
            fail(reached <= self.nodes.len(), "a node is reachable once", at)?;
            routes += usize::from(node.next_hop != 0);
            fail(node.prefix().addr() == node.key, "bits after the length are zero", at)?;
            let children = node.children.iter().filter(|&&child| child != ROOT).count();
            fail(
                at == ROOT || node.next_hop != 0 || children == 2,
                "a node has a route or two children",
                at,
            )?;
            fail(node.len < K::BITS || children == 0, "a host prefix has no children", at)?;
            for (side, &child) in node.children.iter().enumerate().filter(|(_, child)| **child != ROOT) {
                let below =
                    self.nodes.get(child as usize).ok_or(CheckError::new("a child exists", at as usize))?;
                fail(below.len > node.len && node.contains(below.key), "a child extends its parent", child)?;
                fail(node.side(below.key) == side, "a child continues with the bit of its side", child)?;
                stack.push(child);
            }
        }
        let (mut free, mut at) = (0, self.free);
        while at != ROOT && free <= self.free_len {
            free += 1;
            at = self.nodes[at as usize].children[0];
        }
        fail(free == self.free_len, "the free chain has the recorded length", self.free)?;
        fail(reached + free == self.nodes.len(), "every node is in the tree or free", ROOT)?;
        fail(routes == self.routes, "the number of routes is right", ROOT)
    }
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
}
