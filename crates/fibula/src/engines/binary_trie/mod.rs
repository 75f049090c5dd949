//! Binary trie: one bit a level, nothing skipped.
//!
//! The starting point of the multibit-trie paper, and the oracle of tables that are too large for a scan. A node is a
//! prefix, and its children are the two prefixes that are one bit longer. A lookup follows the bits of the key and
//! remembers the last next hop on its way. A removal also frees the subtries that it leaves without routes.
//!
//! ```text
//! node: children[0], children[1], next hop or 0          12 bytes
//!
//!         (/0)                 0/1 -> A, 010/3 -> B (toy width 3)
//!        0/
//!       (A)                    lookup 010: best = A, then B
//!         \1                   lookup 011: best = A, no child: A
//!          ( )
//!         0/
//!        (B)
//! ```
//!
//! ```text
//! best = none; node = root
//! for bit in key:
//!     if node.next_hop: best = node.next_hop
//!     node = node.children[bit]; stop where there is none
//! ```
//!
//! # Invariants
//!
//! 1. Every node but the root leads to a route: it has a next hop or a child.
//! 2. Every node is reachable exactly once, or is on the free chain.
//! 3. No node is deeper than the key is wide.
//!
//! # Limits and cost
//!
//! At most 2^32 - 1 nodes. Memory: 12 bytes for each distinct bit string that begins a prefix, which is 27 bytes a
//! prefix on a full IPv4 table of 2023 and 47 on a full IPv6 table of 2024. Lookup: up to 32 or 128 dependent loads.
//!
//! Hostile tables (`fibula bench --synth ipv4-host-routes` and similar): a million random host routes, each with a path
//! of its own, take 158 bytes a prefix for IPv4 and 1,310 for IPv6. The deepest nesting (`chains`) shares its paths and
//! takes 12 bytes a prefix. So does a table within one IPv4 block; one within an IPv6 /48 takes 142. The 16,777,216
//! routes of one /8, or all the /24s, take 24 bytes each and 3 to 5 s to build.

mod build;
mod check;
mod layout;
mod lookup;
mod update;

use crate::net::Key;
use crate::simd::Isa;

use crate::fib::registry::{Algorithm, Families, Role, Update};

pub(crate) use layout::BinaryTrie;

const NAME: &str = "binary-trie";

/// Returns the registry entry.
#[must_use]
pub(crate) fn algorithms<K: Key>() -> [Algorithm<K>; 1] {
    [Algorithm {
        name: NAME,
        summary: "one bit a level; the oracle of large tables",
        paper: "multibit-trie router paper, section V.C",
        families: Families::Both,
        role: Role::Oracle { routes_limit: usize::MAX },
        update: Update::InPlace,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: &[Isa::Scalar],
        build: |routes, limits| Ok(Box::new(BinaryTrie::build(routes, limits)?)),
    }]
}
