//! Options of `fibula router`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use fibula_router::api::TopBy;
use fibula_router::config::SOCKET;

use crate::options::QuietArgs;

/// Forward packets between the interfaces of this machine (Linux)
///
/// With --config, forwards until SIGTERM or SIGINT; SIGHUP reads the configuration again. Needs root, or the capabilities
/// CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF. The other commands talk to a router that runs, or prepare one.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Exit codes:
  0  the router ended in order
  2  wrong use
  3  the configuration is wrong, or the router cannot start
  4  not available on this machine

Examples:
  fibula router demo
  fibula router check router.toml
  fibula router --config router.toml
  fibula router stats
  fibula router drops --watch"
)]
pub struct RouterArgs {
    #[command(subcommand)]
    pub(super) command: Option<RouterCommand>,

    /// The configuration, in TOML
    #[arg(long, value_name = "FILE", required = true)]
    pub(super) config: Option<PathBuf>,

    /// Do not start while a device of the configuration is missing; otherwise it is taken up when it comes
    #[arg(long)]
    pub(super) require_devices: bool,

    /// Take over the router that runs with the same control socket, without a gap; start as usual if there is none
    #[arg(long)]
    pub(super) takeover: bool,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

/// The properties that samples are added up by.
const PROPERTIES: [&str; TopBy::ALL.len()] = {
    let mut names = [""; TopBy::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = TopBy::ALL[at].name();
        at += 1;
    }
    names
};

#[derive(Debug, Subcommand)]
pub(super) enum RouterCommand {
    Check(CheckArgs),
    /// Show the counters of each port
    Stats(RouterShowArgs),
    /// Show why packets were dropped, and what to do about it
    Drops(RouterShowArgs),
    /// Show the neighbours and their MAC addresses
    Neigh(RouterShowArgs),
    /// Show the feeds of routes: their state, rates and last error
    Feeds(RouterShowArgs),
    /// Show the rules for packets and how many packets each was about
    Filters(RouterShowArgs),
    /// Show the sessions of BFD, and which neighbours are not used because theirs failed
    Bfd(RouterShowArgs),
    Explain(RouterExplainArgs),
    Trace(RouterTraceArgs),
    Top(RouterTopArgs),
    Verify(RouterVerifyArgs),
    /// Say what this machine lacks for a router, and what to do about it
    Doctor(RouterDoctorArgs),
    Demo(DemoArgs),
}

/// Check a configuration without using it
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The configuration, in TOML
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}

/// Options of the commands that talk to a router.
#[derive(Debug, Args)]
pub(super) struct RouterShowArgs {
    /// The control socket of the router; --router=PATH is the same
    #[arg(long, alias = "router", value_name = "PATH", default_value = SOCKET)]
    pub(super) socket: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Show again every second, until interrupted
    #[arg(long)]
    pub(super) watch: bool,
}

/// Explain where a packet that comes by an interface would go, and why, without sending it
///
/// Prints the steps of the packet: interface, VRF, route, rule, next hop, neighbour and the way out, or the reason for which it is
/// dropped and the advice for it. The packet has a TTL of 64; TCP begins a connection, and ICMP is a ping.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  the packet is forwarded, delivered or answered, or waits for its neighbour
  1  the packet is dropped
  2  wrong use
  3  no router answers, or it has no such interface

Examples:
  fibula router explain 192.0.2.9 198.51.100.1 --in lan
  fibula router explain 192.0.2.9 198.51.100.1 --in lan --protocol tcp --dport 443")]
pub(super) struct RouterExplainArgs {
    /// The source address
    #[arg(value_name = "SRC")]
    pub(super) source: IpAddr,

    /// The destination address
    #[arg(value_name = "DST")]
    pub(super) destination: IpAddr,

    /// The interface on which the packet comes
    #[arg(long = "in", value_name = "INTERFACE")]
    pub(super) input: String,

    /// The protocol, by name or number; tcp with a port, else icmp or icmpv6
    #[arg(long, value_name = "P")]
    pub(super) protocol: Option<String>,

