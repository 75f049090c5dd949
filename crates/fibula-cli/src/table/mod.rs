//! `fibula table`: describes, converts, compares and generates tables.

mod args;
mod convert;
mod diff;
mod figures;
mod intervals;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
mod stats;
mod synth;

use std::process::ExitCode;

use crate::failure::Failure;
use args::TableCommand;

pub(crate) use args::TableArgs;

pub(crate) fn run(args: &TableArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        TableCommand::Stats(args) => stats::run(args),
        TableCommand::Convert(args) => convert::run(args).map(|()| ExitCode::SUCCESS),
        TableCommand::Diff(args) => diff::run(args),
        TableCommand::Synth(args) => synth::run(args).map(|()| ExitCode::SUCCESS),
    }
}
