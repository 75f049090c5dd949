//! The place of one prefix in a map.

use core::fmt;

use crate::net::{IntoPrefix, Key, NextHop, Prefix, Route};
use crate::rib::RibError;

use super::prefix_map::{PrefixMap, refused};

/// The place of a prefix in a map, whether the prefix is present or not: [`PrefixMap::entry`] returns it for a [`Prefix`],
/// [`IpPrefixMap::entry`](super::IpPrefixMap::entry) for an [`IpPrefix`](crate::net::IpPrefix).
///
/// Methods that add a value panic when memory runs out, because a map of the standard library does so too.
/// [`try_insert`](Self::try_insert) and [`try_or_insert_with`](Self::try_or_insert_with) return an error instead.
pub struct Entry<'a, P: EntryPrefix, V> {
    pub(super) map: &'a mut P::Map<V>,
    pub(super) prefix: P,
    /// The place of the value in the map's list.
    pub(super) at: Option<NextHop>,
}

/// The prefix of an entry: it says which map has the entry.
pub trait EntryPrefix: Copy + fmt::Display {
    /// The map.
    type Map<V>;

    /// Returns the value at its place.
    fn value<V>(map: &Self::Map<V>, prefix: Self, at: NextHop) -> &V;

    /// Returns the value at its place, to change it.
    fn value_mut<V>(map: &mut Self::Map<V>, prefix: Self, at: NextHop) -> &mut V;

    /// Adds a prefix that is not present.
    fn add<V>(map: &mut Self::Map<V>, prefix: Self, value: V) -> Result<&mut V, RibError>;

    /// Removes a prefix that is present.
    fn take<V>(map: &mut Self::Map<V>, prefix: Self, at: NextHop) -> V;
}

impl<K: Key> EntryPrefix for Prefix<K> {
    type Map<V> = PrefixMap<K, V>;

    fn value<V>(map: &PrefixMap<K, V>, _: Self, at: NextHop) -> &V {
        map.values.get(at)
    }

    fn value_mut<V>(map: &mut PrefixMap<K, V>, _: Self, at: NextHop) -> &mut V {
        map.values.get_mut(at)
    }

    fn add<V>(map: &mut PrefixMap<K, V>, prefix: Self, value: V) -> Result<&mut V, RibError> {
        let PrefixMap { rib, values } = map;
        // The place is reserved first, because a route without its value would be found by lookups.
        values.reserve_one().map_err(RibError)?;
        rib.insert(Route::new(prefix, values.next()))?;
        let at = values.put(value);
        Ok(values.get_mut(at))
    }

    fn take<V>(map: &mut PrefixMap<K, V>, prefix: Self, at: NextHop) -> V {
        map.rib.remove(prefix);
        map.values.take(at)
    }
}

impl<K: Key, V> PrefixMap<K, V> {
    /// Returns the place of exactly this prefix, to look at it and change it with one call each.
    ///
    /// ```
    /// # use fibula::{ipnet::Ipv4Net, map::PrefixMap};
    /// let mut seen = PrefixMap::<u32, u64>::new();
    /// for net in ["192.0.2.0/24", "198.51.100.0/24", "192.0.2.0/24"] {
    ///     *seen.entry(net.parse::<Ipv4Net>()?).or_default() += 1;
    /// }
    /// assert_eq!(seen.values().copied().collect::<Vec<_>>(), [2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn entry(&mut self, prefix: impl IntoPrefix<K>) -> Entry<'_, Prefix<K>, V> {
        let prefix = prefix.into_prefix();
        let at = self.rib.get(prefix);
        Entry { map: self, prefix, at }
    }
}

impl<'a, P: EntryPrefix, V> Entry<'a, P, V> {
    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> P {
        self.prefix
    }

    /// Returns the value; `None` if the prefix is not present.
    #[must_use]
    pub fn get(&self) -> Option<&V> {
        self.at.map(|at| P::value(self.map, self.prefix, at))
    }

    /// Returns the value, to change it; `None` if the prefix is not present.
    pub fn get_mut(&mut self) -> Option<&mut V> {
        self.at.map(|at| P::value_mut(self.map, self.prefix, at))
    }

    /// Calls `change` with the value, if there is one.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        self.get_mut().map(change);
        self
    }

    /// Returns the value, after inserting `value` if there was none.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// Returns the value, after inserting the value that `value` returns if there was none.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        self.try_or_insert_with(value).unwrap_or_else(|error| refused(&error))
    }

    /// Returns the value, after inserting the default one if there was none.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Like [`or_insert_with`](Self::or_insert_with), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the map is unchanged, and the value is dropped.
    pub fn try_or_insert_with(self, value: impl FnOnce() -> V) -> Result<&'a mut V, RibError> {
        match self.at {
            Some(at) => Ok(P::value_mut(self.map, self.prefix, at)),
            // Arguments come first: a panic in `value` leaves the map as it was.
            None => P::add(self.map, self.prefix, value()),
        }
    }

    /// Puts the value in the place of the one before, and returns that one.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn insert(self, value: V) -> Option<V> {
        self.try_insert(value).unwrap_or_else(|error| refused(&error))
    }

    /// Like [`insert`](Self::insert), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the map is unchanged, and `value` is dropped.
    pub fn try_insert(self, value: V) -> Result<Option<V>, RibError> {
        match self.at {
            // In place: the slot and the route stay, so this cannot fail.
            Some(at) => Ok(Some(core::mem::replace(P::value_mut(self.map, self.prefix, at), value))),
            None => P::add(self.map, self.prefix, value).map(|_| None),
        }
    }

    /// Removes the prefix and returns its value; `None` if it was not present.
    pub fn remove(self) -> Option<V> {
        self.at.map(|at| P::take(self.map, self.prefix, at))
    }
}

impl<P: EntryPrefix, V: fmt::Debug> fmt::Debug for Entry<'_, P, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({}: {:?})", self.prefix, self.get())
    }
}
