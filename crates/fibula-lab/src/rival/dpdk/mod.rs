//! DPDK's tables: `rte_fib` (DIR24_8) and `rte_fib6` (TRIE), `rte_lpm` and `rte_lpm6`.
//!
//! Written for DPDK 22.11 to 24.07 and linked with the feature `dpdk` only.
//!
//! - The environment (EAL) starts once, in a thread of its own because it pins that to a core, without huge pages of the
//!   system, devices, telemetry and files, and with vectors of 512 bits allowed.
//! - Every table has a heap of its own over anonymous memory, for which huge pages are asked, as for our structures.
//!   It goes with the table.
//! - `rte_fib` and `rte_fib6` have no single lookup: one key a call is a batch of one. `rte_lpm` and `rte_lpm6` have
//!   one.
//! - Loops over batches and over single lookups stand in C, where the lookups of `rte_lpm` are inlined: what a program in
//!   C does.
//! - `rte_lpm` takes the better part of a minute for a full table: each route is searched for among all others of its
//!   length. Its two forms therefore share one table.
//! - `rte_lpm` and `rte_lpm6` know no default route. They are given two routes of length 1 instead.
//! - Next hops are the ids of the table; those that an entry has no bits for are refused. No route is next hop 0 in
//!   `rte_fib` and `rte_fib6`.
//!
//! Memory. Lookup bytes: 2^24 entries, and 256 for each group (tbl8) that the table's prefixes need; neighbours with
//! equal answers may need fewer, which the library does not tell. Mapped bytes: what the library's allocator has
//! handed out for the table, which holds the routes themselves and all groups that were provided for. Nothing is asked
//! of this program's allocator.

mod form;
#[cfg(feature = "dpdk")]
mod survey;
#[cfg(feature = "dpdk")]
mod sys;
#[cfg(feature = "dpdk")]
mod table;

use fibula::net::Key;

use super::Source;

/// The forms of one family, present or not.
pub(super) fn source<K: Key>() -> Source<K> {
    Source {
        name: "DPDK",
        rivals: form::of::<K>().map(|form| form.name).collect(),
        get: "install DPDK 22.11 with its headers (Debian: apt-get install libdpdk-dev pkg-config gcc) and build with \
              '--features dpdk'"
            .to_owned(),
        #[cfg(feature = "dpdk")]
        contestants: Some(table::contestants()),
        #[cfg(not(feature = "dpdk"))]
        contestants: None,
    }
}
