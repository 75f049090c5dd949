//! Counters of ports, VRFs and comparisons.

use serde::{Deserialize, Serialize};

use super::{Counts, nullable};

/// Counters of everything, since the router started: the answer to `stats`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// Threads that count.
    pub threads: u64,
    /// Each port, in the order of the configuration.
    pub ports: Vec<PortStats>,
    /// Each VRF, in the order of the configuration.
    pub vrfs: Vec<VrfStats>,
    /// Results of the slow comparison.
    pub verify: VerifyStats,
}

/// Counters of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PortStats {
    /// Its name in the configuration.
    pub name: String,
    /// Sums over all threads.
    #[serde(flatten)]
    pub counters: Counters,
    /// Frames that the kernel or the card had no slot for.
    pub ring_lost: u64,
    /// The counters of each thread.
    pub queues: Vec<Counters>,
    /// The counters of programs in the kernel, which are in the sums too; absent without fast interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast: Option<Counters>,
}

/// Counters of a port, of one thread or all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counters {
    /// Frames received.
    pub received: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received here and sent on by any port, whole or as fragments.
    pub forwarded: u64,
    /// Frames given to the kernel of the machine.
    pub delivered: u64,
    /// Frames for the router itself.
    pub consumed: u64,
    /// Packets dropped, for all reasons together.
    pub dropped: u64,
    /// Frames sent by this port, made by the router or received by any port.
    pub sent: u64,
    /// Bytes sent by this port.
    pub sent_bytes: u64,
    /// Packets that wait for a neighbour now; off by a burst, and perhaps below zero, while packets flow.
    pub waiting: i64,
    /// Packets dropped, by reason.
    pub drops: Counts,
    /// Packets that the router made itself, by kind.
    pub made: Counts,
}

/// Routes of a VRF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VrfStats {
    /// Its name in the configuration.
    pub name: String,
    /// IPv4 routes in its table.
    pub ipv4_routes: u64,
    /// IPv6 routes in its table.
    pub ipv6_routes: u64,
    /// Routes that all feeds together have in it, used or not.
    pub feed_routes: u64,
    /// Most routes that all feeds together may have in it; null if there is no limit.
    #[serde(deserialize_with = "nullable")]
    pub limit: Option<u64>,
}

/// Counters of the slow comparison of RIB, tables and kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyStats {
    /// Prefixes that it may compare a second; 0 if it is off.
    pub rate: u64,
    /// Passes over all prefixes that are complete.
    pub passes: u64,
    /// Prefixes compared between RIB and tables.
    pub compared: u64,
    /// Prefixes compared between the kernel and the RIB.
    pub compared_kernel: u64,
    /// Prefixes that differed.
    pub differences: DifferenceCounts,
    /// Seconds of the main thread that comparisons took.
    pub busy_seconds: f64,
}

/// Prefixes that differed, by the places that were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DifferenceCounts {
    /// Between the RIB and a table.
    #[serde(rename = "rib-fib")]
    pub rib_fib: u64,
    /// Between a table and a lookup in it.
    #[serde(rename = "fib-lookup")]
    pub fib_lookup: u64,
    /// Between the kernel and the RIB.
    #[serde(rename = "kernel-rib")]
    pub kernel_rib: u64,
}

impl DifferenceCounts {
    /// Returns the sum.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.rib_fib + self.fib_lookup + self.kernel_rib
    }
}
