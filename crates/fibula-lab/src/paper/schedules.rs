//! Rates by schedule and number of threads.

use fibula::memory::Limits;
use serde::Deserialize;

use super::definition::PaperTable;
use super::{Context, Point};
use crate::bench::Contestant;
use crate::bench::schedule::{self, Division, SchedulePlan, ScheduleRow};

/// Numbers of threads, which are the columns.
const THREADS: [usize; 5] = [1, 2, 4, 8, 16];

/// Keys of a chunk.
const CHUNKS: [usize; 4] = [1, 16, 256, 4096];

/// Engines that are scheduled, with a core for the thread that starts the others or without.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scheduled {
    table: PaperTable,
    engines: Vec<String>,
    #[serde(default)]
    manager: bool,
}

/// Measures IPv4 engines in every form, with random addresses, all in one race. Where the machine has too few cores for a
/// number of threads (with a manager, one more), its point is marked as missing.
pub(super) fn rates(context: &mut Context<'_>, scheduled: &Scheduled) -> Result<Vec<Point>, String> {
    let &Scheduled { ref table, ref engines, manager } = scheduled;
    let settings = context.settings;
    let cores = settings.cores.saturating_sub(manager.into());
    let (there, beyond): (Vec<usize>, Vec<usize>) = THREADS.iter().partition(|&&threads| threads <= cores);
    let mut points = Vec::new();
    if !there.is_empty() {
        let (name, rib) = context.ipv4(table)?;
        let contestant = |name: &String| {
            let engine = fibula_published::find::<u32>(name).map_err(|error| error.to_string())?;
            Ok(Contestant::new(engine, Limits::default()))
        };
        let contestants: Vec<Contestant<u32>> =
            engines.iter().map(contestant).collect::<Result<_, String>>()?;
        let lanes = contestants.len() * (1 + (Division::ALL.len() - 1) * CHUNKS.len()) * there.len();
        let plan = SchedulePlan {
            chunks: CHUNKS.to_vec(),
            threads: there,
            reserve: manager,
            traffic: "rnd".to_owned(),
            keys: settings.keys,
            runs: settings.runs,
            seconds: settings.run.as_secs_f64() * (settings.runs * lanes) as f64,
            ..SchedulePlan::default()
        };
        let rows =
            schedule::run(&plan, &*rib, &contestants, &mut |_| ()).map_err(|error| error.to_string())?;
        if let Some(row) = rows.iter().find(|row| row.wrong > 0) {
            return Err(format!("{} gave {} wrong answers", row.engine, row.wrong));
        }
        points.extend(rows.iter().map(|row| point(row, &name)));
    }
    let beside = if manager { " beside the one for the manager" } else { "" };
    for threads in beyond {
        let why = format!("takes {threads} cores, and this machine has {cores}{beside}");
        for engine in engines {
            for (form, chunk) in ways() {
                points.push(Point::absent(
                    name(engine, form, chunk, manager),
                    threads.to_string(),
                    why.clone(),
                ));
            }
        }
    }
    Ok(points)
}

/// The forms, with each size of chunks where they have chunks.
fn ways() -> impl Iterator<Item = (Division, usize)> {
    Division::ALL.into_iter().flat_map(|form| {
        let chunks = if form == Division::Static { &[0][..] } else { &CHUNKS };
        chunks.iter().map(move |&chunk| (form, chunk))
    })
}

/// Returns the name of a row.
fn name(engine: &str, form: Division, chunk: usize, manager: bool) -> String {
    let chunks = if form == Division::Static { String::new() } else { format!(", chunks of {chunk}") };
    let manager = if manager { ", with a manager" } else { "" };
    format!("{engine}, {}{chunks}{manager}", form.name())
}

fn point(row: &ScheduleRow, table: &str) -> Point {
    let name = name(&row.engine, row.form, row.chunk, row.reserved);
    let column = row.threads.to_string();
    if let Some(error) = &row.error {
        return Point::absent(name, column, error.clone());
    }
    let manager = if row.reserved { "with a manager, " } else { "" };
    Point {
        value: row.mlps_median,
        low: row.mlps_low,
        high: row.mlps_high,
        runs: row.mlps_runs.clone(),
        race: Some(format!("schedules, {manager}{table}")),
        note: Some(row.isa.clone()),
        ..Point::absent(name, column, "")
    }
}
