//! The output of `fibula-lab rates`.

use std::io::{self, Write};

use fibula_cli::plumbing::{Grid, Object, bold, bytes, dim, thousands};
use serde::Serialize;
use serde_json::Value;

use crate::bench::{Row, duration, svg};

pub(super) fn text(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let (bold, dim) = (bold(), dim());
    for family in distinct(rows, |row| &row.family) {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.family == family).collect();
        let (prefixes, hops) = (thousands(rows[0].routes), thousands(rows[0].next_hops));
        writeln!(out, "{bold}{}: {prefixes} prefixes, {hops} next hops{bold:#}\n", title(family))?;
        writeln!(out, "{}\n", structures(&rows).render())?;
        for traffic in distinct(rows.iter().copied(), |row| &row.traffic) {
            let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.traffic == traffic).collect();
            let (name, keys) = (
                traffic.to_uppercase(),
                rows.iter().filter(|row| !row.many_keys).map(|row| row.keys).max().unwrap_or(0),
            );
            writeln!(out, "{bold}{} {name}{bold:#}, {} keys\n", title(family), thousands(keys))?;
            writeln!(out, "{}\n", rates(&rows).render())?;
        }
    }
    writeln!(
        out,
        "{dim}M/s: million lookups a second, the median of {} runs, with the slowest and the fastest run.\n\
         Batch 1 is one key in each call; in SEQ each lookup waits for the one before. One thread is timed by its \
         CPU time, several by wall time. The keys of the next batch are prefetched; {}.\n\
         ~ marks a median whose 95 % interval is wider than a fifth of it: too noisy to be compared.{dim:#}",
        rows.iter().map(|row| row.runs).max().unwrap_or(0),
        pages(rows),
    )?;
    if rows.iter().any(|row| row.sample) {
        writeln!(out, "{dim}* too slow for all keys: measured with a sample of them.{dim:#}")?;
    }
    let checked: usize = rows.iter().map(|row| row.checked).sum();
    let wrong: usize = rows.iter().map(|row| row.wrong).sum();
    match wrong {
        0 => writeln!(out, "\nAll {} answers were right.", thousands(checked)),
        wrong => writeln!(
            out,
            "\n{bold}{} of {} answers were WRONG.{bold:#}",
            thousands(wrong),
            thousands(checked)
        ),
    }
}

/// Returns the contestants that use huge pages.
pub(super) fn pages(rows: &[Row]) -> String {
    let mut huge: Vec<&str> = rows.iter().filter(|row| row.huge_pages).map(|row| &*row.engine).collect();
    huge.dedup();
    huge.sort_unstable();
    huge.dedup();
    if huge.is_empty() { "no huge pages".to_owned() } else { format!("huge pages: {}", huge.join(", ")) }
}

/// Returns the table of the figures that do not depend on the traffic.
fn structures(rows: &[&Row]) -> Grid {
    let mut grid =
        Grid::new(&["engine", "isa", "lookup memory", "bytes/prefix", "build", "wrong"]).right(&[2, 3, 4, 5]);
    let mut seen = Vec::new();
    for row in rows {
        let id = (&row.engine, &row.isa);
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let wrong: usize =
            rows.iter().filter(|other| (&other.engine, &other.isa) == id).map(|row| row.wrong).sum();
        grid.row([
            name(row),
            row.isa.clone(),
            or_dash(row.lookup_bytes.map(bytes)),
            or_dash(row.bytes_per_prefix.map(|bytes| format!("{bytes:.2}"))),
            or_dash(row.build_time_ms.map(duration)),
            if row.error.is_some() { "-".to_owned() } else { thousands(wrong) },
        ]);
    }
    grid
}

