#![doc = include_str!("chapter.md")]

mod build;
mod check;
mod codes;
mod fill;
mod kernel;
mod layout;
mod lookup;
mod prepared;
mod scalar;
#[cfg(test)]
mod tests;
mod update;
#[cfg(test)]
mod update_tests;
mod written;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Engine, Families, Role, Update};

use layout::Dir248;

const NAME: &str = "dir-24-8";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv4Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "one 16-bit entry a /24, segments of 256 for divided ones",
        use_when: "IPv4 traffic hits few addresses, and 34 MB do not matter",
        paper: "DXR paper, section 4.3 (DIR-24-8-BASIC: Gupta, Lin, McKeown 1998)",
        families: Families::Ipv4,
        role: Role::Published,
        update: Update::InPlace,
        in_place: Some(|routes, limits| Ok(Box::new(update::Editor::build(routes, limits)?))),
        open: None,
        maps: false,
        limits: Some("32,768 segments, 32,767 next hops"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir248::build(routes, limits)?)),
    }]
}
