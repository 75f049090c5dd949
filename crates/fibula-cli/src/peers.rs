//! `fibula peers`: the peers of a feed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fibula_feed::{PeerCounts, PeerName, Report};
use serde_json::{Value, json};

use crate::answer::AnswerArgs;
use crate::failure::{Failure, code};
use crate::load;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::{FilesArgs, Format, QuietArgs, ReadingArgs};
use crate::text::{Grid, thousands};

/// List the peers of a file and how many routes each has
///
/// A table dump or a file of updates from a route collector holds the routes of every peer of the collector. Other
/// commands use one peer for each family: the one with the most routes, marked with a star here. Select another with
/// --peer, or the best path of all peers with --best.
///
/// IPv4 and IPv6 are the routes that a peer has at the end of the file. For updates, its announcements and withdrawals are
/// listed as well, with every repetition.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  at least one peer was found
  1  no peer was found
  2  wrong use
  3  the file cannot be read

Examples:
  fibula peers rib.20240101.0000.bz2
  fibula peers latest-bview.gz --json")]
pub(crate) struct PeersArgs {
    #[command(flatten)]
    files: FilesArgs,

    /// List only this peer, an address or an AS (AS64500); may be repeated
    #[arg(long, value_name = "PEER")]
    peer: Vec<PeerName>,

    #[command(flatten)]
    output: AnswerArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

impl PeersArgs {
    /// Returns the one file.
    fn file(&self) -> Result<PathBuf, Failure> {
        match &mut self.files.paths()?[..] {
            [file] => Ok(std::mem::take(file)),
            _ => Err(Failure::WrongUse("peers are listed of one file at a time".to_owned())),
        }
    }
}

const COLUMNS: &[&str] = &[
    "peer",
    "asn",
    "ipv4",
    "ipv6",
    "ipv4_withdrawn",
    "ipv6_withdrawn",
    "ipv4_routes",
    "ipv6_routes",
    "ipv4_default",
    "ipv6_default",
];

pub(crate) fn run(args: &PeersArgs) -> Result<ExitCode, Failure> {
    let file = args.file()?;
    let mut out = args.output.open([&file])?;
    let mut report = load::survey(&file, &args.reading, Messages::new(args.quiet.quiet))?;
    if !args.peer.is_empty() {
        report.peers.retain(|counts| args.peer.iter().any(|name| name.is(&counts.peer)));
    }
    match args.output.format() {
        Format::Text => write_text(&mut out, &report)?,
        format => {
            let records: Vec<Object> = report.peers.iter().filter_map(record).collect();
            objects::write(&mut out, format, COLUMNS, &records)?;
        }
    }
    out.finish()?;
    Ok(if report.peers.is_empty() { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

fn record(counts: &PeerCounts) -> Option<Object> {
    let value = json!({
        "peer": counts.peer.address,
        "asn": counts.peer.asn,
        "ipv4": counts.announced[0],
        "ipv6": counts.announced[1],
        "ipv4_withdrawn": counts.withdrawn[0],
        "ipv6_withdrawn": counts.withdrawn[1],
        "ipv4_routes": counts.routes.map(|routes| routes[0]),
        "ipv6_routes": counts.routes.map(|routes| routes[1]),
        "ipv4_default": counts.chosen[0],
        "ipv6_default": counts.chosen[1],
    });
    if let Value::Object(record) = value { Some(record) } else { None }
}

fn write_text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    if report.peers.is_empty() {
        return writeln!(out, "no peers");
    }
    let is_update = |counts: &PeerCounts| counts.routes.is_some_and(|routes| routes != counts.announced);
    let updates = report.peers.iter().any(|counts| counts.withdrawn != [0; 2] || is_update(counts));
    let [announced, withdrawn] = if updates { ["announced", "withdrawn"] } else { [""; 2] };
    let mut grid = Grid::new(&["peer", "AS", "IPv4", "IPv6", announced, withdrawn]).right(&[1, 2, 3, 4, 5]);
    for counts in &report.peers {
        let star = |slot: usize| if counts.chosen[slot] { "* " } else { "" };
        let routes = counts.routes.unwrap_or(counts.announced);
        let number = |slot: usize| format!("{}{}", star(slot), thousands(routes[slot]));
        let sum = |of: [u64; 2]| if updates { thousands(of[0] + of[1]) } else { String::new() };
        grid.row([
            counts.peer.address.to_string(),
            counts.peer.asn.to_string(),
            number(0),
            number(1),
            sum(counts.announced),
            sum(counts.withdrawn),
        ]);
    }
    writeln!(out, "{}", grid.render())
}
