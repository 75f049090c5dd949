//! DIR-24-8-BASIC: one entry for every /24, and a second table for the /24s that longer prefixes divide.
//!
//! Gupta, Lin and McKeown, "Routing lookups in hardware at memory access speeds" (INFOCOM 1998), in the form with which
//! the DXR paper compares itself (section 4.3): 16-bit entries, so that the first table takes 32 MiB. A lookup makes at
//! most two loads, far apart in memory: the scheme trades much memory for few steps.
//!
//! # Memory
//!
//! ```text
//! first:    | B | B | segment 0 | B | ... | A | A |      2^24 entries of 16 bits, one a /24
//!                       |
//!                       v  256 entries a segment, one an address
//! segments:           | C | C | C | D | D | ... | C | ...
//!
//! entry:    0 ccccccccccccccc    a code: the next hop is c, or dictionary[c]; no route is code 0
//!           1 sssssssssssssss    segment s
//! ```
//!
//! The published form stores the next hop itself in the 15 bits. This one does so too where the id of every route is at
//! most 32,767. Otherwise all entries hold codes of a dictionary, so that any 32-bit id can be an answer, and the limit
//! counts the *distinct* next hops that lookups can reach. The dictionary costs a load. On tables of a few hundred next
//! hops it hits the first-level cache and costs a fifth of the portable rate on random keys.
//!
//! The tables are indexed by 3/4 and 1/4 of the key's bits, so that the tests' small spaces run the same code.
//!
//! # Lookup
//!
//! ```text
//! entry = first[key >> 8]
//! if bit 15 of entry: entry = segments[256 * (entry & 0x7fff) + (key & 0xff)]
//! answer entry, or dictionary[entry]
//! ```
//!
//! # Kernels
//!
//! Kernels answer blocks of 256 keys, eight side by side, in two stages. The loads of the first stage are independent,
//! so the processor overlaps as many as it can. The results hold the entries between the stages.
//!
//! ```text
//! for each 8 keys: results = gather first[keys >> 8]
//! for each 8 keys: divided = bit 15 of results
//!                  if any: results = gather segments[256 * number + low 8 bits of the keys], where divided
//!                  with a dictionary: results = gather dictionary[results]
//! ```
//!
//! A gather reads 32 bits, of which the lower 16 are the entry. So both tables end with one entry of padding.
//!
//! # Invariants
//!
//! 1. The first table has an entry for every value of the leading bits, and both tables end with the padding.
//! 2. Segments are numbered in the order in which the first table names them, and every segment is named.
//! 3. A segment holds at least two different codes.
//! 4. Every code is in the dictionary, where there is one.
//! 5. Code 0, and no other code, is "no route".
//!
//! In tables that change, segments have any numbers, one entry leads to each, and those to which none leads are free. There is
//! no padding.
//!
//! # Changes while readers look
//!
//! The tables that change are arrays of 32-bit words with two entries each, because all accesses to an array have to be of one
//! size, and vectors gather no less than 32 bits. A word is loaded once and stored at once, so that each of its entries goes
//! straight from what it was to what it will be.
//!
//! - A prefix of at most 24 bits is a range of entries. Its routes are swept as in a build, and the entries whose answers
//!   change are stored from the first to the last: 32,768 words for a /8, 8 million for a default route that nothing covers.
//!   Segments in the range are given up, those of routes that are still there are written anew.
//! - Longer prefixes are inside one entry. The answers of its addresses are read from the segment or the entry, those of the
//!   prefixes are taken from the routes, and the result is written to a free segment, to which the entry then leads. Where
//!   all 256 answers are the same, the entry holds their code.
//! - A next hop that is new gets a code at the end of the dictionary, and keeps it. The tables are built anew when 15 bits have
//!   no more codes, which frees those that are out of use. They are built anew, too, for the first id that has more than 15
//!   bits, which begins the dictionary, and when no segment is free.
//!
//! Segments and codes are written before an entry that leads to them. Readers load entries first, and one fence separates them
//! from the rest. Segments that were replaced are free when no reader can be in them. They are elements of an array with room
//! for all 32,768, of which memory is only what is written. Their writer knows which entry leads to each (4 bytes a segment):
//! where an eighth of them is free, each change also looks at four of the last ones, and moves them to free places before.
//!
//! Changes that are to be seen all or not at all go into a copy of the first table, 32 MiB.
//!
//! For listeners, entries are array 0, segments array 1, of 32-bit words with two entries each, the first one lower; the
//! dictionary is array 2, if there is one (`dictionary` is 1). `direct-bits` and `rest-bits` say how a key is cut.
//!
//! # Limits and cost
//!
//! The build refuses more than 32,768 segments (/24s that contain longer prefixes) and more than 32,767 next hops.
//! Memory: 32 MiB and 512 bytes a segment, and 4 bytes for each next hop of a dictionary, whatever the number of
//! routes.
//!
//! Hostile tables: the depth of nesting does not matter. A host route in each of 32,769 /24s is refused. Host routes
//! everywhere under one /16 take 256 segments. 16 million routes are built in one pass, in time linear in routes and
//! entries.
//!
//! `notes.md` in this folder has measured rates, and variants that were not kept.

mod build;
mod check;
mod codes;
mod fill;
mod kernel;
mod layout;
mod lookup;
mod prepared;
mod scalar;
#[cfg(test)]
mod tests;
mod update;
#[cfg(test)]
mod update_tests;
mod written;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Algorithm, Families, Role, Update};

use layout::Dir248;

const NAME: &str = "dir-24-8";

/// Returns the registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv4Key>() -> [Algorithm<K>; 1] {
    [Algorithm {
        name: NAME,
        summary: "one 16-bit entry a /24, segments of 256 for divided ones",
        paper: "DXR paper, section 4.3 (DIR-24-8-BASIC: Gupta, Lin, McKeown 1998)",
        families: Families::Ipv4,
        role: Role::Published,
        update: Update::InPlace,
        in_place: Some(|routes, limits| Ok(Box::new(update::Editor::build(routes, limits)?))),
        open: None,
        maps: false,
        limits: Some("32,768 segments, 32,767 next hops"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir248::build(routes, limits)?)),
    }]
}
