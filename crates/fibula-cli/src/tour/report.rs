//! The tour's output for people.

use std::io::{self, Write};
use std::path::Path;

use anstyle::AnsiColor;
use fibula::net::{Family, Key};

use super::explain::ExplainedAddress;
use super::measure::{BATCH, EngineFigures, EngineRole, EngineRow};
use super::table::Toured;
use crate::machine::OPTIMISED;
use crate::text::{Grid, bold, bytes, dim, plural, thousands};

pub(super) fn table(
    out: &mut dyn Write,
    file: Option<&Path>,
    v4: &Toured<u32>,
    v6: &Toured<u128>,
) -> io::Result<()> {
    heading(out, "The table")?;
    let what = match file {
        Some(file) => format!("{} was read in {} ms.", file.display(), v4.fill_time.as_millis()),
        None => "This one is generated, with the size and shape of the Internet's.".to_owned(),
    };
    writeln!(
        out,
        "A routing table lists prefixes (blocks of addresses), and for each of them where packets go: the next hop. {what}\n"
    )?;
    let mut grid =
        Grid::new(&["family", "prefixes", "next hops", "memory", "bytes/prefix"]).right(&[1, 2, 3, 4]);
    table_row(&mut grid, v4);
    table_row(&mut grid, v6);
    writeln!(out, "{}", grid.render())
}

fn table_row<K: Key>(grid: &mut Grid, table: &Toured<K>) {
    if table.rib.is_empty() {
        return;
    }
    let memory = table.rib.memory().held_bytes();
    grid.row([
        K::FAMILY.to_string(),
        thousands(table.rib.len()),
        thousands(table.next_hops),
        bytes(memory),
        format!("{:.1}", memory as f64 / table.rib.len() as f64),
    ]);
}

/// Explains the answers: the route that wins, and those that lose.
pub(super) fn answers(out: &mut dyn Write, answers: &[ExplainedAddress]) -> io::Result<()> {
    heading(out, "Looking up")?;
    writeln!(
        out,
        "Prefixes can contain each other. Of all that contain an address, the longest wins, because it says the most about \
         the address."
    )?;
    let (bold, dim) = (bold(), dim());
    for ExplainedAddress { address, matches, .. } in answers {
        let count = matches.len() as u64;
        writeln!(out, "\n{address} is in {count} {}:\n", plural(count, "prefix", "prefixes"))?;
        let prefix = matches.iter().map(|one| one.prefix.len()).max().unwrap_or(0);
        let value = matches.iter().map(|one| one.value.len()).max().unwrap_or(0);
        for (at, one) in matches.iter().enumerate() {
            let route = format!("{:<prefix$}  via {:<value$}", one.prefix, one.value);
            if at == 0 {
                writeln!(out, "  {bold}{route}{bold:#}  <- the answer: {} bits match", one.len)?;
            } else {
                writeln!(out, "  {dim}{route}  loses: only {} bits{dim:#}", one.len)?;
            }
        }
    }
    Ok(())
}

pub(super) fn announce_measuring(out: &mut dyn Write) -> io::Result<()> {
    heading(out, "How fast")?;
    writeln!(
        out,
        "The engine that Fibula chooses for this table, next to two that one would write first. They take turns on the same \
         addresses, in calls of {BATCH}; a rate is the median of the rounds."
    )
}

pub(super) fn rates(out: &mut dyn Write, rows: &[EngineRow]) -> io::Result<()> {
    for family in [Family::Ipv4, Family::Ipv6] {
        let rows: Vec<&EngineRow> = rows.iter().filter(|row| row.family == family).collect();
        if rows.is_empty() {
            continue;
        }
        let heading = family.to_string();
        let mut grid = Grid::new(&[&heading, "M/s", "half of the rounds", "bytes/prefix", "build (ms)"])
            .right(&[1, 2, 3, 4]);
        for row in &rows {
            let name = format!("{}{}", row.engine, if row.kind == EngineRole::Chosen { "*" } else { "" });
            let [rate, spread, bytes, build] = row
                .figures
                .as_ref()
                .map_or_else(|_| std::array::from_fn(|_| "-".to_owned()), |figures| cells(row, figures));
            grid.row([name, rate, spread, bytes, build]);
        }
        writeln!(out, "\n{}", grid.render())?;
    }
    for row in rows {
        if let Err(error) = &row.figures {
            writeln!(out, "\n{} {}: not built: {error}", row.family, row.engine)?;
        }
    }
    let dim = dim();
    writeln!(
        out,
        "\n{dim}*                   what Fibula chooses for this table\n\
         M/s                 million lookups a second of random addresses that match\n\
         half of the rounds  were between these rates; a wide spread means a busy machine\n\
         bytes/prefix        memory that lookups may touch{dim:#}\n"
    )
}

fn cells(row: &EngineRow, figures: &EngineFigures) -> [String; 4] {
    let rates = &figures.rates;
    [
        format!("{:.1}", rates.median),
        format!("{:.1} to {:.1}", rates.low, rates.high),
        format!("{:.1}", bytes_per_prefix(row, figures)),
        format!("{:.1}", build_time_ms(figures)),
    ]
}

