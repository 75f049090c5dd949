//! Comparisons of RIB, tables and kernel.

use std::net::IpAddr;

use fibula::net::IpPrefix;
use serde::{Deserialize, Serialize};

use super::{MissingInterface, NextHop, nullable};

/// Result of a comparison of everything: the answer to `verify`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Prefixes compared between RIB and tables.
    pub compared: u64,
    /// Prefixes compared between the kernel and the RIB.
    pub compared_kernel: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// The differences, up to a limit.
    pub differences: Vec<Difference>,
    /// Differences past the limit.
    pub more_differences: u64,
    /// Places that could not be compared, each with the reason.
    pub not_compared: Vec<String>,
    /// Interfaces of the router whose devices are missing; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_interfaces: Vec<MissingInterface>,
}

impl Comparison {
    /// Returns the number of differences, those past the limit included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.differences.len() as u64 + self.more_differences
    }

    /// Returns whether everything was compared and nothing differs.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.count() == 0 && self.not_compared.is_empty()
    }
}

/// A prefix that two places have different routes of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "between")]
pub enum Difference {
    /// The RIB and a table.
    #[serde(rename = "rib-fib")]
    RibFib {
        /// Name of the VRF.
        vrf: String,
        /// The prefix.
        prefix: IpPrefix,
        /// Where the RIB's route leads; null if it has none.
        #[serde(deserialize_with = "nullable")]
        rib: Option<NextHop>,
        /// Where the table's route leads; null if it has none.
        #[serde(deserialize_with = "nullable")]
        fib: Option<NextHop>,
    },
    /// A table and a lookup in it.
    #[serde(rename = "fib-lookup")]
    FibLookup {
        /// Name of the VRF.
        vrf: String,
        /// The prefix.
        prefix: IpPrefix,
        /// The address of the prefix that was looked up.
        address: IpAddr,
        /// Where the table's route leads; null if it has none.
        #[serde(deserialize_with = "nullable")]
        fib: Option<NextHop>,
        /// Where the route leads that the lookup found; null if it found none.
        #[serde(deserialize_with = "nullable")]
        lookup: Option<NextHop>,
    },
    /// The kernel and the RIB.
    #[serde(rename = "kernel-rib")]
    KernelRib {
        /// Name of the VRF.
        vrf: String,
        /// The prefix.
        prefix: IpPrefix,
        /// Name of the feed that follows the kernel.
        feed: String,
        /// The kernel's routes; null if it has none.
        #[serde(deserialize_with = "nullable")]
        kernel: Option<Vec<MetricRoute>>,
        /// The RIB's routes of this feed; null if it has none.
        #[serde(deserialize_with = "nullable")]
        rib: Option<Vec<MetricRoute>>,
    },
}

impl Difference {
    /// Returns the name of the VRF.
    #[must_use]
    pub fn vrf(&self) -> &str {
        match self {
            Self::RibFib { vrf, .. } | Self::FibLookup { vrf, .. } | Self::KernelRib { vrf, .. } => vrf,
        }
    }

    /// Returns the prefix.
    #[must_use]
    pub const fn prefix(&self) -> IpPrefix {
        match *self {
            Self::RibFib { prefix, .. } | Self::FibLookup { prefix, .. } | Self::KernelRib { prefix, .. } => {
                prefix
            }
        }
    }
}

/// One of several routes of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricRoute {
    /// Its metric: the route with the lowest is used.
    pub metric: u32,
    /// Where it leads; null if it leads nowhere that the router knows.
    #[serde(deserialize_with = "nullable")]
    pub next_hop: Option<NextHop>,
}
