//! How choices are made. How good they are is for `fibula-lab` to judge, from records.

use super::model::costs;
use super::*;
use crate::net::{Family, NextHop, Route, RouteSlice};

/// Numbers of ranges, in all sizes of tables.
const RANGES: [usize; 12] =
    [1, 13, 50, 141, 700, 3_000, 10_000, 50_000, 108_000, 260_000, 470_000, 1_300_000];

/// Tables of every size and kind, for every set, in two batches.
fn workloads<K: Key>() -> Vec<Workload> {
    let mut all: Vec<Workload> = Vec::new();
    for isa in costs().iter().filter(|cost| cost.family == K::FAMILY.name()).map(|cost| cost.isa) {
        for (ranges, batch) in RANGES.into_iter().flat_map(|ranges| [(ranges, 1), (ranges, 256)]) {
            for kind in TableKind::ALL {
                let wanted = Workload { batch, isa, max_bytes: Some(usize::MAX), ..of_kind(kind, ranges) };
                if !all.contains(&wanted) {
                    all.push(wanted);
                }
            }
        }
    }
    all
}

/// A table of this kind with as many routes as ranges.
fn of_kind(kind: TableKind, ranges: usize) -> Workload {
    let all_if = |kinds: &[TableKind]| if kinds.contains(&kind) { ranges } else { 0 };
    Workload {
        ranges,
        routes: ranges,
        host_routes: all_if(&[TableKind::Hosts]),
        wide_routes: all_if(&[TableKind::Wide, TableKind::ManyWide]),
        next_hops: if matches!(kind, TableKind::Many | TableKind::ManyWide) { 513 } else { 256 },
        ..Workload::default()
    }
}

#[test]
fn costs_never_fall_with_ranges_bytes_or_a_slower_machine() {
    let slower = Machine::recorded().with_l2(Machine::recorded().l2_bytes() / 4);
    for cost in costs() {
        for (kind, batch) in TableKind::ALL.into_iter().flat_map(|kind| BATCHES.map(|batch| (kind, batch))) {
            let ns = |ranges: usize, bytes: usize| {
                cost.ns(&Workload { batch, ..of_kind(kind, ranges) }, bytes, None)
            };
            for (ranges, bytes) in
                RANGES.into_iter().flat_map(|ranges| [(ranges, 8 * ranges), (ranges, 1 << 25)])
            {
                let least = ns(ranges, bytes);
                assert!(least > 0.0 && least.is_finite(), "{} {kind} {batch} {ranges}", cost.engine);
                assert!(ns(2 * ranges, bytes) >= least && ns(ranges, 2 * bytes) >= least, "{}", cost.engine);
                let wanted = Workload { batch, machine: slower, ..of_kind(kind, ranges) };
                assert!(cost.ns(&wanted, bytes, None) >= least, "{}", cost.engine);
            }
        }
    }
}

#[test]
fn between_two_batches_a_cost_is_between_theirs_and_above_the_largest_it_is_that_one() {
    for cost in costs() {
        let ns = |batch| cost.ns(&Workload { batch, ..of_kind(TableKind::Plain, 100_000) }, 1 << 20, None);
        let [low, between, high] = [32, 48, 64].map(ns);
        assert!(between >= low.min(high) - 1e-9 && between <= low.max(high) + 1e-9);
        assert_eq!(ns(1024), ns(5000));
    }
}

#[test]
fn the_fastest_is_chosen_unless_a_smaller_one_is_as_fast() {
    for wanted in workloads::<u32>() {
        let ranked = rank::<u32>(&wanted);
        assert!(ranked.windows(2).all(|pair| pair[0].mlps >= pair[1].mlps));
        let choice = choose::<u32>(&wanted, None).unwrap();
        assert!(choice.mlps >= TIE * ranked[0].mlps);
        assert!(choice.bytes <= ranked[0].bytes && choice.isa.is_within(wanted.isa));
    }
}

