//! Rates in smaller tables.

use fibula::memory::Limits;
use fibula::net::RouteSlice;
use fibula_workload::table::remaining;
use serde::Deserialize;

use super::super::definition::PaperTable;
use super::super::{Context, Point};
use crate::bench::{self, Contestant, Plan};

/// A part of a table: one of so many routes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Share {
    table: PaperTable,
    one_in: usize,
}

/// Measures random addresses in one of so many routes of a table.
pub(super) fn rates(context: &mut Context<'_>, share: &Share) -> Result<Vec<Point>, String> {
    let one_in = share.one_in;
    let settings = context.settings;
    let (_, rib) = context.ipv4(&share.table)?;
    let routes: Vec<_> = rib.iter().collect();
    let routes = remaining(&routes, one_in, 1);
    let slice = RouteSlice::new(&routes).map_err(|error| error.to_string())?;
    let engine = fibula_published::find::<u32>("bloomfwd").map_err(|error| error.to_string())?;
    let contestants = [Contestant::new(engine, Limits::default())];
    let lanes = contestants[0].kernels.len();
    let plan = Plan {
        traffic: vec!["rnd".to_owned()],
        batches: vec![256],
        threads: vec![1],
        keys: settings.keys,
        runs: settings.runs,
        seconds: settings.run.as_secs_f64() * (settings.runs * lanes) as f64,
        every_isa: true,
        ..Plan::default()
    };
    let rows = bench::run(&plan, &slice, &contestants, Vec::new(), &mut |_| ())
        .map_err(|error| error.to_string())?;
    if let Some(row) = rows.iter().find(|row| row.wrong > 0) {
        return Err(format!("{} gave {} wrong answers", row.engine, row.wrong));
    }
    let share = if one_in == 1 { "1".to_owned() } else { format!("1/{one_in}") };
    let rate = |row: &&bench::Row| row.mlps_median.unwrap_or(0.0);
    let best = rows.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).ok_or("a contestant has a row")?;
    Ok(vec![Point {
        low: best.mlps_low,
        high: best.mlps_high,
        runs: best.mlps_runs.clone(),
        note: Some(format!("{}, {} routes", best.isa, routes.len())),
        ..Point::new(share, "bloomfwd", best.mlps_median.ok_or("a rate was measured")?)
    }])
}
