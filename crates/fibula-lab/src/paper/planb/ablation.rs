//! The steps of Fig. 14, from the registry's structures and kernels.

use fibula::fib::registry;
use fibula::memory::Limits;

use super::super::definition::Table;
use super::super::{Context, Point};
use crate::bench::{self, Contestant, Plan, Row};

/// The structure of the first step, and that of the others.
const BASELINE: &str = "range-search";
const TREE: &str = "planb";

/// Keys a call in the last step.
const BATCH: usize = 256;

/// Measures all steps side by side.
pub(super) fn steps(context: &mut Context<'_>, table: Table) -> Result<Vec<Point>, String> {
    let settings = *context.settings;
    let (name, rib) = context.ipv6(table)?;
    let mut contestants = Vec::new();
    for structure in [BASELINE, TREE] {
        let algorithm = registry::find::<u128>(structure).map_err(|error| error.to_string())?;
        contestants.push(Contestant::new(algorithm, Limits::default()));
    }
    let lanes = 4 + contestants.iter().map(|contestant| contestant.kernels.len()).sum::<usize>();
    let plan = Plan {
        traffic: vec!["match".to_owned()],
        batches: vec![1, BATCH],
        keys: settings.keys,
        runs: settings.runs,
        seconds: settings.run.as_secs_f64() * (settings.runs * lanes) as f64,
        ..Plan::default()
    };
    let rows =
        bench::run(&plan, &*rib, &contestants, Vec::new(), &mut |_| ()).map_err(|error| error.to_string())?;
    if let Some(row) = rows.iter().find(|row| row.wrong > 0) {
        return Err(format!("{} gave {} wrong answers", row.algorithm, row.wrong));
    }
    let of = |structure: &str, batch: usize| {
        let wanted = structure.to_owned();
        rows.iter().filter(move |row| row.algorithm == wanted && row.batch == batch)
    };
    let by_rate =
        |a: &&Row, b: &&Row| a.mlps_median.partial_cmp(&b.mlps_median).unwrap_or(core::cmp::Ordering::Equal);
    let found = [
        ("lower_bound", of(BASELINE, 1).find(|row| row.isa == "scalar")),
        ("tree", of(TREE, 1).find(|row| row.isa == "scalar")),
        ("vectors", of(TREE, 1).find(|row| row.isa != "scalar")),
        ("batches", of(TREE, BATCH).max_by(by_rate)),
    ];
    let point = |(step, row): &(&str, Option<&Row>)| match row {
        Some(row) => of_row(&name, step, row),
        None => Point::absent(name.clone(), *step, "takes vector instructions that this machine lacks"),
    };
    let mut points: Vec<Point> = found.iter().map(point).collect();
    let why = "no structure of the registry leaves vectors to the compiler";
    points.push(Point::absent(name.clone(), "compiler-vectorised", why));
    Ok(points)
}

/// Returns the point of a step. Steps of the same batch were timed in turn.
fn of_row(table: &str, step: &str, row: &Row) -> Point {
    Point {
        value: row.mlps_median,
        low: row.mlps_low,
        high: row.mlps_high,
        runs: row.mlps_runs.clone(),
        race: Some(format!("{table}, {} a call", row.batch)),
        ..Point::absent(table, step, format!("{}, {}, {} a call", row.algorithm, row.isa, row.batch))
    }
}