#[test]
fn what_is_in_use_stays_until_another_is_a_tenth_faster() {
    for wanted in workloads::<u128>() {
        let ranked = rank::<u128>(&wanted);
        let fastest = ranked[0];
        for choice in &ranked {
            let kept = choose::<u128>(&wanted, Some(choice.engine.name)).unwrap();
            if fastest.mlps <= choice.mlps * CHANGE {
                assert_eq!(kept.engine.name, choice.engine.name);
            } else {
                assert!(kept.mlps >= fastest.mlps * TIE);
            }
        }
        // An unknown name is ignored.
        assert_eq!(
            choose::<u128>(&wanted, Some("abacus")).unwrap().engine.name,
            choose::<u128>(&wanted, None).unwrap().engine.name
        );
    }
}

#[test]
fn bytes_and_sets_are_limits() {
    let wanted = Workload { ranges: 500_000, routes: 900_000, isa: Isa::Scalar, ..Workload::default() };
    let choices = rank::<u32>(&wanted);
    assert!(choices.iter().all(|choice| choice.isa == Isa::Scalar));
    let most = choices.iter().map(|choice| choice.bytes).min().unwrap();
    let smallest = rank::<u32>(&Workload { max_bytes: Some(most), ..wanted });
    assert!(!smallest.is_empty() && smallest.iter().all(|choice| choice.bytes <= most + most / 4));
    assert!(choose::<u32>(&Workload { max_bytes: Some(1), ..wanted }, None).is_none());
    // One route is no reason for 33 MB, nor for a megabyte.
    let choice = choose::<u32>(&Workload { routes: 1, ..Workload::default() }, None).unwrap();
    assert!(choice.bytes < 1 << 17, "{choice}");
}

/// What README and `fibula engines` say of the two engines for small tables.
#[test]
fn small_tables_get_the_engines_that_are_for_them() {
    for isa in [Isa::Avx2, Isa::Avx512] {
        for batch in [1, 32, 256] {
            let of = |routes, ranges| Workload { routes, ranges, batch, isa, ..Workload::default() };
            // Ranges as tables of the Internet's shape have them.
            for (routes, ranges) in [(10, 13), (100, 141), (500, 700), (1_000, 1_400)] {
                let choice = choose::<u32>(&of(routes, ranges), None).unwrap();
                assert_eq!(choice.engine.name, "range-btree", "{isa:?} {batch} {routes}");
            }
            let (avx2, single) = (isa == Isa::Avx2, batch == 1);
            for (routes, ranges, name) in [
                (10, 13, "planb"),
                (14, 21, "planb"),
                (50, 65, if avx2 && !single { "dir-btree" } else { "planb" }),
                // The two are level for single keys with AVX-512, and planb is smaller.
                (500, 550, if single && !avx2 { "planb" } else { "dir-btree" }),
                (1_000, 1_044, if single && !avx2 { "planb" } else { "dir-btree" }),
                (2_000, 2_055, "dir-btree"),
            ] {
                let choice = choose::<u128>(&of(routes, ranges), None).unwrap();
                assert_eq!(choice.engine.name, name, "{isa:?} {batch} {routes}");
            }
        }
    }
}

#[test]
fn what_is_known_replaces_what_is_expected() {
    let wanted = Workload { ranges: 500_000, routes: 900_000, ..Workload::default() };
    // Estimates may be over the limit by a quarter, known bytes may not.
    let fits = |choice: &Choice<u32>| choice.bytes + 1_000_000 <= wanted.most_bytes::<u32>();
    let first = rank::<u32>(&wanted).into_iter().find(fits).unwrap();
    let knowing = |lookup_bytes| {
        let known = Known { engine: first.engine.name, lookup_bytes };
        let ranked = rank_knowing::<u32>(&wanted, &[known]);
        ranked.into_iter().find(|choice| choice.engine.name == first.engine.name)
    };
    assert!(knowing(None).is_none(), "what refuses the table is not chosen");
    assert!(knowing(Some(wanted.most_bytes::<u32>() + 1)).is_none());
    let larger = knowing(Some(first.bytes + 1_000_000)).unwrap();
    assert!(larger.is_built && larger.mlps <= first.mlps && larger.bytes == first.bytes + 1_000_000);
}

