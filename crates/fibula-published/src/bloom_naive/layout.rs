//! The levels, and their hash functions.

use crate::bloom::hash::{Hashes, Sequence, Stored};
use crate::bloom::sizes::Ratio;
use crate::bloom::table::{Expansion, Parameters, Table};
use fibula::fib::{BuildError, Fib};
use fibula::net::{Key, Routes};
use fibula::unstable::memory::Limits;

use super::NAME;

/// A filter and a hash table for every length.
#[derive(Debug)]
pub(crate) struct BloomNaive<K>(pub(super) Table<K, u64, Seeded>);

/// Builds the levels. Not inlined: there is a caller for every ratio.
///
/// # Errors
/// When memory runs out, and for more than 2^26 prefixes of a length.
#[inline(never)]
pub(super) fn boxed<K: Key>(
    routes: &dyn Routes<K>,
    ratio: Ratio,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    let parameters = Parameters { name: NAME, expansion: Expansion::Naive, ratio, hashes: Seeded };
    Ok(Box::new(BloomNaive(Table::build(routes, parameters, limits)?)))
}

/// One function of 64-bit Murmur3 for each seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeded;

/// The hashes of a key.
#[derive(Debug, Clone)]
pub(super) struct Seeds<S> {
    key: S,
    seed: u64,
}

impl<S: Stored> Sequence for Seeds<S> {
    #[inline]
    fn next(&mut self) -> u32 {
        // Multiples of the golden ratio differ in all bits.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.key.mixed(self.seed) as u32
    }
}

impl<S: Stored> Hashes<S> for Seeded {
    type Sequence = Seeds<S>;

    #[inline]
    fn sequence(self, key: S) -> Seeds<S> {
        Seeds { key, seed: 0 }
    }

    #[inline]
    fn bucket(self, _key: S, _first: u32, after: &mut Seeds<S>) -> u32 {
        after.next()
    }
}
