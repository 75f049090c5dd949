//! The map of both families.

use core::fmt;
use core::hash::Hash;
use core::net::IpAddr;

use crate::check::CheckError;
use crate::fib::BuildError;
use crate::memory::{Limits, Memory};
use crate::net::{IntoIpAddr, IntoIpPrefix, IpPrefix, NextHop, Prefix};
use crate::rib::RibError;

use super::compiled::CompiledMap;
use super::entry::{Entry, EntryPrefix};
use super::prefix_map::{PrefixMap, refused};

/// A map from prefixes of both families to values: a [`PrefixMap`] for each. An address is looked up in the map of its
/// family, an IPv4-mapped IPv6 address in that of IPv6.
///
/// Prefixes are given as [`IpPrefix`], as any type of `ipnet` or as addresses.
///
/// ```
/// use std::net::IpAddr;
///
/// use fibula::ipnet::IpNet;
/// use fibula::map::IpPrefixMap;
///
/// let mut countries = IpPrefixMap::new();
/// countries.insert("192.0.2.0/24".parse::<IpNet>()?, "NZ");
/// countries.insert("2001:db8::/32".parse::<IpNet>()?, "PT");
/// assert_eq!(countries.lookup("2001:db8::1".parse::<IpAddr>()?), Some(&"PT"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// As in [`PrefixMap`], methods panic when memory runs out, except those whose names begin with `try_`. For the operations that
/// are not here, use the fields `v4` and `v6`, which are the maps of the families.
pub struct IpPrefixMap<V> {
    /// The IPv4 prefixes.
    pub v4: PrefixMap<u32, V>,
    /// The IPv6 prefixes.
    pub v6: PrefixMap<u128, V>,
}

/// A compiled map of each family; [`IpPrefixMap::compile`] returns it. Batches are looked up in the map of their family.
#[derive(Debug)]
pub struct CompiledIpMap<V> {
    /// The IPv4 prefixes.
    pub v4: CompiledMap<u32, V>,
    /// The IPv6 prefixes.
    pub v6: CompiledMap<u128, V>,
}

/// Makes the same call for the map of the prefix's or address's family.
macro_rules! of_family {
    ($of:ident($value:expr, $into:ident), $maps:expr, |$key:ident, $map:ident| $call:expr) => {
        match $value.$into() {
            $of::V4($key) => {
                let $map = &$maps.v4;
                $call
            }
            $of::V6($key) => {
                let $map = &$maps.v6;
                $call
            }
        }
    };
}

