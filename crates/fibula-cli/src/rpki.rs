//! `fibula rpki`: the states of a table's routes, by state and by AS.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, json};

use crate::answer::AnswerArgs;
use crate::failure::{Failure, code};
use crate::load;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::{Format, QuietArgs, SourceArgs};
use crate::text::{Grid, thousands};
use crate::validation::{State, each_state, origin, validator};

const COLUMNS: &[&str] = &["as", "valid", "invalid_as", "invalid_length", "not_found"];

/// Validate the origins of a table's routes (RFC 6811): how many are valid, and whose are not
///
/// A route is valid if one of the payloads around it has its origin AS and allows its length; invalid (AS) if there are
/// payloads and none has its origin, also where its AS path ends with a set; invalid (length) if one has its origin and
/// none of those allows its length; and not found if no payload is around it.
///
/// Payloads are exports of relying-party software: routinator, rpki-client or RIPE, as CSV or JSON, plain or compressed.
/// For the state of each route: fibula route show --value rpki --vrps FILE, which 'lookup' and 'enrich' take too.
#[derive(Debug, Args)]
#[command(after_help = "\
Output:
  text  routes by state, and the ASes with the most invalid routes
  csv   as,valid,invalid_as,invalid_length,not_found: all ASes, those with the most invalid routes first.
        Routes without one origin are counted in a row whose first field is empty
  json  an object: payloads, left_out, states (each with ipv4 and ipv6), ases (the rows of CSV)

Exit codes:
  0  the table has routes
  1  it has none
  2  wrong use
  3  the table or the payloads cannot be read, or too many payloads are none

Examples:
  fibula rpki --vrps vrps.json --table rib.gz
  fibula rpki --vrps vrps.csv --table rib.gz --peer AS64500 --json
  fibula route show --table rib.gz --vrps vrps.json --value rpki --format csv")]
pub(crate) struct RpkiArgs {
    /// Print this many ASes at most [default: 20 in text, else all]
    #[arg(long, value_name = "NUMBER")]
    top: Option<usize>,

    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    output: AnswerArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

/// Routes by state, in the order of [`State::ALL`].
type Counts = [u64; 4];

#[derive(Default)]
struct Summary {
    /// Of IPv4 and IPv6.
    families: [Counts; 2],
    ases: BTreeMap<Option<u32>, Counts>,
}

impl Summary {
    fn add(&mut self, family: usize, origin: Option<u32>, state: State) {
        let at = State::ALL.iter().position(|&own| own == state).unwrap_or(0);
        self.families[family][at] += 1;
        self.ases.entry(origin).or_default()[at] += 1;
    }

    fn routes(&self) -> u64 {
        self.families.iter().flatten().sum()
    }

