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

use crate::net::Ipv6Key;
use crate::simd::Isa;

use crate::fib::registry::{Engine, Families, Role, Update};

use layout::DirBtreeByte;

const NAME: &str = "dir-btree-byte";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv6Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "the tables and trees of dir-btree, whose leaves have codes of a byte for next hops",
        use_when: "a full IPv6 table does not change, and bytes matter most",
        paper: "Fibula's own",
        families: Families::Ipv6,
        role: Role::Own,
        update: Update::Rebuild,
        in_place: None,
        open: Some(open::open),
        maps: true,
        limits: Some("2^29 words of tables, 2^29 lines, 2^24 units of objects"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(DirBtreeByte::build(routes, limits)?)),
    }]
}
