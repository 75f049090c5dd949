#![doc = include_str!("chapter.md")]

mod build;
mod change;
mod check;
mod fill;
mod in_unit;
pub(crate) mod kernel;
pub(crate) mod layout;
mod lookup;
mod open;
mod prepared;
mod record;
mod scalar;
#[cfg(test)]
mod tests;
mod unit;
mod update;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Engine, Families, Role, Update};

pub(crate) use layout::Dir17Bitmap;

const NAME: &str = "dir-17-bitmap";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv4Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "direct table of 17 bits, then a bitmap of changes and the values that it counts",
        use_when: "an IPv4 table is full, and memory matters or it changes",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::InPlace,
        in_place: Some(|routes, limits| Ok(Box::new(update::Editor::build(routes, limits)?))),
        open: Some(open::open),
        maps: true,
        limits: Some("512 MiB of units"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir17Bitmap::build(routes, limits)?)),
    }]
}
