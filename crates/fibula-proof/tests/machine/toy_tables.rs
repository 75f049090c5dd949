//! Three bits: all 3^15 = 14,348,907 tables built, and all 2^15 tables with each of their 15 toggles in place.

use fibula::fib::registry::{Algorithm, Update};
use fibula::memory::Limits;
use fibula::net::{Change, NextHop, Route, RouteSlice, Toy};
use libtest_mimic::Trial;

use crate::trial;
use fibula_proof::subject::{Subject, Tested};
use fibula_proof::toy::{hop, keys, paint, prefixes};
use fibula_proof::verdict::{Failure, answers, sound};

type K = Toy<3>;

/// The number of slices that the tables are cut into, so that every core has work until the end.
const SLICES: u32 = 9;

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for algorithm in K::entries() {
        // Blocks of VRFs are no structures of full tables: a part of the tables has to do.
        let slices = if algorithm.name == "vrf-block" { 5..6 } else { 0..SLICES };
        for slice in slices {
            trials.push(trial(&format!("tables-{slice}"), algorithm, move |algorithm| {
                tables(algorithm, slice)
            }));
        }
        if algorithm.update == Update::InPlace {
            trials.push(trial("toggles", algorithm, toggles));
        }
    }
    trials
}

/// The tables in which `slice` decides the last two prefixes; each prefix is absent, leads to A, or to B.
fn tables(algorithm: Algorithm<K>, slice: u32) -> Result<(), Failure> {
    let (prefixes, keys) = (prefixes::<K>(), keys::<K>());
    let mut expected = [None; 8];
    let mut routes: Vec<Route<K>> = Vec::with_capacity(prefixes.len());
    for number in slice * 3u32.pow(13)..(slice + 1) * 3u32.pow(13) {
        routes.clear();
        let mut digits = number;
        for &prefix in &prefixes {
            if let Some(next_hop) = NextHop::new(digits % 3) {
                routes.push(Route::new(prefix, next_hop));
            }
            digits /= 3;
        }
        paint(&routes, &mut expected);
        let fib = algorithm.build(&RouteSlice::new(&routes)?, Limits::default())?;
        answers(&*fib, &algorithm, &routes, &keys, &expected)?;
        sound(&*fib, algorithm.name, &routes)?;
    }
    Ok(())
}

fn toggles(algorithm: Algorithm<K>) -> Result<(), Failure> {
    let (prefixes, keys) = (prefixes::<K>(), keys::<K>());
    // Neighbours and covers differ, so that every toggle shows.
    let route = |at: usize| Route::new(prefixes[at], hop(1 + at as u32 % 4));
    let table = |bits: u32| (0..15).filter(|at| bits >> at & 1 == 1).map(route).collect::<Vec<_>>();
    let mut expected = [None; 8];
    for bits in 0..1u32 << 15 {
        let before = table(bits);
        let mut subject = Subject::build_updatable(algorithm, &RouteSlice::new(&before)?)?;
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
                answers(&*subject.fib, &algorithm, routes, &keys, &expected)?;
                sound(&*subject.fib, algorithm.name, routes)?;
            }
        }
    }
    Ok(())
}
