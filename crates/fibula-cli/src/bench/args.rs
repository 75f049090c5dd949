//! What `fibula bench` understands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fibula::net::Family;
use fibula_lab::table::{PRESETS, hostile};

use crate::machine::IsaArgs;
use crate::options::{OutputArgs, QuietArgs};

/// Measure lookup structures against each other over a table
///
/// Builds every structure over the table, checks its answers, and times it in turn with the others: the same
/// keys, at least five runs each, medians with the slowest and the fastest run. A speed means something only
/// beside others of the same run.
///
/// A structure is timed once for each instruction set that it has code for and this machine has. --isa restricts
/// everybody, rivals too, to that set and those within it: '--isa avx2' is what a machine without AVX-512 shows, '--isa
/// scalar' what one without vectors does.
///
/// Each timed run follows an untimed one over the same keys. One thread is timed by the time it had its core, several by
/// the wall's clock. The keys of the next batch are prefetched, everybody's.
///
/// Exits with 0 when every answer was right, with 1 when one was wrong. Structures that refuse the table are
/// named, with their reason. Wrong answers of rivals are counted and named, too, and leave the others' figures
/// what they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Traffic:
  rnd    uniform over routable IPv4 space, over announced IPv6 space
  match  a random address below a random prefix of the table
  seq    rnd, each lookup waiting for the answer of the one before
  ...    an unknown name lists all there are

Examples:
  fibula bench --table routes.txt.xz
  fibula bench --synth ipv4/900000 --traffic match --batch 256 --json
  fibula bench --synth ipv6 --algorithm radix --algorithm range-search --threads 1 --threads 2
  fibula bench -t routes.txt --algorithm dir-24-8 --rivals --batch 64
  fibula bench -t routes.txt --isa avx2 --threads 1 --threads 4
  fibula bench -t routes.txt --reach --rivals --seconds 300
  fibula bench -t routes.txt --addresses clients.txt --record records --svg rates.svg")]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(super) source: Source,

    /// Measure this structure only (see 'fibula algorithms'), or this rival; may be repeated [default: all]
    #[arg(short, long, value_name = "NAME")]
    pub(super) algorithm: Vec<String>,

    /// Measure what others have made, too: rivals that are present join, those that are absent are named. The variables
    /// FIBULA_PYTHON and FIBULA_GO name other commands than python3 and go, FIBULA_RIVALS a folder for compiled programs
    #[arg(long)]
    pub(super) rivals: bool,

    /// Measure with these keys only; may be repeated [default: all patterns]
    #[arg(long, value_name = "NAME")]
    pub(super) traffic: Vec<String>,

    /// Measure with the addresses of a file too, one a line, plain or compressed
    #[arg(long, value_name = "FILE")]
    pub(super) addresses: Option<PathBuf>,

    /// Keys a call, 1 for one by one; may be repeated [default: 1, 16, 64, 256 and 1024]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) batch: Vec<u32>,

    /// Threads that look up at the same time; may be repeated [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) threads: Vec<u32>,

    /// Form of the keys: integers of the machine, or bytes in network order as packets hold them, which are asked in
    /// batches and of structures of ours only; may be repeated [default: host]
    #[arg(long, value_enum, value_name = "FORM")]
    pub(super) order: Vec<KeyOrder>,

    #[command(flatten)]
    pub(super) isa: IsaArgs,

    /// Measure what the project is to reach over this table, and say what is met and what is missed; with --algorithm,
    /// as far as these structures tell
    #[arg(long, conflicts_with_all = ["traffic", "addresses", "threads", "order", "svg", "record"])]
    pub(super) reach: bool,

    /// Timed runs of each structure
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub(super) runs: u32,

    /// Different keys of each traffic [default: 1048576, 16384 when built without optimisation]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(super) keys: Option<u32>,

    /// Seconds to spend on timed runs in all, shared by the structures; building and checking come on top
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=86400))]
    pub(super) seconds: u32,

    /// Draw the rates as a bar chart; where there are several, family and traffic are added to the name
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,

    /// Keep the result in this folder, as MACHINE/TABLE.json
    #[arg(long, value_name = "DIR")]
    pub(super) record: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
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

    /// Make up a table: of the Internet's shape ('ipv4', 'ipv6-2025', 'ipv4-1m'; a wrong name lists all) or one that
    /// is hard to bear ('ipv4-host-routes'), with '/ROUTES' for another size; may be repeated
    #[arg(long, value_name = "NAME[/ROUTES]", value_parser = parse_synth)]
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

/// All names that can be made up.
fn synth_names() -> Vec<String> {
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    let ipv4 = hostile::tables::<u32>().into_iter().map(|table| format!("ipv4-{}", table.name));
    let ipv6 = hostile::tables::<u128>().into_iter().map(|table| format!("ipv6-{}", table.name));
    presets.chain(ipv4).chain(ipv6).collect()
}

fn parse_synth(text: &str) -> Result<Synth, String> {
    let (name, routes) = match text.split_once('/') {
        Some((name, routes)) => (name, Some(routes)),
        None => (text, None),
    };
    let names = synth_names();
    if !names.iter().any(|known| known == name) {
        return Err(format!("there are: {}", names.join(", ")));
    }
    let family = if name.starts_with("ipv6") { Family::Ipv6 } else { Family::Ipv4 };
    let wrong = |_| "a number of routes is wanted behind the '/'".to_owned();
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
