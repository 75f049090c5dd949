//! Live tables: the costs of removing random routes and adding them again, for the writer and for a reader beside it.

use core::time::Duration;
use std::time::Instant;

use fibula::fib::registry::Update;
use fibula::live::{Options, Table};
use fibula::net::{IpPrefix, Key, NextHop, Prefix, Route, Routes};
use fibula::rib::{DualRib, Rib};
use fibula_workload::interval::Interval;
use fibula_workload::replay::{self, Plan, Rate, Report};

use super::tables;

/// A figure of a table that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live {
    /// Microseconds that the writer takes for a change, in calls of 64, without a reader.
    Change,
    /// Million changes for a second of the writer, in calls of 64, beside a reader.
    Rate,
    /// The part of its rate that a reader loses at a million changes a second.
    Loss,
    /// The part of the calls of 64 that built nothing anew.
    InPlace,
    /// Microseconds from the call of a single change until it is visible, beside a reader, in half of the calls.
    VisibleMedian,
    /// The same, in 99.9 % of the calls.
    VisibleMost,
    /// Microseconds of `apply_atomic` with 64 changes, beside a reader.
    Atomic,
    /// Bytes of the engine after all these changes, relative to those of a fresh build.
    Churned,
}

/// The figures of an engine.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveFigures {
    runs: Vec<(Live, Vec<f64>)>,
    /// Microseconds of a change of the default route.
    pub(super) default_route: f64,
}

impl LiveFigures {
    fn add(&mut self, live: Live, figure: f64) {
        match self.runs.iter_mut().find(|(of, _)| *of == live) {
            Some((_, runs)) => runs.push(figure),
            None => self.runs.push((live, vec![figure])),
        }
    }

    /// Returns a figure, if it was measured.
    pub(super) fn of(&self, live: Live) -> Option<Interval> {
        let (_, runs) = self.runs.iter().find(|(of, _)| *of == live)?;
        Interval::of(runs)
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    pub(super) runs: usize,
    /// Changes of each measurement of a run.
    pub(super) changes: usize,
    /// How long the reader is measured alone.
    pub(super) idle: Duration,
}

/// Returns the figures of an engine of the registry, or why it has none.
pub(super) fn measure<K: Key>(
    name: &str,
    routes: &dyn Routes<K>,
    amount: Amount,
) -> Result<LiveFigures, String> {
    let line = fibula_published::find::<K>(name).map_err(|error| error.to_string())?;
    if line.update != Update::InPlace {
        return Err("it is built anew for each call of a live table".to_owned());
    }
    let routes = tables::all(routes);
    let (mut v4, mut v6) = (Rib::default(), Rib::default());
    for &route in &routes {
        match prefix(route.prefix) {
            IpPrefix::V4(prefix) => v4.insert(Route::new(prefix, route.next_hop)),
            IpPrefix::V6(prefix) => v6.insert(Route::new(prefix, route.next_hop)),
        }
        .map_err(|error| error.to_string())?;
    }
    let all: Vec<(IpPrefix, NextHop)> =
        routes.iter().map(|route| (prefix(route.prefix), route.next_hop)).collect();
    let options = Options::default().with_engine(line);
    let table = Table::from_routes(DualRib::new(v4, v6), options).map_err(|error| error.to_string())?;
    run(&table, &all, options, amount).map_err(|error| error.to_string())
}

fn run(
    table: &Table,
    routes: &[(IpPrefix, NextHop)],
    options: Options,
    amount: Amount,
) -> Result<LiveFigures, Box<dyn std::error::Error>> {
    let mut figures = LiveFigures::default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for run in 0..amount.runs {
        let seed = run as u64;
        let replayed = |batch, readers, rate| -> Result<Report, Box<dyn std::error::Error>> {
            let steps = replay::removed_and_added(routes, amount.changes, batch, seed);
            let plan = Plan { rate, batch, readers, idle: amount.idle, ..Plan::default() };
            replay::replay(table, &steps, &plan, |_, _| {})
        };
        let alone = replayed(64, 0, Rate::Max)?;
        figures.add(Live::Change, 1e6 / alone.changes_per_busy_second());
        figures.add(Live::InPlace, 1.0 - alone.totals.rebuilt as f64 / alone.calls as f64);
        // A reader that shares the writer's core would be measured by its turns.
        if cores > 1 {
            figures.add(Live::Rate, replayed(64, 1, Rate::Max)?.changes_per_busy_second() / 1e6);
            figures.add(Live::Loss, replayed(64, 1, Rate::PerSecond(1e6))?.loss().unwrap_or(0.0));
            let [median, _, most, _] = replayed(1, 1, Rate::Max)?.visible_micros;
            figures.add(Live::VisibleMedian, median);
            figures.add(Live::VisibleMost, most);
        }
        for chunk in replay::removed_and_added(routes, 64 * 20, 64, seed).chunks(64) {
            let (mut v4, mut v6) = (Vec::new(), Vec::new());
            for step in chunk {
                match step.prefix {
                    IpPrefix::V4(prefix) => v4.push(replay::change(prefix, step.next_hop)),
                    IpPrefix::V6(prefix) => v6.push(replay::change(prefix, step.next_hop)),
                }
            }
            let start = Instant::now();
            let _ = table.apply_atomic(&v4, &v6)?;
            figures.add(Live::Atomic, start.elapsed().as_secs_f64() * 1e6);
        }
    }
    table.maintain()?;
    let fresh = Table::from_routes(table.routes()?, options)?;
    let bytes = |table: &Table| table.statistics().map(|s| (s.structures.v4 + s.structures.v6).held_bytes());
    figures.add(Live::Churned, bytes(table)? as f64 / bytes(&fresh)? as f64);
    figures.default_route = default_route(table, routes)?;
    Ok(figures)
}

/// Returns the time of a change of the default route, which is not one of the random changes.
fn default_route(table: &Table, routes: &[(IpPrefix, NextHop)]) -> Result<f64, Box<dyn std::error::Error>> {
    let Some((prefix, next_hop)) = routes.first() else { return Ok(0.0) };
    let default: IpPrefix = match prefix {
        IpPrefix::V4(_) => Prefix::<u32>::ALL.into(),
        IpPrefix::V6(_) => Prefix::<u128>::ALL.into(),
    };
    let before = table.get(default)?;
    let start = Instant::now();
    if before == Some(*next_hop) {
        let _ = table.remove(default)?;
    } else {
        let _ = table.insert(default, *next_hop)?;
    }
    let micros = start.elapsed().as_secs_f64() * 1e6;
    match before {
        Some(next_hop) => drop(table.insert(default, next_hop)?),
        None => drop(table.remove(default)?),
    }
    Ok(micros)
}

/// Returns the prefix as one of its family.
fn prefix<K: Key>(prefix: Prefix<K>) -> IpPrefix {
    let bits = prefix.addr().to_bits();
    if K::BITS == 32 {
        Prefix::masked(bits as u32, prefix.len()).expect("a length of its family").into()
    } else {
        Prefix::masked(bits, prefix.len()).expect("a length of its family").into()
    }
}
