//! What `fibula tour` understands.

use clap::Args;

use crate::machine::IsaArgs;
use crate::options::{OutputArgs, QuietArgs};

/// See what fibula does, in under a minute, with nothing to prepare
///
/// Makes up a routing table of the Internet's size and shape, looks a few addresses up, builds every
/// structure fibula knows over it, checks their answers against the simplest one, and measures them.
///
/// Exits with 0 when every answer was right, with 1 when one was wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula tour
  fibula tour --routes 100000 --seconds 5
  fibula tour --json --quiet > tour.json")]
pub(crate) struct TourArgs {
    /// IPv4 routes of the made-up table; a quarter as many IPv6 routes are added [default: 900000, 30000 when
    /// built without optimisation]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(100..=4_000_000))]
    pub(crate) routes: Option<u32>,

    /// Seconds to spend on measuring in all, shared by the structures; building and checking come on top
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub(crate) seconds: u32,

    #[command(flatten)]
    pub(crate) isa: IsaArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) quiet: QuietArgs,
}
