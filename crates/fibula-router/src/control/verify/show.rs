//! Shows differences on the control socket, in the log and in the metrics.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use fibula::net::{IpPrefix, NextHop};
use serde::Serialize;

use super::kernel::{self, MetricPaths};
use super::{Found, TableDifference, VerifyCounts};
use crate::api;
use crate::config::Config;
use crate::control::metrics::head;
use crate::control::routes::{next_hop, path};
use crate::feed::Place;
use crate::forward::fabric::Fabric;

/// Names of the three kinds of differences, by the places compared.
const BETWEEN: [&str; 3] = ["rib-fib", "fib-lookup", "kernel-rib"];

/// Names of VRFs and next hops, to show numbers to operators.
#[derive(Debug, Clone)]
pub(super) struct Names<'n> {
    fabric: &'n Arc<Fabric>,
    vrfs: &'n [String],
    devices: &'n BTreeMap<u32, u16>,
}

/// Like [`Names`], for another thread.
#[derive(Debug)]
pub(super) struct OwnedNames {
    fabric: Arc<Fabric>,
    vrfs: Vec<String>,
    devices: BTreeMap<u32, u16>,
}

impl<'n> Names<'n> {
    pub(super) fn new(fabric: &'n Arc<Fabric>, config: &'n Config, devices: &'n BTreeMap<u32, u16>) -> Self {
        Self { fabric, vrfs: &config.vrfs, devices }
    }

    pub(super) fn owned(&self) -> OwnedNames {
        OwnedNames {
            fabric: Arc::clone(self.fabric),
            vrfs: self.vrfs.to_vec(),
            devices: self.devices.clone(),
        }
    }

    /// Returns a difference between RIB, table and lookups.
    pub(super) fn difference(&self, difference: &TableDifference) -> api::Difference {
        let hop = |number: Option<NextHop>| number.and_then(|number| next_hop(self.fabric, number));
        let (vrf, prefix) = self.place(difference.place);
        match difference.found {
            Found::Table { rib, fib } => {
                api::Difference::RibFib { vrf, prefix, rib: hop(rib), fib: hop(fib) }
            }
            Found::Lookup { address, fib, lookup } => {
                api::Difference::FibLookup { vrf, prefix, address, fib: hop(fib), lookup: hop(lookup) }
            }
        }
    }

    /// Returns a difference of kernel and RIB.
    pub(super) fn kernel_difference(
        &self,
        feed: &str,
        difference: &kernel::KernelDifference,
    ) -> api::Difference {
        let (vrf, prefix) = self.place(difference.place);
        let (kernel, rib) = (self.routes(&difference.kernel), self.routes(&difference.rib));
        api::Difference::KernelRib { vrf, prefix, feed: feed.to_owned(), kernel, rib }
    }

    fn place(&self, (vrf, prefix): Place) -> (String, IpPrefix) {
        (self.vrfs.get(usize::from(vrf)).cloned().unwrap_or_default(), prefix)
    }

    fn routes(&self, routes: &MetricPaths) -> Option<Vec<api::MetricRoute>> {
        let route = |(metric, to): &(u32, Option<_>)| api::MetricRoute {
            metric: *metric,
            next_hop: to.as_ref().and_then(|to| path(self.fabric, self.devices, to)),
        };
        (!routes.is_empty()).then(|| routes.iter().map(route).collect())
    }
}

impl OwnedNames {
    /// Returns a difference of kernel and RIB.
    pub(super) fn kernel_difference(
        &self,
        feed: &str,
        difference: &kernel::KernelDifference,
    ) -> api::Difference {
        let Self { fabric, vrfs, devices } = self;
        Names { fabric, vrfs, devices }.kernel_difference(feed, difference)
    }
}

/// Formats a difference as a line for the log.
pub(super) fn line(difference: &api::Difference) -> String {
    use api::Difference::{FibLookup, KernelRib, RibFib};
    let sides = match difference {
        RibFib { rib, fib, .. } => [side("the RIB", rib), side("the table", fib)],
        FibLookup { fib, lookup, .. } => [side("the table", fib), side("a lookup", lookup)],
        KernelRib { kernel, rib, .. } => [side("the kernel", kernel), side("the RIB", rib)],
    };
    format!("VRF {}, {}, {}", difference.vrf(), difference.prefix(), sides.join(", "))
}

/// Formats a side of a difference, with its routes in the form of the control socket.
fn side(name: &str, routes: &Option<impl Serialize>) -> String {
    let routes = routes.as_ref().and_then(|routes| serde_json::to_string(routes).ok());
    format!("{name}: {}", routes.as_deref().unwrap_or("nothing"))
}

impl VerifyCounts {
    /// Returns the counts for the control socket.
    pub(in crate::control) fn stats(&self, rate: u32) -> api::VerifyStats {
        let [rib_fib, fib_lookup, kernel_rib] = self.differences;
        api::VerifyStats {
            rate: rate.into(),
            passes: self.passes,
            compared: self.compared,
            compared_kernel: self.compared_kernel,
            differences: api::DifferenceCounts { rib_fib, fib_lookup, kernel_rib },
            busy_seconds: self.busy_ns as f64 / 1e9,
        }
    }

    /// Appends the counts as metrics.
    pub(in crate::control) fn metrics(&self, out: &mut String) {
        let counters = [
            ("verify_passes_total", "Passes of the comparison of RIB and tables.", self.passes),
            ("verify_compared_total", "Prefixes compared between RIB and tables.", self.compared),
            (
                "verify_compared_kernel_total",
                "Prefixes compared between the kernel and the RIB.",
                self.compared_kernel,
            ),
        ];
        for (name, help, count) in counters {
            head(out, (name, "counter", help));
            let _ = writeln!(out, "fibula_router_{name} {count}");
        }
        head(out, ("verify_differences_total", "counter", "Prefixes that differed, by the places compared."));
        for (between, count) in BETWEEN.iter().zip(self.differences) {
            let _ = writeln!(out, "fibula_router_verify_differences_total{{between=\"{between}\"}} {count}");
        }
        head(out, ("verify_busy_seconds_total", "counter", "Time that comparisons took of the main thread."));
        let _ = writeln!(out, "fibula_router_verify_busy_seconds_total {:.6}", self.busy_ns as f64 / 1e9);
    }
}
