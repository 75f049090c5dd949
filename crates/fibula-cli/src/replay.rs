//! `fibula replay`: recorded updates into a live table, while other threads look addresses up.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fibula::fib::registry::Engines;
use fibula::live::{Options, Table};
use fibula::memory::Limits;
use fibula::net::{Family, IpPrefix};
use fibula::rib::DualRib;
use fibula_feed::event::{Action, Event, Time};
use fibula_feed::select::AdjRibsIn;
use fibula_feed::{NextHops, PeerName, Selection};
use fibula_workload::engines::refuse_unknown;
use fibula_workload::replay::{self, Plan, Rate, Report, Step};
use serde_json::json;

use crate::failure::{Failure, code};
use crate::load::{load_all_routes, survey, tell};
use crate::machine::IsaArgs;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::{FamilyName, FeedArgs, Format, OutputArgs, QuietArgs, SourceArgs};
use crate::suggested;
use crate::text::{plural, thousands};
use crate::width;

const COLUMNS: &[&str] = &[
    "routes",
    "changes",
    "unchanged",
    "absent",
    "calls",
    "rebuilt",
    "in_place_percent",
    "seconds",
    "changes_per_second",
    "changes_per_busy_second",
    "visible_p50_us",
    "visible_p99_us",
    "visible_p99_9_us",
    "visible_max_us",
    "readers_idle_mlps",
    "readers_busy_mlps",
    "loss_percent",
    "verified",
    "wrong",
    "retired_bytes",
];

/// Replay recorded updates into a table, while other threads look addresses up in it
///
/// Shows how many changes a second a live table takes, how long a change takes to be visible, and what readers lose by it.
/// Changes that change nothing (a route announced again, a withdrawal of what was not there) are counted apart. With --best
/// all peers' routes are kept, those of the table too, and what is replayed are the changes of the best ones; where there are
/// no AS paths to compare, the lower peer address decides.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  everything was replayed
  1  an answer was wrong (--verify)
  2  wrong use
  3  a file cannot be read, or the table refuses a change
  4  this machine lacks the instruction set

Examples:
  fibula replay --table rib.gz --updates updates.gz
  fibula replay --table rib.gz --updates updates.gz --best
  fibula replay --table rib.gz --updates updates.gz --rate 10x --readers 3
  fibula replay --table rib.gz --updates updates.gz --loop 100 --rate 1000000 --json")]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// The updates: MRT or text, plain or compressed. If repeated, in this order
    #[arg(short, long, value_name = "FILE", required = true)]
    updates: Vec<PathBuf>,

    /// Take the updates of this peer, an address or an AS (AS64500) [default: for each file, the peer with the most]
    #[arg(long, value_name = "PEER", conflicts_with = "best")]
    updates_peer: Vec<PeerName>,

    /// Changes a second, 1x or 10x for 1 or 10 times as fast as they were recorded, or max
    #[arg(long, value_name = "RATE", default_value = "max", value_parser = parse_rate)]
    rate: Rate,

    /// Most changes in one call
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = parse_count)]
    batch: usize,

    /// Threads that look up random addresses of the table, in batches of 256
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    readers: usize,

    /// The engine [default: dir-17-bitmap for IPv4, dir-btree for IPv6]
    #[arg(long, value_name = "NAME", value_parser = suggested::engine(), hide_possible_values = true)]
    engine: Option<String>,

    /// Number of times to replay; the table is restored after each
    #[arg(long = "loop", value_name = "NUMBER", default_value_t = 1, value_parser = parse_count)]
    loops: usize,

    /// Let changes wait this many milliseconds, to be published together
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = parse_milliseconds)]
    coalesce: f64,

    /// Build engines in a thread of their own, while the old one serves
    #[arg(long)]
    background: bool,

    /// Compare answers with the routes after every NUMBER batches; 0 for never
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    verify: usize,

    #[command(flatten)]
    isa: IsaArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a number from 1 on".to_owned()),
        Ok(count) => Ok(count),
    }
}

fn parse_milliseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(time) if (0.0..=1e9).contains(&time) => Ok(time),
        _ => Err("expected milliseconds, from 0 on".to_owned()),
    }
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    let rate = match text.strip_suffix('x') {
        _ if text == "max" => Some(Rate::Max),
        Some(times) => number(times).map(Rate::Recorded),
        None => number(text).map(Rate::PerSecond),
    };
    rate.ok_or_else(|| "expected changes a second (1000000), a speed (1x, 10x), or max".to_owned())
}

pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    args.isa.force()?;
    let messages = Messages::new(args.quiet.quiet);
    let options = engines(args)?;
    let (ribs, steps) = if args.source.feed.best {
        best(&args.source.feed, &args.source.table, &args.updates, options.limits, messages)?
    } else {
        let mut loaded = load_all_routes(&args.source.table, &args.source.feed, messages)?;
        let steps = steps(args, &mut loaded.next_hops, messages)?;
        (loaded.ribs, steps)
    };
    if steps.is_empty() {
        return Err(Failure::BadInput("the updates change nothing".to_owned()));
    }
    let routes = ribs.len();
    let table = Table::from_routes(ribs, options).map_err(|error| Failure::BadInput(error.to_string()))?;
    let plan = Plan {
        rate: args.rate,
        batch: args.batch,
        readers: args.readers,
        loops: args.loops,
        verify: args.verify,
        ..Plan::default()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if args.readers >= cores {
        messages.warning(format_args!(
            "{} and the writer share {}: rates are lower than with a core each",
            plural(args.readers as u64, "reader", "readers"),
            plural(cores as u64, "core", "cores")
        ));
    }
    let bar = messages.steps(0);
    bar.set_message("replaying");
    let report = replay::replay(&table, &steps, &plan, |done, all| {
        if done % 256 == 0 {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        }
    });
    bar.finish_and_clear();
    let report = report.map_err(|error| Failure::BadInput(error.to_string()))?;
    table.check().map_err(|error| Failure::BadInput(format!("the table is damaged: {error}")))?;
    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => write(&mut width::folded(&mut out), &report, routes, args)?,
        format => objects::write(&mut out, format, COLUMNS, &[record(&report, routes)])?,
    }
    out.flush()?;
    Ok(if report.wrong > 0 { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

/// Returns the options of the table: the named engine for the families that it serves.
fn engines(args: &ReplayArgs) -> Result<Options, Failure> {
    let limits = Limits { memory_bytes: args.source.feed.memory_limit, ..Limits::default() };
    let coalesce = Duration::from_secs_f64(args.coalesce / 1e3);
    let aggregate = args.source.feed.aggregate;
    let mut options =
        Options { limits, coalesce, background: args.background, aggregate, ..Options::default() };
    if let Some(name) = &args.engine {
        refuse_unknown(Engines::OWN, name).map_err(Failure::WrongUse)?;
        options.ipv4 = Engines::OWN.find(name).unwrap_or(options.ipv4);
        options.ipv6 = Engines::OWN.find(name).unwrap_or(options.ipv6);
    }
    Ok(options)
}

/// Reads the updates.
fn steps(args: &ReplayArgs, next_hops: &mut NextHops, messages: Messages) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    let mut first: Option<Time> = None;
    for path in &args.updates {
        let mut options = args.source.feed.options();
        options.selection = Selection::Peers(if args.updates_peer.is_empty() {
            let report = survey(path, &args.source.feed.reading, messages)?;
            let families = match args.source.feed.family.map(FamilyName::family) {
                Some(Family::Ipv4) => 0..1,
                Some(Family::Ipv6) => 1..2,
                None => 0..2,
            };
            let said = |counts: &&fibula_feed::PeerCounts| {
                families.clone().map(|at| counts.announced[at] + counts.withdrawn[at]).sum::<u64>()
            };
            match report.peers.iter().max_by_key(said) {
                Some(busiest) => {
                    messages.note(format_args!(
                        "{}: the updates of {}, the peer with the most, {}",
                        path.display(),
                        busiest.peer,
                        thousands(said(&busiest))
                    ));
                    vec![PeerName::Address(busiest.peer.address)]
                }
                None => {
                    return Err(Failure::BadInput(format!(
                        "{}: not an update file: its routes name no peers; give updates, such as MRT or lines of bgpdump",
                        path.display()
                    )));
                }
            }
        } else {
            args.updates_peer.clone()
        });
        let mut take = |event: Event| -> io::Result<()> {
            let first = *first.get_or_insert(event.time);
            let micros = since(first, event.time);
            let (prefix, next_hop): (IpPrefix, _) = match event.action {
                Action::Announce(route) => {
                    (route.path.prefix, Some(next_hops.intern(route.next_hop).map_err(io::Error::other)?))
                }
                Action::Withdraw(path) => (path.prefix, None),
                // The routes of a session that ends stay, because the events after it announce them again.
                Action::SessionEnd | Action::Nothing => return Ok(()),
            };
            steps.push(Step { micros, prefix, next_hop });
            Ok(())
        };
        tell(path, &options, &mut take, messages)?;
    }
    Ok(steps)
}

/// Returns the table of the best routes, and the steps by which the updates of all peers change it.
///
/// # Errors
/// If a file cannot be read.
pub fn best(
    feed: &FeedArgs,
    tables: &[PathBuf],
    updates: &[PathBuf],
    limits: Limits,
    messages: Messages,
) -> Result<(DualRib, Vec<Step>), Failure> {
    let mut options = feed.options();
    options.selection = Selection::Best;
    let (mut routes, mut next_hops) = (AdjRibsIn::new(limits), NextHops::new(limits));
    let (mut ribs, mut changes) = (DualRib::within(limits), Vec::new());
    for path in tables {
        let mut take = |event: Event| -> io::Result<()> {
            let each = |prefix, next_hop| changes.push((prefix, next_hop));
            routes.apply(event, &mut next_hops, each).map_err(io::Error::other)?;
            for (prefix, next_hop) in changes.drain(..) {
                match next_hop {
                    Some(next_hop) => drop(ribs.insert(prefix, next_hop).map_err(io::Error::other)?),
                    None => drop(ribs.remove(prefix)),
                }
            }
            Ok(())
        };
        tell(path, &options, &mut take, messages)?;
    }
    let (mut steps, mut first, mut events) = (Vec::new(), None, 0);
    for path in updates {
        let mut take = |event: Event| -> io::Result<()> {
            let micros = since(*first.get_or_insert(event.time), event.time);
            let each = |prefix, next_hop| steps.push(Step { micros, prefix, next_hop });
            events += 1;
            routes.apply(event, &mut next_hops, each).map_err(io::Error::other)
        };
        tell(path, &options, &mut take, messages)?;
    }
    messages.note(format_args!(
        "{} changes of the best routes by {} updates; {} routes of all peers take {} bytes",
        thousands(steps.len() as u64),
        thousands(events),
        thousands(routes.routes() as u64),
        thousands(routes.memory().held_bytes() as u64)
    ));
    Ok((ribs, steps))
}

fn since(first: Time, now: Time) -> u64 {
    let micros = |time: Time| u64::from(time.seconds) * 1_000_000 + u64::from(time.micros.unwrap_or(0));
    micros(now).saturating_sub(micros(first))
}

/// Returns the share of calls that rebuilt no engine.
fn in_place(report: &Report) -> f64 {
    100.0 * (1.0 - report.totals.rebuilt as f64 / report.calls.max(1) as f64)
}

fn write(out: &mut dyn Write, report: &Report, routes: usize, args: &ReplayArgs) -> io::Result<()> {
    let totals = &report.totals;
    writeln!(
        out,
        "{} routes; {} route changes in {} calls of at most {}, {:.2} % in place",
        thousands(routes as u64),
        thousands(totals.changed as u64),
        thousands(report.calls as u64),
        args.batch,
        in_place(report),
    )?;
    writeln!(
        out,
        "changed nothing: {} announced again, {} withdrawn without being there",
        thousands(totals.unchanged as u64),
        thousands(totals.absent as u64)
    )?;
    writeln!(
        out,
        "rate: {} changes/s over {:.2} s; {} changes/s while the writer worked",
        thousands(report.changes_per_second() as u64),
        report.seconds,
        thousands(report.changes_per_busy_second() as u64)
    )?;
    let [p50, p99, p99_9, max] = report.visible_micros;
    writeln!(out, "visible after: p50 {p50:.1} us, p99 {p99:.1}, p99.9 {p99_9:.1}, at most {max:.0}")?;
    for (number, (idle, busy)) in report.idle_mlps.iter().zip(&report.busy_mlps).enumerate() {
        writeln!(out, "reader {}: {idle:.0} M lookups/s alone, {busy:.0} during the changes", number + 1)?;
    }
    if let Some(loss) = report.loss() {
        writeln!(out, "readers lose {:.1} %", 100.0 * loss)?;
    }
    if args.verify > 0 {
        writeln!(
            out,
            "verified: {} answers, {} wrong",
            thousands(report.verified as u64),
            thousands(report.wrong as u64)
        )?;
    }
    Ok(())
}

fn record(report: &Report, routes: usize) -> Object {
    let [p50, p99, p99_9, max] = report.visible_micros;
    let value = json!({
        "routes": routes,
        "changes": report.totals.changed,
        "unchanged": report.totals.unchanged,
        "absent": report.totals.absent,
        "calls": report.calls,
        "rebuilt": report.totals.rebuilt,
        "in_place_percent": in_place(report),
        "seconds": report.seconds,
        "changes_per_second": report.changes_per_second(),
        "changes_per_busy_second": report.changes_per_busy_second(),
        "visible_p50_us": p50,
        "visible_p99_us": p99,
        "visible_p99_9_us": p99_9,
        "visible_max_us": max,
        "readers_idle_mlps": report.idle_mlps,
        "readers_busy_mlps": report.busy_mlps,
        "loss_percent": report.loss().map(|loss| 100.0 * loss),
        "verified": report.verified,
        "wrong": report.wrong,
        "retired_bytes": report.totals.retired_bytes,
    });
    value.as_object().cloned().unwrap_or_default()
}
