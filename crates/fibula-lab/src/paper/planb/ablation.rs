//! The steps of Fig. 14, from the registry's engines and kernels.

use fibula::memory::Limits;

use super::super::values::OfTable;
use super::super::{Context, Point};
use crate::bench::{self, Contestant, Plan, Row};

/// The steps of one key at a time, each a registry entry, and the engine that looks up batches.
const STEPS: [(&str, &str); 4] = [
    ("lower_bound", "range-search"),
    ("tree", "planb-scalar"),
    ("compiler-vectorised", "planb-compiled"),
    ("vectors", "planb-vectors"),
];
const BATCHES: (&str, &str) = ("batches", "planb");

/// Keys a call in the last step.
const BATCH: usize = 256;

/// Measures all steps side by side.
pub(super) fn steps(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let settings = *context.settings;
    let (name, rib) = context.ipv6(table)?;
    let mut contestants = Vec::new();
    for (_, engine) in STEPS.into_iter().chain([BATCHES]) {
        let engine = fibula_published::find::<u128>(engine).map_err(|error| error.to_string())?;
        contestants.push(Contestant::new(engine, Limits::default()));
    }
    let lanes =
        2 * contestants.len() + contestants.iter().map(|contestant| contestant.kernels.len()).sum::<usize>();
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
        return Err(format!("{} gave {} wrong answers", row.engine, row.wrong));
    }
    let of = |engine: &str, batch: usize| {
        let wanted = engine.to_owned();
        rows.iter().filter(move |row| row.engine == wanted && row.batch == batch)
    };
    let rate = |row: &&Row| row.mlps_median.unwrap_or(0.0);
    let mut points = Vec::new();
    for (step, engine) in STEPS {
        // The binary search has vector kernels too, which this step has not.
        let found = of(engine, 1).filter(|row| step != "lower_bound" || row.isa == "scalar");
        let found = found.max_by(|a, b| rate(a).total_cmp(&rate(b)));
        points.extend(found.map(|row| of_row(&name, step, row)));
    }
    let batches = of(BATCHES.1, BATCH).max_by(|a, b| rate(a).total_cmp(&rate(b)));
    points.extend(batches.map(|row| of_row(&name, BATCHES.0, row)));
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
        ..Point::absent(table, step, format!("{}, {}, {} a call", row.engine, row.isa, row.batch))
    }
}
