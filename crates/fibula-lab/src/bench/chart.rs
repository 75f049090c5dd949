//! Bar charts of rates, as SVG.
//!
//! A structure has two bars: one key a call, and its best batch with its best instruction set, which stand beside the
//! figure; all combinations would be too many to read. More threads give more bars. Whiskers go from the slowest to the
//! fastest run. The
//! colours are Okabe and Ito's, which stay apart for the colour-blind; text stands beside them, so that nothing
//! is told by colour alone. The ground is a fixed light one: charts are read on light and on dark pages.

use core::fmt;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::row::Row;

const WIDTH: u32 = 860;
/// Left of the bars, for names.
const NAMES: u32 = 190;
const RIGHT: u32 = 170;
const HEAD: u32 = 64;
/// With the names of the colours.
const LEGEND: u32 = 24;
const FOOT: u32 = 42;
/// Below the foot.
const MARGIN: u32 = 12;
const BAR: u32 = 20;
/// Between structures, in bars. A name with its note is as high as two.
const GAP: f64 = 0.7;
const PLACES_MIN: f64 = 1.6;
/// Share of a bar's place that it fills.
const FILL: f64 = 0.82;

const GROUND: RGBColor = RGBColor(250, 250, 250);
const INK: RGBColor = RGBColor(34, 34, 34);
const PALE: RGBColor = RGBColor(95, 95, 95);
const GRID: RGBColor = RGBColor(222, 222, 222);

/// Okabe and Ito (2008), without black and yellow, which drown on a light ground or in the whiskers.
const COLOURS: [RGBColor; 6] = [
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
];

/// A chart of these rows, which are of one table, family and traffic. The structures stand with the fastest
/// first. Those that refused the table are named, with no bar. Oracles beside others and
/// keys in network order are left out.
///
/// # Errors
/// When there is nothing to draw.
pub fn svg(title: &str, subtitle: &str, rows: &[&Row]) -> Result<String, ChartError> {
    let chart = Bars::new(rows);
    if chart.max <= 0.0 {
        return Err(ChartError("no row has a rate"));
    }
    let mut text = String::new();
    {
        let size = (WIDTH, chart.head() + chart.height() + FOOT + MARGIN);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        chart.draw(&root, title, subtitle).map_err(|_| ChartError("the drawing does not fit"))?;
    }
    // For those who listen to a page.
    let open = text.find('>').map_or(0, |at| at + 1);
    let label = format!("\n<title>{}</title>", escape(&format!("{title}. {subtitle}")));
    text.insert_str(open, &label);
    Ok(text)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A chart that cannot be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartError(&'static str);

impl fmt::Display for ChartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no chart: {}", self.0)
    }
}

impl core::error::Error for ChartError {}

/// A way of asking: one key a call or more, and threads.
type Way = (bool, usize);

fn way(row: &Row) -> Way {
    (row.batch > 1, row.threads)
}

/// Of each structure its best row for each way of asking.
pub(super) fn best<'a>(rows: &[&'a Row]) -> Vec<&'a Row> {
    let mut best: Vec<&Row> = Vec::new();
    let oracles_alone = rows.iter().all(|row| row.role == "oracle");
    let drawn = |row: &&&Row| (oracles_alone || row.role != "oracle") && row.order == "host";
    for &row in rows.iter().filter(drawn) {
        let rate = |row: &Row| row.mlps_median.unwrap_or(0.0);
        match best.iter_mut().find(|other| other.algorithm == row.algorithm && way(other) == way(row)) {
            Some(other) if rate(other) < rate(row) => *other = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best
}

struct Bars<'a> {
    /// The rows of each structure, the fastest first.
    groups: Vec<Vec<&'a Row>>,
    /// The ways there are, each with its colour.
    ways: Vec<Way>,
    /// The greatest rate.
    max: f64,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), Box<dyn core::error::Error>>;

