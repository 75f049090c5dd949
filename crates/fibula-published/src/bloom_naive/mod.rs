//! Naive Bloom filters: a counting filter and a hash table for every prefix length.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because the Bloomfwd paper starts from it.
//!
//! The first engine of the Bloomfwd paper (section 3.1, Engines 1 and 2), after Dharmapurikar et al. A lookup goes
//! through the lengths, longest first, and searches the hash table of a length only if its filter may have the address's
//! prefix of that length. A filter errs in one direction: it may claim a prefix that is not there, which costs a search,
//! and never misses one that is.
//!
//! # Memory
//!
//! ```text
//! level 32: bits     0 1 1 0 0 1 ..     m bits, of which each prefix sets k; read by lookups
//!           counters 0 1 2 0 0 1 ..     4 bits each: how many hashes lead to the bit; read by changes only
//!           heads    3 - 0 1 ..         first entry of each bucket, as many as entries were expected
//!           entries  key, next hop, next entry of the bucket: 16 bytes (32 beyond IPv6's /64)
//! level 31: ..
//! direct:   next hop of the default route, or 0
//! ```
//!
//! # Sizes
//!
//! For a false-positive ratio `f` and `n` prefixes of a length (equations 1 to 3):
//!
//! ```text
//! m = ceil(n * log2(1/f) / ln 2)        k = m/n * ln 2 = ceil(log2(1/f))        f = (1/2)^k
//! ```
//!
//! Because k is rounded, the ratio really is `(1 - e^(-kn/m))^k`: 1.00, 10.3, 30.2, 61.0 and 99.0 % for 1, 10, 30, 60
//! and 90 %. The default is 10 %; `bloom-naive:F` is the structure for another ratio.
//!
//! # Store, lookup, remove
//!
//! ```text
//! store(p, next hop):                    lookup(address):
//!   for i in 0..k:                         for length from longest to 1:
//!     at = h_i(p) mod m                      p = the first bits of the address
//!     counter[at] += 1, up to 15             if every bit[h_i(p) mod m] for i in 0..k is set
//!     bit[at] = 1                              and the chain of bucket h_k(p) mod n has p: its next hop
//!   put p into bucket h_k(p) mod n         the default route
//!
//! remove(p): counter[at] -= 1 unless it is 15; bit[at] = 0 where it becomes 0; take p out of its bucket
//! ```
//!
//! The hash functions are the finaliser of 64-bit Murmur3 over the key and one seed for each function, h_k for the hash
//! table included. A filter that has twice the entries it was sized for is made anew.
//!
//! # Invariants
//!
//! 1. The direct array has one element for every value of its leading bits (here one: the default route).
//! 2. Levels descend by length; each has one length.
//! 3. Sizes of filters and buckets are those of the equations for the number of entries that they were sized for, and no
//!    level has more than twice that.
//! 4. Every entry is in one chain, once, or on the list of free ones.
//! 5. An entry is masked to the length of its level and in its bucket; no prefix has two.
//! 6. A counter counts the hashes that lead to its bit, or is saturated at 15; a bit is set where its counter is not 0. A
//!    saturated counter is never decremented, as it may have missed increments: its bit stays set, which costs false
//!    positives but no answer.
//!
//! # Limits and cost
//!
//! At most 2^26 prefixes of one length. A lookup computes at least one hash for every length that has entries, 32 or 64
//! for a full table, and of those that fail most fail at the first bit. It is by far the slowest of the structures that
//! are not oracles; that is the paper's point. Prefixes longer than /64, which the paper does not know, have levels like
//! all others.
//!
//! Lookups read an entry of 16 bytes, a bucket of 4 and 5 bits of the filter for a prefix, and 36.9 bytes in all for one beyond /64;
//! the counters, 19 bits, are for changes. Nothing is expanded, so that host routes, nested chains and blocks of equal routes
//! take the same 20.6 bytes each (`fibula-lab rates --synth ipv4-chains` and similar). A level without prefixes takes no memory but
//! its place in the list, 32 of them for an empty IPv4 table and 128 for IPv6.

mod layout;
mod lookup;

use crate::bloom::sizes::Ratio;
use fibula::net::{Key, KeyKind};
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

use layout::BloomNaive;

const NAME: &str = "bloom-naive";

/// A registry entry for a false-positive ratio.
macro_rules! entry {
    ($name:expr, $percent:literal) => {
        Engine {
            name: $name,
            summary: "a counting Bloom filter and a hash table for every prefix length",
            use_when: "you compare with the Bloomfwd paper's naive filters",
            paper: "Bloomfwd paper, section 3.1, Engines 1 and 2",
            families: Families::Both,
            role: Role::Published,
            update: Update::InPlace,
            in_place: None,
            open: None,
            maps: false,
            limits: Some("2^26 prefixes of one length"),
            isas: &[Isa::Scalar],
            build: |routes, limits| layout::boxed(routes, Ratio::percent($percent), limits),
        }
    };
}

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![entry!(NAME, 10)]
}

/// Returns the entry for each ratio of the paper's figures.
pub(crate) fn variants<K: Key>() -> Vec<Engine<K>> {
    macro_rules! entries {
        ($($percent:literal)*) => { vec![$(entry!(concat!("bloom-naive:", $percent), $percent)),*] };
    }
    // A constant condition, so that toys compile none.
    if const { matches!(K::KIND, KeyKind::Toy) } {
        return Vec::new();
    }
    entries!(1 5 10 15 20 25 30 35 40 45 50 55 60 90)
}
