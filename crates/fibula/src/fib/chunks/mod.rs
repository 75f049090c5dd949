//! Chunks of ranks behind a direct table: the small one of Fibula's own IPv4 engines.
//!
//! # The idea
//!
//! What a lookup costs is how many loads it makes that miss the first-level cache, and whether the processor has
//! many of them under way at once. So: three loads, never a search and never a branch that depends on a key; a full
//! table in the second-level cache or nearly; and a batch is worked through in *stages*, each a loop whose iterations
//! do not wait for one another. The first stage loads the direct entries of 256 keys, the next one what those
//! entries name, and so on. [`lines`](super::lines) is the other one: two loads, and three times the memory.
//!
//! # Memory
//!
//! ```text
//! direct:  | B | C | B | ... | A |                        2^16 entries of 32 bits
//!                |
//!                v a chunk, which begins at a word of the area
//! area:    | map of changes, a bit a slot; words of 24 bits and a count | a value a range |
//! below:   what the deeper slots of chunks answer
//!
//! entry:   0 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn              next hop n, 0 for no route
//!          1 sss ww oooooooooooooooooooooooooo            chunk at word o, slots of 2^s, values of 2^w bytes
//! ```
//!
//! A key is cut into windows of 16, 8 and 8 bits. A direct entry whose addresses all go one way holds the next hop
//! itself. A *slot* is a /24. Where nothing in a chunk changes at a finer grain than 2^s slots, those are one slot
//! (s at most 6). Values are of 8, 16 or 32 bits, by chunk: a table of 256 next hops has a few chunks that need 16
//! bits, and a table of 70,000 a few that do not need 32. The value of all ones says that the slot is *deeper*: that its
//! answer lies below. A chunk of which some slots are has a word in front of it, the place of their map (`parts/overflow`).
//!
//! A word of a map covers 24 slots; its upper 8 bits count the changes in the words before it. So one load gives
//! the rank of a slot: that count, and the set bits up to the slot (`parts/bitmap.rs`).
//!
//! # Lookup
//!
//! ```text
//! stage 1   entry = direct[key >> 16]                                      all lanes
//! stage 2   slot = ((key >> 8) & 255) >> s; word = area[o + slot / 24]     lanes with a chunk
//!           at = 4 (o + words(s)) + (count(word) + ones(word up to slot % 24) << w)
//! stage 3   value = 2^w bytes at `at`; all ones: the lane is noted         lanes with a chunk
//! below     noted lanes, in full vectors
//! ```
//!
//! The scalar form writes the numbers of the keys that stage 1 left open into a list, without a branch, and works the
//! list off.
//!
//! # Invariants
//!
//! (1) There is a direct entry for every value of the leading bits. (2) Chunks stand in the order of their addresses,
//! with nothing between them. (3) A map counts, in each word, the changes of the words before it; nothing changes at
//! the first slot; there are no bits behind the last one. (4) Neighbouring values differ. (5) Values are no wider than
//! they must be. (6) A slot is deeper exactly where its value is all ones. (7) A word of zeros ends the area, so that
//! 32 bits can be read at every byte of it.
//!
//! # Limits and hostile tables
//!
//! 2^26 words, 256 MiB, of chunks, and as many below them; refused beyond that. The direct table is 256 KiB whatever the
//! number of routes: small tables have a better line, `range-search`. Nesting does not matter. One host route in a /24
//! costs 8 bytes, for its chunk a map of 44 and the place of it, and makes two more ranges. Next hops from 2^31 on do not
//! fit an entry and take a chunk of their own; next hop 2^32 - 1 is all ones at every width and stands below.
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
//!
//! What that says:
//! - A gather costs one cycle a lane, whatever its width, and as much as a scalar load. So the number of loads
//!   decides: three here, two for lines, one for DIR-24-8, whose 32 MiB then miss the caches.
//! - Eight lanes beat sixteen: more gathers of different iterations are in flight, and nothing waits for mask moves.
//! - Compressing what is left into a queue does not pay for itself here: stores that overlap cannot be forwarded
//!   to the loads behind them. (On a machine with a slower third-level cache it was the better one.)
//! - Masked stores with an empty mask are slow; the kernels blend and store whole vectors.
//! - The last stage lane by lane, as lines has it, gains nothing here (569 random for 573): what surrounds the loads
//!   is longer.
//! - Trimming the equal ends of dense chunks would need 64-bit entries: 3.3 bytes a prefix.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod scalar;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

pub(crate) use layout::Chunks;

const NAME: &str = "chunks";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv4Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "direct table, then the rank of the /24 in a bit map: small",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::Rebuild,
        limits: Some("256 MiB of chunks, and as much overflow"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Chunks::build(routes, limits)?)),
    }]
}
