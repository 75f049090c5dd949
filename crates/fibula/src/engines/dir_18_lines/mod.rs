#![doc = include_str!("chapter.md")]

mod build;
mod check;
mod kernel;
pub(crate) mod layout;
mod lookup;
mod open;
mod prepared;
mod scalar;
#[cfg(test)]
mod tests;
mod update;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Engine, Families, Role, Update};

pub(crate) use layout::Dir18Lines;

const NAME: &str = "dir-18-lines";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv4Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "direct table of 18 to 20 bits, then one cache line of values, one a /24",
        use_when: "an IPv4 table is full and does not change",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::InPlace,
        in_place: Some(|routes, limits| Ok(Box::new(update::Editor::build(routes, limits)?))),
        open: Some(open::open),
        maps: true,
        limits: Some("256 MiB of overflow"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir18Lines::build(routes, limits)?)),
    }]
}
