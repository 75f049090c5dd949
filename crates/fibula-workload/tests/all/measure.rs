//! Measurements check what they time. No speed is asserted here.

use std::time::Duration;

use fibula::fib::registry;
use fibula::memory::Limits;
use fibula::net::{NextHop, RouteSlice};
use fibula_workload::measure::{Measurement, Settings, measure_build, measure_lookups, measure_single};
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic;

#[test]
fn wrong_answers_are_counted_and_every_batch_length_is_measured() {
    let spec = TableSpec { routes: 300, ..TableSpec::ipv4() };
    let routes = generate::<u32>(&spec, &Profile::ipv4()).unwrap();
    let routes = RouteSlice::new(&routes).unwrap();
    let keys = (traffic::find("match").unwrap().generate)(&routes, 1_000, 1).unwrap();
    let engine = registry::find("range-btree").unwrap();
    let (fib, build_time_ns) = measure_build(&engine, &routes, Limits::default()).unwrap();
    assert!(build_time_ns > 0);
    let mut expected: Vec<_> = keys.iter().map(|&key| fib.lookup(key)).collect();
    expected[0] = None;
    expected[999] = NextHop::new(u32::MAX);
    let sane = |measurement: &Measurement| {
        assert_eq!(measurement.wrong, 2);
        assert!(measurement.runs >= 1 && measurement.mlps_min > 0.0);
        assert!(measurement.mlps_min <= measurement.mlps_median);
        assert!(measurement.mlps_median <= measurement.mlps_max);
    };
    for batch in [1, 7, 256, 1_000, 5_000] {
        let settings = Settings { batch, budget: Duration::from_millis(3) };
        sane(&measure_lookups(fib.as_ref(), &keys, &expected, &settings));
    }
    let settings = Settings { budget: Duration::ZERO, ..Settings::default() };
    sane(&measure_single(fib.as_ref(), &keys, &expected, &settings));
    let nothing = measure_lookups(fib.as_ref(), &[], &[], &settings);
    assert_eq!((nothing.runs, nothing.wrong), (0, 0));
}

#[test]
fn a_refused_build_is_an_error() {
    let routes = generate::<u32>(&TableSpec { routes: 300, ..TableSpec::ipv4() }, &Profile::ipv4()).unwrap();
    let routes = RouteSlice::new(&routes).unwrap();
    let engine = registry::find("range-btree").unwrap();
    assert!(measure_build(&engine, &routes, Limits::within(10)).is_err());
}
