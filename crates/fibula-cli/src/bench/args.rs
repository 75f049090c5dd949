//! The options of `fibula bench`.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use fibula::net::Family;
use fibula_workload::table::{PRESETS, hostile};
use fibula_workload::traffic;

use crate::machine::IsaArgs;
use crate::options::{OutputArgs, QuietArgs};
use crate::suggested::{self, Suggested};

/// Measure and compare lookup structures on a table
///
/// Builds every structure from the table, checks its answers, and times all of them in turn with the same addresses:
/// at least five runs each, reported as median, slowest and fastest. Compare rates only within one run.
///
/// Not everything is timed in every way, so that a full record of one family takes at most half an hour on two cores. A
/// structure is timed with each instruction set that it supports and this machine has in batches of 256, and in other
/// batches with the set that was the fastest there. Further orders of keys and larger key sets are timed in batches of 32
/// and 256, further numbers of threads in batches of 256. Oracles, and rivals other than DPDK and PlanB, are timed with
/// single keys and in batches of 256 only. Larger key sets are for our structures and those that they are compared with:
/// DPDK's, DIR-24-8, DXR as published, PlanB and Poptrie; and for those that --algorithm names. Without batches of 256, the largest ones are taken. An estimate
/// of the time is printed first.
///
/// --isa limits all contestants, rivals included, to one set and those below it: '--isa avx2' shows a machine without
/// AVX-512, '--isa scalar' one without vector instructions.
///
/// Each timed run follows an untimed one over the same keys. One thread is timed by its own CPU time, several by wall
/// time. The keys of the next batch are prefetched for our structures and DPDK's, by their own kernels if these do so.
///
/// Structures that cannot hold the table are listed with the reason. Wrong answers of a rival are counted and reported;
/// they do not change the exit code.
#[derive(Debug, Args)]
#[command(after_help = "\
Traffic:
  rnd    random addresses of the routable IPv4 space, or of the announced IPv6 space
  match  a random address of a random prefix of the table
  seq    like rnd, but each lookup waits for the answer of the one before
  mix:70 70 % of the addresses match, in random order, and the rest match nothing but a default route: mix:0 to mix:100
  ...    an unknown name lists all

Structures with parameters (--algorithm):
  bloomfwd:FILTER+TABLE:RATIO  IPv4: hash functions murmur, knuth or h2, and a false-positive ratio in percent: 1, 5,
                               10, 15 and so on to 60, or 90
  bloom-naive:RATIO            the same ratios
  bloomfwd-CHOICE:LEVELS       IPv6: levels chosen by greedy, exact or capture, 2 to 8 of them

Exit codes:
  0  every structure answered correctly
  1  a structure gave a wrong answer
  2  wrong use
  3  the table cannot be read, or an output cannot be written
  4  this machine lacks the instruction set or the device, or the rival named by --algorithm is not installed

Environment:
  FIBULA_PYTHON  the Python interpreter for rivals in Python [default: python3]
  FIBULA_GO      the Go command for rivals in Go [default: go]
  FIBULA_RIVALS  the folder for compiled rivals [default: ~/.cache/fibula/rivals]

