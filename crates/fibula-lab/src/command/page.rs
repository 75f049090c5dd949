//! The page of `fibula-lab rates --html`.

use fibula_cli::plumbing::{OPTIMISED, bytes, thousands};
use fibula_workload::machine::Machine;
use fibula_workload::page::Page;

use super::report::{charts, distinct, name, number, or_dash, pages, refusals, title};
use crate::bench::{Row, duration};

/// Returns the page of the rows of a table.
pub(super) fn page(table: &str, rows: &[Row]) -> String {
    let mut page = Page::new(&format!("Lookups in {table}"));
    if !OPTIMISED {
        page.remark("This was measured by a build for debugging, whose rates mean nothing.");
    }
    page.section("Summary");
    for family in distinct(rows, |row| &row.family) {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.family == family).collect();
        let (routes, hops) = (thousands(rows[0].routes), thousands(rows[0].next_hops));
        page.text(&format!("{}: {routes} prefixes, {hops} next hops. {}", title(family), fastest(&rows)));
    }
    let (checked, wrong) = (sum(rows, |row| row.checked), sum(rows, |row| row.wrong));
    page.text(&match wrong {
        0 => format!("All {} checked answers were right.", thousands(checked)),
        wrong => format!("{} of {} checked answers were wrong.", thousands(wrong), thousands(checked)),
    });
    let machine = Machine::this();
    page.aside(&format!("Measured on {}, {} cores.", machine.name(), machine.cores));
    for (heading, svg) in charts(table, rows) {
        page.section(&heading.replace('-', ", ").replace("ipv", "IPv"));
        page.chart(&svg);
    }
    for family in distinct(rows, |row| &row.family) {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.family == family).collect();
        structures(&mut page, family, &rows);
        rates(&mut page, family, &rows);
    }
    let refused = refusals(rows);
    if !refused.is_empty() {
        page.section("Not measured");
        let row = |(name, why): (String, &str)| vec![name, why.to_owned()];
        page.table(&["engine", "reason"], refused.into_iter().map(row));
    }
    page.section("How it was measured");
    page.text(&format!(
        "Every engine looks up the same keys in turn with the others, after an untimed run over the same keys. Rates are \
         medians of {} runs, with the slowest and the fastest one. One thread is timed by its processor time, several by \
         wall-clock time; {}. Rates with ~ have a 95 % interval wider than a fifth of the median: too noisy to be compared.",
        rows.iter().map(|row| row.runs).max().unwrap_or(0),
        pages(rows),
    ));
    page.finish()
}

fn sum(rows: &[Row], field: fn(&Row) -> usize) -> usize {
    rows.iter().map(field).sum()
}

/// Names the fastest engine of each traffic.
fn fastest(rows: &[&Row]) -> String {
    let mut texts = Vec::new();
    for traffic in distinct(rows.iter().copied(), |row| &row.traffic) {
        let rates = rows.iter().filter(|row| row.traffic == traffic && row.role != "oracle");
        let rates = rates.filter_map(|row| Some((row, row.mlps_median?)));
        if let Some((row, rate)) = rates.max_by(|(_, a), (_, b)| a.total_cmp(b)) {
            texts.push(format!(
                "{}: {}, {} million lookups a second ({}, batches of {}).",
                traffic.to_uppercase(),
                name(row),
                number(rate),
                row.isa,
                row.batch
            ));
        }
    }
    texts.join(" ")
}

fn structures(page: &mut Page, family: &str, rows: &[&Row]) {
    page.section(&format!("{}: memory and building", title(family)));
    let mut seen: Vec<&str> = Vec::new();
    let mut table = Vec::new();
    for row in rows.iter().filter(|row| row.error.is_none()) {
        if seen.contains(&&*row.engine) {
            continue;
        }
        seen.push(&row.engine);
        table.push(vec![
            name(row),
            or_dash(row.lookup_bytes.map(bytes)),
            or_dash(row.bytes_per_prefix.map(|bytes| format!("{bytes:.2}"))),
            or_dash(row.build_time_ms.map(duration)),
        ]);
    }
    page.table(&["engine", "lookup memory", "bytes a prefix", "build"], table);
}

fn rates(page: &mut Page, family: &str, rows: &[&Row]) {
    for traffic in distinct(rows.iter().copied(), |row| &row.traffic) {
        page.section(&format!("{}: rates of {}", title(family), traffic.to_uppercase()));
        page.aside("Million lookups a second.");
        let all = rows.iter().filter(|row| row.traffic == traffic && row.error.is_none());
        let table = all.map(|row| {
            let rate = |rate: Option<f64>| or_dash(rate.map(number));
            vec![
                name(row),
                row.isa.clone(),
                row.threads.to_string(),
                format!(
                    "{}{}",
                    if row.order == "host" { "" } else { "network order, " },
                    thousands(row.key_set)
                ),
                row.batch.to_string(),
                format!("{}{}", if row.noisy { "~" } else { "" }, rate(row.mlps_median)),
                rate(row.mlps_min),
                rate(row.mlps_max),
            ]
        });
        let head = ["engine", "instruction set", "threads", "keys", "batch", "median", "slowest", "fastest"];
        page.table(&head, table);
    }
}
