//! What the test machine cannot know of blocks.

use crate::memory::{Budget, Limits};
use crate::net::{Key, NextHop, Prefix, Route, RouteSlice};
use crate::simd::{LINE_WORDS, Present};

use super::layout::{CHILDREN, LINES};
use super::{BlockRefusal, build, engines};

fn routes<K: Key>(count: u32, hop: impl Fn(u32) -> u32) -> Vec<Route<K>> {
    let len = K::BITS.min(32);
    let prefix =
        |at: u32| Prefix::masked(K::from_bits(u128::from(at * 2 + 1) << (K::BITS - len)), len).unwrap();
    (0..count).map(|at| Route::new(prefix(at), NextHop::new(hop(at)).unwrap())).collect()
}

fn agrees<K: Key>(routes: &[Route<K>]) {
    let slice = RouteSlice::new(routes).unwrap();
    let fib = engines::<K>()[0].build(&slice, Limits::default()).unwrap();
    fib.check().unwrap();
    let keys: Vec<K> = routes.iter().flat_map(|route| [route.prefix.addr(), route.prefix.last()]).collect();
    for present in Present::all() {
        let mut found = vec![None; keys.len()];
        fib.lookup_batch_on(present, &keys, &mut found);
        for (at, found) in found.iter().enumerate() {
            assert_eq!(*found, Some(routes[at / 2].next_hop), "{} {at}", present.isa());
        }
    }
}

#[test]
fn trees_of_every_height_find_their_lines() {
    assert_eq!(LINES[2], 1 + CHILDREN as u32 * (1 + CHILDREN as u32));
    // Ranges of a route and of nothing, in turn: up to 11, 187, 3,179 and 54,043.
    for count in [1, 5, 6, 93, 94, 1_589, 1_590, 9_000, 27_100] {
        agrees(&routes::<u32>(count, |at| at % 500 + 1));
        agrees(&routes::<u128>(count, |at| at % 500 + 1));
    }
}

#[test]
fn next_hops_of_every_size_are_found() {
    let hop = |at: u32| [1, (1 << 15) - 1, 1 << 15, u32::MAX, u32::MAX - 1][at as usize % 5];
    agrees(&routes::<u32>(2_000, hop));
    agrees(&routes::<u128>(2_000, hop));
}

#[test]
fn windows_that_change_at_once_leave_no_object_unused() {
    // Next hops that need objects, in windows that begin the space, that follow each other, and that end it.
    let texts = ["0.0.0.0/0", "0.0.0.0/24", "0.0.1.0/25", "0.0.2.0/25", "0.0.3.0/24", "255.255.255.128/25"];
    for chosen in 1_usize..1 << texts.len() {
        let of = |(at, text): (usize, &&str)| {
            Route::<u32>::new(text.parse().unwrap(), NextHop::new((1 << 20) + at as u32).unwrap())
        };
        let routes: Vec<_> =
            texts.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(of).collect();
        let slice = RouteSlice::new(&routes).unwrap();
        engines::<u32>()[0].build(&slice, Limits::default()).unwrap().check().unwrap();
    }
}

#[test]
fn too_many_large_next_hops_are_refused() {
    let routes = routes::<u32>(1 << 15, |at| at + (1 << 16));
    let slice = RouteSlice::new(&routes).unwrap();
    assert!(build(&slice, &mut Budget::default()).is_ok());
    let more = self::routes::<u32>((1 << 15) + 1, |at| at + (1 << 16));
    let more = RouteSlice::new(&more).unwrap();
    assert_eq!(build(&more, &mut Budget::default()).unwrap_err(), BlockRefusal::TooLarge);
    let refused = build(&slice, &mut Budget::new(Limits::within(1000)));
    assert!(matches!(refused, Err(BlockRefusal::Memory(_))));
}

#[test]
fn bytes_are_what_the_chapter_says() {
    let bytes = |count: u32| {
        let routes = routes::<u32>(count, |at| at % 250 + 1);
        build(&RouteSlice::new(&routes).unwrap(), &mut Budget::default()).unwrap().words.len() * 4
    };
    assert_eq!((bytes(5), bytes(93)), (64, 18 * 64));
    let ranges = 2.0 * 1000.0;
    assert!(bytes(1000) as f64 / ranges < 6.3, "{}", bytes(1000));
    assert_eq!(LINE_WORDS * 4, 64);
}

#[test]
fn one_longer_route_costs_a_record_and_several_a_tree() {
    let lines = |texts: &[&str]| {
        let mut routes: Vec<Route<u128>> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| Route::new(text.parse().unwrap(), NextHop::new(at as u32 + 1).unwrap()))
            .collect();
        routes.sort_unstable_by_key(|route| route.prefix);
        agrees_inside(&routes);
        build(&RouteSlice::new(&routes).unwrap(), &mut Budget::default()).unwrap().lines()
    };
    assert_eq!(lines(&["2001:db8::/32"]), 1);
    assert_eq!(lines(&["2001:db8::/32", "2001:db8:7::/48"]), 2);
    assert_eq!(lines(&["2001:db8::/32", "2001:db8:7::/48", "2001:db8:9::/48"]), 3);
    assert_eq!(lines(&["2001:db8::/32", "2001:db8:7::1/128"]), 4);
}

#[test]
fn neighbouring_windows_with_equal_routes_are_one_piece() {
    let routes = [("2001:db8::/31", 1), ("2001:db8:7::/48", 2), ("2001:db9:7::/48", 2)];
    let routes =
        routes.map(|(text, hop)| Route::<u128>::new(text.parse().unwrap(), NextHop::new(hop).unwrap()));
    // The check refuses equal neighbours.
    agrees_inside(&routes);
}

/// As `agrees`, with the first addresses of routes alone.
fn agrees_inside(routes: &[Route<u128>]) {
    let fib = engines::<u128>()[0].build(&RouteSlice::new(routes).unwrap(), Limits::default()).unwrap();
    fib.check().unwrap();
    for route in routes {
        assert_eq!(fib.lookup(route.prefix.last()), Some(route.next_hop));
    }
}
