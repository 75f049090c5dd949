//! Three bits: one in 5 of all 3^15 = 14,348,907 tables built, or each with `FIBULA_TABLES=all`, and all 2^15 tables with each
//! of their 15 toggles in place.

use fibula::fib::registry::{Engine, Update};
use fibula::memory::Limits;
use fibula::net::{Change, NextHop, Route, RouteSlice, Toy};
use libtest_mimic::Trial;

use crate::{all_cases, takes_few, trial};
use fibula_proof::subject::{Subject, Tested};
use fibula_proof::toy::{hop, keys, paint, prefixes};
use fibula_proof::verdict::{Failure, answers, sound};

type K = Toy<3>;

/// The number of slices that the tables are cut into, so that every core has work until the end.
const SLICES: u32 = 9;

/// All tables.
const TABLES: u32 = 3u32.pow(15);

/// One in so many tables is built, unless `FIBULA_TABLES=all`. It has no common factor with 3, so that no prefix is the same in
/// all of them.
const STEP: usize = 5;

/// The same, for the structures of [`SAMPLED`].
const SAMPLE: usize = 97;

/// Structures of which a small sample of the tables has to do, unless `FIBULA_TABLES=all`: those that take minutes to build all,
/// those that are others with a parameter or a kernel changed, and the schemes that PlanB is compared with.
const SAMPLED: [&str; 13] = [
    "bloom-baseline",
    "bloom-naive",
    "bloomfwd",
    "cp-trie",
    "dir-btree",
    "hbs",
    "multibit-2",
    "neurotrie",
    "planb-compiled",
    "planb-scalar",
    "planb-vectors",
    "sail",
    "vrf-block",
];

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let all = all_cases();
    for engine in K::entries().into_iter().filter(|engine| !takes_few(engine)) {
        let is_sampled =
            SAMPLED.iter().any(|&name| name == engine.name || engine.name.starts_with("bloomfwd-"));
        if is_sampled && !all {
            trials.push(trial("tables-sample", engine, |engine| tables(engine, (0..TABLES).step_by(SAMPLE))));
        } else {
            for slice in 0..SLICES {
                let numbers = slice * TABLES / SLICES..(slice + 1) * TABLES / SLICES;
                let step = if all { 1 } else { STEP };
                trials.push(trial(&format!("tables-{slice}"), engine, move |engine| {
                    tables(engine, numbers.clone().step_by(step))
                }));
            }
        }
        if engine.update == Update::InPlace {
            trials.push(trial("toggles", engine, toggles));
        }
    }
    trials
}

/// The tables of these numbers, whose ternary digits are the prefixes: each is absent, leads to A, or to B.
fn tables(engine: Engine<K>, numbers: impl Iterator<Item = u32>) -> Result<(), Failure> {
    let (prefixes, keys) = (prefixes::<K>(), keys::<K>());
    let mut expected = [None; 8];
    let mut routes: Vec<Route<K>> = Vec::with_capacity(prefixes.len());
    for number in numbers {
        routes.clear();
        let mut digits = number;
        for &prefix in &prefixes {
            if let Some(next_hop) = NextHop::new(digits % 3) {
                routes.push(Route::new(prefix, next_hop));
            }
            digits /= 3;
        }
        paint(&routes, &mut expected);
        let fib = engine.build(&RouteSlice::new(&routes)?, Limits::default())?;
        answers(&*fib, &engine, &routes, &keys, &expected)?;
        sound(&*fib, engine.name, &routes)?;
    }
    Ok(())
}

fn toggles(engine: Engine<K>) -> Result<(), Failure> {
    let (prefixes, keys) = (prefixes::<K>(), keys::<K>());
    // Neighbours and covers differ, so that every toggle shows.
    let route = |at: usize| Route::new(prefixes[at], hop(1 + at as u32 % 4));
    let table = |bits: u32| (0..15).filter(|at| bits >> at & 1 == 1).map(route).collect::<Vec<_>>();
    let mut expected = [None; 8];
    for bits in 0..1u32 << 15 {
        let before = table(bits);
        let mut subject = Subject::build_updatable(engine, &RouteSlice::new(&before)?)?;
        for (at, &prefix) in prefixes.iter().enumerate() {
            let after = table(bits ^ 1 << at);
            let [there, back] = if bits >> at & 1 == 1 {
                [Change::Remove(prefix), Change::Insert(route(at))]
            } else {
                [Change::Insert(route(at)), Change::Remove(prefix)]
            };
            for (change, routes) in [(there, &after), (back, &before)] {
                subject.apply(&[change], &RouteSlice::new(routes)?)?;
                paint(routes, &mut expected);
                answers(&*subject.fib, &engine, routes, &keys, &expected)?;
                sound(&*subject.fib, engine.name, routes)?;
            }
        }
    }
    Ok(())
}
