//! Reports of what a load found.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::choice::PeerCounts;
use crate::compression::Compression;
use crate::document::{ByRule, TableForm};
use crate::mrt::{Fault, Skipped};
use crate::select::Rule;
use crate::text::LineError;

/// The kind of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// Lines of text, each with a route or an event of a peer.
    Text,
    /// CSV, JSON, or the output of a router or of Linux.
    Document,
    /// Records of MRT.
    Mrt,
}

/// Counts of a file's content and of its faults.
///
/// For a plain table, `lines` = `routes_v4` + `routes_v6` + `repeated` + `comments` + `left_out` + `bad_lines`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The name under which the file was loaded.
    pub name: Arc<str>,
    /// How it is compressed.
    pub compression: Compression,
    /// The kind of its content.
    pub content: Content,
    /// Lines or records read.
    pub lines: u64,
    /// Prefixes that this feed has for the table, IPv4 and IPv6.
    pub prefixes: [u64; 2],
    /// Number of those with another next hop in the feeds before this one, by the rule that decided.
    pub differing: BTreeMap<Rule, u64>,
    /// IPv4 prefixes of the table: of all feeds together, if there are several.
    pub routes_v4: u64,
    /// IPv6 prefixes of the table.
    pub routes_v6: u64,
    /// Lines that are blank or a comment.
    pub comments: u64,
    /// Routes whose prefix (and peer, and path) was present before; the last one counts.
    pub repeated: u64,
    /// Number of the `repeated` whose next hop differs from the one before.
    pub repeated_changed: u64,
    /// Good lines of a family that was not requested.
    pub left_out: u64,
    /// Lines that could not be read; of MRT, records and routes.
    pub bad_lines: u64,
    /// Bytes of bad lines, as far as they are known, and bytes of JSON that belong to no entry.
    pub bad_bytes: u64,
    /// Entries of a document: routes that were read, taken or not, and bad ones.
    pub entries: u64,
    /// Bytes of text, decompressed.
    pub text_bytes: u64,
    /// The form of a text.
    pub form: Option<&'static TableForm>,
    /// Whether all its routes are paths that a looking glass or a collector's tool printed. Their next hops are those
    /// of its peers, and a requested value replaces them.
    pub of_paths: bool,
    /// Whether any route names a next hop, and not only other values.
    pub names_next_hop: bool,
    /// Routes that were read and not taken, by the rule.
    pub by_rule: BTreeMap<ByRule, u64>,
    /// Routes in other VRFs than the one that is read, by their names.
    pub other_vrfs: BTreeMap<String, u64>,
    /// Routes that are in no VRF or in the default one, if another one was named.
    pub by_default_vrf: u64,
    /// The first of the bad lines of text, at most [`Report::MOST_BAD`].
    pub first_bad: Vec<BadLine>,
    /// Set when the compressed stream ends early or cannot be read to its end: all that was complete has been loaded.
    pub truncated: Option<Truncation>,
    /// The peers in the order of their addresses, and their counts. Plain tables have none.
    pub peers: Vec<PeerCounts>,
    /// Routes that gave way to a better one of another peer, path or feed.
    pub outrivalled: u64,
    /// Withdrawals of routes that were not present.
    pub withdrawn_absent: u64,
    /// Sessions that ended. All announcements of their peers were withdrawn.
    pub sessions_ended: u64,
    /// Content that was recognised and left out, by kind: MRT records of other types, routes of other families,
    /// messages and states of sessions. Kinds that may hold routes are refused with [`LoadOptions::strict`].
    ///
    /// [`LoadOptions::strict`]: crate::LoadOptions::strict
    pub skipped: BTreeMap<Skipped, u64>,
    /// Prefixes of MRT with bits set after their length: read, the bits cleared.
    pub trailing_bits: u64,
    /// Other oddities that lose nothing: malformed attributes, surplus bytes.
    pub warnings: u64,
    /// Bytes, decompressed, that belong to no record that could be found.
    pub lost_bytes: u64,
    /// The first of the bad records and of the oddities, at most [`Report::MOST_BAD`] each, with their places in the
    /// decompressed file.
    pub faults: Vec<Fault>,
}

