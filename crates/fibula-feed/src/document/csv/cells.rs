//! A line cut into cells.

use std::borrow::Cow;

use crate::text::{LineError, LineErrorKind};

/// How the columns of a table are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) separator: u8,
}

impl Dialect {
    /// Separators, the most common first.
    pub(super) const ALL: [Self; 4] = [
        Self { separator: b',' },
        Self { separator: b'\t' },
        Self { separator: b';' },
        Self { separator: b'|' },
    ];

    /// Values between tabs have no quotes: a quote is a character like any other.
    fn quotes(self) -> bool {
        self.separator != b'\t'
    }

    pub(super) fn is_comment(self, line: &str) -> bool {
        line.starts_with('#') || (line.starts_with(';') && self.separator != b';') || line.starts_with('%')
    }

    /// Returns the cells of a line, or of several that a quoted cell joins.
    pub(super) fn cells<'a>(self, line: &'a str) -> Result<Vec<Cow<'a, str>>, LineError> {
        let separator = char::from(self.separator);
        if !self.quotes() || !line.contains('"') {
            return Ok(line.split(separator).map(Cow::Borrowed).collect());
        }
        let mut cells = Vec::new();
        let mut rest = line;
        loop {
            let (cell, after) = self.cell(rest, line)?;
            cells.push(cell);
            match after {
                Some(after) => rest = after,
                None => return Ok(cells),
            }
        }
    }

    /// Returns the first cell of a text, and the text after its separator.
    fn cell<'a>(self, text: &'a str, line: &str) -> Result<(Cow<'a, str>, Option<&'a str>), LineError> {
        let separator = char::from(self.separator);
        // Blanks may come between a separator and a quote.
        let Some(inner) = text.trim_start_matches(' ').strip_prefix('"') else {
            return Ok(match text.split_once(separator) {
                Some((cell, after)) => (cell.into(), Some(after)),
                None => (text.into(), None),
            });
        };
        let at = |rest: &str| line.len() - rest.len();
        let (mut cell, mut rest) = (Cow::Borrowed(""), inner);
        loop {
            let Some((part, after)) = rest.split_once('"') else {
                return Err(LineError::new(LineErrorKind::UnterminatedQuote, at(text)));
            };
            if cell.is_empty() {
                cell = part.into();
            } else {
                cell.to_mut().push_str(part);
            }
            if let Some(after) = after.strip_prefix('"') {
                cell.to_mut().push('"');
                rest = after;
                continue;
            }
            let ended = after.trim_start_matches(' ');
            return match ended.strip_prefix(separator) {
                Some(after) => Ok((cell, Some(after))),
                None if ended.is_empty() || ended == "\r" => Ok((cell, None)),
                None => Err(LineError::new(LineErrorKind::AfterQuote, at(after))),
            };
        }
    }

    /// Returns whether a line ends inside a quoted cell.
    pub(super) fn opens(self, line: &str) -> bool {
        self.quotes()
            && line.contains('"')
            && self.cells(line).is_err_and(|error| error.is_unterminated_quote())
    }

    /// Returns whether a line that begins inside a quoted cell ends it, so that the row is complete.
    pub(super) fn closes(self, line: &str) -> bool {
        // The quote that is put in front stands for the open cell of the lines before.
        line.contains('"')
            && !self.cells(&format!("\"{line}")).is_err_and(|error| error.is_unterminated_quote())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Dialect = Dialect { separator: b',' };

    fn cells(line: &str) -> String {
        COMMA.cells(line).map_or_else(|error| error.to_string(), |cells| cells.join("|"))
    }

    #[test]
    fn quotes_are_those_that_stand_at_the_ends_of_a_cell() {
        assert_eq!(cells("a,b,"), "a|b|");
        assert_eq!(cells("\"a,b\",c"), "a,b|c");
        assert_eq!(cells("\"\",c"), "|c");
        assert_eq!(cells("\"a\"\"b\"\"\",c"), "a\"b\"|c");
        assert_eq!(cells("a, \"b, c\" ,d"), "a|b, c|d");
        assert_eq!(cells("5\" disk,c"), "5\" disk|c");
        assert_eq!(cells("\"a\nb\",c"), "a\nb|c");
        assert_eq!(cells("\"a\"b,c"), "column 4: unexpected text after the closing quote");
        assert_eq!(cells("x,\"a,b"), "column 3: unterminated quote");
        assert_eq!(Dialect { separator: b'\t' }.cells("\"a\tb").unwrap(), ["\"a", "b"]);
        assert!(COMMA.opens("x,\"a") && !COMMA.opens("x,a\"") && !COMMA.opens("\"x\"y,\"a"));
        assert!(
            COMMA.closes("b\",c") && !COMMA.closes("b") && !COMMA.closes("b\",\"c") && COMMA.closes("\"")
        );
    }
}
