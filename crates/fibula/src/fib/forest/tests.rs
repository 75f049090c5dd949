//! What the conformance suite cannot know: which forms a table takes, and when.

use super::layout::{Forest, NARROW, WIDE};
use crate::fib::Fib;
use crate::fib::parts::lanes;
use crate::memory::Limits;
use crate::net::{NextHop, Prefix, Route, RouteSlice};

/// Builds and checks a forest of these routes, and compares its answers at and next to the ends of each route.
fn build(table: impl IntoIterator<Item = (u128, u8, u32)>) -> Forest<u128> {
    let mut routes: Vec<_> = table
        .into_iter()
        .map(|(bits, len, id)| Route::new(Prefix::masked(bits, len).unwrap(), NextHop::new(id).unwrap()))
        .collect();
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    let table = RouteSlice::new(&routes).unwrap();
    let forest = Forest::build(&table, Limits::default()).unwrap();
    forest.check().unwrap();
    let mut keys = Vec::new();
    for route in &routes {
        let (first, last) = (route.prefix.addr(), route.prefix.last());
        keys.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
    }
    keys.extend([0, u128::MAX]);
    let oracle = crate::fib::binary_trie::BinaryTrie::build(&table, Limits::default()).unwrap();
    for &key in &keys {
        assert_eq!(forest.lookup_key(key), oracle.lookup_key(key), "{key:x}");
    }
    lanes::agree(&forest, &keys);
    forest
}

#[test]
fn values_are_as_wide_as_next_hops_need() {
    let table = |id| [(0x2001 << 112, 16, 1), (0x2001_0db8 << 96, 32, id)];
    assert_eq!(build(table(0x7fff)).leaf_keys, NARROW);
    for id in [0x8000, 0x7fff_ffff] {
        assert_eq!(build(table(id)).leaf_keys, WIDE);
    }
    // A next hop that does not fit any value is a record of its own.
    for id in [0x8000_0000, u32::MAX] {
        assert_eq!(build(table(id)).leaf_keys, NARROW);
    }
}

#[test]
fn a_table_may_lie_anywhere() {
    build([]);
    build([(0, 0, 7)]);
    build([(0, 128, 1), (u128::MAX, 128, 2)]);
    build([(0, 1, 1), (1 << 127, 1, 2), (0x8000_0001 << 96, 32, 3)]);
    build([(0, 0, 9), (0x2000 << 112, 3, 1), (0x2a00 << 112, 12, 2)]);
    assert_eq!(build([(0x2001_0db8 << 96, 32, 1)]).direct.len(), 2);
}

#[test]
fn close_routes_are_cut_apart_or_get_roots() {
    // All the /36s of a direct entry: slots of few intervals, no roots.
    let dense = (0..1u128 << 16).map(|at| (0x2001 << 112 | at << 92, 36, 1 + at as u32 % 3));
    let forest = build(dense);
    assert!(forest.slots.iter().all(|slot| slot & 7 == 0));
    // All the /48s of a /36: one slot, where there are as many slots as allowed.
    let deep = build((0..1u128 << 12).map(|at| (0x2001 << 112 | at << 80, 48, 1 + at as u32 % 3)));
    assert!(deep.slots.iter().any(|slot| slot & 7 > 0));
    let nested = (0..3000u128).map(|at| (0x2001_0db8_0000 << 80 | at << 80, 48, 1 + at as u32 % 2));
    let far = (0..1 << 12).map(|at| (0x2001_1000_0000 << 80 | at << 92, 36, 3));
    build(nested.chain(far));
}

#[test]
fn longer_prefixes_are_exact() {
    let site = 0x2001_0db8_0001 << 80;
    let hosts = (0..300u128).map(|at| (site | (at * at * 0x1_0001_0001), 128, 1 + at as u32));
    build(
        [(site, 48, 1000), (site | 7 << 64, 64, 1001), (site | 0xffff << 64, 65, 1002)]
            .into_iter()
            .chain(hosts),
    );
    build([(site | ((1 << 80) - 1), 128, 1), (site + (1 << 80), 128, 2)]);
}

#[test]
fn more_records_than_narrow_values_can_name_make_them_wide() {
    let hosts = |count: u128| (0..count).map(|at| (0x2001 << 112 | at << 82, 128, 1));
    // A record takes three words, and the place of the last one must fit 14 bits.
    let most = (1 << 14) / 3;
    assert_eq!(build(hosts(most + 1)).leaf_keys, NARROW);
    assert_eq!(build(hosts(most + 2)).leaf_keys, WIDE);
}

#[test]
fn a_limit_on_memory_is_kept() {
    let routes: Vec<_> = (0..1000u128)
        .map(|at| Route::new(Prefix::masked(at << 80, 48).unwrap(), NextHop::new(1 + at as u32).unwrap()))
        .collect();
    let table = RouteSlice::new(&routes).unwrap();
    assert!(Forest::build(&table, Limits::within(1 << 12)).unwrap_err().out_of_memory().is_some());
}
