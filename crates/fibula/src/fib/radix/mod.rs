//! The radix tree as a lookup structure: what looking up in the RIB itself costs.
//!
//! DXR keeps its routes in BSD's radix tree, validates lookups against it, and measures it beside the rest
//! (sections 3 and 4.3). The tree is [`crate::radix`]'s, where its picture and its invariants stand; this is
//! its line in the registry, so that it is measured and judged like every other.
//!
//! Hostile tables (`fibula bench --synth ipv4-host-routes` and its like): random host routes reach the
//! bound of two nodes a prefix, 40 bytes for IPv4 and 64 for IPv6, and so do the 16,777,216 routes of one
//! /8 (671 MB, 4 s to build); chains of every length need no branching nodes, 20 and 32 bytes, and make the
//! longest walks.
//!
//! Memory: 20 bytes a node for IPv4, 32 for IPv6, at most two nodes a route. Lookup: a walk of as many
//! dependent loads as there are nodes on the path, 15 to 20 on full tables.

mod build;
mod lookup;
mod update;

use crate::net::Key;
use crate::radix::RadixTree;
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

const NAME: &str = "radix";

/// The tree.
#[derive(Debug)]
pub struct Radix<K> {
    tree: RadixTree<K>,
}

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "path-compressed radix tree: the RIB itself",
        paper: "DXR paper, sections 3 and 4.3 (BSD radix tree)",
        families: Families::Both,
        role: Role::Published,
        update: Update::InPlace,
        limits: None,
        isas: &[Isa::Scalar],
        build: |routes, limits| Ok(Box::new(Radix::build(routes, limits)?)),
    }]
}