#[test]
fn a_slower_machine_is_expected_to_be_slower() {
    let wanted = Workload { ranges: 500_000, routes: 900_000, ..Workload::default() };
    let rate = |machine| rank::<u32>(&Workload { machine, ..wanted })[0].mlps;
    let recorded = Machine::recorded();
    assert_eq!(rate(recorded.with_l2(recorded.l2_bytes())), rate(recorded));
    assert!(rate(recorded.with_l2(4 * recorded.l2_bytes())) >= rate(recorded));
    assert!(rate(recorded.with_l2(recorded.l2_bytes() / 4)) <= rate(recorded));
    let half = format!("l2_bytes 1000000\nstep_ns {}\n", 2.0 * recorded.step_ns());
    let loads: Vec<String> =
        (7..14).map(|size| format!("{}", 2.0 * recorded.load_ns(f64::exp2(2.0 * f64::from(size))))).collect();
    let waits: Vec<String> =
        (7..14).map(|size| format!("{}", 2.0 * recorded.wait_ns(f64::exp2(2.0 * f64::from(size))))).collect();
    let half = format!("{half}load_ns {}\nwait_ns {}", loads.join(" "), waits.join(" "));
    let half: Machine = half.parse().unwrap();
    assert!((rate(half) * 2.0 / rate(recorded) - 1.0).abs() < 1e-3);
}

#[test]
fn a_machine_is_measured_once_and_read_back() {
    let here = Machine::here();
    assert_eq!(Machine::here(), here);
    assert!(here.step_ns() > 0.0 && here.load_ns(1e9) >= here.load_ns(1e4));
    let read: Machine = here.to_string().parse().unwrap();
    assert!((read.step_ns() - here.step_ns()).abs() < 1e-3 && read.l2_bytes() == here.l2_bytes());
    let whole = "l2_bytes 1\nstep_ns 1\nload_ns 1 1 1 1 1 1 1\nwait_ns 1 1 2 1 1 1 3";
    // A larger table is not faster.
    assert_eq!(whole.parse::<Machine>().unwrap().wait_ns(1e6), 2.0);
    for (from, to) in [("wait_ns", "waits_ns"), ("step_ns 1", "step_ns -1"), ("1 3", "3"), ("1 3", "1 nan")] {
        let error = whole.replace(from, to).parse::<Machine>().unwrap_err();
        assert!(error.to_string().contains("measure it again"));
    }
}

/// The recorded machine, on which lookups take this many times the recorded time, by cost.
fn measured(times: impl Fn(&model::Cost) -> Option<f64>) -> Machine {
    let recorded = Machine::recorded();
    costs().iter().enumerate().fold(recorded.without_rates(), |machine, (number, cost)| {
        let (Some(times), Some(pace)) = (times(cost), recorded.paces.get(number)) else { return machine };
        let family = if cost.family == "ipv4" { Family::Ipv4 } else { Family::Ipv6 };
        let mlps = pace.ns.map(|ns| 1e3 / (times * f64::from(ns)));
        let (ranges, bytes) = (pace.ranges as usize, pace.bytes as usize);
        machine.with_rates(MeasuredRates { family, engine: cost.engine, isa: cost.isa, ranges, bytes, mlps })
    })
}

#[test]
fn what_was_measured_of_one_table_holds_for_others() {
    for wanted in workloads::<u32>() {
        let before = rank::<u32>(&wanted);
        let after = |times: &dyn Fn(&model::Cost) -> Option<f64>| {
            rank::<u32>(&Workload { machine: measured(times), ..wanted })
        };
        let names =
            |ranked: &[Choice<u32>]| ranked.iter().map(|choice| choice.engine.name).collect::<Vec<_>>();
        // As recorded, and as recorded of a machine that is slower as a whole.
        assert_eq!(names(&after(&|_| Some(1.0))), names(&before));
        let slower = after(&|_| Some(2.0));
        assert_eq!(names(&slower), names(&before));
        assert!((slower[0].mlps * 2.0 / before[0].mlps - 1.0).abs() < 1e-3);
        // The fastest engine is slower than that, and by as much.
        let fastest = before[0].engine.name;
        let moved = after(&|cost| Some(if cost.engine == fastest { 3.5 } else { 1.0 }));
        let rate =
            |ranked: &[Choice<u32>]| ranked.iter().find(|choice| choice.engine.name == fastest).unwrap().mlps;
        assert!((rate(&moved) * 3.5 / rate(&before) - 1.0).abs() < 1e-3, "{wanted:?}");
        assert!(moved[0].engine.name != fastest || rate(&moved) >= before[1].mlps);
        // One engine alone was measured: no basis for a comparison.
        let alone = after(&|cost| (cost.engine == fastest).then_some(3.5));
        assert_eq!(rate(&alone), rate(&before));
        // Something else was at work, to be this far off.
        let far = after(&|cost| Some(if cost.engine == fastest { 1_000.0 } else { 1.0 }));
        assert!((rate(&far) * 4.0 / rate(&before) - 1.0).abs() < 1e-3);
    }
}

