//! `fibula verify`: whether two tables answer every address alike.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fibula::aggregate::{Difference, differences};
use fibula::net::{Key, NextHop};
use fibula::rib::Rib;
use fibula_feed::LoadedRoutes;
use serde_json::json;

use crate::answer::AnswerArgs;
use crate::failure::{Failure, code};
use crate::load::load_feeds;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::{FeedArgs, Format, QuietArgs};
use crate::text::{plural, thousands};

const COLUMNS: &[&str] = &["first", "last", "a", "b"];

/// Prove that two tables give every address the same next hop, or show where they do not
///
/// Every address of both families is compared, by ranges, whatever the routes are that lead to the answers: a table and its
/// aggregated form are equivalent. Next hops are compared by their names.
#[derive(Debug, Args)]
#[command(after_help = "\
Output, a line for each range of addresses with other answers; a table without a route for them has '-':
  text  192.0.2.0-192.0.2.127 198.51.100.1 198.51.100.2
        203.0.113.0-203.0.113.255 - 198.51.100.1
  csv   first,last,a,b

Exit codes:
  0  the tables are equivalent
  1  they are not
  2  wrong use
  3  a table cannot be read

Examples:
  fibula verify rib.gz aggregated.txt
  fibula verify a.txt b.txt --all --json")]
pub(crate) struct VerifyArgs {
    /// A table
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The table to compare it with
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Show all differences, not only the first one
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    output: AnswerArgs,

    #[command(flatten)]
    feed: FeedArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let mut out = args.output.open([&args.a, &args.b])?;
    let [a, b] = [&args.a, &args.b].map(|path| load_feeds(std::slice::from_ref(path), &args.feed, messages));
    let tables = [a?, b?];
    let mut rows = Vec::new();
    compare(tables.each_ref().map(|table| &table.ribs.v4), &tables, args.all, &mut rows)?;
    if args.all || rows.is_empty() {
        compare(tables.each_ref().map(|table| &table.ribs.v6), &tables, args.all, &mut rows)?;
    }
    match args.output.format() {
        Format::Text => rows.iter().try_for_each(|row| write_text(&mut out, row))?,
        format => objects::write(&mut out, format, COLUMNS, &rows)?,
    }
    out.finish()?;
    if rows.is_empty() {
        let [a, b] = tables.each_ref().map(|table| thousands(table.ribs.len() as u64));
        messages
            .note(format_args!("equivalent: every address has the same answer from {a} and from {b} routes"));
        return Ok(ExitCode::SUCCESS);
    }
    let count = rows.len() as u64;
    match args.all {
        true => messages.note(format_args!(
            "{} {} other answers",
            thousands(count),
            plural(count, "range of addresses has", "ranges of addresses have")
        )),
        false => messages.note("not equivalent; this is the first difference, --all shows every one"),
    }
    Ok(code::NOTHING_FOUND.into())
}

/// Appends the differences of a family, or the first.
fn compare<K: Key>(
    ribs: [&Rib<K>; 2],
    tables: &[LoadedRoutes; 2],
    all: bool,
    rows: &mut Vec<Object>,
) -> Result<(), Failure> {
    let label =
        |at: usize, next_hop: Option<NextHop>| next_hop.and_then(|hop| tables[at].next_hops.label(hop));
    let is_same = |[a, b]: [Option<NextHop>; 2]| label(0, a) == label(1, b);
    let each = |Difference { addresses: (first, last), answers: [a, b] }: Difference<K>| {
        let [first, last] = [first, last].map(|key| json!(key.address().to_string()));
        let [a, b] = [label(0, a), label(1, b)].map(|label| json!(label.map(ToString::to_string)));
        let names = COLUMNS.iter().map(|&name| name.to_owned());
        rows.push(names.zip([first, last, a, b]).collect());
        if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let compared = differences([ribs[0], ribs[1]], is_same, each);
    compared.map(drop).map_err(|error| Failure::BadInput(format!("the tables cannot be compared: {error}")))
}

fn write_text(out: &mut dyn Write, row: &Object) -> io::Result<()> {
    let [first, last, a, b] = [0, 1, 2, 3].map(|column| row[COLUMNS[column]].as_str().unwrap_or("-"));
    writeln!(out, "{first}-{last} {a} {b}")
}
