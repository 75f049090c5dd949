//! The routing table itself: the truth that structures are built from and judged by.
//!
//! One [`Rib`] holds the routes of one family. `get` is exact; `lookup` is the longest match.

use core::fmt;
use core::ops::ControlFlow;

use crate::check::CheckError;
use crate::memory::{Limits, Memory, OutOfMemory};
use crate::net::{Change, IntoKey, Key, NextHop, Prefix, Route, Routes};
use crate::radix::{Covers, RadixTree, Subtree};

/// A routing table: prefixes in order, each with its next hop.
///
/// | operation | cost |
/// |---|---|
/// | `insert`, `remove`, `get`, `lookup`, `parent` | one walk down, at most one node a bit |
/// | `iter`, `subnets`, `covers` | a walk down, then a step or two a route; nothing is allocated |
///
/// At most two nodes a route: 40 bytes for IPv4, 64 for IPv6, and an eighth of spare capacity.
#[derive(Debug)]
pub struct Rib<K> {
    tree: RadixTree<K>,
}

impl<K: Key> Clone for Rib<K> {
    fn clone(&self) -> Self {
        Self { tree: self.tree.clone() }
    }
}

impl<K: Key> Default for Rib<K> {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl<K: Key> Rib<K> {
    /// An empty table that stays within `limits`.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { tree: RadixTree::new(limits) }
    }

    /// Changes the limits for inserts from now on; what is already held stays.
    pub fn set_limits(&mut self, limits: Limits) {
        self.tree.set_limits(limits);
    }

    /// Replaces the next hop of every route, in no particular order. Never needs memory.
    pub fn map_next_hops(&mut self, replace: impl FnMut(Route<K>) -> NextHop) {
        self.tree.map_next_hops(replace);
    }

    /// Adds the route, or changes the next hop of its prefix; the next hop that was there before.
    ///
    /// # Errors
    /// When the memory limit or the allocator refuses; the table is as it was.
    pub fn insert(&mut self, route: Route<K>) -> Result<Option<NextHop>, RibError> {
        self.tree.insert(route).map_err(RibError)
    }

    /// Takes the prefix out; its next hop, if it was there. Never needs memory.
    pub fn remove(&mut self, prefix: Prefix<K>) -> Option<NextHop> {
        self.tree.remove(prefix)
    }

    /// Applies all `changes` in order, or none of them.
    ///
    /// # Errors
    /// When memory for the inserts cannot be had; the table is as it was.
    pub fn apply(&mut self, changes: &[Change<K>]) -> Result<(), RibError> {
        self.tree.apply(changes).map_err(RibError)
    }

    /// The next hop of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: Prefix<K>) -> Option<NextHop> {
        self.tree.get(prefix)
    }

    /// Whether exactly this prefix is present.
    #[must_use]
    pub fn contains(&self, prefix: Prefix<K>) -> bool {
        self.get(prefix).is_some()
    }

    /// The next hop of the longest prefix that contains `key`.
    #[must_use]
    pub fn lookup(&self, key: impl IntoKey<K>) -> Option<NextHop> {
        self.tree.lookup(key.into_key())
    }

    /// The longest route that contains `key`.
    #[must_use]
    pub fn lookup_prefix(&self, key: impl IntoKey<K>) -> Option<Route<K>> {
        self.tree.lookup_prefix(key.into_key())
    }

    /// The longest route that contains `prefix` and is not it.
    #[must_use]
    pub fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.tree.parent(prefix)
    }

    /// The routes that contain `prefix`, itself included, shortest first.
    #[must_use]
    pub fn covers(&self, prefix: Prefix<K>) -> Covers<'_, K> {
        self.tree.covers(prefix)
    }

    /// The routes inside `prefix`, itself included, in order: the walk of a subtree.
    #[must_use]
    pub fn subnets(&self, prefix: Prefix<K>) -> Subtree<'_, K> {
        self.tree.subnets(prefix)
    }

    /// Whether a route has an address in common with `prefix`.
    #[must_use]
    pub fn overlaps(&self, prefix: Prefix<K>) -> bool {
        self.tree.overlaps(prefix)
    }

    /// All routes in order, covers first.
    #[must_use]
    pub fn iter(&self) -> Subtree<'_, K> {
        self.tree.iter()
    }

    /// Number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// Takes all routes out and keeps the memory.
    pub fn clear(&mut self) {
        self.tree.clear();
    }

    /// Gives spare capacity back.
    pub fn shrink(&mut self) {
        self.tree.shrink();
    }

    /// What the table occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.tree.memory()
    }

    /// Walks the whole table.
    ///
    /// # Errors
    /// Names the first broken invariant and the node.
    pub fn check(&self) -> Result<(), CheckError> {
        self.tree.check()
    }
}

impl<K: Key> Routes<K> for Rib<K> {
    fn len(&self) -> usize {
        self.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.subnets(within).try_for_each(each)
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.parent(prefix)
    }
}

impl<'a, K: Key> IntoIterator for &'a Rib<K> {
    type Item = Route<K>;
    type IntoIter = Subtree<'a, K>;

    fn into_iter(self) -> Subtree<'a, K> {
        self.iter()
    }
}

/// A change that the table refused: it needs memory that cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RibError(OutOfMemory);

impl RibError {
    /// What was wanted and what the limit is.
    #[must_use]
    pub fn out_of_memory(&self) -> OutOfMemory {
        self.0
    }
}

impl fmt::Display for RibError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the table cannot grow: {}", self.0)
    }
}

impl core::error::Error for RibError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.0)
    }
}
