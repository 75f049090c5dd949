//! `fibula-lab targets`: the performance targets, and how close the engines are.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use fibula::net::Key;
use fibula::rib::Rib;
use fibula_cli::plumbing::{
    Failure, Format, Grid, IsaArgs, Messages, OPTIMISED, Object, OutputArgs, QuietArgs, bold, code, dim,
    folded, write_objects,
};
use serde_json::Value;

use super::contestants::Selection;
use super::options::{ContestantArgs, EffortArgs, KeysArgs, TableArgs, or};
use super::recorded::{about, show};
use super::report;
use super::tables::Tables;
use crate::bench::reach::{self, Outcome, Reach, TargetVerdict};
use crate::bench::{self, Plan, Progress};

/// Host routes that are added to the table.
const HOSTS: usize = if OPTIMISED { 500_000 } else { 1_000 };

/// The fields of an outcome, in order.
const COLUMNS: &[&str] = &[
    "family",
    "work",
    "engine",
    "isa",
    "batch",
    "unit",
    "measured",
    "measured_low",
    "measured_high",
    "target",
    "target_value",
    "verdict",
    "reached",
    "goal",
    "goal_value",
    "goal_verdict",
    "peer",
    "ratio",
    "ratio_low",
    "ratio_high",
    "notes",
];

/// Measure the project's performance targets on a table, and say which are met
///
/// With --engine, only for these engines. A target is met if the whole 95 % interval of the paired ratios reaches it, missed if
/// no part of it does, and undecided otherwise.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  every engine answered correctly, whether or not it meets its targets
  1  an engine gave a wrong answer
  2  wrong use
  3  the table cannot be read, or the output cannot be written
  4  this machine lacks the instruction set, or the rival named by --engine is not installed

Examples:
  fibula-lab targets -t routes.txt --rivals --seconds 300
  fibula-lab targets -t routes.txt --isa avx2 --engine dir-17-bitmap")]
pub(super) struct TargetsArgs {
    #[command(flatten)]
    table: TableArgs,

    #[command(flatten)]
    contestants: ContestantArgs,

    /// Addresses in each call; 1 for single lookups; may be repeated [default: 1, 8, 16, 32, 64, 256
    /// and 1024]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: Vec<u32>,

    #[command(flatten)]
    isa: IsaArgs,

    #[command(flatten)]
    keys: KeysArgs,

    /// Time every instruction set in all batches, not only in those of 256
    #[arg(long)]
    every_isa: bool,

    #[command(flatten)]
    effort: EffortArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(super) fn run(args: &TargetsArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let isa = args.isa.force()?;
    let selection =
        Selection::new(&args.contestants.structures, args.contestants.rivals, messages)?.without_oracles();
    let tables = args.table.load(messages)?;
    selection.name_the_absent(&tables, messages);
    // `contestants` holds the selected engines already.
    let plan = Plan {
        isa: isa.map(|isa| isa.name().to_owned()),
        every_isa: args.every_isa,
        batches: or(&args.batch, bench::BATCHES.to_vec()),
        keys: args.keys.count(),
        runs: args.effort.runs as usize,
        seconds: args.effort.seconds_of(tables.families()),
        ..Plan::default()
    };
    let mut reach = measure(&plan, &tables.ribs.v4, &selection, messages)?;
    let v6 = measure(&plan, &tables.ribs.v6, &selection, messages)?;
    reach.outcomes.extend(v6.outcomes);
    reach.rows.extend(v6.rows);
    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => text(&mut folded(&mut out), &tables, &reach)?,
        format => write_objects(&mut out, format, COLUMNS, &records(&reach.outcomes)?)?,
    }
    out.flush()?;
    for name in report::wrong_rivals(&reach.rows) {
        messages.warning(format_args!("the rival {name} gave wrong answers"));
    }
    if reach.rows.iter().any(|row| row.wrong > 0 && !row.rival) {
        messages.warning("there were wrong answers; the figures mean nothing");
        return Ok(code::NOTHING_FOUND.into());
    }
    Ok(ExitCode::SUCCESS)
}

fn measure<K: Key>(
    plan: &Plan,
    rib: &Rib<K>,
    selection: &Selection,
    messages: Messages,
) -> Result<Reach, Failure> {
    if rib.is_empty() {
        return Ok(Reach::default());
    }
    let bar = messages.steps(0);
    let mut said = false;
    // One part after another, each with steps of its own.
    let mut show = |step: Progress<'_>| {
        if !std::mem::replace(&mut said, true) {
            messages.note(format_args!("{}: about {}", K::FAMILY, about(step.left)));
        }
        show(&bar, &step);
    };
    let reach = reach::run(plan, rib, &selection.contestants::<K>(), HOSTS, &mut show);
    bar.finish_and_clear();
    Ok(reach?)
}

fn records(outcomes: &[Outcome]) -> io::Result<Vec<Object>> {
    let record = |outcome| match serde_json::to_value(outcome)? {
        Value::Object(record) => Ok(record),
        _ => Ok(Object::new()),
    };
    outcomes.iter().map(record).collect()
}

