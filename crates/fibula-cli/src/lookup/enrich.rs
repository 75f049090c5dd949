//! From lines with an address among other columns to the same lines with the answer's columns after them.

use std::io;
use std::sync::OnceLock;

use super::answers::{AddressKind, BLOCK, Finders, Keys, V4Mapped};
use super::columns::{self, InputFormat, Located, Place, TextRow, without_return};
use super::pipeline::{LineCounts, Out, Worker};
use super::rows::{AnswerRows, Labels, put_slice};
use crate::failure::Failure;
use crate::fields::Fields;
use crate::load::Columns;
use crate::messages::Messages;
use crate::options::Format;

/// How often the name of a column may come before the answer's names, where the others are taken: once for each time that an object
/// was enriched before.
const LEVELS: usize = 8;

/// The columns with addresses, and the columns appended for each.
pub(super) struct EnrichPlan<'a> {
    located: Located,
    /// The name of each column with addresses, and an underline.
    prefixes: Vec<String>,
    /// The answer's names.
    names: Vec<String>,
    /// The last bytes of these: most names in logs end otherwise, and are then not looked at.
    last_bytes: [bool; 256],
    /// The answer's part for each column, by the number of times that the name of the column comes before the answer's names.
    levels: [OnceLock<Vec<AnswerRows>>; LEVELS],
    columns: &'a Columns,
    labels: &'a Labels<'a>,
    /// The level of the first line, which all lines have but objects.
    level: usize,
    /// The first line with the names of the new columns, if the first line has names.
    pub(super) header: Option<Vec<u8>>,
}

impl<'a> EnrichPlan<'a> {
    /// Finds the columns that were requested, by the first line.
    pub(super) fn new(
        format: InputFormat,
        wanted: &[String],
        first_line: &[u8],
        columns: &'a Columns,
        labels: &'a Labels<'a>,
    ) -> Result<Self, Failure> {
        let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let located = Located::new(format, &names, names.len(), first_line)?;
        let prefix = |(place, wanted): (&Place, &String)| match place {
            Place::Column(at) => {
                let name = located.names.get(*at).filter(|_| located.has_header).cloned();
                format!("{}_", name.unwrap_or_else(|| (at + 1).to_string()))
            }
            Place::Field(_) => format!("{wanted}_"),
        };
        let prefixes: Vec<String> = located.places.iter().zip(wanted).map(prefix).collect();
        // Tabs need no quotes around names.
        let mut names = vec!["prefix".to_owned()];
        names.extend(Fields::new(Format::Csv, columns).appended(b'\t', "").list());
        let level = usize::from(wanted.len() > 1);
        let mut last_bytes = [false; 256];
        names
            .iter()
            .filter_map(|name| name.bytes().last())
            .for_each(|byte| last_bytes[usize::from(byte)] = true);
        let mut plan = Self {
            located,
            prefixes,
            names,
            last_bytes,
            levels: Default::default(),
            columns,
            labels,
            level,
            header: None,
        };
        if plan.located.has_header {
            let mut taken = NameCollisions::default();
            plan.located.names.iter().for_each(|name| taken.add(name.as_bytes(), &plan));
            plan.level = taken.free(&plan).ok_or_else(|| {
                Failure::BadInput(format!(
                    "the first line has all the names that column '{}' may give",
                    wanted[0]
                ))
            })?;
            plan.header = Some(plan.header(first_line));
        }
        Ok(plan)
    }

    /// Returns the first line with the names of the new columns.
    fn header(&self, first_line: &[u8]) -> Vec<u8> {
        let (first_line, end) = without_return(first_line);
        let mut header = first_line.to_vec();
        let mark = self.located.separator.unwrap_or(b',');
        for prefix in self.prefixes.iter().map(|prefix| prefix.repeat(self.level)) {
            let fields = Fields::new(Format::Csv, self.columns).appended(mark, &prefix);
            for text in [fields.name("prefix"), fields.names()] {
                header.push(mark);
                header.extend_from_slice(text.as_bytes());
            }
        }
        header.extend_from_slice(end);
        header.push(b'\n');
        header
    }

    /// Returns the answer's part for each column.
    fn rows(&self, level: usize) -> &[AnswerRows] {
        self.levels[level].get_or_init(|| {
            let prefixes = self.prefixes.iter().map(|prefix| prefix.repeat(level));
            let rows = |prefix: String| {
                AnswerRows::appended(self.located.separator, &prefix, self.columns, self.labels)
            };
            prefixes.map(rows).collect()
        })
    }
}

/// The levels at which a name of the answer is that of another field.
#[derive(Default)]
struct NameCollisions(u8);

impl NameCollisions {
    /// Adds the name of a field.
    #[inline]
    fn add(&mut self, name: &[u8], plan: &EnrichPlan<'_>) {
        if name.last().is_some_and(|&byte| plan.last_bytes[usize::from(byte)]) {
            self.compare(name, plan);
        }
    }

