//! The contestants of a table, built and checked, and the races between them.

use std::collections::HashSet;
use std::time::Duration;

use fibula::fib::Fib;
use fibula::net::{Key, NextHop, Prefix, Routes};
use fibula_workload::interval::Interval;

use super::contestant::{self, Built, Contestant, Kernel};
use super::key_sets::{Judges, Traffic, answers, edges};
use super::lane::{Lane, force, round};
use super::native::{KeyPrefetch, Shape};
use super::pass::{self, CallForm};
use super::plan::{Order, Plan};
use super::row::Row;
use super::runner::{BenchError, Steps};

/// A table with its contestants.
pub(super) struct Field<'a, K: Key> {
    pub(super) routes: &'a dyn Routes<K>,
    next_hops: usize,
    judges: Judges<K>,
    pub(super) racers: Vec<Racer<'a, K>>,
}

/// A contestant with those of its kernels that the plan allows.
pub(super) type Entry<'a, K> = (&'a Contestant<K>, Vec<&'a Kernel>);

/// A contestant once it is built.
pub(super) struct Racer<'a, K: Key> {
    pub(super) contestant: &'a Contestant<K>,
    pub(super) kernels: Vec<&'a Kernel>,
    built: Result<Built<K>, String>,
    /// The most keys it is measured with.
    keys_max: usize,
    /// Number of addresses at the ends of prefixes that were checked.
    edges: usize,
    /// Number of those with a wrong answer, by kernel.
    edges_wrong: Vec<usize>,
}

/// Keys with the answers of both judges.
pub(super) struct KeySet<'a, K: Key> {
    traffic: &'a Traffic<K>,
    /// Whether it is the larger set of its traffic.
    many: bool,
    expected: [Vec<Option<NextHop>>; 2],
}

/// One kernel of one contestant, with keys and the form of its calls.
pub(super) struct LaneStart<'a, K: Key> {
    pub(super) field: &'a Field<'a, K>,
    /// Index of the contestant.
    pub(super) racer: usize,
    /// Index of its kernel.
    pub(super) kernel: usize,
    pub(super) set: &'a KeySet<'a, K>,
    pub(super) batch: usize,
    pub(super) threads: usize,
    pub(super) order: Order,
}

/// The most addresses at the ends of prefixes that are checked.
const EDGES_MAX: usize = 1 << 18;

impl<'a, K: Key> Field<'a, K> {
    /// Builds all contestants, one after another, and checks them at the ends of prefixes.
    pub(super) fn new(
        plan: &Plan,
        routes: &'a dyn Routes<K>,
        entries: Vec<Entry<'a, K>>,
        steps: &mut Steps<'_>,
    ) -> Result<Self, BenchError> {
        let judges = Judges::new(routes)?;
        let edges = edges(routes, plan.keys.min(EDGES_MAX));
        let racers = entries.into_iter().map(|entry| racer(routes, &judges, &edges, entry, steps)).collect();
        Ok(Self { routes, next_hops: next_hops(routes), judges, racers })
    }

    /// Makes the expected answers to a traffic.
    pub(super) fn set<'t>(&self, traffic: &'t Traffic<K>, many: bool) -> KeySet<'t, K> {
        let of = |fib: &dyn Fib<K>| answers(fib, &traffic.keys);
        let expected = [of(self.judges.first.1.as_ref()), of(self.judges.second.1.as_ref())];
        KeySet { traffic, many, expected }
    }
}

fn racer<'a, K: Key>(
    routes: &dyn Routes<K>,
    judges: &Judges<K>,
    edges: &[K],
    (contestant, kernels): Entry<'a, K>,
    steps: &mut Steps<'_>,
) -> Racer<'a, K> {
    steps.next(&format!("{}: building {}", K::FAMILY, contestant.name));
    let built = contestant::build(contestant, routes);
    let keys_max = contestant.keys_limit(routes.len());
    let edges = &edges[..edges.len().min(keys_max)];
    let mut edges_wrong = vec![0; kernels.len()];
    if let Ok(built) = &built {
        let expected = answers(judges.of(&contestant.name).1, edges);
        for (wrong, kernel) in edges_wrong.iter_mut().zip(&kernels) {
            let way = CallForm { shape: Shape::Batch(256), order: Order::Host, isa: kernel.present };
            *wrong = pass::wrong(&built.structure, way, edges, &expected);
        }
    }
    Racer { contestant, kernels, built, keys_max, edges: edges.len(), edges_wrong }
}

fn next_hops<K: Key>(routes: &dyn Routes<K>) -> usize {
    let mut ids = HashSet::new();
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        ids.insert(route.next_hop);
        core::ops::ControlFlow::Continue(())
    });
    ids.len()
}

