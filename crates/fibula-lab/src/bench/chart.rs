//! Bar charts of rates, as SVG.
//!
//! An engine has two bars: one key a call, and its fastest batch with its fastest instruction set, which the bar's text
//! names. All combinations would be too many to read. More threads give more bars. Whiskers go from the slowest to the
//! fastest run. Text repeats the meaning of the colours.

use core::fmt;

use super::row::Row;
use super::sources::STALE;
use fibula_workload::drawing::{BAR_CLASSES, Drawing, Scale};

const WIDTH: f64 = 900.0;
/// Left of the bars, for names.
const NAMES: f64 = 210.0;
/// Right of the longest whisker, for a number, batch and instruction set.
const RIGHT: f64 = 190.0;
const HEAD: f64 = 64.0;
const LEGEND: f64 = 24.0;
const FOOT: f64 = 54.0;
const BAR: f64 = 20.0;
/// Between engines, in bars. A name with its note is as high as two.
const GAP: f64 = 0.7;
const PLACES_MIN: f64 = 1.6;
/// Share of a bar's place that it fills.
const FILL: f64 = 0.82;

/// Draws a chart of these rows, which are of one table, family and traffic, with the fastest engine first. An engine
/// that refused the table is named without a bar. Keys in network order and larger key sets are left out, and oracles unless they are alone.
///
/// # Errors
/// When there is nothing to draw.
pub fn svg(title: &str, subtitle: &str, rows: &[&Row]) -> Result<String, ChartError> {
    svg_marked(title, subtitle, rows, &|_| false)
}

/// The same, with a mark at the engines that were measured before their code changed.
pub(super) fn svg_marked(
    title: &str,
    subtitle: &str,
    rows: &[&Row],
    is_stale: &dyn Fn(&Row) -> bool,
) -> Result<String, ChartError> {
    let chart = Bars { is_stale, ..Bars::new(rows) };
    if chart.max <= 0.0 {
        return Err(ChartError("no row has a rate"));
    }
    Ok(chart.draw(title, subtitle))
}

/// Why a chart cannot be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartError(&'static str);

impl fmt::Display for ChartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot draw a chart: {}", self.0)
    }
}

impl core::error::Error for ChartError {}

/// The meaning of a colour: whether a call has one key or more, and the number of threads.
type BarKey = (bool, usize);

fn way(row: &Row) -> BarKey {
    (row.batch > 1, row.threads)
}

/// Returns the fastest row of each engine for each colour.
pub(super) fn best<'a>(rows: &[&'a Row]) -> Vec<&'a Row> {
    let mut best: Vec<&Row> = Vec::new();
    let oracles_alone = rows.iter().all(|row| row.role == "oracle");
    let drawn =
        |row: &&&Row| (oracles_alone || row.role != "oracle") && row.order == "host" && !row.many_keys;
    for &row in rows.iter().filter(drawn) {
        let rate = |row: &Row| row.mlps_median.unwrap_or(0.0);
        match best.iter_mut().find(|other| other.engine == row.engine && way(other) == way(row)) {
            Some(other) if rate(other) < rate(row) => *other = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best
}

struct Bars<'a> {
    /// The rows of each engine, the fastest engine first.
    groups: Vec<Vec<&'a Row>>,
    /// The meanings of the colours, in order.
    ways: Vec<BarKey>,
    /// The greatest rate.
    max: f64,
    /// Whether a row was measured before the code of its engine changed.
    is_stale: &'a dyn Fn(&Row) -> bool,
}

