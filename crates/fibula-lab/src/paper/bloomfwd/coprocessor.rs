//! Figures that take a coprocessor, which the caller supplies.

use std::time::Instant;

use fibula::fib::registry;
use fibula::memory::Limits;
use fibula::net::NextHop;

use super::super::context::Context;
use super::super::definition::{Chart, Claim, Column, Exhibit, Judge, Part, Work};
use super::super::record::Point;
use super::{MLPS, OF_2015};
use crate::bench::Interval;
use crate::bench::device::{Coprocessor, Form, Way};
use crate::traffic;

const NO_COPROCESSOR: &str = "takes a coprocessor, and the program that measured this had none";

/// Why a device that OpenCL makes of the processor has a column of its own.
const PROCESSOR: &str =
    "the device is the processor itself: it shows that all of this works, and is no measurement";

/// The columns of a device that is the processor.
const BY_PROCESSOR: Column = Column { name: "the processor as device (no measurement)", unit: MLPS };

const ASYNCHRONOUS: Column = Column { name: "asynchronous", unit: MLPS };
const BOTH: Column = Column { name: "both", unit: MLPS };

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

pub(super) const FIGURE_9: Exhibit = Exhibit {
    name: "figure-9",
    title: "Fig. 9: buffer sizes of asynchronous transfers",
    about: "The paper fills one buffer while the other is looked up on the coprocessor, and chooses 2M addresses for their latency \
            over 4M, the best for speed.",
    rows: "addresses a buffer",
    columns: &[ASYNCHRONOUS, Column { name: "synchronous", unit: MLPS }, BY_PROCESSOR],
    published: &[],
    setting: "Xeon Phi 7120P, 2^30 random addresses",
    differs: "The coprocessor is a GPU; 2^26 addresses",
    parts: &[Part { name: "coprocessor", work: Work::Values(by_buffer) }],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "asynchronous transfers are faster than synchronous ones",
        published: "up to 1.13",
        judge: Judge::Ratio {
            of: ("2M", "asynchronous"),
            over: ("2M", "synchronous"),
            least: 1.0,
            most: f64::INFINITY,
        },
    }],
};

pub(super) const FIGURE_10: Exhibit = Exhibit {
    name: "figure-10",
    title: "Fig. 10: processor and coprocessor together",
    about: "The share of addresses that the coprocessor takes; 80 % is the best in the paper. The last row divides them by rates that \
            are measured on the way.",
    rows: "share of the coprocessor",
    columns: &[BOTH, BY_PROCESSOR],
    published: &[],
    setting: "Xeon Phi 7120P and two Xeon E5-2640 v3, 2^30 random addresses, buffers of 2M",
    differs: "The coprocessor is a GPU; 2^26 addresses",
    parts: &[Part { name: "coprocessor", work: Work::Values(by_share) }],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "both together are faster than the coprocessor alone",
        published: "1.18, and 1.33 with asynchronous transfers",
        judge: Judge::Ratio {
            of: ("measured on the way", "both"),
            over: ("100 %", "both"),
            least: 1.0,
            most: f64::INFINITY,
        },
    }],
};

fn by_buffer(context: &mut Context<'_>) -> Result<Vec<Point>, String> {
    let way = |form| move |buffer| Way { form, buffer, threads: 0, share: None };
    let mut ways = Vec::new();
    for (row, buffer) in BUFFERS {
        ways.push((row, "asynchronous", way(Form::Asynchronous)(buffer)));
        ways.push((row, "synchronous", way(Form::Synchronous)(buffer)));
    }
    measure(context, &ways, "asynchronous")
}

fn by_share(context: &mut Context<'_>) -> Result<Vec<Point>, String> {
    // A core is left to the manager of the device.
    let threads = context.settings.cores.saturating_sub(1).max(1);
    let way = |share| Way { form: Form::BothAsynchronous, buffer: CHOSEN_BUFFER, threads, share };
    let ways: Vec<_> = SHARES.iter().map(|&(row, share)| (row, "both", way(share))).collect();
    measure(context, &ways, "both")
}

/// Measures Bloomfwd in each way, all in one race. Of a device that is the processor, only the ways of one column are, in its own
/// column.
fn measure(
    context: &mut Context<'_>,
    ways: &[(&'static str, &'static str, Way)],
    column: &str,
) -> Result<Vec<Point>, String> {
    let Some(device) = context.coprocessor() else {
        return Ok(ways.iter().map(|&(row, column, _)| Point::absent(row, column, NO_COPROCESSOR)).collect());
    };
    let facts = device.facts();
    let ways: Vec<_> = ways
        .iter()
        .filter(|&&(_, of, _)| !facts.is_processor || of == column)
        .map(|&(row, column, way)| (row, if facts.is_processor { BY_PROCESSOR.name } else { column }, way))
        .collect();
    let runs = race(context, device, &ways)?;
    let race = format!("{}, {}", facts.name, facts.driver);
    let point = |((row, column, _), runs): (&(&str, &str, Way), Vec<f64>)| {
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
    device: &dyn Coprocessor<u32>,
    ways: &[(&str, &str, Way)],
) -> Result<Vec<Vec<f64>>, String> {
    let (_, rib) = context.ipv4(OF_2015)?;
    let settings = context.settings;
    let pattern = traffic::find::<u32>("rnd").ok_or("RND is a pattern")?;
    let keys = (pattern.generate)(&*rib, settings.many_keys, 1).map_err(|error| error.to_string())?;
    let algorithm = registry::find::<u32>("bloomfwd").map_err(|error| error.to_string())?;
    let fib = algorithm.build(&*rib, Limits::default()).map_err(|error| error.to_string())?;
    let mut expected = vec![None; keys.len()];
    fib.lookup_batch(&keys, &mut expected);
    let mut table = device.upload(&*fib, algorithm.name)?;
    let mut results = vec![None; keys.len()];
    for &(row, _, way) in ways {
        results.fill(NextHop::new(u32::MAX));
        table.lookup(way, &keys, &mut results)?;
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
            table.lookup(ways[at].2, &keys, &mut results)?;
            runs[at].push(keys.len() as f64 / begin.elapsed().as_secs_f64().max(1e-9) / 1e6);
        }
    }
    Ok(runs)
}
