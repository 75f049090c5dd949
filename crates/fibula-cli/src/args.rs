//! What the command understands: its words, options and help texts.

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;
use clap::{Args, Parser, Subcommand, ValueEnum};
use fibula::memory::Limits;
use fibula::net::{Family, HostBits};
use fibula_feed::{LoadOptions, PeerName, Selection};

use crate::isa::IsaArgs;

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Look up addresses in Internet routing tables, and compare the structures that do it
///
/// A routing table is a list of prefixes (blocks of addresses, such as 192.0.2.0/24), each with a next hop.
/// An address belongs to the longest prefix that contains it. fibula finds that prefix, for one address or
/// for millions a second, in tables of any size, IPv4 and IPv6 side by side.
#[derive(Debug, Parser)]
#[command(
    name = "fibula",
    version,
    styles = STYLES,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "\
Exit codes:
  0  done
  1  nothing found
  2  wrong use
  3  bad input, or a file that cannot be read or written

Examples:
  fibula lookup --table routes.txt 192.0.2.1 2001:db8::1
  fibula lookup --table rib.gz --format csv < addresses.txt
  fibula table stats rib.gz
  fibula algorithms

Environment:
  FIBULA_ISA  the instruction set to look up with, as --isa names it; one that this machine lacks
              is an error
  NO_COLOR    no colours

'fibula COMMAND --help' explains a command. To see what fibula does, in under a minute: fibula tour"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The tour as a program of its own, without the word `tour` in front.
#[derive(Debug, Parser)]
#[command(name = "tour", version, styles = STYLES, max_term_width = 100)]
pub(crate) struct TourCli {
    #[command(flatten)]
    pub(crate) tour: TourArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Lookup(LookupArgs),
    Route(crate::route::RouteArgs),
    Table(crate::table::TableArgs),
    Peers(crate::peers::PeersArgs),
    Algorithms(AlgorithmsArgs),
    Choose(crate::choose::ChooseArgs),
    Bench(crate::bench::BenchArgs),
    Tour(TourArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

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

/// List the lookup structures that fibula knows
///
/// Each is a way to find the longest matching prefix, with the paper it comes from, the address families
/// and instruction sets it has code for, and whether it follows changes of a table in place or is rebuilt.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula algorithms
  fibula algorithms --json
  fibula algorithms --markdown > docs/algorithms.md")]
pub(crate) struct AlgorithmsArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Print the list as a Markdown document
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub(crate) markdown: bool,
}

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

/// Print a script that completes fibula's words in a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula completions bash > ~/.local/share/bash-completion/completions/fibula
  fibula completions zsh > ~/.zfunc/_fibula
  fibula completions fish > ~/.config/fish/completions/fibula.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page of fibula or of one of its commands
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula man | man -l -
  fibula man lookup | man -l -
  fibula man --output ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The command whose page to print; without it, fibula's own
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub(crate) command: Option<String>,

    /// Write all pages into this folder, which is made where it does not exist, and print nothing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// A table, from one feed or from several.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// The routing table: MRT or text, plain or compressed; '-' is standard input. Repeated: several feeds become one
    /// table, by the rule of --best
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) table: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) feed: FeedArgs,
}

/// What of a feed is taken, and how.
// Neither MRT nor text names a VRF; a feed that does brings `--vrf NAME` here, and a field to `LoadOptions`, which is
// non-exhaustive.
#[derive(Debug, Args)]
pub(crate) struct FeedArgs {
    /// Take the routes of this peer, an address or an AS (AS64500); repeated: the best of theirs [default: of each
    /// family, the peer with most routes]
    #[arg(long, value_name = "PEER", help_heading = FEED)]
    pub(crate) peer: Vec<PeerName>,

    /// Take the best path over all peers: the shortest AS path where it is known, then the lowest peer address
    #[arg(long, conflicts_with = "peer", help_heading = FEED)]
    pub(crate) best: bool,

    /// Take the routes of this family only
    #[arg(long, value_enum, value_name = "FAMILY", help_heading = FEED)]
    pub(crate) family: Option<FamilyName>,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Most memory the table may take, and again each structure: bytes, or with K, M or G (powers of 1024)
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = FEED)]
    pub(crate) memory_limit: Option<usize>,
}

/// How a feed is read, whatever of it is taken.
#[derive(Debug, Args)]
pub(crate) struct ReadingArgs {
    /// Clear bits behind the prefix length in text (10.0.0.1/8 is 10.0.0.0/8) instead of refusing the line
    #[arg(long, help_heading = FEED)]
    mask: bool,

    /// Stop at the first bad line or record, and where a compressed file is damaged or ends early, instead of leaving out
    /// what cannot be read
    #[arg(long, help_heading = FEED)]
    strict: bool,
}

impl ReadingArgs {
    pub(crate) fn options(&self) -> LoadOptions {
        let mut options = LoadOptions::default();
        options.strict = self.strict;
        options.host_bits = if self.mask { HostBits::Mask } else { HostBits::Refuse };
        options
    }
}

const FEED: &str = "What of the table is taken";

impl FeedArgs {
    pub(crate) fn options(&self) -> LoadOptions {
        let mut options = self.reading.options();
        options.limits = Limits { memory_bytes: self.memory_limit, ..Limits::default() };
        options.family = self.family.map(FamilyName::family);
        options.selection = match (self.best, &self.peer[..]) {
            (true, _) => Selection::Best,
            (false, []) => Selection::MostRoutes,
            (false, peers) => Selection::Peers(peers.to_vec()),
        };
        options
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FamilyName {
    #[value(alias = "inet", alias = "4")]
    Ipv4,
    #[value(alias = "inet6", alias = "6")]
    Ipv6,
}

impl FamilyName {
    pub(crate) fn family(self) -> Family {
        match self {
            Self::Ipv4 => Family::Ipv4,
            Self::Ipv6 => Family::Ipv6,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Short for --format json
    #[arg(short = 'j', long, conflicts_with = "format")]
    json: bool,
}

impl OutputArgs {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

#[derive(Debug, Args)]
pub(crate) struct QuietArgs {
    /// No progress, no notes and no warnings on standard error; errors still appear
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// Comma-separated, with a header
    Csv,
    /// One JSON value
    Json,
    /// One JSON object a line
    JsonLine,
}

fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let wrong = || "a number of bytes is wanted, such as 500M".to_owned();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: usize = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
        TourCli::command().debug_assert();
    }

    #[test]
    fn sizes_take_a_unit() {
        assert_eq!(parse_size("0"), Ok(0));
        assert_eq!(parse_size("1000"), Ok(1000));
        assert_eq!(parse_size("3k"), Ok(3 << 10));
        assert_eq!(parse_size("500M"), Ok(500 << 20));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        for wrong in ["", "M", "-1", "+1", "1.5G", "5T", "1 M", "99999999999999999999", "17179869184G", "١"]
        {
            assert!(parse_size(wrong).is_err(), "{wrong:?}");
        }
    }
}
