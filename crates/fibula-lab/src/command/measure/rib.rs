//! Size and speed of the RIB.
//!
//! Without files, one million IPv4 and 250,000 IPv6 routes of the generator are inserted one by one, in order and shuffled.
//!
//! With files of routes, it prints nanoseconds of thread CPU time for the operations that live tables need of a RIB.
//! Prefixes are taken in random order, because in the order of the table one walk would leave the nodes of the next in
//! the cache. Each figure is the median of nine rounds, which take turns.

use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

use fibula::net::{Change, Key, NextHop, Prefix, Route, Routes};
use fibula::rib::Rib;
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::random::Random;
use fibula_workload::table::{Profile, TableSpec, generate};

use super::{Outcome, cpu_ns};

pub(super) fn run(files: &[String]) -> Outcome {
    for file in files {
        let ribs = Loader::new(LoadOptions::default()).load(file.as_str())?.ribs;
        speed(file, &ribs.v4)?;
        speed(file, &ribs.v6)?;
    }
    if files.is_empty() {
        let total = fill::<u32>(1_000_000)? + fill::<u128>(250_000)?;
        println!("both: {:.1} MB", total as f64 / 1e6);
    }
    Ok(())
}

fn fill<K: Key>(count: usize) -> Result<usize, Box<dyn Error>> {
    let spec = TableSpec { routes: count, next_hops: 256, seed: 1 };
    let mut routes: Vec<Route<K>> = generate(&spec, &Profile::of::<K>())?;
    let mut bytes = 0;
    for order in ["in order", "shuffled"] {
        let mut rib = Rib::<K>::default();
        let start = Instant::now();
        for &route in &routes {
            rib.insert(route)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        rib.check()?;
        bytes = rib.memory().held_bytes();
        println!(
            "{} {count} routes {order}: {:.0} ms, {:.1} MB, {:.1} bytes a route",
            K::FAMILY,
            seconds * 1e3,
            bytes as f64 / 1e6,
            bytes as f64 / count as f64
        );
        Random::new(3).shuffle(&mut routes);
    }
    Ok(bytes)
}

/// Changes in a batch.
const BATCH: usize = 64;
/// Operations of each kind in a round.
const COUNT: usize = 120_000;
const ROUNDS: usize = 9;

/// A measurement: a name, operations for each route, and a function that does them and returns something that depends on
/// the results.
type Measure<K> = (&'static str, f64, fn(&mut Rib<K>, &[Route<K>]) -> u64);

fn speed<K: Key>(file: &str, table: &Rib<K>) -> Outcome {
    if table.is_empty() {
        return Ok(());
    }
    let mut routes: Vec<_> = table.iter().collect();
    let mut random = Random::new(9);
    random.shuffle(&mut routes);
    let start = cpu_ns();
    let mut rib = Rib::default();
    for &route in &routes {
        rib.insert(route)?;
    }
    println!(
        "{file}, {}: {} routes, {:.1} MB, filled in random order in {:.0} ms",
        K::FAMILY,
        rib.len(),
        rib.memory().held_bytes() as f64 / 1e6,
        (cpu_ns() - start) / 1e6
    );
    let measures = measures::<K>();
    let mut times = vec![Vec::new(); measures.len()];
    for _ in 0..ROUNDS {
        for ((_, operations, run), times) in measures.iter().zip(&mut times) {
            let first = random.below((routes.len() - routes.len().min(COUNT) + 1) as u64) as usize;
            let some = &routes[first..(first + COUNT).min(routes.len())];
            let start = cpu_ns();
            std::hint::black_box(run(&mut rib, some));
            times.push((cpu_ns() - start) / (some.len() as f64 * operations));
        }
    }
    rib.check()?;
    assert!(rib.iter().eq(table.iter()), "the table is as it was");
    for ((name, ..), mut times) in measures.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        println!("  {name:<52} {:>6.0} ns", times[ROUNDS / 2]);
    }
    Ok(())
}

fn measures<K: Key>() -> Vec<Measure<K>> {
    vec![
        ("get", 1.0, |rib, routes| routes.iter().map(|route| id(rib.get(route.prefix))).sum()),
        ("longest match", 1.0, |rib, routes| {
            routes.iter().map(|route| id(rib.lookup(route.prefix.last()))).sum()
        }),
        ("replace, one by one", 1.0, |rib, routes| {
            routes.iter().map(|&route| id(rib.insert(route).ok().flatten())).sum()
        }),
        ("remove and insert of the same, each", 2.0, |rib, routes| {
            let both = |&route: &Route<K>| id(rib.remove(route.prefix)) + insert(rib, route);
            routes.iter().map(both).sum()
        }),
        ("a change of a batch, one by one", 1.5, |rib, routes| {
            batches(routes, |changes| {
                for change in changes {
                    match *change {
                        Change::Insert(route) => drop(rib.insert(route)),
                        Change::Remove(prefix) => drop(rib.remove(prefix)),
                    }
                }
            })
        }),
        ("a change of a batch, apply", 1.5, |rib, routes| {
            batches(routes, |changes| rib.apply(changes).unwrap_or(()))
        }),
        ("a change of a batch, apply with a log", 1.5, |rib, routes| {
            let mut log = Vec::new();
            batches(routes, |changes| {
                let _ = rib.apply_logged(changes, &mut log);
            })
        }),
        ("the same, then parent and visit", 1.5, |rib, routes| {
            let mut sum = 0;
            batches(routes, |changes| {
                let _ = rib.apply(changes);
                sum += changes.iter().map(|change| around(rib, change.prefix())).sum::<u64>();
            });
            sum
        }),
        ("parent and visit, nothing in the cache", 1.0, |rib, routes| {
            routes.iter().map(|route| around(rib, route.prefix)).sum()
        }),
    ]
}

fn insert<K: Key>(rib: &mut Rib<K>, route: Route<K>) -> u64 {
    id(rib.insert(route).ok().flatten())
}

fn id(next_hop: Option<NextHop>) -> u64 {
    next_hop.map_or(0, |next_hop| next_hop.id().into())
}

/// The queries of an engine that changes in place, for each prefix: the route above, and up to 32 routes within.
fn around<K: Key>(rib: &Rib<K>, prefix: Prefix<K>) -> u64 {
    let routes: &dyn Routes<K> = rib;
    let (mut sum, mut left) = (0, 33);
    let _ = routes.visit_from_parent(prefix, &mut |route| {
        sum += u64::from(route.next_hop.id());
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    sum
}

/// Applies batches after which the table is as before: of 64 changes about a third replace, a third remove and a third insert
/// the routes that a batch before had removed.
fn batches<K: Key>(routes: &[Route<K>], mut apply: impl FnMut(&[Change<K>])) -> u64 {
    let mut batch = Vec::with_capacity(BATCH);
    let mut removed: Vec<Route<K>> = Vec::new();
    let mut rest = routes.chunks(BATCH / 3 * 2);
    let mut count = 0;
    loop {
        let some = rest.next().unwrap_or(&[]);
        let (replaced, gone) = some.split_at(some.len() / 2);
        batch.extend(removed.drain(..).map(Change::Insert));
        batch.extend(replaced.iter().map(|&route| Change::Insert(route)));
        batch.extend(gone.iter().map(|route| Change::Remove(route.prefix)));
        if batch.is_empty() {
            return count;
        }
        removed.extend_from_slice(gone);
        count += batch.len() as u64;
        apply(&batch);
        batch.clear();
    }
}
