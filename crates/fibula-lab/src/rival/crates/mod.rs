//! Rivals in Rust: the crates `prefix-trie` and `ip_network_table` (tree bitmaps), `iptrie` (a level-compressed trie), and
//! `poptrie`.
//!
//! Linked with the feature `crates` only. A batch is a loop over the crate's own function for the longest match,
//! which the compiler can inline. Keys and prefixes have the crate's own types. Keys are converted before the clock
//! starts; routes are converted while the build is timed, as in a program that reads them from elsewhere.
//!
//! Lookup bytes are the crate's own count. If it has none, they are the bytes that the program's allocator handed out for the
//! table, if the program counts that, or else 0.

#[cfg(feature = "crates")]
mod ip_network_table;
#[cfg(feature = "crates")]
mod iptrie;
#[cfg(feature = "crates")]
mod poptrie;
#[cfg(feature = "crates")]
mod prefix_trie;
#[cfg(feature = "crates")]
mod table;

use fibula::net::Key;

use super::{Source, Tools};
use crate::bench::Contestant;

const GET: &str = "build with '--features crates'";

/// Returns the sources of all crates, present or not.
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

/// The crates, and the names of their tables here.
const CRATES: &[(&str, &str)] = &[
    ("prefix-trie", "prefix-trie"),
    ("ip_network_table", "ip-network-table"),
    ("iptrie", "iptrie"),
    // Not the name of the engine of our own.
    ("poptrie", "poptrie-crate"),
];

#[cfg(feature = "crates")]
fn contestant<K: Key>(rival: &'static str, tools: &Tools) -> Option<Contestant<K>> {
    use fibula::net::Family::{Ipv4, Ipv6};
    match (rival, K::FAMILY) {
        ("prefix-trie", Ipv4) => Some(table::contestant::<K, prefix_trie::V4>(rival, tools)),
        ("prefix-trie", Ipv6) => Some(table::contestant::<K, prefix_trie::V6>(rival, tools)),
        ("ip-network-table", Ipv4) => Some(table::contestant::<K, ip_network_table::V4>(rival, tools)),
        ("ip-network-table", Ipv6) => Some(table::contestant::<K, ip_network_table::V6>(rival, tools)),
        ("iptrie", Ipv4) => Some(table::contestant::<K, iptrie::V4>(rival, tools)),
        ("iptrie", Ipv6) => Some(table::contestant::<K, iptrie::V6>(rival, tools)),
        ("poptrie-crate", Ipv4) => Some(table::contestant::<K, poptrie::V4>(rival, tools)),
        ("poptrie-crate", Ipv6) => Some(table::contestant::<K, poptrie::V6>(rival, tools)),
        (_, Ipv4 | Ipv6) => None,
    }
}

#[cfg(not(feature = "crates"))]
fn contestant<K: Key>(_: &'static str, _: &Tools) -> Option<Contestant<K>> {
    None
}
