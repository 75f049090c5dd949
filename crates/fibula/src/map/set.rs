//! Sets of prefixes.

use core::fmt;

use crate::check::CheckError;
use crate::memory::{Limits, Memory};
use crate::net::{IntoKey, IntoPrefix, Key, NextHop, Prefix, Route};
use crate::rib::{Rib, RibError};

use super::prefix_map::refused;

/// An ordered set of prefixes.
///
/// The elements are prefixes: 10.0.0.0/8 and 10.0.0.0/9 are two of them, and the difference of two sets takes away equal
/// prefixes only. A set of the *addresses* that prefixes contain is an [`AddressSet`](super::AddressSet).
///
/// ```
/// use fibula::ipnet::Ipv4Net;
/// use fibula::map::PrefixSet;
///
/// let set = |texts: &[&str]| texts.iter().map(|text| text.parse::<Ipv4Net>().unwrap()).collect::<PrefixSet<u32>>();
/// let (one, two) = (set(&["10.0.0.0/8", "192.0.2.0/24"]), set(&["192.0.2.0/24", "198.51.100.0/24"]));
/// assert_eq!(&one - &two, set(&["10.0.0.0/8"]));
/// assert_eq!((&one | &two).len(), 3);
/// ```
///
/// # Panics
/// Methods that add a prefix, and operations that return a set, panic when the memory limit is reached or the allocator
/// refuses. [`try_insert`](Self::try_insert) returns an error.
pub struct PrefixSet<K> {
    /// Every prefix leads to [`MEMBER`].
    rib: Rib<K>,
}

const MEMBER: NextHop = NextHop::new(1).unwrap();

impl<K: Key> PrefixSet<K> {
    /// Returns an empty set, which allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::within(Limits::default())
    }

    /// Returns an empty set that stays within `limits`.
    #[must_use]
    pub fn within(limits: Limits) -> Self {
        Self { rib: Rib::new(limits) }
    }

    /// Returns the set of these prefixes, which stays within `limits`.
    ///
    /// # Panics
    /// When memory runs out.
    #[must_use]
    pub fn from_entries<P: Into<Prefix<K>>>(entries: impl IntoIterator<Item = P>, limits: Limits) -> Self {
        Self::try_from_entries(entries, limits).unwrap_or_else(|error| refused(&error))
    }

    /// Like [`from_entries`](Self::from_entries), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn try_from_entries<P: Into<Prefix<K>>>(
        entries: impl IntoIterator<Item = P>,
        limits: Limits,
    ) -> Result<Self, RibError> {
        let mut made = Self::within(limits);
        for prefix in entries {
            made.try_insert(prefix)?;
        }
        Ok(made)
    }

    /// Changes the limits, which apply to later inserts only.
    pub fn set_limits(&mut self, limits: Limits) {
        self.rib.set_limits(limits);
    }

    /// Adds the prefix. Returns whether it was not in the set before.
    ///
    /// # Panics
    /// When memory runs out; the set is unchanged.
    pub fn insert(&mut self, prefix: impl IntoPrefix<K>) -> bool {
        self.try_insert(prefix).unwrap_or_else(|error| refused(&error))
    }

    /// Like [`insert`](Self::insert), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the set is unchanged.
    pub fn try_insert(&mut self, prefix: impl IntoPrefix<K>) -> Result<bool, RibError> {
        Ok(self.rib.insert(Route::new(prefix.into_prefix(), MEMBER))?.is_none())
    }

    /// Removes the prefix. Returns whether it was in the set.
    pub fn remove(&mut self, prefix: impl IntoPrefix<K>) -> bool {
        self.rib.remove(prefix.into_prefix()).is_some()
    }

    /// Removes the prefixes inside `prefix`, itself included. Returns how many there were.
    pub fn remove_subnets(&mut self, prefix: impl IntoPrefix<K>) -> usize {
        // Collected first, because the tree cannot change while it is walked.
        let inside: Vec<_> = self.subnets(prefix).collect();
        for &prefix in &inside {
            self.remove(prefix);
        }
        inside.len()
    }

    /// Returns whether exactly this prefix is in the set.
    #[must_use]
    pub fn contains(&self, prefix: impl IntoPrefix<K>) -> bool {
        self.rib.contains(prefix.into_prefix())
    }

    /// Returns the longest prefix that contains `address`.
    #[must_use]
    pub fn lookup_prefix(&self, address: impl IntoKey<K>) -> Option<Prefix<K>> {
        self.rib.lookup_prefix(address).map(|route| route.prefix)
    }

    /// Looks up `keys`, writing the longest prefix that contains `keys[i]` to `results[i]`. Allocates nothing.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_batch(&self, keys: &[K], results: &mut [Option<Prefix<K>>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        for (&key, result) in keys.iter().zip(results) {
            *result = self.lookup_prefix(key);
        }
    }

    /// Returns the longest prefix that contains `prefix`, apart from `prefix` itself.
    #[must_use]
    pub fn parent(&self, prefix: impl IntoPrefix<K>) -> Option<Prefix<K>> {
        self.rib.parent(prefix.into_prefix()).map(|route| route.prefix)
    }

    /// Returns all prefixes that contain an address or a prefix, itself included, shortest first.
    pub fn covers(&self, prefix: impl IntoPrefix<K>) -> impl Iterator<Item = Prefix<K>> {
        self.rib.covers(prefix.into_prefix()).map(|route| route.prefix)
    }

    /// Returns the prefixes inside `prefix`, itself included, in order.
    pub fn subnets(&self, prefix: impl IntoPrefix<K>) -> impl Iterator<Item = Prefix<K>> {
        self.rib.subnets(prefix.into_prefix()).map(|route| route.prefix)
    }

    /// Returns whether any prefix has an address in common with `prefix`.
    #[must_use]
    pub fn overlaps(&self, prefix: impl IntoPrefix<K>) -> bool {
        self.rib.overlaps(prefix.into_prefix())
    }

    /// Returns all prefixes in order: by address, then by length.
    pub fn iter(&self) -> impl Iterator<Item = Prefix<K>> {
        self.rib.iter().map(|route| route.prefix)
    }

    /// Returns the number of prefixes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rib.len()
    }

    /// Returns whether there are no prefixes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rib.is_empty()
    }

    /// Returns the prefixes after `prefix` in the order of [`iter`](Self::iter), whether it is there or not.
    pub fn iter_after(&self, prefix: impl IntoPrefix<K>) -> impl Iterator<Item = Prefix<K>> {
        self.rib.iter_after(prefix.into_prefix()).map(|route| route.prefix)
    }

    /// Keeps the prefixes for which `keep` returns true, called in order, and removes the others.
    pub fn retain(&mut self, mut keep: impl FnMut(Prefix<K>) -> bool) {
        // Removed after the walk, because the iterator borrows the tree.
        let gone: Vec<_> = self.iter().filter(|&prefix| !keep(prefix)).collect();
        for prefix in gone {
            self.remove(prefix);
        }
    }

    /// Replaces all prefixes by these. The limits stay; while the call lasts, the set before and the new one each stay within
    /// them. Takes as long as to make a new one of them.
    ///
    /// # Panics
    /// When memory runs out; the set is unchanged.
    pub fn replace<P: Into<Prefix<K>>>(&mut self, entries: impl IntoIterator<Item = P>) {
        self.try_replace(entries).unwrap_or_else(|error| refused(&error));
    }

    /// Like [`replace`](Self::replace), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the set is unchanged.
    pub fn try_replace<P: Into<Prefix<K>>>(
        &mut self,
        entries: impl IntoIterator<Item = P>,
    ) -> Result<(), RibError> {
        *self = Self::try_from_entries(entries, self.rib.limits())?;
        Ok(())
    }

    /// Removes all prefixes and keeps the memory.
    pub fn clear(&mut self) {
        self.rib.clear();
    }

    /// Frees spare capacity.
    pub fn shrink(&mut self) {
        self.rib.shrink();
    }

    /// Returns the memory that the set occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.rib.memory()
    }

    /// Checks the invariants of the whole set.
    ///
    /// # Errors
    /// The first broken invariant, and the node.
    pub fn check(&self) -> Result<(), CheckError> {
        self.rib.check()
    }
}

