//! A few lookups as examples.

use std::collections::BTreeSet;

use fibula::net::{Key, NextHop, Prefix, Route};
use fibula::rib::Rib;
use fibula_workload::traffic;

use super::measure::SynthTable;

/// Addresses and what they match.
pub(super) struct Examples {
    /// An address with several matching prefixes, all of them shortest first.
    pub(super) nested: (String, Vec<Found>),
    pub(super) lookups: Vec<(String, Option<Found>)>,
}

/// A route as text.
pub(super) struct Found {
    pub(super) prefix: String,
    pub(super) next_hop: NextHop,
}

impl<K: Key> From<Route<K>> for Found {
    fn from(route: Route<K>) -> Self {
        Self { prefix: route.prefix.to_string(), next_hop: route.next_hop }
    }
}

/// Addresses reserved for documentation (RFC 5737, RFC 3849) and loopback addresses: no table has them.
const NOWHERE_V4: [u32; 2] = [0xc000_0201, 0x7f00_0001];
const NOWHERE_V6: [u128; 2] = [0x2001_0db8_u128 << 96 | 1, 1];

pub(super) fn choose(v4: &SynthTable<u32>, v6: &SynthTable<u128>) -> Examples {
    let (keys_v4, keys_v6) = (candidates(&v4.rib), candidates(&v6.rib));
    let nested = most_covered(&v4.rib, &keys_v4);
    let mut lookups = lookups(&v4.rib, &keys_v4, &NOWHERE_V4);
    lookups.extend(self::lookups(&v6.rib, &keys_v6, &NOWHERE_V6));
    Examples { nested, lookups }
}

fn candidates<K: Key>(rib: &Rib<K>) -> Vec<K> {
    traffic::find::<K>("match").and_then(|pattern| (pattern.generate)(rib, 1_000, 7).ok()).unwrap_or_default()
}

/// Returns the candidate whose prefixes have the most next hops (then the most prefixes), and these prefixes.
fn most_covered<K: Key>(rib: &Rib<K>, keys: &[K]) -> (String, Vec<Found>) {
    let covers = |key: K| rib.covers(Prefix::host(key));
    let interest = |key: K| {
        let next_hops: BTreeSet<NextHop> = covers(key).map(|route| route.next_hop).collect();
        (next_hops.len(), covers(key).count())
    };
    let key = keys.iter().copied().max_by_key(|&key| interest(key)).unwrap_or(K::ZERO);
    (key.address().to_string(), covers(key).map(Found::from).collect())
}

/// Returns two addresses with routes of different lengths, and one without a route.
fn lookups<K: Key>(rib: &Rib<K>, keys: &[K], nowhere: &[K]) -> Vec<(String, Option<Found>)> {
    let len = |key: K| rib.lookup_prefix(key).map(|route| route.prefix.len());
    let longest = keys.iter().copied().max_by_key(|&key| len(key));
    let shortest = keys.iter().copied().min_by_key(|&key| len(key));
    let missing = nowhere.iter().copied().find(|&key| rib.lookup(key).is_none());
    [shortest, longest, missing]
        .into_iter()
        .flatten()
        .map(|key| (key.address().to_string(), rib.lookup_prefix(key).map(Found::from)))
        .collect()
}