#[test]
fn rates_of_a_set_without_costs_count_for_the_set_within() {
    let bare = Machine::recorded().without_rates();
    let of = |engine, isa, mlps| {
        let (family, ranges, bytes) = (Family::Ipv4, 6_000, 1 << 20);
        MeasuredRates { family, engine, isa, ranges, bytes, mlps: [mlps; BATCHES.len()] }
    };
    // The recorded machine has no NEON, and choices for one that has go by the costs of portable code.
    let machine = bare.with_rates(of("dir-24-8", Isa::Neon, 500.0));
    let portable = bare.with_rates(of("dir-24-8", Isa::Scalar, 500.0));
    assert_eq!(machine, portable);
    assert_ne!(machine, bare);
    assert_eq!(portable.with_rates(of("dir-24-8", Isa::Neon, 700.0)), portable);
    assert_ne!(portable.with_rates(of("dir-24-8", Isa::Scalar, 700.0)), portable);
    assert_eq!(bare.with_rates(of("abacus", Isa::Neon, 500.0)), bare);
    let names: Vec<_> = costs().iter().map(|cost| (cost.family, cost.engine)).collect();
    let all = names.iter().fold(bare, |machine, (family, engine)| {
        let family = if *family == "ipv4" { Family::Ipv4 } else { Family::Ipv6 };
        machine.with_rates(MeasuredRates { family, ..of(engine, Isa::Neon, 500.0) })
    });
    assert!(all.has_rates(Isa::Neon) && !all.has_rates(Isa::Avx2));
}

#[test]
fn what_was_measured_is_read_back() {
    let best = costs().iter().map(|cost| cost.isa).max().unwrap();
    let (recorded, machine) = (Machine::recorded(), measured(|_| Some(1.5)));
    let bare = recorded.without_rates();
    assert!(Isa::ALL.iter().all(|&isa| machine.has_rates(isa) && recorded.has_rates(isa)));
    assert!(Isa::ALL.iter().all(|&isa| !bare.has_rates(isa)));
    let text = machine.to_string();
    let read: Machine = text.parse().unwrap();
    assert!(read.has_rates(best) && read.to_string() == text, "{text}");
    assert_eq!(machine.without_rates(), bare);
    // The faster of two measurements, or the one there is.
    assert_eq!(machine.least(measured(|_| Some(1.2))), measured(|_| Some(1.2)));
    assert_eq!(bare.least(machine), machine);
    // A line of an engine that has gone is left out. A damaged line is refused.
    let (line, engine) = (text.lines().find(|line| line.starts_with("rates ")).unwrap(), costs()[0].engine);
    let without: Machine = text.replace(&format!(" {engine} "), " abacus ").parse().unwrap();
    assert!(!without.has_rates(best));
    let fields: Vec<&str> = line.split(' ').collect();
    for at in 1..fields.len() {
        let mut damaged = fields.clone();
        damaged[at] = "-1";
        // Any name may be that of an engine.
        if at != 2 {
            let error = text.replace(line, &damaged.join(" ")).parse::<Machine>().unwrap_err();
            assert!(error.to_string().contains("'rates'"), "{at} {error}");
        }
        damaged.remove(at);
        assert!(text.replace(line, &damaged.join(" ")).parse::<Machine>().is_err(), "{at}");
    }
}

#[test]
fn the_routes_and_ranges_of_a_table_are_counted() {
    let routes: Vec<_> =
        [("10.0.0.0/8", 1), ("10.1.0.0/30", 0x7fff), ("10.1.0.1/32", 0x8000), ("10.2.0.0/31", 4)]
            .map(|(prefix, id)| Route::<u32>::new(prefix.parse().unwrap(), NextHop::new(id).unwrap()))
            .into();
    let wanted = Workload::default().with_table(&RouteSlice::new(&routes).unwrap());
    assert_eq!((wanted.routes, wanted.host_routes, wanted.wide_routes, wanted.ranges), (4, 2, 1, 9));
    assert_eq!(wanted.next_hops, 4);
}

