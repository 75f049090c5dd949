//! Charts of exhibits: bars, or lines over the rows, published values beside measured ones.

use fibula_workload::drawing::{BAR_CLASSES, Drawing, LINE_COLOURS, Scale};

use super::definition::{Chart, Exhibit};
use super::record::Point;
use super::report::number;

const WIDTH: f64 = 900.0;
const NAMES: f64 = 230.0;
const RIGHT: f64 = 110.0;
const HEAD: f64 = 24.0;
const LEGEND: f64 = 22.0;
const FOOT: f64 = 54.0;
const BAR: f64 = 18.0;
const GAP: f64 = 12.0;
/// About the width of a letter: no font is at hand to measure text by.
const LETTER: f64 = 7.6;

/// Draws an exhibit; `None` if it is not drawn or there is nothing to draw.
pub(super) fn svg(exhibit: &Exhibit, points: &[&Point]) -> Option<String> {
    let series = series(exhibit, points);
    let most = series.iter().flat_map(|series| &series.values).filter_map(|value| *value).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    match exhibit.chart {
        Chart::None => None,
        Chart::Bars => Some(bars(exhibit, points, &series, most)),
        Chart::Lines => Some(lines(exhibit, points, &series, most)),
    }
}

/// The values of a column, measured or published, row by row.
struct Series {
    name: String,
    class: usize,
    published: bool,
    values: Vec<Option<f64>>,
}

/// Returns the rows of an exhibit: those that were published, then those that are only here.
pub(super) fn rows(exhibit: &Exhibit, points: &[&Point]) -> Vec<String> {
    let published = exhibit.published.iter().map(|value| value.row.as_str());
    let mut rows: Vec<String> = Vec::new();
    for row in published.chain(points.iter().map(|point| point.row.as_str())) {
        if !rows.iter().any(|known| known == row) {
            rows.push(row.to_owned());
        }
    }
    // Numbers are in order, whoever has them.
    if let Some(mut numbers) = rows.iter().map(|row| row.parse::<f64>().ok()).collect::<Option<Vec<_>>>() {
        numbers.sort_unstable_by(f64::total_cmp);
        rows.sort_by(|a, b| a.parse::<f64>().unwrap_or(0.0).total_cmp(&b.parse::<f64>().unwrap_or(0.0)));
    }
    rows
}

fn series(exhibit: &Exhibit, points: &[&Point]) -> Vec<Series> {
    let rows = rows(exhibit, points);
    let mut all = Vec::new();
    for (number, column) in exhibit.columns.iter().enumerate() {
        let class = number % BAR_CLASSES;
        let measured = |row: &String| {
            let point = points.iter().find(|point| point.row == *row && point.column == column.name)?;
            point.value
        };
        let published = |row: &String| exhibit.published_at(row, &column.name);
        let here = Series {
            name: column.name.clone(),
            class,
            published: false,
            values: rows.iter().map(measured).collect(),
        };
        let there = Series {
            name: format!("{}, published", column.name),
            class,
            published: true,
            values: rows.iter().map(published).collect(),
        };
        all.extend([here, there].into_iter().filter(|series| series.values.iter().any(Option::is_some)));
    }
    all
}

fn caption(exhibit: &Exhibit) -> &str {
    exhibit.columns.first().map_or("", |column| &column.unit)
}

