//! The words of a line.

use super::error::{LineError, LineErrorKind};

/// A word and the byte of the line at which it begins.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Field<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: usize,
}

/// No form has more than seven fields. One more is kept, because an error names the first word too many.
const KEPT: usize = 8;

/// The words of a line, in order.
#[derive(Debug)]
pub(super) struct LineFields<'a> {
    line: &'a [u8],
    words: [Field<'a>; KEPT],
    count: usize,
    /// Where the last word of the line ends.
    end: usize,
}

impl<'a> LineFields<'a> {
    pub(super) fn split(line: &'a [u8]) -> Self {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut fields = Self { line, words: [Field::default(); KEPT], count: 0, end: 0 };
        let mut at = 0;
        while fields.count < KEPT {
            while at < line.len() && is_blank(line[at]) {
                at += 1;
            }
            if at == line.len() {
                break;
            }
            let offset = at;
            // A comment at the end of a line. A line that is all comment has a word instead.
            if fields.count > 0 && matches!(line[at], b'#' | b';') {
                break;
            }
            while at < line.len() && !is_blank(line[at]) {
                at += 1;
            }
            fields.words[fields.count] = Field { bytes: &line[offset..at], offset };
            fields.count += 1;
            fields.end = at;
        }
        fields
    }

    /// Returns the whole line, for forms that separate their fields in another way.
    pub(super) fn line(&self) -> &'a [u8] {
        self.line
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn is_comment(&self) -> bool {
        matches!(self.words[0].bytes, [b'#' | b';', ..])
    }

    /// Returns the first [`KEPT`] words of the line.
    pub(super) fn words(&self) -> &[Field<'a>] {
        &self.words[..self.count]
    }

    /// Returns the error of a line that ends where another word is needed.
    pub(super) fn ends(&self, kind: LineErrorKind) -> LineError {
        LineError::new(kind, self.end)
    }

    /// Refuses words after the first `count`.
    pub(super) fn refuse_after(&self, count: usize, kind: LineErrorKind) -> Result<(), LineError> {
        match self.words().get(count) {
            None => Ok(()),
            Some(field) => Err(LineError::new(kind, field.offset)),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
