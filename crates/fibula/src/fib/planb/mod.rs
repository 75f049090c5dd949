//! PlanB.

mod build;
mod check;
mod layout;
mod lookup;
mod statistics;
#[cfg(test)]
mod tests;

use crate::memory::Limits;
use crate::net::{Family, Key, Routes};
use crate::simd::Isa;

use super::parts::ranges::Merge;
use super::registry::{Algorithm, Build, Families, Role, Update};
use super::{BuildError, Fib};

pub use layout::{Node, Node2x64, Node4x64, Node8x64, Node16x32, Node16x64, Node32x32, PlanB, Word};
pub use statistics::{Capacity, Statistics, capacity};

const NAME: &str = "planb";

/// Toy keys up to this width get the smallest nodes; wider ones the real geometry.
const SMALLEST_BITS: u8 = 8;

/// The registry lines.
#[must_use]
pub fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    let line = |name, summary, build: Build<K>| Algorithm {
        name,
        summary,
        paper: "PlanB, sections 3.1 and 3.2",
        families: Families::Both,
        role: Role::Contestant,
        update: Update::Rebuild,
        isas: &[Isa::Scalar],
        preference: |_| 0,
        build,
    };
    let merged = "linearized B+-tree over disjoint ranges, equal neighbours merged";
    let unmerged = "linearized B+-tree over the elementary intervals of all prefixes, as printed";
    let double = "linearized B+-tree with nodes of 128 bytes, equal neighbours merged";
    let mut lines = vec![
        line(NAME, merged, |routes, limits| in_lines_of_64(routes, Merge::EqualNeighbours, limits)),
        line("planb-unmerged", unmerged, |routes, limits| in_lines_of_64(routes, Merge::Never, limits)),
        line("planb-16", double, |routes, limits| in_lines_of_128(routes, Merge::EqualNeighbours, limits)),
    ];
    lines[0].preference = |_| 3;
    lines
}

/// A structure in a box.
type Boxed<K> = Result<Box<dyn Fib<K>>, BuildError>;

fn in_lines_of_64<K: Key>(routes: &dyn Routes<K>, merge: Merge, limits: Limits) -> Boxed<K> {
    match K::FAMILY {
        Family::Ipv4 => boxed(PlanB::<K, Node16x32>::build(routes, merge, limits)),
        Family::Toy if K::BITS <= SMALLEST_BITS => boxed(PlanB::<K, Node2x64>::build(routes, merge, limits)),
        Family::Ipv6 | Family::Toy => boxed(PlanB::<K, Node8x64>::build(routes, merge, limits)),
    }
}

fn in_lines_of_128<K: Key>(routes: &dyn Routes<K>, merge: Merge, limits: Limits) -> Boxed<K> {
    match K::FAMILY {
        Family::Ipv4 => boxed(PlanB::<K, Node32x32>::build(routes, merge, limits)),
        Family::Toy if K::BITS <= SMALLEST_BITS => boxed(PlanB::<K, Node4x64>::build(routes, merge, limits)),
        Family::Ipv6 | Family::Toy => boxed(PlanB::<K, Node16x64>::build(routes, merge, limits)),
    }
}

fn boxed<K: Key, N: Node>(built: Result<PlanB<K, N>, BuildError>) -> Boxed<K> {
    built.map(|fib| Box::new(fib) as Box<dyn Fib<K>>)
}
