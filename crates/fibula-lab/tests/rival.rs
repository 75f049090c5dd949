//! Rivals in libraries answer as the oracle does. One test a rival; an absent one is ignored, with the reason.

use std::process::ExitCode;

use fibula::fib::Fib;
use fibula::memory::Limits;
use fibula::net::{Change, Key, NextHop, Prefix, Route, RouteSlice, Routes};
use fibula_lab::bench::updates::takes_part;
use fibula_lab::bench::{self, Contestant, Plan, Structure};
use fibula_lab::rival::{self, Source, Tools};
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic;
use libtest_mimic::{Arguments, Completion, Trial};

fn main() -> ExitCode {
    let mut trials = family::<u32>();
    trials.extend(family::<u128>());
    if cfg!(feature = "dpdk") {
        for name in ["rte-fib-2b-macro", "rte-fib-4b-macro", "rte-lpm"] {
            trials.push(trial::<u32>("refuses", name, refuses_what_entries_cannot_hold));
        }
        trials.push(trial::<u32>("shares", "rte-lpm-x4", shares_the_table_of_rte_lpm));
    }
    // One at a time: DPDK's tables have one heap.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The sources that are libraries. Programs in other languages have a test of their own.
fn libraries<K: Key>() -> impl Iterator<Item = Source<K>> {
    let mut tools = Tools::default();
    (tools.python, tools.go) = ("/nowhere".into(), "/nowhere".into());
    let libraries = ["DPDK", "PlanB in C++", "prefix-trie", "ip_network_table", "iptrie", "poptrie"];
    rival::sources::<K>(&tools).into_iter().filter(move |source| libraries.contains(&source.name))
}

/// What every rival must do. A library that is not linked is one ignored test.
fn family<K: Key>() -> Vec<Trial> {
    let mut trials = Vec::new();
    for source in libraries::<K>() {
        if source.contestants.is_none() {
            let name = format!("answers/{}/{}", source.name, K::FAMILY.name());
            trials.push(Trial::ignorable_test(name, || Ok(Completion::ignored_with(source.get))));
            continue;
        }
        for name in source.rivals {
            trials.push(trial::<K>("answers", name, answers));
            trials.push(trial::<K>("measured", name, is_measured));
            trials.push(trial::<K>("changes", name, changes));
        }
    }
    trials
}

/// A test of one rival, named `kind/rival/family`.
fn trial<K: Key>(kind: &str, name: &'static str, test: fn(&Contestant<K>)) -> Trial {
    Trial::ignorable_test(format!("{kind}/{name}/{}", K::FAMILY.name()), move || {
        let mut contestants = libraries::<K>().filter_map(|source| source.contestants).flatten();
        let contestant = contestants.find(|contestant| contestant.name == name).unwrap();
        if contestant.kernels[0].isa == "avx512" && !has_avx512() {
            return Ok(Completion::ignored_with("no AVX-512 on this CPU"));
        }
        test(&contestant);
        Ok(Completion::Completed)
    })
}

/// What DPDK's AVX-512 lookups need.
fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512bw");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Routes of the Internet's shape with all extremes: a default route, host routes, the last address.
fn table<K: Key>(routes: usize) -> Vec<Route<K>> {
    let spec = TableSpec { routes, next_hops: 100, seed: 7 };
    let mut routes = generate::<K>(&spec, &Profile::of::<K>()).unwrap();
    let middle = K::mask(1);
    let ends = [
        (K::ZERO, 0),
        (middle, 1),
        (K::ZERO, K::BITS),
        (K::MAX, K::BITS),
        (middle, K::BITS),
        (K::MAX.and(K::mask(9)), 9),
    ];
    for (at, (addr, len)) in ends.into_iter().enumerate() {
        let hop = NextHop::new(1_000 + at as u32).unwrap();
        routes.push(Route::new(Prefix::masked(addr, len).unwrap(), hop));
    }
    routes.sort_unstable_by_key(|route| route.prefix);
    routes.dedup_by_key(|route| route.prefix);
    routes
}

/// Keys of all kinds of traffic, and the ends of prefixes.
fn keys<K: Key>(routes: &RouteSlice<'_, K>) -> Vec<K> {
    let mut keys = vec![K::ZERO, K::MAX];
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        let (first, last) = (route.prefix.addr(), route.prefix.last());
        keys.extend([Some(first), Some(last), first.previous(), last.next()].into_iter().flatten());
        core::ops::ControlFlow::Continue(())
    });
    for pattern in ["rnd", "match"] {
        keys.extend((traffic::find(pattern).unwrap().generate)(routes, 5_000, 3).unwrap());
    }
    keys
}

/// The wrong answers of an engine, one key a call and in batches of many lengths.
fn wrong<K: Key>(fib: &dyn Fib<K>, oracle: &dyn Fib<K>, keys: &[K]) -> usize {
    let expected: Vec<_> = keys.iter().map(|&key| oracle.lookup(key)).collect();
    let singles = keys.iter().zip(&expected).filter(|&(&key, &expected)| fib.lookup(key) != expected).count();
    let mut batches = 0;
    let (mut first, mut length) = (0, 0);
    while first < keys.len() {
        let end = (first + length).min(keys.len());
        let mut results = vec![NextHop::new(u32::MAX); end - first];
        fib.lookup_batch(&keys[first..end], &mut results);
        batches += results.iter().zip(&expected[first..end]).filter(|(found, right)| found != right).count();
        (first, length) = (end, if length == 70 { 256 } else { (length + 1) % 257 });
    }
    singles + batches
}

