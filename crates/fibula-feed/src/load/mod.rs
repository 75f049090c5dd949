//! A whole file to a table.

mod error;
mod lines;
mod report;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use fibula::memory::Limits;
use fibula::net::{Family, HostBits, IpPrefix, Key, NextHop, Prefix, Route};
use fibula::rib::{Rib, RibError};

use crate::compression::{Decompressor, Fault};
use crate::next_hops::NextHops;
use crate::text::{self, Entry, LineError, LineErrorKind};
use error::LoadErrorKind;
use lines::{Line, Lines};

pub use error::LoadError;
pub use lines::MAX_LINE_BYTES;
pub use report::{BadLine, Report, Truncation};

/// How to load.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Stop at the first bad line or cut stream, instead of counting it and loading the rest.
    pub strict: bool,
    /// What to do with bits set behind a prefix length. Refusing them makes the line a bad one.
    pub host_bits: HostBits,
    /// What the table of each family may take, and the labels of the next hops.
    pub limits: Limits,
    /// Keep this family only.
    pub family: Option<Family>,
}

/// How far loading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes read of the file, compressed.
    pub bytes_read: u64,
    /// Bytes of the file, compressed; none where that cannot be known (a pipe).
    pub bytes_total: Option<u64>,
    /// Lines read.
    pub lines: u64,
}

/// What a file held.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Table {
    /// The IPv4 routes.
    pub v4: Rib<u32>,
    /// The IPv6 routes.
    pub v6: Rib<u128>,
    /// What the next hops of both stand for.
    pub next_hops: NextHops,
    /// What was met on the way.
    pub report: Report,
}

/// Loads the file at `path`, which may be compressed (see [`compression`](crate::compression)), in any of the
/// forms of [`text::FORMS`].
///
/// `progress` is called about every 256 KiB of text, and once at the end.
///
/// # Errors
/// When the file cannot be read, its compressed stream is damaged, or a table would exceed its limits. With
/// [`LoadOptions::strict`] also at the first bad line, and when the compressed stream ends early.
pub fn load(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Table, LoadError> {
    let path = path.as_ref();
    let name: Arc<str> = path.to_string_lossy().into();
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, mut file) = opened.map_err(|error| LoadError::new(&name, LoadErrorKind::Open(error)))?;
    let bytes_total = metadata.is_file().then_some(metadata.len());
    Loader::new(name, options).run(&mut file, bytes_total, progress)
}

/// Loads what `input` gives, as [`load`] does; `name` stands for it in errors and in the report.
///
/// # Errors
/// As those of [`load`].
pub fn load_reader(
    name: &str,
    mut input: impl Read,
    options: &LoadOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Table, LoadError> {
    Loader::new(name.into(), options).run(&mut input, None, progress)
}

/// Text between two calls of the progress function.
const PROGRESS_BYTES: u64 = 256 << 10;

struct Loader<'a> {
    options: &'a LoadOptions,
    table: Table,
}

impl<'a> Loader<'a> {
    fn new(name: Arc<str>, options: &'a LoadOptions) -> Self {
        let table = Table {
            v4: Rib::new(options.limits),
            v6: Rib::new(options.limits),
            next_hops: NextHops::new(options.limits),
            report: Report::new(name),
        };
        Self { options, table }
    }

