//! Columns under a header, aligned by blanks, as the command lines of network software print them.

use std::borrow::Cow;

use fibula::net::HostBits;

use super::head::TextHead;
use super::names;
use super::record::{Fields, NamedFields, RouteScope, TableRecord};
use super::{Document, Settings, Stop, Take};
use crate::text::{LineError, LineErrorKind};
use crate::value::Value;

/// Names of the column with the prefix that no other form has: a field `ip` of JSON, for example, is a next hop as often.
const PREFIX: &[&str] = &[
    "ip",
    "ip address",
    "address",
    "destination/mask",
    "destination/prefix",
    "prefix/address",
    "ip prefix/address",
    "prefix/length",
    "dest prefix",
];

/// Most columns. The number is limited because each row has a cell for every column, so short rows would be expensive.
const MOST_COLUMNS: usize = 64;

/// A title and the command may come before the header.
const MOST_BEFORE: usize = 20;

pub(super) fn claims(head: &TextHead<'_>, _: &Settings<'_>) -> usize {
    let lines = head.lines();
    let Some(at) = lines.iter().take(MOST_BEFORE).position(|line| Header::of(line).is_some()) else {
        return 0;
    };
    let Some(header) = Header::of(lines[at]) else { return 0 };
    let is_route = |line: &&&str| {
        let cells = header.cells(line);
        let place = cells.as_ref().ok().and_then(|cells| header.place(cells));
        place.is_some_and(|place| {
            TableRecord::plain(place, &NamedFields::default()).addresses(HostBits::Mask).is_ok()
        })
    };
    match lines[at + 1..].iter().filter(is_route).count() {
        0 => 0,
        routes => at + 1 + routes,
    }
}

pub(super) fn read() -> Box<dyn Document> {
    Box::<Columns>::default()
}

#[derive(Default)]
struct Columns {
    header: Option<Header>,
}

/// The names and positions of the columns.
struct Header {
    line: String,
    names: Vec<String>,
    /// The first byte of each name, and the first after it.
    spans: Vec<(usize, usize)>,
    prefix: usize,
    mask: Option<usize>,
}

impl Header {
    /// Returns the columns, if a line is a header that names the prefix. A name may have single blanks.
    fn of(line: &str) -> Option<Self> {
        if !line.is_ascii() || line.contains(['\t', ',', ';', '"', '{']) {
            return None;
        }
        let (mut names, mut spans) = (Vec::new(), Vec::new());
        let mut at = 0;
        for part in line.split("  ") {
            let name = part.trim();
            if !name.is_empty() {
                let begin = at + part.len() - part.trim_start().len();
                names.push(name.trim_matches('|').trim().to_owned());
                spans.push((begin, begin + name.len()));
            }
            at += part.len() + 2;
        }
        if !(2..=MOST_COLUMNS).contains(&names.len()) {
            return None;
        }
        let prefix = names::find(&names, names::PREFIX).or_else(|| names::find(&names, PREFIX))?;
        let mask = names::find(&names, names::MASK);
        Some(Self { line: line.to_owned(), names, spans, prefix, mask })
    }

    /// Returns the cells of a row. Each word belongs to the column whose name it overlaps. A word that overlaps two names could
    /// belong to either, because an earlier cell is wider than its column: such a row is an error.
    fn cells<'a>(&self, line: &'a str) -> Result<Vec<Cow<'a, str>>, LineError> {
        let mut cells = vec![Cow::Borrowed(""); self.names.len()];
        let mut column = 0;
        for word in line.split_ascii_whitespace() {
            let begin = word.as_ptr().addr() - line.as_ptr().addr();
            let end = begin + word.len();
            // A word between two names belongs to the column on its left.
            while self.spans.get(column + 1).is_some_and(|&(next, _)| next < end) {
                column += 1;
            }
            let under = |at: usize| self.spans[at].1 > begin;
            if end <= self.spans[0].0 || column > 0 && under(column) && under(column - 1) {
                return Err(LineError::new(LineErrorKind::BetweenColumns, begin));
            }
            let cell = &mut cells[column];
            if cell.is_empty() {
                *cell = word.into();
            } else {
                let cell = cell.to_mut();
                cell.push(' ');
                cell.push_str(word);
            }
        }
        Ok(cells)
    }

    fn place<'a>(&self, cells: &'a [Cow<'a, str>]) -> Option<RouteScope<'a>> {
        let cell = |at: usize| Some(&*cells[at]).filter(|cell| !cell.is_empty());
        let prefix = cell(self.prefix)?;
        Some(match self.mask.and_then(cell) {
            Some(mask) if !prefix.contains('/') => RouteScope::Masked(prefix, mask),
            _ => RouteScope::Prefix(prefix),
        })
    }
}

impl Document for Columns {
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        let line = line.trim_end();
        let Some(header) = &self.header else {
            self.header = Header::of(line);
            return Ok(());
        };
        let is_rule = line.bytes().all(|byte| matches!(byte, b'-' | b'=' | b'+' | b'|' | b' '));
        if is_rule || line.starts_with('#') || line == header.line {
            return Ok(());
        }
        match header.cells(line) {
            Ok(cells) => match header.place(&cells) {
                Some(place) => {
                    take.record(&TableRecord::plain(place, &Row { header, cells: &cells }), number, line)
                }
                None => take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), line),
            },
            Err(error) => take.bad(number, error, line),
        }
    }
}

struct Row<'a> {
    header: &'a Header,
    cells: &'a [Cow<'a, str>],
}

impl Row<'_> {
    fn cell(&self, at: usize) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&*self.cells[at])).filter(|cell| !cell.is_empty())
    }
}

impl Fields for Row<'_> {
    fn text(&self, value: &Value) -> Option<Cow<'_, str>> {
        let names = || self.header.names.iter();
        let exact = names().position(|name| value.is_exactly(name));
        self.cell(exact.or_else(|| names().position(|name| value.is_column(name)))?)
    }

    fn first(&self) -> Option<Cow<'_, str>> {
        let header = self.header;
        let at = (0..header.names.len()).find(|&at| at != header.prefix && Some(at) != header.mask)?;
        self.cell(at)
    }
}
