//! Sets of addresses.

use core::fmt;
use core::ops::RangeInclusive;

use crate::check::CheckError;
use crate::memory::{self, Memory};
use crate::net::{IntoKey, IntoPrefix, Key, Prefix};

use super::set::PrefixSet;
use crate::net::prefixes_of;

/// A set of addresses, kept as ranges.
///
/// You make it of prefixes, ranges or a [`PrefixSet`], and it returns ranges or the fewest prefixes. Prefixes may overlap: an
/// address is in the set if it is in any of them.
///
/// ```
/// use fibula::ipnet::Ipv4Net;
/// use fibula::map::AddressSet;
///
/// let ours: AddressSet<u32> = ["10.0.0.0/8".parse::<Ipv4Net>()?].into();
/// let taken: AddressSet<u32> = ["10.0.0.0/10".parse::<Ipv4Net>()?, "10.128.0.0/9".parse()?].into();
/// let free: Vec<String> = (&ours - &taken).prefixes().map(|prefix| prefix.to_string()).collect();
/// assert_eq!(free, ["10.64.0.0/10"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | operation | cost |
/// |---|---|
/// | `contains`, `contains_prefix`, `overlaps` | a binary search of the ranges |
/// | `insert`, `remove` | the same, and a move of all ranges after it. For many prefixes, `collect` them into a set, or take the union of two sets |
/// | union, intersection, difference, complement, from a [`PrefixSet`] | one walk over both sets |
///
/// Takes two addresses a range. Allocates as the collections of the standard library do.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AddressSet<K> {
    /// First and last addresses, ascending, with at least one address between two ranges.
    ranges: Vec<(K, K)>,
}

impl<K: Key> AddressSet<K> {
    /// Returns the empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Returns the set of all addresses.
    #[must_use]
    pub fn all() -> Self {
        Self { ranges: vec![(K::ZERO, K::MAX)] }
    }

    /// Returns the set of ranges in ascending order of their first addresses; they may touch and overlap.
    fn of_ascending(ranges: impl Iterator<Item = (K, K)>) -> Self {
        let mut set = Self::new();
        ranges.for_each(|(first, last)| set.push(first, last));
        set
    }

    /// Adds addresses that begin at or after the start of the last range.
    #[inline]
    pub(super) fn push(&mut self, first: K, last: K) {
        match self.ranges.last_mut() {
            // Ranges that touch become one. Otherwise two sets with the same addresses could differ in their ranges, and not be
            // equal.
            Some((_, end)) if end.next().is_none_or(|after| first <= after) => *end = last.max(*end),
            _ => self.ranges.push((first, last)),
        }
    }

    /// Adds the addresses of a prefix.
    pub fn insert(&mut self, prefix: impl IntoPrefix<K>) {
        let prefix = prefix.into_prefix();
        self.insert_range(prefix.addr()..=prefix.last());
    }

    /// Adds the addresses from the first to the last; none if the first is after the last.
    pub fn insert_range<A: IntoKey<K>>(&mut self, addresses: RangeInclusive<A>) {
        let Some((first, last)) = ends(addresses) else { return };
        // All ranges that the new one meets or touches become one with it.
        let from = self.ranges.partition_point(|&(_, end)| end.next().is_some_and(|after| after < first));
        let to =
            self.ranges.partition_point(|&(start, _)| start.previous().is_none_or(|before| before <= last));
        let first = self.ranges.get(from).filter(|_| from < to).map_or(first, |&(start, _)| start.min(first));
        let last = if from < to { self.ranges[to - 1].1.max(last) } else { last };
        self.ranges.splice(from..to, [(first, last)]);
    }

    /// Removes the addresses of a prefix.
    pub fn remove(&mut self, prefix: impl IntoPrefix<K>) {
        let prefix = prefix.into_prefix();
        self.remove_range(prefix.addr()..=prefix.last());
    }

    /// Removes the addresses from the first to the last; none if the first is after the last.
    pub fn remove_range<A: IntoKey<K>>(&mut self, addresses: RangeInclusive<A>) {
        let Some((first, last)) = ends(addresses) else { return };
        let (from, to) = self.meeting(first, last);
        // No range has any of the addresses, and `from` may be past the end.
        if from == to {
            return;
        }
        // The range may be cut in the middle: both of its ends stay.
        let before =
            first.previous().map(|end| (self.ranges[from].0, end)).filter(|(start, end)| start <= end);
        let after =
            last.next().map(|start| (start, self.ranges[to - 1].1)).filter(|(start, end)| start <= end);
        self.ranges.splice(from..to, before.into_iter().chain(after));
    }

    /// Returns the indices of the ranges that have an address between these two.
    fn meeting(&self, first: K, last: K) -> (usize, usize) {
        let from = self.ranges.partition_point(|&(_, end)| end < first);
        (from, self.ranges.partition_point(|&(start, _)| start <= last))
    }

