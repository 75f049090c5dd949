//! Ranges of addresses as prefixes.

use core::ops::RangeInclusive;

use crate::net::{IntoKey, Key, NextHop, Prefix, Route};
use crate::rib::RibError;

use super::prefix_map::{PrefixMap, refused};
use super::slab::{index, number};

/// Returns the fewest prefixes that together are the addresses from the first to the last, in order; none if the first is
/// after the last. At most two of each length: `2 * BITS - 2` for IPv4 are 62.
///
/// ```
/// use std::net::Ipv4Addr;
///
/// let range = Ipv4Addr::new(192, 0, 2, 1)..=Ipv4Addr::new(192, 0, 2, 4);
/// let texts: Vec<String> = fibula::map::prefixes_of(range).map(|prefix: fibula::net::Prefix<u32>| prefix.to_string()).collect();
/// assert_eq!(texts, ["192.0.2.1/32", "192.0.2.2/31", "192.0.2.4/32"]);
/// ```
pub fn prefixes_of<K: Key, A: IntoKey<K>>(addresses: RangeInclusive<A>) -> PrefixesOf<K> {
    let (first, last) = addresses.into_inner();
    let (first, last) = (first.into_key(), last.into_key());
    PrefixesOf { left: (first <= last).then_some((first, last)) }
}

/// Iterator over the fewest prefixes that are a range of addresses; see [`prefixes_of`].
#[derive(Debug, Clone)]
pub struct PrefixesOf<K> {
    /// First and last address of what is left.
    left: Option<(K, K)>,
}

impl<K: Key> Iterator for PrefixesOf<K> {
    type Item = Prefix<K>;

    fn next(&mut self) -> Option<Prefix<K>> {
        let (first, last) = self.left?;
        let prefix = largest_at(first, last);
        self.left = prefix.last().next().filter(|&next| next <= last).map(|next| (next, last));
        Some(prefix)
    }
}

/// Returns the shortest prefix that begins at `first` and does not go past `last`.
fn largest_at<K: Key>(first: K, last: K) -> Prefix<K> {
    let span = first.common_len(last);
    // From the shortest that begins here, which the zeros at the end of the address allow.
    (span..K::BITS)
        .map(|len| Prefix::of(first, len))
        .find(|prefix| prefix.addr() == first && prefix.last() <= last)
        .unwrap_or_else(|| Prefix::host(first))
}

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
