//! Tables and numbers for people.

use anstyle::Style;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};

use crate::width;

/// Most columns of a table: long lines are hard to read.
const WIDTH: usize = 100;

/// Blanks between columns.
const PADDING: u16 = 2;

/// Returns the width of a table that takes at most so many columns.
fn width(most: usize) -> u16 {
    // Far below the limit of the type.
    width::columns().min(most) as u16
}

/// Headings and the most important figures.
#[must_use]
pub fn bold() -> Style {
    Style::new().bold()
}

/// Details.
#[must_use]
pub fn dim() -> Style {
    Style::new().dimmed()
}

/// Aligned columns, two spaces apart.
pub struct Grid {
    table: Table,
    /// The longest word of each column, which is not broken: names and numbers have none that are shorter.
    words: Vec<u16>,
}

impl Grid {
    /// With a header.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        let mut grid = Self::bare();
        grid.note(head.iter().copied());
        grid.table.set_header(head);
        grid
    }

    /// Without a header.
    #[must_use]
    pub fn bare() -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width(WIDTH));
        Self { table, words: Vec::new() }
    }

    /// Allows lines half as long again, for many columns.
    #[must_use]
    pub fn wide(mut self) -> Self {
        self.table.set_width(width(WIDTH + WIDTH / 2));
        self
    }

    /// Aligns these columns to the right, for numbers.
    #[must_use]
    pub fn right(mut self, columns: &[usize]) -> Self {
        for &column in columns {
            if let Some(column) = self.table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        self.note(cells.iter().map(String::as_str));
        self.table.add_row(cells);
    }

    fn note<'a>(&mut self, cells: impl Iterator<Item = &'a str>) {
        for (at, cell) in cells.enumerate() {
            let longest = cell.split_whitespace().map(|word| word.chars().count()).max();
            self.words.resize(self.words.len().max(at + 1), 0);
            // No cell has a word of 65,536 characters, so the cast keeps the length.
            self.words[at] = self.words[at].max(longest.unwrap_or(0) as u16);
        }
    }

    /// Returns all lines, without the last line feed. The header is bold.
    #[must_use]
    pub fn render(mut self) -> String {
        for column in self.table.column_iter_mut() {
            column.set_padding((0, PADDING));
        }
        for (column, &word) in self.table.column_iter_mut().zip(&self.words) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word + PADDING)));
        }
        let text = self.table.trim_fmt();
        match text.split_once('\n') {
            Some((head, rows)) if self.table.header().is_some() => {
                let bold = bold();
                format!("{bold}{head}{bold:#}\n{rows}")
            }
            _ => text,
        }
    }
}

/// Returns a number with separators: 1,234,567.
pub fn thousands(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a size in powers of ten: 12.3 MB.
#[must_use]
pub fn bytes(number: usize) -> String {
    let number = number as f64;
    match number {
        n if n >= 1e9 => format!("{:.1} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.1} kB", n / 1e3),
        n => format!("{n:.0} bytes"),
    }
}

/// Returns the singular or the plural.
pub(crate) fn plural<'a>(number: u64, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(thousands(0u64), "0");
        assert_eq!(thousands(999u64), "999");
        assert_eq!(thousands(1_000u64), "1,000");
        assert_eq!(thousands(1_234_567u64), "1,234,567");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(1_200_000), "1.2 MB");
    }
}
