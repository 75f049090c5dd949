//! Targets and whether they are met: every [target](TARGETS) of a family is measured in one run, and judged for each
//! of our own engines by itself.
//!
//! An engine is judged by its own figures only: a small engine and a fast one do not together meet a target for
//! both. Contestants are DPDK's tables and the published engines.
//!
//! Rates are compared in two steps. A survey times everything with every instruction set in every batch. Then each
//! comparison is a [race](Race): our engines and the fastest of their peers, each with the batch and the instruction
//! set that were its fastest in the survey, take turns over the same keys, [`RUNS`] times or more. A target is met if
//! the [interval](fibula_workload::interval::Interval) of the ratios is above it, missed if it is below, and undecided otherwise.
//!
//! | table | engines | for |
//! |---|---|---|
//! | the given one | own, contestants | rates, bytes, builds |
//! | the same, with one thread and with one for each core | own | cores |
//! | with additional host routes | own | the rate, relative to the given table; exact 128-bit keys |
//! | the same with everything cut to /64 | own | exact 128-bit keys |
//! | with routes for exotic addresses; with wide next hops | own | bytes |
//! | the same, while it changes | own | live tables |
//! | 10, 100 and 1000 routes | all of the registry, `rte_fib` | small tables |

mod judge;
mod live;
mod measure;
mod tables;
mod targets;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use fibula::fib::registry::Role;
use fibula::net::{Key, Route, RouteSlice, Routes};
use fibula::simd;

use super::contestant::Contestant;
use super::lane::force;
use super::plan::{Order, Plan, PlanError};
use super::row::Row;
use super::runner::{BenchError, Progress};

pub use judge::{Outcome, Peer, TargetVerdict};
pub use live::Live;
use measure::Measure;
pub use tables::with_hosts;
pub use targets::{Bound, Factor, Figure, Peers, Race, TARGETS, Target, Variant};

/// The fewest runs of a race: their interval leaves out the three slowest and the three fastest.
pub const RUNS: usize = 15;

/// The time of builds, answers and the shortest runs, about, for each route.
const PER_ROUTE: Duration = Duration::from_micros(400);

/// The judgement, and the measurements it is based on.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// An outcome for each target and own engine; one for each target if the family has no own engine.
    pub outcomes: Vec<Outcome>,
    /// Everything that was measured, with all tables.
    pub rows: Vec<Row>,
}

/// The measurements.
#[derive(Debug, Default)]
struct Measured {
    /// The survey of the given table.
    survey: Vec<Row>,
    races: Vec<(Race, Vec<Row>)>,
    /// The ratio of two rows of each engine. The two were timed in turn.
    pairs: Vec<(Figure, [Row; 2])>,
    /// By engine: bytes a prefix, or why there is no such engine.
    bytes: Vec<(Variant, String, Result<f64, String>)>,
    small: Vec<Small>,
    /// By engine: figures of a live table, or why there are none.
    live: Vec<(String, Result<live::LiveFigures, String>)>,
}

/// A table of few routes.
#[derive(Debug)]
struct Small {
    routes: usize,
    /// Bytes of its sorted array.
    array_bytes: usize,
    /// The survey.
    rows: Vec<Row>,
}

/// Measures everything that the targets need, with the table `routes`, and judges it. The plan gives keys, seed,
/// runs, seconds, batches and instruction set; `hosts` is the number of additional host routes.
///
/// # Errors
/// As [`bench::run`](super::run), and when the plan names engines or traffic: the targets decide those.
pub fn run<K: Key>(
    plan: &Plan,
    routes: &dyn Routes<K>,
    contestants: &[Contestant<K>],
    hosts: usize,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Reach, BenchError> {
    if !plan.engines.is_empty() || !plan.traffic.is_empty() {
        return Err(PlanError(
            "the targets decide what is measured and with which keys; give no engines or traffic",
        )
        .into());
    }
    plan.check()?;
    let is_own = |c: &&Contestant<K>| c.role == Role::Own && !c.rival;
    let ours: Vec<String> = contestants.iter().filter(is_own).map(|c| c.name.clone()).collect();
    let mut measured = Measured::default();
    if ours.is_empty() {
        return Ok(Reach { outcomes: judge::all::<K>(&measured, &ours), rows: Vec::new() });
    }
    let plan = Plan { orders: vec![Order::Host], threads: vec![1], many_keys: None, ..plan.clone() };
    let chosen = simd::chosen();
    let begin = Instant::now();
    // Parts follow each other, each with steps of its own; the time left is that of everything after this part too.
    let all = Duration::from_secs_f64(plan.seconds * 1.5) + PER_ROUTE * routes.len() as u32;
    let mut progress = |step: Progress<'_>| {
        progress(Progress { left: step.left.max(all.saturating_sub(begin.elapsed())), ..step });
    };
    let mut measure = Measure { plan: &plan, contestants, ours: &ours, progress: &mut progress };
    let done = measure.everything(routes, hosts, &mut measured);
    force(chosen.isa());
    done?;
    let outcomes = judge::all::<K>(&measured, &ours);
    let mut rows = measured.survey;
    rows.extend(measured.races.into_iter().flat_map(|(_, rows)| rows));
    rows.extend(measured.pairs.into_iter().flat_map(|(_, rows)| rows));
    rows.extend(measured.small.into_iter().flat_map(|small| small.rows));
    Ok(Reach { outcomes, rows })
}

fn in_order<K: Key>(routes: &[Route<K>]) -> RouteSlice<'_, K> {
    RouteSlice::new(routes).expect("routes were sorted")
}
