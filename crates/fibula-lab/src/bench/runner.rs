//! Builds the contestants, checks them, and times them in turn.

use core::fmt;
use std::time::{Duration, Instant};

use fibula::fib::{BuildError, Fib};
use fibula::net::{Family, Key, NextHop, Prefix, Routes};
use fibula::simd::{self, Isa};

use super::clock::Spent;
use super::contestant::{self, Built, Contestant, Kernel};
use super::key_sets::{Judges, Traffic, answers, edges};
use super::native::{KeyPrefetch, Shape, Structure};
use super::pass::{self, Load, Way};
use super::plan::{Cell, Estimate, Order, Plan, PlanError, cells};
use super::row::Row;
use crate::traffic::TrafficError;

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
/// refuses the table gets rows with an error. `progress` is called before each step.
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
    if let Some(name) = plan.algorithms.iter().find(|&name| contestants.iter().all(|c| c.name != *name)) {
        return Err(BenchError::UnknownAlgorithm {
            name: name.clone(),
            known: contestants.iter().map(|contestant| contestant.name.clone()).collect(),
        });
    }
    let named = |c: &&Contestant<K>| plan.algorithms.is_empty() || plan.algorithms.contains(&c.name);
    let limit = plan.isa.as_ref().and_then(|isa| isa.parse::<Isa>().ok());
    let allowed = |kernel: &&Kernel| limit.is_none_or(|limit| kernel.within() <= limit);
    let contestants: Vec<(&Contestant<K>, Vec<&Kernel>)> = contestants
        .iter()
        .filter(named)
        .map(|contestant| (contestant, contestant.kernels.iter().filter(allowed).collect()))
        .filter(|(_, kernels): &(_, Vec<_>)| !kernels.is_empty())
        .collect();
    let mut traffic = Traffic::of_plan(plan, routes)?;
    traffic.extend(recorded);
    let cells = cells(plan, &traffic.iter().map(|traffic| traffic.dependent).collect::<Vec<_>>());
    let lanes = |cell: &Cell| {
        let kernels = |(contestant, kernels): &(&Contestant<K>, Vec<_>)| match joins(contestant, cell) {
            true => takes_part(kernels.len(), cell).count(),
            false => 0,
        };
        contestants.iter().map(kernels).sum::<usize>()
    };
    let estimate = plan.estimate(contestants.len(), cells.iter().map(lanes).sum::<usize>(), size_of::<K>());
    let mut steps = Steps { done: 0, estimate, spent: Duration::ZERO, begin: Instant::now(), progress };
    let bench = Bench {
        plan,
        routes,
        next_hops: next_hops(routes),
        judges: Judges::new(routes)?,
        edges: edges(routes, plan.keys.min(EDGES_MAX)),
        slot: estimate.slot,
    };
    let chosen = simd::chosen();
    let racers: Vec<_> = contestants
        .into_iter()
        .map(|(contestant, kernels)| bench.racer(contestant, kernels, &mut steps))
        .collect();
    let mut rows = Vec::new();
    for (index, traffic) in traffic.iter().enumerate() {
        let set = KeySet::new(&bench.judges, traffic);
        for cell in cells.iter().filter(|cell| cell.traffic == index) {
            rows.extend(bench.cell(cell, &set, &racers, &mut steps));
        }
    }
    force(chosen.isa());
    scale(&mut rows);
    Ok(rows)
}

/// Returns whether a contestant takes part in a cell. Rivals have their own form of keys, and no other.
fn joins<K: Key>(contestant: &Contestant<K>, cell: &Cell) -> bool {
    (cell.order == Order::Host || !contestant.rival) && cell.threads <= contestant.bounds.threads
}

/// Which of a contestant's kernels are timed in a cell. Single lookups of most structures are the same for every
/// instruction set: only the first and the last kernel take part.
fn takes_part(kernels: usize, cell: &Cell) -> impl Iterator<Item = usize> + use<> {
    let batch = cell.batch;
    (0..kernels).filter(move |&at| batch > 1 || at == 0 || at + 1 == kernels)
}

/// Sets the instruction set of single lookups. There is a kernel for it, so the machine supports it.
fn force(isa: Isa) {
    let _ = simd::force(Some(isa));
}

