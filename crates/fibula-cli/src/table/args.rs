//! The options of `fibula table`.

use std::path::PathBuf;

use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use fibula_workload::table::PRESETS;

use crate::answer::AnswerArgs;
use crate::options::{FeedArgs, FilesArgs, OutputArgs, QuietArgs};
use crate::suggested::Suggested;

/// Describe, convert, compare and generate tables
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula table stats rib.gz
  fibula table convert rib.gz --to text --output routes.txt
  fibula table diff yesterday.gz today.gz
  fibula table synth ipv4-2024 --output synthetic.txt")]
pub(crate) struct TableArgs {
    #[command(subcommand)]
    pub(crate) command: TableCommand,
}

impl TableArgs {
    /// Returns whether the command writes to standard output.
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

/// Describe a table: prefix lengths, nesting, next hops, ranges
#[derive(Debug, Args)]
#[command(after_help = "\
Output:
  text  for each family: its figures, a bar for each prefix length, the most frequent next hops
  csv   family,length,routes,nested

Exit codes:
  0  the table has routes
  1  the table is empty
  2  wrong use
  3  the table cannot be read

Examples:
  fibula table stats routes.txt
  fibula table stats rib.gz --best --json
  fibula table stats rib.gz --html rib.html")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(super) files: FilesArgs,

    /// Also write the figures to this file as a page of HTML with charts, which needs no other file
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: AnswerArgs,

    #[command(flatten)]
    pub(super) feed: FeedArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

/// Convert a table to another format
#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  text               'PREFIX NEXT-HOP' on each line, which fibula reads back
  csv                prefix,next_hop
  json               a list of {\"prefix\":..,\"next_hop\":..}
  json-line          the same, one object on each line
  bgpdump            the lines of 'bgpdump -m', with all attributes that the file has; for updates,
                     the messages in their order
  intervals          start,end,value as CSV: disjoint address ranges in order, equal neighbours
                     merged, ranges without a route left out; for engines that join on ranges
  intervals-parquet  the same as Parquet, with the bounds also as bytes that sort like addresses
  mmdb               a MaxMind database, which nginx, Suricata, Zeek, Vector and Logstash read: a record for
                     each distinct row of the columns that --value names (with types, as in 'fibula compile')

In a MaxMind database, columns of AS numbers, their owners and countries have the names that readers look for:
autonomous_system_number, autonomous_system_organization, country.iso_code.

An existing output file is replaced only when all of the new one has been written, and keeps its
mode. It must not be one of the inputs.

Exit codes:
  0  the table was converted
  2  wrong use, or the output is one of the inputs
  3  the table cannot be read, or the output cannot be written
  4  Parquet, in a build without it

Examples:
  fibula table convert rib.gz --to text --output routes.txt
  fibula table convert updates.gz --to bgpdump --peer AS3333
  fibula table convert rib.gz --to intervals > ranges.csv
  fibula table convert sites.csv --to mmdb --value asn:u32 --value country -o sites.mmdb")]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(super) files: FilesArgs,

    /// The format
    #[arg(
        long,
        visible_alias = "format",
        value_enum,
        value_name = "FORMAT",
        required_unless_present = "json"
    )]
    to: Option<OutputForm>,

    /// Short for --to json
    #[arg(short = 'j', long, conflicts_with = "to")]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// With --to bgpdump: include all peers, not only one
    #[arg(long, conflicts_with_all = ["peer", "best"])]
    pub(super) all_peers: bool,

    /// With --to mmdb: the name of a column's field; 'a.b' is a field b within a field a. May be repeated
    #[arg(long, value_name = "COLUMN=NAME", value_parser = field)]
    pub(super) field: Vec<(String, String)>,

    /// With --to mmdb: the type that readers check [default: by the fields, such as Fibula-GeoLite2-ASN]
    #[arg(long, value_name = "TYPE")]
    pub(super) database_type: Option<String>,

    /// With --to mmdb: ::ffff:0:0/96 and 2002::/16 lead to the records of IPv4
    #[arg(long)]
    pub(super) aliases: bool,

    #[command(flatten)]
    pub(super) feed: FeedArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputForm {
    Text,
    Csv,
    Json,
    JsonLine,
    Bgpdump,
    Intervals,
    IntervalsParquet,
    Mmdb,
}

fn field(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(column, name)| !column.is_empty() && !name.is_empty());
    let (column, name) = parts.ok_or("a column and its name, as in asn=autonomous_system_number")?;
    Ok((column.to_owned(), name.to_owned()))
}

impl ConvertArgs {
    pub(super) fn to(&self) -> OutputForm {
        // One of the two options is there.
        self.to.unwrap_or(OutputForm::Json)
    }

    /// Returns an option that only MaxMind databases have.
    pub(super) fn of_mmdb(&self) -> Option<&'static str> {
        let given = [
            ("--field", !self.field.is_empty()),
            ("--database-type", self.database_type.is_some()),
            ("--aliases", self.aliases),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

/// Compare two tables: routes added, removed, or with another next hop
#[derive(Debug, Args)]
#[command(after_help = "\
Output for a route that was added, one that was removed, and one with another next hop:
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
    /// The old table
    #[arg(value_name = "BEFORE")]
    pub(super) before: PathBuf,

    /// The new table
    #[arg(value_name = "AFTER")]
    pub(super) after: PathBuf,

    #[command(flatten)]
    pub(super) output: AnswerArgs,

    #[command(flatten)]
    pub(super) feed: FeedArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

/// Generate a table of the Internet's size and shape; the same seed gives the same table everywhere
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula table synth ipv4 --output routes.txt
  fibula table synth ipv6 --routes 500000 --seed 7 | xz > routes.txt.xz
  fibula table synth ipv4-2019 ipv6-2019 --format csv")]
pub(crate) struct SynthArgs {
    /// The tables to generate: ipv4, ipv6, ipv4-2024, ...; an unknown name lists all
    #[arg(value_name = "NAME", required = true, value_parser = presets(), hide_possible_values = true)]
    pub(super) names: Vec<String>,

    /// Routes in each table [default: by name]
    #[arg(long, value_name = "NUMBER")]
    pub(super) routes: Option<usize>,

    /// Next hops in each table [default: by name]
    #[arg(long, value_name = "NUMBER")]
    pub(super) next_hops: Option<u32>,

    /// Seed of the random numbers [default: by name]
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) form: OutputArgs,
}

fn presets() -> impl TypedValueParser<Value = String> {
    let names = || PRESETS.iter().map(|preset| preset.name).collect();
    Suggested { parser: StringValueParser::new(), names }
}
