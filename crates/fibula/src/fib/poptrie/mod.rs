//! Poptrie: a trie of 64 ways whose nodes are two bit maps and two indices.
//!
//! Asai and Ohara, "Poptrie: A Compressed Trie with Population Count for Fast and Scalable Software IP Routing Table
//! Lookup" (SIGCOMM 2015), sections 3.1 (the structure), 3.3 (`leafvec`) and 3.4 (direct pointing), written from the
//! paper. The ranges of `parts/ranges`, of which neighbours with equal next hops are merged, replace its route
//! aggregation (section 3.5).
//!
//! # Memory
//!
//! ```text
//! direct:  2^18 entries of 4 bytes: 1, next hop; or 0, node
//! node:    vector | leafvec | leaves | nodes             24 bytes: 64, 64, 32 and 32 bits
//!            |        |
//!            |        a bit a slot: a leaf that differs from the one before; their values begin at `leaves`
//!            a bit a slot: an internal node; these nodes begin at `nodes`
//! leaves:  next hops of 16 bits, or of 32 where a next hop of the table needs them
//! ```
//!
//! # Lookup
//!
//! ```text
//! entry = direct[first 18 bits of the key]; if it is a next hop: that
//! slot = the next 6 bits
//! while node.vector has slot: node = nodes[node.nodes + ones(node.vector up to slot) - 1]; slot = the next 6 bits
//! leaves[node.leaves + ones(node.leafvec up to slot) - 1]
//! ```
//!
//! Bits past the end of a key read as zeros: the last level of IPv4 and of IPv6 has 2 bits of the key, so an address
//! has 16 slots there.
//!
//! A batch walks level by level, 128 keys side by side. The keys that are still walking are in a list, which is kept
//! without a branch. With vector instruction sets, a population count is one instruction. The counts themselves are
//! computed for one key at a time, because gathering a node of 24 bytes costs more than it saves.
//!
//! # Invariants
//!
//! 1. There is a direct entry for every value of the leading bits.
//! 2. Nodes are in the order in which their last slots are reached: the children of a node are together, after
//!    everything below them.
//! 3. Leaves are in the same order.
//! 4. `leafvec` has a bit for the first leaf of a node and for each leaf that differs from the one before it, and none
//!    for nodes.
//!
//! # Limits and cost
//!
//! At most 2^31 nodes, and as many leaves. The direct table takes 1 MiB, whatever the number of routes. Next hops from
//! 2^31 on do not fit a direct entry and take a node.
//!
//! Hostile tables: a single IPv4 host route costs 3 nodes and up to 8 leaves, an IPv6 one 19 nodes.
//!
//! # Changes while readers look
//!
//! Section 3.6 of the paper builds a changed subtree beside the old one and publishes it by storing one direct entry.
//! The format allows this; the present code builds the whole trie.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod scalar;
#[cfg(test)]
mod tests;

use crate::net::Key;
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

use layout::Poptrie;

const NAME: &str = "poptrie";

/// Returns the registry entry.
#[must_use]
pub(crate) fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "trie of 64 ways, bit maps and population counts",
        paper: "Asai and Ohara, Poptrie (SIGCOMM 2015)",
        families: Families::Both,
        role: Role::Published,
        update: Update::Rebuild,
        in_place: None,
        limits: None,
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Poptrie::build(routes, limits)?)),
    }]
}
