//! DIR-24-8-BASIC: one entry for every /24, and a second table for the /24s that longer prefixes divide.
//!
//! Gupta, Lin and McKeown, "Routing lookups in hardware at memory access speeds" (INFOCOM 1998), in the form with which
//! the DXR paper compares itself (section 4.3): 16-bit entries, so that the first table takes 32 MiB. A lookup makes at
//! most two loads, far apart in memory: the scheme trades much memory for few steps.
//!
//! # Memory
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
//! The published form stores the next hop itself in the 15 bits. This one does so too where the id of every route is at
//! most 32,767. Otherwise all entries hold codes of a dictionary, so that any 32-bit id can be an answer, and the limit
//! counts the *distinct* next hops that lookups can reach. The dictionary costs a load. On tables of a few hundred next
//! hops it hits the first-level cache and costs a fifth of the portable rate on random keys.
//!
//! The tables are indexed by 3/4 and 1/4 of the key's bits, so that the tests' small spaces run the same code.
//!
//! # Lookup
//!
//! ```text
//! entry = first[key >> 8]
//! if bit 15 of entry: entry = segments[256 * (entry & 0x7fff) + (key & 0xff)]
//! answer entry, or dictionary[entry]
//! ```
//!
//! # Kernels
//!
//! Kernels answer blocks of 256 keys, eight side by side, in two stages. The loads of the first stage are independent,
//! so the processor overlaps as many as it can. The results hold the entries between the stages.
//!
//! ```text
//! for each 8 keys: results = gather first[keys >> 8]
//! for each 8 keys: divided = bit 15 of results
//!                  if any: results = gather segments[256 * number + low 8 bits of the keys], where divided
//!                  with a dictionary: results = gather dictionary[results]
//! ```
//!
//! A gather reads 32 bits, of which the lower 16 are the entry. So both tables end with one entry of padding.
//!
//! # Invariants
//!
//! 1. The first table has an entry for every value of the leading bits, and both tables end with the padding.
//! 2. Segments are numbered in the order in which the first table names them, and every segment is named.
//! 3. A segment holds at least two different codes.
//! 4. Every code is in the dictionary, where there is one.
//! 5. Code 0, and no other code, is "no route".
//!
//! # Limits and cost
//!
//! The build refuses more than 32,768 segments (/24s that contain longer prefixes) and more than 32,767 next hops.
//! Memory: 32 MiB and 512 bytes a segment, and 4 bytes for each next hop of a dictionary, whatever the number of
//! routes.
//!
//! Hostile tables: the depth of nesting does not matter. A host route in each of 32,769 /24s is refused. Host routes
//! everywhere under one /16 take 256 segments. 16 million routes are built in one pass, in time linear in routes and
//! entries.
//!
//! `notes.md` in this folder has measured rates, and variants that were not kept.

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

/// Returns the registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv4Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "one 16-bit entry a /24, segments of 256 for divided ones",
        paper: "DXR paper, section 4.3 (DIR-24-8-BASIC: Gupta, Lin, McKeown 1998)",
        families: Families::Ipv4,
        role: Role::Published,
        update: Update::Rebuild,
        in_place: None,
        limits: Some("32,768 segments, 32,767 next hops"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir248::build(routes, limits)?)),
    }]
}
