//! Tables shaped like the Internet's: any number of routes, both families, the same for a seed everywhere.
//!
//! Lengths are worked off from the shortest to the longest. Before each, one sweep cuts the space into
//! regions: what is still free, and what each prefix covers that no longer one does. Its share of nested
//! prefixes goes into covered regions, drawn by the attraction of the cover; the rest into free ones, zone by
//! zone. Within a region prefixes follow each other at the profile's distances, which makes runs and
//! clusters. Because regions are disjoint and every earlier prefix is shorter, no prefix can come out twice and
//! every count is met exactly, without a draw in vain, up to the last free slot of the space.

mod gaps;
mod generate;
mod holders;
mod profile;
mod regions;
mod share;

use core::fmt;

use fibula::net::{Key, NextHop, Route};

pub use profile::{Block, Gaps, Length, Neighbours, Nesting, NextHops, Profile, Zone};

/// How large a table to make, and which one of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSpec {
    /// Number of routes, met exactly.
    pub routes: usize,
    /// Number of next hops, with ids 1 to this. Small tables may not use them all.
    pub next_hops: u32,
    /// Which of the tables of this size and shape.
    pub seed: u64,
}

impl TableSpec {
    /// The size of a default-free IPv4 table.
    #[must_use]
    pub const fn ipv4() -> Self {
        Self { routes: 900_000, next_hops: 256, seed: 1 }
    }

    /// The size of a default-free IPv6 table.
    #[must_use]
    pub const fn ipv6() -> Self {
        Self { routes: 230_000, next_hops: 256, seed: 1 }
    }
}

/// Makes the table: routes sorted by (address, length), every prefix once.
///
/// A route takes under a microsecond, and up to 250 bytes of scratch space meanwhile.
///
/// # Errors
/// When the profile's lengths and zones cannot hold that many routes, there are no next hops, or the profile
/// does not fit the family.
pub fn generate<K: Key>(spec: &TableSpec, profile: &Profile) -> Result<Vec<Route<K>>, TableError> {
    profile.check::<K>()?;
    if spec.next_hops == 0 && spec.routes > 0 {
        return Err(TableError::NoNextHops);
    }
    let entries = generate::entries(spec, profile, K::BITS)?;
    Ok(entries
        .iter()
        .map(|entry| Route::new(prefix(entry), NextHop::new(entry.next_hop).expect("ids count from 1")))
        .collect())
}

fn prefix<K: Key>(entry: &generate::Entry) -> fibula::net::Prefix<K> {
    fibula::net::Prefix::new(K::from_bits(entry.addr), entry.len).expect("slots are aligned to their length")
}

/// Why a table could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableError {
    /// More routes than the profile's lengths and zones have room for.
    Full {
        /// The room, in routes.
        limit: u128,
        /// The routes asked for.
        need: usize,
    },
    /// Routes were asked for, and no next hop for them.
    NoNextHops,
    /// The profile contradicts itself or does not fit the family: what is wrong with it.
    Profile(&'static str),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { limit, need } => {
                write!(f, "the profile has room for {limit} routes, {need} were asked for")
            }
            Self::NoNextHops => f.write_str("a table with routes needs a next hop at least"),
            Self::Profile(fault) => write!(f, "the profile is unusable: {fault}"),
        }
    }
}

impl core::error::Error for TableError {}
