//! The work of the tour: engines over the table, measured in turns, and their answers compared with the table's.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fibula::auto::{self, Workload};
use fibula::fib::registry::{self, Engine, Engines, Role};
use fibula::fib::{BuildError, Fib};
use fibula::memory::Limits;
use fibula::net::{Family, Key, NextHop, Prefix, Routes};
use fibula::rib::Rib;
use fibula_workload::measure::measure_build;
use fibula_workload::traffic;
use indicatif::ProgressBar;

use super::plain::{HASH_BY_LENGTH, HashByLength};
use crate::failure::Failure;
use crate::machine::OPTIMISED;

/// The other plain competitor, which is in the library.
const BINARY_TRIE: &str = "binary-trie";

/// Keys of each family: more than caches hold answers for, few enough for the slowest engine.
const KEYS: usize = if OPTIMISED { 1 << 17 } else { 1 << 12 };

/// Keys a call.
pub(super) const BATCH: usize = 256;

/// The fewest rounds, and the most: a median needs no more.
const ROUNDS: std::ops::RangeInclusive<usize> = 7..=101;

/// Rounds that the time is divided into, so that each engine has several turns long before it ends.
const ROUNDS_WANTED: u32 = 21;

/// A shorter turn says more of the clock than of the engine; a longer one is more likely to be interrupted.
const TURN: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(25)];

/// The role of an engine in the tour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EngineRole {
    /// The choice of `auto` for the table.
    Chosen,
    /// The code that one would write first.
    Plain,
    /// From a paper, for comparison.
    Compared,
}

impl EngineRole {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::Plain => "plain",
            Self::Compared => "compared",
        }
    }
}

/// The result of one engine.
pub(super) struct EngineRow {
    pub(super) engine: &'static str,
    pub(super) kind: EngineRole,
    pub(super) family: Family,
    /// Number of routes it was built from.
    pub(super) routes: usize,
    /// Its figures, or why it could not be built.
    pub(super) figures: Result<EngineFigures, BuildError>,
}

#[derive(Clone, Copy)]
pub(super) struct EngineFigures {
    pub(super) lookup_bytes: usize,
    pub(super) build_time_ns: u64,
    pub(super) rates: Rates,
    pub(super) checked: usize,
    pub(super) wrong: usize,
}

/// Million lookups a second, over the rounds.
#[derive(Clone, Copy)]
pub(super) struct Rates {
    pub(super) median: f64,
    /// A quarter of the rounds was slower than this, a quarter faster than `high`.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) rounds: usize,
}

/// Answers that differ from the table's.
pub(super) fn wrong(rows: &[EngineRow]) -> usize {
    rows.iter().filter_map(|row| row.figures.as_ref().ok()).map(|figures| figures.wrong).sum()
}

/// How the engines of a family are named: ours first, then the plain ones, then those of `engines` that the library lacks.
pub(super) fn contestants<K: Key>(
    rib: &Rib<K>,
    engines: Engines,
) -> Result<Vec<(EngineRole, Contestant<K>)>, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::BadInput(format!("{}: {error}", K::FAMILY));
    if rib.is_empty() {
        return Ok(Vec::new());
    }
    let chosen = auto::choose_for(rib, &Workload::default(), None, Limits::default());
    let chosen = match chosen.map_err(|error| failed(&error))?.choice {
        Some(choice) => choice.engine,
        // Nothing that was measured suits such a table: it is then one of these, which hold any.
        None => registry::find::<K>(if K::FAMILY == Family::Ipv4 { "range-btree" } else { "planb" })
            .map_err(|error| failed(&error))?,
    };
    let trie = registry::find::<K>(BINARY_TRIE).map_err(|error| failed(&error))?;
    let own = Engines::OWN.all::<K>();
    let compared = engines.all::<K>().into_iter().filter(|engine| match engine.role {
        Role::Oracle { routes_limit } => routes_limit >= rib.len() && !own.contains(engine),
        _ => !own.contains(engine),
    });
    let mut all = vec![
        (EngineRole::Chosen, Contestant::Engine(chosen)),
        (EngineRole::Plain, Contestant::Engine(trie)),
        (EngineRole::Plain, Contestant::HashByLength),
    ];
    all.extend(compared.map(|engine| (EngineRole::Compared, Contestant::Engine(engine))));
    Ok(all)
}

