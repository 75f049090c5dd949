//! Traffic keeps what its patterns promise.

use fibula::fib::{Fib, registry};
use fibula::memory::Limits;
use fibula::net::{Key, Route, RouteSlice, Toy};
use fibula_lab::table::{Profile, TableSpec, generate};
use fibula_lab::traffic::{self, NoRoutes};

fn table<K: Key>() -> Vec<Route<K>> {
    generate(&TableSpec { routes: 1_000, next_hops: 20, seed: 5 }, &Profile::of::<K>()).unwrap()
}

fn oracle<K: Key>(routes: &[Route<K>]) -> Box<dyn Fib<K>> {
    let routes = RouteSlice::new(routes).unwrap();
    (registry::find("binary-trie").unwrap().build)(&routes, Limits::default()).unwrap()
}

fn keys<K: Key>(routes: &[Route<K>], pattern: &str, seed: u64) -> Vec<K> {
    let pattern = traffic::find::<K>(pattern).unwrap();
    (pattern.generate)(&RouteSlice::new(routes).unwrap(), 5_000, seed).unwrap()
}

fn match_always_matches<K: Key>() {
    let routes = table::<K>();
    let oracle = oracle(&routes);
    assert!(keys(&routes, "match", 1).iter().all(|&key| oracle.lookup(key).is_some()));
}

#[test]
fn match_keys_always_have_an_answer() {
    match_always_matches::<u32>();
    match_always_matches::<u128>();
    match_always_matches::<Toy<16>>();
}

#[test]
fn rnd_keys_of_ipv6_are_announced() {
    let routes = table::<u128>();
    let oracle = oracle(&routes);
    assert!(keys(&routes, "rnd", 1).iter().all(|&key| oracle.lookup(key).is_some()));
}

#[test]
fn rnd_keys_of_ipv4_are_routable_and_reach_all_of_that() {
    let keys = keys(&table::<u32>(), "rnd", 1);
    let firsts: std::collections::BTreeSet<u32> = keys.iter().map(|key| key >> 24).collect();
    let routable: std::collections::BTreeSet<u32> =
        (1..224).filter(|first| ![10, 127].contains(first)).collect();
    assert_eq!(firsts, routable);
}

fn seeds_and_empty_tables<K: Key>() {
    let routes = table::<K>();
    for pattern in traffic::patterns::<K>() {
        assert_eq!(keys(&routes, pattern.name, 1), keys(&routes, pattern.name, 1));
        assert_ne!(keys(&routes, pattern.name, 1), keys(&routes, pattern.name, 2));
        let empty = RouteSlice::<K>::new(&[]).unwrap();
        assert_eq!((pattern.generate)(&empty, 0, 1), Ok(Vec::new()));
        match (pattern.generate)(&empty, 3, 1) {
            Ok(keys) => assert_eq!(keys.len(), 3),
            Err(error) => assert_eq!(error, NoRoutes { pattern: pattern.name }),
        }
    }
}

#[test]
fn seeds_decide_and_empty_tables_are_no_reason_to_panic() {
    seeds_and_empty_tables::<u32>();
    seeds_and_empty_tables::<u128>();
    seeds_and_empty_tables::<Toy<16>>();
}