fn bars(exhibit: &Exhibit, points: &[&Point], series: &[Series], most: f64) -> String {
    let rows = rows(exhibit, points);
    let mut drawing = Drawing::new(WIDTH);
    let top = HEAD + legend(&mut drawing, series);
    let drawn =
        |row: usize| series.iter().filter(|series| series.values[row].is_some()).count().max(1) as f64;
    let height: f64 = (0..rows.len()).map(|row| drawn(row) * BAR + GAP).sum();
    let longest = rows.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let names = (longest as f64 * LETTER + 20.0).max(NAMES);
    let scale = Scale { left: names, width: WIDTH - names - RIGHT, max: most };
    drawing.axis(scale, [top, top + height], caption(exhibit));
    let mut y = top + GAP / 2.0;
    for (row, name) in rows.iter().enumerate() {
        drawing.text("name ink end", [names - 10.0, y + drawn(row) * BAR / 2.0], name);
        for series in series {
            let Some(value) = series.values[row] else { continue };
            let class = format!("bar{}", series.class);
            let size = [scale.x(value) - names, BAR - 4.0];
            if series.published {
                drawing.outline(LINE_COLOURS[series.class], [names, y + 1.0], size);
            } else {
                drawing.rectangle(&class, [names, y + 1.0], size);
            }
            drawing.text("value ink", [scale.x(value) + 6.0, y + BAR / 2.0 - 1.0], &number(value));
            y += BAR;
        }
        if series.iter().all(|series| series.values[row].is_none()) {
            drawing.text("value pale", [names + 6.0, y + BAR / 2.0 - 1.0], "missing");
            y += BAR;
        }
        y += GAP;
    }
    drawing.finish(top + height + FOOT, &exhibit.title)
}

fn lines(exhibit: &Exhibit, points: &[&Point], series: &[Series], most: f64) -> String {
    const HEIGHT: f64 = 300.0;
    const LEFT: f64 = 80.0;
    let rows = rows(exhibit, points);
    let mut drawing = Drawing::new(WIDTH);
    let top = HEAD + legend(&mut drawing, series);
    let bottom = top + HEIGHT;
    let step = (WIDTH - LEFT - 60.0) / rows.len().max(2) as f64;
    let x = |row: usize| LEFT + step * (row as f64 + 0.5);
    let y = |value: f64| bottom - HEIGHT * value / (most * 1.05);
    drawing.heights(LEFT, WIDTH - 40.0, [bottom, top], most * 1.05);
    let foot = names(&mut drawing, &rows, x, bottom + 14.0);
    drawing.text("pale middle", [WIDTH / 2.0, foot + 22.0], &exhibit.rows);
    // Above the number of the highest line, wherever that is.
    drawing.text("pale", [8.0, top - 18.0], caption(exhibit));
    for series in series {
        let ends: Vec<[f64; 2]> = series
            .values
            .iter()
            .enumerate()
            .filter_map(|(row, value)| value.map(|value| [x(row), y(value)]))
            .collect();
        drawing.polyline(LINE_COLOURS[series.class], series.published, &ends);
    }
    drawing.finish(foot + FOOT - 14.0, &exhibit.title)
}

/// Draws the names of rows below their places, each in the first line where it touches no other, and returns where the last line is.
fn names(drawing: &mut Drawing, rows: &[String], x: impl Fn(usize) -> f64, top: f64) -> f64 {
    const LINE: f64 = 16.0;
    // Where each line ends.
    let mut lines: Vec<f64> = Vec::new();
    for (row, name) in rows.iter().enumerate() {
        let half = name.chars().count() as f64 * LETTER / 2.0;
        let (start, end) = (x(row) - half, x(row) + half + LETTER);
        let line = lines.iter().position(|&end| end <= start).unwrap_or(lines.len());
        match lines.get_mut(line) {
            Some(last) => *last = end,
            None => lines.push(end),
        }
        drawing.text("ink middle", [x(row), top + LINE * line as f64], name);
    }
    top + LINE * lines.len().saturating_sub(1) as f64
}

/// Draws the names of the series, as many a line as fit, and returns the height.
fn legend(drawing: &mut Drawing, series: &[Series]) -> f64 {
    let (mut x, mut y) = (24.0, 14.0);
    for series in series {
        let width = 19.0 + 7.0 * series.name.len() as f64 + 24.0;
        if x + width > WIDTH && x > 24.0 {
            (x, y) = (24.0, y + LEGEND);
        }
        if series.published {
            drawing.outline(LINE_COLOURS[series.class], [x, y - 6.5], [13.0, 13.0]);
        } else {
            drawing.rectangle(&format!("bar{}", series.class), [x, y - 6.5], [13.0, 13.0]);
        }
        drawing.text("ink", [x + 19.0, y], &series.name);
        x += width;
    }
    y + LEGEND
}
