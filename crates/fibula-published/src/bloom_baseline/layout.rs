//! The groups, and their hash function.

use core::marker::PhantomData;

use crate::bloom::hash::{Hashes, Sequence, Stored};
use crate::bloom::rand::{DROPPED, Rand};
use crate::bloom::sizes::Ratio;
use crate::bloom::table::{Expansion, Parameters, Table};
use fibula::fib::BuildError;
use fibula::net::{Key, KeyKind, Routes};
use fibula::unstable::memory::Limits;

use super::NAME;

/// The false-positive ratio.
const RATIO: Ratio = Ratio::percent(30);

/// Two groups and a direct array.
#[derive(Debug)]
pub(crate) struct BloomBaseline<K>(pub(super) Table<K, u32, Costly<K>>);

impl<K: Key> BloomBaseline<K> {
    /// Builds the groups, for a direct array of so many bits and a first group of this length.
    ///
    /// # Errors
    /// When memory runs out, and for more than 2^26 prefixes in a group.
    pub(crate) fn build(
        routes: &dyn Routes<K>,
        direct: u8,
        first: u8,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        let expansion = Expansion::Fixed { direct, first };
        let parameters = Parameters { name: NAME, expansion, ratio: RATIO, hashes: Costly(PhantomData) };
        Table::build(routes, parameters, limits).map(Self)
    }
}

/// The numbers of `rand()` after `srand(key)`.
#[derive(Debug)]
pub(super) struct Costly<K>(PhantomData<fn(K)>);

impl<K> Clone for Costly<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Costly<K> {}

impl<K: Key, S: Stored> Hashes<S> for Costly<K> {
    type Sequence = Rand;

    #[inline]
    fn sequence(self, key: S) -> Rand {
        let dropped = if matches!(K::KIND, KeyKind::Toy) { 0 } else { DROPPED };
        Rand::seeded(key.folded(), dropped)
    }

    #[inline]
    fn bucket(self, _key: S, _first: u32, after: &mut Rand) -> u32 {
        after.next()
    }
}
