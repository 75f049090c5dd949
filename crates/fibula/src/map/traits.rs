//! The standard library's traits for maps.

use core::fmt;

use crate::net::{IntoPrefix, Key, Prefix};

use super::iter::{IntoIter, Iter, IterMut};
use super::prefix_map::PrefixMap;
use super::slab::index;

impl<K: Key, V> Default for PrefixMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Clone> Clone for PrefixMap<K, V> {
    fn clone(&self) -> Self {
        Self { rib: self.rib.clone(), values: self.values.clone() }
    }
}

/// Equal if the same prefixes have equal values.
impl<K: Key, V: PartialEq> PartialEq for PrefixMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        // Lengths first: maps of different sizes need no walk.
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: Key, V: Eq> Eq for PrefixMap<K, V> {}

/// Shows prefixes in their usual notation, with their values.
impl<K: Key, V: fmt::Debug> fmt::Debug for PrefixMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_map(f, self.iter())
    }
}

pub(super) fn debug_map<P: fmt::Display, V: fmt::Debug>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = (P, V)>,
) -> fmt::Result {
    let mut map = f.debug_map();
    for (prefix, value) in items {
        map.entry(&format_args!("{prefix}"), &value);
    }
    map.finish()
}

pub(super) fn debug_set<P: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = P>,
) -> fmt::Result {
    let mut set = f.debug_set();
    for prefix in items {
        set.entry(&format_args!("{prefix}"));
    }
    set.finish()
}

/// The last value of a prefix counts. Panics when memory runs out, as [`PrefixMap::insert`].
impl<K: Key, V, P: IntoPrefix<K>> Extend<(P, V)> for PrefixMap<K, V> {
    fn extend<I: IntoIterator<Item = (P, V)>>(&mut self, items: I) {
        for (prefix, value) in items {
            self.insert(prefix, value);
        }
    }
}

/// As [`Extend`] of an empty map.
impl<K: Key, V, P: IntoPrefix<K>> FromIterator<(P, V)> for PrefixMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (P, V)>>(items: I) -> Self {
        let mut map = Self::new();
        map.extend(items);
        map
    }
}

/// As [`Extend`] of an empty map.
impl<K: Key, V, P: IntoPrefix<K>, const COUNT: usize> From<[(P, V); COUNT]> for PrefixMap<K, V> {
    fn from(items: [(P, V); COUNT]) -> Self {
        items.into_iter().collect()
    }
}

impl<'a, K: Key, V> IntoIterator for &'a PrefixMap<K, V> {
    type Item = (Prefix<K>, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K: Key, V> IntoIterator for &'a mut PrefixMap<K, V> {
    type Item = (Prefix<K>, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}

/// In order. Allocates a list of all prefixes and values.
impl<K: Key, V> IntoIterator for PrefixMap<K, V> {
    type Item = (Prefix<K>, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        let Self { rib, values } = self;
        // A list by slot, because routes do not come in the order of slots.
        let mut values: Vec<_> = values.into_slots().collect();
        let mut items = Vec::with_capacity(rib.len());
        for route in &rib {
            let value = values[index(route.next_hop)].take();
            items.push((route.prefix, value.expect("every prefix has a value of its own")));
        }
        IntoIter { items: items.into_iter() }
    }
}
