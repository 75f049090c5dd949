//! What is to be reached and how far it is reached: every [target](TARGETS) of a family, measured in one run and judged
//! for each line of ours on its own.
//!
//! A line is judged by its own figures throughout: one that is small and one that is fast do not reach together what
//! asks for both. What others do is taken at their best kernel and batch.
//!
//! | table | who | for |
//! |---|---|---|
//! | the one that is measured | everybody | rates, bytes, builds |
//! | the same, one thread and as many as there are cores | ours | cores |
//! | with host routes | ours | its rate by the plain one's |
//! | without routes beyond /64, where there are any | ours | exact keys of 128 bits |
//! | 10, 100 and 1000 routes | everybody | small tables |

mod judge;
mod tables;
mod targets;
#[cfg(test)]
mod tests;

use fibula::fib::registry::Role;
use fibula::net::{Key, Route, RouteSlice, Routes};

use super::contestant::Contestant;
use super::plan::{Order, Plan, PlanError};
use super::row::Row;
use super::runner::{self, BenchError, Progress};

pub use judge::{Outcome, Peer, Verdict};
pub use targets::{Bound, Figure, Peers, TARGETS, Target};

/// What came of measuring.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// One for each target and line of ours; one alone where a family has none.
    pub outcomes: Vec<Outcome>,
    /// All that was measured, over all tables.
    pub rows: Vec<Row>,
}

/// The rows of each table.
#[derive(Debug, Default)]
struct Measured {
    plain: Vec<Row>,
    cores: Vec<Row>,
    hosts: Vec<Row>,
    to_64: Vec<Row>,
    /// By number of routes: bytes of the sorted array, and rows.
    small: Vec<(usize, usize, Vec<Row>)>,
}

/// Measures all that the targets ask for over `routes`, and judges it. Of the plan, keys, seed, runs, seconds, batches and
/// the instruction set count. With `hosts` host routes more; oracles take no part.
///
/// # Errors
/// As [`bench::run`](super::run), and when the plan names structures or traffic: the targets do.
pub fn run<K: Key>(
    plan: &Plan,
    routes: &dyn Routes<K>,
    contestants: &[Contestant<K>],
    hosts: usize,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Reach, BenchError> {
    if !plan.algorithms.is_empty() || !plan.traffic.is_empty() {
        return Err(PlanError("the targets name who is measured, and with which keys").into());
    }
    let names = |ours: bool| {
        let asked = |c: &&Contestant<K>| match c.role {
            Role::Oracle { .. } => false,
            Role::Published => !ours,
            Role::Own => true,
        };
        contestants.iter().filter(asked).map(|c| c.name.clone()).collect::<Vec<_>>()
    };
    let (everybody, ours) = (names(false), names(true));
    let mut measured = Measured::default();
    if ours.is_empty() {
        return Ok(Reach { outcomes: judge::all::<K>(&measured, &ours), rows: Vec::new() });
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Everybody in every batch; ours beside that in those of more than one key.
    let (all, own) = ((&everybody, plan.batches.clone()), (&ours, many(plan)));
    let mut part = |share: f64,
                    (algorithms, batches): &(&Vec<String>, Vec<usize>),
                    traffic: &[&str],
                    routes: &dyn Routes<K>,
                    threads| {
        let plan = Plan {
            algorithms: (*algorithms).clone(),
            traffic: traffic.iter().map(|&name| name.to_owned()).collect(),
            batches: batches.clone(),
            orders: vec![Order::Host],
            threads,
            seconds: plan.seconds * share,
            ..plan.clone()
        };
        runner::run(&plan, routes, contestants, Vec::new(), progress)
    };
    measured.plain = part(0.6, &all, &["rnd", "match", "zipf", "seq"], routes, vec![1])?;
    if cores > 1 {
        measured.cores = part(0.1, &own, &["match"], routes, vec![1, cores])?;
    }
    let with_hosts = tables::with_hosts(routes, hosts)?;
    measured.hosts = part(0.1, &own, &["rnd", "match"], &in_order(&with_hosts), vec![1])?;
    drop(with_hosts);
    if let Some(to_64) = tables::to_64(routes).filter(|to_64| K::BITS == 128 && !to_64.is_empty()) {
        measured.to_64 = part(0.1, &own, &["match"], &in_order(&to_64), vec![1])?;
    }
    for count in targets::SMALL {
        let routes = tables::small::<K>(count);
        let routes = in_order(&routes);
        let rows = part(0.1 / 3.0, &all, &["match"], &routes, vec![1])?;
        measured.small.push((count, tables::sorted_array_bytes(&routes), rows));
    }
    let outcomes = judge::all::<K>(&measured, &ours);
    let mut rows = [measured.plain, measured.cores, measured.hosts, measured.to_64].concat();
    rows.extend(measured.small.into_iter().flat_map(|(_, _, rows)| rows));
    Ok(Reach { outcomes, rows })
}

/// The batches of more than one key, where there are any.
fn many(plan: &Plan) -> Vec<usize> {
    let batches: Vec<usize> = plan.batches.iter().copied().filter(|&batch| batch > 1).collect();
    if batches.is_empty() { plan.batches.clone() } else { batches }
}

fn in_order<K: Key>(routes: &[Route<K>]) -> RouteSlice<'_, K> {
    RouteSlice::new(routes).expect("routes were sorted")
}
