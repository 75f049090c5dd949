//! The options of `fibula lookup` and `fibula enrich`.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::answers::V4Mapped;
use super::columns::InputFormat;
use super::row_type::RowType;

use crate::failure::Failure;
use crate::machine::IsaArgs;
use crate::options::{Format, QuietArgs, STDIN, SourceArgs};
use crate::suggested;

/// Find the route of each address: the matched prefix and its next hop
///
/// Prints one line per address, in order. Addresses come from the command line, from a file (--addresses) or, if none are
/// given, from standard input, one a line. Each answer is printed as soon as its address has arrived, so fibula works in a
/// pipe and by hand.
///
/// With --column the lines of the input have other columns too: CSV, values separated by tabs, or JSON lines. They are
/// printed as they are, and the answer's columns come after them (see also 'fibula enrich', which handles Parquet).
///
/// The table is a file, plain or compressed (gzip, bzip2, xz, zstd): MRT as written by route collectors and routing
/// daemons, the output of 'bgpdump -m', or text with a prefix and a next hop on each line: '192.0.2.0/24 198.51.100.1'.
/// A next hop is an address, a number (an interface, an AS) or any other word. One table may hold both IPv4 and IPv6. Lines that cannot
/// be read are reported and skipped.
///
/// A table that was compiled ('fibula compile') is used as it is: its routes answer without being loaded. If it was compiled
/// without routes, its engine answers, which does not know the matched prefix.
///
/// If a file has the routes of several peers, only one of them is used for each family: the one with the most routes.
/// --peer selects another, --best takes the best path of all peers, and 'fibula peers' lists them.
///
/// An address with a colon is an IPv6 address, IPv4-mapped ones (::ffff:192.0.2.1) included: they are looked up among the
/// IPv6 routes, unchanged, unless --v4-mapped says otherwise. An address may have a port, brackets, a zone or the length of its
/// host's prefix: 192.0.2.1:443, [2001:db8::1]:443, fe80::1%eth0, 192.0.2.1/32.
///
/// The first 65,536 addresses of a family are looked up in the table itself (the RIB), which is ready as soon as the
/// table is loaded. If more arrive, a faster engine is built for the rest. It stores one number for each pair of next
/// hop and prefix length, and the address cut to that length is the matched prefix. The answers are the same; --stats
/// says how many came from where.
#[derive(Debug, Args)]
#[command(after_help = "\
Output for an address with a route, an address without one, and a line that is not an address:
  text       192.0.2.1 192.0.2.0/24 via 64500
             198.51.100.1 no route
             - not an address
  csv        address,prefix,next_hop           (header)
             192.0.2.1,192.0.2.0/24,64500
             198.51.100.1,,
             ,,
  json-line  {\"address\":\"192.0.2.1\",\"prefix\":\"192.0.2.0/24\",\"next_hop\":\"64500\"}
             {\"address\":\"198.51.100.1\",\"prefix\":null,\"next_hop\":null}
             {\"address\":null,\"prefix\":null,\"next_hop\":null}
  json       a list of the same objects
  row-binary a nullable text for each address, with --input-format row-binary: ClickHouse's functions read and write it
With --value the columns of the values follow next_hop. For people, the origin AS follows the next hop
where the table has it: 'via 192.0.2.9 origin-as 64500'.

Exit codes:
  0  at least one address has a route
  1  no address has a route
  2  wrong use
  3  a line is not an address (without --column), or the table cannot be read
     (with row-binary 0, where all rows were answered, if by null)
  4  this machine lacks the instruction set

Examples:
  fibula lookup --table routes.txt 192.0.2.1
  fibula lookup -t routes.txt.xz --format csv < addresses.txt > routes.csv
  fibula lookup -t rib.gz --addresses seen.txt.gz --format csv -o routes.csv
  fibula lookup -t rib.gz --addresses flows.csv --column src_addr --value origin-as")]
pub(crate) struct LookupArgs {
    /// Addresses to look up [default: read from standard input, one a line]
    #[arg(value_name = "ADDRESS", allow_hyphen_values = false)]
    pub(crate) addresses: Vec<String>,

    /// Read the addresses from this file, plain or compressed; '-' is standard input
    #[arg(long = "addresses", value_name = "FILE", conflicts_with = "addresses")]
    pub(crate) file: Option<PathBuf>,

    /// Each line has an address in this column: its number from 1, its name in the first line, or its name in objects of
    /// JSON. If repeated, the answers of one column follow those of the other
    #[arg(short, long, value_name = "COLUMN", conflicts_with_all = ["addresses", "format", "json"])]
    pub(crate) column: Vec<String>,

    /// The format of lines with columns [default: by the file's name, else by its first line], or row-binary
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) input_format: Option<LookupInput>,

    /// The type of the address in rows of row-binary [default: string]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) row_type: Option<RowType>,

    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LookupOutput::Rows(Format::Text))]
    pub(crate) format: LookupOutput,

    /// Short for --format json
    #[arg(short = 'j', long, conflicts_with = "format")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) how: HowArgs,

    #[command(flatten)]
    pub(crate) quiet: QuietArgs,
}

