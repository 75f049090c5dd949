//! Tables and numbers for people.

use anstyle::Style;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// Width of all tables: long lines are hard to read, and a pipe has no width of its own.
const WIDTH: u16 = 100;

/// Headings and what matters most.
pub(crate) fn bold() -> Style {
    Style::new().bold()
}

/// Details.
pub(crate) fn dim() -> Style {
    Style::new().dimmed()
}

/// Aligned columns, two spaces apart.
pub(crate) struct Grid {
    table: Table,
}

impl Grid {
    pub(crate) fn new(head: &[&str]) -> Self {
        let mut grid = Self::bare();
        grid.table.set_header(head);
        grid
    }

    /// Without a header.
    pub(crate) fn bare() -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
        Self { table }
    }

    /// Allows lines half as long again, for many columns.
    pub(crate) fn wide(mut self) -> Self {
        self.table.set_width(WIDTH + WIDTH / 2);
        self
    }

    /// Aligns these columns to the right, for numbers.
    pub(crate) fn right(mut self, columns: &[usize]) -> Self {
        for &column in columns {
            if let Some(column) = self.table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells);
    }

    /// Returns all lines, without the last line feed. The header is bold.
    pub(crate) fn render(mut self) -> String {
        for column in self.table.column_iter_mut() {
            column.set_padding((0, 2));
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
pub(crate) fn thousands(number: impl TryInto<u64>) -> String {
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
pub(crate) fn bytes(number: usize) -> String {
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
