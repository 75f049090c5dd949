//! Intervals and blocks against the routes that they were made of.

use super::*;
use crate::net::{Route, RouteSlice, Toy};

/// Tables of about `count` nested routes, different for each `seed`.
fn table<K: Key>(seed: u64, count: u64) -> Vec<Route<K>> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u128::from(state >> 20)
    };
    let mut routes: Vec<Route<K>> = (0..count)
        .map(|_| {
            let len = (next() % (u128::from(K::BITS) + 1)) as u8;
            // Few different bits, so that prefixes nest.
            let bits = ((next() % 7) << (K::BITS - K::BITS.min(3))) | (next() % 5);
            let next_hop = NextHop::new(1 + (next() % 3) as u32).unwrap();
            Route::new(Prefix::masked(K::from_bits(bits), len).unwrap(), next_hop)
        })
        .collect();
    routes.sort_unstable_by_key(|route| route.prefix);
    routes.dedup_by_key(|route| route.prefix);
    routes
}

fn lookup<K: Key>(routes: &[Route<K>], key: K) -> u32 {
    let longest =
        routes.iter().filter(|route| route.prefix.contains(key)).max_by_key(|route| route.prefix.len());
    longest.map_or(0, |route| route.next_hop.id())
}

/// Every key is in the interval or in the piece that has its next hop.
fn every_key_is_found<K: Key, E: Lower>(bits: u8, keys: &[K]) {
    for seed in 0..40 {
        for merge in [Merge::EqualNeighbours, Merge::Never] {
            let routes = table::<K>(seed, seed % 13);
            let slice = RouteSlice::new(&routes).unwrap();
            let mut budget = Budget::default();
            let mut intervals = Vec::new();
            let mut blocks: Blocks<E> = split(&slice, merge, bits, &mut budget, |start, leads, _| {
                intervals.push((start, leads));
                Ok(())
            })
            .unwrap();
            assert_eq!(intervals[0].0, 0);
            assert!(intervals.is_sorted_by(|one, other| one.0 < other.0), "{intervals:?}");
            for &key in keys {
                let at = intervals.partition_point(|interval| interval.0 <= upper(key, bits)) - 1;
                let found = match intervals[at].1 {
                    Leads::To(next_hop) => NextHop::word(next_hop),
                    Leads::Block(block) => {
                        assert_eq!(intervals[at].0, upper(key, bits), "a block is one upper part");
                        blocks.find(block as usize, lower(key, bits))
                    }
                };
                assert_eq!(found, lookup(&routes, key), "{} of {bits} bits in {routes:?}", key.address());
            }
            for (at, _) in blocks.first.iter().enumerate() {
                let pieces = blocks.pieces(at);
                assert!(
                    pieces.len() > 1 && blocks.ends[pieces.clone()].is_sorted_by(|one, other| one < other)
                );
                assert!(blocks.ends[pieces.end - 1] == lower_max::<K, E>(bits));
            }
            assert_eq!(blocks.memory().allocated_bytes, budget.used_bytes());
            blocks.shrink(&mut budget);
            let lens = blocks.first.len() * 4 + blocks.ends.len() * (size_of::<E>() + 4);
            assert_eq!((blocks.memory().allocated_bytes, budget.used_bytes()), (lens, lens));
            assert_eq!(blocks.memory().lookup_bytes, lens);
            blocks.free(&mut budget);
            assert_eq!((blocks.first.len(), budget.used_bytes()), (0, 0));
        }
    }
}

#[test]
fn every_key_is_found_at_every_split() {
    let keys: Vec<_> = (0..256).map(Toy::<8>::from_bits).collect();
    for bits in 1..=8 {
        every_key_is_found::<Toy<8>, u64>(bits, &keys);
    }
    let edges =
        table::<u128>(1, 200).into_iter().flat_map(|route| [route.prefix.addr(), route.prefix.last()]);
    let keys: Vec<_> = edges.chain([0, 1, 6, u128::MAX]).collect();
    for bits in [16, 60, 64] {
        every_key_is_found::<u128, u128>(bits, &keys);
    }
    every_key_is_found::<u128, u64>(64, &keys);
}
