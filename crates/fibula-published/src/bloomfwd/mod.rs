//! Bloomfwd: Bloom filters with cheap hashes in vectors, before chained hash tables.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because its paper is one of those whose tables and figures are measured again.
//!
//! The Bloomfwd paper's own engine (sections 4.1 to 4.3). It has the filters of [`bloom_naive`](super::bloom_naive) and
//! for IPv4 the expansion of [`bloom_baseline`](super::bloom_baseline). What is new is the cost of a hash: functions of a
//! few instructions instead of `rand()`, two of them instead of k (`g_i = h1 + i * h2`), the filter's first hash used again
//! for the hash table, and eight addresses at a time in a vector. For IPv6, which has no direct array, the lengths of the
//! levels are chosen for the table (DPCPE).
//!
//! # Memory
//!
//! ```text
//! level: bits      m bits, k of them set for each prefix                     m = ceil(n * log2(1/f) / ln 2)
//!        counters  4 bits each, for changes                                  k = ceil(log2(1/f))
//!        heads     a bucket for each prefix
//!        entries   prefix, next hop, next entry of the bucket                12 bytes (IPv4), 16 (IPv6), 32 (beyond /64)
//! direct: IPv4: 2^20 next hops; IPv6: the default route
//! ```
//!
//! n is the number of prefixes after expansion, f is 30 %, as the paper chooses.
//!
//! # Hashes
//!
//! ```text
//! Murmur   fmix32: x ^= x >> 16; x *= 0x85ebca6b; x ^= x >> 13; x *= 0xc2b2ae35; x ^= x >> 16
//!          fmix64: x ^= x >> 33; x *= 0xff51afd7ed558ccd; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53; x ^= x >> 33
//! Knuth    x * 2654435761 mod 2^32
//! H2       x = ((x >> 16) ^ x) * 0x45d9f3b, twice; x = (x >> 16) ^ x
//! ```
//!
//! The finalisers are what is left of Murmur3 for a key of one word. For 32 bits, h1 is the function and h2 the same
//! function of the key with a seed (`x ^ 0x9e3779b9`), for Knuth's another multiplier (2246822519), as a changed key would
//! hide the fault that the paper finds in it. For 64 bits, h1 and h2 are the halves of one hash. A key is the address
//! masked in place. Hashes are reduced modulo m by a multiplication and shifts, exactly, in vectors too.
//!
//! The paper chooses H2 for filters and hash tables of IPv4, and 64-bit Murmur for IPv6; this structure's entries do so.
//! `bloomfwd:FILTER+TABLE:F` is the structure for every pair of `murmur`, `knuth` and `h2` and a ratio of 1, 5, 10, 15 and so on
//! to 60, and 90 %.
//!
//! # Lookup
//!
//! ```text
//! for a block of 256 addresses:
//!   for each level, longest first:
//!     for eight addresses without an answer at a time:                 the vector part
//!       x = addresses & mask; h1 = hash(x); h2 = hash2(x)
//!       passed = for all i in 0..k: bit[(h1 + i * h2) mod m]           a gather for each i
//!     head[j] = heads[h1 mod n]            for all that passed         loads that overlap
//!     walk the chain from head[j] for x
//!   direct[address >> 12]                  for all without an answer
//! ```
//!
//! `bloomfwd-auto` has the vector part as portable loops, of which the compiler makes vectors.
//!
//! # Levels of IPv6 (section 4.2)
//!
//! A level of length q takes all prefixes of the lengths i after the level before it, each as `2^(q-i)` prefixes. The cost
//! function is `f(Q) = sum over i of count_i * 2^(q_i - i)`.
//!
//! - `bloomfwd` (`bloomfwd-greedy`): as published. {64}, then again and again the length that lowers f most.
//! - `bloomfwd-exact`: the least f for that number of levels, by dynamic programming over the cut between two levels.
//! - `bloomfwd-capture`: the least number of prefixes that the table then really has. A prefix within another of its level
//!   adds none, so the cost of a level is the sum over the prefixes that no other of the level covers.
//! - `bloomfwd-none`: no expansion, one level a distinct length.
//!
//! All choose five levels, which are the best in the paper, and more where a table would have more than 32 times as many
//! prefixes as routes (and 1,024). `bloomfwd-greedy:N`, `bloomfwd-exact:N` and `bloomfwd-capture:N`, for 2 to 8 levels,
//! choose exactly N and refuse tables that are too large then.
//!
//! Prefixes beyond /64, which the paper does not know, have levels of their own, without expansion and without vectors.
//!
//! # Changes
//!
//! As in [`bloom_baseline`](super::bloom_baseline): the level of a changed prefix is made to agree with the routes there.
//! The lengths of the levels stay.
//!
//! # Lookups elsewhere
//!
//! A coprocessor has the levels that have entries, longest first, each as `length`, `stored-bits` (32, 64 or 128), `hashes`, and
//! the numbers of two divisors: bits of the filter, and buckets. A level has three arrays: bits, heads, and entries of as many
//! words as its keys have, and two. `narrow` is 1 for IPv4, `direct-bits` index the direct table; the functions of filters and of
//! hash tables are 0 (Murmur), 1 (Knuth) or 2 (H2).
//!
//! # Invariants
//!
//! 1. to 6. As in [`bloom_baseline`](super::bloom_baseline).
//!
//! # Limits and cost
//!
//! At most 2^26 prefixes of one length after expansion. A lookup computes two hashes (one for IPv6) for each level until
//! one has the prefix, reads about two bits of each filter that it fails, and a bucket and an entry at each that it passes.
//!
//! An entry takes 12 bytes for IPv4, a bucket 4, and a prefix 2.5 bits of the filter, which lookups read; and 10 bits of counters,
//! which they do not. An empty table has the direct array of 4 MiB, and 4 bytes for IPv6.
//!
//! Hostile tables (`fibula-lab rates --synth ipv4-chains` and similar): 200,000 random host routes take 16.3 bytes each beside the
//! direct array. 200,000 routes nested in chains of all lengths expand to 112 bytes each, and 100,000 of IPv6 to 110. A million
//! /25s would be 128 million /32s, and are refused with that number. A prefix within another of its level adds nothing.
//!
//! `docs/findings.md` has the paper's figures beside ours, and says where they differ and why.

