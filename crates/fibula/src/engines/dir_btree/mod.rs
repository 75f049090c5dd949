#![doc = include_str!("chapter.md")]

pub(super) mod build;
mod change;
mod check;
mod ground;
mod in_leaf;
mod in_tree;
pub(crate) mod kernel;
pub(crate) mod layout;
mod lookup;
pub(super) mod object;
pub(super) mod open;
mod plan;
mod plant;
mod prepared;
mod reach;
mod replant;
pub(super) mod scalar;
pub(super) mod storage;
#[cfg(test)]
pub(super) mod tests;
mod update;

use crate::net::Ipv6Key;
use crate::simd::Isa;

use crate::fib::registry::{Engine, Families, Role, Update};

use layout::DirBtree;

const NAME: &str = "dir-btree";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv6Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "direct tables, then a B+-tree of two levels with values in its leaves: fast",
        use_when: "the table is IPv6",
        paper: "Fibula's own",
        families: Families::Ipv6,
        role: Role::Own,
        update: Update::InPlace,
        in_place: Some(|routes, limits| Ok(Box::new(update::Editor::build(routes, limits)?))),
        open: Some(open::open),
        maps: true,
        limits: Some("2^29 words of tables, 2^29 lines"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(DirBtree::build(routes, limits)?)),
    }]
}
