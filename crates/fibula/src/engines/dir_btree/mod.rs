//! Direct tables and then a small B+-tree, of which a lookup reads one inner node and one leaf: Fibula's own IPv6 engine.
//!
//! # The idea
//!
//! Nearly all IPv6 routes end within the /48. Four tables, each cut as finely as routes are close, narrow an address down to
//! at most 187 neighbouring intervals; one comparison of sixteen keys in a cache line finds the leaf, one of ten keys the
//! value in it. Every lookup takes the same six steps, so a batch needs no branch and no lists.
//!
//! A direct table of the leading 16 or 18 bits would spend its words on the parts of the space where nothing is announced. So
//! the first table has 12 bits or so, and what it leads to is cut anew for each part: link-local or multicast routes cost
//! next to nothing, and an unused /12 costs nothing but its word.
//!
//! # Memory
//!
//! ```text
//! tables:  | first table, 2^f entries | tables of entries and slots ... |
//!             entry --> mid --> sub --> slots --> first line of a tree
//!
//!          an entry is the place of its table less the first window that the table has, and its lowest five bits are the
//!          shift of windows: the table is placed so that they are
//!
//! lines:   | k k k ... k | leaf 0 | leaf 1 | ... | leaf 16 |          16 keys; child c is the line 1 + c after them
//!                          k ... k v v ... v b                        10 keys, 11 values of 16 bits, the objects' base
//! objects: records, which have a next hop and a few longer prefixes; blocks of sorted ranges
//! ```
//!
//! The *upper part* of an address is its first 48 bits, its *window* the last 32 of those, its *head* the first 32. The first
//! two tables are indexed by heads, the others by windows. Neighbours in a table that lead to the same share an entry whose
//! shift does not tell them apart. Slots share a tree while their intervals fit one. Keys are the last windows of all
//! intervals but the last, so that counting the keys below a window gives the child or the value. Instruction sets without
//! unsigned comparisons compare them as signed numbers, so no tree has windows of both halves. A slot has the number of its
//! tree's first line times eight, a factor that addresses have.
//!
//! A value is a next hop below 2^15, or the number of an object: a larger next hop, or what is told apart by bits beyond the
//! /48. Objects of a leaf are near each other, and the leaf has their base, so that no table makes values wider.
//!
//! # Lookup
//!
//! ```text
//! stage 1   e = first[head >> 32 - f]; e = table[e + (head >> e)]
//!           e = table[e + (window >> e)]; tree = table[e + (window >> e)]       only the lowest five bits of e shift
//! stage 2   leaf = tree + 1 + keys of the inner node below the window
//! stage 3   value = the leaf's, by its keys below the window; a later key is prefetched
//! below     values that are objects; rare
//! ```
//!
//! Each stage is done for 16 keys, which wait for nothing but the stage before. Batches of 8 to 15 and the ends of longer
//! ones are groups of 8. The stages have no loops in the code, as each end of a loop is a misprediction.
//!
//! # Invariants
//!
//! (1) Each array ends where its units do; each of its elements is in one unit that a lookup can reach or that is free.
//! (2) The first table has an entry for all values of its leading bits. (3) Entries lead to tables; tables that windows index
//! lie where windows differ. A shift of 31 is that of two equal words, for a single interval. (4) Slots lead to trees, whose
//! leaves follow the inner node. (5) Keys ascend, before the padding, in one half of the windows, and leaves keep within the keys around them. (6) After
//! the last value of a leaf, it is repeated. (7) Values that are not next hops lead to records of at most eight prefixes, or
//! to blocks. (8) Pieces of a block ascend to the last lower part, and neighbours differ. (9) Words that lead
//! to a tree or to a table of two equal words are counted, where the structure changes in place.
//!
//! # Limits and hostile tables
//!
//! 2^29 words of tables, 2^29 lines, 2^30 units of objects (8 bytes): more are refused by name. A place with slightly more
//! /48s than a tree holds, alone in its /14, costs 1,500 words, 32 bytes a route; every second /48 of the space, 6 bytes.
//! A next hop from 2^15 on costs 8 bytes where 8,192 objects before it have no other like it. Routes longer than /48: 24
//! bytes for one in a /48 of its own and up to two intervals, 16 for each of seven more, 16 a range beyond and log2 of the
//! ranges in dependent loads. The smallest table takes about 1 KiB.
//!
//! # Changes while readers look
//!
//! All arrays are atomic words, in units that can be freed. Where intervals of a tree begin and end where what changes does,
//! and their values are next hops, before and after, the new values are stored in its leaves, a word at once
//! (`in_leaf.rs`). Intervals stay for that when a route goes, with the value of those around them.
//!
//! Else the slots that share a tree within one table get a new one. Its intervals are the old ones, equal neighbours made
//! one, except for those of the changed prefix, which are made of the routes. Storing the slots publishes it, each for its
//! addresses. Where the intervals need more than one tree, the slots are divided among several; a tree that became small is
//! joined with the next one. Where one slot needs more than a tree, its table is made anew as a build would make it, or the
//! table before it if that takes much fewer words, and published by the words that lead to it. The first table keeps its bits.
//!
//! A tree counts the slots that lead to it, since slots of other tables may share it and stay with it. The tables of two equal
//! words for one value are a unit with its tree, and count the words that lead to them. All other tables belong to one
//! region of addresses. Objects belong to one leaf, and its objects are one unit, which is near its base wherever it is: a next
//! hop from 2^15 on then costs 8 bytes a leaf. A change that is published in a copy of the entries copies all tables.
//!
//! An entry is loaded with acquire, and so is a slot, so everything that they lead to is as it was when they were stored:
//! lines are loaded after the slot, objects after the value. Trees beyond the place where the lines would end without free
//! ones move to free lines before it, a few with each change. Tables and objects do not move.
//!
//! For listeners, tables are array 0, lines array 1, objects array 2. `first-bits` is the number of bits that index the first
//! table, `upper-bits` that of the upper part, of `key-bits` in all.
//!
//! `notes.md` in this folder has the measurements: what was tried, and what lost.

mod build;
mod change;
mod check;
mod ground;
mod in_leaf;
pub(crate) mod kernel;
pub(crate) mod layout;
mod lookup;
mod object;
mod open;
mod plan;
mod plant;
mod prepared;
mod reach;
mod replant;
mod scalar;
mod storage;
#[cfg(test)]
mod tests;
mod update;

use crate::net::Ipv6Key;
use crate::simd::Isa;

use crate::fib::registry::{Algorithm, Families, Role, Update};

use layout::DirBtree;

const NAME: &str = "dir-btree";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv6Key>() -> [Algorithm<K>; 1] {
    [Algorithm {
        name: NAME,
        summary: "direct tables, then a B+-tree of two levels with values in its leaves: fast",
        paper: "Fibula's own",
        families: Families::Ipv6,
        role: Role::Own,
        update: Update::InPlace,
        in_place: Some(|routes, limits| Ok(Box::new(update::Editor::build(routes, limits)?))),
        open: Some(open::open),
        maps: true,
        limits: Some("2^29 words of tables, 2^29 lines"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(DirBtree::build(routes, limits)?)),
    }]
}
