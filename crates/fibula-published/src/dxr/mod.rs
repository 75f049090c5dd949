//! DXR: a direct table on the first k bits, then a binary search in a chunk of ranges.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` or `dir-18-lines` instead. It is here because its paper
//! is one of those whose tables and figures are measured again.
//!
//! Zec, Rizzo and Mikuc, "DXR: towards a billion routing lookups per second in software" (ACM CCR 42(5), 2012),
//! sections 3.1 to 3.4. A table is a sequence of ranges, of which neighbours with equal next hops are merged
//! (`parts/ranges`). The ranges are cut at the borders of 2^k chunks. The direct entry of a chunk that lies within one
//! range holds its next hop. The other chunks store their ranges by the bits that the index leaves over, the trailing
//! `32 - k`. The result is small enough to stay in the caches: 1.4 bytes a prefix at k = 16 on a full table of 900,000
//! routes.
//!
//! # Memory
//!
//! ```text
//! direct:  2^k entries of 4 bytes                    k = 16, the example of section 3.1, A..D = codes 1..4
//!
//!          f |  size: 12  |    position: 19    |
//! 0x00ff:  0 |     0      |      code A        |     size 0: the entry holds the next hop
//! 0x0100:  0 |     0      |      code B        |
//! 0x0102:  1 |  3 - 1     |   0 ------------------.  f = 1: short entries
//! 0x0103:  0 |     0      |      code B        |  |
//!                                                 v
//! ranges:  units of 4 bytes                    | 0.C 3.D | 4.C 4.C |     a unit holds two short entries, or
//!                                                              ^         one long one
//!                                             an odd number is padded by repeating the last
//!
//! short entry: 24 - k bits of base, 8 bits of code     long entry: 32 - k bits of base, 16 bits of code
//! next_hops:   the dictionary, 4 bytes a code; code 0 is "no route"
//! ```
//!
//! A chunk is short when all its stored bases end in eight zeros and all its codes are below 256. The lengths of its
//! prefixes do not matter: 1.2.4.5/32 is in the short chunk above, because its range is merged with its neighbours.
//!
//! The range table is an array of 16-bit halves. A short entry is one half that sorts by its base, code included. Of a
//! long entry, the first half is the base and the second the code. So one loop searches both formats: halves that are
//! `1 << stride` apart, compared with one probe.
//!
//! Codes number the next hops by falling number of ranges, so that as many chunks as possible are short. "No route" is
//! code 0 and takes one of the 256.
//!
//! # Lookup
//!
//! ```text
//! entry = direct[key >> (32 - k)]
//! if size(entry) = 0: answer next_hops[position(entry)]
//! early-stop:                                          branch-free:
//!   low = 0, high = entries                              low = 0, size = entries
//!   while high - low > 1:                                while size > 1:
//!     middle = (low + high) / 2                            half = size / 2
//!     if probe < base[middle]: high = middle               low += half if base[low + half] <= probe
//!     elif probe < base[middle + 1]: low = middle, stop    size -= half
//!     else: low = middle + 1
//! answer next_hops[code[low]]
//! ```
//!
//! The published entries `dxr-16` to `dxr-24` use the early stop. `dxr-18-branch-free` works on batches in two stages:
//! it answers the keys that the direct table answers and lists the others, then searches the listed keys eight side by
//! side, in as many steps as the largest of the eight chunks needs. `dxr-18-wide` does the same on the wide format.
//! Both use k = 18, the largest k whose published form of a full table fits a second-level cache of 2 MB, so that they
//! differ from `dxr-18`, and from each other, in one thing only. [`Dxr::build`] takes any combination.
//!
//! # Kernels
//!
//! The branch-free entries have kernels for batches. Three stages over a block of 256 keys, eight a vector:
//!
//! ```text
//! for each 8 keys: results = gather direct[keys >> (32 - k)]
//! for each 8 keys: here = size(results) is 0;  append (entry, trailing bits, number) of the others to a queue
//! for each 4 x 8 queued: low = first half - 1, size = entries; as often as the largest of the 32 chunks needs:
//!                          half = size / 2, middle = low + (half << stride)
//!                          low = middle where (gather halves[middle, middle + 1]) <= (probe, all ones)
//!                          size -= half
//!                        results[numbers] = code at low + 1
//! for each 8 keys: results = gather next_hops[results]
//! ```
//!
//! A gather reads two halves, and the upper one decides. So a half is read together with the half before it, and the
//! range table needs no padding. The wide format reads both words of a direct entry in the first stage, and next hops
//! instead of codes in the third. Four vectors are searched in step, because the loads of a step wait for those of the
//! step before. More vectors would need more registers than there are, and share one number of steps among more keys.
//!
//! # Stretching (section 3.2)
//!
//! [`Format::Drawn`] has 12 bits of size (the number of entries less one, for 2 to 4,096 entries) and 19 of position.
//! Where a table does not fit, [`Format::Stretched`] gives the size the bits that it needs and the position the rest.
//! Where that is not enough, sizes count 2, 4 or 8 entries and positions 2, 4 or 8 units, and chunks are padded by
//! repeating their last entry, which is as good a result of a search as the original. Every build chooses anew, and
//! tries the drawn split first.
//!
//! # The wide format
//!
//! 8-byte direct entries (32 bits of position or next hop, 32 of size), separate arrays for the bases and next hops of
//! ranges, 2 + 4 bytes a range, and no dictionary. It holds any table: a chunk has at most 2^16 ranges, a table at most
//! 2^32.
//!
//! # Changes while readers look (section 3.4)
//!
//! A changed prefix is work for the chunks that it meets. The prefixes of a call ascend, so they become a list in which every
//! dirty chunk is once, however many of its prefixes changed; a bit for each chunk would say the same, but had to be searched.
//! The ranges of a dirty chunk are made anew from the routes and written beside the old ones, unless they are the same, and
//! one word publishes them: the direct entry. From 4,096 dirty chunks on, as many threads as there are processors sweep the
//! routes, 64 chunks an item; one thread writes what they found, for it alone gives out codes and places.
//!
//! The form that changes has words: two halves a word, since all accesses to an array that a writer changes must have one size;
//! the searches are the same, with a shift for each half, and the kernels gather words. Direct entries of the wide format are
//! words of 64 bits, read one by one. The form that does not change keeps its halves, and its speed. Neither form shares chunks:
//! one entry leads to each, which needs no count.
//!
//! A next hop gets a code when a range has it first, and the ranges and direct entries that have it are counted; its code
//! is free again when no reader can see the last of them. Codes are not renumbered. When popular next hops came so late that
//! their chunks are long, and that makes more than a quarter of the range table more than when it was built, it is built anew.
//! So it is, with a split that has room for twice as much, where a chunk has more ranges than its size can say, where a
//! position or a code has too few bits, and where the range table has eight times the words that it was built with. Chunks move
//! to free places before them, a few with each change; a fifth of free places that no chunk fits is the last reason.
//!
//! For listeners, direct entries are array 0, the range table (in the wide format: the bases) array 1, next hops array 2. `k`
//! and the bits of a direct entry (`size-bits`, `position-bits`, `shift`) are the shape.
//!
//! # Invariants
//!
//! 1. There is a direct entry for every value of the first k bits.
//! 2. The range table holds the chunks in the order of their direct entries, without gaps and with nothing after the
//!    last. Where it changes, in any order, with free places between them.
//! 3. A chunk has at least two ranges. Its first base is 0, bases ascend strictly, and neighbours have different codes.
//! 4. Padding repeats the last entry, up to the next whole unit. The size is the number of ranges (stretched: rounded
//!    up).
//! 5. A chunk is short where it can be.
//! 6. Every code is in the dictionary. Code 0, and no other code, is "no route".
//!
//! # Limits
//!
//! The build refuses a table with an error that names the limit and the need: entries in a chunk (4,096; drawn only, as
//! a stretched size always fits), units before the last chunk (2^19; stretched at least 2^20), next hops in ranges
//! (65,535), next hops in direct entries (2^19 - 1, fewer where the size takes more bits).
//!
//! # Hostile tables
//!
//! The deepest nesting makes 2 ranges a route, like any other table. All 65,536 addresses of a /16 in ranges of their
//! own: one chunk at k = 16, 16 steps. Host routes spread everywhere: long entries, 2 or 3 a route. The possible number
//! of routes depends on the largest chunk: 128 ranges leave 24 bits of position, all 65,536 addresses of a /16 leave 17
//! bits that count by eights. The wide format takes any number, at 12 or 18 bytes a route. 16 million routes: at most
//! 33 million ranges, 8 bytes each during the build. Time is linear in routes, ranges and 2^k.
//!
//! `notes.md` in this folder has measured rates, and variants that were not kept.

