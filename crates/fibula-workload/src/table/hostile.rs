//! Hostile tables, which no network has: they show the worst case of an engine.
//!
//! A table is a function and an entry of [`tables`]. A spec gives the same table on every platform.

use core::fmt;

use fibula::net::{Key, KeyKind, NextHop, Prefix, Route};

use super::profile::{Block, Length, Parting, Profile, SIZES, Thinning, Zone};
use super::{TableError, TableSpec, generate};
use crate::random::Random;

/// A hostile table.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Hostile<K> {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// A description of half a line.
    pub summary: &'static str,
    /// Its full size. Smaller tables of the kind can be generated too.
    pub spec: TableSpec,
    /// Generates it: routes in order, which take 12 bytes each for IPv4 and 48 for IPv6.
    pub generate: fn(&TableSpec) -> Result<Vec<Route<K>>, TableError>,
}

impl<K> fmt::Debug for Hostile<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hostile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Number of routes of the large tables: that of the multibit-trie paper (section VI), which does not list its
/// tables. Its "most reads per packet" is what the host routes of one block give.
const LARGE: usize = 1 << 24;

/// Returns all hostile tables.
#[must_use]
pub fn tables<K: Key>() -> Vec<Hostile<K>> {
    let spec = |routes, next_hops| TableSpec { routes, next_hops, seed: 1 };
    vec![
        Hostile {
            name: "host-routes",
            summary: "host routes of random addresses (/32, /128)",
            spec: spec(1_000_000, 256),
            generate: host_routes,
        },
        Hostile {
            name: "chains",
            summary: "for random addresses, a route of every length; consecutive lengths have different next hops",
            spec: spec(500_000, 256),
            generate: chains,
        },
        Hostile {
            name: "one-block",
            summary: "all routes in one block (/16, /48), of every longer length",
            spec: spec(100_000, 256),
            generate: one_block,
        },
        Hostile {
            name: "block-of-hosts",
            summary: "all host routes of a block of 2^24 addresses (/8, /104), one next hop: the longest paths",
            spec: spec(LARGE, 1),
            generate: block_of_hosts,
        },
        Hostile {
            name: "all-sites",
            summary: "all 2^24 prefixes of a site (/24; /48 in one /24), one next hop",
            spec: spec(LARGE, 1),
            generate: all_sites,
        },
        Hostile {
            name: "alternating-sites",
            summary: "the same with two next hops in turn, so that no neighbours merge",
            spec: spec(LARGE, 2),
            generate: all_sites,
        },
    ]
}

/// Finds the hostile table of this name.
#[must_use]
pub fn find<K: Key>(name: &str) -> Option<Hostile<K>> {
    tables().into_iter().find(|table| table.name == name)
}

/// Refuses a spec that does not fit.
fn check(spec: &TableSpec, limit: u128) -> Result<(), TableError> {
    match spec.routes {
        0 => Ok(()),
        _ if spec.next_hops == 0 => Err(TableError::NoNextHops),
        need if need as u128 > limit => Err(TableError::Full { limit, need }),
        _ => Ok(()),
    }
}

/// Returns the number of prefixes of `len` bits.
fn prefixes(len: u8) -> u128 {
    1u128.checked_shl(len.into()).unwrap_or(u128::MAX)
}

/// Returns the next hop of a route; routes get the next hops in turn.
fn next_hop(spec: &TableSpec, index: u64) -> NextHop {
    let id = (index % u64::from(spec.next_hops)) as u32 + 1;
    NextHop::new(id).expect("ids count from 1")
}

fn host_routes<K: Key>(spec: &TableSpec) -> Result<Vec<Route<K>>, TableError> {
    // Beyond half of the space, too many draws would hit the same address.
    check(spec, prefixes(K::BITS) / 2)?;
    let mut random = Random::new(spec.seed);
    let mut addresses: Vec<K> = Vec::with_capacity(spec.routes);
    while addresses.len() < spec.routes {
        let missing = spec.routes - addresses.len();
        addresses.extend((0..missing).map(|_| K::from_bits(random.wide())));
        addresses.sort_unstable();
        addresses.dedup();
    }
    let route = |addr| Route::new(Prefix::host(addr), next_hop(spec, random.word()));
    Ok(addresses.into_iter().map(route).collect())
}

fn chains<K: Key>(spec: &TableSpec) -> Result<Vec<Route<K>>, TableError> {
    // Half of all prefixes: chains share their beginnings, and the last ones would be hard to find.
    check(spec, prefixes(K::BITS))?;
    let mut random = Random::new(spec.seed);
    let mut found: Vec<Prefix<K>> = Vec::with_capacity(spec.routes);
    while found.len() < spec.routes {
        let missing = spec.routes - found.len();
        for _ in 0..missing.div_ceil(usize::from(K::BITS)) {
            let addr = K::from_bits(random.wide());
            found.extend((1..=K::BITS).map(|len| Prefix::masked(addr, len).expect("within the width")));
        }
        found.sort_unstable();
        found.dedup();
    }
    found.truncate(spec.routes);
    Ok(found.into_iter().map(|prefix| Route::new(prefix, next_hop(spec, prefix.len().into()))).collect())
}

