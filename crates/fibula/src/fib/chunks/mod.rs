//! Chunks behind a direct table, looked up in stages: the IPv4 engine of Fibula's own.
//!
//! # The idea
//!
//! What a lookup costs is how many loads it makes that miss the first-level cache, and whether the processor has
//! many of them under way at once. So: two loads or three, never a search and never a branch that depends on a key;
//! everything small enough for the second-level cache or nearly; and a batch is worked through in *stages*, each a
//! loop whose iterations do not wait for one another. The first stage loads the direct entries of 256 keys, the next
//! one what those entries name, and so on.
//!
//! # Memory
//!
//! ```text
//! direct:  | B | C | B | ... | A |                        2^16 (rank) or 2^18 (dense) entries of 32 bits
//!                |
//!                v a chunk, which begins at a word of the area
//! rank:    | map of changes, a bit a slot; words of 24 bits and a count | a value a range |
//! dense:   | a value a slot |
//! ```
//!
//! A chunk of which some slots are deeper has a word in front of it: the place of a map in a second area,
//!
//! ```text
//! deep:    | the deeper chunks | ... | entry 1 | entry 0 | map of deeper slots | the next chunk's ...
//!
//! deeper:  | map of changes | a value a range |           where there are more than four changes
//!          | 4 changes of 8 bits | a value a range |      else: a host route is 8 bytes
//! ```
//!
//! so that what lookups above it touch lies together. Entries of both areas and the direct table look the same:
//!
//! ```text
//! entry:   0 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn              next hop n, 0 for no route
//!          1 sss ww oooooooooooooooooooooooooo            chunk at word o, slots of 2^s, values of 2^w bytes
//! ```
//!
//! A key is cut into three windows: 16, 8 and 8 bits for rank chunks, 18, 6 and 8 bits for dense ones. A direct entry
//! whose addresses all go one way holds the next hop itself. A *slot* is a /24. Where nothing in a chunk changes
//! at a finer grain than 2^s slots, those are one slot (s at most 6). Values are of 8, 16 or 32 bits, by chunk: a
//! table of 256 next hops has a few chunks that need 16 bits, and a table of 70,000 a few that do not need 32. The
//! value of all ones says that the slot is *deeper*: that its answer is in the chunk of the rest of the key.
//!
//! A word of a map covers 24 slots; its upper 8 bits count the changes in the words before it. So one load gives
//! the rank of a slot: that count, and the set bits up to the slot.
//!
//! # Lookup
//!
//! ```text
//! stage 1   entry = direct[key >> 16]                                     all lanes
//! stage 2   slot = ((key >> 8) & 255) >> s                                lanes with a chunk (dense: of 6 bits)
//!           rank:  word = area[o + slot / 24]
//!                  at = 4 (o + words(s)) + (count(word) + ones(word up to slot % 24) << w)
//!           dense: at = 4 o + (slot << w)
//! stage 3   value = 2^w bytes at `at`; all ones: the lane is noted         lanes with a chunk
//! below     place of the map; rank of the slot in it; the deeper chunk's entry; its map or
//!           changes; its value: five stages                                noted lanes, in full vectors
//! ```
//!
//! The scalar form of rank chunks writes the numbers of the keys that stage 1 left open into a list, without a branch,
//! and works the list off; that of dense chunks does the same instructions for every key.
//!
//! # Invariants
//!
//! (1) The windows are those of the form and the key's width. (2) There is a direct entry for every value of the
//! leading bits. (3) Chunks stand in the order of their addresses, and so do deeper ones, those of a chunk followed by
//! their list and map, with nothing between. (4) A map counts, in each word, the changes of the words before it;
//! nothing changes at the first slot; there are no bits behind the last one. (5) Neighbouring values of a rank
//! chunk or a deeper one differ. (6) Values are no wider than they must be. (7) A slot has a deeper chunk exactly
//! where its value is all ones. (8) A word of zeros ends each area, so that 32 bits can be read at every byte of it.
//!
//! # Limits and hostile tables
//!
//! 2^26 words, 256 MiB, of chunks, and as many of deeper ones; refused beyond that. The direct table is 256 KiB (rank)
//! or 1 MiB (dense) whatever the number of routes: small tables have a better line, `range-search`. Nesting does not
//! matter. One host route in a /24 costs 8 bytes and 4 in the list, 48 for its chunk's map and the place of it, and
//! makes two more ranges. Next hops from 2^31 on do not fit an entry and take a chunk of their own; next hop 2^32 - 1 is
//! all ones at every width and stands one level deeper.
//!
//! # Changes while readers look
//!
//! The format is made for one writer beside many readers: a chunk is never altered, only written anew beside the old
//! one (100 to 300 bytes) and published by storing one 32-bit entry; a reader loads the entry once and everything else
//! through it. `docs/adr/0006-instruction-sets.md` says what a gathered entry is ordered with.
//!
//! # Tried and lost
//!
//! Measured on dfz4-2023 (901,899 prefixes, 256 next hops) on Zen 5 at 4.1 GHz, M lookups/s a core in one run each,
//! batches of 256, random / matching / Zipf keys. Beside each stands DIR-24-8 with 16-bit entries and gathers, in the
//! same run.
//!
//! | design | bytes a prefix | random | matching | Zipf | DIR-24-8 |
//! |---|---|---|---|---|---|
//! | rank, one loop, sixteen lanes | 1.66 | 542 | 454 | 489 | 365 / 656 / 834 |
//! | rank, lanes that need a chunk compressed into a queue, sixteen lanes | 1.66 | 637 | 433 | 464 | the same |
//! | rank, three stages, nothing compressed, sixteen lanes | 1.66 | 674 | 567 | 626 | the same |
//! | **rank, three stages, eight lanes** | 1.66 | 674 | 616 | 762 | 337 / 518 / 648 |
//! | rank, two stages, eight lanes | 1.66 | 556 | 507 | 601 | the same |
//! | rank, populated chunks dense up to 2 bytes a prefix | 2.00 | 705 | 574 | 693 | 362 / 764 / 1315 |
//! | dense, 16 leading bits, sixteen lanes | 4.87 | 1055 | 686 | 773 | 339 / 553 / 743 |
//! | dense, 18 leading bits, sixteen lanes | 3.86 | 997 | 814 | 863 | the same |
//! | **dense, 18 leading bits, eight lanes** | 3.86 | 1160 | 980 | 1167 | the same |
//! | dense, 18 bits, chunks laid over each other's equal ends | 3.56 | 911 | 811 | 919 | the same (16 lanes) |
//!
//! What that says:
//! - A gather costs one cycle a lane, whatever its width, and as much as a scalar load. So the number of loads
//!   decides: three for rank, two for dense, one for DIR-24-8, whose 32 MiB then miss the caches.
//! - Eight lanes beat sixteen: more gathers of different iterations are in flight, and nothing waits for mask moves.
//! - Compressing what is left into a queue does not pay for itself here: stores that overlap cannot be forwarded
//!   to the loads behind them. (On a machine with a slower third-level cache it was the better one.)
//! - Masked stores with an empty mask are slow; the kernels blend and store whole vectors.
//! - Deeper chunks between the others, and looked up in one loop: on dfz4-2023 with 500,000 host routes more, matching
//!   keys, 38 M/s (rank); apart and in stages 93 to 107. What bounds it is five dependent loads for a third of the keys,
//!   two of which miss the second-level cache; 10 MB of structure do not fit it.
//! - The scalar loop for dense chunks is 37 instructions a key where DIR-24-8's is 8. Working off a list of open keys
//!   made 284 to 345 M/s matching, a branch on the entry 140, the same instructions for every key 345 to 376 (DIR-24-8
//!   in those runs: 316 to 350): without vectors, matching and Zipf keys are DIR-24-8's while its lines are warm.
//! - Laying chunks over each other saves 8 % of the bytes and makes chunks depend on one another.
//! - Trimming the equal ends of dense chunks would need 64-bit entries: 3.3 bytes a prefix instead of 3.9.

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

pub use layout::{Chunks, Form};

const NAME: &str = "chunks";

/// The registry lines: the small form and the fast one.
#[must_use]
pub fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    if K::FAMILY == Family::Ipv6 {
        return Vec::new();
    }
    let line = Algorithm {
        name: "chunks-rank",
        summary: "direct table, then the rank of the slot in a bit map: small",
        paper: "of Fibula's own",
        families: Families::Ipv4,
        role: Role::Contestant,
        update: Update::Rebuild,
        limits: Some("256 MiB of chunks"),
        isas: Isa::ALL,
        preference: |_| 0,
        build: |routes, limits| Ok(Box::new(Chunks::build(routes, Form::Rank, limits)?)),
    };
    let dense = Algorithm {
        name: "chunks-dense",
        summary: "direct table, then one value a slot: fast",
        // The direct table is a megabyte, whatever the table.
        preference: |shape| if shape.routes < 10_000 { 0 } else { 5 },
        build: |routes, limits| Ok(Box::new(Chunks::build(routes, Form::Dense, limits)?)),
        ..line
    };
    vec![line, dense]
}
