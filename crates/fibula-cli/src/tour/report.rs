//! What the tour prints.

use std::io::{self, Write};

use anstyle::AnsiColor;
use fibula::net::{Family, Key};
use serde_json::{Value, json};

use super::examples::{Examples, Found};
use super::measure::{Figures, ORACLE, Row, SynthTable, wrong};
use crate::machine::OPTIMISED;
use crate::objects::Object;
use crate::text::{Grid, bold, bytes, dim, thousands};

pub(super) fn introduction(
    out: &mut dyn Write,
    v4: &SynthTable<u32>,
    v6: &SynthTable<u128>,
) -> io::Result<()> {
    heading(out, "The table")?;
    writeln!(
        out,
        "A routing table lists prefixes (blocks of addresses) and the next hop of each. This one is \
         generated, with the size and shape of the Internet's.\n"
    )?;
    let mut grid = Grid::new(&["family", "prefixes", "next hops", "load time", "memory", "bytes/prefix"])
        .right(&[1, 2, 3, 4, 5]);
    table_row(&mut grid, v4);
    table_row(&mut grid, v6);
    writeln!(out, "{}", grid.render())
}

fn table_row<K: Key>(grid: &mut Grid, table: &SynthTable<K>) {
    let memory = table.rib.memory().held_bytes();
    grid.row([
        K::FAMILY.to_string(),
        thousands(table.rib.len()),
        thousands(table.next_hops),
        format!("{:.0} ms", table.fill_time.as_secs_f64() * 1e3),
        bytes(memory),
        format!("{:.1}", memory as f64 / table.rib.len() as f64),
    ]);
}

pub(super) fn lookups(out: &mut dyn Write, examples: &Examples) -> io::Result<()> {
    heading(out, "Looking up")?;
    let (address, covers) = &examples.nested;
    writeln!(
        out,
        "Prefixes can contain each other. Of all prefixes that contain an address, the longest wins.\n\
         {address} is in\n"
    )?;
    let (bold, dim) = (bold(), dim());
    for (index, Found { prefix, next_hop }) in covers.iter().enumerate() {
        if index + 1 == covers.len() {
            writeln!(out, "  {bold}{prefix:<20} via {next_hop:<4}{bold:#} <- longest: the answer")?;
        } else {
            writeln!(out, "  {dim}{prefix:<20} via {next_hop}{dim:#}")?;
        }
    }
    writeln!(out)?;
    let mut grid = Grid::new(&["address", "matched prefix", "next hop"]);
    for (address, found) in &examples.lookups {
        let (prefix, next_hop) = match found {
            Some(Found { prefix, next_hop }) => (prefix.clone(), next_hop.to_string()),
            None => ("no route".to_owned(), String::new()),
        };
        grid.row([address.clone(), prefix, next_hop]);
    }
    writeln!(out, "{}", grid.render())
}

pub(super) fn announce_structures(out: &mut dyn Write) -> io::Result<()> {
    heading(out, "The structures")?;
    writeln!(
        out,
        "Each finds that prefix in its own way. All are built from the table, checked and measured.\n"
    )
}

pub(super) fn structures(out: &mut dyn Write, rows: &[Row], program: &str) -> io::Result<()> {
    let mut grid = Grid::new(&[
        "family",
        "algorithm",
        "bytes/prefix",
        "build (ms)",
        "M/s match",
        "M/s random",
        "checked",
        "wrong",
    ])
    .right(&[2, 3, 4, 5, 6, 7]);
    for row in rows {
        let name = format!("{}{}", row.algorithm, if row.sample { " *" } else { "" });
        let cells =
            row.figures.as_ref().map_or_else(|_| std::array::from_fn(|_| "-".to_owned()), |f| cells(row, f));
        let [bytes, build, matching, random, checked, wrong] = cells;
        grid.row([row.family.to_string(), name, bytes, build, matching, random, checked, wrong]);
    }
    writeln!(out, "{}\n", grid.render())?;
    legend(out, rows)?;
    verdict(out, rows)?;
    go_on(out, program)
}

fn cells(row: &Row, figures: &Figures) -> [String; 6] {
    [
        format!("{:.1}", bytes_per_prefix(row, figures)),
        short(build_time_ms(figures)),
        format!("{:.1}", figures.mlps_match),
        format!("{:.1}", figures.mlps_rnd),
        thousands(figures.checked),
        thousands(figures.wrong),
    ]
}

/// Returns a time with as many decimals as small numbers need.
fn short(number: f64) -> String {
    if number < 1.0 { format!("{number:.3}") } else { format!("{number:.1}") }
}

fn bytes_per_prefix(row: &Row, figures: &Figures) -> f64 {
    figures.lookup_bytes as f64 / row.routes as f64
}

fn build_time_ms(figures: &Figures) -> f64 {
    figures.build_time_ns as f64 / 1e6
}

fn legend(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let dim = dim();
    writeln!(
        out,
        "{dim}bytes/prefix  memory that lookups may touch\n\
         M/s match     million lookups a second in random prefixes, 256 in a call\n\
         M/s random    the same for random addresses of the whole space in use\n\
         checked       answers compared with {ORACLE} (its own with the table){dim:#}"
    )?;
    let samples: Vec<String> = rows
        .iter()
        .filter(|row| row.sample)
        .map(|row| format!("{} {}: {}", row.family, row.algorithm, thousands(row.routes)))
        .collect();
    if !samples.is_empty() {
        writeln!(
            out,
            "{dim}* built from a sample of the table, because the whole would take too long:\n  \
             {} prefixes{dim:#}",
            samples.join("; ")
        )?;
    }
    for row in rows {
        if let Err(error) = &row.figures {
            writeln!(out, "{} {}: not built: {error}", row.family, row.algorithm)?;
        }
    }
    writeln!(out)
}

