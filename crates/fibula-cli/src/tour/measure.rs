//! The work of the tour: a table, every structure over it, figures.

use std::time::{Duration, Instant};

use fibula::fib::registry::{self, Algorithm, Role};
use fibula::fib::{BuildError, Fib};
use fibula::memory::Limits;
use fibula::net::{Family, Key, NextHop, Prefix, Route, RouteSlice, Routes};
use fibula::rib::Rib;
use fibula_workload::measure::{Settings, measure_build, measure_lookups};
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic;
use indicatif::ProgressBar;

use crate::failure::Failure;

/// The structure that judges the answers of the others.
pub(super) const ORACLE: &str = "binary-trie";

/// Keys of each pattern: more than caches hold answers for, few enough for the slowest structure.
const KEYS: usize = 1 << 18;

/// Keys of each pattern for an oracle that is too slow for more.
const KEYS_OF_SAMPLES: usize = 1 << 13;

/// A generated table of one family, and how long it took to fill.
pub(super) struct SynthTable<K> {
    pub(super) rib: Rib<K>,
    pub(super) next_hops: u32,
    pub(super) fill_time: Duration,
}

impl<K: Key> SynthTable<K> {
    pub(super) fn new(spec: TableSpec) -> Result<Self, Failure> {
        let routes = generate::<K>(&spec, &Profile::of::<K>())
            .map_err(|error| Failure::WrongUse(format!("{}: {error}", K::FAMILY)))?;
        let mut rib = Rib::new(Limits::default());
        let start = Instant::now();
        for route in routes {
            rib.insert(route).map_err(|error| Failure::BadInput(error.to_string()))?;
        }
        Ok(Self { rib, next_hops: spec.next_hops, fill_time: start.elapsed() })
    }
}

/// The result of one structure.
pub(super) struct Row {
    pub(super) algorithm: &'static str,
    pub(super) family: Family,
    /// Number of routes it was built from.
    pub(super) routes: usize,
    /// Whether those are a sample of the table.
    pub(super) sample: bool,
    /// Its figures, or why it could not be built.
    pub(super) figures: Result<Figures, BuildError>,
}

#[derive(Clone, Copy)]
pub(super) struct Figures {
    pub(super) lookup_bytes: usize,
    pub(super) build_time_ns: u64,
    pub(super) mlps_match: f64,
    pub(super) mlps_rnd: f64,
    pub(super) checked: usize,
    pub(super) wrong: usize,
}

/// Answers that differ from the oracle's.
pub(super) fn wrong(rows: &[Row]) -> usize {
    rows.iter().filter_map(|row| row.figures.as_ref().ok()).map(|figures| figures.wrong).sum()
}

/// Builds, checks and measures these structures of the family, a step of the bar each. `budget` is for one pattern of one structure.
pub(super) fn measure<K: Key>(
    algorithms: &[Algorithm<K>],
    rib: &Rib<K>,
    budget: Duration,
    bar: &ProgressBar,
) -> Result<Vec<Row>, Failure> {
    bar.set_message(format!("{}: choosing addresses", K::FAMILY));
    let full = TestKeys::new(rib, KEYS)?;
    let mut rows = Vec::new();
    for algorithm in algorithms {
        bar.set_message(format!("{}: {}", K::FAMILY, algorithm.name));
        rows.push(match algorithm.role {
            Role::Oracle { routes_limit } if routes_limit < rib.len() => {
                let routes = sample(rib, routes_limit);
                let routes =
                    RouteSlice::new(&routes).map_err(|error| Failure::BadInput(error.to_string()))?;
                row(algorithm, &routes, &TestKeys::new(&routes, KEYS_OF_SAMPLES)?, budget, true)
            }
            _ if algorithm.name == ORACLE => row(algorithm, rib, &full.judged_by_rib(rib), budget, false),
            _ => row(algorithm, rib, &full, budget, false),
        });
        bar.inc(1);
    }
    Ok(rows)
}

/// Returns about `count` routes, evenly spaced.
fn sample<K: Key>(rib: &Rib<K>, count: usize) -> Vec<Route<K>> {
    rib.iter().step_by(rib.len().div_ceil(count.max(1))).collect()
}

