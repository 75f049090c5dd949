//! Options that several commands share.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use fibula::memory::Limits;
use fibula::net::{Family, HostBits};
use fibula_feed::{
    AsPathPattern, CommunityPattern, Filter, LoadOptions, PeerName, Selection, TableForm, TableOrder, Value,
    asn,
};

use crate::failure::Failure;
use crate::suggested;
use crate::time;

/// The name of standard input, and of standard output.
pub(crate) const STDIN: &str = "-";

/// A table, from one feed or from several.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// The routing table: MRT or text, plain or compressed, or compiled; a folder of MRT files; a URL, which curl reads; '-' is
    /// standard input. If repeated, the files become one table (--merge)
    #[arg(short, long, value_name = "FILE", required = table_variable().is_empty(), default_values_os = table_variable())]
    pub(crate) table: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) feed: FeedArgs,
}

/// The environment variable for `--table`; the option takes precedence.
const FIBULA_TABLE: &str = "FIBULA_TABLE";

/// Returns the table that the environment names, if it names one.
fn table_variable() -> Vec<&'static OsStr> {
    static TABLE: OnceLock<Option<OsString>> = OnceLock::new();
    let table = TABLE.get_or_init(|| std::env::var_os(FIBULA_TABLE).filter(|name| !name.is_empty()));
    table.as_deref().into_iter().collect()
}

/// Tables of commands that take neither addresses nor prefixes: their names may stand alone.
#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// The table; '-' is standard input. Several files become one table, with the best path for each prefix [default: what
    /// FIBULA_TABLE names]
    #[arg(value_name = "TABLE", conflicts_with = "table")]
    files: Vec<PathBuf>,

    /// The table, as other commands take it
    #[arg(short, long, value_name = "FILE")]
    table: Vec<PathBuf>,
}

impl FilesArgs {
    /// Returns the tables, at least one.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, Failure> {
        let named = if self.files.is_empty() { &self.table } else { &self.files };
        if !named.is_empty() {
            return Ok(named.clone());
        }
        let variable: Vec<PathBuf> = table_variable().into_iter().map(PathBuf::from).collect();
        if variable.is_empty() {
            return Err(Failure::WrongUse(format!(
                "no table: name its file, or set {FIBULA_TABLE}; to generate one: fibula table synth ipv4 --output routes.txt"
            )));
        }
        Ok(variable)
    }
}

/// How several files become one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Merge {
    /// The best path of each prefix: the shorter AS path, the lower peer address, the earlier file
    #[default]
    BestPath,
    /// The latest table dump, and the updates after it in order of time
    Replay,
}

/// Which of several tables counts where they have the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Order {
    /// The best path; a table without peers before tables with peers, so that own prefixes override a full table
    #[default]
    BestPath,
    /// The later table
    LaterWins,
    /// The earlier table
    FirstWins,
    /// The earlier table; all routes are taken, and the longest prefix answers
    MoreSpecific,
}

/// Which routes of a feed to use, and how to read it.
#[derive(Debug, Default, Args)]
pub struct FeedArgs {
    /// Use the routes of this peer, an address or an AS (AS64500); if repeated, the best path of these peers [default: for
    /// each family, the peer with the most routes]
    #[arg(long, value_name = "PEER", help_heading = FEED)]
    pub(crate) peer: Vec<PeerName>,

    /// Use the best path of all peers: the shortest AS path if known, then the lowest peer address
    #[arg(long, conflicts_with = "peer", help_heading = FEED)]
    pub(crate) best: bool,

    /// Use only the routes of this family
    #[arg(long, value_enum, value_name = "FAMILY", help_heading = FEED)]
    pub(crate) family: Option<FamilyName>,

