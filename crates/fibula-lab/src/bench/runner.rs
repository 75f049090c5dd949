//! Carries out a plan: races in every cell.

use core::fmt;
use std::time::{Duration, Instant};

use fibula::fib::BuildError;
use fibula::net::{Key, Routes};
use fibula::simd::{self, Isa};
use fibula_workload::traffic::TrafficError;

use super::contestant::{Contestant, Kernel};
use super::field::{Entry, Field, KeySet, LaneStart, race};
use super::key_sets::Traffic;
use super::lane::{force, round};
use super::plan::{Cell, Estimate, KernelSelection, Order, Plan, PlanError, cells};
use super::row::Row;

/// The progress of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Steps done: builds, checks and timed runs.
    pub done: usize,
    /// Steps in all.
    pub total: usize,
    /// The step that begins now.
    pub step: &'a str,
    /// Estimated time left.
    pub left: Duration,
}

/// Measures `contestants` with the table `routes` as the plan says, with `recorded` as further traffic.
///
/// Every contestant is built once, whatever the number of its kernels, and kept. In each cell all answers are
/// checked; then the contestants are timed in turn, so that a disturbance of the machine affects all of them alike.
/// The instruction set of single lookups is [forced](simd::force) meanwhile, for the whole process. A contestant that
/// refuses the table gets rows with an error. `progress` is called before each step; its first call says how long
/// everything takes, about.
///
/// # Errors
/// When the plan cannot be carried out, or the judges cannot be built.
pub fn run<K: Key>(
    plan: &Plan,
    routes: &dyn Routes<K>,
    contestants: &[Contestant<K>],
    recorded: Vec<Traffic<K>>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Row>, BenchError> {
    plan.check()?;
    let entries = entries(plan, contestants)?;
    let mut traffic = Traffic::of_plan(plan, routes)?;
    traffic.extend(recorded);
    let cells = cells_of(plan, &traffic);
    let estimate = estimate(plan, &entries, &cells);
    let mut steps = Steps::new(estimate, progress);
    let chosen = simd::chosen();
    let field = Field::new(plan, routes, entries, &mut steps)?;
    let rows = survey(plan, &field, &traffic, &cells, estimate, &mut steps);
    force(chosen.isa());
    rows
}

/// Returns the contestants of a plan, with the kernels that it allows; those with none are left out.
pub(super) fn entries<'a, K: Key>(
    plan: &Plan,
    contestants: &'a [Contestant<K>],
) -> Result<Vec<Entry<'a, K>>, BenchError> {
    if let Some(name) = plan.engines.iter().find(|&name| contestants.iter().all(|c| c.name != *name)) {
        return Err(BenchError::UnknownEngine {
            name: name.clone(),
            known: contestants.iter().map(|contestant| contestant.name.clone()).collect(),
        });
    }
    let named = |c: &&Contestant<K>| plan.engines.is_empty() || plan.engines.contains(&c.name);
    let limit = plan.isa.as_ref().and_then(|isa| isa.parse::<Isa>().ok());
    let allowed = |kernel: &&Kernel| limit.is_none_or(|limit| kernel.within() <= limit);
    Ok(contestants
        .iter()
        .filter(named)
        .map(|contestant| (contestant, contestant.kernels.iter().filter(allowed).collect()))
        .filter(|(_, kernels): &Entry<'_, K>| !kernels.is_empty())
        .collect())
}

/// Returns the cells of a plan with this traffic.
pub(super) fn cells_of<K: Key>(plan: &Plan, traffic: &[Traffic<K>]) -> Vec<Cell> {
    cells(plan, &traffic.iter().map(|traffic| (&*traffic.name, traffic.dependent)).collect::<Vec<_>>())
}

/// Returns the cost of the cells.
pub(super) fn estimate<K: Key>(plan: &Plan, entries: &[Entry<'_, K>], cells: &[Cell]) -> Estimate {
    let lanes = |cell: &Cell| {
        let of = |(contestant, kernels): &Entry<'_, K>| match part(plan, contestant, cell) {
            KernelSelection::None => 0,
            KernelSelection::Fastest => 1,
            KernelSelection::Ends => kernels.len().min(2),
            KernelSelection::All => kernels.len(),
        };
        entries.iter().map(of).sum::<usize>()
    };
    let all = cells.iter().map(lanes).sum();
    let many = cells.iter().filter(|cell| cell.many).map(lanes).sum();
    plan.estimate(entries.len(), all, many, size_of::<K>())
}

/// Returns which kernels of a contestant take part in a cell. Rivals have their own form of keys, and no other.
fn part<K: Key>(plan: &Plan, contestant: &Contestant<K>, cell: &Cell) -> KernelSelection {
    let own_form = cell.order != Order::Host && contestant.rival;
    if own_form || cell.threads > contestant.bounds.threads {
        return KernelSelection::None;
    }
    plan.part(contestant.standing(), cell)
}

