//! `fibula route`: single routes and prefixes, in the words of iproute2.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use fibula::net::{HostBits, IpPrefix, Key, Prefix, Route};
use fibula::rib::Rib;
use fibula_feed::compression::Decompressor;

use crate::all_peers;
use crate::failure::{Failure, code};
use crate::load;
use crate::lookup;
use crate::lookup::LookupArgs;
use crate::messages::Messages;
use crate::options::{Format, OutputArgs, QuietArgs, SourceArgs};
use crate::route_rows::{self, Rows};

/// Show routes, or find the route of an address
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula route show --table routes.txt 192.0.2.0/24 --include-sub
  fibula route get --table routes.txt 192.0.2.1")]
pub(crate) struct RouteArgs {
    #[command(subcommand)]
    command: RouteCommand,
}

#[derive(Debug, Subcommand)]
enum RouteCommand {
    Show(Box<ShowArgs>),
    Get(Box<GetArgs>),
}

/// Find the route of each address, as 'fibula lookup' does
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: as those of 'fibula lookup'

Examples:
  fibula route get --table rib.gz 193.0.6.139
  fibula route get --table rib.gz --all-peers 193.0.6.139")]
pub(crate) struct GetArgs {
    /// Show the paths of all peers for the longest matching prefix, the best one first
    #[arg(long, conflicts_with_all = ["peer", "best", "stats", "algorithm", "file", "column"])]
    all_peers: bool,

    #[command(flatten)]
    lookup: LookupArgs,
}

/// Show the routes of prefixes, and of those that contain them or lie inside them
///
/// Without prefixes, shows all routes. A prefix without a length is a single address. Each route is shown once, in address
/// order.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  at least one route was found
  1  no route was found
  2  wrong use
  3  a line of the prefix file is not a prefix, or a file cannot be read

Examples:
  fibula route show --table rib.gz 193.0.0.0/21
  fibula route show --table rib.gz 193.0.0.0/8 --include-sub --format csv
  fibula route show --table rib.gz --prefix-file mine.txt --include-super --include-sub")]
pub(crate) struct ShowArgs {
    /// Prefixes to show [default: all routes]
    #[arg(value_name = "PREFIX", value_parser = prefix)]
    prefixes: Vec<IpPrefix>,

    /// Also show the prefixes in this file, one a line, plain or compressed; '#' starts a comment
    #[arg(long, value_name = "FILE")]
    prefix_file: Option<PathBuf>,

    /// Show the routes of exactly these prefixes (the default)
    #[arg(long, conflicts_with_all = ["include_super", "include_sub"])]
    exact_match: bool,

    /// Also show the routes that contain a prefix
    #[arg(long)]
    include_super: bool,

    /// Also show the routes inside a prefix
    #[arg(long)]
    include_sub: bool,

    /// Show the paths of all peers for each prefix, the best one first
    #[arg(long, conflicts_with_all = ["peer", "best"])]
    all_peers: bool,

    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &RouteArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        RouteCommand::Show(args) => show(args),
        RouteCommand::Get(args) if args.all_peers => all_peers::get(&args.lookup),
        RouteCommand::Get(args) => lookup::run(&args.lookup),
    }
}

fn prefix(text: &str) -> Result<IpPrefix, String> {
    IpPrefix::parse(text.as_bytes(), HostBits::Refuse).map_err(|error| error.to_string())
}

fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let mut prefixes = args.prefixes.clone();
    if let Some(path) = &args.prefix_file {
        prefixes.extend(read_prefixes(path)?);
    }
    let all = args.prefixes.is_empty() && args.prefix_file.is_none();
    let messages = Messages::new(args.quiet.quiet);
    if args.all_peers {
        if all {
            return Err(Failure::WrongUse(
                "--all-peers needs a prefix; for all routes of all peers: fibula table convert --to bgpdump --all-peers"
                    .to_owned(),
            ));
        }
        let query = Query { prefixes, include_super: args.include_super, include_sub: args.include_sub };
        return all_peers::show(&query, &args.source, args.output.format(), messages);
    }
    let format = args.output.format();
    let (table, columns) =
        load::load_columns(&args.source.table, &args.source.feed, format == Format::Text, messages)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if all {
        let count = route_rows::write_all(&table, &mut out, format, &columns)?;
        out.flush()?;
        return Ok(exit_code(count));
    }
    let mut rows = Rows::new(&mut out, format, &columns)?;
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for prefix in prefixes {
        match prefix {
            IpPrefix::V4(prefix) => found(args, &table.ribs.v4, prefix, &mut v4, messages),
            IpPrefix::V6(prefix) => found(args, &table.ribs.v6, prefix, &mut v6, messages),
        }
    }
    in_order(&mut v4).iter().try_for_each(|&route| rows.add(route, &table.next_hops))?;
    in_order(&mut v6).iter().try_for_each(|&route| rows.add(route, &table.next_hops))?;
    let count = rows.end()?;
    out.flush()?;
    Ok(exit_code(count))
}

pub(crate) fn exit_code(count: u64) -> ExitCode {
    if count == 0 { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS }
}

/// Which prefixes are shown.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) prefixes: Vec<IpPrefix>,
    pub(crate) include_super: bool,
    pub(crate) include_sub: bool,
}

/// Adds the routes of a prefix, or says what there is instead.
fn found<K: Key>(
    args: &ShowArgs,
    rib: &Rib<K>,
    prefix: Prefix<K>,
    routes: &mut Vec<Route<K>>,
    messages: Messages,
) {
    let before = routes.len();
    if args.include_super {
        routes.extend(rib.covers(prefix));
    }
    if args.include_sub {
        routes.extend(rib.subnets(prefix));
    } else {
        routes.extend(rib.get(prefix).map(|next_hop| Route::new(prefix, next_hop)));
    }
    if routes.len() == before {
        let longest = rib.covers(prefix).last().map(|route| route.prefix.to_string());
        messages.note(nothing(&prefix, longest.as_deref()));
    }
}

/// Returns what there is where no route has exactly this prefix.
pub(crate) fn nothing(prefix: &dyn std::fmt::Display, longest: Option<&str>) -> String {
    match longest {
        Some(longest) => format!("no route exactly {prefix}; longest match {longest}"),
        None => format!("no route exactly {prefix}, and none that contains it"),
    }
}

/// Each route once.
fn in_order<K: Key>(routes: &mut Vec<Route<K>>) -> &[Route<K>] {
    routes.sort_unstable_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    routes.dedup();
    routes
}

fn read_prefixes(path: &Path) -> Result<Vec<IpPrefix>, Failure> {
    let reading = |error: &io::Error| Failure::reading(&path.display().to_string(), error);
    let input = std::fs::File::open(path).and_then(Decompressor::new).map_err(|error| reading(&error))?;
    let mut prefixes = Vec::new();
    for (index, line) in BufReader::new(input).split(b'\n').enumerate() {
        let line = line.map_err(|error| reading(&error))?;
        let text = line.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii();
        if text.is_empty() {
            continue;
        }
        let prefix = IpPrefix::parse(text, HostBits::Refuse);
        prefixes.push(prefix.map_err(|error| {
            Failure::BadInput(format!("{}:{}: {}", path.display(), index + 1, error.reason()))
        })?);
    }
    Ok(prefixes)
}
