//! The routing table: the routes that structures are built from and tested against.
//!
//! A [`Rib`] holds the routes of one family, a [`DualRib`] those of both. `get` finds exactly a prefix; `lookup` finds the
//! longest match.

mod columns;
mod dual;
#[cfg(test)]
mod tests;

use core::fmt;
use core::ops::ControlFlow;

use crate::check::CheckError;
use crate::memory::{Limits, Memory, OutOfMemory};
use crate::net::{Change, IntoKey, Key, NextHop, Prefix, Route, Routes};
use crate::radix::{CoveringRoutes, RadixTree, Subtree};

#[doc(hidden)]
pub use crate::radix::{Before, Sole, Tally};
pub use columns::{ColumnRules, Duplicates, RibColumnsError};
pub use dual::DualRib;
pub(crate) use dual::lookup_prefix;

/// An ordered map from prefixes to next hops, with longest-prefix match.
///
/// | operation | cost |
/// |---|---|
/// | `insert`, `remove`, `get`, `lookup`, `parent` | one walk down the tree, at most one node per bit |
/// | `apply`, `apply_logged` | walks in step: on full tables a quarter of the time of single changes |
/// | `iter`, `iter_after`, `subnets`, `covers` | one walk down, then a step or two per route; no allocation |
///
/// Takes at most two nodes per route (40 bytes for IPv4, 64 for IPv6), an eighth more as spare capacity, and up to an eighth,
/// at most 2 MB, for an index. That is given up if there is a memory limit and nodes would not fit otherwise.
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
    /// Returns an empty table that stays within `limits`.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { tree: RadixTree::new(limits) }
    }

    /// Returns the limits.
    pub(crate) fn limits(&self) -> Limits {
        self.tree.limits()
    }

    /// Changes the limits, which apply to later inserts only.
    pub fn set_limits(&mut self, limits: Limits) {
        self.tree.set_limits(limits);
    }

    /// Replaces the next hop of every route, in no particular order. Never allocates.
    pub fn map_next_hops(&mut self, replace: impl FnMut(Route<K>) -> NextHop) {
        self.tree.map_next_hops(replace);
    }

    /// Adds the route, or replaces the next hop of its prefix. Returns the previous next hop.
    ///
    /// # Errors
    /// When the memory limit is reached or the allocator fails; the table is unchanged.
    pub fn insert(&mut self, route: Route<K>) -> Result<Option<NextHop>, RibError> {
        self.tree.insert(route).map_err(RibError)
    }

    /// Removes the prefix and returns its next hop, if it was present. Never allocates.
    pub fn remove(&mut self, prefix: Prefix<K>) -> Option<NextHop> {
        self.tree.remove(prefix)
    }

    /// Applies all `changes` in order, or none of them.
    ///
    /// # Errors
    /// When there is no memory for the inserts; the table is unchanged.
    pub fn apply(&mut self, changes: &[Change<K>]) -> Result<(), RibError> {
        self.tree.apply(changes).map_err(RibError)
    }

    /// Applies all `changes` in order, or none of them, and returns what they did. Replaces what is in `log` by an entry for
    /// each change, in order: what its prefix had before, with which [`undo`](Self::undo) takes them back.
    ///
    /// # Errors
    /// When there is no memory for the inserts or the log; the table is unchanged, and the log is empty.
    pub fn apply_logged(
        &mut self,
        changes: &[Change<K>],
        log: &mut Vec<Before<K>>,
    ) -> Result<Tally, RibError> {
        self.tree.apply_logged(changes, log).map_err(RibError)
    }

    /// Takes back the changes of a log, the last one first, and empties it. Neither fails nor allocates if the table was
    /// not changed or shrunk since.
    pub fn undo(&mut self, log: &mut Vec<Before<K>>) {
        self.tree.undo(log);
    }

    /// Returns the next hop of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: Prefix<K>) -> Option<NextHop> {
        self.tree.get(prefix)
    }

    /// Returns whether exactly this prefix is present.
    #[must_use]
    pub fn contains(&self, prefix: Prefix<K>) -> bool {
        self.get(prefix).is_some()
    }

    /// Returns the next hop of the longest prefix that contains `key`.
    #[must_use]
    pub fn lookup(&self, key: impl IntoKey<K>) -> Option<NextHop> {
        self.tree.lookup(key.into_key())
    }

    /// Returns the longest route that contains `key`.
    #[must_use]
    pub fn lookup_prefix(&self, key: impl IntoKey<K>) -> Option<Route<K>> {
        self.tree.lookup_prefix(key.into_key())
    }

    /// Returns the longest route that contains `prefix`, apart from `prefix` itself.
    #[must_use]
    pub fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.tree.parent(prefix)
    }

    /// Returns the routes that contain `prefix`, itself included, shortest first.
    #[must_use]
    pub fn covers(&self, prefix: Prefix<K>) -> CoveringRoutes<'_, K> {
        self.tree.covers(prefix)
    }

    /// Calls `each` for the routes that contain each of `prefixes`, itself included, with its index: prefix by prefix,
    /// shortest first. Takes less time than [`covers`](Self::covers) of one after the other, and allocates nothing.
    pub fn covers_batch(&self, prefixes: &[Prefix<K>], each: impl FnMut(usize, Route<K>)) {
        self.tree.covers_batch(prefixes, each);
    }

    /// Returns the routes inside `prefix`, itself included, in order.
    #[must_use]
    pub fn subnets(&self, prefix: Prefix<K>) -> Subtree<'_, K> {
        self.tree.subnets(prefix)
    }

    /// Returns whether any route has an address in common with `prefix`.
    #[must_use]
    pub fn overlaps(&self, prefix: Prefix<K>) -> bool {
        self.tree.overlaps(prefix)
    }

    /// Returns all routes in order: by address, then by length.
    #[must_use]
    pub fn iter(&self) -> Subtree<'_, K> {
        self.tree.iter()
    }

    /// Returns the routes after `prefix` in the order of [`iter`](Self::iter), whether it is there or not.
    #[must_use]
    pub fn iter_after(&self, prefix: Prefix<K>) -> Subtree<'_, K> {
        self.tree.iter_after(prefix)
    }

    /// Returns the number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Returns whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// Removes all routes and keeps the memory.
    pub fn clear(&mut self) {
        self.tree.clear();
    }

    /// Frees spare capacity.
    pub fn shrink(&mut self) {
        self.tree.shrink();
    }

    /// Returns the memory that the table occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.tree.memory()
    }

    /// Checks the invariants of the whole table.
    ///
    /// # Errors
    /// The first broken invariant, and the node.
    pub fn check(&self) -> Result<(), CheckError> {
        self.tree.check()
    }
}

impl<K: Key> Routes<K> for Rib<K> {
    fn shared(&self) -> Option<&(dyn Routes<K> + Sync)> {
        Some(self)
    }

    fn len(&self) -> usize {
        self.len()
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
        self.tree.visit_from_parent(within, each)
    }
}

impl<'a, K: Key> IntoIterator for &'a Rib<K> {
    type Item = Route<K>;
    type IntoIter = Subtree<'a, K>;

    fn into_iter(self) -> Subtree<'a, K> {
        self.iter()
    }
}

/// The error for a change that failed for lack of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RibError(pub(crate) OutOfMemory);

impl RibError {
    /// Returns how much memory was needed, and the limit.
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
