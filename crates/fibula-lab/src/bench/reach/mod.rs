//! Targets and whether they are met: every [target](TARGETS) of a family is measured in one run, and judged for each
//! of our own structures by itself.
//!
//! A structure is judged by its own figures only: a small structure and a fast one do not together meet a target for
//! both. Other structures are taken at their fastest kernel and batch.
//!
//! | table | structures | for |
//! |---|---|---|
//! | the given one | all | rates, bytes, builds |
//! | the same, with one thread and with one for each core | own | cores |
//! | with additional host routes | own | the rate, relative to the given table |
//! | without routes longer than /64, if there are any | own | exact 128-bit keys |
//! | 10, 100 and 1000 routes | all | small tables |

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

/// The judgement, and the measurements it is based on.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// An outcome for each target and own structure; one for each target if the family has no own structure.
    pub outcomes: Vec<Outcome>,
    /// Everything that was measured, with all tables.
    pub rows: Vec<Row>,
}

/// The rows of each table.
#[derive(Debug, Default)]
struct Measured {
    plain: Vec<Row>,
    cores: Vec<Row>,
    hosts: Vec<Row>,
    to_64: Vec<Row>,
    /// Number of routes, bytes of the sorted array, and rows.
    small: Vec<(usize, usize, Vec<Row>)>,
}

/// Measures everything that the targets need, with the table `routes`, and judges it. The plan gives keys, seed,
/// runs, seconds, batches and instruction set; `hosts` is the number of additional host routes. Oracles take no part.
///
/// # Errors
/// As [`bench::run`](super::run), and when the plan names structures or traffic: the targets decide those.
pub fn run<K: Key>(
    plan: &Plan,
    routes: &dyn Routes<K>,
    contestants: &[Contestant<K>],
    hosts: usize,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Reach, BenchError> {
    if !plan.algorithms.is_empty() || !plan.traffic.is_empty() {
        return Err(PlanError(
            "the targets decide what is measured and with which keys; give no structures or traffic",
        )
        .into());
    }
    let names = |ours: bool| {
        let takes_part = |c: &&Contestant<K>| match c.role {
            Role::Oracle { .. } => false,
            Role::Published => !ours,
            Role::Own => !ours || !c.rival,
        };
        contestants.iter().filter(takes_part).map(|c| c.name.clone()).collect::<Vec<_>>()
    };
    let (names_of_all, ours) = (names(false), names(true));
    let mut measured = Measured::default();
    if ours.is_empty() {
        return Ok(Reach { outcomes: judge::all::<K>(&measured, &ours), rows: Vec::new() });
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // All structures with every batch; for some tables our own ones only, with batches of more than one key.
    let (all, own) = ((&names_of_all, plan.batches.clone()), (&ours, many(plan)));
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

/// The batches of more than one key, or all if there are none.
fn many(plan: &Plan) -> Vec<usize> {
    let batches: Vec<usize> = plan.batches.iter().copied().filter(|&batch| batch > 1).collect();
    if batches.is_empty() { plan.batches.clone() } else { batches }
}

fn in_order<K: Key>(routes: &[Route<K>]) -> RouteSlice<'_, K> {
    RouteSlice::new(routes).expect("routes were sorted")
}
