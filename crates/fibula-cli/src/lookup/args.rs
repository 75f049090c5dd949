//! The options of `fibula lookup`.

use clap::Args;

use crate::machine::IsaArgs;
use crate::options::{OutputArgs, QuietArgs, SourceArgs};

/// Find the route of each address: the matched prefix and its next hop
///
/// Prints one line per address, in order. Addresses come from the command line or, if none are given, from standard
/// input, one a line. Each answer is printed as soon as its address has arrived, so fibula works in a pipe and by hand.
///
/// The table is a file, plain or compressed (gzip, bzip2, xz, zstd): MRT as written by route collectors and routing
/// daemons, the output of 'bgpdump -m', or text with a prefix and a next hop on each line: '192.0.2.0/24 198.51.100.1'.
/// A next hop is an address or a number (an interface, an AS). One table may hold both IPv4 and IPv6. Lines that cannot
/// be read are reported and skipped.
///
/// A table that was compiled ('fibula compile') is used as it is: its routes answer without being loaded. If it was compiled
/// without routes, its structure answers, which does not know the matched prefix.
///
/// If a file has the routes of several peers, only one of them is used for each family: the one with the most routes.
/// --peer selects another, --best takes the best path of all peers, and 'fibula peers' lists them.
///
/// An address with a colon is an IPv6 address, IPv4-mapped ones (::ffff:192.0.2.1) included: they are looked up among the
/// IPv6 routes, unchanged.
///
/// The first 65,536 addresses of a family are looked up in the table itself (the RIB), which is ready as soon as the
/// table is loaded. If more arrive, a faster structure is built for the rest. It stores one number for each pair of next
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

Exit codes:
  0  at least one address has a route
  1  no address has a route
  2  wrong use
  3  a line is not an address, or the table cannot be read
  4  this machine lacks the instruction set

Examples:
  fibula lookup --table routes.txt 192.0.2.1
  fibula lookup -t routes.txt.xz --format csv < addresses.txt > routes.csv
  cut -d, -f1 flows.csv | fibula lookup -t routes.txt --json")]
pub(crate) struct LookupArgs {
    /// Addresses to look up [default: read from standard input, one a line]
    #[arg(value_name = "ADDRESS", allow_hyphen_values = false)]
    pub(crate) addresses: Vec<String>,

    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Use this structure for all addresses of the families it supports (see 'fibula algorithms')
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,

    #[command(flatten)]
    pub(crate) isa: IsaArgs,

    /// Print statistics to standard error at the end: what was loaded, what was looked up where, how fast
    #[arg(short, long)]
    pub(crate) stats: bool,

    #[command(flatten)]
    pub(crate) quiet: QuietArgs,
}
