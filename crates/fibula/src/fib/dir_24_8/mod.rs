//! DIR-24-8-BASIC: one entry for every /24, and a second table where a /24 is not whole.
//!
//! Gupta, Lin and McKeown, "Routing lookups in hardware at memory access speeds" (INFOCOM 1998), in the form
//! that the DXR paper compares itself with (section 4.3): 16-bit entries, so that the first table takes 32
//! MiB. At most two loads a lookup, and neither is near the other: the scheme buys few steps with much
//! memory.
//!
//! ```text
//! first:    | B | B | segment 0 | B | ... | A | A |      2^24 entries of 16 bits, one a /24
//!                       |
//!                       v  256 entries a segment, one an address
//! segments:           | C | C | C | D | D | ... | C | ...
//!
//! entry:    0 ccccccccccccccc    a code: the next hop is dictionary[c], no route is code 0
//!           1 sssssssssssssss    segment s
//! ```
//!
//! ```text
//! entry = first[key >> 8]
//! if bit 15 of entry: entry = segments[256 * (entry & 0x7fff) + (key & 0xff)]
//! answer dictionary[entry]
//! ```
//!
//! The published form stores the next hop itself in the 15 bits. Here they hold a code, so that any 32-bit id
//! can be answered; the limit then counts the *distinct* next hops that are reachable. The dictionary costs a
//! load, which hits the first-level cache on tables of a few hundred next hops.
//!
//! The widths are 3/4 and 1/4 of the key, so that the tests' small spaces run the same code.
//!
//! Invariants: (1) the first table has an entry for every value of the leading bits; (2) segments are
//! numbered in the order in which the first table names them, and there are no others; (3) a segment holds
//! two codes at least; (4) every code is in the dictionary; (5) code 0, and no other, stands for no route.
//!
//! Limits, refused by the build: 32,768 segments (/24s with something longer inside); 32,767 next hops.
//! Memory: 32 MiB + 512 bytes a segment + 4 bytes a next hop, whatever the number of routes.
//!
//! Hostile tables: depth of nesting does not matter; a host route in each of 32,769 /24s is refused;
//! host routes everywhere under one /16 take 256 segments; 16 million routes are built in one pass, in time
//! linear in routes and entries.
//!
//! Tried and lost: in a batch, reading the first table for eight keys before looking at any of the entries. A
//! plain loop does 140 M/s where that does 103 (random keys, dfz4-2023): the branch on the entry is
//! predicted, so the processor has the next loads under way by itself.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
#[cfg(test)]
mod tests;

use crate::net::{Family, Key};
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

pub use layout::Dir248;

const NAME: &str = "dir-24-8";

/// The registry line.
#[must_use]
pub fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    if K::FAMILY == Family::Ipv6 {
        return Vec::new();
    }
    vec![Algorithm {
        name: NAME,
        summary: "one 16-bit entry a /24, segments of 256 behind it",
        paper: "DXR paper, section 4.3 (DIR-24-8-BASIC: Gupta, Lin, McKeown 1998)",
        families: Families::Ipv4,
        role: Role::Published,
        update: Update::Rebuild,
        limits: Some("32,768 segments, 32,767 next hops"),
        isas: Isa::ALL,
        preference: |_| 0,
        build: |routes, limits| Ok(Box::new(Dir248::build(routes, limits)?)),
    }]
}
