//! Poptrie: a trie of 64 ways, whose nodes are two bit maps and two places.
//!
//! Asai and Ohara, "Poptrie: A Compressed Trie with Population Count for Fast and Scalable Software IP Routing Table
//! Lookup" (SIGCOMM 2015), sections 3.1 (the structure), 3.3 (`leafvec`) and 3.4 (direct pointing); written from what the
//! paper publishes. Route aggregation (section 3.5) is what the ranges of `parts/ranges` are: neighbours of one next
//! hop are one.
//!
//! # Memory
//!
//! ```text
//! direct:  2^18 entries of 4 bytes: 1, next hop; or 0, node
//! node:    vector | leafvec | leaves | nodes             24 bytes: 64, 64, 32 and 32 bits
//!            |        |
//!            |        a bit a slot: a leaf unlike the leaf before it; their values stand from `leaves` on
//!            a bit a slot: an internal node; they stand from `nodes` on
//! leaves:  next hops of 16 bits, or of 32 where a table has one that needs them
//! ```
//!
//! # Lookup
//!
//! ```text
//! entry = direct[key's first 18 bits]; if it is a next hop: that
//! slot = the next 6 bits
//! while node.vector has slot: node = nodes[node.nodes + ones(node.vector up to slot) - 1]; slot = the next 6 bits
//! leaves[node.leaves + ones(node.leafvec up to slot) - 1]
//! ```
//!
//! Behind the last bit of a key zeros are read: the last level of IPv4 and of IPv6 has 2 bits, and 16 slots an
//! address. A batch walks level by level, 128 keys side by side, the keys that are not done in a list that is kept
//! without a branch. Where a set of vector instructions is there, population counts are one instruction; the counts
//! themselves are made for one key at a time, because gathering a node of 24 bytes costs more than it saves.
//!
//! # Invariants
//!
//! (1) There is a direct entry for every value of the leading bits. (2) Nodes stand in the order in which their last
//! slot is reached: children of one node together, behind all that is below them. (3) So do leaves. (4) `leafvec` has a
//! bit for the first leaf of a node and for each that differs from the one before it, and none for nodes.
//!
//! # Limits and hostile tables
//!
//! 2^31 nodes, and as many leaves. A direct table of 1 MiB whatever the number of routes. One IPv4 host route alone costs 3
//! nodes and up to 8 leaves, an IPv6 one 19 nodes. Next hops from 2^31 on do not fit a direct entry and take a node.
//!
//! # Changes while readers look
//!
//! Section 3.6 of the paper: a subtree below a direct entry is built anew beside the old one, and one word is stored. The
//! format allows that; here it is built as a whole.

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

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "trie of 64 ways, bit maps and population counts",
        paper: "Asai and Ohara, Poptrie (SIGCOMM 2015)",
        families: Families::Both,
        role: Role::Published,
        update: Update::Rebuild,
        limits: None,
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Poptrie::build(routes, limits)?)),
    }]
}
