//! The options of `fibula tour`.

use clap::Args;

use crate::machine::IsaArgs;
use crate::options::{OutputArgs, QuietArgs};

/// See what Fibula does in under a minute
///
/// Generates a routing table of the Internet's size and shape, looks up a few addresses, builds every structure from the
/// table, checks its answers against the simplest one, and measures it. Needs no input.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  every answer was right
  1  an answer was wrong
  2  wrong use
  3  the output cannot be written
  4  this machine lacks the instruction set

Examples:
  fibula tour
  fibula tour --routes 100000 --seconds 5
  fibula tour --json --quiet > tour.json")]
pub struct TourArgs {
    /// IPv4 routes in the table; a quarter as many IPv6 routes are added [default: 900000, or 30000 in a debug build]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(100..=4_000_000))]
    pub(crate) routes: Option<u32>,

    /// Total seconds for measuring, shared by all structures; building and checking are extra
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub(crate) seconds: u32,

    #[command(flatten)]
    pub(crate) isa: IsaArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) quiet: QuietArgs,
}