    /// Returns the ASes with the most invalid routes first, then those with the most routes.
    fn ranked(&self) -> Vec<(Option<u32>, Counts)> {
        let mut ases: Vec<_> = self.ases.iter().map(|(&asn, &counts)| (asn, counts)).collect();
        ases.sort_by_key(|(_, counts)| std::cmp::Reverse((invalid(counts), counts.iter().sum::<u64>())));
        ases
    }
}

fn invalid(counts: &Counts) -> u64 {
    counts[1] + counts[2]
}

pub(crate) fn run(args: &RpkiArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let feed = &args.source.feed;
    if feed.vrps.is_empty() {
        return Err(Failure::WrongUse("no payloads: name a file with --vrps".to_owned()));
    }
    if !feed.value.is_empty() {
        return Err(Failure::WrongUse(
            "--value is for the state of each route: fibula route show --value rpki --vrps FILE".to_owned(),
        ));
    }
    let inputs: Vec<PathBuf> = args.source.table.iter().chain(&feed.vrps).cloned().collect();
    let mut out = args.output.open(&inputs)?;
    let (validator, [payloads, left_out]) = validator(feed, messages)?;
    let table = load::load_origins(&args.source.table, feed, messages)?;
    let origins: Vec<Option<u32>> = table.next_hops.iter().map(|(_, label)| origin(label)).collect();
    let of = |id: u32| origins.get(id as usize - 1).copied().flatten();
    let mut summary = Summary::default();
    let validate =
        |prefixes: &_, origins: &_, states: &mut _| validator.validate_v4(prefixes, origins, states);
    each_state(&table.ribs.v4, &table.next_hops, &validate, &mut |route, state| {
        summary.add(0, of(route.next_hop.id()), state);
        Ok(())
    })?;
    let validate =
        |prefixes: &_, origins: &_, states: &mut _| validator.validate_v6(prefixes, origins, states);
    each_state(&table.ribs.v6, &table.next_hops, &validate, &mut |route, state| {
        summary.add(1, of(route.next_hop.id()), state);
        Ok(())
    })?;
    match args.output.format() {
        Format::Text => text(&summary, args.top.unwrap_or(20), &mut out)?,
        Format::Json => {
            let whole = whole(&summary, args.top, [payloads, left_out]);
            serde_json::to_writer_pretty(&mut out, &whole).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        format => objects::write(&mut out, format, COLUMNS, &records(&summary, args.top))?,
    }
    out.finish()?;
    Ok(if summary.routes() == 0 { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

fn records(summary: &Summary, top: Option<usize>) -> Vec<Object> {
    let record = |(asn, counts): (Option<u32>, Counts)| {
        let mut record = Object::new();
        record.insert(COLUMNS[0].to_owned(), json!(asn));
        for (name, count) in COLUMNS[1..].iter().zip(counts) {
            record.insert((*name).to_owned(), json!(count));
        }
        record
    };
    summary.ranked().into_iter().take(top.unwrap_or(usize::MAX)).map(record).collect()
}

fn whole(summary: &Summary, top: Option<usize>, [payloads, left_out]: [u64; 2]) -> Object {
    let mut states = Map::new();
    for (at, name) in COLUMNS[1..].iter().enumerate() {
        let [v4, v6] = summary.families.map(|counts| counts[at]);
        states.insert((*name).to_owned(), json!({ "ipv4": v4, "ipv6": v6 }));
    }
    let mut whole = Object::new();
    whole.insert("payloads".to_owned(), json!(payloads));
    whole.insert("left_out".to_owned(), json!(left_out));
    whole.insert("states".to_owned(), states.into());
    whole.insert("ases".to_owned(), json!(records(summary, top)));
    whole
}

fn text(summary: &Summary, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let all = summary.routes().max(1);
    let mut states = Grid::new(&["state", "IPv4", "IPv6", "share"]).right(&[1, 2, 3]);
    for (at, state) in State::ALL.iter().enumerate() {
        let [v4, v6] = summary.families.map(|counts| counts[at]);
        let share = format!("{:.1} %", 100.0 * (v4 + v6) as f64 / all as f64);
        states.row([state.to_string(), thousands(v4), thousands(v6), share]);
    }
    write!(out, "{}", states.render())?;
    let ranked = summary.ranked();
    let bad: Vec<_> = ranked.iter().filter(|(_, counts)| invalid(counts) > 0).collect();
    if bad.is_empty() {
        return writeln!(out);
    }
    let names = State::ALL.map(|state| state.to_string());
    let mut ases = Grid::new(&["AS", &names[0], &names[1], &names[2], &names[3]]).right(&[1, 2, 3, 4]);
    for (asn, counts) in bad.iter().take(top) {
        let name = asn.map_or_else(|| "no single origin".to_owned(), |asn| asn.to_string());
        ases.row(std::iter::once(name).chain(counts.map(thousands)));
    }
    writeln!(out, "\n\n{}", ases.render())?;
    match bad.len().saturating_sub(top) {
        0 => Ok(()),
        more => writeln!(out, "and {} more", thousands(more)),
    }
}