    fn run(
        mut self,
        input: &mut dyn Read,
        bytes_total: Option<u64>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Table, LoadError> {
        let input =
            Decompressor::new(input).map_err(|error| self.error(LoadErrorKind::Read { bytes: 0, error }))?;
        self.table.report.compression = input.compression();
        let mut lines = Lines::new(input);
        let mut due = PROGRESS_BYTES;
        loop {
            match lines.next() {
                Ok(None) => break,
                Ok(Some(line)) => self.line(&line)?,
                Err(error) => {
                    self.fault(lines.input(), error)?;
                    break;
                }
            }
            if lines.bytes_read() >= due {
                due = lines.bytes_read() + PROGRESS_BYTES;
                progress(self.progress(lines.input(), bytes_total));
            }
        }
        progress(self.progress(lines.input(), bytes_total));
        self.table.report.routes_v4 = self.table.v4.len() as u64;
        self.table.report.routes_v6 = self.table.v6.len() as u64;
        Ok(self.table)
    }

    fn line(&mut self, line: &Line<'_>) -> Result<(), LoadError> {
        self.table.report.lines += 1;
        let (text, entry) = match *line {
            Line::Whole(mut text) => {
                // Editors of some systems put a byte order mark in front.
                if self.table.report.lines == 1 {
                    text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
                }
                (text, text::decode(text, self.options.host_bits))
            }
            Line::TooLong(text) => {
                let kind = LineErrorKind::LineTooLong { limit_bytes: MAX_LINE_BYTES };
                (text, Err(LineError::new(kind, MAX_LINE_BYTES)))
            }
        };
        match entry {
            Ok(Some(entry)) => self.entry(entry),
            Ok(None) => {
                self.table.report.comments += 1;
                Ok(())
            }
            Err(error) => self.bad_line(error, text),
        }
    }

    fn entry(&mut self, Entry { prefix, next_hop }: Entry) -> Result<(), LoadError> {
        if self.options.family.is_some_and(|family| family != prefix.family()) {
            self.table.report.left_out += 1;
            return Ok(());
        }
        let line = self.table.report.lines;
        let next_hop = self
            .table
            .next_hops
            .intern(next_hop)
            .map_err(|error| self.error(LoadErrorKind::NextHops { line, error }))?;
        let before = match prefix {
            IpPrefix::V4(prefix) => insert(&mut self.table.v4, prefix, next_hop),
            IpPrefix::V6(prefix) => insert(&mut self.table.v6, prefix, next_hop),
        };
        if let Some(before) = before.map_err(|error| self.error(LoadErrorKind::Rib { line, error }))? {
            self.table.report.repeated += 1;
            self.table.report.repeated_changed += u64::from(before != next_hop);
        }
        Ok(())
    }

    fn bad_line(&mut self, error: LineError, text: &[u8]) -> Result<(), LoadError> {
        let report = &mut self.table.report;
        report.bad_lines += 1;
        if report.first_bad.len() < Report::MOST_BAD {
            let bad = BadLine::new(&report.name, report.lines, error, text);
            if self.options.strict {
                return Err(self.error(LoadErrorKind::Line(bad)));
            }
            report.first_bad.push(bad);
        }
        Ok(())
    }

    /// Decides what an error of the input means: an end that is reported, or the end of the matter.
    fn fault(&mut self, input: &Decompressor<&mut dyn Read>, error: io::Error) -> Result<(), LoadError> {
        let bytes = input.bytes_read();
        let compression = input.compression();
        let kind = match input.fault() {
            Fault::Input => LoadErrorKind::Read { bytes, error },
            Fault::Damaged => LoadErrorKind::Damaged { compression, bytes, error },
            Fault::EndsEarly => {
                let report = &mut self.table.report;
                let name = Arc::clone(&report.name);
                let truncation = Truncation { name, compression, bytes, lines: report.lines };
                if !self.options.strict {
                    report.truncated = Some(truncation);
                    return Ok(());
                }
                LoadErrorKind::Truncated(truncation)
            }
        };
        Err(self.error(kind))
    }

    fn progress(&self, input: &Decompressor<&mut dyn Read>, bytes_total: Option<u64>) -> Progress {
        Progress { bytes_read: input.bytes_read(), bytes_total, lines: self.table.report.lines }
    }

    fn error(&self, kind: LoadErrorKind) -> LoadError {
        LoadError::new(&self.table.report.name, kind)
    }
}

fn insert<K: Key>(
    rib: &mut Rib<K>,
    prefix: Prefix<K>,
    next_hop: NextHop,
) -> Result<Option<NextHop>, RibError> {
    rib.insert(Route::new(prefix, next_hop))
}