    fn compare(&mut self, name: &[u8], plan: &EnrichPlan<'_>) {
        for prefix in &plan.prefixes {
            let mut rest = name;
            for level in 0..LEVELS {
                if plan.names.iter().any(|own| own.as_bytes() == rest) {
                    self.0 |= 1 << level;
                }
                match rest.strip_prefix(prefix.as_bytes()) {
                    Some(shorter) => rest = shorter,
                    None => break,
                }
            }
        }
    }

    /// Returns the first level from the usual one on that is free.
    fn free(&self, plan: &EnrichPlan<'_>) -> Option<usize> {
        (plan.level..LEVELS).find(|level| self.0 & 1 << level == 0)
    }
}

/// Answers lines with columns.
pub(super) struct Enricher<'a, 't> {
    finders: &'a Finders<'t>,
    plan: &'a EnrichPlan<'a>,
    /// The answer's parts for lines, and for objects that have none of its names.
    usual: Vec<AnswerRows>,
    /// The answer's parts at other levels, once they were needed.
    others: [Option<Vec<AnswerRows>>; LEVELS],
    messages: Messages,
    /// Rows of the chunk that wait.
    rows: Vec<(u32, u32, RowEnd)>,
    kinds: Vec<AddressKind>,
    keys: Keys,
    tally: LineCounts,
}

/// The text that comes after a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowEnd {
    /// The answer and a line feed.
    Line,
    /// The answer, a carriage return and a line feed.
    Return,
    /// The answer at this level, a brace and, if the object is a line, the end of the line.
    Object { level: u8, is_first: bool, end: ObjectEnd },
    /// A brace and, if the object is a line, the end of the line: the object has no room for more names.
    Full { end: ObjectEnd },
    /// A line feed: blank, or not an object.
    Kept,
    /// Nothing, as in a list of JSON.
    Between,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectEnd {
    Line,
    Return,
    Nothing,
}

impl ObjectEnd {
    fn text(self) -> &'static [u8] {
        match self {
            Self::Line => b"}\n",
            Self::Return => b"}\r\n",
            Self::Nothing => b"}",
        }
    }
}

impl<'a, 't> Enricher<'a, 't> {
    pub(super) fn new(
        finders: &'a Finders<'t>,
        plan: &'a EnrichPlan<'a>,
        mapped: V4Mapped,
        messages: Messages,
    ) -> Self {
        let (others, rows, kinds, tally) = Default::default();
        let (usual, keys) = (plan.rows(plan.level).to_vec(), Keys::new(mapped));
        Self { finders, plan, usual, others, messages, rows, kinds, keys, tally }
    }

    #[inline]
    fn push(&mut self, chunk: &[u8], row: TextRow, out: &mut Out<'_>) -> Result<(), Failure> {
        let mut end = row.end;
        let shape = match row.kind {
            columns::RowKind::Line { quoted, unclosed } => {
                self.tally.lines += 1;
                if unclosed {
                    self.tally.unclosed();
                }
                let line = &chunk[row.start..row.end];
                let mut counted = false;
                for index in 0..self.plan.located.places.len() {
                    let text = self.plan.located.field(line, index, quoted);
                    let kind = self.address(text, false, &mut counted);
                    self.kinds.push(kind);
                }
                if row.has_return { RowEnd::Return } else { RowEnd::Line }
            }
            columns::RowKind::Object { start, in_line } => {
                self.tally.lines += 1;
                match self.object(&chunk[start..=row.end], row, in_line) {
                    Some(shape) => shape,
                    None => self.no_object(row, &mut end),
                }
            }
            columns::RowKind::Blank => {
                self.tally.lines += 1;
                end = row.stop;
                RowEnd::Kept
            }
            columns::RowKind::NoObject => {
                self.tally.lines += 1;
                self.no_object(row, &mut end)
            }
            columns::RowKind::Between => RowEnd::Between,
        };
        self.rows.push((row.start as u32, end as u32, shape));
        if self.rows.len() == BLOCK { self.respond(chunk, out) } else { Ok(()) }
    }

    /// Counts a row that is not an object, and keeps all of it.
    #[cold]
    fn no_object(&mut self, row: TextRow, end: &mut usize) -> RowEnd {
        *end = row.stop;
        self.tally.bad(self.tally.lines, || columns::NO_OBJECT.to_owned());
        if self.plan.located.is_by_line() { RowEnd::Kept } else { RowEnd::Between }
    }

    /// Takes a candidate for an object, with its braces; returns `None` if it is none.
    fn object(&mut self, object: &[u8], row: TextRow, in_line: bool) -> Option<RowEnd> {
        let plan = self.plan;
        let mut taken = NameCollisions::default();
        let mut any = false;
        let first = plan.located.object(object, |name| {
            any = true;
            taken.add(name, plan);
        })?;
        let end = match in_line {
            true if row.has_return => ObjectEnd::Return,
            true => ObjectEnd::Line,
            false => ObjectEnd::Nothing,
        };
        let Some(level) = taken.free(plan) else {
            self.tally.bad(self.tally.lines, || " has all the names that its column may give".to_owned());
            return Some(RowEnd::Full { end });
        };
        let (mut found, mut counted) = (0, false);
        for index in 0..plan.located.places.len() {
            let text = if index == 0 { first } else { plan.located.field(object, index, false) };
            found += usize::from(text.is_some());
            let kind = self.address(text, plan.located.may_lack(), &mut counted);
            self.kinds.push(kind);
        }
        if found == 0 && plan.located.may_lack() {
            self.tally.bad(self.tally.lines, || columns::TOO_FEW.to_owned());
        }
        Some(RowEnd::Object { level: level as u8, is_first: !any, end })
    }