/// An engine that is not built yet.
pub(super) enum Contestant<K: Key> {
    Engine(Engine<K>),
    HashByLength,
}

impl<K: Key> Contestant<K> {
    fn name(&self) -> &'static str {
        match self {
            Self::Engine(engine) => engine.name,
            Self::HashByLength => HASH_BY_LENGTH,
        }
    }

    /// Builds it; returns how long that took, too.
    fn build(&self, rib: &Rib<K>) -> Result<(Built<K>, u64), BuildError> {
        match self {
            Self::Engine(engine) => {
                let (fib, time) = measure_build(engine, rib, Limits::default())?;
                Ok((Built::Engine(fib), time))
            }
            Self::HashByLength => {
                let start = Instant::now();
                let table = HashByLength::build(rib);
                let time = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                Ok((Built::HashByLength(table), time))
            }
        }
    }
}

enum Built<K: Key> {
    Engine(Box<dyn Fib<K>>),
    HashByLength(HashByLength<K>),
}

impl<K: Key> Built<K> {
    fn lookup_batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        match self {
            Self::Engine(fib) => fib.lookup_batch(keys, results),
            Self::HashByLength(table) => {
                keys.iter().zip(results).for_each(|(&key, result)| *result = table.lookup(key));
            }
        }
    }

    fn lookup_bytes(&self) -> usize {
        match self {
            Self::Engine(fib) => fib.memory().lookup_bytes,
            Self::HashByLength(table) => table.lookup_bytes(),
        }
    }

    /// Looks all keys up so often, and returns the time that this took.
    fn timed(&self, keys: &[K], passes: u32) -> Duration {
        let mut results = [None; BATCH];
        let start = Instant::now();
        for _ in 0..passes {
            for keys in keys.chunks(BATCH) {
                let results = &mut results[..keys.len()];
                self.lookup_batch(black_box(keys), results);
                black_box(results);
            }
        }
        start.elapsed()
    }
}

/// Builds these engines of the family, checks and measures them in turns within the budget, a step of the bar each.
pub(super) fn measure<K: Key>(
    contestants: &[(EngineRole, Contestant<K>)],
    rib: &Rib<K>,
    budget: Duration,
    bar: &ProgressBar,
) -> Result<Vec<EngineRow>, Failure> {
    if contestants.is_empty() {
        return Ok(Vec::new());
    }
    bar.set_message(format!("{}: choosing addresses", K::FAMILY));
    let keys = TestKeys::new(rib)?;
    let mut built = Vec::new();
    for (_, contestant) in contestants {
        bar.set_message(format!("{}: building {}", K::FAMILY, contestant.name()));
        built.push(contestant.build(rib));
        bar.inc(1);
    }
    bar.set_message(format!("{}: comparing answers", K::FAMILY));
    let wrong: Vec<usize> =
        built.iter().map(|one| one.as_ref().map_or(0, |(one, _)| keys.wrong(one))).collect();
    let present: Vec<&Built<K>> =
        built.iter().filter_map(|one| one.as_ref().ok()).map(|(one, _)| one).collect();
    let mut rates = rounds(&present, &keys.timed, budget, bar).into_iter();
    let rows =
        contestants.iter().zip(&built).zip(wrong).filter_map(|(((kind, contestant), built), wrong)| {
            let figures = match built {
                Ok((fib, build_time_ns)) => Ok(EngineFigures {
                    lookup_bytes: fib.lookup_bytes(),
                    build_time_ns: *build_time_ns,
                    rates: rates.next()?,
                    checked: keys.all.len(),
                    wrong,
                }),
                Err(error) => Err(error.clone()),
            };
            Some(EngineRow {
                engine: contestant.name(),
                kind: *kind,
                family: K::FAMILY,
                routes: rib.len(),
                figures,
            })
        });
    Ok(rows.collect())
}

