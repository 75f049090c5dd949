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
mod unit;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Engine, Families, Role, Update};

use layout::Dir17Sparse;

const NAME: &str = "dir-17-sparse";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv4Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "17 leading bits in groups of ranked entries, then sparse bitmaps of changes and their values",
        use_when: "a full IPv4 table does not change, and bytes matter most",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::Rebuild,
        in_place: None,
        open: Some(open::open),
        maps: true,
        limits: Some("256 MiB of overflow"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir17Sparse::build(routes, limits)?)),
    }]
}
