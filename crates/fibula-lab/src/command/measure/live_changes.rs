//! Changes of a live table, and lookups beside them.
//!
//! Random routes of the table are removed and added again, in calls of 1 and 64 changes, with no reader, with one that looks
//! up random addresses of the table in batches of 256, and at a rate of a million changes a second.
//!
//! With `--rounds`, changes are measured alone, without a reader: the processor time of a change in calls of 64, in calls of one, and in
//! `apply_atomic` with 64. Each round takes other random routes, and the median of all rounds is printed.

use fibula::live::{Options, Table};
use fibula::net::{Change, Dual, IpPrefix, Key, NextHop, Route};
use fibula::rib::{DualRib, Rib};
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::replay::{self, Plan, Rate};

use super::{Outcome, cpu_ns};

pub(super) fn run(file: &str, changes: usize, engine: Option<&str>, rounds: Option<usize>) -> Outcome {
    let LoadedTable { table, routes, options } = load(file, engine)?;
    if let Some(rounds) = rounds {
        return alone(&table, &routes, changes, rounds);
    }
    for (batch, readers, rate) in [
        (1, 0, Rate::Max),
        (64, 0, Rate::Max),
        (1, 1, Rate::Max),
        (64, 1, Rate::Max),
        (64, 1, Rate::PerSecond(1e6)),
    ] {
        let steps = replay::removed_and_added(&routes, changes, batch, batch as u64);
        let plan = Plan { rate, batch, readers, ..Plan::default() };
        let report = replay::replay(&table, &steps, &plan, |_, _| {})?;
        let [p50, p99, p99_9, most] = report.visible_micros;
        println!(
            "calls of {batch}, {readers} readers{}: {:.3} us a change, {:.2} M changes/s; \
             visible after p50 {p50:.1} us, p99 {p99:.1}, p99.9 {p99_9:.1}, at most {most:.0}; {} built anew",
            if rate == Rate::Max { "" } else { ", at a million changes a second" },
            1e6 / report.changes_per_busy_second(),
            report.changes_per_second() / 1e6,
            report.totals.rebuilt,
        );
        if let (Some(loss), [idle], [busy]) = (report.loss(), &report.idle_mlps[..], &report.busy_mlps[..]) {
            println!(
                "  the reader: {idle:.0} M lookups/s alone, {busy:.0} meanwhile, {:.1} % less",
                100.0 * loss
            );
        }
    }
    table.check()?;
    let statistics = table.statistics()?;
    println!("{statistics:?}");
    let fresh = Table::from_routes(table.routes()?, options)?.statistics()?;
    let [now, then] = [statistics, fresh].map(|s| (s.structures.v4 + s.structures.v6).held_bytes() as f64);
    println!("the engine takes {:.3} times a fresh build", now / then);
    Ok(())
}

/// A live table, its routes, and what it was made with.
struct LoadedTable {
    table: Table,
    routes: Vec<(IpPrefix, NextHop)>,
    options: Options,
}

/// Returns a live table of the family that has more routes in the file, and its routes. The engine serves that family; the other
/// is empty.
fn load(file: &str, engine: Option<&str>) -> Outcome<LoadedTable> {
    let ribs = Loader::new(LoadOptions::default()).load(file)?.ribs;
    let mut options = Options::default();
    let (ribs, routes) = if ribs.v4.len() > ribs.v6.len() {
        if let Some(name) = engine {
            options.ipv4 = fibula_published::find(name)?;
        }
        let routes = routes(&ribs.v4);
        (DualRib::new(ribs.v4, Rib::default()), routes)
    } else {
        if let Some(name) = engine {
            options.ipv6 = fibula_published::find(name)?;
        }
        let routes = routes(&ribs.v6);
        (DualRib::new(Rib::default(), ribs.v6), routes)
    };
    Ok(LoadedTable { table: Table::from_routes(ribs, options)?, routes, options })
}

/// Changes in one call of the writer.
const CALLS: [(usize, bool, &str); 3] =
    [(64, false, "64 a call"), (1, false, "one a call"), (64, true, "64 by apply_atomic")];

/// Prints the processor time of a change, without readers.
fn alone(table: &Table, routes: &[(IpPrefix, NextHop)], changes: usize, rounds: usize) -> Outcome {
    let mut took = CALLS.map(|_| Vec::new());
    for round in 0..rounds {
        for ((batch, atomic, _), took) in CALLS.iter().zip(&mut took) {
            let steps = replay::removed_and_added(routes, changes, *batch, round as u64);
            let mut split: Dual<Vec<Change<u32>>, Vec<Change<u128>>> = Dual::default();
            for step in &steps {
                match step.prefix {
                    IpPrefix::V4(prefix) => split.v4.push(replay::change(prefix, step.next_hop)),
                    IpPrefix::V6(prefix) => split.v6.push(replay::change(prefix, step.next_hop)),
                }
            }
            let start = cpu_ns();
            // One of the two families has no changes.
            for changes in split.v4.chunks(*batch) {
                if *atomic { table.apply_atomic(changes, &[]) } else { table.apply(changes) }?;
            }
            for changes in split.v6.chunks(*batch) {
                if *atomic { table.apply_atomic(&[], changes) } else { table.apply(changes) }?;
            }
            took.push((cpu_ns() - start) / 1e3 / steps.len() as f64);
        }
    }
    table.check()?;
    for ((batch, _, name), took) in CALLS.iter().zip(&mut took) {
        took.sort_unstable_by(f64::total_cmp);
        let [least, median, most] = [0, took.len() / 2, took.len() - 1].map(|at| took[at]);
        println!(
            "{name}: {median:.3} us a change ({least:.3} to {most:.3} in {rounds} rounds), {:.1} us a call",
            median * *batch as f64
        );
    }
    Ok(())
}

fn routes<K: Key>(rib: &Rib<K>) -> Vec<(IpPrefix, NextHop)>
where
    IpPrefix: From<fibula::net::Prefix<K>>,
{
    rib.iter().map(|Route { prefix, next_hop }| (prefix.into(), next_hop)).collect()
}
