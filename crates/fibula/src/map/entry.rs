//! The place of one prefix in a map.

use core::fmt;

use crate::net::{IntoPrefix, Key, NextHop, Prefix, Route};
use crate::rib::RibError;

use super::prefix_map::{PrefixMap, refused};

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
    pub fn entry(&mut self, prefix: impl IntoPrefix<K>) -> Entry<'_, K, V> {
        let prefix = prefix.into_prefix();
        match self.rib.get(prefix) {
            Some(at) => Entry::Occupied(OccupiedEntry { map: self, prefix, at }),
            None => Entry::Vacant(VacantEntry { map: self, prefix }),
        }
    }
}

/// The place of a prefix in a [`PrefixMap`], which [`PrefixMap::entry`] returns.
///
/// Methods that add a value panic when memory runs out; [`VacantEntry::try_insert`] returns an error.
#[derive(Debug)]
pub enum Entry<'a, K: Key, V> {
    /// The prefix is present.
    Occupied(OccupiedEntry<'a, K, V>),
    /// The prefix is not present.
    Vacant(VacantEntry<'a, K, V>),
}

/// The place of a prefix that is present.
pub struct OccupiedEntry<'a, K, V> {
    pub(super) map: &'a mut PrefixMap<K, V>,
    pub(super) prefix: Prefix<K>,
    pub(super) at: NextHop,
}

/// The place of a prefix that is not present.
pub struct VacantEntry<'a, K, V> {
    pub(super) map: &'a mut PrefixMap<K, V>,
    pub(super) prefix: Prefix<K>,
}

impl<'a, K: Key, V> Entry<'a, K, V> {
    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> Prefix<K> {
        match self {
            Self::Occupied(entry) => entry.prefix,
            Self::Vacant(entry) => entry.prefix,
        }
    }

    /// Returns the value, after inserting `value` if there was none.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// Returns the value, after inserting what `value` returns if there was none.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => entry.insert(value()),
        }
    }

    /// Returns the value, after inserting the default one if there was none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Calls `change` with the value, if there is one.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}

impl<'a, K: Key, V> OccupiedEntry<'a, K, V> {
    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> Prefix<K> {
        self.prefix
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> &V {
        self.map.values.get(self.at)
    }

    /// Returns the value, to change it.
    pub fn get_mut(&mut self) -> &mut V {
        self.map.values.get_mut(self.at)
    }

    /// Returns the value, to change it for as long as the map is borrowed.
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        self.map.values.get_mut(self.at)
    }

    /// Replaces the value and returns the one before.
    pub fn insert(&mut self, value: V) -> V {
        core::mem::replace(self.get_mut(), value)
    }

    /// Removes the prefix and returns its value.
    pub fn remove(self) -> V {
        self.map.rib.remove(self.prefix);
        self.map.values.take(self.at)
    }
}

impl<'a, K: Key, V> VacantEntry<'a, K, V> {
    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> Prefix<K> {
        self.prefix
    }

    /// Inserts the value and returns it.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn insert(self, value: V) -> &'a mut V {
        self.try_insert(value).unwrap_or_else(|error| refused(&error))
    }

    /// Like [`insert`](Self::insert), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the map is unchanged, and `value` is dropped.
    pub fn try_insert(self, value: V) -> Result<&'a mut V, RibError> {
        let PrefixMap { rib, values } = self.map;
        values.reserve_one().map_err(RibError)?;
        rib.insert(Route::new(self.prefix, values.next()))?;
        let at = values.put(value);
        Ok(values.get_mut(at))
    }
}

impl<K: Key, V: fmt::Debug> fmt::Debug for OccupiedEntry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OccupiedEntry({}: {:?})", self.prefix, self.get())
    }
}

impl<K: Key, V> fmt::Debug for VacantEntry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VacantEntry({})", self.prefix)
    }
}
