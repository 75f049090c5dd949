//! Operations on two sets of addresses, which walk the ranges of both, once.

use core::ops::{BitAnd, BitOr, BitXor, Not, Sub};

use crate::net::Key;

use super::addresses::AddressSet;

/// Cuts all addresses into consecutive ranges whose addresses are in the same sets. Calls `each` for every range with its first
/// and last address and whether the first and the second set have it, until `each` returns false.
#[inline]
fn sweep<K: Key>(one: &AddressSet<K>, two: &AddressSet<K>, mut each: impl FnMut(K, K, bool, bool) -> bool) {
    let (mut left, mut right) = (one.pairs(), two.pairs());
    let mut at = Some(K::ZERO);
    while let Some(first) = at {
        let (in_left, left_end) = around(left, first);
        let (in_right, right_end) = around(right, first);
        let last = left_end.min(right_end);
        if !each(first, last, in_left, in_right) {
            return;
        }
        // A range that goes on past this step stays, because the rest of it is in the next step.
        if in_left && left_end == last {
            left = &left[1..];
        }
        if in_right && right_end == last {
            right = &right[1..];
        }
        // `None` after the last address of the family ends the loop: there is no address to go on from.
        at = last.next();
    }
}

/// Returns whether `at` is in the first range, and the last address up to which that is the same. `at` is not after the range.
#[inline]
fn around<K: Key>(ranges: &[(K, K)], at: K) -> (bool, K) {
    match ranges.first() {
        Some(&(first, last)) if first <= at => (true, last),
        // The range begins after `at`, so there is an address before it.
        Some(&(first, _)) => (false, first.previous().unwrap_or(K::ZERO)),
        None => (false, K::MAX),
    }
}

/// Returns the addresses for which `keep` returns true of whether the two sets have them.
#[inline]
fn combine<K: Key>(
    one: &AddressSet<K>,
    two: &AddressSet<K>,
    keep: impl Fn(bool, bool) -> bool,
) -> AddressSet<K> {
    let mut set = AddressSet::new();
    sweep(one, two, |first, last, in_one, in_two| {
        if keep(in_one, in_two) {
            // A sweep cuts a range wherever the other set begins or ends. `push` joins the pieces again, so that
            // equal sets compare equal.
            set.push(first, last);
        }
        true
    });
    set
}

macro_rules! operation {
    ($method:ident, $Operator:ident, $operator:ident, $keep:expr, $doc:literal) => {
        impl<K: Key> AddressSet<K> {
            #[doc = concat!("Returns the set of ", $doc, ".")]
            #[must_use]
            pub fn $method(&self, other: &Self) -> Self {
                combine(self, other, $keep)
            }
        }

        #[doc = concat!("The set of ", $doc, ".")]
        impl<K: Key> $Operator for &AddressSet<K> {
            type Output = AddressSet<K>;

            fn $operator(self, other: Self) -> AddressSet<K> {
                self.$method(other)
            }
        }
    };
}

operation!(union, BitOr, bitor, |one, two| one || two, "the addresses that are in either set");
operation!(intersection, BitAnd, bitand, |one, two| one && two, "the addresses that are in both sets");
operation!(difference, Sub, sub, |one, two| one && !two, "the addresses that are in the first set only");
operation!(
    symmetric_difference,
    BitXor,
    bitxor,
    |one, two| one != two,
    "the addresses that are in exactly one of the sets"
);

impl<K: Key> AddressSet<K> {
    /// Returns the set of all other addresses of the family.
    #[must_use]
    pub fn complement(&self) -> Self {
        combine(self, &Self::new(), |one, _| !one)
    }

    /// Returns whether the other set has all addresses of this one.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut is_subset = true;
        sweep(self, other, |_, _, one, two| {
            // The answer is also the word to go on: `false` ends the sweep at the first piece that decides.
            is_subset = two || !one;
            is_subset
        });
        is_subset
    }

    /// Returns whether the sets have no address in common.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        let mut is_disjoint = true;
        sweep(self, other, |_, _, one, two| {
            is_disjoint = !(one && two);
            is_disjoint
        });
        is_disjoint
    }
}

/// The set of all other addresses of the family.
impl<K: Key> Not for &AddressSet<K> {
    type Output = AddressSet<K>;

    fn not(self) -> AddressSet<K> {
        self.complement()
    }
}
