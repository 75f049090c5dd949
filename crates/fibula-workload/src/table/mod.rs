//! Generated tables shaped like the Internet's: any number of routes, both families, determined by a seed on every
//! platform.
//!
//! First the routes are divided among the prefix lengths of the profile, exactly. A share of each length are leaves:
//! prefixes that contain no other. Then one walk down the binary trie divides them between the two halves of each
//! node, until every prefix has its place. How evenly the leaves divide, and how often one half gets all of them,
//! depends on the depth and on their number, as measured in real tables. Covers go where there are leaves. So
//! clusters and empty space look alike at every scale, and engines take as much memory as with real tables,
//! because a chunk of a direct table holds longer prefixes where a node of the trie does. No half gets more than it
//! has room for, so every count is met exactly, up to the last free prefix of the space. A second walk, in order,
//! assigns next hops.

mod cascade;
mod holders;
pub mod hostile;
mod made;
mod partings;
mod presets;
mod profile;
mod remaining;
mod shape;
mod share;
mod space;

use core::fmt;

use fibula::net::{Key, NextHop, Prefix, Route};

use crate::random::Random;

use cascade::Place;
use holders::Holders;

pub use made::made;
pub use presets::{PRESETS, Preset, preset};
pub use profile::{Block, Length, NextHops, Parting, Profile, SIZES, Thinning, Zone};
pub use remaining::remaining;
pub use shape::{Chunks, Shape, shape};

/// The size of a table, and which table of that size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSpec {
    /// Exact number of routes.
    pub routes: usize,
    /// Number of next hops, with ids from 1 on. Small tables may not use all of them.
    pub next_hops: u32,
    /// Selects one of the tables of this size and shape.
    pub seed: u64,
}

impl TableSpec {
    /// Returns the size of a default-free IPv4 table.
    #[must_use]
    pub const fn ipv4() -> Self {
        Self { routes: 900_000, next_hops: 256, seed: 1 }
    }

    /// Returns the size of a default-free IPv6 table. IPv6 tables differ from seed to seed, because they have few large
    /// allocations; the table of this seed is close to the mean and to a real one.
    #[must_use]
    pub const fn ipv6() -> Self {
        Self { routes: 230_000, next_hops: 256, seed: 2 }
    }
}

/// Generates a table: routes sorted by (address, length), every prefix once.
///
/// Takes less than a microsecond and 32 bytes of scratch space a route.
///
/// # Errors
/// If the profile's lengths and zones cannot hold that many routes, there are no next hops, or the profile does not
/// fit the family.
pub fn generate<K: Key>(spec: &TableSpec, profile: &Profile) -> Result<Vec<Route<K>>, TableError> {
    profile.check::<K>()?;
    if spec.next_hops == 0 && spec.routes > 0 {
        return Err(TableError::NoNextHops);
    }
    let mut random = Random::new(spec.seed);
    let places = cascade::places(spec, profile, K::BITS, &mut random)?;
    let mut holders = Holders::new(&profile.next_hops, spec.next_hops.max(1), K::BITS, &mut random);
    let route = |&place: &Place| {
        let prefix =
            Prefix::new(K::from_bits(place.addr), place.len).expect("halves are aligned to their length");
        let next_hop = NextHop::new(holders.next_hop(&mut random, place)).expect("ids count from 1");
        Route::new(prefix, next_hop)
    };
    Ok(places.iter().map(route).collect())
}

/// Why a table could not be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableError {
    /// More routes than the profile's lengths and zones have room for.
    Full {
        /// The room, in routes.
        limit: u128,
        /// The routes of the spec.
        need: usize,
    },
    /// The spec has routes but no next hops.
    NoNextHops,
    /// The profile is inconsistent or does not fit the family; the text says why.
    Profile(&'static str),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { limit, need } => {
                write!(f, "cannot generate {need} routes: the profile has room for {limit}")
            }
            Self::NoNextHops => f.write_str("a table with routes needs at least one next hop"),
            Self::Profile(fault) => write!(f, "invalid profile: {fault}"),
        }
    }
}

impl core::error::Error for TableError {}
