//! Traffic keeps what its patterns promise.

use fibula::net::{Key, NextHop, Route, RouteSlice, Toy};
use fibula::rib::Rib;
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic::{self, TrafficError};

fn table<K: Key>() -> Vec<Route<K>> {
    generate(&TableSpec { routes: 1_000, next_hops: 20, seed: 5 }, &Profile::of::<K>()).unwrap()
}

fn oracle<K: Key>(routes: &[Route<K>]) -> Rib<K> {
    let mut rib = Rib::default();
    for &route in routes {
        rib.insert(route).unwrap();
    }
    rib
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

#[test]
fn reserved_addresses_are_in_no_pattern_over_the_ipv4_space() {
    let names: Vec<String> = traffic::reserved::<u32>().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3"]);
    assert!(traffic::reserved::<u128>().is_empty());
    let routes = table::<u32>();
    for pattern in ["rnd", "rep", "seq", "miss", "mix:0"] {
        let keys = keys(&routes, pattern, 3);
        assert!(keys.iter().all(|&key| traffic::reserved::<u32>().iter().all(|block| !block.contains(key))));
    }
}

fn prefix_of<K: Key>(routes: &[Route<K>], key: K) -> Option<usize> {
    (0..routes.len()).rev().find(|&at| routes[at].prefix.contains(key))
}

fn zipf_is_skewed<K: Key>() {
    // Disjoint prefixes, so that a key tells which was drawn.
    let mut routes = table::<K>();
    routes.retain(|route| route.prefix.len() >= 16);
    let all = routes.clone();
    routes.retain(|route| !all.iter().any(|other| other != route && other.prefix.overlaps(route.prefix)));
    let mut counts = vec![0u32; routes.len()];
    for key in keys(&routes, "zipf", 1) {
        counts[prefix_of(&routes, key).expect("every key has an answer")] += 1;
    }
    let first = counts.iter().position(|count| count == counts.iter().max().unwrap()).unwrap();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // Rank r gets 5,000 / (r * H(n)); the sum of the reciprocals is ln n + 0.577.
    let one = 5_000.0 / ((routes.len() as f64).ln() + 0.577);
    assert!((0.85..1.15).contains(&(f64::from(counts[0]) / one)), "{counts:?} {one}");
    assert!((0.8..1.2).contains(&(f64::from(counts[9]) * 10.0 / one)), "{counts:?} {one}");
    // Ranks are shuffled: another seed has another favourite.
    let mut again = vec![0u32; routes.len()];
    keys(&routes, "zipf", 2).iter().for_each(|&key| again[prefix_of(&routes, key).unwrap()] += 1);
    assert!(again[first] < counts[0] / 2);
}

#[test]
fn zipf_keys_follow_the_law() {
    zipf_is_skewed::<u32>();
    zipf_is_skewed::<u128>();
}

#[test]
fn rep_keys_come_sixteen_times_and_seq_keys_are_those_of_rnd() {
    let routes = table::<u128>();
    let rnd = keys(&routes, "rnd", 4);
    let rep = keys(&routes, "rep", 4);
    assert!(rep.iter().enumerate().all(|(index, &key)| key == rnd[index / 16]));
    assert_eq!(keys(&routes, "seq", 4), rnd);
    let dependent: Vec<&str> = traffic::patterns::<u32>()
        .iter()
        .filter(|pattern| pattern.dependent)
        .map(|pattern| pattern.name)
        .collect();
    assert_eq!(dependent, ["seq"]);
}

fn misses_and_mixes<K: Key>() {
    let routes = table::<K>();
    let oracle = oracle(&routes);
    assert!(keys(&routes, "miss", 1).iter().all(|&key| oracle.lookup(key).is_none()));
    for (name, matches) in [("mix:0", 0), ("mix:1", 50), ("mix:70", 3_500), ("mix:100", 5_000)] {
        let keys = keys(&routes, name, 1);
        let found = keys.iter().filter(|&&key| oracle.lookup(key).is_some()).count();
        assert_eq!(found, matches, "{name}");
        let early = keys[..2_500].iter().filter(|&&key| oracle.lookup(key).is_some()).count();
        assert!(early.abs_diff(matches / 2) < 150, "{name} is not in random order: {early}");
    }
}

#[test]
fn miss_keys_miss_and_mixes_keep_their_ratio() {
    misses_and_mixes::<u32>();
    misses_and_mixes::<u128>();
    misses_and_mixes::<Toy<16>>();
}

#[test]
fn where_nothing_can_miss_it_is_an_error() {
    let route = |text: &str| Route::new(text.parse().unwrap(), NextHop::new(1).unwrap());
    let generate = |name: &str, routes: &[Route<u128>], count| {
        (traffic::find(name).unwrap().generate)(&RouteSlice::new(routes).unwrap(), count, 1)
    };
    let full = vec![route("::/1"), route("8000::/1")];
    for routes in [&vec![route("::/0")], &full] {
        assert_eq!(generate("miss", routes, 1), Err(TrafficError::NothingMissed { pattern: "miss" }));
        assert_eq!(generate("miss", routes, 0), Ok(Vec::new()));
    }
    assert_eq!(generate("mix:99", &full, 100), Err(TrafficError::NothingMissed { pattern: "mix:99" }));
    assert_eq!(generate("mix:100", &full, 100).unwrap().len(), 100);
    // The default route is no match: what misses all others ends up there.
    let with_default = [route("::/0"), route("2001:db8::/32")];
    let keys = generate("mix:30", &with_default, 1_000).unwrap();
    assert_eq!(keys.iter().filter(|&&key| with_default[1].prefix.contains(key)).count(), 300);
    assert!(generate("mix:30", &with_default[..1], 1_000).is_err());
    assert_eq!(generate("mix:1", &[], 100), Err(TrafficError::NoRoutes { pattern: "mix:1" }));
    assert!(
        ["mix:101", "mix:", "mix:-1", "mix:07", "mix", "MATCH"]
            .iter()
            .all(|name| { traffic::find::<u32>(name).is_none() })
    );
}

#[test]
fn recorded_addresses_keep_their_order_and_start_again() {
    assert_eq!(traffic::recorded(&[5u32, 1, 5], 7), Ok(vec![5, 1, 5, 5, 1, 5, 5]));
    assert_eq!(traffic::recorded(&[5u32, 1], 1), Ok(vec![5]));
    assert_eq!(traffic::recorded::<u32>(&[], 1), Err(TrafficError::NoAddresses));
    assert_eq!(traffic::recorded::<u32>(&[], 0), Ok(Vec::new()));
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
            Err(error) => assert_eq!(error, TrafficError::NoRoutes { pattern: pattern.name }),
        }
    }
}

#[test]
fn seeds_decide_and_empty_tables_are_no_reason_to_panic() {
    seeds_and_empty_tables::<u32>();
    seeds_and_empty_tables::<u128>();
    seeds_and_empty_tables::<Toy<16>>();
}
