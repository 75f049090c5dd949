//! The file or stream that addresses come from, and how far it was read.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fibula_feed::compression::Decompressor;
use indicatif::ProgressBar;

use super::chunks::Chunks;
use super::columns::InputFormat;
use super::pipeline::{self, IsOver, Worker, Write};
use crate::failure::Failure;
use crate::load::is_stdin;
use crate::messages::Messages;

/// Where lines come from.
pub(super) struct Input {
    path: PathBuf,
    bar: ProgressBar,
    bytes_read: Arc<AtomicU64>,
}

impl Input {
    /// Prepares the progress, which is shown if no answers go to the terminal.
    pub(super) fn open(path: &Path, to_file: bool, messages: Messages) -> Result<Self, Failure> {
        if is_parquet(path) {
            return Err(parquet(path));
        }
        let stdin = is_stdin(path);
        if stdin && io::stdin().is_terminal() {
            messages.note("type addresses, one a line, and end with Ctrl-D");
        }
        let on_terminal = (stdin && io::stdin().is_terminal()) || (!to_file && io::stdout().is_terminal());
        let bar = if on_terminal {
            ProgressBar::hidden()
        } else {
            let metadata = std::fs::metadata(path).ok().filter(|_| !stdin);
            messages.bytes(metadata.filter(std::fs::Metadata::is_file).map(|file| file.len()))
        };
        bar.set_message("looking up");
        Ok(Self { path: path.to_owned(), bar, bytes_read: Arc::default() })
    }

    /// Opens the input, and decompresses a file.
    pub(super) fn reader(&self) -> Result<Box<dyn Read + Send>, Failure> {
        let counted = |inner| Counted { inner, bytes_read: Arc::clone(&self.bytes_read) };
        if is_stdin(&self.path) {
            return Ok(Box::new(counted(Box::new(io::stdin()) as Box<dyn Read + Send>)));
        }
        let file = File::open(&self.path).map_err(|error| Failure::opening(&self.path, &error))?;
        let input = Decompressor::new(counted(Box::new(file) as Box<dyn Read + Send>));
        Ok(Box::new(input.map_err(|error| self.failed(&error))?))
    }

    /// Opens the input as rows with columns; returns their format, which is found out unless it is known.
    pub(super) fn rows(
        &self,
        known: Option<InputFormat>,
    ) -> Result<(InputFormat, Chunks<Box<dyn Read + Send>>), Failure> {
        let mut chunks = Chunks::new(self.reader()?, InputFormat::JsonLine.lines());
        let name = self.path.to_string_lossy();
        let head = chunks.head().map_err(|error| self.failed(&error))?;
        let format = known.unwrap_or_else(|| InputFormat::of(&name, head));
        chunks.set_lines(format.lines());
        Ok((format, chunks))
    }

    /// Returns the first line, which has the names of the columns, without taking it; nothing, where objects have the names. An
    /// input without anything has no column of any name, but may be asked for a column by its number.
    pub(super) fn first_line<'c, R: Read>(
        &self,
        chunks: &'c mut Chunks<R>,
        format: InputFormat,
        wanted: &[&str],
        messages: Messages,
    ) -> Result<&'c [u8], Failure> {
        let is_named = !format.is_json() && wanted.iter().any(|name| name.parse::<usize>().is_err());
        if is_named && chunks.is_empty() {
            return Err(Failure::BadInput(format!("{}: the input is empty", self.name())));
        }
        self.note_empty(chunks, messages)?;
        if format == InputFormat::Json {
            return Ok(b"");
        }
        chunks.first_line().map_err(|error| self.failed(&error))
    }

    /// Says that there is no address where nothing comes at all.
    pub(super) fn note_empty<R: Read>(
        &self,
        chunks: &mut Chunks<R>,
        messages: Messages,
    ) -> Result<(), Failure> {
        chunks.head().map_err(|error| self.failed(&error))?;
        if chunks.is_empty() {
            messages.warning(format_args!("{}: the input is empty", self.name()));
        }
        Ok(())
    }

    fn name(&self) -> String {
        if is_stdin(&self.path) { "standard input".to_owned() } else { self.path.display().to_string() }
    }

    /// Returns the failure of a read.
    pub(super) fn failed(&self, error: &io::Error) -> Failure {
        Failure::reading(&self.name(), error)
    }

    /// Answers all chunks, and shows how far that has come. Returns whether `is_over` ended it before a chunk.
    pub(super) fn run<R: Read + Send>(
        &self,
        chunks: &mut Chunks<R>,
        workers: Vec<Box<dyn Worker + '_>>,
        is_over: IsOver<'_>,
        write: Write<'_>,
    ) -> Result<bool, Failure> {
        let failed = |error: &io::Error| self.failed(error);
        let outcome = pipeline::run(chunks, workers, is_over, &failed, &mut |answers, tally| {
            self.bar.set_position(self.bytes_read.load(Ordering::Relaxed));
            write(answers, tally)
        });
        self.bar.finish_and_clear();
        outcome
    }
}

/// Returns whether a file is Parquet, by its first bytes. Parquet is read from files alone, because its description is at the end.
pub(super) fn is_parquet(path: &Path) -> bool {
    const MAGIC: [u8; 4] = *b"PAR1";
    let mut found = [0; MAGIC.len()];
    // Opening a FIFO is an event for its writer.
    let is_file = !is_stdin(path) && std::fs::metadata(path).is_ok_and(|found| found.is_file());
    is_file && File::open(path).is_ok_and(|mut file| file.read_exact(&mut found).is_ok()) && found == MAGIC
}

#[cfg(feature = "parquet")]
fn parquet(path: &Path) -> Failure {
    Failure::BadInput(format!(
        "{} is Parquet, which has columns: --column names the one with the addresses",
        path.display()
    ))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Path) -> Failure {
    Failure::no_parquet()
}

/// Counts the bytes that are read.
struct Counted<R> {
    inner: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
