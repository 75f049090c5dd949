//! Baseline of the Bloomfwd paper: two filters before a direct array, with C's `rand()` as hash function.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` or `dir-18-lines` instead. It is here because the
//! Bloomfwd paper measures itself by it.
//!
//! Section 3.2 of the paper, after Dharmapurikar et al. Controlled prefix expansion leaves prefixes of three lengths: up to
//! /20 in a direct array of 2^20 next hops, the default route included; /21 to /24 as /24 in the group G1; /25 to /32 as
//! /32 in the group G2. Each group is a counting Bloom filter and a hash table, each of the size that its number of
//! prefixes needs (*asymmetric* filters). A lookup tries G2, then G1, then reads the array.
//!
//! What it is there for is the comparison: [`bloomfwd`](super::bloomfwd) has the same filters and the same expansion, and
//! differs in its hash functions, in not computing them twice and in its vectors.
//!
//! # Memory
//!
//! ```text
//! G2: filter of the /32s   m bits, k hashes      chained hash table: heads, entries (key, next hop, next) of 12 bytes
//! G1: filter of the /24s   m bits, k hashes      chained hash table
//! direct: 2^20 next hops, 4 MiB
//! ```
//!
//! `m = ceil(n * log2(1/f) / ln 2)` and `k = ceil(log2(1/f))` with n the number of prefixes after expansion and f = 30 %;
//! as many buckets as prefixes. [`bloom_naive`](super::bloom_naive) has the formulas and the counters.
//!
//! # Lookup
//!
//! ```text
//! for (length, filter, table) in [(32, G2), (24, G1)]:
//!     p = the first bits of the address, in place
//!     srand(p)                                   about 350 steps of the generator
//!     if every bit[rand() mod m], k times, is set:
//!         search the chain of bucket rand() mod n for p
//! direct[address >> 12]
//! ```
//!
//! `rand()` is that of the GNU C library, written anew: an additive feedback generator over 31 words. (Toys use its state
//! without the 310 numbers that it drops first, so that the tests can try every table.)
//!
//! # Changes
//!
//! An expanded prefix does not know the route that it came from. A change therefore makes the group agree with the routes
//! for every address of the changed prefix: the ranges of the routes of the group's lengths there, expanded, replace what
//! was there. A prefix that a longer route of the group has captured keeps that route's next hop.
//!
//! # Invariants
//!
//! 1. The direct array has one element for every value of its leading bits.
//! 2. Levels descend by length, and the lengths that are expanded to them do not overlap.
//! 3. to 6. As in [`bloom_naive`](super::bloom_naive).
//!
//! # Limits and cost
//!
//! IPv4 only: the paper has no direct array for IPv6. At most 2^26 prefixes in a group after expansion; a table of a
//! million /25s would need 128 million. A /25 takes 128 entries, 16 bytes each with their heads, and a quarter byte in the
//! filter for each.

mod layout;
mod lookup;

use fibula::net::{Ipv4Key, KeyKind};
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

use layout::BloomBaseline;

const NAME: &str = "bloom-baseline";

/// A registry entry: number of bits of the direct array, length of G1.
macro_rules! entry {
    ($direct:literal, $first:literal) => {
        Engine {
            name: NAME,
            summary: "prefixes expanded to /20, /24 and /32; Bloom filters hashed by C's rand()",
            use_when: "you compare with the Bloomfwd paper's baseline",
            paper: "Bloomfwd paper, sections 3.2 and 6.3",
            families: Families::Ipv4,
            role: Role::Published,
            update: Update::InPlace,
            in_place: None,
            open: None,
            maps: false,
            limits: Some("2^26 prefixes of one length after expansion"),
            isas: &[Isa::Scalar],
            build: |routes, limits| Ok(Box::new(BloomBaseline::build(routes, $direct, $first, limits)?)),
        }
    };
}

/// Returns the registry entry, with lengths in proportion for toys.
#[must_use]
pub(crate) fn engines<K: Ipv4Key>() -> Vec<Engine<K>> {
    vec![match (K::KIND, K::BITS) {
        (KeyKind::Ipv4 | KeyKind::Ipv6, _) => entry!(20, 24),
        (KeyKind::Toy, ..=3) => entry!(1, 2),
        (KeyKind::Toy, ..=8) => entry!(4, 6),
        (KeyKind::Toy, _) => entry!(10, 12),
    }]
}