impl<V> IpPrefixMap<V> {
    /// Returns an empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::within(Limits::default())
    }

    /// Returns an empty map; the prefixes and the values of each family each stay within `limits`.
    #[must_use]
    pub fn within(limits: Limits) -> Self {
        Self { v4: PrefixMap::within(limits), v6: PrefixMap::within(limits) }
    }

    /// Returns a map of these prefixes and values, which each stay within `limits`, by family. The last value of a prefix counts.
    ///
    /// # Panics
    /// When memory runs out.
    #[must_use]
    pub fn from_entries<P: Into<IpPrefix>>(
        entries: impl IntoIterator<Item = (P, V)>,
        limits: Limits,
    ) -> Self {
        Self::try_from_entries(entries, limits).unwrap_or_else(|error| refused(&error))
    }

    /// Like [`from_entries`](Self::from_entries), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn try_from_entries<P: Into<IpPrefix>>(
        entries: impl IntoIterator<Item = (P, V)>,
        limits: Limits,
    ) -> Result<Self, RibError> {
        let mut made = Self::within(limits);
        for (prefix, value) in entries {
            made.try_insert(prefix, value)?;
        }
        Ok(made)
    }

    /// Changes the limits of both families, which apply to later inserts only.
    pub fn set_limits(&mut self, limits: Limits) {
        self.v4.set_limits(limits);
        self.v6.set_limits(limits);
    }

    /// Maps `prefix` to `value`. Returns the value that it had before.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn insert(&mut self, prefix: impl IntoIpPrefix, value: V) -> Option<V> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.v4.insert(prefix, value),
            IpPrefix::V6(prefix) => self.v6.insert(prefix, value),
        }
    }

    /// Like [`insert`](Self::insert), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the map is unchanged, and `value` is dropped.
    pub fn try_insert(&mut self, prefix: impl IntoIpPrefix, value: V) -> Result<Option<V>, RibError> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.v4.try_insert(prefix, value),
            IpPrefix::V6(prefix) => self.v6.try_insert(prefix, value),
        }
    }

    /// Removes the prefix and returns its value, if it was present.
    pub fn remove(&mut self, prefix: impl IntoIpPrefix) -> Option<V> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.v4.remove(prefix),
            IpPrefix::V6(prefix) => self.v6.remove(prefix),
        }
    }

    /// Removes the prefixes inside `prefix`, itself included. Returns how many there were.
    pub fn remove_subnets(&mut self, prefix: impl IntoIpPrefix) -> usize {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.v4.remove_subnets(prefix),
            IpPrefix::V6(prefix) => self.v6.remove_subnets(prefix),
        }
    }

    /// Returns the value of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: impl IntoIpPrefix) -> Option<&V> {
        of_family!(IpPrefix(prefix, into_ip_prefix), self, |prefix, map| map.get(prefix))
    }

    /// Returns the value of exactly this prefix, to change it.
    #[must_use]
    pub fn get_mut(&mut self, prefix: impl IntoIpPrefix) -> Option<&mut V> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.v4.get_mut(prefix),
            IpPrefix::V6(prefix) => self.v6.get_mut(prefix),
        }
    }

    /// Returns whether exactly this prefix is present.
    #[must_use]
    pub fn contains(&self, prefix: impl IntoIpPrefix) -> bool {
        self.get(prefix).is_some()
    }

    /// Returns the place of exactly this prefix, to look at it and change it with one call each.
    pub fn entry(&mut self, prefix: impl IntoIpPrefix) -> Entry<'_, IpPrefix, V> {
        let prefix = prefix.into_ip_prefix();
        let at = match prefix {
            IpPrefix::V4(prefix) => self.v4.rib.get(prefix),
            IpPrefix::V6(prefix) => self.v6.rib.get(prefix),
        };
        Entry { map: self, prefix, at }
    }

    /// Returns the value of the longest prefix that contains `address`.
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<&V> {
        of_family!(IpAddr(address, into_ip_addr), self, |address, map| map.lookup(address))
    }

    /// Returns the value of the longest prefix that contains `address`, to change it.
    #[must_use]
    pub fn lookup_mut(&mut self, address: impl IntoIpAddr) -> Option<&mut V> {
        match address.into_ip_addr() {
            IpAddr::V4(address) => self.v4.lookup_mut(address),
            IpAddr::V6(address) => self.v6.lookup_mut(address),
        }
    }

    /// Returns the longest prefix that contains `address`, and its value.
    #[must_use]
    pub fn lookup_prefix(&self, address: impl IntoIpAddr) -> Option<(IpPrefix, &V)> {
        of_family!(IpAddr(address, into_ip_addr), self, |address, map| map.lookup_prefix(address).map(either))
    }

    /// Looks up addresses of either family, writing the value of `addresses[i]` to `results[i]`. Allocates nothing.
    ///
    /// For many calls over a map that does not change, batches of one family in a compiled map are many times as fast:
    /// [`compile`](Self::compile).
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_batch<'a>(&'a self, addresses: &[IpAddr], results: &mut [Option<&'a V>]) {
        assert_eq!(addresses.len(), results.len(), "a batch needs one result an address");
        for (&address, result) in addresses.iter().zip(results) {
            *result = self.lookup(address);
        }
    }

    /// Returns the longest prefix that contains `prefix`, apart from `prefix` itself, and its value.
    #[must_use]
    pub fn parent(&self, prefix: impl IntoIpPrefix) -> Option<(IpPrefix, &V)> {
        of_family!(IpPrefix(prefix, into_ip_prefix), self, |prefix, map| map.parent(prefix).map(either))
    }

    /// Returns all prefixes that contain an address or a prefix, itself included, with their values, shortest first.
    pub fn covers(&self, prefix: impl IntoIpPrefix) -> impl Iterator<Item = (IpPrefix, &V)> {
        let (v4, v6) = match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => (Some(self.v4.covers(prefix)), None),
            IpPrefix::V6(prefix) => (None, Some(self.v6.covers(prefix))),
        };
        // One of the two is `None`. As optional iterators, both families have one type.
        v4.into_iter().flatten().map(either).chain(v6.into_iter().flatten().map(either))
    }

    /// Returns the prefixes inside `prefix`, itself included, with their values, in order.
    pub fn subnets(&self, prefix: impl IntoIpPrefix) -> impl Iterator<Item = (IpPrefix, &V)> {
        let (v4, v6) = match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => (Some(self.v4.subnets(prefix)), None),
            IpPrefix::V6(prefix) => (None, Some(self.v6.subnets(prefix))),
        };
        v4.into_iter().flatten().map(either).chain(v6.into_iter().flatten().map(either))
    }

    /// Returns whether any prefix has an address in common with `prefix`.
    #[must_use]
    pub fn overlaps(&self, prefix: impl IntoIpPrefix) -> bool {
        of_family!(IpPrefix(prefix, into_ip_prefix), self, |prefix, map| map.overlaps(prefix))
    }

    /// Returns all prefixes and values in order, IPv4 first.
    pub fn iter(&self) -> impl Iterator<Item = (IpPrefix, &V)> {
        self.v4.iter().map(either).chain(self.v6.iter().map(either))
    }

    /// Returns the prefixes after `prefix` in the order of [`iter`](Self::iter), whether it is there or not, with their values.
    pub fn iter_after(&self, prefix: impl IntoIpPrefix) -> impl Iterator<Item = (IpPrefix, &V)> {
        let (v4, v6) = match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => (Some(self.v4.iter_after(prefix)), self.v6.iter()),
            IpPrefix::V6(prefix) => (None, self.v6.iter_after(prefix)),
        };
        v4.into_iter().flatten().map(either).chain(v6.map(either))
    }

    /// As [`iter`](Self::iter), with values to change. Allocates a pointer a value.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (IpPrefix, &mut V)> {
        self.v4.iter_mut().map(either).chain(self.v6.iter_mut().map(either))
    }

    /// Returns all prefixes in order, IPv4 first.
    pub fn keys(&self) -> impl Iterator<Item = IpPrefix> {
        self.iter().map(|(prefix, _)| prefix)
    }

    /// Returns all values in the order of their prefixes.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.v4.values().chain(self.v6.values())
    }

    /// Returns all values to change, in no particular order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.v4.values_mut().chain(self.v6.values_mut())
    }

    /// Keeps the prefixes for which `keep` returns true, called in order, and removes the others.
    pub fn retain(&mut self, mut keep: impl FnMut(IpPrefix, &mut V) -> bool) {
        self.v4.retain(|prefix, value| keep(prefix.into(), value));
        self.v6.retain(|prefix, value| keep(prefix.into(), value));
    }

    /// Merges prefixes with equal values where no address gets another value by it, as [`PrefixMap::aggregate`]. Returns how
    /// many prefixes fewer there are.
    pub fn aggregate(&mut self) -> usize
    where
        V: PartialEq,
    {
        self.v4.aggregate() + self.v6.aggregate()
    }

    /// Compiles the maps of both families, as [`PrefixMap::compile`].
    ///
    /// # Errors
    /// When memory runs out.
    pub fn compile(&self) -> Result<CompiledIpMap<V>, BuildError>
    where
        V: Clone + Eq + Hash,
    {
        Ok(CompiledIpMap { v4: self.v4.compile()?, v6: self.v6.compile()? })
    }

    /// Returns the number of prefixes of both families.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns whether there are no prefixes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Replaces all prefixes and values by these. The limits stay; while the call lasts, the map before and the new one each stay within
    /// them. Takes as long as to make a new one of them.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn replace<P: Into<IpPrefix>>(&mut self, entries: impl IntoIterator<Item = (P, V)>) {
        self.try_replace(entries).unwrap_or_else(|error| refused(&error));
    }

    /// Like [`replace`](Self::replace), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the map is unchanged.
    pub fn try_replace<P: Into<IpPrefix>>(
        &mut self,
        entries: impl IntoIterator<Item = (P, V)>,
    ) -> Result<(), RibError> {
        // Both families are complete before either takes the place of the old one, so that a failure changes nothing.
        let mut made =
            Self { v4: PrefixMap::within(self.v4.limits()), v6: PrefixMap::within(self.v6.limits()) };
        for (prefix, value) in entries {
            made.try_insert(prefix, value)?;
        }
        *self = made;
        Ok(())
    }

    /// Removes all prefixes and keeps the memory.
    pub fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
    }

    /// Frees spare capacity.
    pub fn shrink(&mut self) {
        self.v4.shrink();
        self.v6.shrink();
    }

    /// Returns the memory that both maps occupy. Memory that values allocate themselves is not included.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.v4.memory() + self.v6.memory()
    }

    /// Checks the invariants of both maps, as [`PrefixMap::check`].
    ///
    /// # Errors
    /// The first broken invariant, and the node or slot.
    pub fn check(&self) -> Result<(), CheckError> {
        self.v4.check()?;
        self.v6.check()
    }
}

