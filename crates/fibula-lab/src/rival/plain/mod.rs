//! PlanB as a plain C++ loop: the paper as a C++ programmer can write it. The PlanB of this project is judged by it.
//!
//! Linked with the feature `plain` only, and for IPv6 only.
//!
//! - The engine is the published one: disjoint ranges of the upper halves of addresses, in a linearized B+-tree with 8
//!   keys of 64 bits a node; values by position, of 16 bits if next hops and blocks fit into 15, or else of 32. Like our
//!   PlanB it is exact to 128 bits: an upper half with longer prefixes leads to a block of ranges, found by binary search.
//! - The loop walks 32 keys side by side, or 8 without vectors. The loop over the levels is unrolled for trees of 5 and 6
//!   internal levels.
//! - It prefetches keys 2 KiB ahead itself, past the end of its batch too: its batches come from one array.
//! - It is compiled with `-O3 -march=native`, once for each instruction set, with the larger sets forbidden. A program
//!   with this feature is for machines like the one that compiled it.
//! - Keys are 16 bytes in host order or in network order. The forms with `64` have the upper halves in one array and the
//!   lower halves in another, which is read for blocks only. They read half the bytes for a key, so compare them only
//!   with each other.
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