fn answers<K: Key>(rival: &Contestant<K>) {
    let routes = table::<K>(3_000);
    // With a default route and without.
    for routes in [routes.as_slice(), &routes[1..]] {
        let routes = RouteSlice::new(routes).unwrap();
        let oracle =
            fibula_published::find("binary-trie").unwrap().build(&routes, Limits::default()).unwrap();
        let structure = (rival.build)(&routes).unwrap();
        let fib = structure.fib();
        assert_eq!(wrong(fib, oracle.as_ref(), &keys(&routes)), 0, "over {} routes", routes.len());
        let memory = fib.memory();
        assert!(
            !rival.name.starts_with("rte-")
                || memory.lookup_bytes >= 1 << 24 && memory.mapped_bytes > memory.lookup_bytes,
            "{memory:?}"
        );
    }
}

/// A rival whose changes are measured answers right after half of the routes are removed, and after they are added again;
/// DPDK's up to 24 bits: beyond, its counters of groups drift, and it refuses routes for which there is room.
fn changes<K: Key>(rival: &Contestant<K>) {
    if !takes_part(rival) {
        return;
    }
    let all = table::<K>(1_000);
    let keys = keys(&RouteSlice::new(&all).unwrap());
    let (kept, removed) = all.split_at(all.len() / 2);
    let is_added = |route: &Route<K>| !rival.name.starts_with("rte-") || route.prefix.len() <= 24;
    let added: Vec<Route<K>> = removed.iter().copied().filter(is_added).collect();
    let Structure::Native(mut native) = (rival.build)(&RouteSlice::new(&all).unwrap()).unwrap() else {
        panic!("it has its own forms")
    };
    let removals: Vec<Change<K>> = removed.iter().map(|route| Change::Remove(route.prefix)).collect();
    let additions: Vec<Change<K>> = added.iter().copied().map(Change::Insert).collect();
    for (changes, routes) in [(removals, kept.to_vec()), (additions, [kept, &added[..]].concat())] {
        native.apply(&changes).unwrap();
        let routes = RouteSlice::new(&routes).unwrap();
        let oracle =
            fibula_published::find("binary-trie").unwrap().build(&routes, Limits::default()).unwrap();
        assert_eq!(wrong(&native, oracle.as_ref(), &keys), 0);
    }
}

/// The benchmark checks and times rivals on keys and answers of their own forms.
fn is_measured<K: Key>(rival: &Contestant<K>) {
    let routes = table::<K>(1_000);
    let routes = RouteSlice::new(&routes).unwrap();
    let traffic = vec!["match".into(), "seq".into()];
    let (batches, threads, runs) = (vec![1, 7, 256, 5_000], vec![1, 2], bench::RUNS_MIN);
    let plan = Plan { keys: 3_000, seconds: 0.0, batches, threads, traffic, runs, ..Plan::default() };
    let rows = bench::run(&plan, &routes, std::slice::from_ref(rival), Vec::new(), &mut |_| ()).unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!((row.error.as_deref(), row.wrong, row.rival, row.runs), (None, 0, true, 5), "{row:?}");
        assert!(row.rates().is_some_and(|[min, ..]| min > 0.0) && row.build_time_ms > Some(0.0), "{row:?}");
    }
}

/// Entries of 2 and 4 bytes hold 15 and 31 bits of next hop, those of `rte_lpm` 24.
fn refuses_what_entries_cannot_hold(rival: &Contestant<u32>) {
    let bits = match rival.name.as_str() {
        "rte-lpm" => 24,
        name if name.contains("-2b-") => 15,
        _ => 31,
    };
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    for id in [32_767, 32_768, (1 << 24) - 1, 1 << 24, (1 << 31) - 1, 1 << 31] {
        let routes = [Route::new(prefix, NextHop::new(id).unwrap())];
        let built = (rival.build)(&RouteSlice::new(&routes).unwrap());
        assert_eq!(built.is_ok(), id < 1 << bits, "{id}");
        if let Err(error) = built {
            assert!(error.to_string().contains("next hops"), "{error}");
        }
    }
}

/// The two forms of `rte_lpm` share a table of the same routes only.
fn shares_the_table_of_rte_lpm(_: &Contestant<u32>) {
    let all = libraries::<u32>().find_map(|source| source.contestants).unwrap();
    let [bulk, x4] =
        ["rte-lpm", "rte-lpm-x4"].map(|name| all.iter().find(|rival| rival.name == name).unwrap());
    let table = |hop: u32| [Route::new("10.0.0.0/8".parse().unwrap(), NextHop::new(hop).unwrap())];
    let (one, other) = (table(1), table(2));
    let (one, other) = (RouteSlice::new(&one).unwrap(), RouteSlice::new(&other).unwrap());
    let answer = |structure: &Structure<u32>| structure.fib().lookup(10 << 24).map(NextHop::id);
    let first = (bulk.build)(&one).unwrap();
    let shared = (x4.build)(&one).unwrap();
    let second = (x4.build)(&other).unwrap();
    assert_eq!((answer(&first), answer(&shared), answer(&second)), (Some(1), Some(1), Some(2)));
}
