//! PlanB's other trees, and the steps of its ablation: over the engine `planb` of the library, which has the chapter
//! ([`fibula::engines::PlanB`]).
//!
//! **When to use it:** Never in a product: take `planb` of the library for IPv6 tables of some fifty routes, else
//! `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6). These are here because PlanB's paper counts elementary intervals and
//! measures the steps of its design.
//!
//! - `planb` for IPv4, which the paper leaves out: whole addresses in nodes of 16 keys.
//! - `planb-unmerged`: the elementary intervals of all prefixes, as printed, for figures that count them.
//! - `planb-16`: nodes of 128 bytes.
//! - `planb-scalar`, `planb-compiled`, `planb-vectors`: the steps of Fig. 14 between binary search and batches.

mod kernel;
mod ladder;
#[cfg(test)]
mod tests;

use fibula::fib::registry::{Build, Engine, Families, OpenFn, Role, Update};
use fibula::fib::{BuildError, Fib};
use fibula::net::{Key, KeyKind, Routes};
use fibula::unstable::memory::Limits;
use fibula::unstable::parts::ranges::Merge;
use fibula::unstable::planb::{
    DOUBLE, NAME, Node, Node2x64, Node4x64, Node8x64, Node16x32, Node16x64, Node32x32, PlanB, SMALLEST_BITS,
    UNMERGED,
};
use fibula::unstable::sections::{Parts, PartsError};
use fibula::unstable::simd::Isa;

use ladder::{Search, Step};

/// Returns the registry entries.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    let entry = |name, summary, build: Build<K>, open: OpenFn<K>| Engine {
        name,
        summary,
        use_when: "you compare with PlanB (NSDI 2026)",
        paper: "PlanB, sections 3.1 and 3.2",
        families: Families::Both,
        role: Role::Published,
        update: Update::Rebuild,
        in_place: None,
        open: Some(open),
        maps: false,
        limits: None,
        isas: Isa::ALL,
        build,
    };
    let merged = "linearized B+-tree over disjoint ranges, equal neighbours merged";
    let unmerged = "linearized B+-tree over the elementary intervals of all prefixes, as printed";
    let double = "linearized B+-tree with nodes of 128 bytes, equal neighbours merged";
    let of_ipv4 = entry(
        NAME,
        merged,
        |routes, limits| in_lines_of_64(routes, Merge::EqualNeighbours, limits),
        |parts| open_lines_of_64(parts, Merge::EqualNeighbours),
    );
    let mut entries = vec![
        entry(
            UNMERGED,
            unmerged,
            |routes, limits| in_lines_of_64(routes, Merge::Never, limits),
            |parts| open_lines_of_64(parts, Merge::Never),
        ),
        entry(
            DOUBLE,
            double,
            |routes, limits| in_lines_of_128(routes, Merge::EqualNeighbours, limits),
            |parts| open_lines_of_128(parts, Merge::EqualNeighbours),
        ),
    ];
    // The library has the one for IPv6, and for toys.
    match K::KIND {
        KeyKind::Ipv4 => entries.insert(0, of_ipv4),
        _ => entries.extend(ladder()),
    }
    entries
}

/// Returns the steps of Fig. 14 that are neither the binary search (`range-search`) nor the batches (`planb`).
fn ladder<K: Key>() -> [Engine<K>; 3] {
    let entry = |name, summary, isas, build: Build<K>| Engine {
        name,
        summary,
        use_when: "you repeat the steps of PlanB's Fig. 14",
        paper: "PlanB, section 4.5, Fig. 14",
        families: Families::Ipv6,
        role: Role::Published,
        update: Update::Rebuild,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas,
        build,
    };
    [
        entry(
            "planb-scalar",
            "one key at a time, nodes searched without vectors",
            &[Isa::Scalar],
            |routes, limits| one_by_one(routes, limits, Search::Portable),
        ),
        entry(
            "planb-compiled",
            "one key at a time, vectors left to the compiler",
            Isa::ALL,
            |routes, limits| one_by_one(routes, limits, Search::Compiled),
        ),
        entry(
            "planb-vectors",
            "one key at a time, a comparison of vectors a node",
            Isa::ALL,
            |routes, limits| one_by_one(routes, limits, Search::Vectors),
        ),
    ]
}

// The conditions below are constants, because then the trees that keys of this kind do not take are not compiled.

const fn is_ipv4<K: Key>() -> bool {
    matches!(K::KIND, KeyKind::Ipv4)
}

fn one_by_one<K: Key>(routes: &dyn Routes<K>, limits: Limits, search: Search) -> Boxed<K> {
    let merge = Merge::EqualNeighbours;
    if const { K::BITS <= SMALLEST_BITS } {
        return Step::boxed(PlanB::<K, Node2x64>::build(routes, merge, limits), search);
    }
    Step::boxed(PlanB::<K, Node8x64>::build(routes, merge, limits), search)
}

/// A built structure as a trait object, or why it could not be built.
type Boxed<K> = Result<Box<dyn Fib<K>>, BuildError>;

fn in_lines_of_64<K: Key>(routes: &dyn Routes<K>, merge: Merge, limits: Limits) -> Boxed<K> {
    if const { is_ipv4::<K>() } {
        return boxed(PlanB::<K, Node16x32>::build(routes, merge, limits));
    }
    if const { K::BITS <= SMALLEST_BITS } {
        return boxed(PlanB::<K, Node2x64>::build(routes, merge, limits));
    }
    boxed(PlanB::<K, Node8x64>::build(routes, merge, limits))
}

fn in_lines_of_128<K: Key>(routes: &dyn Routes<K>, merge: Merge, limits: Limits) -> Boxed<K> {
    if const { is_ipv4::<K>() } {
        return boxed(PlanB::<K, Node32x32>::build(routes, merge, limits));
    }
    if const { K::BITS <= SMALLEST_BITS } {
        return boxed(PlanB::<K, Node4x64>::build(routes, merge, limits));
    }
    boxed(PlanB::<K, Node16x64>::build(routes, merge, limits))
}

fn open_lines_of_64<K: Key>(parts: Parts, merge: Merge) -> Result<Box<dyn Fib<K>>, PartsError> {
    if const { is_ipv4::<K>() } {
        return PlanB::<K, Node16x32>::open(parts, merge);
    }
    if const { K::BITS <= SMALLEST_BITS } {
        return PlanB::<K, Node2x64>::open(parts, merge);
    }
    PlanB::<K, Node8x64>::open(parts, merge)
}

fn open_lines_of_128<K: Key>(parts: Parts, merge: Merge) -> Result<Box<dyn Fib<K>>, PartsError> {
    if const { is_ipv4::<K>() } {
        return PlanB::<K, Node32x32>::open(parts, merge);
    }
    if const { K::BITS <= SMALLEST_BITS } {
        return PlanB::<K, Node4x64>::open(parts, merge);
    }
    PlanB::<K, Node16x64>::open(parts, merge)
}

fn boxed<K: Key, N: Node>(built: Result<PlanB<K, N>, BuildError>) -> Boxed<K> {
    built.map(|fib| Box::new(fib) as Box<dyn Fib<K>>)
}
