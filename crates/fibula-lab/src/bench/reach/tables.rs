//! The tables beside the one that is measured.

use core::ops::ControlFlow;

use fibula::fib::ranges::{self, Merge};
use fibula::net::{Key, NextHop, Prefix, Route, Routes};

use super::super::runner::BenchError;
use crate::random::Random;
use crate::table::{Profile, TableSpec, generate};
use crate::traffic;

/// Of so many host routes, one more route is an all but host route of IPv6, a /126 or /127.
const HOSTS_A_LINK: usize = 10;

/// Which addresses get host routes: not those that are looked up.
const SEED: u64 = 7919;

pub(super) fn all<K: Key>(routes: &dyn Routes<K>) -> Vec<Route<K>> {
    let mut all = Vec::with_capacity(routes.len());
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        all.push(route);
        ControlFlow::Continue(())
    });
    all
}

/// The table with `hosts` host routes more, each at a random address below a random prefix and to a next hop of the
/// table; of IPv6 a tenth as many /126 and /127 beside.
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
    // A route of the table comes before one made here: sorting keeps their order.
    all.sort_by_key(|route| route.prefix);
    all.dedup_by_key(|route| route.prefix);
    Ok(all)
}

/// The routes of up to 64 bits, where there are others.
pub(super) fn to_64<K: Key>(routes: &dyn Routes<K>) -> Option<Vec<Route<K>>> {
    let mut all = all(routes);
    let before = all.len();
    all.retain(|route| route.prefix.len() <= 64);
    (all.len() < before).then_some(all)
}

/// A small table of the Internet's shape.
pub(super) fn small<K: Key>(routes: usize) -> Vec<Route<K>> {
    let spec = TableSpec { routes, next_hops: (routes as u32 / 4).clamp(2, 256), seed: 1 };
    generate::<K>(&spec, &Profile::of::<K>()).expect("a small table can always be made")
}

/// Bytes of the sorted array of ranges: first address and next hop of each, 8 for IPv4 and 20 for IPv6. Equal neighbours
/// are one range.
pub(super) fn sorted_array_bytes<K: Key>(routes: &dyn Routes<K>) -> usize {
    let mut ranges = 0;
    let _ = ranges::visit(routes, Prefix::ALL, Merge::EqualNeighbours, |_| {
        ranges += 1;
        ControlFlow::Continue(())
    });
    ranges * (usize::from(K::BITS / 8) + size_of::<NextHop>())
}
