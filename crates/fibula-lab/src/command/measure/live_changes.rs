//! Changes of a live table, and lookups beside them.
//!
//! Random routes of the table are removed and added again, in calls of 1 and 64 changes, with no reader, with one that looks
//! up random addresses of the table in batches of 256, and at a rate of a million changes a second.

use fibula::live::{Options, Table};
use fibula::net::{IpPrefix, Key, NextHop, Route};
use fibula::rib::{DualRib, Rib};
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::replay::{self, Plan, Rate};

use super::Outcome;

pub(super) fn run(file: &str, changes: usize, engine: Option<&str>) -> Outcome {
    let ribs = Loader::new(LoadOptions::default()).load(file)?.ribs;
    let mut options = Options::default();
    // The engine serves the family that has more routes; the other is empty.
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
    let table = Table::from_routes(ribs, options)?;
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

fn routes<K: Key>(rib: &Rib<K>) -> Vec<(IpPrefix, NextHop)>
where
    IpPrefix: From<fibula::net::Prefix<K>>,
{
    rib.iter().map(|Route { prefix, next_hop }| (prefix.into(), next_hop)).collect()
}