mod export;
mod kernel;
mod layout;
mod lookup;
mod scalar;
#[cfg(test)]
mod tests;
mod variants;

use crate::bloom::lengths::Choice;
use crate::bloom::table::Expansion;
use fibula::net::{ForIpv4, Ipv4Key, Key, KeyKind};
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

use layout::{CHOSEN_LEVELS, CHOSEN_PAIR, CHOSEN_RATIO, NarrowOptions, Vectors, WideOptions, chosen};

pub(super) use variants::variants;

const NAME: &str = "bloomfwd";

const PAPER: &str = "Bloomfwd paper, sections 4.1 to 4.3";

/// A registry entry. These are constants, because the `build` of an entry is a plain function.
macro_rules! entry {
    ($name:expr, $summary:expr, $families:ident, $build:expr) => {
        Engine {
            name: $name,
            summary: $summary,
            use_when: "you compare with Bloomfwd",
            paper: PAPER,
            families: Families::$families,
            role: Role::Published,
            update: Update::InPlace,
            in_place: None,
            open: None,
            maps: false,
            limits: Some("2^26 prefixes of one length after expansion"),
            isas: Isa::ALL,
            build: $build,
        }
    };
}
use entry;

/// An entry for IPv4: bits of the direct array, length of the first group, hashes, ratio, vectors.
macro_rules! narrow {
    ($name:expr, $summary:expr, $families:ident, $lengths:expr, $hashes:expr, $ratio:expr, $vectors:ident) => {
        entry!($name, $summary, $families, |routes, limits| {
            const OPTIONS: NarrowOptions = NarrowOptions {
                lengths: $lengths,
                hashes: $hashes,
                ratio: $ratio,
                vectors: Vectors::$vectors,
            };
            layout::narrow(routes, &OPTIONS, limits)
        })
    };
}
use narrow;

/// An entry for IPv6: expansion, vectors.
macro_rules! wide {
    ($name:expr, $summary:expr, $families:ident, $expansion:expr, $vectors:ident) => {
        entry!($name, $summary, $families, |routes, limits| {
            const OPTIONS: WideOptions = WideOptions { expansion: $expansion, vectors: Vectors::$vectors };
            layout::wide(routes, &OPTIONS, limits)
        })
    };
}
use wide;

