//! The tour as JSON, for scripts.

use std::io::{self, Write};
use std::path::Path;

use fibula::net::Key;
use serde_json::{Value, json};

use super::explain::{ExplainedAddress, Match};
use super::measure::{EngineRow, wrong};
use super::report::{build_time_ms, bytes_per_prefix};
use super::table::Toured;
use crate::machine::OPTIMISED;
use crate::objects::Object;

/// The fields of an engine, in order.
pub(super) const COLUMNS: &[&str] = &[
    "engine",
    "kind",
    "family",
    "routes",
    "lookup_bytes",
    "bytes_per_prefix",
    "build_time_ms",
    "mlps_match",
    "mlps_match_low",
    "mlps_match_high",
    "rounds",
    "checked",
    "wrong",
    "error",
];

/// Returns the result of an engine; fields are null if it could not be built.
pub(super) fn record(row: &EngineRow) -> Object {
    let figures = row.figures.as_ref().ok();
    let value = json!({
        "engine": row.engine,
        "kind": row.kind.name(),
        "family": row.family.name(),
        "routes": row.routes,
        "lookup_bytes": figures.map(|figures| figures.lookup_bytes),
        "bytes_per_prefix": figures.map(|figures| rounded(bytes_per_prefix(row, figures))),
        "build_time_ms": figures.map(|figures| rounded(build_time_ms(figures))),
        "mlps_match": figures.map(|figures| rounded(figures.rates.median)),
        "mlps_match_low": figures.map(|figures| rounded(figures.rates.low)),
        "mlps_match_high": figures.map(|figures| rounded(figures.rates.high)),
        "rounds": figures.map_or(0, |figures| figures.rates.rounds),
        "checked": figures.map_or(0, |figures| figures.checked),
        "wrong": figures.map_or(0, |figures| figures.wrong),
        "error": row.figures.as_ref().err().map(ToString::to_string),
    });
    match value {
        Value::Object(record) => record,
        _ => Object::new(),
    }
}

pub(super) fn write(
    out: &mut dyn Write,
    file: Option<&Path>,
    (v4, v6): (&Toured<u32>, &Toured<u128>),
    answers: &[ExplainedAddress],
    rows: &[EngineRow],
) -> io::Result<()> {
    let value = json!({
        "optimised": OPTIMISED,
        "table": file.map(|file| file.display().to_string()),
        "tables": [table(v4), table(v6)],
        "lookups": answers.iter().map(lookup).collect::<Vec<_>>(),
        "engines": rows.iter().map(record).collect::<Vec<_>>(),
        "wrong": wrong(rows),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn lookup(answer: &ExplainedAddress) -> Value {
    let route = |one: &Match| json!({ "prefix": one.prefix, "next_hop": one.value });
    let (best, others) = match answer.matches.split_first() {
        Some((best, others)) => (Some(best), others),
        None => (None, &[][..]),
    };
    json!({
        "family": answer.family,
        "address": answer.address,
        "prefix": best.map(|best| &best.prefix),
        "next_hop": best.map(|best| &best.value),
        "less_specific": others.iter().map(route).collect::<Vec<_>>(),
    })
}

fn table<K: Key>(table: &Toured<K>) -> Value {
    let (routes, memory_bytes) = (table.rib.len(), table.rib.memory().held_bytes());
    json!({
        "family": K::FAMILY.name(),
        "routes": routes,
        "next_hops": table.next_hops,
        "fill_time_ms": rounded(table.fill_time.as_secs_f64() * 1e3),
        "memory_bytes": memory_bytes,
        "bytes_per_prefix": (routes > 0).then(|| rounded(memory_bytes as f64 / routes as f64)),
    })
}

/// Rounds to three decimals, more than a measurement is worth.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
