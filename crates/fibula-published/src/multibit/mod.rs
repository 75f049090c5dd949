//! Multibit trie: a fixed number of bits a level, one read each.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because the multibit-trie router paper forwards by it, and its measurements are repeated.
//!
//! The lookup structure of the multibit-trie router paper (section V.C), which takes 4 bits at a time. The paper's text counts
//! the children of a node and calls that the stride, and then divides the key by it; here the stride is the number of bits.
//! A prefix that ends inside a stride is expanded within its node: it has every slot whose bits begin with its own. The slot
//! keeps the longest of these prefixes only, and shorter ones come back from the routes when it is removed.
//!
//! # Memory
//!
//! ```text
//! slot:  next hop | node          8 bytes: 32 and 32 bits, each 0 for none
//! node:  2^stride slots           128 bytes for a stride of 4, and 16 bytes that lookups do not read:
//! lens:  for each slot, how far into the stride the prefix of its next hop reaches, for changes
//!
//! 0/1 -> A, 01/2 -> B, 0110/4 -> C, stride 2:
//!
//!   root 00: A    01: B, node    10: none    11: none
//!                     \
//!                 node 00: none  01: none    10: C    11: none
//! ```
//!
//! # Lookup
//!
//! ```text
//! best = none; node = root
//! repeat:
//!     slot = node[next bits of the key]
//!     if slot.next_hop: best = slot.next_hop
//!     if not slot.node: return best
//!     node = slot.node
//! ```
//!
//! A level is one read of one word. A key has ceil(bits / stride) levels, so that 8 reads are the most for IPv4 with the
//! paper's stride, and 32 for IPv6. Bits past the end of a key read as zeros.
//!
//! A batch walks level by level, 32 keys side by side. The keys that are still walking are in a list, which is kept without a
//! branch, so that the reads of all of them overlap. The paper looks up packets one by one.
//!
//! # Invariants
//!
//! 1. Every node but the root leads to a route: it has a slot with a next hop or a node.
//! 2. Every node is reachable exactly once, or is on the free chain.
//! 3. No node begins past the end of the key.
//! 4. A slot has a length where it has a next hop, and nowhere else. Only the root has that of a default route.
//! 5. A slot's prefix has all slots of the same bits that do not have a longer one, with the same next hop.
//!
//! # Limits and cost
//!
//! At most 2^32 - 1 nodes. Lookups read 128 bytes a node (stride 4), and another eighth of that is for changes. A change costs
//! a walk to the node of its prefix, a lookup of it in the routes, and a store for each slot that it expands to; a removal also
//! frees nodes that it leaves empty.
//!
//! Slots keep next hops on the way, not in leaves alone, as the paper has it. So an address may have its answer from one of
//! several words, and no single store takes a reader from the table before two nested changes to the one after: there is no
//! form that changes while readers look. `poptrie` pushes its next hops into leaves, and has one.
//!
//! Hostile tables (`fibula-lab rates --synth ipv4-block-of-hosts` and similar): the 16,777,216 routes of the paper fill their nodes and
//! take 9.6 bytes each, 8.5 for lookups, the /32s of one /8 in 1,118,483 nodes and all /24s in 1,118,481. Random host routes
//! have nodes of their own from the sixth level on, at worst 27 for IPv6, of 144 bytes each. `notes.md` compares strides.

mod build;
mod check;
pub(super) mod layout;
mod lookup;
#[cfg(test)]
mod tests;
mod update;
mod walk;

use fibula::net::{Key, KeyKind, Routes};
use fibula::unstable::memory::Limits;
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Build, Engine, Families, Role, Update};
use fibula::fib::{BuildError, Fib};

use layout::Multibit;

const NAME: &str = "multibit";

/// Returns the registry entries: the stride of the paper, one half and twice as long. Toy widths get strides that leave a
/// rest in the last level too.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    let (paper, short, long) = (build::<K, 4>, build::<K, 2>, build::<K, 8>);
    match (K::KIND, K::BITS) {
        (KeyKind::Ipv4 | KeyKind::Ipv6, _) => {
            vec![entry(NAME, paper), entry("multibit-2", short), entry("multibit-8", long)]
        }
        (KeyKind::Toy, ..=3) => vec![entry("multibit-1", build::<K, 1>), entry("multibit-2", short)],
        (KeyKind::Toy, ..=8) => vec![entry(NAME, paper), entry("multibit-3", build::<K, 3>)],
        (KeyKind::Toy, _) => vec![entry(NAME, paper), entry("multibit-7", build::<K, 7>)],
    }
}

fn entry<K: Key>(name: &'static str, build: Build<K>) -> Engine<K> {
    Engine {
        name,
        summary: "trie with a fixed number of bits a level, one read each",
        use_when: "you compare with the multibit-trie router paper",
        paper: "multibit-trie router paper, section V.C",
        families: Families::Both,
        role: Role::Published,
        update: Update::InPlace,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: &[Isa::Scalar],
        build,
    }
}

fn build<K: Key, const STRIDE: u32>(
    routes: &dyn Routes<K>,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    Ok(Box::new(Multibit::build(routes, STRIDE, limits)?))
}
