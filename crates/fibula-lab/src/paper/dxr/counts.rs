//! Counts of the parts of DXR's engines.

use std::time::Instant;

use fibula_workload::interval::Interval;
use fibula_workload::traffic;
use serde::Deserialize;

use super::super::definition::PaperTable;
use super::super::values::OfTable;
use super::super::{Context, Point};
use super::build;

/// Builds whose times are taken.
const BUILDS: usize = 5;

/// A table, and its name in rows or columns.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Labelled {
    table: PaperTable,
    label: String,
}

/// Returns the rows of the table of a year for k = 16 and 18.
pub(super) fn table_1(context: &mut Context<'_>, of: &Labelled) -> Result<Vec<Point>, String> {
    let (_, rib) = context.ipv4(&of.table)?;
    let mut points = Vec::new();
    for k in [16, 18] {
        let row = format!("{}, k = {k}", of.label);
        let mut times = Vec::new();
        let mut built = None;
        for _ in 0..BUILDS {
            let begin = Instant::now();
            built = Some(build(&rib, k)?);
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        let (Some(dxr), Some(time)) = (built, Interval::of(&times)) else { continue };
        let statistics = dxr.statistics();
        let bytes = statistics.paper_bytes().ok_or("the published format has a count")? as f64;
        let mut count = |column: &str, value: f64| points.push(Point::new(row.clone(), column, value));
        count("prefixes", rib.len() as f64);
        count("next hops", statistics.next_hops as f64);
        count("bytes", bytes);
        count("bytes a prefix", bytes / rib.len() as f64);
        count("full chunks", statistics.chunks as f64);
        count("short ranges", statistics.short_ranges as f64);
        count("long ranges", statistics.long_ranges as f64);
        let build = Point::new(row, "build", time.median);
        points.push(Point { low: Some(time.low), high: Some(time.high), runs: times, ..build });
    }
    Ok(points)
}

/// The values of k in Table 2. The published format has all of them.
const TABLE_2: [u8; 8] = [16, 17, 18, 19, 20, 21, 23, 24];

/// Returns the memory of each k, and the time of a build. They are built in turn, so that their times can be compared.
pub(super) fn table_2(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let (_, rib) = context.ipv4(table)?;
    let (mut bytes, mut times) = ([0.0; TABLE_2.len()], vec![Vec::new(); TABLE_2.len()]);
    for _ in 0..BUILDS {
        for (at, &k) in TABLE_2.iter().enumerate() {
            let begin = Instant::now();
            let dxr = build(&rib, k)?;
            times[at].push(begin.elapsed().as_secs_f64() * 1e3);
            bytes[at] = dxr.statistics().paper_bytes().ok_or("the published format has a count")? as f64;
        }
    }
    let mut points = Vec::new();
    for (at, k) in TABLE_2.iter().enumerate() {
        let row = format!("dxr-{k}");
        let Interval { low, median, high } = Interval::of(&times[at]).ok_or("there are builds")?;
        points.push(Point::new(row.clone(), "memory", bytes[at] / 1024.0));
        let (runs, race) = (times[at].clone(), Some("builds by k".to_owned()));
        points.push(Point {
            low: Some(low),
            high: Some(high),
            runs,
            race,
            ..Point::new(row, "build", median)
        });
    }
    Ok(points)
}

/// Returns how many prefixes of each length a table has.
pub(super) fn lengths(context: &mut Context<'_>, of: &Labelled) -> Result<Vec<Point>, String> {
    let (_, rib) = context.ipv4(&of.table)?;
    let mut counts = [0_usize; 33];
    rib.iter().for_each(|route| counts[usize::from(route.prefix.len())] += 1);
    let point = |(length, &count): (usize, &usize)| Point::new(length.to_string(), &of.label, count as f64);
    Ok(counts.iter().enumerate().skip(8).map(point).collect())
}

/// Returns the share of keys by steps of the search.
pub(super) fn table_3(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let count = context.settings.keys;
    let (_, rib) = context.ipv4(table)?;
    let random = traffic::find::<u32>("rnd").ok_or("RND is a pattern")?;
    let keys = (random.generate)(&*rib, count, 1).map_err(|error| error.to_string())?;
    let mut points = Vec::new();
    for k in [20, 18, 16] {
        let dxr = build(&rib, k)?;
        let mut counts = [0_usize; 8];
        for &key in &keys {
            counts[(dxr.search_steps(key) as usize).min(7)] += 1;
        }
        for (steps, &found) in counts.iter().enumerate() {
            let row = if steps == 7 { "7 or more".to_owned() } else { steps.to_string() };
            points.push(Point::new(row, format!("k = {k}"), found as f64 / keys.len() as f64));
        }
    }
    Ok(points)
}
