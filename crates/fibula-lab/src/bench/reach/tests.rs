//! Targets mean what they say. No speed is asserted here.

use fibula::memory::Limits;
use fibula::net::{Prefix, RouteSlice};
use fibula_workload::interval::Interval;
use fibula_workload::machine::Machine;
use fibula_workload::table::{Profile, TableSpec, generate};

use super::super::contestant::Kernel;
use super::super::peers;
use super::*;

fn table<K: Key>(routes: usize) -> Vec<Route<K>> {
    generate(&TableSpec { routes, next_hops: 20, seed: 5 }, &Profile::of::<K>()).unwrap()
}

/// An engine of the registry as if it were our own.
fn ours<K: Key>(name: &str, of: &str) -> Contestant<K> {
    let mut ours = Contestant::new(fibula_published::find::<K>(of).unwrap(), Limits::default());
    (ours.name, ours.role) = (name.to_owned(), Role::Own);
    ours
}

fn plan() -> Plan {
    Plan { keys: 500, seconds: 0.0, runs: 5, batches: vec![1, 16, 32, 256, 1024], ..Plan::default() }
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
    let is = |outcome: &&Outcome| outcome.work == work && outcome.engine.as_deref() == Some(line);
    reach.outcomes.iter().filter(is).collect()
}

fn each_structure_has_each_target<K: Key>() {
    let mut all = contestants::<K>();
    all.extend([ours("small", "range-search"), ours("slow", "radix")]);
    let reach = reach::<K>(&all);
    let targets = TARGETS.iter().filter(|target| target.families.contains(K::FAMILY)).count();
    assert_eq!(reach.outcomes.len(), 2 * targets);
    let is_ours = |row: &Row| ["small", "slow"].contains(&&*row.engine);
    assert!(
        reach.rows.iter().all(|row| row.wrong == 0 && row.role != "oracle" && row.is_ours() == is_ours(row))
    );
    for outcome in &reach.outcomes {
        assert_eq!(outcome.family, K::FAMILY.name());
        let cannot = match outcome.work {
            "all cores, scaling efficiency" => {
                std::thread::available_parallelism().map_or(1, usize::from) == 1
            }
            // Tables find engines in the registry, and these have other names.
            work => {
                TARGETS.iter().any(|target| target.work == work && matches!(target.figure, Figure::Live(_)))
            }
        };
        assert_eq!(outcome.measured.is_none(), cannot, "{outcome:?}");
        assert!(outcome.measured.is_some() || !outcome.notes.is_empty());
        assert!(outcome.measured_low <= outcome.measured && outcome.measured <= outcome.measured_high);
        let goal_only = outcome.verdict == TargetVerdict::GoalOnly;
        assert_eq!(outcome.target.is_empty(), goal_only);
        assert!(!goal_only || outcome.goal_verdict.is_some());
    }
    // Without rivals in the run, nothing can be judged as ahead of all contestants.
    for outcome in judged(&reach, "SEQ", "slow") {
        assert!([TargetVerdict::NotMeasured, TargetVerdict::Missed].contains(&outcome.verdict));
        assert!(outcome.notes.iter().any(|note| note.starts_with("DPDK: not measured: needs --rivals")));
        assert_eq!(outcome.target, "ahead of contestants");
        assert!(outcome.ratio_low <= outcome.ratio && outcome.ratio <= outcome.ratio_high);
    }
    // The range search is the sorted array.
    let small = judged(&reach, "1000 routes, bytes", "small")[0];
    assert!(
        small.measured.unwrap() <= small.target_value.unwrap() && small.verdict == TargetVerdict::Met,
        "{small:?}"
    );
    let slow = judged(&reach, "bytes a prefix", "slow")[0];
    assert_eq!(
        (slow.verdict, slow.goal_verdict),
        (TargetVerdict::Missed, Some(TargetVerdict::Missed)),
        "{slow:?}"
    );
    // Races have runs enough for an interval, of everything that takes part.
    let races = reach.rows.iter().filter(|row| row.runs >= RUNS);
    assert!(races.clone().any(is_ours) && races.clone().any(|row| !is_ours(row)));
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
        assert!([TargetVerdict::NotMeasured, TargetVerdict::GoalOnly].contains(&outcome.verdict));
        assert_eq!(outcome.engine, None);
        assert_eq!(outcome.notes, ["there is no engine of our own for IPv6 yet"]);
    }
}

