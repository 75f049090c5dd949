//! Sorted ranges and a binary search: the baseline of every scheme that searches addresses.
//!
//! **When to use it:** Never in a product: take `range-btree` (small IPv4 tables), `dir-17-bitmap` (IPv4) or
//! `dir-btree` (IPv6) instead. It is here because DXR's and PlanB's papers measure themselves by it.
//!
//! A table is a sequence of ranges, each with one next hop (`parts/ranges`). A lookup finds the last range that starts
//! at or before the key. This is the view of Lampson, Srinivasan and Varghese, the baseline of the DXR paper (section
//! 2) and of PlanB's ablation (Fig. 14, `lower_bound`).
//!
//! ```text
//! starts:    | 0 | 1.2.0.0 | 1.2.3.0 | 1.2.4.0 | ...     ascending; the first is the first address
//! next_hops: | - |    C    |    D    |    C    | ...     0 where no route matches
//! ```
//!
//! ```text
//! low = 0, size = n
//! while size > 1:
//!     half = size / 2
//!     low = low + half if starts[low + half] <= key else low      (a conditional move)
//!     size = size - half
//! answer next_hops[low]
//! ```
//!
//! Starts and next hops are separate arrays, so that the search reads starts only. Its steps do not branch on the key.
//! A batch runs eight searches side by side, so that their loads overlap.
//!
//! # Kernels
//!
//! IPv4 batches use vectors. Comparing all lanes with one start costs a third of a gather, so up to 64 ranges are
//! counted instead of searched: the range of a key is the number of starts that it has passed. A larger table is cut
//! into 16 parts by pivots, which are counted in the same way and save four steps. The remaining steps gather.
//!
//! # Invariants
//!
//! 1. There is at least one range, and the first one starts at the first address.
//! 2. Starts ascend strictly.
//! 3. Neighbours lead to different next hops.
//! 4. Both arrays have the same length.
//!
//! # Limits and cost
//!
//! Memory: 8 bytes a range for IPv4, 20 for IPv6. Lookup: log2(ranges) dependent loads, 19 on a full IPv4 table.
//!
//! Hostile tables (`fibula-lab rates --synth ipv4-host-routes` and similar): a host route between routes with other next
//! hops makes two ranges, which is 16 bytes a prefix for IPv4 and 40 for IPv6. Chains of every length take 7.5 and 20.
//! Any number of routes with one next hop is one range. All the /24s with alternating next hops are 134 MB of ranges
//! and 24 steps a lookup.
//!
//! `notes.md` in this folder lists variants that were measured and not kept.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod scalar;
#[cfg(test)]
mod tests;

use fibula::net::{Key, KeyKind};
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

use layout::RangeSearch;

const NAME: &str = "range-search";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![Engine {
        name: NAME,
        summary: "disjoint ranges, equal neighbours merged, binary search",
        use_when: "you need the plainest search of sorted ranges",
        paper: "DXR paper, section 2 (Lampson-Varghese); PlanB, Fig. 14",
        families: Families::Both,
        role: Role::Published,
        update: Update::Rebuild,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: if K::KIND == KeyKind::Ipv4 { Isa::ALL } else { &[Isa::Scalar] },
        build: |routes, limits| Ok(Box::new(RangeSearch::build(routes, limits)?)),
    }]
}
