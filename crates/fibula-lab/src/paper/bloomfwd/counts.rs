//! Counts of the filters and levels.

use fibula_published::internals::{Choice, Ratio, chosen_levels, expanded_group, false_positives};
use fibula_workload::random::Random;
use serde::Deserialize;

use super::super::values::OfTable;
use super::super::{Context, Point};

/// Counts prefixes before and after expansion.
pub(super) fn table_3(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let (name, rib) = context.ipv4(table)?;
    let short = expanded_group(&*rib, 1, 20).0;
    let (g1, g1_after) = expanded_group(&*rib, 21, 24);
    let (g2, g2_after) = expanded_group(&*rib, 25, 32);
    let point = |column: &str, value: f64| Point::new(name.clone(), column, value);
    Ok(vec![
        point("to /20", short as f64),
        point("/21 to /24", g1 as f64),
        point("/25 to /32", g2 as f64),
        point("/24 after", g1_after as f64),
        point("/32 after", g2_after as f64),
    ])
}

/// Chooses levels in each way and number.
pub(super) fn table_4(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let (name, rib) = context.ipv6(table)?;
    let mut points = Vec::new();
    for (choice, called) in
        [(Choice::Greedy, "greedy"), (Choice::Exact, "exact"), (Choice::Capture, "capture")]
    {
        for levels in (3..=8).rev() {
            let found = chosen_levels(&*rib, choice, levels).map_err(|error| error.to_string())?;
            let lengths: Vec<String> = found.lengths.iter().map(u8::to_string).collect();
            let row = format!("{called}, {levels} levels");
            let note = format!("{name}: {{{}}}", lengths.join(", "));
            let point = |column: &str, value: u128| {
                Point::new(row.clone(), column, value as f64 / 1e3).noted(note.clone())
            };
            points.extend([point("estimate", found.estimate), point("actual", found.actual)]);
        }
    }
    Ok(points)
}

/// Ratios of Table 5.
const RATIOS: [u8; 5] = [1, 10, 30, 60, 90];

fn sizes(row: &str, entries: u64) -> Vec<Point> {
    let of = |percent: u8| {
        let ratio = Ratio::percent(percent);
        [
            Point::new(row, format!("m, {percent} %"), ratio.bits(entries) as f64),
            Point::new(row, format!("k, {percent} %"), f64::from(ratio.hashes())),
        ]
    };
    RATIOS.into_iter().flat_map(of).collect()
}

/// Groups of prefixes: table and group, and prefixes after expansion.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Groups {
    groups: Vec<(String, u64)>,
}

/// Computes the sizes for the published numbers of prefixes.
pub(super) fn table_5(_: &mut Context<'_>, Groups { groups }: &Groups) -> Result<Vec<Point>, String> {
    Ok(groups.iter().flat_map(|(row, entries)| sizes(row, *entries)).collect())
}

/// Computes the sizes for a table here.
pub(super) fn table_5_here(
    context: &mut Context<'_>,
    OfTable { table }: &OfTable,
) -> Result<Vec<Point>, String> {
    let (name, rib) = context.ipv4(table)?;
    let of = |shortest, longest| expanded_group(&*rib, shortest, longest).1 as u64;
    let mut points = sizes(&format!("{name} G1"), of(21, 24));
    points.extend(sizes(&format!("{name} G2"), of(25, 32)));
    Ok(points)
}

/// Measures the share of absent prefixes that pass a filter.
pub(super) fn ratios(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let count = context.settings.keys;
    let (_, rib) = context.ipv4(table)?;
    let mut random = Random::new(17);
    let keys: Vec<u32> = (0..count).map(|_| (random.word() >> 32) as u32).collect();
    let mut points = Vec::new();
    for percent in [1, 5, 10, 20, 30, 40, 50, 60, 90] {
        let ratio = Ratio::percent(percent);
        let row = percent.to_string();
        points.push(Point::new(row.clone(), "expected", 100.0 * ratio.expected()));
        let found = false_positives(&*rib, ratio, &keys).map_err(|error| error.to_string())?;
        for (column, share) in ["/32, measured", "/24, measured"].into_iter().zip(found) {
            points.push(match share {
                Some(share) => Point::new(row.clone(), column, 100.0 * share),
                None => Point::absent(row.clone(), column, "no prefix of this length"),
            });
        }
    }
    Ok(points)
}
