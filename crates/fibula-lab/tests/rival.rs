//! Rivals answer as the oracle does, or are seen not to.

use fibula::fib::{Fib, registry};
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice, Routes};
use fibula_lab::bench::{self, Contestant, Plan, Row, Structure};
use fibula_lab::rival::{self, Tools};
use fibula_lab::table::{Profile, TableSpec, generate};
use fibula_lab::traffic;

/// Rivals of DPDK that are present; those that are not are named.
fn present<K: Key>() -> Vec<Contestant<K>> {
    of::<K>(|source| source == "DPDK")
}

/// Rivals of these sources.
fn of<K: Key>(is_asked: fn(&str) -> bool) -> Vec<Contestant<K>> {
    // Those in other languages have a test of their own.
    let mut tools = Tools::default();
    (tools.python, tools.go) = ("/nowhere".into(), "/nowhere".into());
    let mut all = Vec::new();
    for source in rival::sources::<K>(&tools).into_iter().filter(|source| is_asked(source.name)) {
        match source.contestants {
            Some(contestants) => all.extend(contestants),
            None => println!("SKIPPED {}: {}", source.rivals.join(", "), source.get),
        }
    }
    all
}

/// Routes of the Internet's shape with everything that is at an end: a default route, host routes, the last address.
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

/// Wrong answers of a structure asked one by one and in batches of many lengths.
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

fn right<K: Key>() {
    let routes = table::<K>(3_000);
    // With a default route and without.
    for routes in [routes.as_slice(), &routes[1..]] {
        let routes = RouteSlice::new(routes).unwrap();
        let oracle = registry::find("binary-trie").unwrap().build(&routes, Limits::default()).unwrap();
        let keys = keys(&routes);
        for contestant in present::<K>() {
            let structure = match (contestant.build)(&routes) {
                Ok(structure) => structure,
                Err(error) if missing(&contestant) => {
                    println!("SKIPPED {error}");
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let fib = structure.fib();
            assert_eq!(
                wrong(fib, oracle.as_ref(), &keys),
                0,
                "{} over {} routes",
                contestant.name,
                routes.len()
            );
            let memory = fib.memory();
            assert!(
                memory.lookup_bytes >= 1 << 24 && memory.mapped_bytes > memory.lookup_bytes,
                "{memory:?}"
            );
        }
    }
}

/// Whether the processor lacks what the contestant is written for.
fn missing<K: Key>(contestant: &Contestant<K>) -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512bw");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    contestant.kernels[0].isa == "avx512" && !has
}

#[test]
fn ipv4_rivals_answer_as_the_oracle_does() {
    right::<u32>();
}

#[test]
fn ipv6_rivals_answer_as_the_oracle_does() {
    right::<u128>();
}

fn bench<K: Key>(batches: Vec<usize>) -> Vec<Row> {
    let routes = table::<K>(1_000);
    let plan = Plan {
        keys: 3_000,
        seconds: 0.0,
        batches,
        threads: vec![1, 2],
        traffic: Vec::new(),
        ..Plan::default()
    };
    let present = present::<K>();
    bench::run(&plan, &RouteSlice::new(&routes).unwrap(), &present, Vec::new(), &mut |_| ()).unwrap()
}

#[test]
fn the_benchmark_checks_and_times_rivals_on_their_own_forms() {
    let mut rows = bench::<u32>(vec![1, 7, 256, 5_000]);
    rows.extend(bench::<u128>(vec![1, 7, 256, 5_000]));
    for row in rows.iter().filter(|row| row.error.is_none()) {
        assert_eq!((row.wrong, row.rival, row.runs), (0, true, 5), "{row:?}");
        assert!(row.rates().is_some_and(|[min, ..]| min > 0.0) && row.build_time_ms > Some(0.0), "{row:?}");
    }
}

#[test]
fn what_entries_cannot_hold_is_refused() {
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    for (id, refused) in [(32_767, 0), (32_768, 4), (1 << 24, 6), (1 << 31, 10)] {
        let routes = [Route::new(prefix, NextHop::new(id).unwrap())];
        let routes = RouteSlice::new(&routes).unwrap();
        let contestants = present::<u32>();
        let contestants: Vec<_> = contestants.iter().filter(|contestant| !missing(contestant)).collect();
        let errors: Vec<_> = contestants
            .iter()
            .filter_map(|contestant| (contestant.build)(&routes).err().map(|error| error.to_string()))
            .collect();
        assert!(errors.iter().all(|error| error.contains("next hops")), "{errors:?}");
        if contestants.len() == 10 {
            assert_eq!(errors.len(), refused, "{errors:?}");
        }
    }
}

#[test]
fn the_two_forms_of_rte_lpm_share_a_table_of_the_same_routes_only() {
    let lpm: Vec<_> =
        present::<u32>().into_iter().filter(|rival| rival.name.starts_with("rte-lpm")).collect();
    let [bulk, x4] = lpm.as_slice() else { return };
    let table = |hop: u32| [Route::new("10.0.0.0/8".parse().unwrap(), NextHop::new(hop).unwrap())];
    let (one, other) = (table(1), table(2));
    let (one, other) = (RouteSlice::new(&one).unwrap(), RouteSlice::new(&other).unwrap());
    let answer = |structure: &Structure<u32>| structure.fib().lookup(10 << 24).map(NextHop::id);
    let first = (bulk.build)(&one).unwrap();
    let shared = (x4.build)(&one).unwrap();
    let second = (x4.build)(&other).unwrap();
    assert_eq!((answer(&first), answer(&shared), answer(&second)), (Some(1), Some(1), Some(2)));
}

fn crates<K: Key>() {
    let crates = of::<K>(|source| ["prefix-trie", "ip_network_table", "iptrie"].contains(&source));
    let routes = table::<K>(3_000);
    for routes in [routes.as_slice(), &routes[1..]] {
        let routes = RouteSlice::new(routes).unwrap();
        let oracle = registry::find("binary-trie").unwrap().build(&routes, Limits::default()).unwrap();
        let keys = keys(&routes);
        for contestant in &crates {
            let structure = (contestant.build)(&routes).unwrap();
            let wrong = wrong(structure.fib(), oracle.as_ref(), &keys);
            assert_eq!(wrong, 0, "{} over {} routes", contestant.name, routes.len());
        }
    }
    let routes = RouteSlice::new(&routes).unwrap();
    let traffic = vec!["match".into(), "seq".into()];
    let plan = Plan { keys: 3_000, seconds: 0.0, batches: vec![1, 7], traffic, ..Plan::default() };
    for row in bench::run(&plan, &routes, &crates, Vec::new(), &mut |_| ()).unwrap() {
        assert_eq!((row.error.as_deref(), row.wrong, row.runs), (None, 0, 5), "{row:?}");
        assert!(row.rates().is_some_and(|[min, ..]| min > 0.0), "{row:?}");
    }
}

#[test]
fn crates_answer_as_the_oracle_does() {
    crates::<u32>();
    crates::<u128>();
}