mod build;
mod check;
mod chunk;
mod codes;
mod editor;
mod entries;
mod format;
pub(super) mod geometry;
mod kernel;
pub(super) mod layout;
mod live_compact;
mod live_wide;
mod lookup;
pub(super) mod options;
mod room;
mod scalar;
pub(super) mod statistics;
mod sweep;
#[cfg(test)]
mod tests;
mod update;
#[cfg(test)]
mod update_tests;
mod view;
mod work;
mod written;

use fibula::net::{Ipv4Key, KeyKind, Routes};
use fibula::unstable::memory::Limits;
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};
use fibula::fib::{BuildError, Fib};

use layout::Dxr;
use options::{Format, Options, Search};

const NAME: &str = "dxr";

/// A registry entry: name, k, format, search. These are constants, because the `build` of an entry is a plain function.
macro_rules! entry {
    ($name:literal, $k:literal, $format:ident, $search:ident) => {{
        const OPTIONS: Options = Options { k: $k, format: Format::$format, search: Search::$search };
        Engine {
            name: $name,
            summary: summary(OPTIONS),
            use_when: "you compare with DXR (CCR 2012)",
            paper: "Zec, Rizzo, Mikuc: DXR (CCR 2012), sections 3.1 to 3.4",
            families: Families::Ipv4,
            role: Role::Published,
            update: Update::InPlace,
            in_place: Some(|routes, limits| update::build(routes, OPTIONS, limits)),
            open: None,
            maps: false,
            limits: limits(OPTIONS),
            isas: isas(OPTIONS),
            build: |routes, limits| boxed(routes, OPTIONS, limits),
        }
    }};
}

