//! What `fibula table` understands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::options::{FeedArgs, OutputArgs, QuietArgs};

/// Look into tables, turn them into other forms, compare them, make them up
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula table stats rib.gz
  fibula table convert rib.gz --to text --output routes.txt
  fibula table diff yesterday.gz today.gz
  fibula table synth ipv4-2024 --output made-up.txt")]
pub(crate) struct TableArgs {
    #[command(subcommand)]
    pub(crate) command: TableCommand,
}

impl TableArgs {
    /// Whether the command writes to standard output.
    pub(crate) fn prints(&self) -> bool {
        match &self.command {
            TableCommand::Convert(ConvertArgs { output, .. })
            | TableCommand::Synth(SynthArgs { output, .. }) => {
                output.as_ref().is_none_or(|path| path.as_os_str() == "-")
            }
            TableCommand::Stats(_) | TableCommand::Diff(_) => true,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    Stats(StatsArgs),
    Convert(ConvertArgs),
    Diff(DiffArgs),
    Synth(SynthArgs),
}

/// Show what a table looks like: lengths, nesting, next hops, ranges
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula table stats routes.txt
  fibula table stats rib.gz --best --json
  fibula table stats rib.gz --format csv       family, length, routes and nested routes a row")]
pub(crate) struct StatsArgs {
    /// The tables; '-' is standard input. Several become one, by the rule of --best
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    pub(super) feed: FeedArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

/// Turn a table into another form
#[derive(Debug, Args)]
#[command(after_help = "\
Forms:
  text               PREFIX NEXT-HOP, which fibula reads back
  csv                prefix,next_hop
  json               a list of {\"prefix\":..,\"next_hop\":..}
  json-line          the same, an object a line
  bgpdump            the lines of 'bgpdump -m', with all attributes where the file has them; of
                     updates, what was said in its order
  intervals          start,end,value as CSV: disjoint ranges of addresses, in order, with equal
                     neighbours merged and what no route covers left out; for engines that
                     can join on ranges but know no prefixes
  intervals-parquet  the same as Parquet, with the bounds as bytes too, which compare as
                     addresses do

Examples:
  fibula table convert rib.gz --to text --output routes.txt
  fibula table convert updates.gz --to bgpdump --peer AS3333
  fibula table convert rib.gz --to intervals > ranges.csv")]
pub(crate) struct ConvertArgs {
    /// The tables; '-' is standard input. Several become one, by the rule of --best
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// The form
    #[arg(long, value_enum, value_name = "FORM")]
    pub(super) to: Form,

    /// Write into this file instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// With bgpdump: what all peers said, instead of one
    #[arg(long, conflicts_with_all = ["peer", "best"])]
    pub(super) all_peers: bool,

    #[command(flatten)]
    pub(super) feed: FeedArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Text,
    Csv,
    Json,
    JsonLine,
    Bgpdump,
    Intervals,
    IntervalsParquet,
}

/// Show what one table has and another has not, and where their next hops differ
#[derive(Debug, Args)]
#[command(after_help = "\
Output, for a route of the second table alone, one of the first alone, and one that leads elsewhere:
  text  + 192.0.2.0/24 198.51.100.1
        - 203.0.113.0/24 198.51.100.1
        ~ 10.0.0.0/8 198.51.100.1 198.51.100.2
  csv   change,prefix,before,after

Exit codes:
  0  the tables are equal
  1  they differ
  2  wrong use
  3  a table cannot be read

Examples:
  fibula table diff yesterday.gz today.gz
  fibula table diff a.txt b.txt --json")]
pub(crate) struct DiffArgs {
    /// The first table
    #[arg(value_name = "BEFORE")]
    pub(super) before: PathBuf,

    /// The second table
    #[arg(value_name = "AFTER")]
    pub(super) after: PathBuf,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    pub(super) feed: FeedArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

/// Make up a table shaped like the Internet's, the same for a seed everywhere
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula table synth ipv4 --output routes.txt
  fibula table synth ipv6 --routes 500000 --seed 7 | xz > routes.txt.xz
  fibula table synth ipv4-2019 ipv6-2019 --format csv")]
pub(crate) struct SynthArgs {
    /// Which tables: ipv4, ipv6, or a size with a name (an unknown one lists them)
    #[arg(value_name = "NAME", required = true)]
    pub(super) names: Vec<String>,

    /// Routes of each table, instead of as many as the name says
    #[arg(long, value_name = "NUMBER")]
    pub(super) routes: Option<usize>,

    /// Next hops of each table
    #[arg(long, value_name = "NUMBER")]
    pub(super) next_hops: Option<u32>,

    /// Which of the tables of this size and shape
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,

    /// Write into this file instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) form: OutputArgs,
}
