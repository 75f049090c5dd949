//! What DXR's structures consist of.

use std::time::Instant;

use super::super::definition::{Published, Table};
use super::super::{Context, Point};
use super::build;
use crate::bench::Interval;
use crate::traffic;

/// Builds whose times are taken.
const BUILDS: usize = 5;

/// A row of the published table: total bytes, full chunks, short and long ranges, build time.
macro_rules! row {
    ($row:literal, $prefixes:literal, $hops:literal: $bytes:literal, $chunks:literal, $short:literal, $long:literal, $ms:literal) => {
        [
            Published::new($row, "prefixes", $prefixes),
            Published::new($row, "next hops", $hops),
            Published::new($row, "bytes", $bytes),
            Published::new($row, "bytes a prefix", $bytes / $prefixes),
            Published::new($row, "full chunks", $chunks),
            Published::new($row, "short ranges", $short),
            Published::new($row, "long ranges", $long),
            Published::new($row, "build", $ms),
        ]
    };
}

/// The published Table 1.
pub(super) const TABLE_1: &[Published] = ROWS.as_flattened();

const ROWS: [[Published; 8]; 8] = [
    row!("static, k = 16", 4.0, 2.0: 262_248.0, 2.0, 0.0, 8.0, 0.01),
    row!("static, k = 18", 4.0, 2.0: 1_048_676.0, 2.0, 0.0, 7.0, 0.03),
    row!("LINX, k = 16", 417_523.0, 213.0: 800_672.0, 12_935.0, 200_436.0, 33_130.0, 89.44),
    row!("LINX, k = 18", 417_523.0, 213.0: 1_548_700.0, 25_494.0, 211_724.0, 17_885.0, 210.13),
    row!("U. Oregon, k = 16", 421_059.0, 38.0: 827_204.0, 13_627.0, 220_042.0, 31_010.0, 98.15),
    row!("U. Oregon, k = 18", 421_059.0, 38.0: 1_574_872.0, 27_251.0, 233_618.0, 14_531.0, 227.47),
    row!("PAIX, k = 16", 412_568.0, 80.0: 765_752.0, 13_082.0, 215_432.0, 17_700.0, 91.28),
    row!("PAIX, k = 18", 412_568.0, 80.0: 1_522_992.0, 24_801.0, 217_078.0, 9_579.0, 210.07),
];

/// The published Table 3, without the shares that are bounds.
pub(super) const TABLE_3: &[Published] = &[
    Published::new("0", "k = 20", 0.945),
    Published::new("1", "k = 20", 0.0204),
    Published::new("2", "k = 20", 0.0255),
    Published::new("3", "k = 20", 0.0083),
    Published::new("4", "k = 20", 0.0011),
    Published::new("0", "k = 18", 0.864),
    Published::new("1", "k = 18", 0.0355),
    Published::new("2", "k = 18", 0.0515),
    Published::new("3", "k = 18", 0.0302),
    Published::new("4", "k = 18", 0.0147),
    Published::new("5", "k = 18", 0.0040),
    Published::new("6", "k = 18", 0.0004),
    Published::new("0", "k = 16", 0.757),
    Published::new("1", "k = 16", 0.0400),
    Published::new("2", "k = 16", 0.0658),
    Published::new("3", "k = 16", 0.0546),
    Published::new("4", "k = 16", 0.0430),
    Published::new("5", "k = 16", 0.0268),
    Published::new("6", "k = 16", 0.0106),
];

/// Returns the rows of the table of a year for k = 16 and 18.
pub(super) fn table_1(context: &mut Context<'_>, table: Table, year: &str) -> Result<Vec<Point>, String> {
    let (_, rib) = context.ipv4(table)?;
    let mut points = Vec::new();
    for k in [16, 18] {
        let row = format!("{year}, k = {k}");
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

/// Returns how many prefixes of each length a table has.
pub(super) fn lengths(context: &mut Context<'_>, table: Table, column: &str) -> Result<Vec<Point>, String> {
    let (_, rib) = context.ipv4(table)?;
    let mut counts = [0_usize; 33];
    rib.iter().for_each(|route| counts[usize::from(route.prefix.len())] += 1);
    let point = |(length, &count): (usize, &usize)| Point::new(length.to_string(), column, count as f64);
    Ok(counts.iter().enumerate().skip(8).map(point).collect())
}

/// Returns the share of keys by steps of the search.
pub(super) fn table_3(context: &mut Context<'_>, table: Table) -> Result<Vec<Point>, String> {
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
