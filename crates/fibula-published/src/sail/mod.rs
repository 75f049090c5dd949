//! SAIL: prefixes pushed to three levels, of 16, 24 and 32 bits, and one 16-bit entry a level.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` or `dir-18-lines` instead. It is here because PlanB's
//! paper discusses it. It is built after descriptions by others; its own paper was not read.
//!
//! Yang, Xie, Li, Fu, Liu, Li and Mathy, "Guarantee IP Lookup Performance with FIB Explosion" (SIGCOMM 2014), as PlanB
//! discusses it: the form for lookups, SAIL_L, for IPv4. Its paper states it with a bit map a level that says whether longer
//! prefixes are below (B16, B24), an array of next hops (N16, N24, N32) and one of chunk numbers (C16, C24), of which
//! a lookup needs one at a time; and then puts flag and number into one entry a level, which is what is built here.
//!
//! # Memory
//!
//! ```text
//! level 16:   | 1 | chunk 0 | 0 | ...            2^16 entries of 16 bits, one a /16
//!                    |
//!                    v  256 entries a chunk, one a /24
//! level 24:  | 1 | 1 | 2 | chunk 0 | 1 | ...
//!                             |
//!                             v  256 entries a chunk, one an address
//! level 32:  | 1 | 1 | 1 | 1 | 3 | 1 | ...
//!
//! entry:     0 ccccccccccccccc    a code: the next hop is c, or dictionary[c]; no route is code 0
//!            1 nnnnnnnnnnnnnnn    chunk n of the next level
//!
//! here:      10.0.0.0/8 -> 1     10.1.2.0/24 -> 2     10.1.3.4/32 -> 3
//! ```
//!
//! The next hop of a shorter prefix is pushed down into every chunk it covers. The published structure makes a chunk wherever a
//! longer prefix is. This one is filled from ranges of addresses, so that it makes one only where answers differ, which saves
//! chunks and no lookup can tell.
//!
//! Next hops are in the entries where the id of every route has 15 bits; otherwise all entries hold codes of a dictionary, which
//! costs a load and counts the next hops that lookups can reach.
//!
//! The levels take 1/2, 1/4 and 1/4 of the key's bits, so that the tests' small spaces run the same code.
//!
//! # Lookup
//!
//! ```text
//! entry = level16[key >> 16]
//! if bit 15 of entry: entry = level24[256 * (entry & 0x7fff) + (key >> 8 & 0xff)]
//! if bit 15 of entry: entry = level32[256 * (entry & 0x7fff) + (key & 0xff)]
//! answer entry, or dictionary[entry]
//! ```
//!
//! # Kernels
//!
//! Kernels answer blocks of 256 keys level by level, eight side by side: all loads of a level are independent, so the processor
//! overlaps as many as it can. The results hold the entries between levels. Eight keys that all have their answer skip the next
//! gather. A gather reads 32 bits, of which the lower 16 are the entry, so that levels end with one entry of padding.
//!
//! # Invariants
//!
//! 1. Each level ends with the padding.
//! 2. The first level has an entry for every /16. Chunks of the others are numbered in the order in which the level above
//!    names them, and every chunk is named once. The last level names none.
//! 3. A chunk holds at least two entries that differ.
//! 4. Every code is in the dictionary, where there is one.
//! 5. Code 0, and no other code, is "no route".
//!
//! # Changes
//!
//! The published structure rewrites the chunks that a change touches, with the reader stopped or unaware. Here it is built anew,
//! and swapped in by what holds it: a build is one pass.
//!
//! # Limits and cost
//!
//! The build refuses more than 32,768 chunks of a level (/16s and /24s that are divided) and more than 32,767 next hops, and says
//! what the table needs. Memory: 128 KiB, and 512 bytes a chunk.
//!
//! Hostile tables: a /17 in each of 32,769 /16s is refused, and so is a host route in each of 32,769 /24s. Nesting does not
//! matter. All host routes of a /16 take 257 chunks.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod scalar;
#[cfg(test)]
mod tests;

use fibula::net::Ipv4Key;
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

use layout::Sail;

const NAME: &str = "sail";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Ipv4Key>() -> Vec<Engine<K>> {
    vec![Engine {
        name: NAME,
        summary: "prefixes pushed to 16, 24 and 32 bits, one 16-bit entry a level",
        use_when: "you compare with SAIL, as PlanB's paper has it",
        paper: "after PlanB's description, section 2 (SAIL_L: Yang et al., SIGCOMM 2014)",
        families: Families::Ipv4,
        role: Role::Described,
        update: Update::Rebuild,
        in_place: None,
        open: None,
        maps: false,
        limits: Some("32,768 chunks a level, 32,767 next hops"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Sail::build(routes, limits)?)),
    }]
}