    /// Take these values of routes: next-hop, origin-as, as-path, peer, peer-as, communities, age or since (of MRT and bgpdump),
    /// rpki (the state of origin validation, with --vrps), or the name of a column. If repeated, or with commas, several. Answers, CSV and JSON have them after the next hop; where a
    /// route has one value (text, compiled tables, statistics), they take its place
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = suggested::value(), hide_possible_values = true, help_heading = FEED)]
    pub(crate) value: Vec<Value>,

    /// Validated ROA payloads for the value 'rpki': an export of routinator, rpki-client or RIPE, as CSV or JSON, plain or
    /// compressed; may be repeated
    #[arg(long, value_name = "FILE", help_heading = FEED)]
    pub(crate) vrps: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,

    /// How several files become one table; a folder is replayed always. With --at TIME a replay gives the table at that time
    #[arg(long, value_enum, value_name = "RULE", default_value_t, help_heading = FEED)]
    pub(crate) merge: Merge,

    /// Use the fewest routes that give every address the same next hop (ORTC)
    #[arg(long, help_heading = FEED)]
    pub(crate) aggregate: bool,

    /// Which table counts where several have the same prefix
    #[arg(long, value_enum, value_name = "ORDER", default_value_t, help_heading = FEED)]
    pub(crate) table_order: Order,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Memory limit for the table, and for each engine: bytes, or with K, M or G (powers of 1024)
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = FEED)]
    pub(crate) memory_limit: Option<usize>,
}

/// Which routes of a feed to take.
#[derive(Debug, Default, Args)]
pub(crate) struct FilterArgs {
    /// Take only routes that this AS announces; may be repeated
    #[arg(long, value_name = "AS", value_parser = parse_as, help_heading = FILTER)]
    origin_as: Vec<u32>,

    /// Take only routes whose AS path matches this regular expression, in which '_' is any boundary: '_64500_', '^64500 '
    #[arg(long, value_name = "REGEX", help_heading = FILTER)]
    as_path: Option<AsPathPattern>,

    /// Take only routes with this community, such as 64500:7, 64500:*, 64500:7:8 or no-export; may be repeated
    #[arg(long, value_name = "COMMUNITY", help_heading = FILTER)]
    community: Vec<CommunityPattern>,

    /// Take only the routes of peers in this AS; the best path, if there are several
    #[arg(long, value_name = "AS", value_parser = parse_as, conflicts_with = "best", help_heading = FILTER)]
    peer_as: Vec<u32>,

    /// Read only records of this time or later: seconds since 1970, or UTC as 2024-01-31T12:00:00
    #[arg(long, value_name = "TIME", value_parser = time::parse, help_heading = FILTER)]
    from: Option<u32>,

    /// Read only records of this time or earlier
    #[arg(long, visible_alias = "at", value_name = "TIME", value_parser = time::parse, help_heading = FILTER)]
    until: Option<u32>,
}

impl FilterArgs {
    fn filter(&self) -> Filter {
        let mut filter = Filter::default();
        filter.origin_as.clone_from(&self.origin_as);
        filter.as_path.clone_from(&self.as_path);
        filter.communities.clone_from(&self.community);
        (filter.from, filter.until) = (self.from, self.until);
        filter
    }

    /// Returns whether no route is left out.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { origin_as, as_path, community, peer_as, from, until } = self;
        origin_as.is_empty()
            && as_path.is_none()
            && community.is_empty()
            && peer_as.is_empty()
            && from.is_none()
            && until.is_none()
    }
}

fn parse_as(text: &str) -> Result<u32, String> {
    asn(text).ok_or_else(|| "expected an AS number, such as 64500, AS64500 or 1.10".to_owned())
}

/// How to read a feed.
#[derive(Debug, Default, Args)]
pub(crate) struct ReadingArgs {
    /// Accept prefixes with host bits in text files: read 10.0.0.1/8 as 10.0.0.0/8
    #[arg(long, help_heading = FEED)]
    mask: bool,

    /// Read text tables in this form, whatever their first 64 KiB look like
    #[arg(long, value_name = "NAME", value_parser = form_names(), help_heading = FEED)]
    table_format: Option<String>,

    /// The column with the prefix, by its name, or by its number from 1 in a table without a header
    #[arg(long, value_name = "NAME", conflicts_with_all = ["start_column", "end_column"], help_heading = FEED)]
    prefix_column: Option<String>,