/// Checks every answer of all of these, then times them in turn, so that a disturbance of the machine affects all alike.
/// Each run begins with another one, so that none always follows the same one. Returns their rows, in order.
pub(super) fn race<K: Key>(
    starts: &[LaneStart<'_, K>],
    runs: usize,
    slot: Duration,
    steps: &mut Steps<'_>,
) -> Vec<Row> {
    let mut lanes: Vec<_> = starts
        .iter()
        .map(|start| {
            steps.next(&start.name());
            start.lane()
        })
        .collect();
    for run in 0..runs {
        for turn in 0..starts.len() {
            let at = (run + turn) % starts.len();
            steps.next(&starts[at].name());
            if let Some(lane) = &mut lanes[at] {
                lane.time(run, runs, slot);
            }
        }
    }
    starts.iter().zip(lanes).map(|(start, lane)| start.row(lane)).collect()
}

impl<'a, K: Key> LaneStart<'a, K> {
    fn of(&self) -> &'a Racer<'a, K> {
        &self.field.racers[self.racer]
    }

    /// Returns the name of its steps.
    fn name(&self) -> String {
        let of = if self.threads > 1 { format!(", {} threads", self.threads) } else { String::new() };
        let Contestant { name, .. } = self.of().contestant;
        let isa = &self.of().kernels[self.kernel].isa;
        format!("{}: {}, batch {}{of}: {name}, {isa}", K::FAMILY, self.set.traffic.name, self.batch)
    }

    /// Checks every answer, and makes the lane.
    fn lane(&self) -> Option<Lane<'a, K>> {
        let (field, racer, set) = (self.field, self.of(), self.set);
        let structure = &racer.built.as_ref().ok()?.structure;
        let isa = racer.kernels[self.kernel].present;
        let way = CallForm { shape: Shape::new(set.traffic.dependent, self.batch), order: self.order, isa };
        let count = set.traffic.keys.len().min(racer.keys_max);
        let keys = &set.traffic.keys[..count];
        let judged_by_second = racer.contestant.name == field.judges.first.0;
        let expected = &set.expected[usize::from(judged_by_second)][..count];
        force(isa.isa());
        let (wrong, time) = pass::check(structure, way, keys, expected, self.threads);
        let pace = count as f64 / time.as_secs_f64().max(1e-9);
        Some(Lane::new(structure, way, keys, set.many, self.threads, pace, wrong))
    }

    fn row(&self, lane: Option<Lane<'_, K>>) -> Row {
        let (racer, set) = (self.of(), self.set);
        let contestant = racer.contestant;
        let failure = match &racer.built {
            Ok(built) => built.structure.failure(),
            Err(error) => Some(error.clone()),
        };
        // A contestant that failed on the way has no figures, like one that was never built.
        let built = racer.built.as_ref().ok().filter(|_| failure.is_none());
        let lane = lane.filter(|_| failure.is_none());
        let memory = built.map(|built| built.structure.fib().memory());
        let builds = built.and_then(|built| {
            Interval::of(&built.times.iter().map(|time| time.as_secs_f64() * 1e3).collect::<Vec<_>>())
        });
        let mlps = lane.as_ref().map(|lane| lane.mlps.clone()).unwrap_or_default();
        let interval = Interval::of(&mlps);
        let mlps_wall = lane.as_ref().and_then(|lane| Interval::of(&lane.mlps_wall));
        let keys = lane.as_ref().map_or(0, |lane| lane.keys.len());
        let prefixes = self.field.routes.len().max(1) as f64;
        let isa = racer.kernels[self.kernel].present;
        let prefetch = built.filter(|_| self.batch > 1).map(|built| built.structure.key_prefetch(isa));
        Row {
            engine: contestant.name.clone(),
            rival: contestant.rival,
            family: K::FAMILY.name().to_owned(),
            traffic: set.traffic.name.clone(),
            batch: self.batch,
            threads: self.threads,
            isa: racer.kernels[self.kernel].isa.clone(),
            mlps_median: interval.map(|interval| interval.median),
            mlps_min: mlps.iter().copied().reduce(f64::min),
            mlps_max: mlps.iter().copied().reduce(f64::max),
            lookup_bytes: memory.map(|memory| memory.lookup_bytes),
            bytes_per_prefix: memory.map(|memory| round(memory.lookup_bytes as f64 / prefixes, 3)),
            build_time_ms: built.map(|built| round(built.time().as_secs_f64() * 1e3, 6)),
            wrong: lane.as_ref().map_or(0, |lane| lane.wrong + racer.edges_wrong[self.kernel]),
            error: failure,
            allocated_bytes: memory.map(|memory| memory.allocated_bytes),
            mapped_bytes: memory.map(|memory| memory.mapped_bytes),
            routes: self.field.routes.len(),
            next_hops: self.field.next_hops,
            role: contestant.role.name().to_owned(),
            dependent: set.traffic.dependent,
            keys,
            key_set: set.traffic.keys.len(),
            many_keys: set.many,
            sample: built.is_some() && keys < set.traffic.keys.len(),
            checked: lane.as_ref().map_or(0, |_| keys + racer.edges),
            judge: self.field.judges.of(&contestant.name).0.to_owned(),
            runs: mlps.len(),
            builds: built.map_or(0, |built| built.times.len()),
            build_low_ms: builds.map(|builds| round(builds.low, 6)),
            build_high_ms: builds.map(|builds| round(builds.high, 6)),
            huge_pages: memory.is_some_and(|memory| memory.huge_bytes > 0),
            key_prefetch: prefetch.unwrap_or(KeyPrefetch::None).name().to_owned(),
            order: self.order.name().to_owned(),
            clock: lane.as_ref().map_or("wall", |lane| lane.clock).to_owned(),
            mlps_wall: mlps_wall.map(|interval| interval.median),
            scaling: None,
            mlps_low: interval.map(|interval| interval.low),
            mlps_high: interval.map(|interval| interval.high),
            noisy: interval.is_some_and(|interval| interval.width() > NOISY),
            mlps_runs: mlps,
        }
    }
}

/// A median is too noisy to decide anything if its interval is wider than this part of it.
const NOISY: f64 = 0.2;
