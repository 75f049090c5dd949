//! Next hops at the edges of what entries and leaves hold, what a host route costs, and the longer direct table.

use super::layout::{CpTrie, Strides};
use super::{build, strides, variants};
use fibula::fib::Fib;
use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice};
use fibula::rib::Rib;
use fibula::unstable::memory::Limits;
use fibula::unstable::testing::Random;

fn routes<K: Key>(table: &[(u128, u8, u32)]) -> Vec<Route<K>> {
    let route = |&(bits, len, id): &(u128, u8, u32)| {
        Route::new(Prefix::masked(K::from_bits(bits), len).unwrap(), NextHop::new(id).unwrap())
    };
    table.iter().map(route).collect()
}

#[test]
fn next_hops_that_no_entry_or_narrow_leaf_can_hold_are_answered() {
    for id in [u32::from(u16::MAX), 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX] {
        let routes = routes::<u32>(&[(0, 0, id), (0x0a00_0000, 8, 1), (0x0a01_0203, 32, id)]);
        let trie = build::build(&RouteSlice::new(&routes).unwrap(), strides::<u32>(), Limits::default());
        let trie = trie.unwrap();
        trie.check().unwrap();
        for (key, expected) in
            [(0, id), (0x0a01_0202, 1), (0x0a01_0203, id), (0x0a01_0204, 1), (u32::MAX, id)]
        {
            assert_eq!(trie.lookup_key(key), NextHop::new(expected), "{key:x} {id}");
        }
    }
}

#[test]
fn a_host_route_takes_a_node_a_level() {
    fn words<K: Key>(bits: u128, strides: Strides) -> usize {
        let routes = routes::<K>(&[(bits, K::BITS, 1)]);
        let routes = RouteSlice::new(&routes).unwrap();
        let trie = CpTrie::<K, u16>::build(&routes, strides, Limits::default()).unwrap();
        trie.check().unwrap();
        trie.levels.iter().map(|level| level.words.len()).sum()
    }
    assert_eq!(words::<u32>(0x0a01_0203, strides::<u32>()), 2 * 4);
    assert_eq!(words::<u128>(0x2001 << 112 | 7, strides::<u128>()), 14 * 4);
    // The last level has two bits of the key.
    assert_eq!(words::<u32>(0x0a01_0203, Strides { direct: 10, node: 5 }), 5);
    assert_eq!(words::<u32>(0x0a01_0203, Strides { direct: 16, node: 7 }), 2 + 2 + 1);
}

#[test]
fn every_direct_table_gives_the_same_answers() {
    fn compare<K: Key>() {
        let mut random = Random(1);
        let mut rib = Rib::<K>::default();
        for _ in 0..2_000 {
            let bits = u128::from(random.below(1 << 30)) << (K::BITS - 31) | u128::from(random.below(8));
            let prefix = Prefix::masked(K::from_bits(bits), random.below(u64::from(K::BITS) + 1) as u8);
            rib.insert(Route::new(prefix.unwrap(), NextHop::new(1 + random.below(9) as u32).unwrap()))
                .unwrap();
        }
        let trie = variants::<K>()[0].build(&rib, Limits::default()).unwrap();
        trie.check().unwrap();
        for _ in 0..20_000 {
            let bits = u128::from(random.below(1 << 30)) << (K::BITS - 31) | u128::from(random.below(8));
            assert_eq!(trie.lookup_key(K::from_bits(bits)), rib.lookup(K::from_bits(bits)));
        }
    }
    compare::<u32>();
    compare::<u128>();
}