/// Races in all cells. The cells that compare instruction sets come first, as they decide which set the others take.
pub(super) fn survey<K: Key>(
    plan: &Plan,
    field: &Field<'_, K>,
    traffic: &[Traffic<K>],
    cells: &[Cell],
    estimate: Estimate,
    steps: &mut Steps<'_>,
) -> Result<Vec<Row>, BenchError> {
    let mut rows: Vec<(usize, Vec<Row>)> = Vec::new();
    for (index, traffic) in traffic.iter().enumerate() {
        let mut fastest: Vec<usize> = field.racers.iter().map(|racer| racer.kernels.len() - 1).collect();
        for many in [false, true] {
            let mut order: Vec<usize> =
                (0..cells.len()).filter(|&at| cells[at].traffic == index && cells[at].many == many).collect();
            if order.is_empty() {
                continue;
            }
            order.sort_by_key(|&at| !plan.compares_sets(&cells[at]));
            let larger = match many {
                true => Some(traffic.of_size(plan, field.routes)?),
                false => None,
            };
            let set = field.set(larger.as_ref().unwrap_or(traffic), many);
            for at in order {
                let starts = starts(plan, field, &set, &cells[at], &fastest);
                let found = race(&starts, plan.runs, estimate.slot_of(&cells[at]), steps);
                if plan.compares_sets(&cells[at]) {
                    choose(&mut fastest, &starts, &found);
                }
                rows.push((at, found));
            }
        }
    }
    rows.sort_by_key(|(at, _)| *at);
    let mut rows: Vec<Row> = rows.into_iter().flat_map(|(_, rows)| rows).collect();
    scale(&mut rows);
    Ok(rows)
}

/// Returns everything that takes part in a cell.
fn starts<'a, K: Key>(
    plan: &Plan,
    field: &'a Field<'a, K>,
    set: &'a KeySet<'a, K>,
    cell: &Cell,
    fastest: &[usize],
) -> Vec<LaneStart<'a, K>> {
    let &Cell { batch, threads, order, .. } = cell;
    let mut starts = Vec::new();
    for (racer, (entry, &fastest)) in field.racers.iter().zip(fastest).enumerate() {
        let last = entry.kernels.len() - 1;
        let kernels = match part(plan, entry.contestant, cell) {
            KernelSelection::None => Vec::new(),
            KernelSelection::Fastest => vec![fastest],
            KernelSelection::Ends if last > 0 => vec![0, last],
            KernelSelection::Ends | KernelSelection::All => (0..=last).collect(),
        };
        let start = |kernel| LaneStart { field, racer, kernel, set, batch, threads, order };
        starts.extend(kernels.into_iter().map(start));
    }
    starts
}

/// Notes which kernel of each contestant was the fastest.
fn choose<K: Key>(fastest: &mut [usize], starts: &[LaneStart<'_, K>], rows: &[Row]) {
    let mut best = vec![0.0; fastest.len()];
    for (start, row) in starts.iter().zip(rows) {
        let rate = row.mlps_median.unwrap_or(0.0);
        if rate > best[start.racer] {
            (best[start.racer], fastest[start.racer]) = (rate, start.kernel);
        }
    }
}

/// Computes the scaling efficiency of rows with several threads, by wall-clock time.
fn scale(rows: &mut [Row]) {
    let one: Vec<Row> = rows.iter().filter(|row| row.threads == 1).cloned().collect();
    for row in rows.iter_mut().filter(|row| row.threads > 1) {
        let same = |one: &&Row| {
            (&one.engine, &one.isa, &one.traffic, one.batch, &one.order, one.many_keys)
                == (&row.engine, &row.isa, &row.traffic, row.batch, &row.order, row.many_keys)
        };
        let alone = one.iter().find(same).and_then(|one| one.mlps_wall).filter(|&alone| alone > 0.0);
        let together = row.mlps_median.zip(alone);
        row.scaling = together.map(|(all, alone)| round(all / (row.threads as f64 * alone), 3));
    }
}

/// Counts steps and reports progress.
pub(super) struct Steps<'a> {
    done: usize,
    estimate: Estimate,
    /// Time from the beginning to the current step.
    spent: Duration,
    begin: Instant,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl<'a> Steps<'a> {
    pub(super) fn new(estimate: Estimate, progress: &'a mut dyn FnMut(Progress<'_>)) -> Self {
        Self { done: 0, estimate, spent: Duration::ZERO, begin: Instant::now(), progress }
    }

    pub(super) fn next(&mut self, step: &str) {
        self.spent = self.begin.elapsed();
        let total = self.estimate.steps;
        let share = (total - self.done.min(total)) as f64 / total.max(1) as f64;
        // The plan's estimate at first; later, more and more the time that the steps have taken.
        let by_plan = self.estimate.time.as_secs_f64() * share;
        let by_clock = self.spent.as_secs_f64() * share / (1.0 - share).max(1e-9);
        let left = by_plan * share + if self.done == 0 { 0.0 } else { by_clock * (1.0 - share) };
        let left = Duration::try_from_secs_f64(left).unwrap_or_default();
        (self.progress)(Progress { done: self.done, total, step, left });
        self.done += 1;
    }
}

/// Why nothing was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BenchError {
    /// The plan cannot be carried out.
    Plan(PlanError),
    /// An engine that does not exist for this family.
    UnknownEngine {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// An unknown traffic pattern.
    UnknownTraffic {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// The traffic is impossible for this table.
    Traffic(TrafficError),
    /// A judge could not be built.
    Judge(BuildError),
}

impl From<PlanError> for BenchError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<TrafficError> for BenchError {
    fn from(error: TrafficError) -> Self {
        Self::Traffic(error)
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::UnknownEngine { name, known } => {
                write!(f, "no engine '{name}'; there are: {}", known.join(", "))
            }
            Self::UnknownTraffic { name, known } => {
                write!(f, "no traffic '{name}'; there are: {}", known.join(", "))
            }
            Self::Traffic(error) => error.fmt(f),
            Self::Judge(error) => write!(f, "cannot build an engine to check the answers with: {error}"),
        }
    }
}

impl core::error::Error for BenchError {}
