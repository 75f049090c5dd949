//! Two maps side by side.

use core::cmp::Ordering;
use core::iter::Peekable;

use crate::net::{Key, Prefix};

use super::prefix_map::PrefixMap;

/// Merges two ordered iterators: each prefix comes once, with the value of either side, at least one of which is `Some`.
pub(super) struct MergeJoin<I: Iterator, J: Iterator> {
    left: Peekable<I>,
    right: Peekable<J>,
}

impl<I: Iterator, J: Iterator> MergeJoin<I, J> {
    pub(super) fn new(left: I, right: J) -> Self {
        Self { left: left.peekable(), right: right.peekable() }
    }
}

impl<K: Key, A, B, I, J> Iterator for MergeJoin<I, J>
where
    I: Iterator<Item = (Prefix<K>, A)>,
    J: Iterator<Item = (Prefix<K>, B)>,
{
    type Item = (Prefix<K>, Option<A>, Option<B>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.left.peek(), self.right.peek()) {
            (Some((left, _)), Some((right, _))) => left.cmp(right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        // Equal prefixes satisfy both conditions, and come as one item.
        let left = if order.is_le() { self.left.next() } else { None };
        let right = if order.is_ge() { self.right.next() } else { None };
        match (left, right) {
            (Some((prefix, left)), right) => Some((prefix, Some(left), right.map(|(_, right)| right))),
            (None, right) => right.map(|(prefix, right)| (prefix, None, Some(right))),
        }
    }
}

/// Operations on the prefixes of two maps as elements. They walk both maps in order, once.
impl<K: Key, V> PrefixMap<K, V> {
    /// Returns all prefixes that either map has, in order, with the values of both; at least one of them is `Some`.
    pub fn join<'a, W>(
        &'a self,
        other: &'a PrefixMap<K, W>,
    ) -> impl Iterator<Item = (Prefix<K>, Option<&'a V>, Option<&'a W>)> {
        MergeJoin::new(self.iter(), other.iter())
    }

    /// Calls `merge` for each prefix that either map has, and returns the map of its results. A prefix for which it returns
    /// `None` is left out.
    ///
    /// # Panics
    /// When memory runs out, as do the operations below.
    pub fn merge_with<W, X>(
        &self,
        other: &PrefixMap<K, W>,
        mut merge: impl FnMut(Prefix<K>, Option<&V>, Option<&W>) -> Option<X>,
    ) -> PrefixMap<K, X> {
        let merged = self.join(other);
        merged.filter_map(|(prefix, left, right)| Some((prefix, merge(prefix, left, right)?))).collect()
    }

    /// Returns the map of the prefixes that either map has, each with its value. Where both maps have one, `merge` makes one
    /// value of the two.
    pub fn union_with(&self, other: &Self, mut merge: impl FnMut(Prefix<K>, &V, &V) -> V) -> Self
    where
        V: Clone,
    {
        self.merge_with(other, |prefix, left, right| match (left, right) {
            (Some(left), Some(right)) => Some(merge(prefix, left, right)),
            (left, right) => left.or(right).cloned(),
        })
    }

    /// Returns the map of the prefixes that both maps have, with the values that `merge` returns.
    pub fn intersection_with<W, X>(
        &self,
        other: &PrefixMap<K, W>,
        mut merge: impl FnMut(Prefix<K>, &V, &W) -> X,
    ) -> PrefixMap<K, X> {
        self.merge_with(other, |prefix, left, right| Some(merge(prefix, left?, right?)))
    }

    /// Returns the map of the prefixes that only this map has.
    #[must_use]
    pub fn difference<W>(&self, other: &PrefixMap<K, W>) -> Self
    where
        V: Clone,
    {
        self.merge_with(other, |_, left, right| if right.is_none() { left.cloned() } else { None })
    }
}
