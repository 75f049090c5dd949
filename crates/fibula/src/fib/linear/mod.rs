//! Linear scan: the oracle that is evidently right.
//!
//! Every lookup looks at every route and keeps the longest that contains the key. No order is assumed and
//! nothing is precomputed, so that there is nothing to get wrong: what this structure answers is the
//! definition of longest-prefix match (RFC 4632 section 5.1). Tests on small tables judge all others by it.
//!
//! ```text
//! best = none
//! for route in routes:
//!     if route.prefix contains key and (best = none or route.prefix.len > best.prefix.len): best = route
//! ```
//!
//! Memory: 12 bytes a route for IPv4, 48 for IPv6. Lookup: n comparisons.
//!
//! Hostile tables (`fibula bench --synth ipv4-host-routes` and its like): the bytes a prefix are the same
//! for all, and so is the time a route; 16,777,216 routes take 201 MB.
//!
//! Invariants: (1) no prefix stands twice.

mod build;
mod check;
mod layout;
mod lookup;
mod update;

use crate::net::Key;
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

use layout::Linear;

const NAME: &str = "linear";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "scan of all routes; the oracle of small tables",
        paper: "RFC 4632 section 5.1, the definition",
        families: Families::Both,
        role: Role::Oracle { routes_limit: 1_000 },
        update: Update::InPlace,
        limits: None,
        isas: &[Isa::Scalar],
        build: |routes, limits| Ok(Box::new(Linear::build(routes, limits)?)),
    }]
}
