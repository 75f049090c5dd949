//! Crates that Rust programs use: `prefix-trie`, `ip_network_table` (a tree bitmap) and `iptrie` (a level-compressed trie).
//!
//! Linked with the feature `crates` only. Each is asked by its own function for the longest match, one key a call, in a loop
//! that the compiler sees through: a batch is so many calls. Keys and prefixes have the crates' own types; keys are
//! converted before the clock runs, routes while it does, as any program that has them from elsewhere would have to.
//!
//! Memory. Lookup bytes: what the crate's own count says, and where it has none, what was asked of the program's allocator
//! for the table, where the program counts that; 0 where neither is known.

#[cfg(feature = "crates")]
mod ip_network_table;
#[cfg(feature = "crates")]
mod iptrie;
#[cfg(feature = "crates")]
mod prefix_trie;
#[cfg(feature = "crates")]
mod table;

use fibula::net::Key;

use super::{Source, Tools};
use crate::bench::Contestant;

const GET: &str = "build with '--features crates'";

/// The crates, present or not.
pub(super) fn sources<K: Key>(tools: &Tools) -> Vec<Source<K>> {
    CRATES
        .iter()
        .map(|&(name, rival)| Source {
            name,
            rivals: vec![rival],
            get: GET.to_owned(),
            contestants: contestant(rival, tools).map(|contestant| vec![contestant]),
        })
        .collect()
}

/// Crates and what their tables are called here.
const CRATES: &[(&str, &str)] =
    &[("prefix-trie", "prefix-trie"), ("ip_network_table", "ip-network-table"), ("iptrie", "iptrie")];

#[cfg(feature = "crates")]
fn contestant<K: Key>(rival: &'static str, tools: &Tools) -> Option<Contestant<K>> {
    use fibula::net::Family::{Ipv4, Ipv6, Toy};
    match (rival, K::FAMILY) {
        ("prefix-trie", Ipv4) => Some(table::contestant::<K, prefix_trie::V4>(rival, tools)),
        ("prefix-trie", Ipv6) => Some(table::contestant::<K, prefix_trie::V6>(rival, tools)),
        ("ip-network-table", Ipv4) => Some(table::contestant::<K, ip_network_table::V4>(rival, tools)),
        ("ip-network-table", Ipv6) => Some(table::contestant::<K, ip_network_table::V6>(rival, tools)),
        ("iptrie", Ipv4) => Some(table::contestant::<K, iptrie::V4>(rival, tools)),
        ("iptrie", Ipv6) => Some(table::contestant::<K, iptrie::V6>(rival, tools)),
        (_, Ipv4 | Ipv6 | Toy) => None,
    }
}

#[cfg(not(feature = "crates"))]
fn contestant<K: Key>(_: &'static str, _: &Tools) -> Option<Contestant<K>> {
    None
}
