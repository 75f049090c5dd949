//! The costs of changes: by prefix length, by the number of changes in a call and over a recorded trace; the time to build
//! a table of a million routes; and the rates that readers lose meanwhile.
//!
//! - Our engines are measured in a live [`Table`](fibula::live::Table), because programs use them so. The time includes
//!   changing its routes and publishing. Engines that cannot change in place are rebuilt for each call.
//! - Rivals change by their own functions, one change after the other. `rte_fib` and `rte_fib6` keep routes of their own,
//!   like ours; nothing of theirs is published for readers.
//! - Prefixes are removed and added again, so that each figure begins with the same table. In each run, all engines take
//!   turns with the same changes.
//! - After the last removal and the last addition of each figure, and after a trace, answers are compared with an oracle's at
//!   the ends of the changed prefixes.
//! - Changes are timed by wall-clock time, because some engines use several threads.

mod bench;
mod document;
mod lines;
mod row;
mod subject;
#[cfg(test)]
mod tests;

use fibula::live::TableKey;
use fibula::net::{Change, IpPrefix, Key, Prefix};
use fibula::rib::Rib;

use super::contestant::Contestant;
use super::runner::Progress;
use fibula::fib::registry::Role;

pub(super) use document::section;
pub use row::{RowSubject, UpdatePlan, UpdateRecord, UpdateRow};

/// The published engines that take part if none is named.
const PUBLISHED: [&str; 4] = ["planb", "dir-24-8", "dxr-18", "poptrie"];

/// The rivals that take part: forms that differ in lookups alone change alike, `rte_lpm` takes most of a minute to
/// build, and 2 bytes are too few for full tables of `rte_fib6`.
const RIVALS: [&str; 7] = [
    "rte-fib-2b-macro",
    "rte-fib-4b-macro",
    "rte-fib6-4b-scalar",
    "prefix-trie",
    "ip-network-table",
    "bart-table",
    "bart-fast",
];

/// Returns whether a contestant takes part if none is named: our own engines, a few published ones, and the rivals
/// whose changes are measured.
#[must_use]
pub fn takes_part<K: Key>(contestant: &Contestant<K>) -> bool {
    let name = contestant.name.as_str();
    match contestant.rival {
        true => RIVALS.contains(&name),
        false => contestant.role == Role::Own || PUBLISHED.contains(&name),
    }
}

/// Measures the costs of changes of the table `routes` for these contestants. `trace` are recorded changes, which may change
/// nothing. A contestant that refuses the table or a change gets rows with an error.
///
/// # Errors
/// When memory for the routes runs out, or the plan has no runs or an empty call.
pub fn run<K: TableKey>(
    plan: &UpdatePlan,
    routes: &Rib<K>,
    trace: &[Change<K>],
    contestants: &[Contestant<K>],
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<UpdateRow>, Box<dyn core::error::Error>>
where
    IpPrefix: From<Prefix<K>>,
{
    if plan.runs == 0 || plan.batch == 0 || plan.batches.contains(&0) {
        return Err("measuring changes takes at least one run, and one change a call".into());
    }
    bench::Bench::new(plan, routes, trace, contestants)?.everything(progress)
}
