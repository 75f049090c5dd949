//! Sorted ranges and a binary search: the baseline of every scheme that searches addresses.
//!
//! A table is a sequence of ranges, each with one next hop (`parts/ranges`); a lookup finds the last
//! range that starts at or before the key. Lampson, Srinivasan and Varghese's view, the baseline of the DXR
//! paper (section 2) and of PlanB's ablation (Fig. 14, `lower_bound`).
//!
//! ```text
//! starts:    | 0 | 1.2.0.0 | 1.2.3.0 | 1.2.4.0 | ...     ascending, the first is the first address
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
//! Starts and next hops lie apart, so that the search touches starts alone. The search of [`lookup`] steps
//! without a branch on the key; a batch runs eight searches side by side, so that their loads overlap.
//!
//! IPv4 batches on vectors: a comparison with a start that all lanes share costs a third of a gather. So up to 64
//! ranges are not searched but counted: the range of a key is the number of starts it has passed. More ranges are
//! cut into 16 parts by pivots that are counted in the same way, which saves four of the steps, and the rest of the
//! search gathers.
//!
//! Hostile tables (`fibula bench --synth ipv4-host-routes` and its like): a host route between routes of
//! other next hops makes two ranges: 16 bytes a prefix for IPv4, 40 for IPv6. Chains of every length take
//! 7.5 and 20. All routes with one next hop are one range, however many; every /24 with alternating ones is
//! 134 MB of ranges and 24 steps a lookup.
//!
//! Memory: 8 bytes a range for IPv4, 20 for IPv6. Lookup: log2(ranges) dependent loads, 19 on a full IPv4
//! table.
//!
//! Invariants: (1) there is a range, and the first starts at the first address; (2) starts ascend strictly;
//! (3) neighbours lead to different next hops; (4) both vectors have the same length.
//!
//! [`lookup`]: crate::fib::Fib::lookup

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod scalar;
#[cfg(test)]
mod tests;

use crate::net::{Family, Key};
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

use layout::RangeSearch;

const NAME: &str = "range-search";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "disjoint ranges, equal neighbours merged, binary search",
        paper: "DXR paper, section 2 (Lampson-Varghese); PlanB, Fig. 14",
        families: Families::Both,
        // The kernels are of Fibula's own: its line for small IPv4 tables.
        role: if K::FAMILY == Family::Ipv4 { Role::Own } else { Role::Published },
        update: Update::Rebuild,
        limits: None,
        isas: if K::FAMILY == Family::Ipv4 { Isa::ALL } else { &[Isa::Scalar] },
        build: |routes, limits| Ok(Box::new(RangeSearch::build(routes, limits)?)),
    }]
}