#[test]
fn tables_have_a_kind() {
    for (counts, kind) in [
        ((0, 0, 0, 0), TableKind::Plain),
        ((100, 50, 12, 512), TableKind::Plain),
        ((100, 51, 0, 513), TableKind::Hosts),
        ((100, 50, 13, 512), TableKind::Wide),
        ((100, 50, 12, 513), TableKind::Many),
        ((100, 50, 13, 513), TableKind::ManyWide),
        ((100, 51, 100, 2), TableKind::Hosts),
        ((1, 0, 1, 1), TableKind::Wide),
    ] {
        let (routes, host_routes, wide_routes, next_hops) = counts;
        let wanted = Workload { routes, host_routes, wide_routes, next_hops, ..Workload::default() };
        assert_eq!(wanted.kind(), kind, "{counts:?}");
    }
}

#[test]
fn every_set_was_measured_for_both_families() {
    for &isa in Isa::ALL {
        assert!(costs().iter().any(|cost| cost.serves::<u32>(isa)), "{isa}");
        assert!(costs().iter().any(|cost| cost.serves::<u128>(isa)), "{isa}");
    }
}

#[test]
fn wide_next_hops_are_expected_to_cost_what_was_measured() {
    let plain = Workload { ranges: 150_000, routes: 200_000, isa: Isa::Scalar, ..Workload::default() };
    let wide = Workload { wide_routes: 100_000, ..plain };
    let rate = |wanted: &Workload, name: &str| {
        rank::<u128>(wanted).iter().find(|choice| choice.engine.name == name).map(|choice| choice.mlps)
    };
    // It has 15 bits for a next hop, and looks further for others.
    let [plain, wide] = [plain, wide].map(|wanted| rate(&wanted, "dir-btree").unwrap());
    assert!(wide < plain, "{wide} {plain}");
}

#[test]
fn no_engine_was_measured_for_narrow_keys() {
    assert!(rank::<crate::net::Toy<8>>(&Workload::default()).is_empty());
}

#[test]
fn a_choice_says_why() {
    let wanted = Workload { ranges: 500_000, routes: 900_000, ..Workload::default() };
    let choice = choose::<u32>(&wanted, None).unwrap();
    let text = choice.to_string();
    assert!(text.starts_with(choice.engine.name) && text.contains("M lookups/s expected"), "{text}");
}

#[test]
fn what_refuses_a_table_is_not_chosen() {
    // More next hops than several formats hold.
    let next_hop = |at: u32| NextHop::new(1 + at).unwrap();
    let routes: Vec<Route<u32>> =
        (0..70_000).map(|at| Route::new(Prefix::masked(at << 8, 24).unwrap(), next_hop(at))).collect();
    let slice = RouteSlice::new(&routes).unwrap();
    for isa in [Isa::Scalar, simd::chosen().isa()] {
        for batch in [1, 256] {
            let wanted = Workload { isa, batch, max_bytes: Some(usize::MAX), ..Workload::default() };
            let chosen = choose_for(&slice, &wanted, None, Limits::default()).unwrap();
            let choice = chosen.choice.unwrap();
            assert!(choice.is_built);
            assert_eq!(choice.bytes, chosen.fib.memory().lookup_bytes);
            assert!(choice.engine.build(&slice, Limits::default()).is_ok(), "{choice}");
            assert_eq!(chosen.fib.lookup(69_999 << 8), Some(next_hop(69_999)));
        }
    }
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

    // Few bytes are left to engines that expect to take more.
    let routes = host_routes(3_000);
    let slice = RouteSlice::new(&routes).unwrap();
    let smallest = last_resort::<u32>().unwrap().build(&slice, Limits::default()).unwrap();
    let most = smallest.memory().lookup_bytes;
    let wanted = Workload { max_bytes: Some(most), ..Workload::default() };
    assert!(build(&slice, wanted, Limits::default()).unwrap().memory().lookup_bytes <= most);
    let error = build(&slice, Workload { max_bytes: Some(8), ..wanted }, Limits::default()).unwrap_err();
    assert!(error.is_limit(), "{error}");
    let error = build(&slice, Workload::default(), Limits::within(64)).unwrap_err();
    assert!(error.out_of_memory().is_some(), "{error}");
}
