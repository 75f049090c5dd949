//! Ranges of addresses as prefixes.

use core::iter::FusedIterator;
use core::ops::RangeInclusive;

use super::{IntoKey, Key, Prefix};

/// Returns the fewest prefixes that together are the addresses from the first to the last, in order; none if the first is
/// after the last. At most two of each length: `2 * BITS - 2` for IPv4 are 62.
///
/// ```
/// use std::net::Ipv4Addr;
///
/// let range = Ipv4Addr::new(192, 0, 2, 1)..=Ipv4Addr::new(192, 0, 2, 4);
/// let texts: Vec<String> = fibula::net::prefixes_of(range).map(|prefix: fibula::net::Prefix<u32>| prefix.to_string()).collect();
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
        // As many addresses as the first is aligned to, and as there are.
        let aligned = first.to_bits().trailing_zeros().min(K::BITS.into());
        let beyond = last.to_bits() - first.to_bits();
        let fitting = beyond.checked_add(1).map_or(u128::BITS, u128::ilog2);
        let prefix = Prefix::of(first, K::BITS - aligned.min(fitting) as u8);
        self.left = prefix.last().next().filter(|&next| next <= last).map(|next| (next, last));
        Some(prefix)
    }
}

impl<K: Key> FusedIterator for PrefixesOf<K> {}
