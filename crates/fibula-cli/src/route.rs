//! `fibula route`: single routes and prefixes, in the words of iproute2.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use fibula::net::{HostBits, IpPrefix, Key, Prefix, Route};
use fibula::rib::Rib;
use fibula_feed::compression::Decompressor;

use crate::failure::{Failure, code};
use crate::load;
use crate::lookup;
use crate::lookup::LookupArgs;
use crate::messages::Messages;
use crate::options::{OutputArgs, QuietArgs, SourceArgs};
use crate::route_rows::Rows;

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
    Show(ShowArgs),
    Get(LookupArgs),
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
        RouteCommand::Get(args) => lookup::run(args),
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
    let table = load::load_feeds(&args.source.table, &args.source.feed, Messages::new(args.quiet.quiet))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut rows = Rows::new(&mut out, args.output.format())?;
    if all {
        table.ribs.v4.iter().try_for_each(|route| rows.add(route, &table.next_hops))?;
        table.ribs.v6.iter().try_for_each(|route| rows.add(route, &table.next_hops))?;
    } else {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for prefix in prefixes {
            match prefix {
                IpPrefix::V4(prefix) => found(args, &table.ribs.v4, prefix, &mut v4),
                IpPrefix::V6(prefix) => found(args, &table.ribs.v6, prefix, &mut v6),
            }
        }
        in_order(&mut v4).iter().try_for_each(|&route| rows.add(route, &table.next_hops))?;
        in_order(&mut v6).iter().try_for_each(|&route| rows.add(route, &table.next_hops))?;
    }
    let count = rows.end()?;
    out.flush()?;
    Ok(if count == 0 { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

fn found<K: Key>(args: &ShowArgs, rib: &Rib<K>, prefix: Prefix<K>, routes: &mut Vec<Route<K>>) {
    if args.include_super {
        routes.extend(rib.covers(prefix));
    }
    if args.include_sub {
        routes.extend(rib.subnets(prefix));
    } else {
        routes.extend(rib.get(prefix).map(|next_hop| Route::new(prefix, next_hop)));
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