Examples:
  fibula bench --table routes.txt.xz
  fibula bench --synth ipv4/900000 --traffic match --batch 256 --json
  fibula bench --synth ipv6 --algorithm radix --algorithm range-search --threads 1 --threads 2
  fibula bench -t routes.txt --algorithm dir-24-8 --rivals --batch 64
  fibula bench -t routes.txt --isa avx2 --threads 1 --threads 4
  fibula bench -t routes.txt --algorithm bloomfwd:h2+h2:30 --algorithm bloomfwd:murmur+h2:5 --traffic mix:80
  fibula bench -t routes.txt --algorithm bloomfwd --algorithm miht --traffic rnd --many-keys 67108864 --batch 256
  fibula bench -t routes.txt --reach --rivals --seconds 300
  fibula bench -t routes.txt --updates --trace updates.gz --rivals
  fibula bench -t routes.txt --schedule --chunk 1 --chunk 256 --reserve-core
  fibula bench -t routes.txt --device --algorithm bloomfwd --buffer 65536 --buffer 2097152
  fibula bench -t routes.txt --html rates.html
  fibula bench -t routes.txt --addresses clients.txt --record records --svg rates.svg")]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(super) source: Source,

    /// Add this many host routes at random addresses below routes of the table, and for IPv6 a tenth as many /126 and /127
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub(super) hosts: Option<u32>,

    /// Keep one in so many of the routes, chosen at random, and remove the others
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub(super) one_in: Option<u32>,

    /// Measure only this structure (see 'fibula algorithms') or rival; may be repeated [default: all structures]
    #[arg(short, long, value_name = "NAME", value_parser = suggested::structure(), hide_possible_values = true)]
    pub(super) algorithm: Vec<String>,

    /// Also measure rivals: the tables of other projects. Those that are not installed are listed, and how to get them
    #[arg(long)]
    pub(super) rivals: bool,

    /// Measure only this traffic; may be repeated [default: all]
    #[arg(long, value_name = "NAME", value_parser = traffic(), hide_possible_values = true)]
    pub(super) traffic: Vec<String>,

    /// Also measure with the addresses in this file, one a line, plain or compressed
    #[arg(long, value_name = "FILE")]
    pub(super) addresses: Option<PathBuf>,

    /// Addresses in each call; 1 for single lookups; may be repeated [default: 1, 8, 16, 32, 64, 256
    /// and 1024]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) batch: Vec<u32>,

    /// Threads that look up at the same time; may be repeated [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) threads: Vec<u32>,

    /// Byte order of the keys: host integers, or network order as in packets (in batches, without rivals); may be repeated
    /// [default: host]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(super) order: Vec<KeyOrder>,

    #[command(flatten)]
    pub(super) isa: IsaArgs,

    /// Measure the project's performance targets on this table, and say which are met; with --algorithm, only for these
    /// structures
    #[arg(long, conflicts_with_all = ["traffic", "addresses", "threads", "order", "many_keys", "svg", "record"])]
    pub(super) reach: bool,

    /// Measure what changes of this table cost: by prefix length, by the number of changes in a call and over a recorded
    /// trace; building a million routes (--keys for another number); and what readers lose meanwhile
    #[arg(long, conflicts_with_all = ["reach", "traffic", "addresses", "threads", "order", "many_keys", "svg"])]
    pub(super) updates: bool,

    /// Updates of any peers, MRT or text, that --updates follows with the best routes
    #[arg(long, value_name = "FILE", requires = "updates", conflicts_with_all = ["synth", "hosts"])]
    pub(super) trace: Option<PathBuf>,

    /// Measure ways to divide the addresses among threads: shares, chunks that free threads take, or a data-parallel run-time;
    /// of all structures, with as many threads as there are cores unless --threads says otherwise; may be repeated
    #[arg(long, value_enum, value_name = "WAY", num_args = 0..=1, require_equals = true, default_missing_value = "all",
        conflicts_with_all = ["reach", "updates", "addresses", "order", "many_keys", "every_isa", "svg"])]
    pub(super) schedule: Vec<Schedule>,

    /// Addresses that a thread takes at once with --schedule; may be repeated [default: 1, 16, 256 and 4096]
    #[arg(long, value_name = "NUMBER", requires = "schedule", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) chunk: Vec<u32>,

    /// Leave a core to the thread that manages the others of --schedule
    #[arg(long, requires = "schedule")]
    pub(super) reserve_core: bool,

    /// Measure lookups on coprocessors (cuda:0, opencl, any), on the processor and on both together, with all transfers;
    /// without a name, on all that are there
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "all",
        conflicts_with_all = ["reach", "updates", "schedule", "addresses", "order", "many_keys", "every_isa", "batch", "svg", "html"])]
    pub(super) device: Option<String>,

    /// Addresses that are sent to a --device at once; may be repeated [default: 4096, 65536, 1048576 and 2097152]
    #[arg(long, value_name = "NUMBER", requires = "device", value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub(super) buffer: Vec<u32>,

    /// Timed runs of each structure
    #[arg(long, value_name = "NUMBER", default_value_t = 9, value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub(super) runs: u32,

    /// Number of keys in each traffic [default: 1048576, or 16384 in a debug build]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(super) keys: Option<u32>,

    /// Time every instruction set in all batches, not only in those of 256
    #[arg(long)]
    pub(super) every_isa: bool,

    /// Also look up this many keys, a set too large for caches, in RND, MATCH and ZIPF and in batches of 32 and 256
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..=1 << 28))]
    pub(super) many_keys: Option<u32>,

    /// Total seconds for timed runs, shared by all contestants; building and checking are extra
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=86400))]
    pub(super) seconds: u32,

    /// Draw the rates as a bar chart; if there are several charts, family and traffic are added to the name
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,

    /// Write the result to this file as a page of HTML with charts, which needs no other file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reach", "updates", "schedule"])]
    pub(super) html: Option<PathBuf>,

    /// Save the result in this folder as MACHINE/TABLE.json
    #[arg(long, value_name = "DIR")]
    pub(super) record: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Schedule {
    /// Every way
    All,
    /// Each thread has a share of its own
    Static,
    /// A thread that is free takes the next chunk
    Dynamic,
    /// Chunks for the threads of rayon, a data-parallel run-time
    Rayon,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum KeyOrder {
    Host,
    Network,
}

/// Where the routes come from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Source {
    /// The routing table; '-' is standard input
    #[arg(short, long, value_name = "FILE")]
    pub(super) table: Option<PathBuf>,

    /// Generate a table: of the Internet's shape (ipv4, ipv6-2025, ipv4-1m) or a hard one (ipv4-host-routes); '/ROUTES'
    /// sets its size, an unknown name lists all; may be repeated
    #[arg(long, value_name = "NAME[/ROUTES]", value_parser = synth(), hide_possible_values = true)]
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

fn traffic() -> impl TypedValueParser<Value = String> {
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