impl<V> CompiledIpMap<V> {
    /// Returns the value of the longest prefix that contains `address`.
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<&V> {
        of_family!(IpAddr(address, into_ip_addr), self, |address, map| map.lookup(address))
    }

    /// Returns the memory that both maps take.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.v4.memory() + self.v6.memory()
    }
}

impl EntryPrefix for IpPrefix {
    type Map<V> = IpPrefixMap<V>;

    fn value<V>(map: &IpPrefixMap<V>, prefix: Self, at: NextHop) -> &V {
        match prefix {
            Self::V4(prefix) => Prefix::value(&map.v4, prefix, at),
            Self::V6(prefix) => Prefix::value(&map.v6, prefix, at),
        }
    }

    fn value_mut<V>(map: &mut IpPrefixMap<V>, prefix: Self, at: NextHop) -> &mut V {
        match prefix {
            Self::V4(prefix) => Prefix::value_mut(&mut map.v4, prefix, at),
            Self::V6(prefix) => Prefix::value_mut(&mut map.v6, prefix, at),
        }
    }

    fn add<V>(map: &mut IpPrefixMap<V>, prefix: Self, value: V) -> Result<&mut V, RibError> {
        match prefix {
            Self::V4(prefix) => Prefix::add(&mut map.v4, prefix, value),
            Self::V6(prefix) => Prefix::add(&mut map.v6, prefix, value),
        }
    }