    /// The source port
    #[arg(long, value_name = "N")]
    pub(super) sport: Option<u16>,

    /// The destination port
    #[arg(long, value_name = "N")]
    pub(super) dport: Option<u16>,

    /// The code point of differentiated services, by name or number
    #[arg(long, value_name = "N", default_value = "0")]
    pub(super) dscp: String,

    /// The control socket of the router; --router=PATH is the same
    #[arg(long, alias = "router", value_name = "PATH", default_value = SOCKET)]
    pub(super) socket: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Show where packets go as they come, and why
///
/// Prints the steps of each of the first packets that FILTER matches, as `explain` does. FILTER has the form of a rule's condition:
/// `any` (the default), or tests such as `source 192.0.2.0/24 protocol tcp destination-port 443`. Each thread traces at most 200 packets a
/// second; the last line says how many were left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  packets were traced
  1  no packet matched
  2  wrong use
  3  no router answers, another trace runs, or the filter is wrong

Examples:
  fibula router trace
  fibula router trace destination 198.51.100.1 protocol tcp --count 3")]
pub(super) struct RouterTraceArgs {
    /// Which packets
    #[arg(value_name = "FILTER")]
    pub(super) filter: Vec<String>,

    /// Most packets
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) count: u64,

    /// Most seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) seconds: u64,

    /// The control socket of the router; --router=PATH is the same
    #[arg(long, alias = "router", value_name = "PATH", default_value = SOCKET)]
    pub(super) socket: PathBuf,

    /// Print JSON, a line for each packet
    #[arg(long)]
    pub(super) json: bool,
}

/// Show which packets are most, by AS, prefix, interface, address or rule
///
/// Estimates the packets and bits a second from the packets that the router samples ('[sampling]' in its configuration), with the
/// error of each estimate: in 95 of 100 cases the truth is within it. With --by rule, from the counters of rules, which are exact and need no
/// samples. Shows the last seconds again and again, until interrupted.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  samples were shown
  2  wrong use
  3  no router answers, it samples nothing, nothing says which AS an address has, or there are no rules

Examples:
  fibula router top
  fibula router top --by interface --once
  fibula router top --by rule --once
  fibula router top --by as --table rib.gz --count 20")]
pub(super) struct RouterTopArgs {
    /// What packets are added up by
    #[arg(long, value_name = "PROPERTY", default_value = "prefix", value_parser = PossibleValuesParser::new(PROPERTIES))]
    pub(super) by: String,

    /// Most rows
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub(super) count: u64,

    /// Seconds that are shown together, and between two tables
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) interval: u64,

    /// Show once, and end
    #[arg(long)]
    pub(super) once: bool,

    /// For --by as and source-as: a table that says which AS announces a prefix, in place of the router's
    #[arg(long, value_name = "FILE")]
    pub(super) table: Option<PathBuf>,

    /// The control socket of the router; --router=PATH is the same
    #[arg(long, alias = "router", value_name = "PATH", default_value = SOCKET)]
    pub(super) socket: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Compare the RIB, the tables that packets are looked up in and the kernel's tables
///
/// Names every prefix about which two of them differ: the routes that are to be used (RIB), what the tables have (FIB), what lookups
/// find, and, with a feed of kind 'kernel', what the kernel's tables say now. A change that is under way is no difference.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  nothing differs
  1  something differs, or could not be compared
  2  wrong use
  3  no router answers")]
pub(super) struct RouterVerifyArgs {
    /// The control socket of the router; --router=PATH is the same
    #[arg(long, alias = "router", value_name = "PATH", default_value = SOCKET)]
    pub(super) socket: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Compare again every second, until interrupted or something differs
    #[arg(long)]
    pub(super) watch: bool,
}

/// Options of the doctor.
#[derive(Debug, Args)]
pub(super) struct RouterDoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Forward between two hosts in network namespaces, and show it (root)
///
/// Makes two hosts and a router between them, loads a table, sends pings of both families through the router, and shows its counters. All of it
/// is removed at the end, also when interrupted.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}
