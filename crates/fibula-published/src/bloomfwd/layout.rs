//! The levels, with the hash functions and the way of looking up a batch.

use crate::bloom::hash::{Hash, Hashes, Murmur64, Pair, Stored};
use crate::bloom::lengths::Choice;
use crate::bloom::sizes::Ratio;
use crate::bloom::table::{Expansion, Parameters, Table};
use fibula::fib::{BuildError, Fib};
use fibula::net::{Ipv4Key, Key, Routes};
use fibula::unstable::memory::Limits;

use super::NAME;

/// How batches are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vectors {
    /// By kernels in the vector operations of each instruction set.
    Kernels,
    /// By portable code that the compiler makes vectors of, for each instruction set.
    Compiler,
}

/// Filters, hash tables and a direct array.
#[derive(Debug)]
pub(crate) struct Bloomfwd<K, S, H> {
    pub(super) table: Table<K, S, H>,
    pub(super) vectors: Vectors,
}

/// The form for IPv4.
pub(crate) type Narrow<K> = Bloomfwd<K, u32, Pair>;

/// The form for IPv6.
pub(crate) type Wide<K> = Bloomfwd<K, u64, Murmur64>;

/// What the form for IPv4 is made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct NarrowOptions {
    /// Bits of the direct array, and the length of the first group.
    pub(super) lengths: (u8, u8),
    pub(super) hashes: Pair,
    pub(super) ratio: Ratio,
    pub(super) vectors: Vectors,
}

/// What the form for IPv6 is made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct WideOptions {
    pub(super) expansion: Expansion,
    pub(super) vectors: Vectors,
}

/// The ratio that the paper chooses.
pub(super) const CHOSEN_RATIO: Ratio = Ratio::percent(30);

/// The functions that the paper chooses for IPv4.
pub(super) const CHOSEN_PAIR: Pair = Pair { filter: Hash::H2, table: Hash::H2 };

/// The number of levels that is best in the paper's figures 7 and 8.
pub(super) const CHOSEN_LEVELS: u8 = 5;

/// Returns an expansion with this number of levels, or more where the table would be too large.
pub(super) const fn chosen(choice: Choice, levels: u8) -> Expansion {
    Expansion::Chosen { choice, levels, strict: false }
}

/// Builds the groups of /24 and /32 and the direct array. Not inlined: there is a caller for every set of options.
///
/// # Errors
/// When memory runs out, and for more than 2^26 prefixes in a group.
#[inline(never)]
pub(super) fn narrow<K: Ipv4Key>(
    routes: &dyn Routes<K>,
    options: &NarrowOptions,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    let (direct, first) = options.lengths;
    let expansion = Expansion::Fixed { direct, first };
    let (ratio, hashes) = (options.ratio, options.hashes);
    Ok(Box::new(Narrow::<K>::build(routes, expansion, ratio, hashes, options.vectors, limits)?))
}

/// Builds the levels of IPv6.
///
/// # Errors
/// When memory runs out, and for more than 2^26 prefixes in a level.
#[inline(never)]
pub(super) fn wide<K: Key>(
    routes: &dyn Routes<K>,
    options: &WideOptions,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    Ok(Box::new(Wide::<K>::build(
        routes,
        options.expansion,
        CHOSEN_RATIO,
        Murmur64,
        options.vectors,
        limits,
    )?))
}

impl<K: Key, S: Stored, H: Hashes<S> + Hashes<u128>> Bloomfwd<K, S, H> {
    fn build(
        routes: &dyn Routes<K>,
        expansion: Expansion,
        ratio: Ratio,
        hashes: H,
        vectors: Vectors,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        let table = Table::build(routes, Parameters { name: NAME, expansion, ratio, hashes }, limits)?;
        Ok(Self { table, vectors })
    }
}