fn one_block<K: Key>(spec: &TableSpec) -> Result<Vec<Route<K>>, TableError> {
    let (addr, len) = match K::KIND {
        KeyKind::Ipv4 => (0xcb00_0000, 16),
        KeyKind::Ipv6 => (0x2a00_cb00_0000_u128 << 80, 48),
        KeyKind::Toy => (0, K::BITS / 2),
    };
    let profile = Profile {
        lengths: (len + 1..=K::BITS).map(|len| Length { len, weight: 1, leaf_permille: 500 }).collect(),
        zones: vec![Zone { block: Block { addr, len }, weight: 1 }],
        reserved: Vec::new(),
        thinning: Thinning { routes: 0, from: 0, to: 0 },
        partings: vec![Parting {
            depth: 0,
            low_percent: 50,
            alone_low_percent: 50,
            one_sided_percent: [10; SIZES],
            skew_percent: [40; SIZES],
        }],
        ..Profile::ipv4()
    };
    generate(spec, &profile)
}

/// Generates `spec.routes` consecutive prefixes of `len` bits, from `first` on.
fn consecutive<K: Key>(
    spec: &TableSpec,
    first: u128,
    len: u8,
    limit: u128,
) -> Result<Vec<Route<K>>, TableError> {
    check(spec, limit)?;
    let route = |index: usize| {
        let addr = K::from_bits(first + ((index as u128) << (K::BITS - len)));
        Route::new(Prefix::new(addr, len).expect("aligned"), next_hop(spec, index as u64))
    };
    Ok((0..spec.routes).map(route).collect())
}

fn block_of_hosts<K: Key>(spec: &TableSpec) -> Result<Vec<Route<K>>, TableError> {
    let (first, bits) = match K::KIND {
        KeyKind::Ipv4 => (0x0100_0000, 24),
        KeyKind::Ipv6 => (0x2a00_u128 << 112, 24),
        KeyKind::Toy => (0, K::BITS),
    };
    consecutive(spec, first, K::BITS, prefixes(bits))
}

fn all_sites<K: Key>(spec: &TableSpec) -> Result<Vec<Route<K>>, TableError> {
    let (first, len, limit) = match K::KIND {
        KeyKind::Ipv4 => (0, 24, LARGE as u128),
        KeyKind::Ipv6 => (0x2a00_u128 << 112, 48, LARGE as u128),
        KeyKind::Toy => (0, K::BITS - K::BITS / 4, prefixes(K::BITS - K::BITS / 4)),
    };
    consecutive(spec, first, len, limit)
}

#[cfg(test)]
mod tests {
    use fibula::net::{RouteSlice, Toy};

    use super::*;

    fn sound<K: Key>(sizes: &[usize]) {
        for table in tables::<K>() {
            assert_eq!(find::<K>(table.name).map(|found| found.summary), Some(table.summary));
            for &routes in sizes {
                let spec = TableSpec { routes, ..table.spec };
                let made = (table.generate)(&spec).unwrap();
                assert_eq!(made.len(), routes, "{}", table.name);
                RouteSlice::new(&made).unwrap();
                assert_eq!(made, (table.generate)(&spec).unwrap());
                assert!(made.iter().all(|route| route.next_hop.id() <= spec.next_hops));
                let none = TableSpec { next_hops: 0, ..spec };
                assert!((table.generate)(&none).is_err() || routes == 0);
            }
            if K::BITS < 64 {
                let too_many = TableSpec { routes: 1 << 34, ..table.spec };
                assert!(
                    matches!((table.generate)(&too_many), Err(TableError::Full { .. })),
                    "{}",
                    table.name
                );
            }
        }
    }

    #[test]
    fn every_table_keeps_to_its_size_and_order() {
        sound::<u32>(&[0, 1, 33, 5_000]);
        sound::<u128>(&[0, 1, 129, 5_000]);
        sound::<Toy<16>>(&[0, 1, 17, 500]);
    }

    fn made<K: Key>(name: &str, routes: usize) -> Vec<Route<K>> {
        let table = find::<K>(name).unwrap();
        (table.generate)(&TableSpec { routes, ..table.spec }).unwrap()
    }

    #[test]
    fn every_table_is_what_it_says() {
        assert!(made::<u128>("host-routes", 1_000).iter().all(|route| route.prefix.len() == 128));
        let chains = made::<u32>("chains", 1_000);
        let shape = super::super::shape(&RouteSlice::new(&chains).unwrap(), &[]);
        assert_eq!((shape.depths.len(), shape.same_as_cover), (32, 0));
        let chains = made::<u128>("chains", 1_000);
        let shape = super::super::shape(&RouteSlice::new(&chains).unwrap(), &[]);
        assert_eq!(shape.depths.len(), 128);
        let block: Prefix<u32> = "203.0.0.0/16".parse().unwrap();
        assert!(made::<u32>("one-block", 90_000).iter().all(|route| block.covers(route.prefix)));
        let block: Prefix<u128> = "2a00:cb00::/48".parse().unwrap();
        assert!(made::<u128>("one-block", 1_000).iter().all(|route| block.covers(route.prefix)));
        let hosts = made::<u32>("block-of-hosts", 1_000);
        assert_eq!(hosts[999].prefix.to_string(), "1.0.3.231/32");
        assert_eq!(made::<u128>("all-sites", 300)[256].prefix.to_string(), "2a00:0:100::/48");
        let alternating = made::<u32>("alternating-sites", 1_000);
        assert!(alternating.windows(2).all(|pair| pair[0].next_hop != pair[1].next_hop));
        let full =
            (find::<Toy<8>>("all-sites").unwrap().generate)(&TableSpec { routes: 64, next_hops: 1, seed: 1 });
        assert_eq!(full.unwrap()[63].prefix.to_string(), "252/6");
    }
}