    fn take<V>(map: &mut IpPrefixMap<V>, prefix: Self, at: NextHop) -> V {
        match prefix {
            Self::V4(prefix) => Prefix::take(&mut map.v4, prefix, at),
            Self::V6(prefix) => Prefix::take(&mut map.v6, prefix, at),
        }
    }
}

fn either<K, R>((prefix, value): (Prefix<K>, R)) -> (IpPrefix, R)
where
    IpPrefix: From<Prefix<K>>,
{
    (prefix.into(), value)
}

impl<V> Default for IpPrefixMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Clone> Clone for IpPrefixMap<V> {
    fn clone(&self) -> Self {
        Self { v4: self.v4.clone(), v6: self.v6.clone() }
    }
}

/// Equal if the same prefixes have equal values.
impl<V: PartialEq> PartialEq for IpPrefixMap<V> {
    fn eq(&self, other: &Self) -> bool {
        self.v4 == other.v4 && self.v6 == other.v6
    }
}

impl<V: Eq> Eq for IpPrefixMap<V> {}

/// Shows prefixes in their usual notation, with their values.
impl<V: fmt::Debug> fmt::Debug for IpPrefixMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::traits::debug_map(f, self.iter())
    }
}

/// The last value of a prefix counts. Panics when memory runs out, as [`IpPrefixMap::insert`].
impl<V, P: IntoIpPrefix> Extend<(P, V)> for IpPrefixMap<V> {
    fn extend<I: IntoIterator<Item = (P, V)>>(&mut self, items: I) {
        for (prefix, value) in items {
            self.insert(prefix, value);
        }
    }
}

/// As [`Extend`] of an empty map.
impl<V, P: IntoIpPrefix> FromIterator<(P, V)> for IpPrefixMap<V> {
    fn from_iter<I: IntoIterator<Item = (P, V)>>(items: I) -> Self {
        let mut map = Self::new();
        map.extend(items);
        map
    }
}

/// As [`Extend`] of an empty map.
impl<V, P: IntoIpPrefix, const COUNT: usize> From<[(P, V); COUNT]> for IpPrefixMap<V> {
    fn from(items: [(P, V); COUNT]) -> Self {
        items.into_iter().collect()
    }
}

/// In order, IPv4 first. Allocates a list of all prefixes and values.
impl<V> IntoIterator for IpPrefixMap<V> {
    type Item = (IpPrefix, V);
    type IntoIter = std::vec::IntoIter<(IpPrefix, V)>;

    fn into_iter(self) -> Self::IntoIter {
        // Collected, because `IntoIter` has to be a type with a name, and an iterator with closures has none.
        let all: Vec<_> = self.v4.into_iter().map(either).chain(self.v6.into_iter().map(either)).collect();
        all.into_iter()
    }
}
