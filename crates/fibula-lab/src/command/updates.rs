//! `fibula-lab updates`: the costs of changes.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fibula::live::TableKey;
use fibula::net::{Change, IpPrefix, Prefix};
use fibula::rib::Rib;
use fibula_cli::plumbing::{
    Failure, FeedArgs, Format, Grid, IsaArgs, Messages, OutputArgs, QuietArgs, best_routes, code, folded,
    limits, write_objects,
};
use fibula_workload::replay::{self, Step};

use super::contestants::Selection;
use super::options::{ContestantArgs, EffortArgs, TableArgs};
use super::recorded::{show, sizes, today, write_record};
use super::report;
use super::tables::{self, Tables};
use crate::bench::Progress;
use crate::bench::updates::{self, RowSubject, UpdatePlan, UpdateRecord, UpdateRow};

/// Measure what changes of a table cost
///
/// By prefix length, by the number of changes in a call and over a recorded trace; what building a million routes takes; and what
/// readers lose meanwhile. Every engine and rival that takes changes has its turn, and answers are checked.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  every engine answered correctly
  1  an engine gave a wrong answer
  2  wrong use
  3  the table or the trace cannot be read, or an output cannot be written
  4  this machine lacks the instruction set, or the rival named by --engine is not installed

Examples:
  fibula-lab updates --table routes.txt.xz
  fibula-lab updates -t routes.txt --trace updates.gz --rivals
  fibula-lab updates --synth ipv6/100000 --engine dir-btree --record records/updates")]
pub(super) struct UpdatesArgs {
    #[command(flatten)]
    table: TableArgs,

    #[command(flatten)]
    contestants: ContestantArgs,

    /// Updates of any peers, MRT or text, that are followed with the best routes of --table
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Number of routes of the table that is built [default: 1000000]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    keys: Option<u32>,

    #[command(flatten)]
    isa: IsaArgs,

    #[command(flatten)]
    effort: EffortArgs,

