//! Measures a paper, part by part.

use std::time::{Duration, Instant};

use super::context::{Context, Supply};
use super::definition::{Exhibit, ExhibitPart, Paper, Work};
use super::rates;
use super::record::{FinishedPart, PaperError, PaperRecord, Point};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Whether this is a quick run: small generated tables, few keys and short times. It shows that all of it works, and proves
    /// nothing.
    pub quick: bool,
    /// Most routes of a generated table.
    pub routes: usize,
    /// Keys of each traffic.
    pub keys: usize,
    /// Keys of the larger set, which no cache holds.
    pub many_keys: usize,
    /// Timed runs of each contestant.
    pub runs: usize,
    /// Time of a timed run.
    pub run: Duration,
    /// Cores. Points that need more threads are missing.
    pub cores: usize,
}

impl Settings {
    /// Returns the settings of a full run.
    #[must_use]
    pub fn full() -> Self {
        Self {
            quick: false,
            routes: usize::MAX,
            keys: 1 << 20,
            many_keys: 1 << 26,
            runs: 15,
            run: Duration::from_millis(60),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Returns the settings of a quick run.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            quick: true,
            routes: 2_000,
            keys: 4_096,
            many_keys: 16_384,
            runs: 5,
            run: Duration::ZERO,
            ..Self::full()
        }
    }
}

/// A part that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// Parts that are done, or need not be.
    pub done: usize,
    /// Parts in all.
    pub total: usize,
    /// The exhibit.
    pub exhibit: &'a str,
    /// The part, or the step of it that begins now.
    pub part: &'a str,
}

/// Measures the parts of a paper that a record lacks. A record begins empty ([`PaperRecord::new`]). `save` gets the
/// record after each part, and its error ends the run. A part that fails is kept with the reason, and tried again by
/// the next run.
///
/// # Errors
/// When the record cannot be saved.
pub fn run(
    paper: &Paper,
    settings: &Settings,
    supply: &dyn Supply,
    mut record: PaperRecord,
    save: &mut dyn FnMut(&PaperRecord) -> Result<(), PaperError>,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<PaperRecord, PaperError> {
    let total = paper.exhibits.iter().map(|exhibit| exhibit.parts.len()).sum();
    record.parts.retain(|done| done.error.is_none());
    let mut context = Context::new(settings, supply);
    let mut number = 0;
    for exhibit in &paper.exhibits {
        for part in &exhibit.parts {
            let step = Step { done: number, total, exhibit: &exhibit.title, part: &part.name };
            number += 1;
            if record.done(&exhibit.name, &part.name).is_some() {
                continue;
            }
            progress(step);
            let begin = Instant::now();
            let result =
                measure(exhibit, part, &mut context, &mut |detail| progress(Step { part: detail, ..step }));
            let seconds = begin.elapsed().as_secs_f64();
            let (points, error) = match result {
                Ok(points) => (points, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            for used in context.take_used() {
                if !record.tables.contains(&used) {
                    record.tables.push(used);
                }
            }
            let (exhibit, part) = (exhibit.name.clone(), part.name.clone());
            record.parts.push(FinishedPart {
                exhibit,
                part,
                seconds: (seconds * 10.0).round() / 10.0,
                error,
                points,
            });
            save(&record)?;
        }
    }
    Ok(record)
}

fn measure(
    exhibit: &Exhibit,
    part: &ExhibitPart,
    context: &mut Context<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Point>, String> {
    match &part.work {
        Work::Ipv4(rates) => rates::measure::<u32>(rates, exhibit, context, progress),
        Work::Ipv6(rates) => rates::measure::<u128>(rates, exhibit, context, progress),
        Work::Values(values) => values.measure(context),
    }
}
