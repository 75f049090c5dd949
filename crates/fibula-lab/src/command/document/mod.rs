//! `fibula-lab document`: files that are generated from records and tables, and committed.

mod aggregation;
mod benchmarks;
mod choices;
mod generated;
mod papers;
mod picture;
mod router;
mod site;
mod tables;
mod values;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use fibula_cli::plumbing::{Failure, code};

use super::failure::failure;
use generated::Generated;

/// Write the documents that are generated from records and tables, or check that they are up to date
///
/// They are written into the checkout that this program was built from.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  everything is written, or up to date
  1  a file is stale (--check)
  2  wrong use
  3  a record or a table cannot be read, or a file cannot be written

Environment:
  FIBULA_DATA  the folder of real tables, as in --data
  MKDOCS       the program that builds the site [default: mkdocs]

Examples:
  fibula-lab document benchmarks choices values router picture --check
  fibula-lab document papers tables aggregation --data /data
  fibula-lab document site --output target/site")]
pub(super) struct DocumentArgs {
    /// The documents
    #[arg(value_enum, value_name = "NAME", required = true)]
    names: Vec<Name>,

    /// Compare with what is committed instead of writing
    #[arg(long)]
    check: bool,

    /// The folder of real tables, each as NAME.txt.xz
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The folder of the site [default: target/site]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// A document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// docs/benchmarks.md and its charts, docs/findings.md and docs/engines.md, from records
    Benchmarks,
    /// What the library chooses an engine by, from records/choices
    Choices,
    /// docs/values.md, from records/values
    Values,
    /// docs/router.md and its charts, from records/router
    Router,
    /// docs/picture.svg and docs/guide/router-top.svg, the command at work, from what 'fibula' next to this program prints
    Picture,
    /// docs/papers.md, from real tables
    Papers,
    /// docs/tables.md, from real tables
    Tables,
    /// docs/aggregation.md, from real tables
    Aggregation,
    /// The guides, the documents and the results as a static site in --output, by MkDocs
    Site,
}

pub(super) fn run(args: &DocumentArgs) -> Result<ExitCode, Failure> {
    let data = || std::env::var_os("FIBULA_DATA").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let (data, output) = (args.data.clone().or_else(data), args.output.clone());
    let generated = Generated { check: args.check, data, output };
    let of_tables = |name: &Name| matches!(name, Name::Papers | Name::Tables | Name::Aggregation);
    if generated.data.is_none() && args.names.iter().any(of_tables) {
        return Err(Failure::WrongUse(
            "these are made of real tables: --data or FIBULA_DATA names their folder".to_owned(),
        ));
    }
    let mut current = true;
    for name in &args.names {
        let write = match name {
            Name::Benchmarks => benchmarks::write,
            Name::Choices => choices::write,
            Name::Values => values::write,
            Name::Router => router::write,
            Name::Picture => picture::write,
            Name::Papers => papers::write,
            Name::Tables => tables::write,
            Name::Aggregation => aggregation::write,
            Name::Site => site::write,
        };
        current &= write(&generated).map_err(failure)?;
    }
    Ok(if current { ExitCode::SUCCESS } else { code::NOTHING_FOUND.into() })
}
