//! Options that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fibula::memory::Limits;
use fibula::net::{Family, HostBits};
use fibula_feed::{LoadOptions, PeerName, Selection};

/// The name of standard input, and of standard output.
pub(crate) const STDIN: &str = "-";

/// A table, from one feed or from several.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// The routing table: MRT or text, plain or compressed, or compiled; '-' is standard input. If repeated, the files become one
    /// table, with the best path for each prefix
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) table: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) feed: FeedArgs,
}

/// Which routes of a feed to use, and how to read it.
// Neither MRT nor text names a VRF. A format that does would add `--vrf NAME` here, and a field to `LoadOptions`, which
// is non-exhaustive.
#[derive(Debug, Default, Args)]
pub(crate) struct FeedArgs {
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

    /// Use the fewest routes that give every address the same next hop (ORTC)
    #[arg(long, help_heading = FEED)]
    pub(crate) aggregate: bool,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Memory limit for the table, and for each structure: bytes, or with K, M or G (powers of 1024)
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = FEED)]
    pub(crate) memory_limit: Option<usize>,
}

/// How to read a feed.
#[derive(Debug, Default, Args)]
pub(crate) struct ReadingArgs {
    /// Accept prefixes with host bits in text files: read 10.0.0.1/8 as 10.0.0.0/8
    #[arg(long, help_heading = FEED)]
    mask: bool,

    /// Stop at the first error (a bad line or MRT record, a damaged or truncated file) instead of skipping it
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

const FEED: &str = "Reading the table";

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
    /// Output format
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
    /// Print no progress, notes or warnings, only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// Comma-separated values with a header
    Csv,
    /// One JSON value
    Json,
    /// One JSON object on each line
    JsonLine,
}

fn parse_size(text: &str) -> Result<usize, String> {
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