/// Computes the scaling efficiency of rows with several threads, by wall-clock time.
fn scale(rows: &mut [Row]) {
    let one: Vec<Row> = rows.iter().filter(|row| row.threads == 1).cloned().collect();
    for row in rows.iter_mut().filter(|row| row.threads > 1) {
        let same = |one: &&Row| {
            (&one.algorithm, &one.isa, &one.traffic, one.batch, &one.order)
                == (&row.algorithm, &row.isa, &row.traffic, row.batch, &row.order)
        };
        let alone = one.iter().find(same).and_then(|one| one.mlps_wall).filter(|&alone| alone > 0.0);
        let together = row.mlps_median.zip(alone);
        row.scaling = together.map(|(all, alone)| round(all / (row.threads as f64 * alone), 3));
    }
}

/// The most addresses at the ends of prefixes that are checked.
const EDGES_MAX: usize = 1 << 18;

fn next_hops<K: Key>(routes: &dyn Routes<K>) -> usize {
    let mut ids = std::collections::HashSet::new();
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        ids.insert(route.next_hop);
        core::ops::ControlFlow::Continue(())
    });
    ids.len()
}

/// Returns the name of a family in outputs.
#[must_use]
pub fn family_name(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ipv4",
        Family::Ipv6 => "ipv6",
        Family::Toy => "toy",
    }
}

/// Everything that all cells share.
struct Bench<'a, K: Key> {
    plan: &'a Plan,
    routes: &'a dyn Routes<K>,
    next_hops: usize,
    judges: Judges<K>,
    edges: Vec<K>,
    slot: Duration,
}

/// A contestant once it is built.
struct Racer<'a, K: Key> {
    contestant: &'a Contestant<K>,
    kernels: Vec<&'a Kernel>,
    built: Result<Built<K>, String>,
    /// The most keys it is measured with.
    keys_max: usize,
    /// Number of addresses at the ends of prefixes that were checked.
    edges: usize,
    /// Number of those with a wrong answer, by kernel.
    edges_wrong: Vec<usize>,
}

/// Keys with the answers of both judges.
struct KeySet<'a, K> {
    traffic: &'a Traffic<K>,
    expected: [Vec<Option<NextHop>>; 2],
}

impl<'a, K: Key> KeySet<'a, K> {
    fn new(judges: &Judges<K>, traffic: &'a Traffic<K>) -> Self {
        let of = |fib: &dyn Fib<K>| answers(fib, &traffic.keys);
        Self { traffic, expected: [of(judges.first.1.as_ref()), of(judges.second.1.as_ref())] }
    }
}

/// One kernel of one racer in one cell, with its results so far.
struct Lane<'a, K: Key> {
    structure: &'a Structure<K>,
    way: Way,
    keys: &'a [K],
    threads: usize,
    /// Lookups a second, as last measured.
    pace: f64,
    /// Rates of the runs, by the clock that counts and by wall-clock time.
    mlps: Vec<f64>,
    mlps_wall: Vec<f64>,
    clock: &'static str,
    wrong: usize,
}

/// One kernel of one racer, to make a lane of.
struct Start<'a, K: Key> {
    racer: &'a Racer<'a, K>,
    kernel: usize,
}

