//! MIHT, the multi-index hybrid trie: a B+-tree over the first bits, and a priority trie for what follows each key.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because the Bloomfwd paper compares itself with it. It is built after that paper's description; its own paper was
//! not read.
//!
//! As the Bloomfwd paper describes it (section 5, after Lin and Hsieh's structure), which compares its Bloom filters with the
//! (16,16) form for IPv4 and the (32,32) form for IPv6: keys of `k` bits in a B+-tree of order `m`. The paper's IPv6 keys have 64
//! bits; here the tries go on to 128.
//!
//! # Memory
//!
//! ```text
//! index node:  m words: keys, and their number | m words: children, or tries in a leaf
//!              64 bytes for IPv4 (16 words of 16 bits in each row), 256 for IPv6 (32 of 32 bits)
//! roots:       4 bytes a trie: its root among the data nodes
//! data node:   address | next hop | below[0], below[1] | length        20 bytes for IPv4, 32 for IPv6
//!
//! k = 4:   0001 0000/8 -> A     0001 1/5 -> B     0001/4 -> C     00/2 -> D
//!
//!   B+-tree: key 0001 ----> depth 4: 0001/4 -> C            a route as long as the way to it
//!                             0/            \1
//!                depth 5: 0001 0000/8 -> A   0001 1/5 -> B
//!   keyless (the paper's PT[-1]):  00/2 -> D
//! ```
//!
//! A priority trie has no empty nodes. Its nodes branch by the bits of the address, but each holds the longest route that is
//! anywhere below it, so that a match ends the search. Only a route of exactly the length of the way to a node can live nowhere
//! deeper; it has the node whatever else is below.
//!
//! # Lookup
//!
//! ```text
//! key = first k bits; if the B+-tree has it: search its trie, and return what that finds
//! search the trie of the routes without a key
//!
//! search(trie):  best = none; node = root, depth = k or 0
//!     while there is a node:
//!         if node's route has the address: best = its next hop; if it is longer than depth: stop
//!         node = node.below[bit `depth` of the address]; depth += 1
//! ```
//!
//! If the trie of a key has no match, the trie without keys is searched all the same, as the longest match may be shorter than a
//! key. The paper says so only for addresses without a key. An index node is searched by bisection.
//!
//! # Changes
//!
//! A new route goes down its trie. At a node whose route it must precede it takes the place, and what was there goes on down in
//! its stead. When a route is removed, the longest one below takes its place, and so on from there. A trie without routes is
//! freed with its key; index nodes are divided and joined as in any B+-tree, so that each but the root is half full.
//!
//! # Invariants
//!
//! 1. Every index node is reachable once, or free. It has at most `m - 1` keys and, but for the root, half as many at least.
//! 2. Keys ascend. All keys below a child are less than the key after it, and none is less than the key before it.
//! 3. Every key has a trie of its own with at least one route, all of them of `k` bits or more. Shorter routes are keyless.
//! 4. A route begins with the way to its node, and is as long or longer.
//! 5. A route that is longer than the way to it is as long as any below it.
//! 6. Every data node is reachable once, or free.
//!
//! # Limits and cost
//!
//! At most 2^32 - 1 routes. A lookup reads an index node a level, a root, and a data node a level of the trie. dfz4-2023 has
//! 33,013 keys and 4,353 routes without one: 5 index nodes, a root, and on average 5.8 data nodes for keys of MATCH, of which 0.3 %
//! also search the routes without a key. The deepest trie has 17 levels. It takes 20.5 bytes a prefix. Routes that come in order
//! leave index nodes half full. A removal looks for the longest route below, which in a trie of routes of all lengths is a walk
//! of all of it.
//!
//! Hostile tables (`fibula-lab rates --synth ipv4-host-routes` and similar): all host routes of a /16 make a trie 17 deep, and those of
//! an IPv6 /104 one 97 deep. The 16,777,216 routes of one /8 take 20 bytes each, and so do all /24s.

mod build;
mod check;
mod layout;
mod lookup;
#[cfg(test)]
mod tests;
mod tree;
mod tries;
mod update;
mod walk;

use fibula::net::{Key, KeyKind, Routes};
use fibula::unstable::memory::Limits;
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Build, Engine, Families, Role, Update};
use fibula::fib::{BuildError, Fib};

use layout::{Miht, Word};

const NAME: &str = "miht";

/// Returns the registry entry, in the geometry of the paper for the family. Toy widths have trees of 2 and of 3 keys a node.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    match (K::KIND, K::BITS) {
        (KeyKind::Ipv4, _) => vec![entry(NAME, build::<K, u16, 16, 16, 16>)],
        (KeyKind::Ipv6, _) => vec![entry(NAME, build::<K, u32, 32, 32, 32>)],
        (KeyKind::Toy, ..=3) => vec![entry(NAME, build::<K, u16, 16, 1, 3>)],
        (KeyKind::Toy, ..=8) => {
            vec![entry(NAME, build::<K, u16, 16, 4, 3>), entry("miht-4", build::<K, u16, 16, 5, 4>)]
        }
        (KeyKind::Toy, _) => vec![entry(NAME, build::<K, u16, 16, 8, 16>)],
    }
}

fn entry<K: Key>(name: &'static str, build: Build<K>) -> Engine<K> {
    Engine {
        name,
        summary: "B+-tree over the first bits, a priority trie for each key",
        use_when: "you compare with MIHT, as the Bloomfwd paper has it",
        paper: "after the Bloomfwd paper's description, section 5 (MIHT: Lin and Hsieh)",
        families: Families::Both,
        role: Role::Described,
        update: Update::InPlace,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: &[Isa::Scalar],
        build,
    }
}

fn build<K: Key, W: Word, const M: usize, const KEY_BITS: u8, const ORDER: usize>(
    routes: &dyn Routes<K>,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    Ok(Box::new(Miht::<K, W, M>::build(routes, KEY_BITS, ORDER, limits)?))
}