impl LookupArgs {
    /// Returns the format of rows.
    ///
    /// # Errors
    /// If it is RowBinary, which has the answers of one table alone.
    pub(crate) fn rows(&self) -> Result<Format, Failure> {
        match self.format {
            _ if self.json => Ok(Format::Json),
            LookupOutput::Rows(format) => Ok(format),
            LookupOutput::Binary => Err(Failure::WrongUse(
                "row-binary has the answers of one table: fibula lookup --table".to_owned(),
            )),
        }
    }
}

/// A format of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupInput {
    /// Lines with columns.
    Rows(InputFormat),
    /// One address of each row, in ClickHouse's RowBinary.
    Binary,
}

/// A format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupOutput {
    /// One row for each address.
    Rows(Format),
    /// One answer for each address, in ClickHouse's RowBinary.
    Binary,
}

/// The name of RowBinary in both lists.
fn row_binary() -> PossibleValue {
    PossibleValue::new("row-binary").help("Rows of ClickHouse's RowBinary, for its executable functions")
}

impl ValueEnum for LookupInput {
    fn value_variants<'a>() -> &'a [Self] {
        use InputFormat::{Csv, Json, JsonLine, Tsv, Words};
        &[
            Self::Rows(Csv),
            Self::Rows(Tsv),
            Self::Rows(Words),
            Self::Rows(JsonLine),
            Self::Rows(Json),
            Self::Binary,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Rows(format) => format.to_possible_value(),
            Self::Binary => Some(row_binary()),
        }
    }
}

impl ValueEnum for LookupOutput {
    fn value_variants<'a>() -> &'a [Self] {
        use Format::{Csv, Json, JsonLine, Text};
        &[Self::Rows(Text), Self::Rows(Csv), Self::Rows(Json), Self::Rows(JsonLine), Self::Binary]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Rows(format) => format.to_possible_value(),
            Self::Binary => Some(row_binary()),
        }
    }
}

/// How addresses are looked up, and where the answers go.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Use this engine for all addresses of the families it supports (see 'fibula engines')
    #[arg(short = 'a', long, value_name = "NAME", value_parser = suggested::engine(), hide_possible_values = true)]
    pub(crate) engine: Option<String>,

    #[command(flatten)]
    pub(crate) isa: IsaArgs,

    /// Answer IPv4-mapped IPv6 addresses (::ffff:192.0.2.1) by the routes of this family
    #[arg(long, value_enum, value_name = "FAMILY", default_value_t)]
    pub(crate) v4_mapped: V4Mapped,

    /// Answer by the newest version of the compiled table: one that replaces the file by renaming serves from the next line on
    /// that arrives. A file that cannot be opened, or has other columns, is reported, and the table before it serves
    #[arg(long)]
    pub(crate) follow: bool,

    /// Threads that look up, besides those that read and write [default: one for each core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Print statistics to standard error at the end: what was loaded, what was looked up where, how fast
    #[arg(short, long)]
    pub(crate) stats: bool,
}

impl HowArgs {
    /// Returns the number of threads that look up.
    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, usize::from)
    }
}

/// Add the routes of addresses to lines with other columns, such as flow logs
///
/// Each line of the input is printed as it is, followed by the answer's columns: the matched prefix, its next hop, and the
/// values that --value names. The input is CSV, values separated by tabs, words separated by blanks (--input-format words), JSON
/// lines, or a list of JSON objects over any number of lines, plain or compressed. If its first line has the names of columns,
/// the names of the new ones are added to it. With several columns of addresses, or where the input (an object of JSON) has such
/// a column already, the new names begin with that of the address: src_prefix, src_next_hop.
///
/// A quote that is not closed within 16 lines and 64 KiB, in front of a separator or at the end of a line, is text.
///
/// A Parquet file becomes a Parquet file, if this build has Parquet (feature 'parquet'). Addresses are text, UInt32 (IPv4) or
/// FixedSizeBinary of 4 or 16 bytes. The matched prefix is of the same type, and unless it is text, its length is a column
/// prefix_len of UInt8. The next hop and the values are text.
///
/// Lines whose column is not an address are kept, with empty columns after them, and counted on standard error; with --strict
/// the first of them is an error.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  at least one address has a route
  1  no address has a route
  2  wrong use
  3  the table or the input cannot be read, or has no such column
  4  this machine lacks the instruction set

Examples:
  fibula enrich --table rib.gz --column src_addr --value origin-as flows.csv -o with-as.csv
  fibula enrich -t rib.gz -c 3 -c 4 --value origin-as,as-path < flows.tsv
  fibula enrich -t rib.gz -c src_addr flows.parquet -o with-prefix.parquet
  zcat events.json.gz | fibula enrich -t rib.gz --column client.ip")]
pub(crate) struct EnrichArgs {
    /// The lines, plain or compressed; '-' is standard input
    #[arg(value_name = "FILE", default_value = STDIN)]
    pub(crate) file: PathBuf,

    /// The column with the address: its number from 1, its name in the first line, or its name in objects of JSON
    /// ('client.ip' is a field of that name or, where there is none, a field of a field). May be repeated
    #[arg(short, long, value_name = "COLUMN", required = true)]
    pub(crate) column: Vec<String>,

    /// The format of the lines [default: by the file's name, else by its first line]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) input_format: Option<InputFormat>,

    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) how: HowArgs,

    #[command(flatten)]
    pub(crate) quiet: QuietArgs,
}
