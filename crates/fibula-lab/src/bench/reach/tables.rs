//! The tables that targets need besides the given one.

use core::ops::ControlFlow;

use fibula::fib::ranges::{self, Merge};
use fibula::net::{Key, NextHop, Prefix, Route, Routes};

use fibula_workload::random::Random;
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic::{self, TrafficError};

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
///
/// # Errors
/// When the table is empty and `hosts` is not 0.
pub fn with_hosts<K: Key>(routes: &dyn Routes<K>, hosts: usize) -> Result<Vec<Route<K>>, TrafficError> {
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

/// Returns the table with every route beyond /64 cut to /64, as an engine for keys of 64 bits would hold it.
pub(super) fn cut_to_64<K: Key>(routes: &dyn Routes<K>) -> Vec<Route<K>> {
    let mut all = all(routes);
    for route in &mut all {
        let prefix = route.prefix;
        route.prefix = Prefix::masked(prefix.addr(), prefix.len().min(64)).expect("a shorter length fits");
    }
    all.sort_by_key(|route| route.prefix);
    all.dedup_by_key(|route| route.prefix);
    all
}

/// Routes that real tables have beside those of 2000::/3: link-local and multicast addresses, NAT64 and a block that
/// was never allocated. Each lies where nothing else does.
const EXOTIC: [(u128, u8); 4] =
    [(0xfe80 << 112, 10), (0xff00 << 112, 8), (0x0064_ff9b << 96, 96), (0x1900 << 112, 16)];

/// Returns an IPv6 table with exotic routes, each with a next hop of the table.
pub(super) fn with_exotic<K: Key>(routes: &dyn Routes<K>) -> Vec<Route<K>> {
    let mut all = all(routes);
    let hops: Vec<NextHop> = all.iter().take(EXOTIC.len()).map(|route| route.next_hop).collect();
    all.extend(EXOTIC.iter().zip(hops.iter().cycle()).filter_map(|(&(addr, len), &hop)| {
        Some(Route::new(Prefix::masked(K::from_bits(addr), len).ok()?, hop))
    }));
    all.sort_by_key(|route| route.prefix);
    all.dedup_by_key(|route| route.prefix);
    all
}

/// Number of wide next hops, at most: about as many as there are origin ASes.
const WIDE_NEXT_HOPS: u64 = 70_000;

/// The first id of a wide next hop.
const WIDE: u32 = 1 << 17;

/// Returns the table with next hops as by origin AS: most routes of a block of addresses (/18, IPv6 /36) have the same
/// one, and there are tens of thousands in all, with ids beyond 16 bits.
pub(super) fn with_wide_next_hops<K: Key>(routes: &dyn Routes<K>) -> Vec<Route<K>> {
    let mut all = all(routes);
    let block_len = if K::BITS == 128 { 36 } else { K::BITS / 2 + K::BITS / 16 };
    for route in &mut all {
        let block = route.prefix.addr().and(K::mask(block_len)).to_bits();
        // One of eight has a next hop of its own.
        let own = u64::from(route.next_hop.id()).is_multiple_of(8).then_some(route.next_hop.id());
        let seed = (block >> 64) as u64 ^ block as u64 ^ u64::from(own.unwrap_or(0));
        let id = WIDE + Random::new(seed).below(WIDE_NEXT_HOPS) as u32;
        route.next_hop = NextHop::new(id).expect("ids are not 0");
    }
    all
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
