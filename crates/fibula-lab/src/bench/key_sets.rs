//! The keys of each kind of traffic, and their expected answers.

use core::ops::ControlFlow;

use fibula::fib::Fib;
use fibula::fib::registry::{Engine, Role};
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Prefix, Routes};
use fibula_workload::traffic;

use super::plan::{Plan, PlanError};
use super::runner::BenchError;

/// The keys of one traffic pattern, made before the clock starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic<K> {
    /// The name in the rows.
    pub name: String,
    /// Whether each lookup waits for the answer of the one before.
    pub dependent: bool,
    /// The keys.
    pub keys: Vec<K>,
}

/// Returns the names of all patterns.
#[must_use]
pub fn traffic_names<K: Key>() -> Vec<&'static str> {
    traffic::patterns::<K>().iter().map(|pattern| pattern.name).collect()
}

impl<K: Key> Traffic<K> {
    /// Makes the traffic of a plan for a table. A plan that names none gets every pattern that is possible: where a
    /// default route matches everything, there are no misses.
    ///
    /// # Errors
    /// When a pattern is unknown, or impossible for this table.
    pub fn of_plan(plan: &Plan, routes: &dyn Routes<K>) -> Result<Vec<Self>, BenchError> {
        if plan.traffic.is_empty() {
            let (mut all, mut impossible) = (Vec::new(), None);
            for name in traffic_names::<K>() {
                match Self::new(name, plan.keys, plan.seed, routes) {
                    Err(BenchError::Traffic(error)) => impossible = impossible.or(Some(error)),
                    result => all.push(result?),
                }
            }
            return match impossible {
                Some(error) if all.is_empty() => Err(BenchError::Traffic(error)),
                _ => Ok(all),
            };
        }
        plan.traffic.iter().map(|name| Self::new(name, plan.keys, plan.seed, routes)).collect()
    }

    /// Makes the larger set of keys of the same traffic; the same set if the plan has none.
    pub(super) fn of_size(&self, plan: &Plan, routes: &dyn Routes<K>) -> Result<Self, BenchError> {
        Self::new(&self.name, plan.many_keys.unwrap_or(plan.keys), plan.seed, routes)
    }

    pub(super) fn new(
        name: &str,
        keys: usize,
        seed: u64,
        routes: &dyn Routes<K>,
    ) -> Result<Self, BenchError> {
        let pattern = traffic::find::<K>(name).ok_or_else(|| BenchError::UnknownTraffic {
            name: name.to_owned(),
            known: traffic_names::<K>(),
        })?;
        let keys = (pattern.generate)(routes, keys, seed)?;
        Ok(Self { name: name.to_owned(), dependent: pattern.dependent, keys })
    }
}

/// The engine that gives the expected answers, and another one that judges it.
pub(super) struct Judges<K> {
    pub(super) first: (&'static str, Box<dyn Fib<K>>),
    pub(super) second: (&'static str, Box<dyn Fib<K>>),
}

impl<K: Key> Judges<K> {
    /// Takes the oracle for the largest tables, and for that oracle's own rows an engine that is not an oracle.
    pub(super) fn new(routes: &dyn Routes<K>) -> Result<Self, BenchError> {
        let all = fibula_published::engines::<K>();
        let carries = |engine: &&Engine<K>| match engine.role {
            Role::Oracle { routes_limit } => (routes_limit >= routes.len()).then_some(routes_limit),
            Role::Published | Role::Described | Role::Own => None,
        };
        let oracle = all.iter().filter(|line| carries(line).is_some()).max_by_key(|line| carries(line));
        let other = all.iter().find(|line| !matches!(line.role, Role::Oracle { .. }));
        let (Some(oracle), Some(other)) = (oracle, other) else {
            return Err(BenchError::Plan(PlanError("the registry has no oracle for this table")));
        };
        let build = |line: &Engine<K>| match line.build(routes, Limits::default()) {
            Ok(fib) => Ok((line.name, fib)),
            Err(error) => Err(BenchError::Judge(error)),
        };
        Ok(Self { first: build(oracle)?, second: build(other)? })
    }

    /// Returns the judge of a contestant, which is never itself.
    pub(super) fn of(&self, contestant: &str) -> (&'static str, &dyn Fib<K>) {
        let (name, fib) = if contestant == self.first.0 { &self.second } else { &self.first };
        (name, fib.as_ref())
    }
}

/// Returns the answers of `fib` to `keys`.
pub(super) fn answers<K: Key>(fib: &dyn Fib<K>, keys: &[K]) -> Vec<Option<NextHop>> {
    let mut answers = vec![None; keys.len()];
    for (keys, answers) in keys.chunks(256).zip(answers.chunks_mut(256)) {
        fib.lookup_batch(keys, answers);
    }
    answers
}

/// Returns about `count` addresses at the ends of evenly spaced prefixes and next to them, where errors are most
/// likely.
pub(super) fn edges<K: Key>(routes: &dyn Routes<K>, count: usize) -> Vec<K> {
    let step = (4 * routes.len()).div_ceil(count.max(1)).max(1);
    let mut keys = vec![K::ZERO, K::MAX];
    let mut index = 0_usize;
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        if index.is_multiple_of(step) {
            let (first, last) = (route.prefix.addr(), route.prefix.last());
            keys.extend([Some(first), Some(last), first.previous(), last.next()].into_iter().flatten());
        }
        index += 1;
        ControlFlow::Continue(())
    });
    keys
}
