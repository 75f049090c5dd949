//! The chapter's example, every order of B+-tree, and what a trie does when a route leaves it.

use super::layout::{Miht, NONE};
use fibula::fib::{Applied, Fib, Updatable};
use fibula::net::{Change, Key, NextHop, Prefix, Route, RouteSlice, Toy};
use fibula::rib::Rib;
use fibula::unstable::memory::Limits;
use fibula::unstable::testing::Random;

fn route<K: Key>(bits: u128, len: u8, id: u32) -> Route<K> {
    Route::new(Prefix::masked(K::from_bits(bits), len).unwrap(), NextHop::new(id).unwrap())
}

fn build<K: Key>(routes: &[Route<K>], key_bits: u8, order: usize) -> Miht<K, u16, 16> {
    let routes = RouteSlice::new(routes).unwrap();
    let miht = Miht::build(&routes, key_bits, order, Limits::default()).unwrap();
    miht.check().unwrap();
    miht
}

#[test]
fn the_chapter_s_example() {
    let table =
        [route(0, 2, 4), route(0b0001_0000, 4, 3), route(0b0001_0000, 8, 1), route(0b0001_1000, 5, 2)];
    let miht = build::<Toy<8>>(&table, 4, 3);
    assert_eq!((miht.tree.keys, miht.tree.height), (1, 0));
    let data = |node: u32| &miht.data[node as usize];
    let root = data(miht.roots[miht.tree.find(1).unwrap()]);
    assert_eq!((root.len, root.next_hop), (4, 3));
    assert_eq!(root.below.map(|below| (data(below).len, data(below).next_hop)), [(8, 1), (5, 2)]);
    assert_eq!((data(miht.keyless).len, data(miht.keyless).below), (2, [NONE; 2]));
    for (key, expected) in [(0b0001_0000, 1), (0b0001_0001, 3), (0b0001_1111, 2), (0b0010_0000, 4)] {
        assert_eq!(miht.lookup_key(Toy::from_bits(key)), NextHop::new(expected), "{key:b}");
    }
    assert_eq!(miht.lookup_key(Toy::from_bits(0b0100_0000)), None);
}

#[test]
fn the_longest_route_below_comes_up() {
    let table = [
        route(0b0001_0000, 4, 1),
        route(0b0001_0000, 5, 2),
        route(0b0001_0000, 6, 3),
        route(0b0001_0100, 7, 4),
        route(0b0001_1000, 6, 5),
    ];
    let mut miht = build::<Toy<8>>(&table, 4, 3);
    let mut left = table.to_vec();
    for longest in [7, 7, 7, 6] {
        let removed = left.remove(0);
        miht.apply(&[Change::Remove(removed.prefix)], &RouteSlice::new(&left).unwrap()).unwrap();
        miht.check().unwrap();
        let root = miht.roots[miht.tree.find(1).unwrap()];
        assert_eq!(miht.data[root as usize].len, longest);
    }
}

/// Keys that come and go at random, in trees of every order, with a level more and a level less many times.
#[test]
fn trees_of_every_order_follow_their_keys() {
    for order in 3..=16 {
        let mut random = Random(order as u64);
        let mut rib = Rib::<Toy<16>>::default();
        let mut miht = Miht::<_, u16, 16>::build(&rib, 10, order, Limits::default()).unwrap();
        for step in 0..1_500 {
            // Mostly inserts, then mostly removals, and again.
            let inserts = if step / 250 % 2 == 0 { 9 } else { 2 };
            let changes: Vec<_> = (0..3)
                .map(|_| {
                    let len = 9 + random.below(4) as u8;
                    let route = route(random.below(1 << 16).into(), len, 1 + random.below(9) as u32);
                    if random.below(10) < inserts {
                        return Change::Insert(route);
                    }
                    let after = rib.iter_after(route.prefix).next();
                    Change::Remove(after.map_or(route.prefix, |route| route.prefix))
                })
                .collect();
            rib.apply(&changes).unwrap();
            assert_eq!(miht.apply(&changes, &rib), Ok(Applied::InPlace));
            if step % 25 == 0 {
                miht.check().unwrap();
            }
            let key = Toy::from_bits(random.below(1 << 16).into());
            assert_eq!(miht.lookup_key(key), rib.lookup(key), "order {order}");
        }
        let all: Vec<_> = rib.iter().map(|route| Change::Remove(route.prefix)).collect();
        miht.apply(&all, &Rib::default()).unwrap();
        miht.check().unwrap();
        assert_eq!((miht.tree.keys, miht.tree.height, miht.memory().lookup_bytes), (0, 0, 64));
    }
}

#[test]
fn all_keys_of_a_width_have_tries() {
    let routes: Vec<Route<u32>> = (0..1 << 16).map(|key| route(key << 16, 16, 1)).collect();
    let miht = build(&routes, 16, 16);
    assert_eq!((miht.tree.keys, miht.roots.len(), miht.tree.height), (1 << 16, 1 << 16, 4));
    assert_eq!(miht.lookup_key(u32::MAX), NextHop::new(1));
}
