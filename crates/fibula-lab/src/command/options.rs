//! The options that several of the programs share.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::Args;
use clap::builder::{StringValueParser, TypedValueParser};
use fibula::net::Family;
use fibula_cli::plumbing::{Failure, Messages, OPTIMISED, Suggested};
use fibula_workload::table::{PRESETS, hostile};
use fibula_workload::traffic;

use super::engines::engine;
use super::tables::Tables;

/// Keys by default.
const KEYS: u32 = if OPTIMISED { 1 << 20 } else { 1 << 14 };

/// The table to measure with.
#[derive(Debug, Args)]
pub(super) struct TableArgs {
    #[command(flatten)]
    pub(super) source: RouteSource,

    /// Add this many host routes at random addresses below routes of the table, and for IPv6 a tenth as many /126 and /127
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub(super) hosts: Option<u32>,

    /// Keep 1 in N routes, chosen at random, and remove the others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub(super) one_in: Option<u32>,
}

impl TableArgs {
    /// Returns the file of the table, if nothing of it is changed.
    pub(super) fn as_it_is(&self) -> Option<&PathBuf> {
        self.source.table.as_ref().filter(|_| self.hosts.is_none() && self.one_in.is_none())
    }

    /// Loads or generates the table, which has routes.
    pub(super) fn load(&self, messages: Messages) -> Result<Tables, Failure> {
        if !OPTIMISED {
            messages.note("this is a debug build, whose rates mean nothing; use 'cargo run --release'");
        }
        let mut tables = Tables::new(&self.source, messages)?;
        if let Some(one_in) = self.one_in {
            tables.keep_one_in(one_in as usize)?;
        }
        if let Some(hosts) = self.hosts {
            tables.add_hosts(hosts as usize)?;
        }
        if tables.families() == 0 {
            return Err(Failure::BadInput(format!(
                "{}: the table is empty, there is nothing to measure",
                tables.name
            )));
        }
        Ok(tables)
    }
}

/// How long to measure.
#[derive(Debug, Args)]
pub(super) struct EffortArgs {
    /// Timed runs of each engine
    #[arg(long, value_name = "NUMBER", default_value_t = 9, value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub(super) runs: u32,

    /// Total seconds for timed runs, shared by all contestants; building and checking are extra
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=86400))]
    seconds: u32,
}

impl EffortArgs {
    /// Returns the seconds for each of so many parts.
    pub(super) fn seconds_of(&self, parts: u32) -> f64 {
        f64::from(self.seconds) / f64::from(parts.max(1))
    }
}

/// How many keys to look up.
#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    /// Number of keys in each traffic [default: 1048576, or 16384 in a debug build]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(super) keys: Option<u32>,
}

impl KeysArgs {
    /// Returns the number of keys.
    pub(super) fn count(&self) -> usize {
        self.keys.unwrap_or(KEYS) as usize
    }
}

/// Which engines to measure, and whether those of others too.
#[derive(Debug, Args)]
pub(super) struct ContestantArgs {
    #[command(flatten)]
    pub(super) structures: StructureArgs,

    /// Also measure rivals: the tables of other projects. Those that are not installed are listed, and how to get them
    #[arg(long)]
    pub(super) rivals: bool,
}

/// Which engines to measure.
#[derive(Debug, Args)]
pub(super) struct StructureArgs {
    /// Measure only this engine (see 'fibula-lab engines') or rival; may be repeated [default: all engines]
    #[arg(short = 'a', long, value_name = "NAME", value_parser = engine(), hide_possible_values = true)]
    pub(super) engine: Vec<String>,
}

/// Returns these numbers, or others where there are none.
pub(super) fn or(numbers: &[u32], default: Vec<usize>) -> Vec<usize> {
    if numbers.is_empty() { default } else { numbers.iter().map(|&number| number as usize).collect() }
}

/// Where the routes come from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct RouteSource {
    /// The routing table; '-' is standard input
    #[arg(short, long, value_name = "FILE")]
    pub(super) table: Option<PathBuf>,

    /// Generate a table: of the Internet's shape (ipv4, ipv6-2025, ipv4-1m) or a hard one (ipv4-host-routes); '/ROUTES'
    /// sets its size, an unknown name lists all; may be repeated
    #[arg(long, value_name = "NAME", value_parser = synth(), hide_possible_values = true)]
    pub(super) synth: Vec<Synth>,
}

/// A table to make up.
#[derive(Debug, Clone)]
pub(super) struct Synth {
    /// A preset's name, or a family's and a hostile table's joined by '-'.
    pub(super) name: String,
    pub(super) family: Family,
    pub(super) routes: Option<usize>,
}

/// Returns all names that can be made up.
fn synth_names() -> Vec<&'static str> {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
        let ipv4 = hostile::tables::<u32>().into_iter().map(|table| format!("ipv4-{}", table.name));
        let ipv6 = hostile::tables::<u128>().into_iter().map(|table| format!("ipv6-{}", table.name));
        presets.chain(ipv4).chain(ipv6).collect()
    });
    names.iter().map(String::as_str).collect()
}

fn synth() -> impl TypedValueParser<Value = Synth> {
    Suggested { parser: parse_synth, names: synth_names }
}

/// The name of a kind of traffic.
pub(super) fn traffic() -> impl TypedValueParser<Value = String> {
    let names = || traffic::patterns::<u32>().iter().map(|pattern| pattern.name).collect();
    Suggested { parser: StringValueParser::new(), names }
}

fn parse_synth(text: &str) -> Result<Synth, String> {
    let (name, routes) = match text.split_once('/') {
        Some((name, routes)) => (name, Some(routes)),
        None => (text, None),
    };
    let names = synth_names();
    if !names.contains(&name) {
        return Err(format!("there are: {}", names.join(", ")));
    }
    let family = if name.starts_with("ipv6") { Family::Ipv6 } else { Family::Ipv4 };
    let wrong = |_| "expected a number of routes after the '/'".to_owned();
    let routes = routes.map(|routes| routes.parse::<u32>().map_err(wrong)).transpose()?;
    Ok(Synth { name: name.to_owned(), family, routes: routes.map(|routes| routes as usize) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_take_a_size() {
        let of = |text| parse_synth(text).map(|synth| (synth.family, synth.routes));
        assert_eq!(of("ipv4"), Ok((Family::Ipv4, None)));
        assert_eq!(of("ipv6/1000"), Ok((Family::Ipv6, Some(1000))));
        assert_eq!(of("ipv6-host-routes/10"), Ok((Family::Ipv6, Some(10))));
        assert!(synth_names().iter().all(|name| parse_synth(name).is_ok()));
        for wrong in ["", "ipv5", "ipv4/", "ipv4/x", "ipv4/-1", "ipv4/5000000000", "/5"] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
