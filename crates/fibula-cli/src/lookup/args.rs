//! What `fibula lookup` understands.

use clap::Args;

use crate::machine::IsaArgs;
use crate::options::{OutputArgs, QuietArgs, SourceArgs};

/// Find the route of each address: the matched prefix and its next hop
///
/// Answers one line an address, in order. Addresses come from the command line or, when none are given, from
/// standard input, one a line; what has arrived is answered at once, so that fibula can stand in a pipe or
/// be typed into.
///
/// The table is a file, plain or compressed (gzip, bzip2, xz, zstd): MRT as route collectors and routing daemons write
/// it, the lines of 'bgpdump -m', or text with a prefix and a next hop a line: '192.0.2.0/24 198.51.100.1'. A next hop
/// is an address or a number (an interface, an AS). Both families may stand in one table. What cannot be read is
/// reported and left out.
///
/// Where a file has the routes of several peers, those of one are taken, as if it were the router: of each family, the
/// peer with most routes. --peer names another, --best takes the best path over all; 'fibula peers' lists them.
///
/// An address with a colon is an IPv6 address. That holds for IPv4-mapped ones (::ffff:192.0.2.1) too: they
/// are looked up among the IPv6 routes as they stand.
///
/// Where answers come from: the first 65,536 addresses of a family are answered by the table itself (the
/// RIB), which can be asked as soon as it is loaded. When more arrive, a structure made for speed is built and
/// answers the rest. It is built over ids, one for each pair of next hop and prefix length; the address cut to
/// that length is the prefix. The answers are the same; --stats says which gave how many.
#[derive(Debug, Args)]
#[command(after_help = "\
Output, for an address with a route, one without, and a line that is no address:
  text       192.0.2.1 192.0.2.0/24 via 64500
             198.51.100.1 no route
             - not an address
  csv        address,prefix,next_hop           (the header)
             192.0.2.1,192.0.2.0/24,64500
             198.51.100.1,,
             ,,
  json-line  {\"address\":\"192.0.2.1\",\"prefix\":\"192.0.2.0/24\",\"next_hop\":\"64500\"}
             {\"address\":\"198.51.100.1\",\"prefix\":null,\"next_hop\":null}
             {\"address\":null,\"prefix\":null,\"next_hop\":null}
  json       a list of the same objects

Exit codes:
  0  at least one address has a route; also when the reader of the output went away
  1  no address has a route
  2  wrong use
  3  a line was no address, or the table cannot be read

Examples:
  fibula lookup --table routes.txt 192.0.2.1
  fibula lookup -t routes.txt.xz --format csv < addresses.txt > routes.csv
  cut -d, -f1 flows.csv | fibula lookup -t routes.txt --json")]
pub(crate) struct LookupArgs {
    /// Addresses to look up; read from standard input, one a line, when none are given
    #[arg(value_name = "ADDRESS", allow_hyphen_values = false)]
    pub(crate) addresses: Vec<String>,

    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Answer by this structure from the first address on (see 'fibula algorithms'); a family it does not
    /// serve is answered as usual
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,

    #[command(flatten)]
    pub(crate) isa: IsaArgs,

    /// When done, say on standard error what was loaded, what answered, and how fast
    #[arg(short, long)]
    pub(crate) stats: bool,

    #[command(flatten)]
    pub(crate) quiet: QuietArgs,
}
