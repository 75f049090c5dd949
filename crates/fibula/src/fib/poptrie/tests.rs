//! Next hops at the edges of what entries and leaves hold, and what a host route costs.

use super::Poptrie;
use crate::fib::Fib;
use crate::memory::Limits;
use crate::net::{Key, NextHop, Prefix, Route, RouteSlice};

fn build<K: Key>(table: &[(u128, u8, u32)]) -> Poptrie<K> {
    let mut routes: Vec<_> = table
        .iter()
        .map(|&(bits, len, id)| {
            Route::new(Prefix::masked(K::from_bits(bits), len).unwrap(), NextHop::new(id).unwrap())
        })
        .collect();
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    let trie = Poptrie::build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
    trie.check().unwrap();
    trie
}

#[test]
fn next_hops_that_no_entry_or_narrow_leaf_can_hold_are_answered() {
    for id in [u32::from(u16::MAX), 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX] {
        let trie = build::<u32>(&[(0, 0, id), (0x0a00_0000, 8, 1), (0x0a01_0203, 32, id)]);
        for (key, expected) in
            [(0, id), (0x0a01_0202, 1), (0x0a01_0203, id), (0x0a01_0204, 1), (u32::MAX, id)]
        {
            assert_eq!(trie.lookup_key(key), NextHop::new(expected), "{key:x} {id}");
        }
    }
}

#[test]
fn a_host_route_takes_a_node_a_level() {
    assert_eq!(build::<u32>(&[(0x0a01_0203, 32, 1)]).nodes.len(), 3);
    assert_eq!(build::<u128>(&[(0x2001 << 112 | 7, 128, 1)]).nodes.len(), 19);
}
