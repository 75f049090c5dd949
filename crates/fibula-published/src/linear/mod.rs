//! Linear scan: the oracle that is evidently right.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because it is evidently right, so that tests can judge every other structure by it.
//!
//! A lookup visits every route and keeps the longest one that contains the key. It assumes no order and precomputes
//! nothing, so there is little to get wrong: its answer is the definition of longest-prefix match (RFC 4632 section
//! 5.1). Tests on small tables compare every other structure with it.
//!
//! ```text
//! best = none
//! for route in routes:
//!     if route.prefix contains key and (best = none or route.prefix.len > best.prefix.len): best = route
//! ```
//!
//! # Invariants
//!
//! 1. No two routes have the same prefix.
//!
//! # Limits and cost
//!
//! Memory: 12 bytes a route for IPv4, 48 for IPv6. Lookup: one comparison a route.
//!
//! Hostile tables (`fibula-lab rates --synth ipv4-host-routes` and similar): memory and time a route are the same for all
//! of them. 16,777,216 routes take 201 MB.

mod build;
mod check;
mod layout;
mod lookup;
mod update;

use fibula::net::Key;
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

use layout::Linear;

const NAME: &str = "linear";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![Engine {
        name: NAME,
        summary: "scan of all routes; the oracle of small tables",
        use_when: "you judge answers for tables of a few routes",
        paper: "RFC 4632 section 5.1, the definition",
        families: Families::Both,
        role: Role::Oracle { routes_limit: 1_000 },
        update: Update::InPlace,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: &[Isa::Scalar],
        build: |routes, limits| Ok(Box::new(Linear::build(routes, limits)?)),
    }]
}
