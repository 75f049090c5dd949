//! A direct table of 17 bits, then bitmaps: Fibula's IPv4 engine for full tables.
//!
//! # The idea
//!
//! What a lookup costs is how many loads it makes that miss the first-level cache, and whether the processor has many of
//! them under way at once. So: three loads, never a search, and no branch that depends on a key; a full table in the
//! second-level cache or nearly; and sixteen keys a vector, four vectors abreast, with nothing between the loads but
//! registers.
//!
//! # Memory
//!
//! ```text
//! direct:  | E | E | E | ... | E |                  2^17 entries of 32 bits
//!                |
//!                v a place: words of 64 bits, counted from here in both directions
//! unit:    ... records | map | map | bitmap | values | bitmap | values |
//!          \_ of deeper slots, if any _/ \_ first /18 _/    \_ second /18 _/
//!
//! entry:   oooooo pppppppppppppppppppppp u U ww
//!          the bitmap of the first half is at place p, that of the second o words after it; values are of 8, 16 or 32
//!          bits (w = 0, 1, 2); the first half has one value (U), the second has (u)
//! ```
//!
//! A *slot* is a /24, and a unit is for 128 of them, in two *halves*. A bitmap says at which slots of its half the answer
//! changes; after it comes one value for each range between changes. So the rank of a slot, the changes up to it, is the
//! number of its value. Values are as wide as the unit's greatest next hop needs: a new next hop changes no other unit.
//! The value of all ones says that the slot is *deeper*.
//!
//! - A half with one value has no bitmap of its own. Its value is the first one after the other half's bitmap, in which
//!   the bit of the first slot is set, so that the other half's ranks begin at 1. Its own rank is 0.
//! - A unit with one value is that value after a word that is not looked at, shared by all entries with that next hop.
//! - Deeper slots have a *record* each: one stretch of addresses with a next hop of its own (a host route, mostly), or
//!   where a list of several changes is (`record.rs`). A map for each half says which slots have one, and the rank of a
//!   slot in the maps is its record's distance from them. All of it is in front of the bitmaps, in the same unit.
//!
//! # Lookup
//!
//! ```text
//! entry = direct[key >> 15]; half = key >> 14 & 1; slot = key >> 8 & 63
//! word  = p + (half ? o : 0)
//! rank  = ones(units[word] << (63 - slot + (the half has one value ? 64 : 0)))
//! value = units at byte 8 (word + 1) + (rank << w); all ones: deeper
//! ```
//!
//! Sixteen keys take a gather of 16 x 32 bits, two of 8 x 64 and one of 16 x 32: no permutation, since lanes of 64 bits
//! are taken by turns. A shift by 64 and more leaves nothing of a bitmap, so that a half with one value needs no case of
//! its own. Fewer than sixteen keys are looked up one after the other.
//!
//! # Invariants
//!
//! (1) There is a direct entry for every value of the leading bits. (2) Every word is in one unit, which begins and ends at
//! places, and which an entry leads to or which is free; a unit of one value has any number of entries, another one entry.
//! (3) A bitmap has no bits beyond the last slot; the bit of the first one is set where the other half has one value, and
//! clear otherwise. (4) A slot is deeper exactly where its value is all ones, and has a record then and only then. (5)
//! Changes and stretches ascend, and neighbouring values of a list differ. (6) Padding of zeros ends the units.
//!
//! # Limits and hostile tables
//!
//! Places count words; where units need more than 2^22 words, they count 2, 4, 8 or 16, up to 512 MiB, refused beyond that.
//! The direct table is 512 KiB whatever the number of routes: small tables have a better engine, `range-btree`. One host
//! route in a /24 costs 8 bytes, a value, and for its unit two maps. Nesting does not matter. Next hops from 2^23 on have
//! no record and take a list in slots that are divided; 2^32 - 1 is all ones at every width and always takes one.
//!
//! # Changes while readers look
//!
//! Both arrays are atomic words, each read with one access size, by offsets alone. A unit is written anew beside the old one
//! and published by storing one entry; a reader loads the entry once and everything else through it, with an acquire fence
//! between the two stages (free on x86-64). `update.rs` takes the unit of a changed prefix apart, fills the slots of the
//! prefix from the routes within it, and puts it together again. The form that changes has the units in an array of as many
//! zeros as places can address, of which memory is only what is written. On dfz4-2023 a new unit is 1.6 cache lines on
//! average, 5 at most; 17,843 of 901,899 prefixes are shorter than /17 and meet several entries.
//!
//! Where a unit's bitmaps have changes at the edges of what changes already, and values are of a byte, the values are stored
//! in the unit as it is, a word at once (`in_unit.rs`). Every slot finds its value by one load, so that each address goes
//! straight from its old answer to its new one. So that such edges are there, changes of the bitmap stay when a route goes, with
//! equal values on both sides; a unit that is written anew has none of these. Changes that are published aside always write
//! units anew.
//!
//! For listeners, entries are array 0, and units array 1, of 64-bit words. `step` is the binary logarithm of the words of a place;
//! `direct-bits`, `slot-bits` and `rest-bits` say how a key is cut, with a bit for the half after those of the direct table.
//!
//! # Measured
//!
//! dfz4-2023 (901,899 prefixes, 256 next hops), Zen 4 at 3.7 GHz, two shared cores, 1 MiB of L2 each; AVX-512, million
//! lookups a second, medians of 5 of one run, 1M keys, batches of 256 whose answers take the place of those before, tables
//! warm. A prototype of the kernel without bounds checks and deeper slots, its loads by gathers (g) or lane by lane (l), for
//! entries, bitmaps and values:
//!
//! | loads, vectors abreast | random | matching | Zipf |
//! |---|---|---|---|
//! | **ggg, 4** | 563 | 538 | 553 |
//! | ggg, 2 | 449 | 412 | 434 |
//! | ggg, 1 | 341 | 305 | 331 |
//! | ggl, 4 | 552 | 515 | 525 |
//! | lgg, 4 | 541 | 495 | 512 |
//! | lgl, 4 | 527 | 475 | 526 |
//! | glg, 4 | 500 | 485 | 504 |
//! | llg, 4 | 473 | 452 | 481 |
//! | gll, 4 | 466 | 449 | 467 |
//! | lll, 4 | 449 | 428 | 453 |
//! | lll, 8 | 434 | 428 | 441 |
//! | no vectors, stages of 64 | 211 | 220 | 232 |
//! | this kernel | 537 | 512 | 534 |
//! | `dir-24-8` | 176 | 313 | 377 |
//! | `dir-18-lines` | 615 | 462 | 473 |
//!
//! What that says:
//! - Gathers win at every level, although the processor makes them of many small operations: what is loaded lane by lane
//!   has to go through memory. Two loads a key (`dir-18-lines`) are ahead of three for random keys all the same, while
//!   their 4.5 MB stay in the cache; on Zen 5 they are ahead everywhere.
//! - With cold tables and answers written to 4 MB of new memory, `dir-18-lines` makes 277 / 284 / 299 and this kernel 309 /
//!   295 / 311. With cold tables alone, 301 and 319 for random keys.
//! - If the mask of a gather comes from a register that a comparison wrote last, the gather waits for the one before it. The
//!   compiler did that, and the kernel made 442 / 379 / 416. A mask from a general register made 481 to 511.
//! - Four vectors abreast hide the loads; eight do not fit the registers. A kernel whose rare branch used the vectors by a
//!   number known only at run time kept all of them in memory, and lost a tenth.
//! - The bounds of safe gathers cost nothing that could be measured; entries need none, and values none of their own, since
//!   padding covers every rank. The comparison for deeper slots costs 5 %.
//! - A view passed by value was written in parts and read as a whole, which held up the first load of every call: 1.2 to
//!   1.8 times at batches of 16 and 32, measured on an Intel Xeon.
//! - Vectors of fewer than sixteen keys, filled up with copies of one, lost to single lookups: matching keys in batches of
//!   5, 8, 12 and 15 make 64, 97, 133 and 157 against 144, 157, 162 and 162 with AVX-512, and 69, 131, 139 and 166 against
//!   146, 157, 151 and 152 with AVX2 (Zen 4 at 2.6 GHz, 131,072 keys, the two in turn, medians of 9).
//! - Without vectors and without an instruction that counts bits, a lookup counts by shifts and sums. As a stage of its own
//!   the compiler turns the sums into vectors, 1.4 times as fast; `dir-24-8` and `dir-18-lines` count nothing and are
//!   ahead there. A single lookup with the instruction is 1.2 times as fast as one without.
//! - Designs that lost elsewhere (Intel Xeon, prototypes): 18 direct bits, entries of 64 bits, no flags for halves with one
//!   value, chunks padded to lines, masked gathers.

mod build;
mod change;
mod check;
mod fill;
mod in_unit;
pub(crate) mod kernel;
pub(crate) mod layout;
mod lookup;
mod open;
mod prepared;
mod record;
mod scalar;
#[cfg(test)]
mod tests;
mod unit;
mod update;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Algorithm, Families, Role, Update};

pub(crate) use layout::Dir17Bitmap;

const NAME: &str = "dir-17-bitmap";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv4Key>() -> [Algorithm<K>; 1] {
    [Algorithm {
        name: NAME,
        summary: "direct table of 17 bits, then a bitmap of changes and the values that it counts",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::InPlace,
        in_place: Some(|routes, limits| Ok(Box::new(update::Editor::build(routes, limits)?))),
        open: Some(open::open),
        maps: true,
        limits: Some("512 MiB of units"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir17Bitmap::build(routes, limits)?)),
    }]
}
