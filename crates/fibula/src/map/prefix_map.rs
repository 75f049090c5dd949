//! The map of one family.

use crate::check::CheckError;
use crate::memory::{Limits, Memory};
use crate::net::{IntoKey, IntoPrefix, Key, Prefix, Route};
use crate::rib::{Rib, RibError};

use super::iter::{Covers, Iter, IterMut};
use super::slab::Slab;

/// An ordered map from prefixes to values of any type, with longest-prefix match.
///
/// `get` finds exactly a prefix, `lookup` the longest one that contains an address. Prefixes are given as [`Prefix`], as
/// `ipnet` types or as addresses, which are prefixes of full length.
///
/// ```
/// use std::net::Ipv4Addr;
///
/// use fibula::ipnet::Ipv4Net;
/// use fibula::map::PrefixMap;
///
/// let mut sites = PrefixMap::<u32, &str>::new();
/// sites.insert("10.0.0.0/8".parse::<Ipv4Net>()?, "office");
/// sites.insert("10.1.0.0/16".parse::<Ipv4Net>()?, "lab");
/// assert_eq!(sites.lookup(Ipv4Addr::new(10, 1, 2, 3)), Some(&"lab"));
/// assert_eq!(sites.lookup(Ipv4Addr::new(10, 9, 9, 9)), Some(&"office"));
/// assert_eq!(sites.get("10.1.0.0/17".parse::<Ipv4Net>()?), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | operation | cost |
/// |---|---|
/// | `insert`, `remove`, `get`, `lookup`, `entry` | one walk down the tree of a [`Rib`], at most one node a bit |
/// | `iter`, `subnets`, `covers` | one walk down, then a step or two a prefix; no allocation |
/// | `compile`, then lookups in batches | a build; then more than a hundred times as fast on large maps |
///
/// An empty map allocates nothing. Each value takes a slot (its size, or that and a word), each prefix at most two nodes of
/// the table.
///
/// # Panics
/// Methods that add a prefix panic when the memory limit is reached or the allocator refuses, as collections of the
/// standard library abort. Those whose names begin with `try_` return an error instead. Either way the map is unchanged.
pub struct PrefixMap<K, V> {
    /// The prefixes; their next hops are the slots of `values`.
    pub(super) rib: Rib<K>,
    pub(super) values: Slab<V>,
}

/// Panics with the error: methods without `try_` in their name end here.
#[cold]
pub(super) fn refused(error: &RibError) -> ! {
    panic!("{error}")
}

