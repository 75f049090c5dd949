//! Chunks behind a direct table, looked up in stages.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;

use crate::net::{Family, Key};
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

pub use layout::{Chunks, Form};

const NAME: &str = "chunks";

/// The registry lines: the small form and the fast one.
#[must_use]
pub fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    if K::FAMILY == Family::Ipv6 {
        return Vec::new();
    }
    let line = Algorithm {
        name: "chunks-rank",
        summary: "direct table, then the rank of the slot in a bit map: small",
        paper: "of Fibula's own",
        families: Families::Ipv4,
        role: Role::Contestant,
        update: Update::Rebuild,
        limits: Some("256 MiB of chunks"),
        isas: Isa::ALL,
        preference: |_| 0,
        build: |routes, limits| Ok(Box::new(Chunks::build(routes, Form::Rank, limits)?)),
    };
    let dense = Algorithm {
        name: "chunks-dense",
        summary: "direct table, then one value a slot: fast",
        build: |routes, limits| Ok(Box::new(Chunks::build(routes, Form::Dense, limits)?)),
        ..line
    };
    vec![line, dense]
}
