//! `fibula bench --schedule`: lookups divided among threads in several ways.

use std::io::{self, Write};
use std::process::ExitCode;

use fibula::live::TableKey;
use fibula::rib::Rib;
use fibula_lab::bench::Progress;
use fibula_lab::bench::schedule::{self, Form, SchedulePlan, ScheduleRecord, ScheduleRow};

use super::args::{BenchArgs, Schedule};
use super::contestants::Selection;
use super::report;
use super::tables::Tables;
use super::updates::size;
use crate::failure::{Failure, code};
use crate::messages::Messages;
use crate::objects;
use crate::options::Format;
use crate::text::Grid;
use crate::width;

/// Traffic if none is named.
const TRAFFIC: &str = "match";

pub(super) fn run(
    args: &BenchArgs,
    tables: &Tables,
    selection: &Selection,
    messages: Messages,
) -> Result<ExitCode, Failure> {
    if args.rivals {
        return Err(Failure::WrongUse("rivals are not scheduled: leave out --rivals".to_owned()));
    }
    if args.traffic.len() > 1 || args.batch.len() > 1 {
        return Err(Failure::WrongUse("--schedule takes one --traffic and one --batch".to_owned()));
    }
    let plan = plan(args, tables.families());
    let mut rows = measure(&plan, &tables.ribs.v4, selection, messages)?;
    rows.extend(measure(&plan, &tables.ribs.v6, selection, messages)?);

    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => text(&mut width::folded(&mut out), &rows)?,
        format => objects::write(&mut out, format, ScheduleRow::COLUMNS, &report::records(&rows)?)?,
    }
    out.flush()?;
    if rows.iter().any(|row| row.wrong > 0) {
        messages.warning("there were wrong answers; no record is written");
        return Ok(code::NOTHING_FOUND.into());
    }
    if let Some(folder) = &args.record {
        let sizes = [size(&tables.ribs.v4), size(&tables.ribs.v6)].into_iter().flatten().collect();
        let record = ScheduleRecord::with_sizes(&super::today(), &tables.name, sizes, plan, rows);
        super::write_record(&record.path(folder), &record.json()?, messages)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(args: &BenchArgs, families: u32) -> SchedulePlan {
    let default = SchedulePlan::default();
    let numbers = |given: &[u32], default: Vec<usize>| {
        if given.is_empty() { default } else { given.iter().map(|&number| number as usize).collect() }
    };
    let mut forms: Vec<Form> = Vec::new();
    for schedule in &args.schedule {
        let chosen = match schedule {
            Schedule::All => &Form::ALL[..],
            Schedule::Static => &[Form::Static],
            Schedule::Dynamic => &[Form::Dynamic],
            Schedule::Rayon => &[Form::Rayon],
        };
        forms.extend(chosen.iter().filter(|form| !forms.contains(form)).copied().collect::<Vec<_>>());
    }
    SchedulePlan {
        forms,
        chunks: numbers(&args.chunk, default.chunks),
        threads: numbers(&args.threads, sweep(args.reserve_core)),
        reserve: args.reserve_core,
        traffic: args.traffic.first().map_or(TRAFFIC, String::as_str).to_owned(),
        batch: args.batch.first().map_or(default.batch, |&batch| batch as usize),
        keys: args.keys.unwrap_or(super::KEYS) as usize,
        runs: args.runs as usize,
        seconds: f64::from(args.seconds) / f64::from(families.max(1)),
        ..default
    }
}

/// Returns the powers of two below the number of cores, and that number.
fn sweep(reserve: bool) -> Vec<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = (cores - usize::from(reserve)).max(1);
    let mut threads: Vec<usize> =
        (0..).map(|power| 1 << power).take_while(|&threads| threads < cores).collect();
    threads.push(cores);
    threads
}

fn measure<K: TableKey>(
    plan: &SchedulePlan,
    rib: &Rib<K>,
    selection: &Selection,
    messages: Messages,
) -> Result<Vec<ScheduleRow>, Failure> {
    if rib.is_empty() {
        return Ok(Vec::new());
    }
    let contestants = selection.contestants::<K>();
    let bar = messages.steps(0);
    let mut show = |step: Progress<'_>| {
        bar.set_length(step.total as u64);
        bar.set_position(step.done as u64);
        bar.set_message(format!("{}, {} left", step.step, super::about(step.left)));
    };
    let rows = schedule::run(plan, rib, &contestants, &mut show);
    bar.finish_and_clear();
    Ok(rows?)
}

/// A table for each family.
fn text(out: &mut impl Write, rows: &[ScheduleRow]) -> io::Result<()> {
    let mut families: Vec<&str> = rows.iter().map(|row| row.family.as_str()).collect();
    families.dedup();
    for (number, family) in families.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        writeln!(
            out,
            "{family}, million lookups a second of all threads; the speed-up is over the fewest threads"
        )?;
        let mut grid =
            Grid::new(&["algorithm", "schedule", "chunk", "threads", "M/s", "95 %", "speed-up", ""])
                .right(&[2, 3, 4, 5, 6]);
        for row in rows.iter().filter(|row| row.family == *family) {
            let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
            let spread = match (row.mlps_low, row.mlps_high) {
                (Some(low), Some(high)) => format!("{low:.1}-{high:.1}"),
                _ => String::new(),
            };
            grid.row([
                row.algorithm.clone(),
                row.form.name().to_owned(),
                if row.chunk == 0 { "share".to_owned() } else { row.chunk.to_string() },
                row.threads.to_string(),
                number(row.mlps_median),
                spread,
                row.speedup.map_or(String::new(), |ratio| format!("{ratio:.2}")),
                row.error.as_deref().map_or(String::new(), |error| format!("missing: {error}")),
            ]);
        }
        writeln!(out, "{}", grid.render())?;
    }
    Ok(())
}