fn text(out: &mut dyn Write, tables: &Tables, reach: &Reach) -> io::Result<()> {
    let (bold, dim) = (bold(), dim());
    let mut sections: Vec<(&str, Option<&str>)> = Vec::new();
    for outcome in &reach.outcomes {
        let section = (outcome.family, outcome.engine.as_deref());
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    for (family, line) in sections {
        let is = |outcome: &&Outcome| (outcome.family, outcome.engine.as_deref()) == (family, line);
        let outcomes: Vec<&Outcome> = reach.outcomes.iter().filter(is).collect();
        let title = report::title(family);
        let name = line.unwrap_or("no engine yet");
        writeln!(out, "{bold}{}, {title}, {name}: {}{bold:#}\n", tables.name, counts(&outcomes))?;
        writeln!(out, "{}\n", grid(&outcomes).render())?;
        for (note, works) in notes(&outcomes) {
            match works.len() == outcomes.len() {
                true => writeln!(out, "{dim}{note}{dim:#}")?,
                false => writeln!(out, "{dim}{}: {note}{dim:#}", works.join("; "))?,
            }
        }
        writeln!(out)?;
    }
    for family in ["ipv4", "ipv6"] {
        by_engine(out, tables, reach, family)?;
    }
    writeln!(
        out,
        "{dim}Each structure is judged by its own figures. 'Best other' is the best peer, at its best instruction set and batch;\n\
         the ratio to it is the median of the runs, in each of which all took turns over the same keys. In brackets are 95 %\n\
         intervals: a target is met if the whole interval reaches it, missed if no part of it does, and undecided otherwise.\n\
         Contestants are DPDK's tables, DIR-24-8, DXR as published, PlanB and Poptrie. Goals lie beyond the targets.{dim:#}"
    )
}

/// Returns how many targets have which verdict; those with a goal only are left out.
fn counts(outcomes: &[&Outcome]) -> String {
    let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict == verdict).count();
    let of = outcomes.len() - count(TargetVerdict::GoalOnly);
    let mut text = format!("{} of {of} rows met", count(TargetVerdict::Met));
    for verdict in [TargetVerdict::Missed, TargetVerdict::Undecided, TargetVerdict::NotMeasured] {
        if count(verdict) > 0 {
            text.push_str(&format!(", {} {}", count(verdict), verdict.name()));
        }
    }
    text
}

/// Writes which rows each engine of a family meets by itself.
fn by_engine(out: &mut dyn Write, tables: &Tables, reach: &Reach, family: &str) -> io::Result<()> {
    let outcomes: Vec<&Outcome> = reach.outcomes.iter().filter(|outcome| outcome.family == family).collect();
    let (mut works, mut engines): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for outcome in &outcomes {
        let Some(engine) = outcome.engine.as_deref() else { continue };
        if !works.contains(&outcome.work) {
            works.push(outcome.work);
        }
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    if engines.is_empty() {
        return Ok(());
    }
    let mut grid = Grid::new(&[&["row"], &engines[..]].concat()).wide();
    for work in &works {
        let cell = |engine: &&str| {
            let is =
                |outcome: &&&Outcome| outcome.work == *work && outcome.engine.as_deref() == Some(*engine);
            let Some(outcome) = outcomes.iter().find(is) else { return String::new() };
            let share = outcome.reached.map_or(String::new(), |share| format!(" ({share:.2} of it)"));
            format!("{}{share}", outcome.verdict.name())
        };
        grid.row([&[(*work).to_owned()], &engines.iter().map(cell).collect::<Vec<_>>()[..]].concat());
    }
    let (bold, title) = (bold(), report::title(family));
    writeln!(out, "{bold}{}, {title}, rows met by engine{bold:#}\n", tables.name)?;
    for engine in engines {
        let own: Vec<&Outcome> =
            outcomes.iter().copied().filter(|outcome| outcome.engine.as_deref() == Some(engine)).collect();
        writeln!(out, "{engine}: {}", counts(&own))?;
    }
    writeln!(out, "\n{}\n", grid.render())
}

/// Each note once, with its targets.
fn notes<'a>(outcomes: &[&'a Outcome]) -> Vec<(&'a str, Vec<&'static str>)> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for outcome in outcomes {
        for note in &outcome.notes {
            match notes.iter_mut().find(|(other, _)| other == note) {
                Some((_, works)) => works.push(outcome.work),
                None => notes.push((note, vec![outcome.work])),
            }
        }
    }
    notes
}

fn grid(outcomes: &[&Outcome]) -> Grid {
    let mut grid =
        Grid::new(&["row", "required", "measured", "with", "best other", "ratio", "verdict", "goal"])
            .right(&[2])
            .wide();
    let range = |low: Option<f64>, high: Option<f64>| match (low, high) {
        (Some(low), Some(high)) if low < high => format!(" ({}-{})", number(low), number(high)),
        _ => String::new(),
    };
    for outcome in outcomes {
        let with = match (&outcome.isa, outcome.batch) {
            (Some(isa), Some(batch)) => format!("{isa} {batch}"),
            _ => String::new(),
        };
        let peer = outcome.peer.as_ref().map_or(String::new(), |peer| {
            format!("{} {} {}: {}", peer.engine, peer.isa, peer.batch, number(peer.measured))
        });
        let goal = outcome.goal_verdict.map_or(String::new(), |verdict| verdict.name().to_owned());
        let measured = outcome.measured.map_or("-".to_owned(), |measured| {
            // The interval of the ratio says more than that of the figure.
            let range = match outcome.ratio {
                None => range(outcome.measured_low, outcome.measured_high),
                Some(_) => String::new(),
            };
            format!("{} {}{range}", number(measured), outcome.unit)
        });
        let ratio = outcome.ratio.map_or(String::new(), |ratio| {
            format!("{}{}", number(ratio), range(outcome.ratio_low, outcome.ratio_high))
        });
        grid.row([
            outcome.work.to_owned(),
            outcome.target.clone(),
            measured,
            with,
            peer,
            ratio,
            outcome.verdict.name().to_owned(),
            goal,
        ]);
    }
    grid
}

/// Returns the number with as many decimals as small numbers need.
fn number(number: f64) -> String {
    match number {
        number if number < 10.0 => format!("{number:.3}"),
        number => format!("{number:.1}"),
    }
}
