//! The beginning of a text, by which its form is settled.

use std::borrow::Cow;

/// Most lines that are looked at.
const MOST_LINES: usize = 1000;

/// The lines of the first 64 KiB of a text, without those that are blank.
pub(crate) struct TextHead<'a> {
    text: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> TextHead<'a> {
    /// Returns the head as text. Where the text goes on, its last line may be cut and is left out.
    pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
        String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
    }

    pub(crate) fn of(text: &'a str, goes_on: bool) -> Self {
        let mut lines: Vec<&str> = text.split('\n').take(MOST_LINES).collect();
        if goes_on && lines.len() > 1 && lines.len() < MOST_LINES {
            lines.pop();
        }
        lines.retain(|line| !line.trim().is_empty());
        for line in &mut lines {
            *line = line.strip_suffix('\r').unwrap_or(line);
        }
        Self { text, lines }
    }

    /// Returns all of the head.
    pub(crate) fn all(&self) -> &'a str {
        self.text
    }

    pub(crate) fn lines(&self) -> &[&'a str] {
        &self.lines
    }

    /// Returns how many lines a form takes for its own.
    pub(crate) fn count(&self, claims: impl Fn(&str) -> bool) -> usize {
        self.lines.iter().filter(|line| claims(line)).count()
    }
}
