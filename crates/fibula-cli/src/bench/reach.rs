//! `fibula bench --reach`: the performance targets, and how close the structures are.

use std::io::{self, Write};
use std::process::ExitCode;

use fibula::net::Key;
use fibula::rib::Rib;
use fibula_lab::bench::reach::{self, Outcome, Reach, Verdict};
use fibula_lab::bench::{Plan, Progress};
use serde_json::Value;

use super::args::BenchArgs;
use super::contestants::Selection;
use super::report;
use super::tables::Tables;
use crate::failure::{Failure, code};
use crate::machine::OPTIMISED;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::Format;
use crate::text::{Grid, bold, dim};

/// Host routes that are added to the table.
const HOSTS: usize = if OPTIMISED { 500_000 } else { 1_000 };

/// The fields of an outcome, in order.
const COLUMNS: &[&str] = &[
    "family",
    "work",
    "algorithm",
    "isa",
    "batch",
    "unit",
    "measured",
    "target",
    "target_value",
    "verdict",
    "reached",
    "goal",
    "goal_value",
    "goal_verdict",
    "peer",
    "ratio",
    "notes",
];

pub(super) fn run(
    args: &BenchArgs,
    plan: &Plan,
    tables: &Tables,
    selection: &Selection,
    messages: Messages,
) -> Result<ExitCode, Failure> {
    // `contestants` holds the selected algorithms already.
    let plan = Plan { algorithms: Vec::new(), ..plan.clone() };
    let mut reach = measure(&plan, &tables.ribs.v4, selection, messages)?;
    let v6 = measure(&plan, &tables.ribs.v6, selection, messages)?;
    reach.outcomes.extend(v6.outcomes);
    reach.rows.extend(v6.rows);
    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => text(&mut out, tables, &reach)?,
        format => objects::write(&mut out, format, COLUMNS, &records(&reach.outcomes)?)?,
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
    // One run after another, each with steps of its own.
    let mut show = |step: Progress<'_>| {
        bar.set_length(step.total as u64);
        bar.set_position(step.done as u64);
        bar.set_message(step.step.to_owned());
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
        let section = (outcome.family, outcome.algorithm.as_deref());
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    for (family, line) in sections {
        let is = |outcome: &&Outcome| (outcome.family, outcome.algorithm.as_deref()) == (family, line);
        let outcomes: Vec<&Outcome> = reach.outcomes.iter().filter(is).collect();
        let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict == verdict).count();
        let (met, missed, open) = (count(Verdict::Met), count(Verdict::Missed), count(Verdict::NotMeasured));
        let title = report::title(family);
        let name = line.unwrap_or("no structure yet");
        writeln!(
            out,
            "{bold}{}, {title}, {name}: {met} met, {missed} missed, {open} not measured{bold:#}\n",
            tables.name
        )?;
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
        together(out, tables, reach, family)?;
    }
    writeln!(
        out,
        "{dim}Each structure is judged by its own figures. 'Best other' is another structure at its best instruction set and\n\
         batch. Goals lie beyond the targets.{dim:#}"
    )
}

/// Writes what the structures of a family reach together, if there are several.
fn together(out: &mut dyn Write, tables: &Tables, reach: &Reach, family: &str) -> io::Result<()> {
    let outcomes: Vec<&Outcome> = reach.outcomes.iter().filter(|outcome| outcome.family == family).collect();
    let mut works: Vec<&str> = outcomes.iter().map(|outcome| outcome.work).collect();
    works.dedup();
    if works.is_empty() || outcomes.len() < 2 * works.len() {
        return Ok(());
    }
    let mut grid = Grid::new(&["target", "met by", "nearest", "share reached"]).right(&[3]).wide();
    let mut met = 0;
    for work in &works {
        let of = || outcomes.iter().filter(|outcome| outcome.work == *work);
        let by: Vec<_> = of()
            .filter(|outcome| outcome.verdict == Verdict::Met)
            .filter_map(|outcome| outcome.algorithm.as_deref())
            .collect();
        met += usize::from(!by.is_empty());
        let share = |outcome: &Outcome| outcome.reached.unwrap_or(0.0);
        let nearest = of().max_by(|a, b| share(a).total_cmp(&share(b)));
        grid.row([
            (*work).to_owned(),
            match by.is_empty() {
                true if of().all(|outcome| outcome.verdict == Verdict::NotMeasured) => {
                    "not measured".to_owned()
                }
                true => "none".to_owned(),
                false => by.join(", "),
            },
            nearest.and_then(|outcome| outcome.algorithm.clone()).unwrap_or_default(),
            nearest.and_then(|outcome| outcome.reached).map_or("-".to_owned(), number),
        ]);
    }
    let (bold, title) = (bold(), report::title(family));
    writeln!(
        out,
        "{bold}{}, {title}, all structures: {met} of {} met by one or more{bold:#}\n",
        tables.name,
        works.len()
    )?;
    writeln!(out, "{}\n", grid.render())
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
        Grid::new(&["target", "required", "measured", "limit", "with", "best other", "verdict", "goal"])
            .right(&[2, 3])
            .wide();
    for outcome in outcomes {
        let with = match (&outcome.isa, outcome.batch) {
            (Some(isa), Some(batch)) => format!("{isa} {batch}"),
            _ => String::new(),
        };
        let peer = outcome.peer.as_ref().map_or(String::new(), |peer| {
            format!("{} {} {}: {}", peer.algorithm, peer.isa, peer.batch, number(peer.measured))
        });
        let goal = outcome.goal_verdict.map_or(String::new(), |verdict| verdict.name().to_owned());
        grid.row([
            outcome.work.to_owned(),
            outcome.target.clone(),
            outcome.measured.map_or("-".to_owned(), number),
            outcome.target_value.map_or("-".to_owned(), number),
            with,
            peer,
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
