#![doc = include_str!("chapter.md")]

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod open;
mod scalar;
#[cfg(test)]
mod tests;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Engine, Families, Role, Update};

use layout::RangeBtree;

const NAME: &str = "range-btree";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv4Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "disjoint ranges as a tree of eight-word nodes, the root in registers",
        use_when: "an IPv4 table has at most a thousand routes",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::Rebuild,
        in_place: None,
        open: Some(open::open),
        maps: false,
        limits: None,
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(RangeBtree::build(routes, limits)?)),
    }]
}
