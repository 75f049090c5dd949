//! Tables: what a command works on, and `fibula table`, which looks into them.

mod args;
mod convert;
mod diff;
mod intervals;
mod load;
#[cfg(feature = "parquet")]
mod parquet;
mod stats;
mod synth;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::failure::Failure;
use args::TableCommand;

pub(crate) use args::TableArgs;
pub(crate) use load::{is_stdin, limits, load, load_feeds, print_stats, survey};

pub(crate) fn run(args: &TableArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        TableCommand::Stats(args) => stats::run(args),
        TableCommand::Convert(args) => convert::run(args).map(|()| ExitCode::SUCCESS),
        TableCommand::Diff(args) => diff::run(args),
        TableCommand::Synth(args) => synth::run(args).map(|()| ExitCode::SUCCESS),
    }
}

/// Writes to the file, or to standard output where there is none.
fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(path) = path else {
        let mut out = BufWriter::new(io::stdout());
        write(&mut out)?;
        out.flush()?;
        return Ok(());
    };
    let mut out = BufWriter::new(File::create(path).map_err(|error| cannot_write(path, &error))?);
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    written.map_err(|failure| match failure {
        Failure::Output(error) => cannot_write(path, &error),
        other => other,
    })
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::BadInput(format!("cannot write {}: {error}", path.display()))
}