impl<K: Key> Default for PrefixSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> Clone for PrefixSet<K> {
    fn clone(&self) -> Self {
        Self { rib: self.rib.clone() }
    }
}

impl<K: Key> PartialEq for PrefixSet<K> {
    fn eq(&self, other: &Self) -> bool {
        // Lengths first: sets of different sizes need no walk.
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: Key> Eq for PrefixSet<K> {}

/// Shows prefixes in their usual notation.
impl<K: Key> fmt::Debug for PrefixSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::traits::debug_set(f, self.iter())
    }
}

/// Panics when memory runs out, as [`PrefixSet::insert`].
impl<K: Key, P: IntoPrefix<K>> Extend<P> for PrefixSet<K> {
    fn extend<I: IntoIterator<Item = P>>(&mut self, prefixes: I) {
        for prefix in prefixes {
            self.insert(prefix);
        }
    }
}

/// As [`Extend`] of an empty set.
impl<K: Key, P: IntoPrefix<K>> FromIterator<P> for PrefixSet<K> {
    fn from_iter<I: IntoIterator<Item = P>>(prefixes: I) -> Self {
        let mut set = Self::new();
        set.extend(prefixes);
        set
    }
}

/// In order. Allocates a list of all prefixes.
impl<K: Key> IntoIterator for PrefixSet<K> {
    type Item = Prefix<K>;
    type IntoIter = std::vec::IntoIter<Prefix<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

/// As [`Extend`] of an empty set.
impl<K: Key, P: IntoPrefix<K>, const COUNT: usize> From<[P; COUNT]> for PrefixSet<K> {
    fn from(prefixes: [P; COUNT]) -> Self {
        prefixes.into_iter().collect()
    }
}
