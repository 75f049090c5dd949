//! One answer, explained: which route an address takes, and which others contain it too.

use std::collections::BTreeSet;

use fibula::net::{Key, NextHop, Prefix, Route};
use fibula::rib::Rib;
use fibula_workload::traffic;

use super::table::Toured;

/// Addresses that are looked at for an interesting one.
const CANDIDATES: usize = 1_000;

/// An address, and all routes that contain it.
pub(super) struct ExplainedAddress {
    pub(super) family: &'static str,
    pub(super) address: String,
    /// The longest prefix first: it is the answer.
    pub(super) matches: Vec<Match>,
}

/// A route that contains the address, as text.
pub(super) struct Match {
    pub(super) prefix: String,
    pub(super) len: u8,
    pub(super) value: String,
}

/// Explains the address whose routes have the most next hops of some that the table has a route for; `None` if it has no routes.
pub(super) fn answer<K: Key>(table: &Toured<K>) -> Option<ExplainedAddress> {
    let pattern = traffic::find::<K>("match")?;
    let keys = (pattern.generate)(&table.rib, CANDIDATES, 7).ok()?;
    let key = keys.into_iter().max_by_key(|&key| interest(&table.rib, key))?;
    let mut matches: Vec<Match> = covers(&table.rib, key)
        .map(|Route { prefix, next_hop, .. }| Match {
            prefix: prefix.to_string(),
            len: prefix.len(),
            value: table.value(next_hop),
        })
        .collect();
    matches.reverse();
    Some(ExplainedAddress { family: K::FAMILY.name(), address: key.address().to_string(), matches })
}

/// Routes that contain the address, shortest first.
fn covers<K: Key>(rib: &Rib<K>, key: K) -> impl Iterator<Item = Route<K>> {
    rib.covers(Prefix::host(key))
}

/// A few nested routes with different next hops say the most; a page of them says no more.
fn interest<K: Key>(rib: &Rib<K>, key: K) -> (usize, usize) {
    let next_hops: BTreeSet<NextHop> = covers(rib, key).map(|route| route.next_hop).collect();
    let count = covers(rib, key).count();
    if count > 6 { (0, 0) } else { (next_hops.len(), count) }
}
