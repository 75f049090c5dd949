//! Tables shaped like the Internet's: any number of routes, both families, the same for a seed everywhere.
//!
//! The routes are divided among the profile's lengths first, exactly; a share of each length are leaves, which have
//! no other prefix inside. Then one walk down the binary trie parts them between the halves of each node, until
//! every node has its own: how evenly the leaves part, and how often one half gets all, depends on the depth and on
//! how many there are, as it was found in real tables; covers go where there are leaves. So clusters and empty
//! space come out alike at every scale, and with them what lookup structures take: a chunk of a direct table
//! holds longer prefixes where a node of the trie does. No half is given more than it has room for, so every count is
//! met exactly, without a draw in vain, up to the last free slot of the space. Next hops follow in a second walk, in
//! order.

mod cascade;
mod holders;
pub mod hostile;
mod partings;
mod presets;
mod profile;
mod shape;
mod share;
mod space;

use core::fmt;

use fibula::net::{Key, NextHop, Prefix, Route};

use crate::random::Random;

use cascade::Place;
use holders::Holders;

pub use presets::{PRESETS, Preset, preset};
pub use profile::{Block, Length, NextHops, Parting, Profile, SIZES, Thinning, Zone};
pub use shape::{Chunks, Shape, shape};

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

    /// The size of a default-free IPv6 table. Its few large allocations make IPv6 tables differ from seed to seed; this
    /// seed's is close to the mean, and to a real one.
    #[must_use]
    pub const fn ipv6() -> Self {
        Self { routes: 230_000, next_hops: 256, seed: 2 }
    }
}

/// Makes the table: routes sorted by (address, length), every prefix once.
///
/// A route takes under a microsecond, and 32 bytes of scratch space meanwhile.
///
/// # Errors
/// When the profile's lengths and zones cannot hold that many routes, there are no next hops, or the profile
/// does not fit the family.
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
