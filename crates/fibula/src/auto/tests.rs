//! The choice against the measurements.

use super::measured::curves;
use super::*;
use crate::net::{NextHop, Route, RouteSlice};

/// Every workload that was measured exactly.
fn measured_workloads<K: Key>() -> Vec<Workload> {
    let mut workloads = Vec::new();
    for curve in curves().iter().filter(|curve| curve.family == K::FAMILY.name()) {
        for point in &curve.points {
            let routes = point.routes as usize;
            let host_routes = if curve.hosts { routes } else { 0 };
            let wanted = Workload {
                routes,
                host_routes,
                batch: curve.batch,
                isa: curve.isa,
                l2_bytes: None,
                max_bytes: None,
            };
            if !workloads.contains(&wanted) {
                workloads.push(wanted);
            }
        }
    }
    workloads
}

fn the_choice_is_within_five_percent<K: Key>() {
    let workloads = measured_workloads::<K>();
    assert!(!workloads.is_empty());
    for wanted in workloads {
        let choice = choose::<K>(&wanted, None).unwrap();
        // Every structure whose kernels for this set were measured over this table in this batch.
        let best = curves()
            .iter()
            .filter(|curve| curve.serves::<K>(&wanted) && curve.batch == wanted.batch)
            .flat_map(|curve| &curve.points)
            .filter(|point| point.routes as usize == wanted.routes)
            .map(|point| point.mlps)
            .fold(0.0, f64::max);
        assert!(choice.mlps >= TIE * best, "{wanted:?}: {choice}, where {best} was measured");
        assert!(choice.algorithm.families.contains(K::FAMILY));
    }
}

#[test]
fn every_choice_is_within_five_percent_of_the_best_measured() {
    the_choice_is_within_five_percent::<u32>();
    the_choice_is_within_five_percent::<u128>();
}

#[test]
fn what_is_in_use_stays_until_another_is_a_tenth_faster() {
    for wanted in measured_workloads::<u128>() {
        let ranked = rank::<u128>(&wanted);
        let fastest = ranked[0];
        for choice in &ranked {
            let kept = choose::<u128>(&wanted, Some(choice.algorithm.name)).unwrap();
            if fastest.mlps <= choice.mlps * CHANGE {
                assert_eq!(kept.algorithm.name, choice.algorithm.name);
            } else {
                assert!(kept.mlps >= fastest.mlps * TIE);
            }
        }
        // An unknown name is ignored.
        assert_eq!(
            choose::<u128>(&wanted, Some("abacus")).unwrap().algorithm.name,
            choose::<u128>(&wanted, None).unwrap().algorithm.name
        );
    }
}

#[test]
fn bytes_and_sets_are_limits() {
    let wanted = Workload { routes: 900_000, batch: 256, isa: Isa::Scalar, ..Workload::default() };
    let choices = rank::<u32>(&wanted);
    assert!(choices.iter().all(|choice| choice.isa == Isa::Scalar));
    let most = choices.iter().map(|choice| choice.bytes).min().unwrap();
    let smallest = rank::<u32>(&Workload { max_bytes: Some(most), ..wanted });
    assert!(!smallest.is_empty() && smallest.iter().all(|choice| choice.bytes <= most));
    assert!(choose::<u32>(&Workload { max_bytes: Some(1), ..wanted }, None).is_none());
}

#[test]
fn a_larger_cache_makes_a_table_smaller() {
    let wanted = Workload { routes: 900_000, ..Workload::default() };
    let rate = |l2_bytes| rank::<u32>(&Workload { l2_bytes: Some(l2_bytes), ..wanted })[0].mlps;
    let scaled = rank::<u32>(&Workload { routes: 450_000, ..wanted })[0].mlps;
    assert!((rate(2 * l2_bytes()) - scaled).abs() < 1e-6 * scaled);
}

#[test]
fn the_routes_of_a_table_are_counted() {
    let routes: Vec<_> = [("10.0.0.0/8", 1), ("10.1.0.0/30", 2), ("10.1.0.1/32", 3), ("10.2.0.0/31", 4)]
        .map(|(prefix, id)| Route::<u32>::new(prefix.parse().unwrap(), NextHop::new(id).unwrap()))
        .into();
    let wanted = Workload::default().with_table(&RouteSlice::new(&routes).unwrap());
    assert_eq!((wanted.routes, wanted.host_routes), (4, 2));
}

#[test]
fn a_choice_says_why() {
    let wanted = Workload { routes: 900_000, ..Workload::default() };
    let choice = choose::<u32>(&wanted, None).unwrap();
    let text = choice.to_string();
    assert!(text.starts_with(choice.algorithm.name) && text.contains("M lookups/s expected"), "{text}");
}

/// One host route in each of so many /24s.
fn host_routes(count: u32) -> Vec<Route<u32>> {
    let next_hop = |at: u32| NextHop::new(1 + at % 250).unwrap();
    (0..count).map(|at| Route::new(Prefix::host(at << 8 | 1), next_hop(at))).collect()
}

#[test]
fn what_is_built_answers_as_the_table() {
    for count in [0, 1, 40, 3_000] {
        let routes = host_routes(count);
        let fib = crate::fib::build(&RouteSlice::new(&routes).unwrap()).unwrap();
        for route in &routes {
            assert_eq!(fib.lookup(route.prefix.addr()), Some(route.next_hop));
            assert_eq!(fib.lookup(route.prefix.addr() + 1), None);
        }
        fib.check().unwrap();
    }
}

#[test]
fn toy_keys_and_refused_tables_get_another_structure() {
    let route = Route::new(Prefix::<crate::net::Toy<8>>::ALL, NextHop::new(7).unwrap());
    let fib = crate::fib::build(&RouteSlice::new(&[route]).unwrap()).unwrap();
    assert_eq!(fib.lookup(crate::net::Toy::default()), Some(route.next_hop));

    // Few bytes are left to structures that expect to take more.
    let routes = host_routes(3_000);
    let slice = RouteSlice::new(&routes).unwrap();
    let smallest = registry::find::<u32>(LAST_RESORT).unwrap().build(&slice, Limits::default()).unwrap();
    let most = smallest.memory().lookup_bytes;
    let wanted = Workload { max_bytes: Some(most), ..Workload::default() };
    assert!(build(&slice, wanted, Limits::default()).unwrap().memory().lookup_bytes <= most);
    let error = build(&slice, Workload { max_bytes: Some(8), ..wanted }, Limits::default()).unwrap_err();
    assert!(error.is_limit(), "{error}");
    let error = build(&slice, Workload::default(), Limits::within(64)).unwrap_err();
    assert!(error.out_of_memory().is_some(), "{error}");
}