pub(super) fn bytes_per_prefix(row: &EngineRow, figures: &EngineFigures) -> f64 {
    figures.lookup_bytes as f64 / row.routes as f64
}

pub(super) fn build_time_ms(figures: &EngineFigures) -> f64 {
    figures.build_time_ns as f64 / 1e6
}

pub(super) fn verdict(out: &mut dyn Write, rows: &[EngineRow]) -> io::Result<()> {
    let figures = || rows.iter().filter_map(|row| row.figures.as_ref().ok());
    let checked: usize = figures().map(|figures| figures.checked).sum();
    let wrong: usize = figures().map(|figures| figures.wrong).sum();
    if wrong == 0 {
        let good = AnsiColor::Green.on_default().bold();
        writeln!(out, "{good}All {} answers were those of the table.{good:#}", thousands(checked))?;
    } else {
        let bad = AnsiColor::Red.on_default().bold();
        writeln!(out, "{bad}{} of {} answers were wrong:{bad:#}", thousands(wrong), thousands(checked))?;
        for row in rows {
            if let Ok(EngineFigures { wrong: wrong @ 1.., .. }) = row.figures {
                writeln!(out, "  {} {}: {}", row.family, row.engine, thousands(wrong))?;
            }
        }
    }
    for family in [Family::Ipv4, Family::Ipv6] {
        if let Some(sentence) = fastest(rows, family) {
            writeln!(out, "{sentence}")?;
        }
    }
    if !OPTIMISED {
        writeln!(out, "These figures come from a debug build and say nothing about speed.")?;
    }
    Ok(())
}

/// Names the fastest engine of a family, or says that the spreads of the first ones overlap.
fn fastest(rows: &[EngineRow], family: Family) -> Option<String> {
    let rows = rows.iter().filter(|row| row.family == family);
    let mut ranked: Vec<_> =
        rows.filter_map(|row| Some((row.engine, row.figures.as_ref().ok()?.rates))).collect();
    ranked.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
    let ((name, best), others) = ranked.split_first()?;
    let (next, second) = others.first()?;
    if others.iter().all(|(_, other)| best.is_above(other)) {
        let times = best.median / second.median;
        return Some(format!("Fastest on {family}: {name}, {times:.1} times as fast as {next}."));
    }
    let close: Vec<&str> =
        others.iter().filter(|(_, other)| !best.is_above(other)).map(|(name, _)| *name).collect();
    Some(format!("{family}: no fastest, because the rates of {name} and {} overlap.", close.join(", ")))
}

/// Names the commands to try next.
pub(super) fn go_on(
    out: &mut dyn Write,
    program: &str,
    file: Option<&Path>,
    answers: &[ExplainedAddress],
) -> io::Result<()> {
    heading(out, "Next")?;
    let code = AnsiColor::Cyan.on_default();
    let mut command = |line: String| writeln!(out, "  {code}{line}{code:#}");
    if let Some(file) = file {
        let file = file.display();
        let address = answers.first().map_or("192.0.2.1", |answer| &answer.address);
        command(format!("{program} lookup --table {file} {address}"))?;
        command(format!("{program} choose {file}"))?;
        command(format!("{program} compile {file} --output table.fibula"))?;
    } else {
        command("printf '192.0.2.0/24 64500\\n2001:db8::/32 64501\\n' > routes.txt".to_owned())?;
        command(format!("{program} lookup --table routes.txt 192.0.2.1"))?;
        command(format!("{program} tour --table routes.txt"))?;
    }
    writeln!(out)?;
    if program.starts_with("cargo") {
        writeln!(out, "'cargo build --release' makes the program itself, as target/release/fibula.")?;
    }
    writeln!(out, "For everything else: {code}{program} --help{code:#}")
}

fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let style = AnsiColor::Cyan.on_default().bold();
    writeln!(out, "\n{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::super::measure::Rates;
    use super::*;

    fn row(engine: &'static str, [low, median, high]: [f64; 3]) -> EngineRow {
        let rates = Rates { median, low, high, rounds: 7 };
        let figures = EngineFigures { lookup_bytes: 1, build_time_ns: 1, rates, checked: 1, wrong: 0 };
        EngineRow { engine, kind: EngineRole::Plain, family: Family::Ipv4, routes: 1, figures: Ok(figures) }
    }

    #[test]
    fn nothing_is_fastest_whose_spread_overlaps_another() {
        let (a, b) = (row("a", [8.0, 9.0, 10.0]), row("b", [3.0, 4.5, 5.0]));
        let rows = [a, b, row("c", [1.0, 2.0, 7.0])];
        assert_eq!(fastest(&rows, Family::Ipv4).unwrap(), "Fastest on IPv4: a, 2.0 times as fast as b.");
        let rows = [row("a", [4.0, 9.0, 10.0]), row("b", [3.0, 4.5, 5.0]), row("c", [1.0, 2.0, 7.0])];
        assert_eq!(
            fastest(&rows, Family::Ipv4).unwrap(),
            "IPv4: no fastest, because the rates of a and b, c overlap."
        );
        assert_eq!(fastest(&rows, Family::Ipv6), None);
    }
}
