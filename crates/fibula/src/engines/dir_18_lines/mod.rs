//! Lines of values below a direct table: the IPv4 engine of Fibula's own that changes fastest.
//!
//! # The idea
//!
//! Two loads and nothing else. The first names a cache line, the second takes a value of it; there is no search, no
//! rank, no width and no case to tell apart between them, so that a lookup is a dozen instructions, of which vectors do
//! most for eight keys at once. A batch is worked through in *stages*, each a loop whose iterations do not wait for
//! one another. [`dir-17-bitmap`](super::dir_17_bitmap) is the other one: a third of the memory, and one load more. It is
//! faster on processors whose gathers keep up (Zen 4, Intel), this one on Zen 5 and without vectors.
//!
//! # Memory
//!
//! ```text
//! direct:  | B | C | B | ... | A |                         2^18 entries of 32 bits: where a line begins
//!                |
//!                v 64 bytes
//! lines:   | v | v | v | ... | v |    one value a /24, for 18 leading bits that go several ways
//!          | v | v | v | ... | v |    and one line for each next hop that all addresses of an entry go to
//! maps:    | m | m | ...              where the map of a line's deeper slots stands, if a table has any
//! below:   what the deeper slots answer
//! ```
//!
//! A *slot* is a /24. Values are next hops of 8 bits where at most one route of 64, each counted for the space that it
//! covers too, has a larger one; else of 16 bits, by the same rule; else of 32. A line is 64 bytes in any case: the
//! direct table then has 18, 19 or 20 leading bits. The value of all ones says that the slot is *deeper*: routes longer
//! than /24, and next hops that the width does not hold, lie below (`parts/overflow`).
//!
//! # Lookup
//!
//! ```text
//! stage 1   place = direct[key >> 14] + ((key >> 8) & 63)    entries gathered, all lanes; 16-bit values: by twos
//! stage 2   value = lines[place]                             lane by lane
//! stage 3   value of all ones: the lane is noted             rare
//! below     noted lanes: one by one if they are few, else in full vectors
//! ```
//!
//! The scalar form is the same stages, of which the compiler vectorises what is no load.
//!
//! # Invariants
//!
//! (1) There is a direct entry for every value of the leading bits, and it is the beginning of a line. (2) Lines of
//! entries that go several ways stand first, in the order of the addresses, none of one next hop alone. (3) Shared lines
//! follow, ascending by next hop, each with an entry. (4) A slot is deeper exactly where its value is all ones; a line
//! has a map's place exactly where it has such a slot. (5) A word of zeros ends the lines, so that 32 bits can be read
//! at every byte of them.
//!
//! # Limits and hostile tables
//!
//! The direct table is 1, 2 or 4 MiB whatever the number of routes: small tables have a better engine, `range-btree`.
//! There are at most 2^20 lines for the entries and one a next hop. What lies below them is refused beyond 2^26 words,
//! 256 MiB. One host route in a /24 costs 8 bytes, and for its line a map of 12 bytes and the place of it; the first
//! one of a line that was shared costs a line. Nesting does not matter.
//!
//! # Changes while readers look
//!
//! The form that changes has the same arrays in atomic words, with room for two lines an entry, and a place in `maps` for
//! each line. Lines are in any order, and so is what is below them, in a unit for each line.
//!
//! - Where slots go from one value to another, the values are stored in the line, a word of it at once: nothing is written
//!   beside it, and nothing has to be freed. A slot's value is one load, so each address goes straight from its old answer
//!   to its new one.
//! - A reader that saw that a slot is deeper goes on to the map of the line. So where a slot becomes deeper, is it no longer or
//!   has another record, the line and all below it are written anew and published by one entry. Records of other slots are
//!   taken over. The same is done for changes that are published aside, since readers of old entries reach the old lines.
//! - Entries of one next hop share its line, which the writer counts them for. A line whose slots come to have one next hop
//!   gives way to the shared one.
//! - Widths stay. A next hop that they do not hold goes below, in place; when lookups read a sixth more bytes for that,
//!   `maintain` builds the table anew, with wider values if these are better.
//!
//! Readers load all entries of a block, and one fence separates them from the lines; another separates the places of maps
//! from what is below. They keep the place of each value, since the entry may lead to another line a moment later.
//! Moves keep the arrays dense: lines beyond where all would fit move by their entry, what is below a line by its place in
//! `maps`.
//!
//! For listeners, entries are array 0 (the byte of a line), lines array 1, `maps` array 2 and what is below array 3, all of
//! 32-bit words. `width` is the binary logarithm of the bytes of a value;
//! `direct-bits`, `slot-bits` and `rest-bits` say how a key is cut.
//!
//! # Tried and lost
//!
//! Measured on dfz4-2023 (901,899 prefixes, 256 next hops) on Zen 5 at 4.1 GHz, M lookups/s a core in one run each,
//! batches of 256, random / matching / Zipf keys. Beside each stands DIR-24-8 with 16-bit entries and gathers, in the
//! same run. The upper part are chunks of one value a slot that may be of several sizes and widths, with next hops in
//! direct entries.
//!
//! | design | bytes a prefix | random | matching | Zipf | DIR-24-8 |
//! |---|---|---|---|---|---|
//! | dense chunks, 16 leading bits, sixteen lanes | 4.87 | 1055 | 686 | 773 | 339 / 553 / 743 |
//! | dense chunks, 18 leading bits, sixteen lanes | 3.86 | 997 | 814 | 863 | the same |
//! | dense chunks, 18 leading bits, eight lanes, all gathered | 3.86 | 978 | 910 | 1096 | 349 / 745 / 1527 |
//! | the same, values lane by lane | 3.86 | 1030 | 874 | 1038 | the same |
//! | dense chunks, 18 bits, laid over each other's equal ends | 3.56 | 911 | 811 | 919 | 339 / 553 / 743 |
//! | lines, all gathered, one loop | 4.77 | 802 | 769 | 917 | 349 / 745 / 1527 |
//! | lines, all gathered, two loops | 4.77 | 1188 | 1043 | 1274 | the same |
//! | lines, entries lane by lane, values gathered | 4.77 | 1112 | 978 | 1169 | the same |
//! | **lines, entries gathered, values lane by lane** | 4.77 | 1366 | 1145 | 1443 | the same |
//! | lines, no vectors, one loop | 4.77 | 810 | 738 | 730 | 267 / 507 / 702 (scalar) |
//! | **lines, no vectors, stages** | 4.77 | 1080 | 1061 | 1303 | the same |
//! | lines, 17 leading bits, 128 values | 5.33 | 1398 | 1127 | 1442 | 337 / 590 / 808 |
//! | lines, 19 leading bits, 32 values | 4.90 | 1325 | 1057 | 1386 | 339 / 623 / 703 |
//! | lines, equal ones shared | 4.43 | 1332 | 1130 | 1380 | 324 / 560 / 686 |
//! | lines, values that a dictionary of 256 translates | 4.77 | 1028 | 783 | 822 | 329 / 502 / 608 |
//!
//! What that says:
//! - A gather costs one cycle a lane, whatever its width, and nothing else begins while one is under way; a load lane by
//!   lane costs a cycle or less and overlaps with all. Half of either is the best mix: the gather also spares the
//!   vector's way through memory. Loads that the compiler collects in registers (`vpinsrd`) lose all of it again.
//! - Sizes, widths and next hops in entries save a fifth of the memory and cost a quarter of the rate.
//! - In the first-level cache (one hot set of 512 keys) one load wins, whatever it takes: DIR-24-8 makes 2,800, lines
//!   1,550. With 32 MiB of third-level cache to itself, DIR-24-8 keeps its hot lines, which shows in its Zipf column.
//! - One lookup after another, each key made of the answer before, is the price of holding no next hop in direct entries:
//!   26 to 34 M/s where chunks make 66 and DXR 52, because two loads in a row miss the second-level cache.
//! - Sharing equal lines would save a tenth and make every change ask who else is there.
//! - Routes beyond /24 cost three dependent loads more: line's map, record. On dfz4-2023 with 500,000 host routes more,
//!   matching keys, 252 M/s from a hot set, 100 to 140 from all of 12 MB: a third of the keys miss the second-level
//!   cache three times.

mod build;
mod check;
mod kernel;
pub(crate) mod layout;
mod lookup;
mod open;
mod prepared;
mod scalar;
#[cfg(test)]
mod tests;
mod update;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Algorithm, Families, Role, Update};

pub(crate) use layout::Dir18Lines;

const NAME: &str = "dir-18-lines";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv4Key>() -> [Algorithm<K>; 1] {
    [Algorithm {
        name: NAME,
        summary: "direct table of 18 to 20 bits, then one cache line of values, one a /24",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::InPlace,
        in_place: Some(|routes, limits| Ok(Box::new(update::Editor::build(routes, limits)?))),
        open: Some(open::open),
        maps: false,
        limits: Some("256 MiB of overflow"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir18Lines::build(routes, limits)?)),
    }]
}
