//! Rates that take a coprocessor, which the caller supplies.

use std::time::Instant;

use fibula::memory::Limits;
use fibula::net::NextHop;
use fibula_workload::interval::Interval;
use fibula_workload::traffic;
use serde::Deserialize;

use super::super::context::Context;
use super::super::definition::PaperTable;
use super::super::record::Point;
use crate::bench::device::{Coprocessor, DeviceForm, DeviceMode};

const NO_COPROCESSOR: &str = "takes a coprocessor, and the program that measured this had none";

/// The table that a coprocessor looks up in, and the column of a device that is the processor itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DeviceColumn {
    table: PaperTable,
    by_processor: String,
}

/// Why a device that OpenCL makes of the processor has a column of its own.
const PROCESSOR: &str =
    "the device is the processor itself: it shows that all of this works, and is no measurement";

const BUFFERS: [(&str, usize); 6] = [
    ("256K", 1 << 18),
    ("512K", 1 << 19),
    ("1M", 1 << 20),
    ("2M", 1 << 21),
    ("4M", 1 << 22),
    ("8M", 1 << 23),
];

/// The paper's buffer for Fig. 10.
const CHOSEN_BUFFER: usize = 1 << 21;

const SHARES: [(&str, Option<f64>); 7] = [
    ("0 %", Some(0.0)),
    ("60 %", Some(0.6)),
    ("70 %", Some(0.7)),
    ("80 %", Some(0.8)),
    ("90 %", Some(0.9)),
    ("100 %", Some(1.0)),
    ("measured on the way", None),
];

/// Measures transfers through buffers of each size.
pub(super) fn by_buffer(context: &mut Context<'_>, on: &DeviceColumn) -> Result<Vec<Point>, String> {
    let way = |form| move |buffer| DeviceMode { form, buffer, threads: 0, share: None };
    let mut ways = Vec::new();
    for (row, buffer) in BUFFERS {
        ways.push((row, "asynchronous", way(DeviceForm::Asynchronous)(buffer)));
        ways.push((row, "synchronous", way(DeviceForm::Synchronous)(buffer)));
    }
    measure(context, on, &ways, "asynchronous")
}

/// Measures processor and coprocessor together, by the share of the latter.
pub(super) fn by_share(context: &mut Context<'_>, on: &DeviceColumn) -> Result<Vec<Point>, String> {
    // A core is left to the manager of the device.
    let threads = context.settings.cores.saturating_sub(1).max(1);
    let way =
        |share| DeviceMode { form: DeviceForm::BothAsynchronous, buffer: CHOSEN_BUFFER, threads, share };
    let ways: Vec<_> = SHARES.iter().map(|&(row, share)| (row, "both", way(share))).collect();
    measure(context, on, &ways, "both")
}

/// Measures Bloomfwd in each way, all in one race. Of a device that is the processor, only the ways of one column are, in its own
/// column.
fn measure(
    context: &mut Context<'_>,
    on: &DeviceColumn,
    ways: &[(&str, &str, DeviceMode)],
    column: &str,
) -> Result<Vec<Point>, String> {
    let Some(device) = context.coprocessor() else {
        return Ok(ways.iter().map(|&(row, column, _)| Point::absent(row, column, NO_COPROCESSOR)).collect());
    };
    let facts = device.facts();
    let ways: Vec<_> = ways
        .iter()
        .filter(|&&(_, of, _)| !facts.is_processor || of == column)
        .map(|&(row, column, way)| (row, if facts.is_processor { &on.by_processor } else { column }, way))
        .collect();
    let runs = race(context, &on.table, device, &ways)?;
    let race = format!("{}, {}", facts.name, facts.driver);
    let point = |((row, column, _), runs): (&(&str, &str, DeviceMode), Vec<f64>)| {
        let found = Interval::of(&runs);
        let point = Point {
            value: found.map(|found| found.median),
            low: found.map(|found| found.low),
            high: found.map(|found| found.high),
            runs,
            race: Some(race.clone()),
            note: None,
            ..Point::absent(*row, *column, "")
        };
        if facts.is_processor { point.noted(PROCESSOR) } else { point }
    };
    Ok(ways.iter().zip(runs).map(point).collect())
}

/// Returns the rates of all runs of each way, after every answer was compared.
fn race(
    context: &mut Context<'_>,
    table: &PaperTable,
    device: &dyn Coprocessor<u32>,
    ways: &[(&str, &str, DeviceMode)],
) -> Result<Vec<Vec<f64>>, String> {
    let (_, rib) = context.ipv4(table)?;
    let settings = context.settings;
    let pattern = traffic::find::<u32>("rnd").ok_or("RND is a pattern")?;
    let keys = (pattern.generate)(&*rib, settings.many_keys, 1).map_err(|error| error.to_string())?;
    let engine = fibula_published::find::<u32>("bloomfwd").map_err(|error| error.to_string())?;
    let fib = engine.build(&*rib, Limits::default()).map_err(|error| error.to_string())?;
    let mut expected = vec![None; keys.len()];
    fib.lookup_batch(&keys, &mut expected);
    let mut uploaded = device.upload(&*fib, engine.name)?;
    let mut results = vec![None; keys.len()];
    for &(row, _, way) in ways {
        results.fill(NextHop::new(u32::MAX));
        uploaded.lookup(way, &keys, &mut results)?;
        if results != expected {
            return Err(format!("wrong answers with {row}"));
        }
    }
    let mut runs = vec![Vec::new(); ways.len()];
    for run in 0..settings.runs {
        for number in 0..ways.len() {
            // Every run begins with another one.
            let at = (number + run) % ways.len();
            let begin = Instant::now();
            uploaded.lookup(ways[at].2, &keys, &mut results)?;
            runs[at].push(keys.len() as f64 / begin.elapsed().as_secs_f64().max(1e-9) / 1e6);
        }
    }
    Ok(runs)
}
