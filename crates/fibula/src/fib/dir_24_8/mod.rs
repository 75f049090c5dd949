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
//! entry:    0 ccccccccccccccc    a code: the next hop is c, or dictionary[c]; no route is code 0
//!           1 sssssssssssssss    segment s
//! ```
//!
//! ```text
//! entry = first[key >> 8]
//! if bit 15 of entry: entry = segments[256 * (entry & 0x7fff) + (key & 0xff)]
//! answer entry, or dictionary[entry]
//! ```
//!
//! The published form stores the next hop itself in the 15 bits, and so does this one where every route's id is at
//! most 32,767. Otherwise all entries hold codes of a dictionary, so that any 32-bit id can be answered; the limit
//! then counts the *distinct* next hops that are reachable. The dictionary costs a load, which hits the first-level
//! cache on tables of a few hundred next hops: a fifth of the portable rate on random keys.
//!
//! # Batches
//!
//! Kernels answer blocks of 256 keys, eight side by side, in two stages. The first one's loads wait for nothing, so
//! the processor has as many of them under way as it can; results serve as the place between the stages.
//!
//! ```text
//! for each 8 keys: results = gather first[keys >> 8]
//! for each 8 keys: divided = bit 15 of results
//!                  if any: results = gather segments[256 * number + low 8 bits of the keys], where divided
//!                  with a dictionary: results = gather dictionary[results]
//! ```
//!
//! A gather reads 32 bits of which the lower 16 are the entry: both tables end with one entry for padding.
//!
//! dfz4-2023, M lookups/s of a thread's CPU time, batch 256, a shared AMD Zen 5 with 32 MiB of L3; medians of five
//! runs. Rates of MATCH double where no neighbour is using the L3.
//!
//! | entries hold | traffic | portable | AVX2 | AVX-512 | Ice Lake |
//! |---|---|---|---|---|---|
//! | ids | RND | 162 | 241 | 240 | 238 |
//! | | MATCH | 219 | 339 | 369 | 376 |
//! | codes | RND | 131 | 222 | 222 | 222 |
//! | | MATCH | 199 | 313 | 332 | 328 |
//!
//! The widths are 3/4 and 1/4 of the key, so that the tests' small spaces run the same code.
//!
//! Invariants: (1) the first table has an entry for every value of the leading bits; (2) segments are
//! numbered in the order in which the first table names them, and there are no others; (3) a segment holds
//! two codes at least; (4) every code is in the dictionary, where there is one; (5) code 0, and no other, stands for
//! no route.
//!
//! Limits, refused by the build: 32,768 segments (/24s with something longer inside); 32,767 next hops.
//! Memory: 32 MiB + 512 bytes a segment, and 4 bytes a next hop of a dictionary, whatever the number of routes.
//!
//! Hostile tables: depth of nesting does not matter; a host route in each of 32,769 /24s is refused;
//! host routes everywhere under one /16 take 256 segments; 16 million routes are built in one pass, in time
//! linear in routes and entries.
//!
//! # Tried and lost
//!
//! - In a portable batch, reading the first table for eight keys before looking at any of the entries. A plain loop
//!   does 140 M/s where that does 103 (random keys, dfz4-2023): the branch on the entry is predicted, so the processor
//!   has the next loads under way by itself.
//! - Kernels of one loop, which does all for eight keys before it turns to the next. With a dictionary, 120 M/s where
//!   two stages do 250 (random keys), less than portable code. With ids in place there is little to wait for: 6 %
//!   faster with AVX2, 5 % slower with AVX-512.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod scalar;
#[cfg(test)]
mod tests;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

use layout::Dir248;

const NAME: &str = "dir-24-8";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv4Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "one 16-bit entry a /24, segments of 256 behind it",
        paper: "DXR paper, section 4.3 (DIR-24-8-BASIC: Gupta, Lin, McKeown 1998)",
        families: Families::Ipv4,
        role: Role::Published,
        update: Update::Rebuild,
        limits: Some("32,768 segments, 32,767 next hops"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir248::build(routes, limits)?)),
    }]
}