impl<K: Key> Bench<'_, K> {
    fn racer<'a>(
        &self,
        contestant: &'a Contestant<K>,
        kernels: Vec<&'a Kernel>,
        steps: &mut Steps<'_>,
    ) -> Racer<'a, K> {
        steps.next(&format!("{}: building {}", K::FAMILY, contestant.name));
        let built = contestant::build(contestant, self.routes);
        let keys_max = contestant.keys_limit(self.routes.len());
        let edges = &self.edges[..self.edges.len().min(keys_max)];
        let mut edges_wrong = vec![0; kernels.len()];
        if let Ok(built) = &built {
            let expected = answers(self.judges.of(&contestant.name).1, edges);
            for (wrong, kernel) in edges_wrong.iter_mut().zip(&kernels) {
                let way = Way { shape: Shape::Batch(256), order: Order::Host, isa: kernel.present };
                *wrong = pass::wrong(&built.structure, way, edges, &expected);
            }
        }
        Racer { contestant, kernels, built, keys_max, edges: edges.len(), edges_wrong }
    }

    fn cell(
        &self,
        cell: &Cell,
        set: &KeySet<'_, K>,
        racers: &[Racer<'_, K>],
        steps: &mut Steps<'_>,
    ) -> Vec<Row> {
        let starts: Vec<Start<'_, K>> = racers
            .iter()
            .filter(|racer| joins(racer.contestant, cell))
            .flat_map(|racer| {
                takes_part(racer.kernels.len(), cell).map(move |kernel| Start { racer, kernel })
            })
            .collect();
        let step = |start: &Start<'_, K>| {
            let Cell { batch, threads, .. } = cell;
            let of = if *threads > 1 { format!(", {threads} threads") } else { String::new() };
            let (name, isa) = (&start.racer.contestant.name, &start.racer.kernels[start.kernel].isa);
            format!("{}: {}, batch {batch}{of}: {name}, {isa}", K::FAMILY, set.traffic.name)
        };
        let mut lanes: Vec<_> = starts
            .iter()
            .map(|start| {
                steps.next(&step(start));
                self.lane(cell, set, start)
            })
            .collect();
        for run in 0..self.plan.runs {
            // Each run begins with another one, so that no lane always follows the same one.
            for turn in 0..starts.len() {
                let at = (run + turn) % starts.len();
                steps.next(&step(&starts[at]));
                if let Some(lane) = &mut lanes[at] {
                    lane.time(run, self.plan.runs, self.slot);
                }
            }
        }
        starts.iter().zip(lanes).map(|(start, lane)| self.row(cell, set.traffic, start, lane)).collect()
    }

    /// Checks every answer, and makes the lane.
    fn lane<'a>(&self, cell: &Cell, set: &'a KeySet<'_, K>, start: &Start<'a, K>) -> Option<Lane<'a, K>> {
        let racer = start.racer;
        let structure = &racer.built.as_ref().ok()?.structure;
        let isa = racer.kernels[start.kernel].present;
        let way = Way { shape: Shape::new(set.traffic.dependent, cell.batch), order: cell.order, isa };
        let count = set.traffic.keys.len().min(racer.keys_max);
        let keys = &set.traffic.keys[..count];
        let judged_by_second = racer.contestant.name == self.judges.first.0;
        let expected = &set.expected[usize::from(judged_by_second)][..count];
        force(isa.isa());
        let (wrong, time) = pass::check(structure, way, keys, expected, cell.threads);
        let pace = count as f64 / time.as_secs_f64().max(1e-9);
        let (mlps, mlps_wall, clock) = (Vec::new(), Vec::new(), "wall");
        Some(Lane { structure, way, keys, threads: cell.threads, pace, mlps, mlps_wall, clock, wrong })
    }

    fn row(&self, cell: &Cell, traffic: &Traffic<K>, start: &Start<'_, K>, lane: Option<Lane<'_, K>>) -> Row {
        let racer = start.racer;
        let contestant = racer.contestant;
        let failure = match &racer.built {
            Ok(built) => built.structure.failure(),
            Err(error) => Some(error.clone()),
        };
        // A contestant that failed on the way has no figures, like one that was never built.
        let built = racer.built.as_ref().ok().filter(|_| failure.is_none());
        let lane = lane.filter(|_| failure.is_none());
        let memory = built.map(|built| built.structure.fib().memory());
        let mlps = lane.as_ref().map(|lane| sorted(&lane.mlps)).unwrap_or_default();
        let mlps_wall = lane.as_ref().map(|lane| sorted(&lane.mlps_wall)).unwrap_or_default();
        let keys = lane.as_ref().map_or(0, |lane| lane.keys.len());
        let prefixes = self.routes.len().max(1) as f64;
        let isa = racer.kernels[start.kernel].present;
        let prefetch = built.filter(|_| cell.batch > 1).map(|built| built.structure.key_prefetch(isa));
        Row {
            algorithm: contestant.name.clone(),
            rival: contestant.rival,
            family: family_name(K::FAMILY).to_owned(),
            traffic: traffic.name.clone(),
            batch: cell.batch,
            threads: cell.threads,
            isa: racer.kernels[start.kernel].isa.clone(),
            mlps_median: median(&mlps),
            mlps_min: mlps.first().copied(),
            mlps_max: mlps.last().copied(),
            lookup_bytes: memory.map(|memory| memory.lookup_bytes),
            bytes_per_prefix: memory.map(|memory| round(memory.lookup_bytes as f64 / prefixes, 3)),
            build_time_ms: built.map(|built| round(built.time.as_secs_f64() * 1e3, 6)),
            wrong: lane.as_ref().map_or(0, |lane| lane.wrong + racer.edges_wrong[start.kernel]),
            error: failure,
            allocated_bytes: memory.map(|memory| memory.allocated_bytes),
            mapped_bytes: memory.map(|memory| memory.mapped_bytes),
            routes: self.routes.len(),
            next_hops: self.next_hops,
            role: contestant.role.name().to_owned(),
            dependent: traffic.dependent,
            keys,
            sample: built.is_some() && keys < traffic.keys.len(),
            checked: lane.as_ref().map_or(0, |_| keys + racer.edges),
            judge: self.judges.of(&contestant.name).0.to_owned(),
            runs: mlps.len(),
            builds: built.map_or(0, |built| built.builds),
            huge_pages: memory.is_some_and(|memory| memory.huge_bytes > 0),
            key_prefetch: prefetch.unwrap_or(KeyPrefetch::None).name().to_owned(),
            order: cell.order.name().to_owned(),
            clock: lane.as_ref().map_or("wall", |lane| lane.clock).to_owned(),
            mlps_wall: median(&mlps_wall),
            scaling: None,
        }
    }
}

