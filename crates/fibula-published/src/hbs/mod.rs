//! HBS: a hash table for every prefix length, and a binary search over the lengths that markers cut short.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because PlanB's paper compares itself with it. It is built after that paper's description; its own paper was not
//! read.
//!
//! "Heuristic binary search", one of the schemes that PlanB is compared with (its section 2). Built on binary search by prefix
//! lengths: Waldvogel, Varghese, Turner and Plattner, "Scalable High Speed IP Routing Lookups" (SIGCOMM 1997). Its novelty:
//! a marker records the lengths it was created for, and the tree over the lengths is rotated as the table changes. The hash
//! function, the tables and the moment at which the tree is rotated are this project's choice.
//!
//! # Memory
//!
//! ```text
//! tree:    the lengths that occur, and for each range of them the one where the ways to them part: 1 byte
//! table:   slots of 32 bytes for IPv6, of 24 for IPv4; half of them are free after a build, at least 3/8 later
//! slot:    key | origins | best | kind           128 (32), 64, 32 and 32 bits
//!                 |         |
//!                 |         next hop of the longest route that contains the key
//!                 a bit a longer length to the right in the tree: there are routes of it that begin with the key
//!
//! routes 2001:db8::/32 -> A and 2001:db8:7::/48 -> B; many of /48 elsewhere, so that the tree begins there:
//!
//!          48
//!         /            /48: 2001:db8:7 route, best B            a hit: no length is left
//!       32             /32: 2001:db8   route, best A
//! ```
//!
//! Length 0 has no table: its next hop is what a search begins with.
//!
//! # Lookup
//!
//! ```text
//! answer = the default route; at = the root of the tree
//! loop:  entry = table[at] of the first bits of the key
//!        hit:   answer = entry.best, if it has one; left = entry.origins
//!        miss:  left = those of `left` that are shorter than `at`; before the first hit, all shorter ones of the subtree
//!        at = where the ways to the lengths that are left part; if none is left: return answer
//! ```
//!
//! The best match in a marker makes it unnecessary to go back. Its origins make the rest of the search short: a key below a /32
//! without longer routes ends there, and one below a marker that was made for /48 alone goes to /48 at once.
//!
//! A batch searches for 64 keys side by side. When a key's next table is known, its slot there is prefetched, and the next round
//! reads it. There are no vector kernels.
//!
//! # The tree
//!
//! It is the binary tree with the least sum of steps over all routes, found by dynamic programming over ranges of lengths. A marker
//! has 64 bits, so that of more than 65 lengths at most 64 are to the right of one; IPv4 has no such bound.
//!
//! # Changes
//!
//! Inserting a route adds its entry, and markers in the tables on the search path. Existing markers below it update their best match
//! unless a longer route covers them. Removing a route leaves a marker if longer routes need it. The markers on the search path lose
//! its length if no other route of this length is below them. Both this and best matches are looked up in the routes, so a change
//! costs about as much as there are routes below its prefix.
//!
//! A length that did not occur is added to the tree as a leaf, and the bits of the markers to its left move. When an eighth of the
//! routes (and 4) have come or gone, the best tree is computed, and taken if the present one has an eighth more steps. Tables for which
//! the same lengths are to the right stay as they are; the others are rebuilt from the routes. Lengths without routes
//! leave the tree then. If memory runs out, the tree stays. If a marker has no bit for a length, the whole engine is rebuilt.
//!
//! # Invariants
//!
//! 1. Lengths ascend, those of a range have one least deep in the tree, and at most 64 are to the right of one.
//! 2. Each length has a table, whose keys have its bits and which counts its routes.
//! 3. A table has a free slot. An entry is found from the place of its hash on without meeting one, and a key has one entry.
//! 4. Every route has a marker with its length in each table that the search for it leaves to the right. No marker has other
//!    lengths, and none is without.
//! 5. The best match of a route is its own next hop; that of a marker is the longest route that contains its key.
//!
//! # Limits and cost
//!
//! A table has at most as many slots as memory. Keys that are chosen to meet in one slot make searches long: the hash has no
//! secret, so that tables from unknown hands should not be looked up by this structure.
//!
//! A real IPv6 table of 228,726 routes has 45 lengths. A search takes 2.2 steps on average for an address below one of its routes,
//! and 8 for a random address. In batches of 256, AMD EPYC (Zen 4) makes 19.6 and 7.1 million such lookups a second. With one in a
//! thousand of the routes, so that everything fits the first cache, it makes 27.5 and 15.6 million: most of the time below routes goes
//! to instructions and mispredicted branches, and the rest to memory.
//!
//! Vectors and steps without branches were tried and won nothing: `notes.md`.
//!
//! Hostile tables: routes of all 128 lengths make a search of 8 steps, and a marker a route and step. A million host routes
//! without other lengths take one step.

mod build;
mod check;
mod layout;
mod lookup;
#[cfg(test)]
mod tests;
mod tree;
mod update;
mod walk;

use fibula::net::Key;
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

use layout::Hbs;

const NAME: &str = "hbs";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![Engine {
        name: NAME,
        summary: "a hash table a length, binary search cut short by the origins of markers",
        use_when: "you compare with HBS, as PlanB's paper has it",
        paper: "after PlanB's description, section 2 (HBS; Waldvogel et al., SIGCOMM 1997)",
        families: Families::Both,
        role: Role::Described,
        update: Update::InPlace,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: &[Isa::Scalar],
        build: |routes, limits| Ok(Box::new(Hbs::build(routes, limits)?)),
    }]
}
