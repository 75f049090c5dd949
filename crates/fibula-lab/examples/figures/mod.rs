//! What an example measures: printed as it goes, and with `--record` kept in `records/values/MACHINE/NAME.json`, of which the
//! example `values` makes `docs/values.md`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use fibula_workload::machine::Machine;
use serde::{Deserialize, Serialize};

/// A record: tables of figures, and what makes them again.
#[derive(Serialize, Deserialize)]
pub(crate) struct Figures {
    /// The example.
    pub(crate) name: String,
    /// Its command line.
    pub(crate) command: String,
    pub(crate) machine: Machine,
    pub(crate) tables: Vec<Table>,
}

/// A table of figures, as it is printed.
#[derive(Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// The heads of the columns, the first of which names what a row is of.
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

#[allow(dead_code)] // The page reads records, and makes none.
impl Figures {
    /// Begins the record of an example, with the arguments that it was given, folders left out.
    pub(crate) fn new(name: &str, arguments: &[String]) -> Self {
        let short = |argument: &String| match Path::new(argument).file_name() {
            Some(file) if argument.contains('/') => file.to_string_lossy().into_owned(),
            _ => argument.clone(),
        };
        let arguments: Vec<String> = arguments.iter().map(short).collect();
        let command =
            format!("cargo run --release -p fibula-lab --example {name} -- {}", arguments.join(" "));
        Self { name: name.to_owned(), command, machine: Machine::this(), tables: Vec::new() }
    }

    /// Begins a table.
    pub(crate) fn table(&mut self, title: impl Into<String>, header: &[&str]) {
        let (title, header) = (title.into(), header.iter().map(|&head| head.to_owned()).collect::<Vec<_>>());
        println!("\n{title}");
        print(&header);
        self.tables.push(Table { title, header, rows: Vec::new() });
    }

    /// Adds a row to the table that was begun last.
    pub(crate) fn row(&mut self, row: Vec<String>) {
        print(&row);
        if let Some(table) = self.tables.last_mut() {
            table.rows.push(row);
        }
    }

    /// Writes the record.
    pub(crate) fn write(&self, root: &Path) -> Result<(), Box<dyn Error>> {
        let folder = folder(root).join(self.machine.slug());
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.json", self.name));
        fs::write(&path, serde_json::to_string_pretty(self)? + "\n")?;
        println!("\n{} written", path.display());
        Ok(())
    }
}

/// Returns the folder of the records, below the root of the repository.
pub(crate) fn folder(root: &Path) -> PathBuf {
    root.join("records/values")
}

/// Returns the root of the repository.
#[allow(dead_code)] // The page has it from elsewhere.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[allow(dead_code)] // The page prints nothing.
fn print(row: &[String]) {
    let [first, rest @ ..] = row else { return };
    println!("{first:44}{}", rest.iter().map(|cell| format!(" {cell:>16}")).collect::<String>());
}

/// Takes `--record` from the arguments. Returns whether it was there.
#[allow(dead_code)] // The page makes no records.
pub(crate) fn take_record(arguments: &mut Vec<String>) -> bool {
    let count = arguments.len();
    arguments.retain(|argument| argument != "--record");
    arguments.len() < count
}
