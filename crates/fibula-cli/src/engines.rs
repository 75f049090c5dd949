//! `fibula engines`: the registry of structures.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use fibula::fib::registry::Engines;
use fibula_workload::engines::{Entry, entries};
use serde_json::{Value, json};

use crate::answer::AnswerArgs;
use crate::failure::Failure;
use crate::objects::{self, Object};
use crate::options::Format;
use crate::text::{Grid, bold};

/// List the lookup structures
///
/// For each structure: the address families and instruction sets it supports, whether it is updated in place or rebuilt
/// when the table changes, and the paper it comes from.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula engines
  fibula engines --json")]
pub struct EnginesArgs {
    #[command(flatten)]
    pub(crate) output: AnswerArgs,
}

/// The fields of a registry entry, in order.
const COLUMNS: &[&str] = &["name", "paper", "families", "isas", "update", "role", "summary"];

/// Lists these structures.
///
/// # Errors
/// If the output cannot be written.
pub fn run(args: &EnginesArgs, engines: Engines) -> Result<ExitCode, Failure> {
    let entries = entries(engines);
    let mut out = args.output.open([])?;
    match args.output.format() {
        Format::Text => write_text(&mut out, &entries)?,
        format => {
            let records: Vec<Object> = entries.iter().map(record).collect();
            objects::write(&mut out, format, COLUMNS, &records)?;
        }
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn record(entry: &Entry) -> Object {
    let value = json!({
        "name": entry.name,
        "paper": entry.paper,
        "families": entry.families,
        "isas": entry.isas,
        "update": entry.update,
        "role": entry.role,
        "summary": entry.summary,
    });
    match value {
        Value::Object(record) => record,
        _ => Object::new(),
    }
}

fn write_text(out: &mut dyn Write, entries: &[Entry]) -> io::Result<()> {
    let mut grid = Grid::new(&["name", "families", "update", "instruction sets", "summary"]);
    for entry in entries {
        grid.row([
            entry.name.to_owned(),
            entry.families.join(" "),
            entry.update.to_owned(),
            entry.isas.join(" "),
            entry.summary.to_owned(),
        ]);
    }
    writeln!(out, "{}", grid.render())?;
    writeln!(out, "\nOf the instruction sets, {}.", crate::machine::here())?;
    writeln!(out, "Lookups use the best one; --isa or FIBULA_ISA selects another.\n")?;
    let bold = bold();
    writeln!(out, "{bold}Papers{bold:#}")?;
    let mut papers = Grid::bare();
    for entry in entries {
        papers.row([entry.name.to_owned(), entry.paper.to_owned()]);
    }
    writeln!(out, "{}", papers.render())
}
