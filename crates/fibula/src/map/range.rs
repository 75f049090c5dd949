//! Ranges of addresses as keys.

use core::ops::RangeInclusive;

use crate::net::{IntoKey, Key, NextHop, Route, prefixes_of};
use crate::rib::RibError;

use super::prefix_map::{PrefixMap, refused};
use super::slab::{index, number};

impl<K: Key, V: Clone> PrefixMap<K, V> {
    /// Maps all addresses from the first to the last to `value`, as the [fewest prefixes](prefixes_of) that are that range.
    /// Returns the number of prefixes, 0 if the first address is after the last.
    ///
    /// As with [`insert`](Self::insert), longer prefixes inside the range keep their values;
    /// [`remove_subnets`](Self::remove_subnets) removes them.
    ///
    /// # Panics
    /// When memory runs out; the map is unchanged.
    pub fn insert_range<A: IntoKey<K>>(&mut self, addresses: RangeInclusive<A>, value: V) -> usize {
        self.try_insert_range(addresses, value).unwrap_or_else(|error| refused(&error))
    }

    /// Like [`insert_range`](Self::insert_range), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When memory runs out; the map is unchanged.
    pub fn try_insert_range<A: IntoKey<K>>(
        &mut self,
        addresses: RangeInclusive<A>,
        value: V,
    ) -> Result<usize, RibError> {
        let prefixes: Vec<_> = prefixes_of(addresses).collect();
        self.values.reserve(prefixes.len()).map_err(RibError)?;
        // All or none: the table takes a batch whole, with slots after the last one, for which there is room.
        let first = self.values.end();
        let changes: Vec<_> = prefixes
            .iter()
            .enumerate()
            .map(|(at, &prefix)| crate::net::Change::Insert(Route::new(prefix, number(first + at))))
            .collect();
        let mut log = Vec::new();
        self.rib.apply_logged(&changes, &mut log)?;
        // In the order in which the changes above numbered them.
        for _ in &prefixes {
            self.values.push(value.clone());
        }
        let replaced = log.iter().filter_map(|before| before.next_hop);
        replaced.for_each(|old: NextHop| {
            debug_assert!(index(old) < first, "the prefixes of a range are different");
            self.values.take(old);
        });
        Ok(prefixes.len())
    }
}