    /// Save the result in this folder as MACHINE/TABLE.json
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(super) fn run(args: &UpdatesArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    args.isa.force()?;
    let selection = Selection::new(&args.contestants.structures, args.contestants.rivals, messages)?;
    let (tables, steps) = load(args, messages)?;
    selection.name_the_absent(&tables, messages);
    let (v4, v6) = split(&steps);
    let default = UpdatePlan::default();
    let plan = UpdatePlan {
        runs: args.effort.runs as usize,
        seconds: args.effort.seconds_of(tables.families()),
        build_routes: args.keys.map_or(default.build_routes, |keys| keys as usize),
        ..default
    };
    let mut rows = measure(args, &plan, &tables.ribs.v4, &v4, &selection, messages)?;
    rows.extend(measure(args, &plan, &tables.ribs.v6, &v6, &selection, messages)?);

    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => text(&mut folded(&mut out), &rows)?,
        format => write_objects(&mut out, format, UpdateRow::COLUMNS, &report::records(&rows)?)?,
    }
    out.flush()?;
    for row in rows.iter().filter(|row| row.rival && row.wrong > 0) {
        messages.warning(format_args!("the rival {} gave wrong answers", row.engine));
    }
    if rows.iter().any(|row| !row.rival && row.wrong > 0) {
        messages.warning("there were wrong answers; no record is written");
        return Ok(code::NOTHING_FOUND.into());
    }
    if let Some(folder) = &args.record {
        let mut record = UpdateRecord::with_sizes(&today(), &tables.name, sizes(&tables.ribs), plan, rows);
        record.recorded = args.trace.as_deref().map(tables::name);
        write_record(&record.path(folder), &record.json()?, messages)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the table, and the changes of the trace.
fn load(args: &UpdatesArgs, messages: Messages) -> Result<(Tables, Vec<Step>), Failure> {
    let Some(trace) = &args.trace else { return Ok((args.table.load(messages)?, Vec::new())) };
    let Some(table) = args.table.as_it_is() else {
        return Err(Failure::WrongUse(
            "--trace follows the routes of a --table as it is: leave out --synth, --hosts and --one-in"
                .to_owned(),
        ));
    };
    let mut tables = args.table.load(messages)?;
    // The next hops of both have the same numbers only if they are read together.
    let (table, trace) = (std::slice::from_ref(table), std::slice::from_ref(trace));
    let (ribs, steps) = best_routes(&FeedArgs::default(), table, trace, limits(None), messages)?;
    tables.ribs = ribs;
    Ok((tables, steps))
}

/// Returns the changes of each family.
fn split(steps: &[Step]) -> (Vec<Change<u32>>, Vec<Change<u128>>) {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for step in steps {
        match step.prefix {
            IpPrefix::V4(prefix) => v4.push(replay::change(prefix, step.next_hop)),
            IpPrefix::V6(prefix) => v6.push(replay::change(prefix, step.next_hop)),
        }
    }
    (v4, v6)
}

fn measure<K: TableKey>(
    args: &UpdatesArgs,
    plan: &UpdatePlan,
    rib: &Rib<K>,
    trace: &[Change<K>],
    selection: &Selection,
    messages: Messages,
) -> Result<Vec<UpdateRow>, Failure>
where
    IpPrefix: From<Prefix<K>>,
{
    if rib.is_empty() {
        return Ok(Vec::new());
    }
    let mut contestants = selection.contestants::<K>();
    contestants
        .retain(|one| updates::takes_part(one) || args.contestants.structures.engine.contains(&one.name));
    let bar = messages.steps(0);
    let mut show = |step: Progress<'_>| show(&bar, &step);
    let rows = updates::run(plan, rib, trace, &contestants, &mut show);
    bar.finish_and_clear();
    rows.map_err(|error| Failure::BadInput(error.to_string()))
}

fn text(out: &mut dyn Write, rows: &[UpdateRow]) -> io::Result<()> {
    let mut grid = Grid::new(&["family", "engine", "update", "subject", "measured", "interval", "rebuilt"])
        .right(&[4, 5, 6])
        .wide();
    for row in rows {
        let interval = row
            .low
            .zip(row.high)
            .map_or(String::new(), |(low, high)| format!("{}-{}", short(low), short(high)));
        let error = || row.error.clone().unwrap_or_default();
        grid.row([
            report::title(&row.family).to_owned(),
            row.engine.clone(),
            if row.rival { "rival".to_owned() } else { row.update.clone() },
            what(row),
            row.median.map_or_else(error, |median| format!("{} {}", short(median), row.unit)),
            interval,
            row.rebuilt.to_string(),
        ]);
    }
    writeln!(out, "{}", grid.render())
}

/// Returns a figure in a few places, however large it is, so that a table fits into a terminal.
fn short(figure: f64) -> String {
    let decimals = match figure.abs() {
        ..10.0 => 3,
        ..100.0 => 2,
        ..1000.0 => 1,
        _ => 0,
    };
    format!("{figure:.decimals$}")
}

/// Returns the subject of a row, for people.
fn what(row: &UpdateRow) -> String {
    let at = row.at;
    match row.part {
        RowSubject::Length => format!("a change of a /{at}"),
        RowSubject::Batch => format!("a change, {at} a call"),
        RowSubject::Trace => format!("a change of the trace, up to change {at}"),
        RowSubject::Build => format!("building {at} routes"),
        RowSubject::ReadersIdle => format!("lookups of {at} readers, without the writer"),
        RowSubject::ReadersBeside => format!("lookups of {at} readers while the writer works"),
        RowSubject::WriterBeside => format!("changes while {at} readers look up"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_any_size_have_few_places() {
        let figures = [0.0, 0.0004, 9.8765, 98.765, 987.65, 98_765.4];
        let short: Vec<String> = figures.into_iter().map(short).collect();
        assert_eq!(short, ["0.000", "0.000", "9.877", "98.77", "987.6", "98765"]);
    }
}