    /// The column with the first address of a range
    #[arg(long, value_name = "NAME", requires = "end_column", help_heading = FEED)]
    start_column: Option<String>,

    /// The column with the last address of a range
    #[arg(long, value_name = "NAME", requires = "start_column", help_heading = FEED)]
    end_column: Option<String>,

    /// The columns that a route leads to, in place of the next hop; with commas, several
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = FEED)]
    value_columns: Vec<String>,

    /// Read compressed tables that give more than 2,000 bytes for one of their own
    #[arg(long, help_heading = FEED)]
    any_ratio: bool,

    /// The VRF of a router, or its table, whose routes are used [default: the default one]
    #[arg(long, value_name = "NAME", help_heading = FEED)]
    pub(crate) vrf: Option<String>,

    /// Stop at the first error (a bad line or MRT record, a damaged or truncated file, a row without an address) instead of
    /// skipping it
    #[arg(long, help_heading = FEED)]
    strict: bool,
}

impl ReadingArgs {
    pub(crate) fn options(&self) -> LoadOptions {
        let mut options = LoadOptions::default();
        options.strict = self.strict;
        options.host_bits = if self.mask { HostBits::Mask } else { HostBits::Refuse };
        options.form = self.table_format.as_deref().and_then(TableForm::named);
        options.columns.prefix.clone_from(&self.prefix_column);
        options.columns.first.clone_from(&self.start_column);
        options.columns.last.clone_from(&self.end_column);
        options.columns.values.clone_from(&self.value_columns);
        options.vrf = self.vrf.as_deref().map(Into::into);
        options.any_ratio = self.any_ratio;
        options
    }
}

/// Returns the names of the forms that a text table may have.
fn form_names() -> PossibleValuesParser {
    let forms = TableForm::ALL.iter().filter(|form| form.is_text());
    PossibleValuesParser::new(forms.map(|form| form.name))
}

const FEED: &str = "Reading the table";
const FILTER: &str = "Choosing routes";

impl FeedArgs {
    pub(crate) fn options(&self) -> LoadOptions {
        let mut options = self.reading.options();
        options.limits = Limits { memory_bytes: self.memory_limit, ..Limits::default() };
        options.family = self.family.map(FamilyName::family);
        let mut peers = self.peer.clone();
        peers.extend(self.filter.peer_as.iter().map(|&asn| PeerName::As(asn)));
        options.selection = match (self.best, &peers[..]) {
            (true, _) => Selection::Best,
            (false, []) => Selection::MostRoutes,
            (false, _) => Selection::Peers(peers),
        };
        options.values.clone_from(&self.value);
        options.order = match self.table_order {
            Order::BestPath => TableOrder::BestPath,
            Order::LaterWins => TableOrder::LaterWins,
            Order::FirstWins => TableOrder::FirstWins,
            Order::MoreSpecific => TableOrder::MoreSpecific,
        };
        options.filter = self.filter.filter();
        options
    }

    /// Returns whether anything that is misread is an error.
    pub(crate) fn is_strict(&self) -> bool {
        self.reading.strict
    }

    /// Returns the values that are columns after the next hop: those that were requested, without the next hop itself.
    pub(crate) fn columns(&self) -> Vec<Value> {
        let mut columns: Vec<Value> = Vec::new();
        for value in &self.value {
            if *value != Value::NextHop && !columns.contains(value) {
                columns.push(value.clone());
            }
        }
        columns
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

/// The format of the output.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Short for --format json
    #[arg(short = 'j', long, conflicts_with = "format")]
    json: bool,
}

impl OutputArgs {
    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// Whether notes and warnings are printed.
#[derive(Debug, Args)]
pub struct QuietArgs {
    /// Print no progress, notes or warnings, only errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// A format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// Comma-separated values with a header
    Csv,
    /// One JSON value
    Json,
    /// One JSON object on each line
    JsonLine,
}

pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let wrong = || "expected a number of bytes, such as 500M".to_owned();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: usize = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

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
