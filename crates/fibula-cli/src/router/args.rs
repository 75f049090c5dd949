//! Options of `fibula router`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
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