/// Returns the registry entries: every k of the paper, and our variants at one k. Toy widths get a few small forms.
#[must_use]
pub(crate) fn engines<K: Ipv4Key>() -> Vec<Engine<K>> {
    match (K::KIND, K::BITS) {
        (KeyKind::Ipv4 | KeyKind::Ipv6, _) => ipv4_entries(),
        (KeyKind::Toy, ..=3) => {
            vec![entry!("dxr-1", 1, Stretched, EarlyStop), entry!("dxr-1-wide", 1, Wide, BranchFree)]
        }
        (KeyKind::Toy, ..=8) => vec![
            entry!("dxr-3", 3, Stretched, BranchFree),
            entry!("dxr-4", 4, Stretched, EarlyStop),
            entry!("dxr-4-wide", 4, Wide, EarlyStop),
        ],
        (KeyKind::Toy, _) => vec![
            entry!("dxr-8", 8, Stretched, EarlyStop),
            entry!("dxr-10-branch-free", 10, Stretched, BranchFree),
            entry!("dxr-8-wide", 8, Wide, BranchFree),
        ],
    }
}

fn ipv4_entries<K: Ipv4Key>() -> Vec<Engine<K>> {
    vec![
        entry!("dxr-16", 16, Stretched, EarlyStop),
        entry!("dxr-17", 17, Stretched, EarlyStop),
        entry!("dxr-18", 18, Stretched, EarlyStop),
        entry!("dxr-19", 19, Stretched, EarlyStop),
        entry!("dxr-20", 20, Stretched, EarlyStop),
        entry!("dxr-21", 21, Stretched, EarlyStop),
        entry!("dxr-22", 22, Stretched, EarlyStop),
        entry!("dxr-23", 23, Stretched, EarlyStop),
        entry!("dxr-24", 24, Stretched, EarlyStop),
        entry!("dxr-18-branch-free", 18, Stretched, BranchFree),
        entry!("dxr-18-wide", 18, Wide, BranchFree),
    ]
}

const fn summary(options: Options) -> &'static str {
    match (options.format, options.search) {
        (Format::Wide, _) => "direct table, then a binary search; holds any table",
        (_, Search::EarlyStop) => "direct table, then the paper's binary search of 2- or 4-byte ranges",
        (_, Search::BranchFree) => "direct table, then binary searches side by side without branches",
    }
}

const fn isas(options: Options) -> &'static [Isa] {
    match options.search {
        Search::EarlyStop => &[Isa::Scalar],
        Search::BranchFree => Isa::ALL,
    }
}

const fn limits(options: Options) -> Option<&'static str> {
    match options.format {
        Format::Wide => None,
        _ => Some("65,535 next hops in ranges; 31 bits for chunk size and position"),
    }
}

fn boxed<K: Ipv4Key>(
    routes: &dyn Routes<K>,
    options: Options,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    Ok(Box::new(Dxr::build(routes, options, limits)?))
}
