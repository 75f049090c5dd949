//! The radix tree as a lookup structure: what a lookup in the RIB itself costs.
//!
//! **When to use it:** Never in a product, as a FIB: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is
//! here because the RIB is this tree, and DXR's paper compares itself with one.
//!
//! DXR keeps its routes in the radix tree of BSD, validates its lookups against it, and measures it with the other
//! structures (sections 3 and 4.3). The tree is [`fibula::radix`], which has the picture and the invariants. This module
//! makes it an entry of the registry, so that it is measured and tested like every other structure.
//!
//! # Limits and cost
//!
//! Memory: 20 bytes a node for IPv4, 32 for IPv6, at most two nodes a route, and an eighth of that for the index at most. Lookup: one dependent load for each
//! node on the path, 15 to 20 on full tables.
//!
//! Hostile tables (`fibula-lab rates --synth ipv4-host-routes` and similar): random host routes reach the bound of two
//! nodes a prefix, 40 bytes for IPv4 and 64 for IPv6. So do the 16,777,216 routes of one /8 (671 MB, 4 s to build).
//! Chains of every length need no branching nodes, 20 and 32 bytes a prefix, and make the longest walks.

mod build;
mod lookup;
mod update;

use fibula::net::Key;
use fibula::radix::RadixTree;
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

const NAME: &str = "radix";

/// The radix tree of the RIB, as a lookup structure.
#[derive(Debug)]
pub struct Radix<K> {
    tree: RadixTree<K>,
}

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![Engine {
        name: NAME,
        summary: "path-compressed radix tree: the RIB itself",
        use_when: "you measure what a lookup in the RIB itself costs",
        paper: "DXR paper, sections 3 and 4.3 (BSD radix tree)",
        families: Families::Both,
        role: Role::Published,
        update: Update::InPlace,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: &[Isa::Scalar],
        build: |routes, limits| Ok(Box::new(Radix::build(routes, limits)?)),
    }]
}
