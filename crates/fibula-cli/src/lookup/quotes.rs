//! Which quotes of CSV enclose a field.
//!
//! A quote encloses one where the field begins with it and another ends it: before a separator or the end of a line, and not too far
//! away. Any other quote is text. So one that is never closed costs its own line, and not the rest of the input (RFC 4180 would read
//! that as one field).

/// Lines that a field may span.
const FIELD_LINES: usize = 16;

/// Bytes that a field in quotes may have.
const FIELD_BYTES: usize = 64 << 10;

/// The meaning of a quote at the beginning of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// It encloses the field, which ends before this place.
    Closed(usize),
    /// It is text.
    Text,
    /// More bytes are needed to tell.
    Open,
}

/// Returns the meaning of the quote at `at`, which begins a field. `last` says that no more bytes follow.
pub(super) fn quote(bytes: &[u8], at: usize, separator: u8, last: bool) -> Quote {
    let unknown = if last { Quote::Text } else { Quote::Open };
    let limit = bytes.len().min(at + 1 + FIELD_BYTES);
    let (mut from, mut lines) = (at + 1, 1);
    // Two quotes may lie on both sides of the limit.
    while let Some(found) = bytes.get(from..limit).and_then(find) {
        from += found + 1;
        if bytes[from - 1] == b'\n' {
            lines += 1;
            if lines > FIELD_LINES {
                return Quote::Text;
            }
            continue;
        }
        return match bytes[from..] {
            // Two quotes are one that belongs to the field.
            [b'"', ..] => {
                from += 1;
                continue;
            }
            [b'\n', ..] | [b'\r', b'\n', ..] => Quote::Closed(from),
            [byte, ..] if byte == separator => Quote::Closed(from),
            [] | [b'\r'] if last => Quote::Closed(from),
            [] | [b'\r'] => Quote::Open,
            _ => Quote::Text,
        };
    }
    if limit < bytes.len() { Quote::Text } else { unknown }
}

/// Returns the place of the first quote or line feed. The first bytes are looked at one by one: most fields are that short, and a call
/// would cost more.
#[inline]
fn find(text: &[u8]) -> Option<usize> {
    const FEW: usize = 12;
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\n');
    match text.get(FEW..) {
        None => text.iter().position(is_special),
        Some(rest) => text[..FEW]
            .iter()
            .position(is_special)
            .or_else(|| memchr::memchr2(b'"', b'\n', rest).map(|at| at + FEW)),
    }
}

/// The ends of lines: the places of the line feeds outside quotes.
pub(super) struct Ends<'a> {
    bytes: &'a [u8],
    separator: u8,
    last: bool,
    at: usize,
    /// Quotes that begin a field, and are text.
    pub(super) texts: usize,
}

impl<'a> Ends<'a> {
    /// `last` says that no more bytes follow these.
    pub(super) fn new(bytes: &'a [u8], separator: u8, last: bool) -> Self {
        Self { bytes, separator, last, at: 0, texts: 0 }
    }
}

impl Iterator for Ends<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let bytes = self.bytes;
        loop {
            let at = self.at + memchr::memchr2(b'"', b'\n', bytes.get(self.at..)?)?;
            self.at = at + 1;
            if bytes[at] == b'\n' {
                return Some(at);
            }
            let is_before = |byte: u8| byte == b'\n' || byte == self.separator;
            let begins = match bytes[..at].last() {
                // Blanks may come before it, as in CSV that is written by hand.
                Some(b' ') => {
                    let before = bytes[..at].iter().rposition(|&byte| byte != b' ');
                    before.is_none_or(|at| is_before(bytes[at]))
                }
                before => before.is_none_or(|&byte| is_before(byte)),
            };
            if !begins {
                continue;
            }
            match quote(bytes, at, self.separator, self.last) {
                Quote::Closed(end) if bytes.get(end) == Some(&b'\n') => {
                    self.at = end + 1;
                    return Some(end);
                }
                Quote::Closed(end) => self.at = end,
                Quote::Text => self.texts += 1,
                Quote::Open => {
                    self.at = bytes.len();
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &str, last: bool) -> (Vec<usize>, usize) {
        let mut ends = Ends::new(text.as_bytes(), b',', last);
        (ends.by_ref().collect(), ends.texts)
    }

    #[test]
    fn lines_end_outside_quotes() {
        assert_eq!(ends("a,\"1\n2\",b\nc\n", true), (vec![9, 11], 0));
        assert_eq!(ends("\"a\"\"\n\"\r\nb\n", true), (vec![7, 9], 0));
        assert_eq!(ends("1, \"a\n2\"\n  \"b\nc\"\n", true), (vec![8, 16], 0));
        // A quote within a field is text, and so is one that is not closed where a field may end.
        assert_eq!(ends("5\" x\n", true), (vec![4], 0));
        assert_eq!(ends("1,\"x\n2,y\n", true), (vec![4, 8], 1));
        assert_eq!(ends("1,\"x\n2,\"y\" z\n", true), (vec![4, 12], 2));
        // Whether it is closed may be unknown yet.
        assert_eq!(ends("1,\"x\n2,y\n", false), (vec![], 0));
        assert_eq!(ends("1,\"x\"", false), (vec![], 0));
        assert_eq!(ends("0\n1,\"x\"\r", false), (vec![1], 0));
        assert_eq!(ends("", true), (vec![], 0));
    }

    #[test]
    fn two_quotes_may_lie_at_the_limit() {
        for before in FIELD_BYTES - 3..FIELD_BYTES + 3 {
            let text = format!("\"{}\"\"y\"\nb\n", "x".repeat(before));
            let lines = ends(&text, true).0;
            assert_eq!(lines, [text.len() - 3, text.len() - 1], "{before}");
            ends(&text, false);
        }
    }

    #[test]
    fn a_field_has_16_lines_and_64_kib_at_most() {
        assert_eq!((FIELD_LINES, FIELD_BYTES), (16, 64 << 10));
        for (lines, spans) in [(16, true), (17, false)] {
            let text = format!("\"{}\"\n", vec!["x"; lines].join("\n"));
            assert_eq!(ends(&text, true).0.len() == 1, spans, "{lines}");
        }
        for (bytes, spans) in [(FIELD_BYTES - 3, true), (FIELD_BYTES, false)] {
            let text = format!("\"a\n{}\"\n", "x".repeat(bytes));
            assert_eq!(ends(&text, true).0.len() == 1, spans, "{bytes}");
            // The rest of the input does not matter.
            assert_eq!(ends(&(text + "more"), false).0.len() == 1, spans, "{bytes}");
        }
    }
}