impl Report {
    /// Most bad lines that are kept.
    pub const MOST_BAD: usize = 5;

    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            compression: Compression::Plain,
            content: Content::Text,
            lines: 0,
            prefixes: [0; 2],
            differing: BTreeMap::new(),
            routes_v4: 0,
            routes_v6: 0,
            comments: 0,
            repeated: 0,
            repeated_changed: 0,
            left_out: 0,
            bad_lines: 0,
            bad_bytes: 0,
            entries: 0,
            text_bytes: 0,
            form: None,
            of_paths: false,
            names_next_hop: false,
            by_rule: BTreeMap::new(),
            other_vrfs: BTreeMap::new(),
            by_default_vrf: 0,
            first_bad: Vec::new(),
            truncated: None,
            peers: Vec::new(),
            outrivalled: 0,
            withdrawn_absent: 0,
            sessions_ended: 0,
            skipped: BTreeMap::new(),
            trailing_bits: 0,
            warnings: 0,
            lost_bytes: 0,
            faults: Vec::new(),
        }
    }

    /// Returns whether nothing was lost: no bad line or record, no bytes without records, nothing skipped that may hold
    /// routes, and no stream that ends early or is damaged.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let skipped = self.skipped.keys().any(Skipped::loses_routes);
        self.bad_lines == 0 && self.lost_bytes == 0 && !skipped && self.truncated.is_none()
    }

    /// Returns the number of entries: lines of text that are neither blank nor comments, records of MRT, routes of a document.
    #[must_use]
    pub fn entries(&self) -> u64 {
        match self.content {
            Content::Document => self.entries,
            Content::Text | Content::Mrt => self.lines - self.comments,
        }
    }

    /// Returns whether the table cannot be trusted, because too much was misread: more than ten entries, and more than
    /// a hundredth of the entries or of the bytes.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        let is_much = |part: u64, all: u64| part > all / 100;
        self.bad_lines > 10
            && self.content != Content::Mrt
            && (is_much(self.bad_lines, self.entries()) || is_much(self.bad_bytes, self.text_bytes))
    }

    pub(super) fn skip(&mut self, kind: Skipped, count: u64) {
        *self.skipped.entry(kind).or_default() += count;
    }

    /// Counts a fault of MRT, and keeps it if few of its sort came before.
    pub(super) fn fault(&mut self, fault: Fault) {
        // Left-out content is counted by its kind.
        if fault.skipped().is_some() {
            return;
        }
        self.lost_bytes += fault.lost_bytes().unwrap_or(0);
        let count = if fault.is_trailing_bits() {
            &mut self.trailing_bits
        } else if fault.is_warning() {
            &mut self.warnings
        } else {
            &mut self.bad_lines
        };
        *count += 1;
        let alike = |kept: &&Fault| {
            (kept.is_warning(), kept.is_trailing_bits()) == (fault.is_warning(), fault.is_trailing_bits())
        };
        if fault.is_end() || self.faults.iter().filter(alike).count() < Self::MOST_BAD {
            self.faults.push(fault);
        }
    }
}

/// A line that could not be read. Prints as `file:line:column: reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    name: Arc<str>,
    line: u64,
    error: LineError,
    excerpt: Box<str>,
}

impl BadLine {
    /// Length of the longest excerpt.
    const EXCERPT_BYTES: usize = 80;

    pub(super) fn new(name: &Arc<str>, line: u64, error: LineError, text: &[u8]) -> Self {
        Self { name: Arc::clone(name), line, error, excerpt: excerpt(text).into() }
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the line, counted from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the fault and its column.
    #[must_use]
    pub fn error(&self) -> LineError {
        self.error
    }

    /// Returns the beginning of the line, at most 80 bytes: printable ASCII as it is, anything else escaped, `...` at
    /// the end where more follows. Safe to show on a terminal.
    #[must_use]
    pub fn excerpt(&self) -> &str {
        &self.excerpt
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.name, self.line, self.error.column(), self.error.reason())
    }
}

fn excerpt(text: &[u8]) -> String {
    const MORE: &str = "...";
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let mut excerpt = String::new();
    // Length up to which there is still room for the mark.
    let mut cut = 0;
    for &byte in text {
        match byte {
            b' '..=b'~' => excerpt.push(char::from(byte)),
            _ => excerpt.extend(byte.escape_ascii().map(char::from)),
        }
        if excerpt.len() > BadLine::EXCERPT_BYTES {
            excerpt.truncate(cut);
            excerpt.push_str(MORE);
            break;
        }
        if excerpt.len() + MORE.len() <= BadLine::EXCERPT_BYTES {
            cut = excerpt.len();
        }
    }
    excerpt
}

/// The place where a compressed stream is cut off or cannot be read further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncation {
    pub(super) name: Arc<str>,
    pub(super) compression: Compression,
    pub(super) bytes: u64,
    pub(super) content: Content,
    pub(super) lines: u64,
    pub(super) damage: Option<Box<str>>,
}

impl Truncation {
    /// How the file is compressed.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns the length of the file in compressed bytes; for a damaged file, the place where the damage was noticed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of complete lines or records before the cut.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the decoder's error, if it was stopped by damage and not by the end of the file. Some of the routes may
    /// then be wrong, because damage is noticed late: at the latest by a checksum.
    #[must_use]
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, compression, bytes, content, lines, damage } = self;
        let unit = if *content == Content::Mrt { "record" } else { "line" };
        let what = if damage.is_some() { "is damaged, noticed" } else { "ends early" };
        write!(
            f,
            "{name}: the {compression} stream {what} at byte {bytes} of the file, after {unit} {lines}"
        )?;
        damage.as_ref().map_or(Ok(()), |damage| write!(f, ": {damage}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt(b"10.0.0.0/8\t1\r"), "10.0.0.0/8\\t1");
        assert_eq!(excerpt(b"it's \x1b[31m\xc3\xa9"), "it's \\x1b[31m\\xc3\\xa9");
        assert_eq!(excerpt(&[b'x'; 80]), "x".repeat(80));
        assert_eq!(excerpt(&[b'x'; 81]), format!("{}...", "x".repeat(77)));
        for len in 0..200 {
            for byte in [0, b'x', b'\\', 0xff] {
                let excerpt = excerpt(&vec![byte; len]);
                assert!(excerpt.len() <= 80);
                assert!(excerpt.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            }
        }
        assert_eq!(excerpt(&[0; 21]), format!("{}...", "\\x00".repeat(19)));
    }
}
