//! The output of a program of `fibula-lab measure`. It is printed as it comes. With `--record` it is also kept in
//! `records/values/MACHINE/NAME.json`, from which `fibula-lab document values` makes `docs/values.md`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use fibula_workload::machine::Machine;
use serde::{Deserialize, Serialize};

use super::recorded::today;
use crate::bench::Program;

/// A record: tables of figures, and the command that makes them again.
#[derive(Serialize, Deserialize)]
pub(super) struct FigureTables {
    /// The program, as its file is named.
    pub(super) name: String,
    /// Its command line.
    pub(super) command: String,
    pub(super) machine: Machine,
    /// Absent from older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) measured: Option<Circumstances>,
    pub(super) tables: Vec<FigureTable>,
}

/// The day of a measurement, the program that made it, and the load of the machine.
#[derive(Serialize, Deserialize)]
pub(super) struct Circumstances {
    pub(super) day: String,
    pub(super) program: Program,
    /// The system's load averages before.
    pub(super) load: String,
}

impl Circumstances {
    fn now() -> Self {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        Self { day: today(), program: Program::this(), load }
    }
}

/// A table of figures, as it is printed.
#[derive(Serialize, Deserialize)]
pub(super) struct FigureTable {
    pub(super) title: String,
    /// The heads of the columns. The first one names the subject of a row.
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl FigureTables {
    /// Begins the record of a program, with the arguments that it was given, folders left out.
    pub(super) fn new(name: &str, arguments: &[String]) -> Self {
        let short = |argument: &String| match Path::new(argument).file_name() {
            Some(file) if argument.contains('/') => file.to_string_lossy().into_owned(),
            _ => argument.clone(),
        };
        let arguments: Vec<String> = arguments.iter().map(short).collect();
        let program = name.replace('_', "-");
        let command = [&["fibula-lab measure".to_owned(), program][..], &arguments].concat().join(" ");
        Self {
            name: name.to_owned(),
            command,
            machine: Machine::this(),
            measured: Some(Circumstances::now()),
            tables: Vec::new(),
        }
    }

    /// Begins a table.
    pub(super) fn table(&mut self, title: impl Into<String>, header: &[&str]) {
        let (title, header) = (title.into(), header.iter().map(|&head| head.to_owned()).collect::<Vec<_>>());
        println!("\n{title}");
        print(&header);
        self.tables.push(FigureTable { title, header, rows: Vec::new() });
    }

    /// Adds a row to the table that was begun last.
    pub(super) fn row(&mut self, row: Vec<String>) {
        print(&row);
        if let Some(table) = self.tables.last_mut() {
            table.rows.push(row);
        }
    }

    /// Writes the record, if it is to be kept.
    pub(super) fn keep(&self, record: bool) -> Result<(), Box<dyn Error>> {
        if !record {
            return Ok(());
        }
        if self
            .measured
            .as_ref()
            .and_then(|measured| measured.program.commit.as_deref())
            .is_none_or(|commit| commit.ends_with("-dirty"))
        {
            return Err("a record names its commit: commit what has changed, and measure again".into());
        }
        let folder = folder().join(self.machine.slug());
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.json", self.name));
        fs::write(&path, serde_json::to_string_pretty(self)? + "\n")?;
        println!("\n{} written", path.display());
        Ok(())
    }
}

/// Returns the folder of the records, below the root of the repository.
pub(super) fn folder() -> PathBuf {
    root().join("records/values")
}

/// Returns the root of the repository: for a packaged program, the current folder.
pub(super) fn root() -> PathBuf {
    PathBuf::from(option_env!("FIBULA_CHECKOUT").unwrap_or("."))
}

fn print(row: &[String]) {
    let [first, rest @ ..] = row else { return };
    println!("{first:44}{}", rest.iter().map(|cell| format!(" {cell:>16}")).collect::<String>());
}