/// Measures all in turn, round by round, because other work of the machine then slows all of them alike.
fn rounds<K: Key>(all: &[&Built<K>], keys: &[K], budget: Duration, bar: &ProgressBar) -> Vec<Rates> {
    let turn = budget / (ROUNDS_WANTED * all.len().max(1) as u32);
    let turn = turn.clamp(TURN[0], TURN[1]);
    let passes = |one: &&Built<K>| {
        let once = one.timed(keys, 1).max(Duration::from_nanos(1));
        (turn.as_nanos() / once.as_nanos()).clamp(1, 10_000) as u32
    };
    let passes: Vec<u32> = all.iter().map(passes).collect();
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); all.len()];
    let start = Instant::now();
    for round in 0..*ROUNDS.end() {
        if round >= *ROUNDS.start() && start.elapsed() >= budget {
            break;
        }
        bar.set_message(format!("{}: round {}", K::FAMILY, round + 1));
        for ((one, &passes), rates) in all.iter().zip(&passes).zip(&mut rates) {
            let seconds = one.timed(keys, passes).as_secs_f64();
            rates.push(keys.len() as f64 * f64::from(passes) / seconds / 1e6);
        }
    }
    rates.iter_mut().map(|rates| Rates::of(rates)).collect()
}

impl Rates {
    /// There is at least one.
    fn of(rates: &mut [f64]) -> Self {
        rates.sort_unstable_by(f64::total_cmp);
        let last = rates.len() - 1;
        // Outwards, so that few rounds make no narrow spread.
        let (low, high) = (rates[last / 4], rates[last - last / 4]);
        Self {
            median: f64::midpoint(rates[last / 2], rates[last.div_ceil(2)]),
            low,
            high,
            rounds: rates.len(),
        }
    }

    /// Whether it was faster in so many rounds that chance is no explanation.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        self.low > other.high
    }
}

/// The keys an engine is tested with, and the answers of the table.
struct TestKeys<K> {
    /// Random addresses of random prefixes.
    timed: Vec<K>,
    /// These and the first and last addresses of prefixes and their neighbours, where errors are most likely.
    all: Vec<K>,
    expected: Vec<Option<NextHop>>,
}

impl<K: Key> TestKeys<K> {
    fn new(rib: &Rib<K>) -> Result<Self, Failure> {
        let pattern = traffic::find::<K>("match")
            .ok_or_else(|| Failure::BadInput("no traffic pattern 'match'".to_owned()))?;
        let timed = (pattern.generate)(rib, KEYS, 1).map_err(|error| Failure::BadInput(error.to_string()))?;
        let mut all = timed.clone();
        all.extend(edges(rib, KEYS));
        let expected = all.iter().map(|&key| rib.lookup(key)).collect();
        Ok(Self { timed, all, expected })
    }

    /// Returns the number of keys for which the engine gives another answer than the table.
    fn wrong(&self, one: &Built<K>) -> usize {
        let mut answers = vec![None; self.all.len()];
        one.lookup_batch(&self.all, &mut answers);
        answers.iter().zip(&self.expected).filter(|(answer, expected)| answer != expected).count()
    }
}

/// Returns about `count` addresses at and next to the ends of evenly spaced prefixes.
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
        ControlFlow::Continue(())
    });
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_above_others_only_if_their_spreads_do_not_overlap() {
        let of = |rates: &[f64]| Rates::of(&mut rates.to_vec());
        let rates = of(&[5.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0]);
        assert_eq!((rates.low, rates.median, rates.high, rates.rounds), (2.0, 4.0, 6.0, 7));
        assert!(!rates.is_above(&of(&[2.0])) && rates.is_above(&of(&[1.0, 1.9])));
        assert!(of(&[1.0]).median == 1.0);
    }
}