impl<K: Key> Lane<'_, K> {
    /// Times run number `run`, which lasts about as long as the slot. An untimed run over the same keys comes first,
    /// because the contestant before has filled the caches with its own memory.
    fn time(&mut self, run: usize, runs: usize, slot: Duration) {
        if self.keys.is_empty() {
            return;
        }
        force(self.way.isa.isa());
        let wanted = |pace: f64, time: Duration| (pace * time.as_secs_f64()) as usize;
        let fewest = LOOKUPS_MIN.max(wanted(self.pace, PASS_MIN)).min(self.keys.len());
        let load = load(self.keys, wanted(self.pace, slot).max(fewest), run, runs);
        let warm_up = Load { passes: load.passes.div_ceil(WARM_UP_PARTS), ..load };
        pass::time(self.structure, self.way, warm_up, self.threads);
        let spent = pass::time(self.structure, self.way, load, self.threads);
        let rate = |time: Duration| (load.keys.len() * load.passes) as f64 / time.as_secs_f64().max(1e-9);
        self.pace = rate(spent.wall);
        self.clock = if matches!(spent, Spent { thread: Some(_), .. }) { "thread" } else { "wall" };
        self.mlps.push(round(rate(spent.counted()) / 1e6, 5));
        self.mlps_wall.push(round(self.pace / 1e6, 5));
    }
}

/// A structure that looks up all keys within this time does so in each run, and to warm up: some of the keys would
/// touch only a part of a large structure.
const PASS_MIN: Duration = Duration::from_millis(20);

/// The untimed run makes a quarter of the passes, and at least one.
const WARM_UP_PARTS: usize = 4;

/// The fewest lookups of a run, however short its time, if there are as many keys.
const LOOKUPS_MIN: usize = 4096;

/// Returns about `wanted` lookups: whole passes over all keys, or some of the keys. In the same run, all contestants
/// begin at the same key.
fn load<K>(keys: &[K], wanted: usize, run: usize, runs: usize) -> Load<'_, K> {
    if wanted >= keys.len() {
        return Load { keys, passes: wanted.div_ceil(keys.len().max(1)) };
    }
    let first = (keys.len() * run / runs).min(keys.len() - wanted);
    Load { keys: &keys[first..first + wanted], passes: 1 }
}

/// Rounds a figure to the digits that mean something, for readers of the record.
fn round(number: f64, decimals: i32) -> f64 {
    let unit = 10_f64.powi(decimals);
    (number * unit).round() / unit
}

fn sorted(rates: &[f64]) -> Vec<f64> {
    let mut rates = rates.to_vec();
    rates.sort_unstable_by(f64::total_cmp);
    rates
}

/// Returns the median of sorted rates; of an even number, the slower of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// Counts steps and reports progress.
struct Steps<'a> {
    done: usize,
    estimate: Estimate,
    /// Time from the beginning to the current step.
    spent: Duration,
    begin: Instant,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl Steps<'_> {
    fn next(&mut self, step: &str) {
        self.spent = self.begin.elapsed();
        let total = self.estimate.steps;
        let share = (total - self.done.min(total)) as f64 / total.max(1) as f64;
        // The plan's estimate at first; later, more and more what the steps have taken.
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
    /// A structure that does not exist for this family.
    UnknownAlgorithm {
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
            Self::UnknownAlgorithm { name, known } => {
                write!(f, "no algorithm '{name}'; there are: {}", known.join(", "))
            }
            Self::UnknownTraffic { name, known } => {
                write!(f, "no traffic '{name}'; there are: {}", known.join(", "))
            }
            Self::Traffic(error) => error.fmt(f),
            Self::Judge(error) => write!(f, "cannot build a structure to check the answers with: {error}"),
        }
    }
}

impl core::error::Error for BenchError {}