/// An engine of the registry under a rival's name.
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
    assert!(peers::is_peer(&peer.engine), "{peer:?}");
    assert_ne!(random.verdict, TargetVerdict::NotMeasured);
    let factor = if Machine::this().is_amd() { 2.7 } else { 3.0 };
    assert_eq!(random.target, format!("{factor} x contestants"));
    assert!((random.target_value.unwrap() / peer.measured - factor).abs() < 0.01);
    let build = judged(&reach, "build, times faster", "mine")[0];
    assert_eq!(build.peer.as_ref().unwrap().engine, "rte-fib-2b-avx512");
    let burst = judged(&reach, "MATCH, batch 16", "mine")[0];
    assert_eq!(burst.batch, Some(16));
    assert_eq!(burst.peer.as_ref().map(|peer| (&*peer.engine, peer.batch)), Some(("rte-fib-2b-avx512", 16)));
    // Its instruction set is larger than AVX2, and there is no other of DPDK's.
    let restricted = judged(&reach, "AVX-512 forbidden, RND", "mine")[0];
    assert_ne!(restricted.peer.as_ref().unwrap().engine, "rte-fib-2b-avx512");
    let small = judged(&reach, "100 routes, MATCH", "mine")[0];
    assert_eq!(small.peer.as_ref().unwrap().engine, "range-search");
    let smallest = judged(&reach, "100 routes, bytes", "mine")[0];
    assert!(smallest.notes.iter().all(|note| note.contains("the smallest engine ahead of rte_fib is")));
}

/// A row of a race.
fn raced(engine: &str, ours: bool, mlps_runs: &[f64]) -> Row {
    let mut row = reach_row();
    (row.engine, row.rival) = (engine.to_owned(), false);
    row.role = if ours { "own" } else { "published" }.to_owned();
    row.mlps_median = Interval::of(mlps_runs).map(|interval| interval.median);
    row.mlps_runs = mlps_runs.to_vec();
    row
}

fn reach_row() -> Row {
    let routes = table::<u128>(50);
    let plan =
        Plan { engines: vec!["planb".into()], traffic: vec!["rnd".into()], batches: vec![256], ..plan() };
    let contestants = contestants::<u128>();
    super::super::run(&plan, &in_order(&routes), &contestants, Vec::new(), &mut |_| ())
        .unwrap()
        .swap_remove(0)
}

/// The outcome of "MATCH, rte_fib6" for an engine with these rates against rates of two rivals.
fn verdict(own: &[f64], first: &[f64], second: &[f64]) -> (TargetVerdict, Option<String>) {
    let target = TARGETS.iter().find(|target| target.work == "MATCH, batch 16, rte_fib6").unwrap();
    let Figure::Rate(race) = target.figure else { panic!("a rate") };
    let rivals = [("rte-fib6-2b-scalar", first), ("rte-fib6-4b-avx512", second)];
    let mut rows: Vec<Row> = rivals.map(|(name, runs)| raced(name, false, runs)).to_vec();
    rows.push(raced("mine", true, own));
    let measured = Measured { survey: rows.clone(), races: vec![(race, rows)], ..Measured::default() };
    let outcomes = judge::all::<u128>(&measured, &["mine".to_owned()]);
    let outcome = outcomes.iter().find(|outcome| outcome.work == target.work).unwrap();
    (outcome.verdict, outcome.peer.as_ref().map(|peer| peer.engine.clone()))
}

#[test]
fn ratios_of_the_same_run_decide() {
    // The machine is slower from run to run, more than our lead; the ratio is 1.1 in each.
    let theirs: Vec<f64> = (0..15).map(|run| 100.0 / f64::from(run + 1)).collect();
    let by = |factor: f64| theirs.iter().map(|rate| rate * factor).collect::<Vec<_>>();
    let second = Some("rte-fib6-4b-avx512".to_owned());
    assert_eq!(verdict(&by(1.1), &by(0.5), &theirs), (TargetVerdict::Met, second.clone()));
    assert_eq!(verdict(&by(0.9), &by(0.5), &theirs), (TargetVerdict::Missed, second.clone()));
    // Ahead in half of the runs.
    let mut mixed = by(1.1);
    mixed.iter_mut().step_by(2).for_each(|rate| *rate *= 0.8);
    assert_eq!(verdict(&mixed, &by(0.5), &theirs), (TargetVerdict::Undecided, second));
    // The best of both decides, whichever it is.
    assert_eq!(
        verdict(&by(1.1), &by(1.2), &theirs),
        (TargetVerdict::Missed, Some("rte-fib6-2b-scalar".to_owned()))
    );
}

