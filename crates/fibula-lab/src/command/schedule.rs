//! `fibula-lab schedule`: lookups divided among threads in several ways.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use fibula::live::TableKey;
use fibula::rib::Rib;
use fibula_cli::plumbing::{
    Failure, Format, Grid, IsaArgs, Messages, OutputArgs, QuietArgs, code, folded, write_objects,
};

use super::contestants::Selection;
use super::options::{EffortArgs, KeysArgs, StructureArgs, TableArgs, or, traffic};
use super::recorded::{show, sizes, today, write_record};
use super::report;
use crate::bench::Progress;
use crate::bench::schedule::{self, Division, SchedulePlan, ScheduleRecord, ScheduleRow};

/// Measure ways to divide the addresses among threads
///
/// Shares of the same size, chunks that free threads take, and a data-parallel run-time; of all engines, with as many threads as
/// there are cores unless --threads says otherwise.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  every engine answered correctly
  1  an engine gave a wrong answer
  2  wrong use
  3  the table cannot be read, or an output cannot be written
  4  this machine lacks the instruction set

Examples:
  fibula-lab schedule --table routes.txt.xz
  fibula-lab schedule -t routes.txt --way dynamic --chunk 1 --chunk 256 --reserve-core")]
pub(super) struct ScheduleArgs {
    #[command(flatten)]
    table: TableArgs,

    #[command(flatten)]
    structures: StructureArgs,

    /// Measure only this way; may be repeated [default: all]
    #[arg(long, value_enum, value_name = "WAY")]
    way: Vec<DivisionArg>,

    /// Addresses that a thread takes at once; may be repeated [default: 1, 16, 256 and 4096]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    chunk: Vec<u32>,

    /// Threads that look up; may be repeated [default: powers of two up to the number of cores, and that number]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Vec<u32>,

    /// Leave a core to the thread that manages the others
    #[arg(long)]
    reserve_core: bool,

    /// The traffic
    #[arg(long, value_name = "NAME", default_value = "match", value_parser = traffic(), hide_possible_values = true)]
    traffic: String,

    /// Addresses in each call [default: 256]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: Option<u32>,

    #[command(flatten)]
    keys: KeysArgs,

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

/// A way to divide lookups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DivisionArg {
    /// Each thread has a share of its own
    Static,
    /// A thread that is free takes the next chunk
    Dynamic,
    /// Chunks for the threads of rayon, a data-parallel run-time
    Rayon,
}

pub(super) fn run(args: &ScheduleArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    args.isa.force()?;
    let selection = Selection::new(&args.structures, false, messages)?;
    let tables = args.table.load(messages)?;
    let plan = plan(args, tables.families());
    let mut rows = measure(&plan, &tables.ribs.v4, &selection, messages)?;
    rows.extend(measure(&plan, &tables.ribs.v6, &selection, messages)?);

    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => text(&mut folded(&mut out), &rows)?,
        format => write_objects(&mut out, format, ScheduleRow::COLUMNS, &report::records(&rows)?)?,
    }
    out.flush()?;
    if rows.iter().any(|row| row.wrong > 0) {
        messages.warning("there were wrong answers; no record is written");
        return Ok(code::NOTHING_FOUND.into());
    }
    if let Some(folder) = &args.record {
        let record = ScheduleRecord::with_sizes(&today(), &tables.name, sizes(&tables.ribs), plan, rows);
        write_record(&record.path(folder), &record.json()?, messages)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(args: &ScheduleArgs, families: u32) -> SchedulePlan {
    let default = SchedulePlan::default();
    let mut forms: Vec<Division> = Vec::new();
    for way in &args.way {
        let form = match way {
            DivisionArg::Static => Division::Static,
            DivisionArg::Dynamic => Division::Dynamic,
            DivisionArg::Rayon => Division::Rayon,
        };
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    SchedulePlan {
        forms: if forms.is_empty() { Division::ALL.to_vec() } else { forms },
        chunks: or(&args.chunk, default.chunks),
        threads: or(&args.threads, sweep(args.reserve_core)),
        reserve: args.reserve_core,
        traffic: args.traffic.clone(),
        batch: args.batch.map_or(default.batch, |batch| batch as usize),
        keys: args.keys.count(),
        runs: args.effort.runs as usize,
        seconds: args.effort.seconds_of(families),
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
    let mut show = |step: Progress<'_>| show(&bar, &step);
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
        let mut grid = Grid::new(&["engine", "schedule", "chunk", "threads", "M/s", "95 %", "speed-up", ""])
            .right(&[2, 3, 4, 5, 6]);
        for row in rows.iter().filter(|row| row.family == *family) {
            let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
            let spread = match (row.mlps_low, row.mlps_high) {
                (Some(low), Some(high)) => format!("{low:.1}-{high:.1}"),
                _ => String::new(),
            };
            grid.row([
                row.engine.clone(),
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
