//! The forms of DPDK's tables that compete.
// Without the library only the names are used.
#![cfg_attr(not(feature = "dpdk"), allow(dead_code))]

use fibula::net::{Family, Key};

/// The library. The numbers are those of the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    Fib = 0,
    Fib6 = 1,
    Lpm = 2,
    Lpm6 = 3,
}

/// A library with the options that make a difference to lookups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) family: Family,
    pub(super) kind: Kind,
    /// `enum rte_fib_lookup_type` or `enum rte_fib6_lookup_type`.
    pub(super) lookup: u32,
    /// Logarithm of an entry's bytes, which is `enum rte_fib_dir24_8_nh_sz` and `enum rte_fib_trie_nh_sz`, too.
    pub(super) entry: u32,
    /// Bits of an entry that hold a next hop.
    pub(super) bits: u32,
    /// Whether batches go to `rte_lpm_lookupx4`, four keys a call.
    pub(super) x4: bool,
    /// The instruction set that its lookups are written for.
    pub(super) isa: &'static str,
}

/// Returns the forms of one family.
pub(super) fn of<K: Key>() -> impl Iterator<Item = &'static Form> {
    FORMS.iter().filter(|form| form.family == K::FAMILY)
}

const fn fib(name: &'static str, entry: u32, lookup: u32, isa: &'static str) -> Form {
    let bits = (8 << entry) - 1;
    Form { name, family: Family::Ipv4, kind: Kind::Fib, lookup, entry, bits, x4: false, isa }
}

const fn fib6(name: &'static str, entry: u32, lookup: u32, isa: &'static str) -> Form {
    Form { family: Family::Ipv6, kind: Kind::Fib6, ..fib(name, entry, lookup, isa) }
}

/// RTE_LPM: 24 bits of next hop in an entry of 4 bytes.
const LPM: Form = Form { kind: Kind::Lpm, bits: 24, ..fib("rte-lpm", 2, 0, "scalar") };

/// Entries of 1 byte hold too few next hops, and entries of 8 bytes more than any table has.
const FORMS: &[Form] = &[
    fib("rte-fib-2b-macro", 1, 1, "scalar"),
    fib("rte-fib-2b-inline", 1, 2, "scalar"),
    fib("rte-fib-2b-uni", 1, 3, "scalar"),
    fib("rte-fib-2b-avx512", 1, 4, "avx512"),
    fib("rte-fib-4b-macro", 2, 1, "scalar"),
    fib("rte-fib-4b-inline", 2, 2, "scalar"),
    fib("rte-fib-4b-uni", 2, 3, "scalar"),
    fib("rte-fib-4b-avx512", 2, 4, "avx512"),
    LPM,
    Form { name: "rte-lpm-x4", x4: true, isa: "sse4.2", ..LPM },
    fib6("rte-fib6-2b-scalar", 1, 1, "scalar"),
    fib6("rte-fib6-2b-avx512", 1, 2, "avx512"),
    fib6("rte-fib6-4b-scalar", 2, 1, "scalar"),
    fib6("rte-fib6-4b-avx512", 2, 2, "avx512"),
    // An entry of rte_lpm6 has 21 bits for a next hop or a group.
    Form { family: Family::Ipv6, kind: Kind::Lpm6, bits: 21, ..fib("rte-lpm6", 2, 0, "scalar") },
];