fn verdict(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let figures = || rows.iter().filter_map(|row| row.figures.as_ref().ok());
    let checked: usize = figures().map(|figures| figures.checked).sum();
    let wrong: usize = figures().map(|figures| figures.wrong).sum();
    if wrong == 0 {
        let good = AnsiColor::Green.on_default().bold();
        writeln!(out, "{good}All {} checked answers were right.{good:#}", thousands(checked))?;
    } else {
        let bad = AnsiColor::Red.on_default().bold();
        writeln!(
            out,
            "{bad}{} of {} checked answers were wrong.{bad:#}",
            thousands(wrong),
            thousands(checked)
        )?;
    }
    for family in [Family::Ipv4, Family::Ipv6] {
        let fastest = rows
            .iter()
            .filter(|row| row.family == family && !row.sample)
            .filter_map(|row| Some((row.algorithm, row.figures.as_ref().ok()?.mlps_match)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b));
        if let Some((name, mlps)) = fastest {
            writeln!(out, "Fastest on {family} (match): {name}, {mlps:.1} million lookups a second.")?;
        }
    }
    if !OPTIMISED {
        writeln!(out, "These figures come from a debug build and say nothing about speed.")?;
    }
    Ok(())
}

fn go_on(out: &mut dyn Write, program: &str) -> io::Result<()> {
    heading(out, "Your own table")?;
    let code = AnsiColor::Cyan.on_default();
    writeln!(out, "A table can be a text file with a prefix and a next hop on each line, for example:\n")?;
    writeln!(out, "  {code}printf '192.0.2.0/24 64500\\n2001:db8::/32 64501\\n' > routes.txt{code:#}")?;
    writeln!(out, "  {code}{program} lookup --table routes.txt 192.0.2.1 2001:db8::1{code:#}")?;
    writeln!(out, "  {code}{program} lookup --table routes.txt --format csv < addresses.txt{code:#}\n")?;
    if program.starts_with("cargo") {
        writeln!(
            out,
            "To build the program itself: cargo build --release; it is then target/release/fibula."
        )?;
    }
    writeln!(out, "For everything else: {code}{program} --help{code:#}")
}

fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let style = AnsiColor::Cyan.on_default().bold();
    writeln!(out, "\n{style}{text}{style:#}")
}

/// The fields of a structure, in order.
pub(super) const COLUMNS: &[&str] = &[
    "algorithm",
    "family",
    "routes",
    "sample",
    "lookup_bytes",
    "bytes_per_prefix",
    "build_time_ms",
    "mlps_match",
    "mlps_rnd",
    "checked",
    "wrong",
    "error",
];

/// Returns the result of a structure, for scripts; fields are null if it could not be built.
pub(super) fn record(row: &Row) -> Object {
    let figures = row.figures.as_ref().ok();
    let value = json!({
        "algorithm": row.algorithm,
        "family": row.family.name(),
        "routes": row.routes,
        "sample": row.sample,
        "lookup_bytes": figures.map(|figures| figures.lookup_bytes),
        "bytes_per_prefix": figures.map(|figures| rounded(bytes_per_prefix(row, figures))),
        "build_time_ms": figures.map(|figures| rounded(build_time_ms(figures))),
        "mlps_match": figures.map(|figures| rounded(figures.mlps_match)),
        "mlps_rnd": figures.map(|figures| rounded(figures.mlps_rnd)),
        "checked": figures.map_or(0, |figures| figures.checked),
        "wrong": figures.map_or(0, |figures| figures.wrong),
        "error": row.figures.as_ref().err().map(ToString::to_string),
    });
    match value {
        Value::Object(record) => record,
        _ => Object::new(),
    }
}

pub(super) fn json(
    out: &mut dyn Write,
    v4: &SynthTable<u32>,
    v6: &SynthTable<u128>,
    examples: &Examples,
    rows: &[Row],
) -> io::Result<()> {
    let lookups: Vec<Value> = examples
        .lookups
        .iter()
        .map(|(address, found)| {
            json!({
                "address": address,
                "prefix": found.as_ref().map(|found| &found.prefix),
                "next_hop": found.as_ref().map(|found| found.next_hop.to_string()),
            })
        })
        .collect();
    let value = json!({
        "optimised": OPTIMISED,
        "tables": [table_json(v4), table_json(v6)],
        "lookups": lookups,
        "structures": rows.iter().map(record).collect::<Vec<_>>(),
        "wrong": wrong(rows),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn table_json<K: Key>(table: &SynthTable<K>) -> Value {
    let memory_bytes = table.rib.memory().held_bytes();
    json!({
        "family": K::FAMILY.name(),
        "routes": table.rib.len(),
        "next_hops": table.next_hops,
        "fill_time_ms": rounded(table.fill_time.as_secs_f64() * 1e3),
        "memory_bytes": memory_bytes,
        "bytes_per_prefix": rounded(memory_bytes as f64 / table.rib.len() as f64),
    })
}

/// Rounds to three decimals, more than a measurement is worth.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
