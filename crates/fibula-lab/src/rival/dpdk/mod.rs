//! DPDK's tables: `rte_fib` (DIR24_8) and `rte_fib6` (TRIE), `rte_lpm` and `rte_lpm6`.
//!
//! Written for DPDK 22.11 to 25.11 and linked with the feature `dpdk` only. The types of IPv6 addresses changed in 24.11;
//! the shim knows both.
//!
//! - The environment (EAL) starts once, in a thread of its own because it pins that thread to a core. It runs without
//!   the system's huge pages, devices, telemetry and files, and with 512-bit vectors allowed.
//! - Every table has a heap of its own in anonymous memory, for which huge pages are requested, as for our
//!   engines. The heap is freed with the table.
//! - `rte_fib` and `rte_fib6` have no function for single lookups, so one key a call is a batch of one. `rte_lpm` and
//!   `rte_lpm6` have such a function.
//! - The loops over batches and single lookups are written in C, where the lookups of `rte_lpm` are inlined, as in a
//!   C program.
//! - `rte_lpm` takes most of a minute to build a full table, because it searches for each route among all others of
//!   its length. Its two forms therefore share one table.
//! - `rte_lpm` and `rte_lpm6` do not take a default route. They get two routes of length 1 instead.
//! - Next hops are the ids of the table. A table with ids too large for an entry is refused. In `rte_fib` and
//!   `rte_fib6`, next hop 0 means no route.
//!
//! Lookup bytes are those of 2^24 entries, and of 256 entries for each group (tbl8) that the table's prefixes need.
//! Neighbours with equal answers may need fewer groups, but the library does not tell. Mapped bytes are those that the
//! library's allocator has handed out for the table, with the routes themselves and all reserved groups. Nothing
//! comes from this program's allocator.

mod form;
#[cfg(feature = "dpdk")]
mod survey;
#[cfg(feature = "dpdk")]
mod sys;
#[cfg(feature = "dpdk")]
mod table;

use fibula::net::Key;

use super::Source;

/// Returns the forms of one family, present or not.
pub(super) fn source<K: Key>() -> Source<K> {
    Source {
        name: "DPDK",
        rivals: form::of::<K>().map(|form| form.name).collect(),
        get: "install DPDK 22.11 to 25.11 with its headers (Debian: apt-get install libdpdk-dev pkg-config gcc) and build with \
              '--features dpdk'"
            .to_owned(),
        #[cfg(feature = "dpdk")]
        contestants: Some(table::contestants()),
        #[cfg(not(feature = "dpdk"))]
        contestants: None,
    }
}
