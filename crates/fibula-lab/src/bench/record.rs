//! Benchmark records: results in a file for each machine and table, `records/MACHINE/TABLE.json`.
//!
//! The fields of [`Record`] are the format, in its order; a line of the file is one of its [rows](Row). Rows that can be
//! compared with each other have the same `family`, `traffic`, `batch`, `threads`, `order` and `many_keys`: they are
//! medians over the same keys, timed in turn. Of an engine with several instruction sets, all have a row where
//! [`Plan`] compares them (`many_keys` false, first order, first number of threads, batch 256), and elsewhere the one
//! that was the fastest there; with `every_isa` of the plan, all have a row everywhere.

use core::fmt;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::program::Program;
use super::row::Row;
use super::sources::{self, Digests, Measures};
use fibula_workload::machine::{Machine, slug};

/// A benchmark record: the results for one table on one machine, with everything they depend on. Those of lookups have a
/// [`Plan`] and [`Row`]s, those of [updates](super::updates) their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record<P = Plan, R = Row> {
    /// The version of the format, [`SCHEMA`].
    pub schema: u32,
    /// The date, as the caller writes it.
    pub date: String,
    /// The table.
    pub table: TableInfo,
    /// The name of the list of addresses that recorded traffic came from, or of the trace that updates came from.
    pub recorded: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The program and its system.
    pub program: Program,
    /// A digest of the code of each engine that there was; none in records of before there were digests.
    #[serde(default, skip_serializing_if = "Digests::is_empty")]
    pub sources: Digests,
    /// The plan.
    pub plan: P,
    /// The results.
    pub rows: Vec<R>,
}

/// The table of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableInfo {
    /// Its name, which is also that of the benchmark record's file.
    pub name: String,
    /// Its size in each family that was measured.
    pub families: Vec<FamilyInfo>,
}

/// The routes of one family in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyInfo {
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// Prefixes.
    pub routes: usize,
    /// Different next hops.
    pub next_hops: usize,
}

impl<P: Measures, R> Record<P, R> {
    /// Makes a record of rows that this program has just measured on this machine, with a table of these sizes.
    #[must_use]
    pub fn with_sizes(date: &str, name: &str, families: Vec<FamilyInfo>, plan: P, rows: Vec<R>) -> Self {
        Self {
            schema: SCHEMA,
            date: date.to_owned(),
            table: TableInfo { name: name.to_owned(), families },
            recorded: None,
            machine: Machine::this(),
            program: Program::this(),
            sources: sources::today(P::SCOPE).clone(),
            plan,
            rows,
        }
    }
}

impl Record {
    /// Makes a record of rows that this program has just measured on this machine. The sizes of the table come from
    /// the rows.
    #[must_use]
    pub fn new(date: &str, table: &str, plan: Plan, rows: Vec<Row>) -> Self {
        let mut families: Vec<FamilyInfo> = Vec::new();
        for row in &rows {
            if families.iter().all(|family| family.family != row.family) {
                let Row { family, routes, next_hops, .. } = row;
                families.push(FamilyInfo { family: family.clone(), routes: *routes, next_hops: *next_hops });
            }
        }
        Self::with_sizes(date, table, families, plan, rows)
    }
}

impl<P: Measures, R> Record<P, R> {
    /// Returns whether it is out of date for an engine of today: the code that the engine is made of was another, or is not known.
    #[must_use]
    pub fn is_stale(&self, engine: &str) -> bool {
        // Before a colon, the name of a variant is that of its engine.
        let kind = engine.split(':').next().unwrap_or(engine);
        sources::today(P::SCOPE).get(kind).is_some_and(|today| self.sources.get(kind) != Some(today))
    }
}

impl<P: Serialize + DeserializeOwned + Clone, R: Serialize + DeserializeOwned + Clone> Record<P, R> {
    /// Its path within `folder`: a folder for the machine, a file for the table.
    #[must_use]
    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(self.machine.slug()).join(slug(&self.table.name)).with_extension("json")
    }

    /// Writes it to its [path](Self::path) in `folder`, replacing an older one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, RecordError> {
        let path = self.path(folder);
        let failed = |error| RecordError { path: path.clone(), error };
        if let Some(machine) = path.parent() {
            fs::create_dir_all(machine).map_err(failed)?;
        }
        fs::write(&path, self.json().map_err(failed)?).map_err(failed)?;
        Ok(path)
    }

    /// Returns its file: JSON, with a line for each row.
    ///
    /// # Errors
    /// Never, as long as all keys of maps are text.
    pub fn json(&self) -> io::Result<String> {
        let head = Self { rows: Vec::new(), ..self.clone() };
        let mut text = serde_json::to_string_pretty(&head)?;
        if let Some(cut) = text.strip_suffix("[]\n}").map(str::len) {
            text.truncate(cut);
            for (at, row) in self.rows.iter().enumerate() {
                text.push_str(if at == 0 { "[\n" } else { ",\n" });
                text.push_str(&serde_json::to_string(row)?);
            }
            text.push_str(if self.rows.is_empty() { "[]\n}\n" } else { "\n]\n}\n" });
        }
        Ok(text)
    }

    /// Reads a benchmark record.
    ///
    /// # Errors
    /// When the file cannot be read, is not a benchmark record, or has another schema.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let failed = |error| RecordError { path: path.to_owned(), error };
        let text = fs::read_to_string(path).map_err(failed)?;
        let parse_error = |error: serde_json::Error| failed(error.into());
        let Version { schema } = serde_json::from_str(&text).map_err(parse_error)?;
        if schema != SCHEMA {
            return Err(failed(io::Error::other(format!(
                "a benchmark record of schema {schema}; this program reads schema {SCHEMA}: measure it again"
            ))));
        }
        serde_json::from_str(&text).map_err(parse_error)
    }

    /// Reads all benchmark records of a folder, sorted by machine and table. Folders of folders in it, such as
    /// `shapes` and `held-out`, hold other sets of benchmark records, and are read by their own names.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, or a JSON file in a machine's folder is not a benchmark record.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, RecordError> {
        let list = |folder: &Path| -> Result<BTreeSet<PathBuf>, RecordError> {
            let failed = |error| RecordError { path: folder.to_owned(), error };
            fs::read_dir(folder).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
        };
        let mut records = Vec::new();
        let is_machine = |path: &&PathBuf| path.is_dir() && !path.ends_with(MUTANTS);
        for machine in list(folder)?.iter().filter(is_machine) {
            for path in list(machine)?.iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
                records.push(Self::read(path)?);
            }
        }
        Ok(records)
    }
}

/// The version of the format that this program writes and reads.
pub const SCHEMA: u32 = 2;

/// The part of a record that says how to read the rest. Records of schema 1 do not say it.
#[derive(Deserialize)]
struct Version {
    #[serde(default = "first")]
    schema: u32,
}

fn first() -> u32 {
    1
}

/// The folder beside those of machines that holds records of mutation tests.
const MUTANTS: &str = "mutants";

/// A benchmark record that could not be read or written.
#[derive(Debug)]
pub struct RecordError {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl core::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
