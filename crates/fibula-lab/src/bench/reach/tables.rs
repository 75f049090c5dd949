//! The tables that targets need besides the given one.

use core::ops::ControlFlow;

use fibula::fib::ranges::{self, Merge};
use fibula::net::{Key, NextHop, Prefix, Route, Routes};

use super::super::runner::BenchError;
use crate::random::Random;
use crate::table::{Profile, TableSpec, generate};
use crate::traffic;

/// For IPv6, this many host routes come with one /126 or /127.
const HOSTS_A_LINK: usize = 10;

/// Seed of the addresses with host routes, which are not those that are looked up.
const SEED: u64 = 7919;

pub(super) fn all<K: Key>(routes: &dyn Routes<K>) -> Vec<Route<K>> {
    let mut all = Vec::with_capacity(routes.len());
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        all.push(route);
        ControlFlow::Continue(())
    });
    all
}

/// Returns the table with `hosts` additional host routes, each at a random address in a random prefix and with a next
/// hop of the table. For IPv6, a tenth as many /126 and /127 are added too.
pub(super) fn with_hosts<K: Key>(routes: &dyn Routes<K>, hosts: usize) -> Result<Vec<Route<K>>, BenchError> {
    let mut all = all(routes);
    let links = if K::BITS == 128 { hosts / HOSTS_A_LINK } else { 0 };
    let pattern = traffic::find::<K>("match").expect("there is such traffic");
    let keys = (pattern.generate)(routes, hosts + links, SEED)?;
    let mut random = Random::new(SEED);
    let hops: Vec<NextHop> = all.iter().map(|route| route.next_hop).collect();
    let len = |at: usize| if at < hosts { K::BITS } else { K::BITS - 1 - (at % 2) as u8 };
    all.extend(keys.iter().enumerate().map(|(at, &key)| {
        let prefix = Prefix::masked(key, len(at)).expect("the length fits");
        Route::new(prefix, hops[random.below(hops.len() as u64) as usize])
    }));
    // The sort is stable, so that of two equal prefixes the table's own route is kept.
    all.sort_by_key(|route| route.prefix);
    all.dedup_by_key(|route| route.prefix);
    Ok(all)
}

/// Returns the routes no longer than /64, if there are longer ones.
pub(super) fn to_64<K: Key>(routes: &dyn Routes<K>) -> Option<Vec<Route<K>>> {
    let mut all = all(routes);
    let before = all.len();
    all.retain(|route| route.prefix.len() <= 64);
    (all.len() < before).then_some(all)
}

/// Returns a small table of the Internet's shape.
pub(super) fn small<K: Key>(routes: usize) -> Vec<Route<K>> {
    let spec = TableSpec { routes, next_hops: (routes as u32 / 4).clamp(2, 256), seed: 1 };
    generate::<K>(&spec, &Profile::of::<K>()).expect("a small table can always be made")
}

/// Returns the bytes of the sorted array of ranges: first address and next hop of each, 8 bytes for IPv4 and 20 for
/// IPv6. Neighbours with the same next hop are one range.
pub(super) fn sorted_array_bytes<K: Key>(routes: &dyn Routes<K>) -> usize {
    let mut ranges = 0;
    let _ = ranges::visit(routes, Prefix::ALL, Merge::EqualNeighbours, |_| {
        ranges += 1;
        ControlFlow::Continue(())
    });
    ranges * (usize::from(K::BITS / 8) + size_of::<NextHop>())
}
