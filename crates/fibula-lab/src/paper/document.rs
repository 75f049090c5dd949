//! Exhibits as Markdown, for generated documents.

use core::fmt::Write as _;

use super::chart::rows;
use super::definition::{Exhibit, ExhibitColumn, Paper};
use super::record::{PaperRecord, Point};
use super::report::{notes, number};
use super::verdict::{self, Tally, Verdict};

/// Returns an exhibit as a section of Markdown: its published rows, and those that were measured. Columns that `leave_out` names
/// are left out, such as times, which differ from run to run.
#[must_use]
pub fn markdown(exhibit: &Exhibit, points: &[&Point], leave_out: &[&str]) -> String {
    let columns: Vec<&ExhibitColumn> =
        exhibit.columns.iter().filter(|column| !leave_out.contains(&column.name.as_str())).collect();
    let mut text = format!("## {}\n\n{}\n\n", exhibit.title, wrapped(&exhibit.about));
    let _ = write!(text, "| {} |", exhibit.rows);
    for ExhibitColumn { name, unit } in &columns {
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let _ = write!(text, " {name}{unit} |");
    }
    let _ = writeln!(text, "\n|---|{}", "--:|".repeat(columns.len()));
    for row in rows(exhibit, points) {
        let published = |column: &str| exhibit.published_at(&row, column);
        let measured =
            |column: &str| points.iter().find(|point| point.row == row && point.column == column)?.value;
        line(&mut text, &format!("{row} (published)"), &columns, published);
        line(&mut text, &row, &columns, measured);
    }
    text.push('\n');
    if !exhibit.published.is_empty() {
        let _ = writeln!(text, "Published: {}.\n", exhibit.setting);
    }
    text
}

/// Writes a row, unless it has no value.
fn line(text: &mut String, row: &str, columns: &[&ExhibitColumn], value: impl Fn(&str) -> Option<f64>) {
    let values: Vec<Option<f64>> = columns.iter().map(|column| value(&column.name)).collect();
    if values.iter().any(Option::is_some) {
        let _ = write!(text, "| {row} |");
        for value in values {
            let _ = write!(text, " {} |", value.map_or(String::new(), number));
        }
        text.push('\n');
    }
}

/// Returns a committed record as Markdown: which conclusions of the paper hold on its machine, every table and figure with
/// published values beside measured ones, and the differences with their reasons.
#[must_use]
pub fn findings(paper: &Paper, record: &PaperRecord) -> String {
    let PaperRecord { machine, program, .. } = record;
    let mut text = format!("# {}\n\n{}\n\n", paper.title, wrapped(&format!("{}.", paper.citation)));
    let tables: Vec<String> = record
        .tables
        .iter()
        .map(|table| {
            let made = if table.generated { ", generated" } else { "" };
            format!("`{}` ({} routes{made})", table.name, number(table.routes as f64))
        })
        .collect();
    let measured = format!(
        "Measured on {}, {} cores, from {} on; {}, commit {}. Tables: {}. Repeat it with `fibula-lab paper {} -o DIR`.",
        machine.name(),
        machine.cores,
        record.date,
        program.rustc,
        program.commit.as_deref().unwrap_or("unknown"),
        tables.join(", "),
        paper.name
    );
    let _ = writeln!(text, "{}\n", wrapped(&measured));
    let mut tally = Tally::default();
    let mut rows = String::new();
    for exhibit in &paper.exhibits {
        for claim in &exhibit.claims {
            let verdict = Verdict::of(claim, &record.points(exhibit));
            tally.add(claim, &verdict);
            let (found, words) = verdict.words(claim);
            let from = exhibit.called();
            let _ = writeln!(rows, "| {} | {from} | {} | {found} | {words} |", claim.text, claim.published);
        }
    }
    let _ = writeln!(
        text,
        "{}\n\n| conclusion | from | published | here | verdict |\n|---|---|---|---|---|\n{rows}",
        wrapped(&tally.to_string())
    );
    let found = |exhibit| verdict::findings(exhibit, &record.points(exhibit));
    if paper.exhibits.iter().any(|exhibit| !found(exhibit).is_empty()) {
        text.push_str("What this record finds otherwise than the paper, and why:\n\n");
    }
    for exhibit in &paper.exhibits {
        for finding in found(exhibit) {
            let finding = wrapped(&format!("- **{}.** {finding}", exhibit.called()));
            let _ = writeln!(text, "{}\n", finding.replace('\n', "\n  "));
        }
    }
    for exhibit in &paper.exhibits {
        section(&mut text, exhibit, record);
    }
    text
}

fn section(text: &mut String, exhibit: &Exhibit, record: &PaperRecord) {
    let points = &record.points(exhibit)[..];
    let _ = writeln!(text, "## {}\n\n{}\n", exhibit.title, wrapped(&exhibit.about));
    let rows = rows(exhibit, points);
    if !rows.is_empty() {
        let _ = write!(text, "| {} |", exhibit.rows);
        for ExhibitColumn { name, unit } in &exhibit.columns {
            let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
            let _ = write!(text, " {name}{unit} |");
        }
        let _ = writeln!(text, "\n|---|{}", "--:|".repeat(exhibit.columns.len()));
        for row in rows {
            let published = |column: &str| exhibit.published_at(&row, column).map(number);
            let measured = |column: &str| {
                let point = points.iter().find(|point| point.row == row && point.column == column)?;
                Some(with_spread(point))
            };
            cells(text, &format!("{row} (published)"), exhibit, published);
            cells(text, &described(&row, points), exhibit, measured);
        }
        text.push('\n');
    }
    let mut notes = notes(exhibit, points, record);
    if !exhibit.differs.is_empty() {
        notes.insert(0, format!("What differs here: {}.", exhibit.differs));
    }
    if !exhibit.published.is_empty() {
        notes.insert(0, format!("Published: {}.", exhibit.setting));
    }
    for note in notes {
        let _ = writeln!(text, "{}\n", wrapped(&note));
    }
}

/// Writes a row, unless it has no value.
fn cells(text: &mut String, row: &str, exhibit: &Exhibit, value: impl Fn(&str) -> Option<String>) {
    let values: Vec<Option<String>> = exhibit.columns.iter().map(|column| value(&column.name)).collect();
    if values.iter().any(Option::is_some) {
        let values: Vec<String> = values.into_iter().map(Option::unwrap_or_default).collect();
        let _ = writeln!(text, "| {row} | {} |", values.join(" | "));
    }
}

/// A value with the 95 % interval of its median, where it has one.
fn with_spread(point: &Point) -> String {
    let Some(value) = point.value else { return "missing".to_owned() };
    let sign = if point.is_noisy() { "~" } else { "" };
    match point.low.zip(point.high).filter(|(low, high)| low != high) {
        Some((low, high)) => format!("{sign}{} ({} to {})", number(value), number(low), number(high)),
        None => format!("{sign}{}", number(value)),
    }
}

/// A row with the note of a value that has no spread, which names the things counted.
fn described(row: &str, points: &[&Point]) -> String {
    let counted = |point: &&&Point| point.row == row && point.value.is_some() && point.runs.is_empty();
    match points.iter().find(counted).and_then(|point| point.note.as_ref()) {
        Some(note) => format!("{row} ({note})"),
        None => row.to_owned(),
    }
}

/// Breaks lines after 120 columns.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        if width > 0 && width + 1 + word.len() > 120 {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += word.len();
    }
    lines
}
