//! Options of `fibula route`.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgGroup, Args, Subcommand};
use fibula::net::{HostBits, IpPrefix};

use crate::answer::AnswerArgs;
use crate::lookup::LookupArgs;
use crate::options::{QuietArgs, SourceArgs};

/// Show routes, or find the route of an address
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula route show --table routes.txt 192.0.2.0/24 --include-sub
  fibula route get --table routes.txt 192.0.2.1")]
pub(crate) struct RouteArgs {
    #[command(subcommand)]
    pub(super) command: RouteCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum RouteCommand {
    Show(Box<ShowArgs>),
    Get(Box<GetArgs>),
}

/// Find the route of each address, as 'fibula lookup' does
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: as those of 'fibula lookup'

Examples:
  fibula route get --table rib.gz 193.0.6.139
  fibula route get --table rib.gz --all-peers 193.0.6.139
  fibula route get --router 193.0.6.139")]
#[command(mut_arg("table", table_or_router), mut_args(not_with_lookups))]
pub(super) struct GetArgs {
    /// Show the paths of all peers for the longest matching prefix, the best one first
    #[arg(long, conflicts_with_all = ["peer", "best", "stats", "engine", "file", "column"])]
    pub(super) all_peers: bool,

    #[command(flatten)]
    pub(super) router: RouterTarget,

    #[command(flatten)]
    pub(super) lookup: LookupArgs,
}

/// Options of tables, which a router is not.
const TABLE: [&str; 20] = [
    "table",
    "all_peers",
    "peer",
    "best",
    "family",
    "value",
    "origin_as",
    "as_path",
    "community",
    "peer_as",
    "from",
    "until",
    "aggregate",
    "mask",
    "strict",
    "memory_limit",
    "table_format",
    "prefix_column",
    "start_column",
    "value_columns",
];

/// A router that runs, instead of a table.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new(RUNNING).args(["router", "socket"]))]
pub(super) struct RouterTarget {
    /// Query the router that runs, at its control socket, instead of reading a table [default: /run/fibula/router.sock]
    #[arg(
        long,
        value_name = "SOCKET",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = fibula_router::config::SOCKET,
        conflicts_with_all = TABLE,
        help_heading = ROUTER
    )]
    router: Option<PathBuf>,

    /// Query the router that runs, at this control socket, as --router=PATH does
    #[arg(long, value_name = "PATH", conflicts_with_all = TABLE, help_heading = ROUTER)]
    socket: Option<PathBuf>,

    /// Also show the last changes of the routes: when, by which feed, and where they led
    #[arg(long, requires = RUNNING, help_heading = ROUTER)]
    pub(super) changes: bool,
}

impl RouterTarget {
    /// Returns the control socket of the router; `None`: a table is read.
    pub(super) fn socket(&self) -> Option<&Path> {
        self.router.as_deref().or(self.socket.as_deref())
    }
}

/// The options that name a router.
const RUNNING: &str = "running";

fn not_with_lookups(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "router" | "socket" => arg.conflicts_with_all([
            "file",
            "column",
            "output",
            "engine",
            "stats",
            "threads",
            "isa",
            "v4_mapped",
        ]),
        _ => arg,
    }
}

/// A router takes the place of the table, which the environment may name.
fn table_or_router(table: Arg) -> Arg {
    let named = !table.get_default_values().is_empty();
    if named { table } else { table.required(false).required_unless_present(RUNNING) }
}

const ROUTER: &str = "Querying a router";

/// Show the routes of prefixes, and of those that contain them or lie inside them
///
/// Without prefixes, shows all routes. A prefix without a length is a single address. Each route is shown once, in address
/// order.
#[derive(Debug, Args)]
#[command(mut_arg("table", table_or_router))]
#[command(after_help = "\
Exit codes:
  0  at least one route was found
  1  no route was found
  2  wrong use
  3  a line of the prefix file is not a prefix, or a file cannot be read

Examples:
  fibula route show --table rib.gz 193.0.0.0/21
  fibula route show --table rib.gz 193.0.0.0/8 --include-sub --format csv
  fibula route show --router 193.0.0.0/8 --include-sub
  fibula route show --router --feed zebra
  fibula route show --router 193.0.0.0/21 --changes
  fibula route show --table rib.gz --prefix-file mine.txt --include-super --include-sub")]
pub(super) struct ShowArgs {
    /// Prefixes to show [default: all routes]
    #[arg(value_name = "PREFIX", value_parser = prefix)]
    pub(super) prefixes: Vec<IpPrefix>,

    /// Also show the prefixes in this file, one a line, plain or compressed; '#' starts a comment
    #[arg(long, value_name = "FILE")]
    pub(super) prefix_file: Option<PathBuf>,

    /// Show the routes of exactly these prefixes (the default)
    #[arg(long, conflicts_with_all = ["include_super", "include_sub"])]
    pub(super) exact_match: bool,

    /// Also show the routes that contain a prefix
    #[arg(long)]
    pub(super) include_super: bool,

    /// Also show the routes inside a prefix
    #[arg(long)]
    pub(super) include_sub: bool,

    /// Show the paths of all peers for each prefix, the best one first
    #[arg(long, conflicts_with_all = ["peer", "best"])]
    pub(super) all_peers: bool,

    #[command(flatten)]
    pub(super) router: RouterTarget,

    /// Only show the routes that are used of this feed
    #[arg(long, value_name = "NAME", requires = RUNNING, help_heading = ROUTER)]
    pub(super) feed: Option<String>,

    #[command(flatten)]
    pub(super) source: SourceArgs,

    #[command(flatten)]
    pub(super) output: AnswerArgs,

    #[command(flatten)]
    pub(super) quiet: QuietArgs,
}

fn prefix(text: &str) -> Result<IpPrefix, String> {
    IpPrefix::parse(text.as_bytes(), HostBits::Refuse).map_err(|error| error.to_string())
}
