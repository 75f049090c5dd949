//! The command line as a whole: the commands, and the help that covers them all.

use clap::{Parser, Subcommand};
use fibula_cli::plumbing::{CompletionsArgs, EnginesArgs, ManArgs, RouterArgs, STYLES, TourArgs};

use super::device_args::DeviceArgs;
use super::document::DocumentArgs;
use super::measure::MeasureArgs;
use super::paper::PaperArgs;
use super::rates::RatesArgs;
use super::schedule::ScheduleArgs;
use super::targets::TargetsArgs;
use super::updates::UpdatesArgs;

/// Measure engines and rivals, and papers again
///
/// The laboratory of fibula: how fast engines look up and change, how other people's do on the same keys, and whether the
/// conclusions of papers hold on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "fibula-lab",
    version,
    styles = STYLES,
    after_help = "\
Exit codes:
  0  success; also when the reader of the output has gone, as in '| head'
  1  a wrong answer; of 'document --check': a file is stale; of 'paper': a part was not measured
  2  wrong use
  3  bad input, or a file that cannot be read or written
  4  not available on this machine: an instruction set, a rival, a feature left out of this build

Examples:
  fibula-lab rates --table routes.txt.xz
  fibula-lab updates --table routes.txt.xz --trace updates.gz
  fibula-lab paper dxr -o dxr

Environment:
  FIBULA_ISA   the instruction set for lookups, as in --isa
  FIBULA_DATA  the folder of real tables
  NO_COLOR     if set, no colours

'fibula-lab COMMAND --help' explains a command. Tables are looked up in and compared by another command: fibula"
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Rates(Box<RatesArgs>),
    Updates(Box<UpdatesArgs>),
    Schedule(Box<ScheduleArgs>),
    Device(Box<DeviceArgs>),
    Targets(Box<TargetsArgs>),
    Paper(PaperArgs),
    Document(DocumentArgs),
    Measure(MeasureArgs),
    #[command(after_help = "\
Examples:
  fibula-lab engines
  fibula-lab engines --json")]
    Engines(EnginesArgs),
    #[command(after_help = "\
The same as 'fibula router', whose help has examples; configurations may name every structure of 'fibula-lab engines'.

Examples:
  fibula-lab router check router.toml
  fibula-lab router --config router.toml")]
    Router(RouterArgs),
    #[command(after_help = "\
Examples:
  fibula-lab tour
  fibula-lab tour --table rib.gz
  fibula-lab tour --routes 100000 --seconds 5")]
    Tour(TourArgs),
    #[command(after_help = "\
Examples:
  fibula-lab completions bash > ~/.local/share/bash-completion/completions/fibula-lab")]
    Completions(CompletionsArgs),
    #[command(after_help = "\
Examples:
  fibula-lab man | man -l -
  fibula-lab man rates | man -l -
  fibula-lab man --output ~/.local/share/man/man1")]
    Man(ManArgs),
}

impl Command {
    /// Returns whether the command writes to standard output rather than to files.
    pub(super) fn prints(&self) -> bool {
        match self {
            Self::Man(args) => args.prints(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
