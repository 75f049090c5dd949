#![doc = include_str!("chapter.md")]

pub(crate) mod build;
mod check;
pub(crate) mod kernel;
pub(crate) mod layout;
mod lookup;
mod open;
pub(crate) mod scalar;
pub(crate) mod statistics;
#[cfg(test)]
mod tests;

use crate::fib::parts::ranges::Merge;
use crate::fib::registry::{Engine, Families, Role, Update};
use crate::fib::sections::{Parts, PartsError};
use crate::fib::{BuildError, Fib};
use crate::memory::Limits;
use crate::net::{Ipv6Key, Routes};
use crate::simd::Isa;

use layout::{Node2x64, Node8x64, PlanB};

/// The name of the engine.
pub const NAME: &str = "planb";
/// The names of those with other trees, which papers compare.
pub const UNMERGED: &str = "planb-unmerged";
/// As above.
pub const DOUBLE: &str = "planb-16";

/// Toy keys up to this width get the smallest nodes; wider ones the real geometry.
pub const SMALLEST_BITS: u8 = 8;

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv6Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "linearized B+-tree over disjoint ranges, equal neighbours merged",
        use_when: "an IPv6 table has at most some fifty routes",
        paper: "PlanB, sections 3.1 and 3.2",
        families: Families::Ipv6,
        role: Role::Published,
        update: Update::Rebuild,
        in_place: None,
        open: Some(open),
        maps: false,
        limits: None,
        isas: Isa::ALL,
        build,
    }]
}

fn build<K: Ipv6Key>(routes: &dyn Routes<K>, limits: Limits) -> Result<Box<dyn Fib<K>>, BuildError> {
    let merge = Merge::EqualNeighbours;
    // A constant, so that what is not taken is not compiled.
    if const { K::BITS <= SMALLEST_BITS } {
        return Ok(Box::new(PlanB::<K, Node2x64>::build(routes, merge, limits)?));
    }
    Ok(Box::new(PlanB::<K, Node8x64>::build(routes, merge, limits)?))
}

fn open<K: Ipv6Key>(parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    // A constant, so that what is not taken is not compiled.
    if const { K::BITS <= SMALLEST_BITS } {
        return PlanB::<K, Node2x64>::open(parts, Merge::EqualNeighbours);
    }
    PlanB::<K, Node8x64>::open(parts, Merge::EqualNeighbours)
}
