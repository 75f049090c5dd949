//! Line charts with logarithmic scales, as SVG.

use crate::bench::chart::number;
use fibula_workload::drawing::{BAR_CLASSES, Drawing};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 70.0;
const HEIGHT: f64 = 360.0;
const FOOT: f64 = 54.0;
/// The side of a marker.
const MARKER: f64 = 6.0;
/// Between names at the right.
const LINE: f64 = 16.0;

/// A line.
pub(super) struct UpdateLine {
    pub(super) name: String,
    /// Which marker it has.
    pub(super) marker: usize,
    /// Sorted by the first number.
    pub(super) points: Vec<(f64, f64)>,
}

/// The text of a chart.
pub(super) struct Words<'a> {
    pub(super) title: &'a str,
    pub(super) subtitle: &'a str,
    /// Below the axis: the quantity to the right, and the one upwards.
    pub(super) caption: &'a str,
    /// Whether the scale to the right is logarithmic too.
    pub(super) logarithmic: bool,
}

/// Draws the lines. Returns `None` if there is nothing to draw.
pub(super) fn svg(words: &Words<'_>, lines: &[UpdateLine]) -> Option<String> {
    let scale = |x: f64| if words.logarithmic { x.max(1.0).log10() } else { x };
    let points = || lines.iter().flat_map(|line| &line.points).filter(|(_, y)| *y > 0.0);
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) = (points().map(of).reduce(f64::min)?, points().map(of).reduce(f64::max)?);
        Some((low, high))
    };
    let ((left, right), (low, high)) = (ends(|point| point.0)?, ends(|point| point.1)?);
    let (left, right) = (scale(left), scale(right).max(scale(left) + 1e-9));
    let (low, high) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
    let bottom = TOP + HEIGHT;
    let width = WIDTH - LEFT - RIGHT;
    let to_x = |x: f64| LEFT + width * (scale(x) - left) / (right - left);
    let to_y = |y: f64| bottom - HEIGHT * (y.log10() - low) / (high - low);

    let mut drawing = Drawing::new(WIDTH);
    drawing.text("title ink", [24.0, 24.0], words.title);
    drawing.text("pale", [24.0, 46.0], words.subtitle);
    let mut power = low;
    while power <= high {
        let y = to_y(10_f64.powf(power));
        drawing.line("grid", [LEFT, y], [LEFT + width, y]);
        drawing.text("ink end", [LEFT - 8.0, y], &tick(10_f64.powf(power)));
        power += 1.0;
    }
    for x in ticks(points().map(|point| point.0)) {
        drawing.line("grid", [to_x(x), TOP], [to_x(x), bottom]);
        drawing.text("ink middle", [to_x(x), bottom + 12.0], &tick(x));
    }
    drawing.line("axis", [LEFT, bottom], [LEFT + width, bottom]);
    drawing.text("pale middle", [LEFT + width / 2.0, bottom + 34.0], words.caption);
    // Names are at the ends of the lines, pushed apart, and none is below the chart.
    let last = |line: &UpdateLine| line.points.last().map_or(bottom, |&(_, y)| to_y(y.max(1e-9)));
    let mut names: Vec<(f64, &UpdateLine)> = lines.iter().map(|line| (last(line), line)).collect();
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = TOP - LINE;
    for (y, _) in &mut names {
        *y = y.max(above + LINE);
        above = *y;
    }
    let mut below = bottom + LINE / 2.0;
    for (y, _) in names.iter_mut().rev() {
        *y = y.min(below - LINE);
        below = *y;
    }
    for (y, line) in names {
        for pair in line.points.windows(2) {
            let [from, to] = [pair[0], pair[1]].map(|(x, y)| [to_x(x), to_y(y.max(1e-9))]);
            drawing.line("axis", from, to);
        }
        for &(x, y) in &line.points {
            mark(&mut drawing, line.marker, [to_x(x), to_y(y.max(1e-9))]);
        }
        mark(&mut drawing, line.marker, [LEFT + width + 34.0, y]);
        drawing.text("value ink", [LEFT + width + 44.0, y], &line.name);
    }
    Some(drawing.finish(bottom + FOOT, &format!("{}. {}. {}", words.title, words.subtitle, words.caption)))
}

/// Draws a marker: more lines than colours have another shape.
fn mark(drawing: &mut Drawing, number: usize, [x, y]: [f64; 2]) {
    let class = format!("bar{}", number % BAR_CLASSES);
    let (width, height) = match number / BAR_CLASSES {
        0 => (MARKER, MARKER),
        1 => (MARKER / 2.0, 2.0 * MARKER),
        _ => (2.0 * MARKER, MARKER / 2.0),
    };
    drawing.rectangle(&class, [x - width / 2.0, y - height / 2.0], [width, height]);
}

/// Returns the numbers that points have, or a few of them.
fn ticks(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = numbers.collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let step = all.len().div_ceil(12).max(1);
    all.into_iter().step_by(step).collect()
}

fn tick(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { number(value).trim_end_matches('0').to_owned() }
}
