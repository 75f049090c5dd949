//! PlanB as a plain C++ loop: what a C++ programmer gets from the paper, to judge the PlanB of this project by.
//!
//! Linked with the feature `plain` only, and for IPv6 only.
//!
//! - Published structure: disjoint ranges of the upper halves of addresses, in a linearized B+-tree with 8 keys of 64 bits
//!   a node; values by position, 16 bits each where next hops and blocks fit into 15, else 32. Like our own PlanB it is exact
//!   to 128 bits: an upper half with longer prefixes leads to a block of ranges, found by binary search.
//! - The loop walks 32 keys side by side, or 8 without vectors, with the loop over the levels unrolled at 5 and 6 levels,
//!   and prefetches keys 2 KiB ahead by itself, past the end of its batch: it gets its batches from an array, and the next
//!   batch follows in memory. The benchmark prefetches nothing for it.
//! - Compiled by the C++ compiler with `-O3 -march=native`, once for each instruction set, with the larger sets forbidden.
//! - Keys are 16 bytes in host order or in network order; or 64 bits, the upper halves alone, with the lower halves in an
//!   array of their own that is read for blocks only. That last form streams half the bytes a key, so compare it with
//!   nothing that has keys of 16 bytes.
//! - The loop over the batches is written in C++; a batch is one call.

mod form;
#[cfg(feature = "plain")]
mod sys;
#[cfg(feature = "plain")]
mod table;

use fibula::net::{Family, Key};

use super::Source;

/// Returns the forms for IPv6, present or not.
pub(super) fn source<K: Key>() -> Source<K> {
    let forms = if K::FAMILY == Family::Ipv6 { form::FORMS } else { &[] };
    Source {
        name: "PlanB in C++",
        rivals: forms.iter().map(|form| form.name).collect(),
        get: "install a C++ compiler (Debian: apt-get install g++) and build with '--features plain'"
            .to_owned(),
        #[cfg(feature = "plain")]
        contestants: Some(forms.iter().copied().map(table::contestant).collect()),
        #[cfg(not(feature = "plain"))]
        contestants: None,
    }
}
