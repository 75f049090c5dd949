//! The measurements of a paper, in a file.

use core::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fibula_workload::machine::Machine;
use serde::{Deserialize, Serialize};

use super::definition::{Exhibit, Paper};

use crate::bench::Program;

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// The measurements of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaperRecord {
    /// The version of the format, [`SCHEMA`].
    pub schema: u32,
    /// The name of the paper.
    pub paper: String,
    /// The date on which it was begun, as the caller writes it.
    pub date: String,
    /// Whether tables and times are those of a quick run, which proves nothing.
    pub quick: bool,
    /// The machine.
    pub machine: Machine,
    /// The program and its system.
    pub program: Program,
    /// The tables.
    pub tables: Vec<TableUsed>,
    /// The parts that are done, in the order in which they were measured.
    pub parts: Vec<FinishedPart>,
}

/// A table that was measured with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableUsed {
    /// Its name.
    pub name: String,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// Whether it is generated.
    pub generated: bool,
    /// Prefixes.
    pub routes: usize,
    /// Different next hops.
    pub next_hops: usize,
}

/// A part that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinishedPart {
    /// The name of the exhibit.
    pub exhibit: String,
    /// The name of the part.
    pub part: String,
    /// The seconds it took.
    pub seconds: f64,
    /// Why it has no points, if it failed.
    pub error: Option<String>,
    /// The values.
    pub points: Vec<Point>,
}

/// A value of an exhibit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The row.
    pub row: String,
    /// The column.
    pub column: String,
    /// The value, or the median of the runs; `None` if it is missing.
    pub value: Option<f64>,
    /// The lower end of the median's 95 % interval.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The runs, in order. Values of one race were timed in turn, so that those of the same run can be divided.
    pub runs: Vec<f64>,
    /// The name that tells the race from others; `None` for values that were not timed in turn.
    pub race: Option<String>,
    /// The reason why the value is missing, or a remark on it.
    pub note: Option<String>,
}

impl Point {
    /// Returns a value that has no spread.
    #[must_use]
    pub fn new(row: impl Into<String>, column: impl Into<String>, value: f64) -> Self {
        Self { value: Some(value), ..Self::missing(row, column, None) }
    }

    /// Returns the place of a value that is missing, and why it is.
    #[must_use]
    pub fn absent(row: impl Into<String>, column: impl Into<String>, why: impl Into<String>) -> Self {
        Self::missing(row, column, Some(why.into()))
    }

    fn missing(row: impl Into<String>, column: impl Into<String>, note: Option<String>) -> Self {
        let (row, column) = (row.into(), column.into());
        Self { row, column, value: None, low: None, high: None, runs: Vec::new(), race: None, note }
    }

    /// Returns the value with something that a reader should know.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// Returns whether the interval is wider than a fifth of the value: too wide to compare it with others.
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        match (self.low, self.value, self.high) {
            (Some(low), Some(value), Some(high)) => high - low > value / 5.0,
            _ => false,
        }
    }
}

impl PaperRecord {
    /// Begins a record of a paper on this machine.
    #[must_use]
    pub fn new(paper: &Paper, date: &str, quick: bool) -> Self {
        Self {
            schema: SCHEMA,
            paper: paper.name.clone(),
            date: date.to_owned(),
            quick,
            machine: Machine::this(),
            program: Program::this(),
            tables: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Returns whether another record can be continued by this program; else the error names the difference.
    ///
    /// # Errors
    /// When it is of another paper, kind of run, machine or program.
    pub fn continues(&self, before: &Self) -> Result<(), PaperError> {
        let same = [
            ("paper", &self.paper, &before.paper),
            ("machine", &self.machine.name(), &before.machine.name()),
            ("compiler", &self.program.rustc, &before.program.rustc),
            (
                "commit",
                &self.program.commit.clone().unwrap_or_default(),
                &before.program.commit.clone().unwrap_or_default(),
            ),
            ("kind of run", &kind(self.quick), &kind(before.quick)),
        ];
        match same.into_iter().find(|(_, ours, theirs)| ours != theirs) {
            None => Ok(()),
            Some((what, ours, theirs)) => Err(PaperError(format!(
                "the record is of another {what} ('{theirs}', this is '{ours}'): measure it anew, without resuming"
            ))),
        }
    }

    /// Returns the part if it is done.
    #[must_use]
    pub fn done(&self, exhibit: &str, part: &str) -> Option<&FinishedPart> {
        self.parts.iter().find(|done| done.exhibit == exhibit && done.part == part)
    }

    /// Returns the paper with those of its exhibits that this record has a part of.
    #[must_use]
    pub fn measured(&self, paper: &Paper) -> Paper {
        let mut measured = paper.clone();
        let has = |name: &str| self.parts.iter().any(|done| done.exhibit == name);
        measured.exhibits.retain(|exhibit| has(&exhibit.name));
        measured
    }

    /// Returns all values of an exhibit, part by part in the order of its definition.
    #[must_use]
    pub fn points(&self, exhibit: &Exhibit) -> Vec<&Point> {
        let done = exhibit.parts.iter().filter_map(|part| self.done(&exhibit.name, &part.name));
        done.flat_map(|done| &done.points).collect()
    }

    /// Returns the path of the record in a folder.
    #[must_use]
    pub fn path(folder: &Path) -> PathBuf {
        folder.join("record.json")
    }

    /// Reads the record of a folder; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is of another version.
    pub fn read(folder: &Path) -> Result<Option<Self>, PaperError> {
        let path = Self::path(folder);
        let failed = |error: &dyn fmt::Display| PaperError(format!("{}: {error}", path.display()));
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| failed(&error))?,
        };
        let record: Self = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        if record.schema != SCHEMA {
            return Err(failed(&format_args!(
                "a record of schema {}; this program reads schema {SCHEMA}: measure it anew",
                record.schema
            )));
        }
        Ok(Some(record))
    }

    /// Writes the record into a folder, in the place of an older one. An interruption leaves the one or the other.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), PaperError> {
        let path = Self::path(folder);
        let failed = |error: io::Error| PaperError(format!("{}: {error}", path.display()));
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))? + "\n";
        let aside = path.with_extension("json.new");
        fs::create_dir_all(folder).map_err(failed)?;
        fs::write(&aside, text).map_err(failed)?;
        fs::rename(&aside, &path).map_err(failed)
    }
}

fn kind(quick: bool) -> String {
    if quick { "quick" } else { "full" }.to_owned()
}

/// Why a paper could not be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaperError(pub(super) String);

impl fmt::Display for PaperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for PaperError {}
