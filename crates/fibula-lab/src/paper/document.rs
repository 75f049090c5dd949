//! Exhibits as Markdown, for generated documents.

use core::fmt::Write as _;

use super::chart::rows;
use super::definition::{Column, Exhibit};
use super::record::Point;
use super::report::number;

/// Returns an exhibit as a section of Markdown: its published rows, and those that were measured. Columns that `leave_out` names
/// are left out, such as times, which differ from run to run.
#[must_use]
pub fn markdown(exhibit: &Exhibit, points: &[&Point], leave_out: &[&str]) -> String {
    let columns: Vec<&Column> =
        exhibit.columns.iter().filter(|column| !leave_out.contains(&column.name)).collect();
    let mut text = format!("## {}\n\n{}\n\n", exhibit.title, wrapped(exhibit.about));
    let _ = write!(text, "| {} |", exhibit.rows);
    for Column { name, unit } in &columns {
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let _ = write!(text, " {name}{unit} |");
    }
    let _ = writeln!(text, "\n|---|{}", "--:|".repeat(columns.len()));
    for row in rows(exhibit, points) {
        let published = |column: &str| {
            let mut all = exhibit.published.iter();
            Some(all.find(|value| value.row == row && value.column == column)?.value)
        };
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
fn line(text: &mut String, row: &str, columns: &[&Column], value: impl Fn(&str) -> Option<f64>) {
    let values: Vec<Option<f64>> = columns.iter().map(|column| value(column.name)).collect();
    if values.iter().any(Option::is_some) {
        let _ = write!(text, "| {row} |");
        for value in values {
            let _ = write!(text, " {} |", value.map_or(String::new(), number));
        }
        text.push('\n');
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