/// Returns the table of the rates of one traffic: by threads and batch, the fastest first.
fn rates(rows: &[&Row]) -> Grid {
    let mut rows: Vec<&Row> = rows.iter().copied().filter(|row| row.error.is_none()).collect();
    rows.sort_by(|a, b| {
        let way = |row: &Row| (row.many_keys, row.threads, row.order.clone(), row.batch);
        let rate = |row: &Row| row.mlps_median.unwrap_or(0.0);
        way(a).cmp(&way(b)).then(rate(b).total_cmp(&rate(a)))
    });
    // Columns that say the same in each row are left out: a terminal has 80.
    let keys = rows.iter().any(|row| row.many_keys || row.order != "host");
    let scaling = rows.iter().any(|row| row.scaling.is_some());
    let shown = |column: &&str| (keys || *column != "keys") && (scaling || *column != "scaling efficiency");
    let head =
        ["threads", "keys", "batch", "engine", "isa", "M/s", "slowest", "fastest", "scaling efficiency"];
    let head: Vec<&str> = head.into_iter().filter(shown).collect();
    let text = |name: &&str| ["keys", "engine", "isa"].contains(name);
    let numbers: Vec<usize> = (0..head.len()).filter(|&at| !text(&head[at])).collect();
    let mut grid = Grid::new(&head).right(&numbers);
    for row in rows {
        let rate = |rate: Option<f64>| or_dash(rate.map(number));
        let cell = |&name: &&str| match name {
            "threads" => row.threads.to_string(),
            "keys" if row.many_keys => format!("{}, {}", row.order, thousands(row.key_set)),
            "keys" => row.order.clone(),
            "batch" => row.batch.to_string(),
            "engine" => self::name(row),
            "isa" => row.isa.clone(),
            "M/s" => format!("{}{}", if row.noisy { "~" } else { "" }, rate(row.mlps_median)),
            "slowest" => rate(row.mlps_min),
            "fastest" => rate(row.mlps_max),
            _ => row.scaling.map_or(String::new(), |scaling| format!("{scaling:.2}")),
        };
        grid.row(head.iter().map(cell));
    }
    grid
}

pub(super) fn name(row: &Row) -> String {
    let rival = if row.rival { " (rival)" } else { "" };
    format!("{}{rival}{}", row.engine, if row.sample { " *" } else { "" })
}

pub(super) fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// Returns the rate with two decimals, or four if they would be 0.
pub(super) fn number(rate: f64) -> String {
    if rate < 0.1 { format!("{rate:.4}") } else { format!("{rate:.2}") }
}

/// Contestants that could not be built, with the reason, once for each family.
pub(super) fn refusals(rows: &[Row]) -> Vec<(String, &str)> {
    let mut refusals = Vec::new();
    for row in rows {
        if let Some(error) = &row.error {
            let refusal = (format!("{} {}", title(&row.family), row.engine), error.as_str());
            if !refusals.contains(&refusal) {
                refusals.push(refusal);
            }
        }
    }
    refusals
}

/// Rivals that gave wrong answers, once for each family.
pub(super) fn wrong_rivals(rows: &[Row]) -> Vec<String> {
    let wrong = rows.iter().filter(|row| row.rival && row.wrong > 0);
    let mut names: Vec<_> = wrong.map(|row| format!("{} {}", title(&row.family), row.engine)).collect();
    names.dedup();
    names
}

/// Returns the rows as objects.
pub(super) fn records<R: Serialize>(rows: &[R]) -> io::Result<Vec<Object>> {
    let record = |row| match serde_json::to_value(row)? {
        Value::Object(record) => Ok(record),
        _ => Ok(Object::new()),
    };
    rows.iter().map(record).collect()
}

/// Returns a chart for each family and traffic that has rates, with the two for the name of its file.
pub(super) fn charts(table: &str, rows: &[Row]) -> Vec<(String, String)> {
    let mut charts = Vec::new();
    for family in distinct(rows, |row| &row.family) {
        for traffic in distinct(rows.iter().filter(|row| row.family == family), |row| &row.traffic) {
            let rows: Vec<&Row> =
                rows.iter().filter(|row| row.family == family && row.traffic == traffic).collect();
            let heading = format!("{table}: {} {}", title(family), traffic.to_uppercase());
            let below =
                format!("{} prefixes, {} next hops", thousands(rows[0].routes), thousands(rows[0].next_hops));
            if let Ok(svg) = svg(&heading, &below, &rows) {
                charts.push((format!("{family}-{traffic}"), svg));
            }
        }
    }
    charts
}

/// Returns the values of a field, in the order of their first row.
pub(super) fn distinct<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    field: fn(&Row) -> &String,
) -> Vec<&'a str> {
    let mut values: Vec<&str> = Vec::new();
    for row in rows {
        let value = field(row).as_str();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

pub(super) fn title(family: &str) -> &'static str {
    if family == "ipv4" { "IPv4" } else { "IPv6" }
}
