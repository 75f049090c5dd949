//! A direct table and a forest of small B+-trees behind it: Fibula's own IPv6 engine.
//!
//! # The idea
//!
//! Nearly all IPv6 routes end within the /48. So what the trees search is the last 32 of those 48 bits, sixteen keys a
//! cache line and compared at once; a direct table over 16 to 18 leading bits, cut as finely as routes stand close,
//! leaves a tree as a rule 187 intervals at most: one inner node and one leaf. A leaf holds the values beside its
//! keys, and children are found by counting, so that a lookup reads a direct entry, a slot and two lines, whatever the
//! key. A batch is worked through in *stages*, each a loop whose iterations do not wait for one another.
//!
//! # Memory
//!
//! ```text
//! direct:  | g s | g s | ... | g s |     an entry for the leading bits that routes have, and one for all others
//!             |                          ground and shift: slot = g + (window >> s)
//!             v
//! slots:   | t r | t r | ... |           the tree, and how many roots (r) stand above its inner nodes, mostly none; a tree's
//!             |                          place counts eighths of lines, and r takes the bits that are 0 in it
//!             v 64 bytes
//! lines:   | k k k ... k | leaf 0 | leaf 1 | ... | leaf 16 |     16 keys; children follow, child c at 1 + c
//!                           k ... k v v ... v                    10 keys and 11 values of 16 bits,
//!                                                                or 7 keys and 8 values of 32 bits
//! records: | next hop, n | n prefixes of 16 bytes | ...          an upper part with a few longer prefixes side by side
//! blocks:  sorted ranges of one upper part each                  an upper part with more of them (`parts/intervals`)
//! ```
//!
//! The *upper part* of an address is its first 48 bits, its *window* the last 32 of those. Keys are the last windows of
//! all intervals but the last, so that counting the keys below a window gives the child or the value, and padding of all
//! ones is never counted. Neighbouring slots share a tree while their intervals fit one. A tree with r roots has r
//! more levels of inner nodes; all of a node's children but the last are full, so that child c of a node stands 1 + c
//! times the lines of a full child behind it. Values are next hops, or with their highest bit set the place of a record,
//! or with the next bit set too a block.
//!
//! # Lookup
//!
//! ```text
//! stage 1   entry = direct[first bits]; slot = g + (window >> s)     entries gathered
//! stage 2   tree = slots[slot]                                       lane by lane; those with roots are noted
//! roots     of noted lanes: line += 1 + keys below window * lines of a child; those with several beforehand
//! stage 3   line = tree + 1 + keys of the inner node below window    one comparison of sixteen keys
//! stage 4   value = the leaf's, by its keys below window             of the next keys, a line is asked for with every four
//! below     values that say so: their records are asked for, then read; rare
//! ```
//!
//! Without vectors the stages are the same, and nodes are searched by thirds, without a branch.
//!
//! # Invariants
//!
//! (1) There is a direct entry for all leading bits from the first to the last that routes have, and one behind them for
//! those that have none, which all go one way. (2) Slots follow one another as their entries do. (3) So do trees; those
//! of one interval may be shared; 33 lines of padding follow. (4) Keys of a node ascend within its windows; its children
//! stand where their number says, all but the last full. (5) Values are as many as keys and one more, the last one
//! repeated. (6) Records follow one another, and padding them, so that one can be read as if it had all prefixes.
//! (7) Pieces of a block ascend to the last lower part.
//!
//! # Limits and hostile tables
//!
//! 2^26 slots, 2^29 lines with the padding, 2^30 words of records and as many blocks. Next hops from 2^15 on, and
//! more than 2^14 words of records, make all values 32 bits wide; next hops from 2^31 on are records. Every second
//! /48 of the space: 6 bytes a route and interval. Routes longer than /48: 24 bytes for one in a /48 of its own and
//! up to two intervals, 16 for each of seven more, 20 a range beyond, and log2 of the ranges in dependent loads. All
//! routes under one leading value: up to five roots, one line each. A table of few routes pays 8 bytes for each
//! leading value of 16 bits between the first and the last of them, 20 KiB from 2001::/16 to 2a0e::/16, 512 KiB at
//! most: `planb` and `range-search` are smaller then.
//!
//! # Changes while readers look
//!
//! The format is made for one writer beside many readers: a tree is never altered, only planted anew and published by
//! storing one 32-bit slot or, for several slots, entry.
//!
//! # Tried and lost
//!
//! dfz6-2024 (228,726 prefixes, 256 next hops, 163,749 ranges, all but 476 of them begin at a /48) on Zen 5 at 4.1 GHz,
//! two shared cores, 1 MiB of L2 each; AVX-512, batches of 256, million matching / Zipf lookups a second on one core,
//! and PlanB's (its best batch) in the same run. The first seven were prototypes without bounds checks that left blocks
//! to a binary search, their keys 4 MB.
//!
//! | design | bytes a prefix | M/s | PlanB |
//! |---|---|---|---|
//! | direct 13 + 8 bits behind 2000::/3, up to four 16-key nodes in step, groups of 16 keys | 7.2 | 0.85 of PlanB | |
//! | the same, keys in lists by depth | 7.2 | 0.5 of PlanB | |
//! | three direct levels cut as finely as needed, inner node, leaf with values, stages of 256 | 12.5 | 231 / 237 | 182 / 180 |
//! | two direct levels, one to three inner levels by lists | 4.8 | 195 / 209 | 187 / 198 |
//! | three direct levels, lists for the third inner level | 5.2 | 308 / 307 | 187 / 191 |
//! | the same, slots that lead to leaves where they can | 7.1 | 300 / 301 | 187 / 195 |
//! | the same as the last but one, its way to the trees without vectors | 5.2 | 230 / 243 | 180 / 193 |
//! | **two direct levels, the first over 20 bits** (prototype) | 7.2 | 333 / 333 | 183 / 187 |
//! | the same, bounded, exact, eight lanes | 7.3 | 281 / 304 | 171 / 183 |
//! | 19 bits | 6.6 | 286 / 307 | 171 / 183 |
//! | 18 bits | 6.4 | 275 / 293 | the same |
//! | slots for 1, 4 and 8 intervals | 8.1, 6.9, 6.7 | 279 / 295, 270 / 298, 266 / 285 | the same |
//! | a root in 14 instructions instead of 36, places that addresses scale, no list of first words | 6.6 | 341 | 190 |
//! | **18 bits, slots for 8 intervals, for 1 where a tree would have two roots** | 5.9 | 336 | 190 |
//! | the same, masks of inner nodes kept in memory and counted by vectors | 5.9 | 336 | 190 |
//! | the same, the tree's first line asked for in stage 2 | 5.9 | 327 | 190 |
//!
//! What that says:
//! - Where the 13 cycles of a key go, by a clock between the stages (4 MB of keys): direct entry 2, slot 1.2,
//!   noting roots 0.6, roots 1.8 (three keys in ten have one), inner node 2.6, leaf 4.3, looking for what leads
//!   below 0.4. Before, a root took 10 cycles of a key that has one: by far the slowest instructions of all, in
//!   the stage that looked like the rarest.
//! - Every line from L2 costs one cycle more than one from L1, and the quarter of the leaves that L2 has no room
//!   for another one on average. With that hidden it would make 370.
//! - Keys are asked for line by line while leaves are read. All at once, before a block, they took all the places
//!   for misses that the processor has, and 20 % of the time: from 16 MB of keys in batches of 1,024 it makes 290
//!   to 330 where PlanB's best batch makes 175 to 195 (1.62 to 1.75), in batches of 256, which somebody else asks
//!   for, 280.
//! - A node costs 5 cycles where it is one of a chain in step, 2 in a stage of its own: what waits for a
//!   comparison must not stand behind the next one. A gather from tables within L2 costs one cycle a lane, half a
//!   node's.
//! - Prefetching what the next stage reads gains nothing, of leaves in stage 3 nor of trees in stage 2: the
//!   stages have loads under way already. So do two levels read by scalar loads where one is gathered.
//! - Bytes against roots: slots for 2 intervals and 19 bits are 12 % larger, a quarter of the keys meets roots
//!   instead of three in ten, and nothing is faster; slots for 1 interval, 15 % more bytes, 2 % faster.
//! - Comparisons of 16 keys by AVX2 take more instructions than by AVX-512, and 10 % more time. Of eight keys
//!   nothing overlaps, and PlanB is ahead; of 16 neither is. A list of lanes that is erased and not used costs a
//!   batch of 16 a tenth.
//! - Roots two lanes a loop gain nothing, four lose 10 %, and so do inner nodes and leaves by eights instead of
//!   fours.
//! - 500,000 host routes more make 19 MB: five dependent lines a key out of memory, 38 M/s matching, where PlanB
//!   makes 9, and this machine does 190 to 350 M single loads a second from as much. Records of four prefixes
//!   instead of eight left a quarter of the hosts to blocks, and made 26; reading four prefixes whether they are
//!   there or not, 17.
//! - Huge pages (lines of 1 MB in a page of 2) and walking eight places a loop instead of four gain nothing.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod record;
mod scalar;
#[cfg(test)]
mod tests;

use crate::net::Ipv6Key;
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

use layout::Forest;

const NAME: &str = "forest";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv6Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "direct table, then a small B+-tree with values in its leaves: fast",
        paper: "Fibula's own",
        families: Families::Ipv6,
        role: Role::Own,
        update: Update::Rebuild,
        limits: Some("2^26 slots, 2^29 lines"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Forest::build(routes, limits)?)),
    }]
}
