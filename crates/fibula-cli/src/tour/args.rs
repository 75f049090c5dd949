//! The options of `fibula tour`.

use std::path::PathBuf;

use clap::Args;

use crate::machine::IsaArgs;
use crate::options::{OutputArgs, QuietArgs};

/// See what looking up is, and how fast it is here, in under 20 seconds
///
/// Takes your table, or generates one of the Internet's size and shape. Explains one answer for each family: which route an
/// address takes, and why others lose. Then measures the engine that Fibula chooses for the table next to a binary trie and
/// hash tables by prefix length, and compares all answers with the table's.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  every answer was right
  1  an answer was wrong
  2  wrong use
  3  the table cannot be read, or the output cannot be written
  4  this machine lacks the instruction set

Examples:
  fibula tour
  fibula tour --table routes.txt
  fibula tour --routes 100000 --seconds 5
  fibula tour --json --quiet > tour.json")]
pub struct TourArgs {
    /// Your routing table, in any form that other commands read; '-' is standard input [default: a generated one]
    #[arg(short, long, value_name = "FILE", conflicts_with = "routes")]
    pub(crate) table: Option<PathBuf>,

    /// IPv4 routes in the generated table; a quarter as many IPv6 routes are added [default: 900000, or 30000 in a debug
    /// build]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(100..=4_000_000))]
    pub(crate) routes: Option<u32>,

    /// Total seconds for measuring, shared by all engines; building and checking are extra, and there are at least 7 rounds
    #[arg(long, value_name = "SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub(crate) seconds: u32,

    #[command(flatten)]
    pub(crate) isa: IsaArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) quiet: QuietArgs,
}