    /// Takes the text of a column. `may_lack` says that there need not be one, `counted` whether the row counts as bad already.
    #[inline]
    fn address(&mut self, text: Option<&[u8]>, may_lack: bool, counted: &mut bool) -> AddressKind {
        let line = self.tally.lines;
        match text.map(|text| self.keys.push(text)) {
            Some(Ok(kind)) => return kind,
            _ if *counted => return AddressKind::Bad,
            Some(Err(error)) => self.tally.bad(line, || columns::no_address(&error)),
            None if may_lack => return AddressKind::Bad,
            None => self.tally.bad(line, || columns::TOO_FEW.to_owned()),
        }
        *counted = true;
        AddressKind::Bad
    }

    fn respond(&mut self, chunk: &[u8], out: &mut Out<'_>) -> Result<(), Failure> {
        let Self { finders, plan, usual, others, rows, kinds, keys, tally, messages } = self;
        keys.find(finders, *messages)?;
        let (mut at_v4, mut at_v6) = (0, 0);
        let mut kinds_left = kinds.iter();
        for &(start, end, shape) in rows.iter() {
            let (start, end) = (start as usize, end as usize);
            put_slice(chunk, start, end, &mut out.bytes);
            let (appended, is_first) = match shape {
                RowEnd::Kept => {
                    out.bytes.push(b'\n');
                    continue;
                }
                RowEnd::Between => continue,
                RowEnd::Full { end } => {
                    out.bytes.extend_from_slice(end.text());
                    continue;
                }
                RowEnd::Line | RowEnd::Return => (&mut *usual, false),
                RowEnd::Object { level, is_first, .. } => {
                    (rows_at(usize::from(level), plan, usual, others), is_first)
                }
            };
            let after = out.bytes.len();
            let mut hit = false;
            for (rows, kind) in appended.iter_mut().zip(&mut kinds_left) {
                hit |= append(rows, *kind, keys, (&mut at_v4, &mut at_v6), &mut out.bytes);
            }
            if is_first {
                // No field comes before the first of ours.
                out.bytes.remove(after);
            }
            tally.matched += usize::from(hit);
            match shape {
                RowEnd::Object { end, .. } => out.bytes.extend_from_slice(end.text()),
                RowEnd::Return => out.bytes.extend_from_slice(b"\r\n"),
                _ => out.bytes.push(b'\n'),
            }
            out.relieve();
        }
        rows.clear();
        kinds.clear();
        keys.clear();
        Ok(())
    }
}

/// Returns the answer's parts for an object at a level.
fn rows_at<'r>(
    level: usize,
    plan: &EnrichPlan<'_>,
    usual: &'r mut Vec<AnswerRows>,
    others: &'r mut [Option<Vec<AnswerRows>>; LEVELS],
) -> &'r mut Vec<AnswerRows> {
    if level == plan.level {
        return usual;
    }
    others[level].get_or_insert_with(|| plan.rows(level).to_vec())
}

/// Appends the answer for a column; returns whether there is a route.
#[inline]
fn append(
    rows: &mut AnswerRows,
    kind: AddressKind,
    keys: &Keys,
    (at_v4, at_v6): (&mut usize, &mut usize),
    out: &mut Vec<u8>,
) -> bool {
    match kind {
        AddressKind::V4 => {
            let (key, found) = (keys.v4[*at_v4], keys.found_v4[*at_v4]);
            *at_v4 += 1;
            match found {
                Some(found) => rows.hit(out, b"", key, found),
                None => rows.miss(out, b""),
            }
            found.is_some()
        }
        AddressKind::V6 => {
            let (key, found) = (keys.v6[*at_v6], keys.found_v6[*at_v6]);
            *at_v6 += 1;
            match found {
                Some(found) => rows.hit(out, b"", key, found),
                None => rows.miss(out, b""),
            }
            found.is_some()
        }
        AddressKind::Bad => {
            rows.miss(out, b"");
            false
        }
    }
}

impl Worker for Enricher<'_, '_> {
    fn answer(&mut self, chunk: &[u8], _: bool, out: &mut Out<'_>) -> Result<LineCounts, Failure> {
        if u32::try_from(chunk.len()).is_err() {
            return Err(Failure::Output(io::ErrorKind::OutOfMemory.into()));
        }
        let plan = self.plan;
        plan.located.rows(chunk, |row| self.push(chunk, row, out))?;
        self.respond(chunk, out)?;
        Ok(std::mem::take(&mut self.tally))
    }
}