#[test]
fn batches_that_were_not_measured_are_named() {
    let routes = table::<u32>(100);
    let mut all = contestants::<u32>();
    all.retain(|contestant| contestant.name == "poptrie");
    all.push(ours("mine", "range-search"));
    let plan = Plan { batches: vec![1, 64], ..plan() };
    let reach = run(&plan, &in_order(&routes), &all, 10, &mut |_| ()).unwrap();
    let burst = judged(&reach, "RND, batch 16", "mine")[0];
    assert_eq!(
        (burst.verdict, &burst.notes[..]),
        (TargetVerdict::NotMeasured, &["batches of 16 were not measured".to_owned()][..])
    );
}

fn host_routes_lie_in_the_table<K: Key>(more: usize) {
    let routes = table::<K>(600);
    let slice = RouteSlice::new(&routes).unwrap();
    let with = with_hosts(&slice, 200).unwrap();
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
fn routes_beyond_64_are_cut() {
    let routes = table::<u128>(600);
    let with = with_hosts(&RouteSlice::new(&routes).unwrap(), 200).unwrap();
    let cut = tables::cut_to_64(&RouteSlice::new(&with).unwrap());
    RouteSlice::new(&cut).unwrap();
    assert!(with.iter().filter(|route| route.prefix.len() > 64).count() >= 200);
    assert!(cut.iter().all(|route| route.prefix.len() <= 64) && cut.len() > 600 && cut.len() <= with.len());
    for route in &with {
        let first = Prefix::masked(route.prefix.addr(), route.prefix.len().min(64)).unwrap();
        assert!(cut.iter().any(|cut| cut.prefix == first));
    }
}

#[test]
fn exotic_routes_and_wide_next_hops_are_what_they_say() {
    let routes = table::<u128>(600);
    let slice = RouteSlice::new(&routes).unwrap();
    let exotic = tables::with_exotic(&slice);
    RouteSlice::new(&exotic).unwrap();
    for text in ["fe80::/10", "ff00::/8", "64:ff9b::/96", "1900::/16"] {
        assert!(exotic.iter().any(|route| route.prefix == text.parse().unwrap()), "{text}");
    }
    assert_eq!(exotic.len(), 604);
    let wide = tables::with_wide_next_hops(&slice);
    let prefixes = |routes: &[Route<u128>]| routes.iter().map(|route| route.prefix).collect::<Vec<_>>();
    assert_eq!(prefixes(&wide), prefixes(&routes));
    assert!(wide.iter().all(|route| route.next_hop.id() > u32::from(u16::MAX)));
    let mut hops: Vec<_> = wide.iter().map(|route| route.next_hop).collect();
    hops.sort_unstable();
    hops.dedup();
    assert!((100..600).contains(&hops.len()), "{}", hops.len());
}

#[test]
fn the_sorted_array_holds_a_start_and_a_next_hop_a_range() {
    let route = |text: &str, id| Route::new(text.parse().unwrap(), fibula::net::NextHop::new(id).unwrap());
    let routes: [Route<u32>; 3] = [route("10.0.0.0/8", 1), route("10.0.0.0/9", 1), route("11.0.0.0/8", 2)];
    // None, 10/8, 11/8, none.
    assert_eq!(tables::sorted_array_bytes(&RouteSlice::new(&routes).unwrap()), 4 * 8);
}

#[test]
fn live_tables_are_measured_for_structures_that_change_in_place() {
    let mut all = Contestant::<u32>::all(Limits::default());
    all.retain(|contestant| ["range-btree", "dir-17-bitmap"].contains(&&*contestant.name));
    let reach = reach(&all);
    let live = |name: &str| {
        let targets = TARGETS.iter().filter(|target| target.families.contains(fibula::net::Family::Ipv4));
        let works = targets.filter(|target| matches!(target.figure, Figure::Live(_)));
        works.map(|target| judged(&reach, target.work, name)[0].clone()).collect::<Vec<_>>()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for outcome in live("dir-17-bitmap") {
        assert!(outcome.measured.is_some() || cores == 1, "{outcome:?}");
    }
    for outcome in live("range-btree") {
        assert_eq!(outcome.verdict, TargetVerdict::NotMeasured);
        assert_eq!(outcome.notes, ["it is built anew for each call of a live table"]);
    }
}

#[test]
fn what_the_targets_name_is_not_named_again() {
    let routes = table::<u32>(100);
    for wrong in
        [Plan { traffic: vec!["rnd".into()], ..plan() }, Plan { engines: vec!["radix".into()], ..plan() }]
    {
        assert!(run(&wrong, &in_order(&routes), &contestants(), 10, &mut |_| ()).is_err());
    }
}