impl<K: Key, V> PrefixMap<K, V> {
    /// Returns an empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::within(Limits::default())
    }

    /// Returns an empty map whose prefixes and whose values each stay within `limits`. The limits do not count memory that
    /// a value allocates itself, for example the text of a `String`.
    #[must_use]
    pub fn within(limits: Limits) -> Self {
        Self { rib: Rib::new(limits), values: Slab::new(limits) }
    }

    /// Returns a map of these prefixes and values, which each stay within `limits`. The last value of a prefix counts.
    ///
    /// # Panics
    /// When memory runs out.
    #[must_use]
    pub fn from_entries<P: Into<Prefix<K>>>(
        entries: impl IntoIterator<Item = (P, V)>,
        limits: Limits,
    ) -> Self {
        Self::try_from_entries(entries, limits).unwrap_or_else(|error| refused(&error))
    }

    /// Like [`from_entries`](Self::from_entries), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn try_from_entries<P: Into<Prefix<K>>>(
        entries: impl IntoIterator<Item = (P, V)>,
        limits: Limits,
    ) -> Result<Self, RibError> {
        let mut made = Self::within(limits);
        for (prefix, value) in entries {
            made.try_insert(prefix, value)?;
        }
        Ok(made)
    }

    /// Changes the limits, which apply to later inserts only.
    pub fn set_limits(&mut self, limits: Limits) {
        self.rib.set_limits(limits);
        self.values.set_limits(limits);
    }

    /// Maps `prefix` to `value`. Returns the value that it had before.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn insert(&mut self, prefix: impl IntoPrefix<K>, value: V) -> Option<V> {
        self.try_insert(prefix, value).unwrap_or_else(|error| refused(&error))
    }

    /// Like [`insert`](Self::insert), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the map is unchanged, and `value` is dropped.
    pub fn try_insert(&mut self, prefix: impl IntoPrefix<K>, value: V) -> Result<Option<V>, RibError> {
        self.values.reserve_one().map_err(RibError)?;
        // A value that replaces another takes a slot of its own, so that one walk is enough.
        // The route comes before the value, because only the insertion can fail: after it, the value has a slot.
        let old = self.rib.insert(Route::new(prefix.into_prefix(), self.values.next()))?;
        // The old slot is freed last. Were it freed first, `put` would fill that slot, and the route would lead to an
        // empty one.
        self.values.put(value);
        Ok(old.map(|old| self.values.take(old)))
    }

    /// Removes the prefix and returns its value, if it was present.
    pub fn remove(&mut self, prefix: impl IntoPrefix<K>) -> Option<V> {
        self.rib.remove(prefix.into_prefix()).map(|at| self.values.take(at))
    }

    /// Removes the prefixes inside `prefix`, itself included. Returns how many there were.
    pub fn remove_subnets(&mut self, prefix: impl IntoPrefix<K>) -> usize {
        // Collected first, because the tree cannot change while it is walked.
        let inside: Vec<_> = self.rib.subnets(prefix.into_prefix()).map(|route| route.prefix).collect();
        for &prefix in &inside {
            self.remove(prefix);
        }
        inside.len()
    }

    /// Returns the value of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: impl IntoPrefix<K>) -> Option<&V> {
        self.rib.get(prefix.into_prefix()).map(|at| self.values.get(at))
    }

    /// Returns the value of exactly this prefix, to change it.
    #[must_use]
    pub fn get_mut(&mut self, prefix: impl IntoPrefix<K>) -> Option<&mut V> {
        self.rib.get(prefix.into_prefix()).map(|at| self.values.get_mut(at))
    }

    /// Returns whether exactly this prefix is present.
    #[must_use]
    pub fn contains(&self, prefix: impl IntoPrefix<K>) -> bool {
        self.rib.contains(prefix.into_prefix())
    }

    /// Returns the value of the longest prefix that contains `address`.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl IntoKey<K>) -> Option<&V> {
        self.rib.lookup(address).map(|at| self.values.get(at))
    }

    /// Returns the value of the longest prefix that contains `address`, to change it.
    #[must_use]
    pub fn lookup_mut(&mut self, address: impl IntoKey<K>) -> Option<&mut V> {
        self.rib.lookup(address).map(|at| self.values.get_mut(at))
    }

    /// Returns the longest prefix that contains `address`, and its value.
    #[must_use]
    pub fn lookup_prefix(&self, address: impl IntoKey<K>) -> Option<(Prefix<K>, &V)> {
        self.rib.lookup_prefix(address).map(|route| self.item(route))
    }

    /// Looks up `keys`, writing the value of `keys[i]` to `results[i]`. Allocates nothing.
    ///
    /// For many calls over a map that does not change, [`compile`](Self::compile) is many times as fast.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_batch<'a>(&'a self, keys: &[K], results: &mut [Option<&'a V>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        for (&key, result) in keys.iter().zip(results) {
            *result = self.lookup(key);
        }
    }

    /// Returns the longest prefix that contains `prefix`, apart from `prefix` itself, and its value.
    #[must_use]
    pub fn parent(&self, prefix: impl IntoPrefix<K>) -> Option<(Prefix<K>, &V)> {
        self.rib.parent(prefix.into_prefix()).map(|route| self.item(route))
    }

    /// Returns all prefixes that contain an address or a prefix, itself included, with their values, shortest first.
    #[must_use]
    pub fn covers(&self, prefix: impl IntoPrefix<K>) -> Covers<'_, K, V> {
        Covers { routes: self.rib.covers(prefix.into_prefix()), values: &self.values }
    }

    /// Calls `each` for all prefixes that contain each address, with the index of the address: address by address,
    /// shortest prefix first. Allocates nothing.
    ///
    /// For many calls over a map that does not change, [`compile_covers`](Self::compile_covers) is faster.
    pub fn covers_batch<'a>(&'a self, keys: &[K], mut each: impl FnMut(usize, Prefix<K>, &'a V)) {
        // A block on the stack, because the tree's batch takes prefixes and the caller has keys.
        let mut hosts = [Prefix::ALL; BLOCK];
        for (number, block) in keys.chunks(BLOCK).enumerate() {
            for (host, &key) in hosts.iter_mut().zip(block) {
                *host = Prefix::host(key);
            }
            self.rib.covers_batch(&hosts[..block.len()], |at, route| {
                each(number * BLOCK + at, route.prefix, self.values.get(route.next_hop));
            });
        }
    }

    /// Like [`covers_batch`](Self::covers_batch), for prefixes: those that contain all of each, itself included.
    pub fn covers_prefixes<'a>(
        &'a self,
        prefixes: &[Prefix<K>],
        mut each: impl FnMut(usize, Prefix<K>, &'a V),
    ) {
        self.rib.covers_batch(prefixes, |at, route| each(at, route.prefix, self.values.get(route.next_hop)));
    }

    /// Returns the prefixes inside `prefix`, itself included, with their values, in order.
    #[must_use]
    pub fn subnets(&self, prefix: impl IntoPrefix<K>) -> Iter<'_, K, V> {
        Iter { routes: self.rib.subnets(prefix.into_prefix()), values: &self.values }
    }

    /// Returns whether any prefix has an address in common with `prefix`.
    #[must_use]
    pub fn overlaps(&self, prefix: impl IntoPrefix<K>) -> bool {
        self.rib.overlaps(prefix.into_prefix())
    }

    /// Returns all prefixes and values in order: by address, then by length.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { routes: self.rib.iter(), values: &self.values }
    }

    /// Returns the prefixes after `prefix` in the order of [`iter`](Self::iter), whether it is there or not, with their values.
    #[must_use]
    pub fn iter_after(&self, prefix: impl IntoPrefix<K>) -> Iter<'_, K, V> {
        Iter { routes: self.rib.iter_after(prefix.into_prefix()), values: &self.values }
    }

    /// As [`iter`](Self::iter), with values to change. Allocates a pointer a value, which
    /// [`values_mut`](Self::values_mut) does not.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        // A list by slot, because routes do not come in the order of slots.
        IterMut { routes: self.rib.iter(), values: self.values.slots_mut().collect() }
    }

    /// Returns all prefixes in order.
    pub fn keys(&self) -> impl Iterator<Item = Prefix<K>> {
        self.rib.iter().map(|route| route.prefix)
    }

    /// Returns all values in the order of their prefixes.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns all values to change, in no particular order. Allocates nothing.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.slots_mut().flatten()
    }

    /// Keeps the prefixes for which `keep` returns true, called in order, and removes the others.
    pub fn retain(&mut self, mut keep: impl FnMut(Prefix<K>, &mut V) -> bool) {
        // Removed after the walk, because the iterator borrows the tree.
        let mut gone = Vec::new();
        for route in self.rib.iter() {
            if !keep(route.prefix, self.values.get_mut(route.next_hop)) {
                gone.push(route.prefix);
            }
        }
        for prefix in gone {
            self.remove(prefix);
        }
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

    /// Replaces all prefixes and values by these. The limits stay; while the call lasts, the map before and the new one each stay within
    /// them. Takes as long as to make a new one of them.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn replace<P: Into<Prefix<K>>>(&mut self, entries: impl IntoIterator<Item = (P, V)>) {
        self.try_replace(entries).unwrap_or_else(|error| refused(&error));
    }

    /// Like [`replace`](Self::replace), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the map is unchanged.
    pub fn try_replace<P: Into<Prefix<K>>>(
        &mut self,
        entries: impl IntoIterator<Item = (P, V)>,
    ) -> Result<(), RibError> {
        // The new map is complete before it takes the place of the old one, so that a failure changes nothing.
        *self = Self::try_from_entries(entries, self.limits())?;
        Ok(())
    }

    /// Removes all prefixes and keeps the memory.
    pub fn clear(&mut self) {
        self.rib.clear();
        self.values.clear();
    }

    /// Frees spare capacity.
    pub fn shrink(&mut self) {
        self.rib.shrink();
        self.values.shrink();
    }

    /// Returns the memory that the map occupies. Memory that values allocate themselves is not included, because the map
    /// cannot see it.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.rib.memory() + self.values.memory()
    }

    /// Returns the prefixes as the routing table that the map keeps them in. Next hops are numbers of the map's own,
    /// which change with it.
    #[must_use]
    pub fn rib(&self) -> &Rib<K> {
        &self.rib
    }

    /// Checks the invariants of the whole map: those of its table, and that every prefix has a value of its own and every
    /// value a prefix.
    ///
    /// # Errors
    /// The first broken invariant, and the node or slot.
    pub fn check(&self) -> Result<(), CheckError> {
        self.rib.check()?;
        let mut owned: Vec<_> = self.values.slots().map(|value| value.is_some()).collect();
        for route in self.rib.iter() {
            let at = super::slab::index(route.next_hop);
            // Taken, so that a second prefix with the same slot is found too.
            let is_owned = owned.get_mut(at).is_some_and(core::mem::take);
            CheckError::unless(is_owned, "every prefix has a value of its own", at)?;
        }
        match owned.iter().position(|&is_left| is_left) {
            None => Ok(()),
            Some(at) => Err(CheckError::new("every value has a prefix", at)),
        }
    }

    /// Returns the limits of the prefixes, which are those of the values too.
    pub(super) fn limits(&self) -> Limits {
        self.values.limits()
    }

    fn item(&self, route: Route<K>) -> (Prefix<K>, &V) {
        (route.prefix, self.values.get(route.next_hop))
    }
}

/// Addresses that are converted at a time.
const BLOCK: usize = 256;