impl<'a> Bars<'a> {
    fn new(rows: &[&'a Row]) -> Self {
        let rows = best(rows);
        let mut ways: Vec<Way> = rows.iter().map(|row| way(row)).collect();
        ways.sort_unstable_by_key(|&(batch, threads)| (threads, batch));
        ways.dedup();
        let mut groups: Vec<Vec<&Row>> = Vec::new();
        for &row in &rows {
            let same = |group: &&mut Vec<&Row>| group[0].algorithm == row.algorithm;
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
        Self { groups, ways, max }
    }

    /// The height of all bars, in bars.
    fn places(&self) -> f64 {
        self.groups.iter().map(|group| places(group) + GAP).sum::<f64>() + GAP
    }

    fn height(&self) -> u32 {
        (self.places() * f64::from(BAR)) as u32
    }

    fn head(&self) -> u32 {
        HEAD + if self.ways.len() > 1 { LEGEND } else { 0 }
    }

    fn draw(&self, root: &Area<'_>, title: &str, subtitle: &str) -> Drawn {
        root.fill(&GROUND)?;
        root.draw(&Text::new(
            title.to_owned(),
            (24, 14),
            ("sans-serif", 20, FontStyle::Bold).into_font().color(&INK),
        ))?;
        root.draw(&Text::new(subtitle.to_owned(), (24, 40), font(13, PALE)))?;
        if self.ways.len() > 1 {
            self.draw_legend(root)?;
        }
        let mut plot = ChartBuilder::on(root)
            .margin_top(self.head())
            // Room for a number, batch and set behind the longest bar.
            .margin_right(RIGHT)
            .x_label_area_size(FOOT)
            .margin_left(NAMES)
            .margin_bottom(MARGIN)
            .build_cartesian_2d(0.0..self.max, self.places()..0.0)?;
        plot.configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(8)
            .x_label_formatter(&|rate| tick(*rate))
            .x_desc("million lookups a second: median; whiskers from the slowest to the fastest run")
            .x_label_style(font(13, INK))
            .axis_desc_style(font(13, PALE))
            .axis_style(PALE)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .draw()?;
        let mut top = GAP;
        for group in &self.groups {
            self.draw_group(root, &mut plot, group, top)?;
            top += places(group) + GAP;
        }
        root.present()?;
        Ok(())
    }

    fn draw_legend(&self, root: &Area<'_>) -> Drawn {
        let mut left = NAMES as i32;
        let top = HEAD as i32;
        for (at, &(batch, threads)) in self.ways.iter().enumerate() {
            let label = self.way(batch, threads);
            root.draw(&Rectangle::new([(left, top), (left + 13, top + 13)], colour(at).filled()))?;
            root.draw(&Text::new(label.clone(), (left + 19, top), font(13, INK)))?;
            // There are no fonts to ask: the widest common ones take this much.
            left += 19 + 7 * label.len() as i32 + 24;
        }
        Ok(())
    }

    fn way(&self, batch: bool, threads: usize) -> String {
        let asked = if batch { "best batch and instruction set" } else { "one key a call" }.to_owned();
        match self.ways.iter().any(|&(_, other)| other != threads) {
            true => format!("{asked}, {threads} {}", if threads == 1 { "thread" } else { "threads" }),
            false => asked,
        }
    }

    fn draw_group(&self, root: &Area<'_>, plot: &mut Plot<'_, '_>, group: &[&Row], top: f64) -> Drawn {
        let first = group[0];
        let name = match first.rival {
            true => format!("{} (rival)", first.algorithm),
            false => first.algorithm.clone(),
        };
        let place = |plot: &Plot<'_, '_>, rate: f64, at: f64| plot.backend_coord(&(rate, at));
        let (x, y) = place(plot, 0.0, top + places(group) / 2.0);
        let notes = notes(first);
        let shift = if notes.is_empty() { 0 } else { 8 };
        root.draw(&Text::new(name, (x - 10, y - shift), aligned(font(14, INK), HPos::Right)))?;
        if !notes.is_empty() {
            root.draw(&Text::new(notes, (x - 10, y + 8), aligned(font(11, PALE), HPos::Right)))?;
        }
        let top = top + (places(group) - group.len() as f64) / 2.0;
        for (at, row) in group.iter().enumerate() {
            let (low, high) = (top + at as f64 + (1.0 - FILL) / 2.0, top + at as f64 + (1.0 + FILL) / 2.0);
            let middle = f64::midpoint(low, high);
            let Some([min, median, max]) = row.rates() else {
                let (x, y) = place(plot, 0.0, middle);
                let refused = if row.error.is_some() { "refuses this table" } else { "no keys" };
                root.draw(&Text::new(refused, (x + 6, y), aligned(font(12, PALE), HPos::Left)))?;
                continue;
            };
            let way = self.ways.iter().position(|&other| other == way(row)).unwrap_or(0);
            let bar = Rectangle::new([(0.0, low), (median, high)], colour(way).filled());
            let cap = (high - low) / 5.0;
            let line = |from, to| PathElement::new(vec![from, to], INK.stroke_width(1));
            plot.draw_series([bar])?;
            plot.draw_series([
                line((min, middle), (max, middle)),
                line((min, middle - cap), (min, middle + cap)),
                line((max, middle - cap), (max, middle + cap)),
            ])?;
            let (x, y) = place(plot, max, middle);
            let label = match row.batch {
                1 => number(median),
                batch => format!("{} ({batch}, {})", number(median), row.isa),
            };
            root.draw(&Text::new(label, (x + 7, y), aligned(font(12, INK), HPos::Left)))?;
        }
        Ok(())
    }
}

/// What stands below the name.
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

/// As many decimals as small numbers need.
pub(super) fn number(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate < 0.1 => format!("{rate:.4}"),
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

/// A round number without the zeros that end it.
fn tick(rate: f64) -> String {
    let text = format!("{rate:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The height of a structure's bars, in bars.
fn places(group: &[&Row]) -> f64 {
    (group.len() as f64).max(PLACES_MIN)
}

fn colour(at: usize) -> RGBColor {
    COLOURS[at % COLOURS.len()]
}

fn font(size: u32, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour)
}

fn aligned(style: TextStyle<'static>, side: HPos) -> TextStyle<'static> {
    style.pos(Pos::new(side, VPos::Center))
}
