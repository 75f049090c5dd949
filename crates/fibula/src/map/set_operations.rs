//! Operations on two sets of prefixes, which walk both in order, once.

use core::ops::{BitAnd, BitOr, BitXor, Sub};

use crate::net::{Key, Prefix};

use super::join::MergeJoin;
use super::set::PrefixSet;

/// The prefixes of two sets, each with whether the first and the second set have it.
fn aligned<'a, K: Key>(
    one: &'a PrefixSet<K>,
    two: &'a PrefixSet<K>,
) -> impl Iterator<Item = (Prefix<K>, bool, bool)> + use<'a, K> {
    let (one, two) = (one.iter().map(|prefix| (prefix, ())), two.iter().map(|prefix| (prefix, ())));
    MergeJoin::new(one, two).map(|(prefix, left, right)| (prefix, left.is_some(), right.is_some()))
}

macro_rules! operation {
    ($method:ident, $Operator:ident, $operator:ident, $keep:expr, $doc:literal) => {
        impl<K: Key> PrefixSet<K> {
            #[doc = concat!("Returns ", $doc, ", in order. Allocates nothing; the operator of this name returns a set.")]
            pub fn $method<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Prefix<K>> + use<'a, K> {
                let keep: fn(bool, bool) -> bool = $keep;
                aligned(self, other).filter_map(move |(prefix, left, right)| keep(left, right).then_some(prefix))
            }
        }

        #[doc = concat!("The set of ", $doc, ". Panics when memory runs out.")]
        impl<K: Key> $Operator for &PrefixSet<K> {
            type Output = PrefixSet<K>;

            fn $operator(self, other: Self) -> PrefixSet<K> {
                self.$method(other).collect()
            }
        }
    };
}

operation!(union, BitOr, bitor, |_, _| true, "the prefixes that either set has");
operation!(intersection, BitAnd, bitand, |left, right| left && right, "the prefixes that both sets have");
operation!(difference, Sub, sub, |_, right| !right, "the prefixes that only the first set has");
operation!(
    symmetric_difference,
    BitXor,
    bitxor,
    |left, right| left != right,
    "the prefixes that exactly one of the sets has"
);

impl<K: Key> PrefixSet<K> {
    /// Returns whether the other set has all prefixes of this one.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        // Lengths first: a larger set is no subset of a smaller one, and needs no walk.
        self.len() <= other.len() && aligned(self, other).all(|(_, left, right)| right || !left)
    }

    /// Returns whether this set has all prefixes of the other one.
    #[must_use]
    pub fn is_superset(&self, other: &Self) -> bool {
        other.is_subset(self)
    }

    /// Returns whether the sets have no prefix in common. Their prefixes may still overlap, see
    /// [`overlaps_set`](Self::overlaps_set).
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        !aligned(self, other).any(|(_, left, right)| left && right)
    }

    /// Returns whether any address is in prefixes of both sets.
    #[must_use]
    pub fn overlaps_set(&self, other: &Self) -> bool {
        // The last address so far of either set: prefixes come in the order of their first addresses.
        let mut last: [Option<K>; 2] = [None; 2];
        aligned(self, other).any(|(prefix, left, right)| {
            let meets = |last: Option<K>| last.is_some_and(|last| last >= prefix.addr());
            if left && (right || meets(last[1])) || right && meets(last[0]) {
                return true;
            }
            // Only one of the sets has this prefix, because a prefix of both has returned. The greater end counts: a
            // shorter prefix from before may end later.
            let of_its_set = &mut last[usize::from(right)];
            *of_its_set = Some(prefix.last()).max(*of_its_set);
            false
        })
    }
}
