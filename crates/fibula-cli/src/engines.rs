//! `fibula engines`: the registry of engines.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use fibula::fib::registry::{Engines, PUBLISHED_COUNT};
use fibula_workload::engines::{Entry, compared, entries};
use serde_json::{Value, json};

use crate::answer::AnswerArgs;
use crate::failure::Failure;
use crate::objects::{self, Object};
use crate::options::Format;
use crate::text::bold;

/// List the engines, and when to take which
///
/// A line for each: when to take it, and the address families it supports. --json and --csv also have its instruction sets,
/// how it follows changes, and the paper it comes from: an engine is updated in place while other threads look up, or
/// exclusively (a live table rebuilds it at every call), or rebuilt.
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
const COLUMNS: &[&str] = &["name", "paper", "families", "isas", "update", "role", "summary", "use_when"];

/// Lists these engines.
///
/// # Errors
/// If the output cannot be written.
pub fn run(args: &EnginesArgs, engines: Engines) -> Result<ExitCode, Failure> {
    let entries = entries(engines);
    let mut out = args.output.open([])?;
    match args.output.format() {
        Format::Text => write_text(&mut out, engines)?,
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
        "use_when": entry.use_when,
    });
    match value {
        Value::Object(record) => record,
        _ => Object::new(),
    }
}

fn write_text(out: &mut dyn Write, engines: Engines) -> io::Result<()> {
    let (mut to_use, to_compare) = (entries(Engines::OWN), compared(engines));
    to_use.sort_by_key(|entry| entry.role == "oracle");
    group(out, "To use", &to_use)?;
    let lab = !to_compare.is_empty();
    if lab {
        writeln!(out)?;
        group(out, "To compare", &to_compare)?;
    }
    writeln!(out, "\nYou need not choose: 'fibula choose' shows what is taken for a table, and why.")?;
    let program = if lab { "fibula-lab" } else { "fibula" };
    writeln!(out, "'{program} engines --json' also has instruction sets, updates and papers.")?;
    if !lab {
        writeln!(out, "'fibula-lab engines' lists {PUBLISHED_COUNT} more, for comparison only.")?;
    }
    Ok(())
}

/// Writes a line for each engine: its name, when to take it, and its families.
fn group(out: &mut dyn Write, title: &str, entries: &[Entry]) -> io::Result<()> {
    let bold = bold();
    let name = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let when = entries.iter().map(|entry| entry.use_when.len()).max().unwrap_or(0);
    writeln!(out, "{bold}{title:<name$}  {:<when$}  family{bold:#}", "take it when ...")?;
    for entry in entries {
        let families = match entry.families[..] {
            ["ipv4"] => "IPv4",
            ["ipv6"] => "IPv6",
            _ => "both",
        };
        writeln!(out, "{:<name$}  {:<when$}  {families}", entry.name, entry.use_when)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_a_line_of_80_columns_for_each_engine() {
        let mut out = Vec::new();
        write_text(&mut out, Engines::OWN).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.lines().all(|line| anstream::adapter::strip_str(line).to_string().chars().count() <= 80),
            "{text}"
        );
        for Entry { name, .. } in entries(Engines::OWN) {
            assert_eq!(
                text.lines().filter(|line| line.starts_with(&format!("{name} "))).count(),
                1,
                "{text}"
            );
        }
        assert!(text.ends_with("'fibula-lab engines' lists 36 more, for comparison only.\n"), "{text}");
    }
}