impl<'a> Bars<'a> {
    fn new(rows: &[&'a Row]) -> Self {
        let rows = best(rows);
        let mut ways: Vec<BarKey> = rows.iter().map(|row| way(row)).collect();
        ways.sort_unstable_by_key(|&(batch, threads)| (threads, batch));
        ways.dedup();
        let mut groups: Vec<Vec<&Row>> = Vec::new();
        for &row in &rows {
            let same = |group: &&mut Vec<&Row>| group[0].engine == row.engine;
            match groups.iter_mut().find(same) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        let best = |group: &[&Row]| group.iter().filter_map(|row| row.mlps_median).fold(0.0, f64::max);
        groups.sort_by(|a, b| best(b).total_cmp(&best(a)));
        for group in &mut groups {
            group.sort_by_key(|row| (row.threads, row.batch));
            if group.iter().all(|row| row.error.is_some()) {
                group.truncate(1);
            }
        }
        let max = rows.iter().filter_map(|row| row.mlps_max).fold(0.0, f64::max);
        Self { groups, ways, max, is_stale: &|_| false }
    }

    fn draw(&self, title: &str, subtitle: &str) -> String {
        let mut drawing = Drawing::new(WIDTH);
        drawing.text("title ink", [24.0, 24.0], title);
        drawing.text("pale", [24.0, 47.0], subtitle);
        let mut top = HEAD;
        if self.ways.len() > 1 {
            let entry = |(at, &way): (usize, &BarKey)| (class(at), self.caption(way));
            let entries: Vec<_> = self.ways.iter().enumerate().map(entry).collect();
            drawing.legend([NAMES, top + 6.0], &entries);
            top += LEGEND;
        }
        let height = self.groups.iter().map(|group| places(group) + GAP).sum::<f64>() + GAP;
        let bottom = top + (height * BAR).round();
        let scale = Scale { left: NAMES, width: WIDTH - NAMES - RIGHT, max: self.max };
        let caption = "million lookups a second: median, with whiskers from the slowest to the fastest run";
        drawing.axis(scale, [top, bottom], caption);
        top += GAP * BAR;
        for group in &self.groups {
            self.draw_group(&mut drawing, scale, group, top);
            top += (places(group) + GAP) * BAR;
        }
        drawing.finish(bottom + FOOT, &format!("{title}. {subtitle}"))
    }

    fn caption(&self, (batch, threads): BarKey) -> String {
        let calls = if batch { "fastest batch and instruction set" } else { "one key a call" }.to_owned();
        match self.ways.iter().any(|&(_, other)| other != threads) {
            true => format!("{calls}, {threads} {}", if threads == 1 { "thread" } else { "threads" }),
            false => calls,
        }
    }

    fn draw_group(&self, drawing: &mut Drawing, scale: Scale, group: &[&Row], top: f64) {
        let first = group[0];
        let name = match first.rival {
            true => format!("{} (rival)", first.engine),
            false if (self.is_stale)(first) => format!("{} {STALE}", first.engine),
            false => first.engine.clone(),
        };
        let middle = top + places(group) / 2.0 * BAR;
        let notes = notes(first);
        let shift = if notes.is_empty() { 0.0 } else { 8.0 };
        drawing.text("name ink end", [NAMES - 10.0, middle - shift], &name);
        if !notes.is_empty() {
            drawing.text("note pale end", [NAMES - 10.0, middle + 8.0], &notes);
        }
        let mut middle = middle - (group.len() as f64 - 1.0) / 2.0 * BAR;
        for row in group {
            self.draw_bar(drawing, scale, row, middle);
            middle += BAR;
        }
    }

    fn draw_bar(&self, drawing: &mut Drawing, scale: Scale, row: &Row, y: f64) {
        let Some([min, median, max]) = row.rates() else {
            let reason = if row.error.is_some() { "refuses this table" } else { "no keys" };
            drawing.text("value pale", [NAMES + 6.0, y], reason);
            return;
        };
        let way = self.ways.iter().position(|&other| other == way(row)).unwrap_or(0);
        let height = FILL * BAR;
        drawing.rectangle(&class(way), [NAMES, y - height / 2.0], [scale.x(median) - NAMES, height]);
        let (min, max, cap) = (scale.x(min), scale.x(max), height / 5.0);
        drawing.line("whisker", [min, y], [max, y]);
        for end in [min, max] {
            drawing.line("whisker", [end, y - cap], [end, y + cap]);
        }
        let value = match row.batch {
            1 => number(median),
            batch => format!("{} ({batch}, {})", number(median), row.isa),
        };
        drawing.text("value ink", [max + 7.0, y], &value);
    }
}

/// Returns the line below a name.
fn notes(row: &Row) -> String {
    let mut notes = Vec::new();
    if let Some(bytes) = row.bytes_per_prefix {
        notes.push(format!("{bytes:.1} bytes a prefix"));
    }
    if row.sample {
        notes.push("sample".to_owned());
    }
    notes.join(", ")
}

/// Formats a rate with as many decimals as small numbers need.
pub(super) fn number(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate < 0.1 => format!("{rate:.4}"),
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

/// Returns the height of an engine's bars, in bars.
fn places(group: &[&Row]) -> f64 {
    (group.len() as f64).max(PLACES_MIN)
}

fn class(way: usize) -> String {
    format!("bar{}", way % BAR_CLASSES)
}
