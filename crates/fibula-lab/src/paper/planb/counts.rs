//! Tables, sizes and changes.

use std::time::Instant;

use fibula::fib::ranges::Merge;
use fibula::fib::{Applied, Fib};
use fibula::memory::Limits;
use fibula::net::{Change, Route};
use fibula::rib::Rib;
use fibula_published::internals::{Node8x64, PlanB, capacity};
use fibula_workload::interval::Interval;
use fibula_workload::random::Random;
use serde::Deserialize;

use super::super::values::{OfTable, OfTables};
use super::super::{Context, Point};

/// The lengths that have columns.
const LENGTHS: [u8; 5] = [48, 32, 44, 40, 36];

/// Returns the size of each table and the shares of its lengths.
pub(super) fn table_1(
    context: &mut Context<'_>,
    OfTables { tables }: &OfTables,
) -> Result<Vec<Point>, String> {
    let mut points = Vec::new();
    for table in tables {
        let (name, rib) = context.ipv6(table)?;
        points.push(Point::new(name.clone(), "prefixes", rib.len() as f64));
        for length in LENGTHS {
            let count = rib.iter().filter(|route| route.prefix.len() == length).count();
            let share = 100.0 * count as f64 / rib.len() as f64;
            points.push(Point::new(name.clone(), format!("/{length}"), share));
        }
    }
    Ok(points)
}

/// The heights of trees.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Heights {
    levels: Vec<u32>,
}

/// Returns the capacities of trees of these heights.
pub(super) fn capacity_of_levels(
    _: &mut Context<'_>,
    Heights { levels }: &Heights,
) -> Result<Vec<Point>, String> {
    const MIB: f64 = (1 << 20) as f64;
    let mut points = Vec::new();
    for &levels in levels {
        let full = capacity::<Node8x64>(levels);
        let mut count = |column: &str, value: f64| points.push(Point::new(levels.to_string(), column, value));
        count("internal nodes", full.internal_nodes as f64);
        count("leaves", full.leaf_nodes as f64);
        count("keys", full.keys as f64);
        count("leaf MiB", full.leaf_bytes as f64 / MIB);
        count("internal MiB", full.internal_bytes as f64 / MIB);
    }
    Ok(points)
}

/// Returns the sizes of a table, unmerged and merged.
pub(super) fn intervals(
    context: &mut Context<'_>,
    OfTable { table }: &OfTable,
) -> Result<Vec<Point>, String> {
    let (name, rib) = context.ipv6(table)?;
    let mut points = Vec::new();
    for (merge, form) in [(Merge::Never, "unmerged"), (Merge::EqualNeighbours, "merged")] {
        let tree = PlanB::<u128, Node8x64>::build(&*rib, merge, Limits::default());
        let tree = tree.map_err(|error| error.to_string())?.statistics();
        let row = format!("{name}, {form}");
        let mut count = |column: &str, value: f64| points.push(Point::new(row.clone(), column, value));
        count("prefixes", rib.len() as f64);
        count("intervals", tree.intervals as f64);
        count("internal levels", tree.internal_levels.into());
        count("leaves", tree.leaf_nodes as f64);
        count("nodes", (tree.internal_bytes + tree.leaf_bytes) as f64 / rib.len() as f64);
        count("with values", tree.published_bytes() as f64 / rib.len() as f64);
    }
    Ok(points)
}

/// Engines whose memory is compared.
const SIZED: [&str; 7] = ["planb", "planb-unmerged", "poptrie", "cp-trie", "neurotrie", "hbs", "dir-btree"];

/// Returns the bytes that lookups can read, in megabytes.
pub(super) fn memory(
    context: &mut Context<'_>,
    OfTables { tables }: &OfTables,
) -> Result<Vec<Point>, String> {
    let mut points = Vec::new();
    for table in tables {
        let (name, rib) = context.ipv6(table)?;
        for structure in SIZED {
            let engine = fibula_published::find::<u128>(structure).map_err(|error| error.to_string())?;
            let point = match engine.build(&*rib, Limits::default()) {
                Ok(fib) => Point::new(name.clone(), structure, fib.memory().lookup_bytes as f64 / 1e6),
                Err(error) => Point::absent(name.clone(), structure, error.to_string()),
            };
            points.push(point);
        }
    }
    Ok(points)
}

/// Changes of a batch.
const BATCH: usize = 4096;

/// Measures builds and changes.
pub(super) fn updates(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let runs = context.settings.runs;
    let (row, rib) = context.ipv6(table)?;
    let mut all: Vec<Route<u128>> = rib.iter().collect();
    let mut random = Random::new(9);
    let count = BATCH.min(all.len() / 2);
    for at in 0..count {
        let other = at + random.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
    let removals: Vec<Change<u128>> = all.iter().map(|route| Change::Remove(route.prefix)).collect();
    let inserts: Vec<Change<u128>> = all.iter().map(|&route| Change::Insert(route)).collect();
    let mut after: Rib<u128> = (*rib).clone();
    let names = ["planb", "poptrie", "cp-trie", "neurotrie", "hbs"];
    let mut fibs: Vec<Box<dyn Fib<u128>>> = Vec::new();
    for name in names {
        let engine = fibula_published::find::<u128>(name).map_err(|error| error.to_string())?;
        fibs.push(engine.build_updatable(&*rib, Limits::default()).map_err(|error| error.to_string())?);
    }
    let (mut builds, mut changes) = (vec![Vec::new(); names.len()], vec![Vec::new(); names.len()]);
    for _ in 0..runs {
        for (at, name) in names.iter().enumerate() {
            let engine = fibula_published::find::<u128>(name).map_err(|error| error.to_string())?;
            let build = |rib: &Rib<u128>| {
                let begin = Instant::now();
                let fib = engine.build(rib, Limits::default()).map_err(|error| error.to_string());
                fib.map(|fib| (fib, begin.elapsed().as_secs_f64()))
            };
            builds[at].push(build(&rib)?.1 * 1e3);
            let mut spent = 0.0;
            for changes in [&removals, &inserts] {
                after.apply(changes).map_err(|error| error.to_string())?;
                let begin = Instant::now();
                let applied = match fibs[at].updatable() {
                    Some(fib) => fib.apply(changes, &after).map_err(|error| error.to_string())?,
                    None => Applied::NeedsRebuild("it is built anew"),
                };
                spent += begin.elapsed().as_secs_f64();
                if matches!(applied, Applied::NeedsRebuild(_)) {
                    let (fib, seconds) = build(&after)?;
                    (fibs[at], spent) = (fib, spent + seconds);
                }
            }
            changes[at].push(spent * 1e6 / (2 * count) as f64);
        }
    }
    let mut points = Vec::new();
    for (at, name) in names.iter().enumerate() {
        points.push(timed(&row, format!("build, {name}"), &builds[at])?);
        points.push(timed(&row, format!("change, {name}"), &changes[at])?);
    }
    Ok(points)
}

fn timed(row: &str, column: String, runs: &[f64]) -> Result<Point, String> {
    let Interval { low, median, high } = Interval::of(runs).ok_or("there are runs")?;
    let race = Some(format!("changes of {row}"));
    Ok(Point {
        low: Some(low),
        high: Some(high),
        runs: runs.to_vec(),
        race,
        ..Point::new(row, column, median)
    })
}
