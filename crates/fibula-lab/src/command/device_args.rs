//! The options of `fibula-lab device`, which builds without coprocessors know too.

use std::path::PathBuf;

use clap::Args;
use fibula_cli::plumbing::{IsaArgs, OutputArgs, QuietArgs};

use super::options::{EffortArgs, StructureArgs, TableArgs, traffic};

/// Measure lookups on coprocessors, on the processor and on both together, with all transfers
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  every engine answered correctly
  1  an engine gave a wrong answer
  2  wrong use
  3  the table cannot be read, or an output cannot be written
  4  the device is not here, or this build has none (feature gpu)

Examples:
  fibula-lab device --table routes.txt.xz
  fibula-lab device -t routes.txt --device cuda:0 --engine bloomfwd --buffer 65536 --buffer 2097152")]
pub(super) struct DeviceArgs {
    #[command(flatten)]
    pub(super) table: TableArgs,

    #[command(flatten)]
    pub(super) structures: StructureArgs,

    /// The coprocessor, such as cuda:0, opencl or any [default: all that are there]
    #[arg(long, value_name = "NAME")]
    pub(super) device: Option<String>,

    /// Measure only this traffic; may be repeated [default: rnd and match]
    #[arg(long, value_name = "NAME", value_parser = traffic(), hide_possible_values = true)]
    pub(super) traffic: Vec<String>,

    /// Addresses that are sent to a device at once; may be repeated [default: 4096, 65536, 1048576 and 2097152]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub(super) buffer: Vec<u32>,

    /// Threads of the processor [default: one less than there are cores]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) threads: Option<u32>,

    /// Number of keys in each traffic [default: 8388608]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(super) keys: Option<u32>,

    #[command(flatten)]
    pub(super) isa: IsaArgs,

    #[command(flatten)]
    pub(super) effort: EffortArgs,

    /// Save the result in this folder as MACHINE/TABLE.json
    #[arg(long, value_name = "DIR")]
    pub(super) record: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}