    /// Returns whether the address is in the set.
    #[must_use]
    pub fn contains(&self, address: impl IntoKey<K>) -> bool {
        let key = address.into_key();
        let (from, to) = self.meeting(key, key);
        from < to
    }

    /// Returns whether all addresses of a prefix are in the set.
    #[must_use]
    pub fn contains_prefix(&self, prefix: impl IntoPrefix<K>) -> bool {
        let prefix = prefix.into_prefix();
        let (from, _) = self.meeting(prefix.addr(), prefix.last());
        self.ranges.get(from).is_some_and(|&(start, end)| start <= prefix.addr() && prefix.last() <= end)
    }

    /// Returns whether any address of a prefix is in the set.
    #[must_use]
    pub fn overlaps(&self, prefix: impl IntoPrefix<K>) -> bool {
        let prefix = prefix.into_prefix();
        let (from, to) = self.meeting(prefix.addr(), prefix.last());
        from < to
    }

    /// Returns the ranges in order. No two of them touch.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<K>> {
        self.pairs().iter().map(|&(first, last)| first..=last)
    }

    pub(super) fn pairs(&self) -> &[(K, K)] {
        &self.ranges
    }

    /// Returns the fewest prefixes that are these addresses, in order.
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix<K>> {
        self.ranges().flat_map(prefixes_of)
    }

    /// Returns the number of addresses; `u128::MAX` also for all 2^128 of IPv6.
    #[must_use]
    pub fn count(&self) -> u128 {
        let count = |&(first, last): &(K, K)| (last.to_bits() - first.to_bits()).saturating_add(1);
        self.ranges.iter().map(count).fold(0, u128::saturating_add)
    }

    /// Returns whether there are no addresses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns whether every address of the family is in the set.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.ranges == [(K::ZERO, K::MAX)]
    }

    /// Returns the memory that the set occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        memory::of(&self.ranges)
    }

    /// Checks that the ranges are in order and do not touch.
    ///
    /// # Errors
    /// The first range that does not keep this.
    pub fn check(&self) -> Result<(), CheckError> {
        for (at, &(first, last)) in self.ranges.iter().enumerate() {
            CheckError::unless(first <= last, "a range ends after it begins", at)?;
            let next = self.ranges.get(at + 1);
            let is_apart = next.is_none_or(|&(start, _)| last.next().is_some_and(|after| after < start));
            CheckError::unless(is_apart, "an address lies between two ranges", at)?;
        }
        Ok(())
    }
}

/// Returns the first and the last address of a range, if it has any.
fn ends<K: Key, A: IntoKey<K>>(addresses: RangeInclusive<A>) -> Option<(K, K)> {
    let (first, last) = addresses.into_inner();
    let (first, last) = (first.into_key(), last.into_key());
    (first <= last).then_some((first, last))
}

impl<K: Key> Default for AddressSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows the fewest prefixes.
impl<K: Key> fmt::Debug for AddressSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::traits::debug_set(f, self.prefixes())
    }
}

/// The addresses of all prefixes of the set, in one walk over it.
impl<K: Key> From<&PrefixSet<K>> for AddressSet<K> {
    fn from(prefixes: &PrefixSet<K>) -> Self {
        Self::of_ascending(prefixes.iter().map(|prefix| (prefix.addr(), prefix.last())))
    }
}

/// The addresses of all prefixes, in any order.
impl<K: Key, P: IntoPrefix<K>> FromIterator<P> for AddressSet<K> {
    fn from_iter<I: IntoIterator<Item = P>>(prefixes: I) -> Self {
        let mut prefixes: Vec<Prefix<K>> = prefixes.into_iter().map(IntoPrefix::into_prefix).collect();
        // In this order first addresses ascend, as `push` needs them, and a prefix comes before those inside it.
        prefixes.sort_unstable();
        Self::of_ascending(prefixes.into_iter().map(|prefix| (prefix.addr(), prefix.last())))
    }
}

/// The addresses of all prefixes.
impl<K: Key, P: IntoPrefix<K>, const COUNT: usize> From<[P; COUNT]> for AddressSet<K> {
    fn from(prefixes: [P; COUNT]) -> Self {
        prefixes.into_iter().collect()
    }
}

/// Adds the addresses of all prefixes, in any order, as the union with their set.
impl<K: Key, P: IntoPrefix<K>> Extend<P> for AddressSet<K> {
    fn extend<I: IntoIterator<Item = P>>(&mut self, prefixes: I) {
        // One union of sorted sets. An insertion each would move all later ranges each time.
        *self = &*self | &prefixes.into_iter().collect();
    }
}