const SUMMARY: &str = "Bloom filters with cheap hashes in vectors, expanded prefixes in hash tables";
const AUTO: &str = "the same, with vectors left to the compiler";
const GREEDY: &str = "levels chosen for the table one by one, as published";
const EXACT: &str = "levels chosen for the least cost by the paper's function";
const CAPTURE: &str = "levels chosen for the fewest prefixes after expansion";
const NONE: &str = "a level for every length that occurs, no expansion";

/// Returns the registry entries.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    // Constant conditions, so that what is not for these keys is not compiled.
    let mut all = Vec::new();
    if const { !matches!(K::KIND, KeyKind::Ipv6) } {
        all.extend(for_ipv4::<K>());
    }
    if const { matches!(K::KIND, KeyKind::Ipv6) } {
        all.extend(for_ipv6());
    }
    if const { matches!(K::KIND, KeyKind::Toy) } {
        all.extend(for_toys());
    }
    all
}

/// Returns the entries that rely on keys of 32 bits; none for other keys.
fn for_ipv4<K: Key>() -> Vec<Engine<K>> {
    struct Entries;
    impl<K: Key> ForIpv4<K> for Entries {
        type Output = Vec<Engine<K>>;

        fn call() -> Self::Output
        where
            K: Ipv4Key,
        {
            narrow_entries()
        }
    }
    K::if_ipv4::<Entries>().unwrap_or_default()
}

fn narrow_entries<K: Ipv4Key>() -> Vec<Engine<K>> {
    macro_rules! both {
        ($lengths:expr) => {
            vec![
                narrow!(NAME, SUMMARY, Both, $lengths, CHOSEN_PAIR, CHOSEN_RATIO, Kernels),
                narrow!("bloomfwd-auto", AUTO, Both, $lengths, CHOSEN_PAIR, CHOSEN_RATIO, Compiler),
            ]
        };
    }
    match (K::KIND, K::BITS) {
        (KeyKind::Ipv4 | KeyKind::Ipv6, _) => both!((20, 24)),
        // Every table of three bits, or pair of prefixes of eight, takes a minute for each entry: the chosen one is enough.
        (KeyKind::Toy, ..=3) => {
            vec![narrow!(NAME, SUMMARY, Both, (1, 2), CHOSEN_PAIR, CHOSEN_RATIO, Kernels)]
        }
        (KeyKind::Toy, ..=8) => {
            vec![narrow!(NAME, SUMMARY, Both, (4, 6), CHOSEN_PAIR, CHOSEN_RATIO, Kernels)]
        }
        (KeyKind::Toy, _) => both!((10, 12)),
    }
}

fn for_ipv6<K: Key>() -> Vec<Engine<K>> {
    const LEVELS: u8 = CHOSEN_LEVELS;
    vec![
        wide!(NAME, SUMMARY, Both, chosen(Choice::Greedy, LEVELS), Kernels),
        wide!("bloomfwd-auto", AUTO, Both, chosen(Choice::Greedy, LEVELS), Compiler),
        wide!("bloomfwd-exact", EXACT, Ipv6, chosen(Choice::Exact, LEVELS), Kernels),
        wide!("bloomfwd-capture", CAPTURE, Ipv6, chosen(Choice::Capture, LEVELS), Kernels),
        wide!("bloomfwd-none", NONE, Ipv6, Expansion::Distinct, Kernels),
    ]
}

fn for_toys<K: Key>() -> Vec<Engine<K>> {
    if K::BITS <= 8 {
        return vec![wide!("bloomfwd-capture", CAPTURE, Ipv6, chosen(Choice::Capture, 1), Kernels)];
    }
    vec![
        wide!("bloomfwd-greedy", GREEDY, Ipv6, chosen(Choice::Greedy, 2), Kernels),
        wide!("bloomfwd-exact", EXACT, Ipv6, chosen(Choice::Exact, 2), Compiler),
        wide!("bloomfwd-capture", CAPTURE, Ipv6, chosen(Choice::Capture, 2), Kernels),
        wide!("bloomfwd-none", NONE, Ipv6, Expansion::Distinct, Kernels),
    ]
}