fn row<K: Key>(
    algorithm: &Algorithm<K>,
    routes: &dyn Routes<K>,
    keys: &TestKeys<K>,
    budget: Duration,
    sample: bool,
) -> Row {
    let built = measure_build(algorithm, routes, Limits::default());
    let figures = built.map(|(fib, build_time_ns)| {
        let settings = Settings { budget, ..Settings::default() };
        let timed = |set: &KeySet<K>| measure_lookups(fib.as_ref(), &set.keys, &set.expected, &settings);
        let (matching, random) = (timed(&keys.matching), timed(&keys.random));
        Figures {
            lookup_bytes: fib.memory().lookup_bytes,
            build_time_ns,
            mlps_match: matching.mlps_median,
            mlps_rnd: random.mlps_median,
            checked: keys.count(),
            wrong: matching.wrong + random.wrong + keys.edges.wrong(fib.as_ref()),
        }
    });
    Row { algorithm: algorithm.name, family: K::FAMILY, routes: routes.len(), sample, figures }
}

/// The keys a structure is tested with.
struct TestKeys<K> {
    /// Random addresses of random prefixes.
    matching: KeySet<K>,
    /// Random addresses of the whole space in use.
    random: KeySet<K>,
    /// The first and last addresses of prefixes and their neighbours, where errors are most likely.
    edges: KeySet<K>,
}

/// Keys and their expected answers.
#[derive(Clone)]
struct KeySet<K> {
    keys: Vec<K>,
    expected: Vec<Option<NextHop>>,
}

impl<K: Key> TestKeys<K> {
    fn new(routes: &dyn Routes<K>, count: usize) -> Result<Self, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::BadInput(error.to_string());
        let oracle = registry::find::<K>(ORACLE).map_err(|error| failed(&error))?;
        let oracle = oracle.build(routes, Limits::default()).map_err(|error| failed(&error))?;
        let pattern = |name: &str| match traffic::find::<K>(name) {
            Some(pattern) => (pattern.generate)(routes, count, 1).map_err(|error| failed(&error)),
            None => Err(Failure::BadInput(format!("no traffic pattern '{name}'"))),
        };
        Ok(Self {
            matching: KeySet::new(pattern("match")?, oracle.as_ref()),
            random: KeySet::new(pattern("rnd")?, oracle.as_ref()),
            edges: KeySet::new(edges(routes, count), oracle.as_ref()),
        })
    }

    fn count(&self) -> usize {
        self.matching.keys.len() + self.random.keys.len() + self.edges.keys.len()
    }

    /// Returns the same keys with the answers of the RIB: the oracle does not judge itself.
    fn judged_by_rib(&self, rib: &Rib<K>) -> Self {
        let judge = |set: &KeySet<K>| KeySet {
            keys: set.keys.clone(),
            expected: set.keys.iter().map(|&key| rib.lookup(key)).collect(),
        };
        Self { matching: judge(&self.matching), random: judge(&self.random), edges: judge(&self.edges) }
    }
}

impl<K: Key> KeySet<K> {
    fn new(keys: Vec<K>, oracle: &dyn Fib<K>) -> Self {
        let mut expected = vec![None; keys.len()];
        oracle.lookup_batch(&keys, &mut expected);
        Self { keys, expected }
    }

    /// Returns the number of keys for which `fib` gives another answer than expected.
    fn wrong(&self, fib: &dyn Fib<K>) -> usize {
        let mut answers = vec![None; self.keys.len()];
        fib.lookup_batch(&self.keys, &mut answers);
        answers.iter().zip(&self.expected).filter(|(answer, expected)| answer != expected).count()
    }
}

/// Returns about `count` addresses at and beside the ends of evenly spaced prefixes.
fn edges<K: Key>(routes: &dyn Routes<K>, count: usize) -> Vec<K> {
    let step = (4 * routes.len()).div_ceil(count).max(1);
    let mut keys = Vec::with_capacity(count);
    let mut index = 0;
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        if index % step == 0 {
            let (first, last) = (route.prefix.addr(), route.prefix.last());
            keys.extend([Some(first), Some(last), first.previous(), last.next()].into_iter().flatten());
        }
        index += 1;
        std::ops::ControlFlow::Continue(())
    });
    keys
}
