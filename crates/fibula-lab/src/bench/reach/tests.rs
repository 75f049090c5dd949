//! Targets mean what they say. No speed is asserted here.

use fibula::fib::registry;
use fibula::memory::Limits;
use fibula::net::{Prefix, RouteSlice};

use super::super::contestant::Kernel;
use super::*;
use crate::table::{Profile, TableSpec, generate};

fn table<K: Key>(routes: usize) -> Vec<Route<K>> {
    generate(&TableSpec { routes, next_hops: 20, seed: 5 }, &Profile::of::<K>()).unwrap()
}

/// A structure of the registry as if it were our own.
fn ours<K: Key>(name: &str, of: &str) -> Contestant<K> {
    let mut ours = Contestant::new(registry::find::<K>(of).unwrap(), Limits::default());
    (ours.name, ours.role) = (name.to_owned(), Role::Own);
    ours
}

fn plan() -> Plan {
    Plan { keys: 500, seconds: 0.0, batches: vec![1, 64], ..Plan::default() }
}

fn reach<K: Key>(contestants: &[Contestant<K>]) -> Reach {
    let routes = table::<K>(600);
    run(&plan(), &in_order(&routes), contestants, 100, &mut |_| ()).unwrap()
}

fn contestants<K: Key>() -> Vec<Contestant<K>> {
    let mut all = Contestant::all(Limits::default());
    all.retain(|contestant| contestant.role != Role::Own);
    all
}

fn judged<'a>(reach: &'a Reach, work: &str, line: &str) -> Vec<&'a Outcome> {
    let is = |outcome: &&Outcome| outcome.work == work && outcome.algorithm.as_deref() == Some(line);
    reach.outcomes.iter().filter(is).collect()
}

fn each_structure_has_each_target<K: Key>() {
    let mut all = contestants::<K>();
    all.extend([ours("small", "range-search"), ours("slow", "radix")]);
    let reach = reach::<K>(&all);
    let targets = TARGETS.iter().filter(|target| target.families.contains(K::FAMILY)).count();
    assert_eq!(reach.outcomes.len(), 2 * targets);
    let is_ours = |row: &Row| ["small", "slow"].contains(&&*row.algorithm);
    assert!(
        reach.rows.iter().all(|row| row.wrong == 0 && row.role != "oracle" && row.is_ours() == is_ours(row))
    );
    for outcome in &reach.outcomes {
        assert_eq!(outcome.family, K::FAMILY.name());
        let cannot = match outcome.work {
            "keys of 128 bits, exact" => !reach.rows.iter().any(|row| row.routes < 600 && row.routes > 500),
            "all cores, scaling efficiency" => {
                std::thread::available_parallelism().map_or(1, usize::from) == 1
            }
            _ => false,
        };
        assert_eq!(outcome.measured.is_none(), cannot, "{outcome:?}");
        assert!(outcome.measured.is_some() || !outcome.notes.is_empty());
    }
    // There are no rivals here, so nothing can be ahead of all others.
    for outcome in judged(&reach, "SEQ", "slow") {
        assert_ne!(outcome.verdict, Verdict::Met);
        assert!(outcome.notes.iter().any(|note| note.starts_with("rivals: not measured: needs --rivals")));
        assert_eq!(outcome.target, "ahead of all others");
    }
    let small = judged(&reach, "1000 routes, bytes", "small")[0];
    assert!(
        small.measured.unwrap() <= small.target_value.unwrap() && small.verdict == Verdict::Met,
        "{small:?}"
    );
    let slow = judged(&reach, "bytes a prefix", "slow")[0];
    assert_eq!((slow.verdict, slow.goal_verdict), (Verdict::Missed, Some(Verdict::Missed)), "{slow:?}");
}

#[test]
fn every_structure_has_every_target_of_its_family() {
    each_structure_has_each_target::<u32>();
    each_structure_has_each_target::<u128>();
}

#[test]
fn a_family_without_a_structure_of_our_own_says_so() {
    let reach = reach::<u128>(&contestants());
    assert!(reach.rows.is_empty() && !reach.outcomes.is_empty());
    for outcome in &reach.outcomes {
        assert_eq!((outcome.verdict, outcome.algorithm.as_ref()), (Verdict::NotMeasured, None));
        assert_eq!(outcome.notes, ["there is no structure of our own for IPv6 yet"]);
    }
}

/// A structure of the registry under a rival's name.
#[test]
fn peers_are_found_by_their_names() {
    let mut all = contestants::<u32>();
    all.push(ours("mine", "range-search"));
    let mut rival = ours::<u32>("rte-fib-2b-avx512", "range-search");
    (rival.rival, rival.kernels) = (true, vec![Kernel::of_rival("avx512")]);
    all.push(rival);
    let reach = reach::<u32>(&all);
    let random = judged(&reach, "RND", "mine")[0];
    assert!(random.notes.is_empty(), "{:?}", random.notes);
    let peer = random.peer.as_ref().unwrap();
    assert!(
        peer.algorithm.starts_with("dxr-") && peer.isa == "scalar"
            || peer.algorithm.starts_with("rte-fib")
            || peer.algorithm == "poptrie"
    );
    assert_ne!(random.verdict, Verdict::NotMeasured);
    assert_eq!(random.target_value.map(|value| (value / peer.measured).round()), Some(3.0));
    let build = judged(&reach, "build, times faster", "mine")[0];
    assert_eq!(build.peer.as_ref().unwrap().algorithm, "rte-fib-2b-avx512");
    // Its instruction set is larger than AVX2, and there is no other of DPDK's.
    let restricted = judged(&reach, "AVX-512 forbidden, RND", "mine")[0];
    assert_ne!(restricted.peer.as_ref().unwrap().algorithm, "rte-fib-2b-avx512");
}

fn host_routes_lie_in_the_table<K: Key>(more: usize) {
    let routes = table::<K>(600);
    let slice = RouteSlice::new(&routes).unwrap();
    let with = tables::with_hosts(&slice, 200).unwrap();
    RouteSlice::new(&with).unwrap();
    let made: Vec<_> = with.iter().filter(|route| !routes.contains(route)).collect();
    assert!((more * 9 / 10..=more).contains(&made.len()), "{}", made.len());
    let inside = |prefix: Prefix<K>| routes.iter().any(|route| route.prefix.covers(prefix));
    assert!(made.iter().all(|route| route.prefix.len() >= K::BITS - 2 && inside(route.prefix)));
    assert!(routes.iter().all(|route| with.contains(route)));
}

#[test]
fn host_routes_are_added_below_routes() {
    host_routes_lie_in_the_table::<u32>(200);
    host_routes_lie_in_the_table::<u128>(220);
}

#[test]
fn the_sorted_array_holds_a_start_and_a_next_hop_a_range() {
    let route = |text: &str, id| Route::new(text.parse().unwrap(), fibula::net::NextHop::new(id).unwrap());
    let routes: [Route<u32>; 3] = [route("10.0.0.0/8", 1), route("10.0.0.0/9", 1), route("11.0.0.0/8", 2)];
    // None, 10/8, 11/8, none.
    assert_eq!(tables::sorted_array_bytes(&RouteSlice::new(&routes).unwrap()), 4 * 8);
}

#[test]
fn what_the_targets_name_is_not_named_again() {
    let routes = table::<u32>(100);
    for wrong in
        [Plan { traffic: vec!["rnd".into()], ..plan() }, Plan { algorithms: vec!["radix".into()], ..plan() }]
    {
        assert!(run(&wrong, &in_order(&routes), &contestants(), 10, &mut |_| ()).is_err());
    }
}
