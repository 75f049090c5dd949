//! Differences as the control socket, the log and the metrics show them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use fibula::net::NextHop;
use serde_json::{Map, Value, json};

use super::kernel::{self, Routes};
use super::{Counts, Difference, Found};
use crate::config::Config;
use crate::control::metrics::head;
use crate::control::routes::{next_hop, path};
use crate::feed::Place;
use crate::forward::fabric::Fabric;

/// What the three kinds of differences are between.
const BETWEEN: [&str; 3] = ["rib-fib", "fib-lookup", "kernel-rib"];

/// What numbers are called.
#[derive(Debug, Clone)]
pub(super) struct Names<'n> {
    fabric: &'n Arc<Fabric>,
    vrfs: &'n [String],
    devices: &'n BTreeMap<u32, u16>,
}

/// The same, for another thread.
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

    /// Returns a difference of RIB, table and lookups.
    pub(super) fn difference(&self, difference: &Difference) -> Value {
        let hop =
            |number: Option<NextHop>| number.map_or(Value::Null, |number| next_hop(self.fabric, number));
        match difference.found {
            Found::Table { rib, fib } => {
                let mut value = self.head(BETWEEN[0], difference.place);
                value["rib"] = hop(rib);
                value["fib"] = hop(fib);
                value
            }
            Found::Lookup { address, fib, lookup } => {
                let mut value = self.head(BETWEEN[1], difference.place);
                value["address"] = address.to_string().into();
                value["fib"] = hop(fib);
                value["lookup"] = hop(lookup);
                value
            }
        }
    }

    /// Returns a difference of kernel and RIB.
    pub(super) fn kernel_difference(&self, feed: &str, difference: &kernel::Difference) -> Value {
        let mut value = self.head(BETWEEN[2], difference.place);
        value["feed"] = feed.into();
        value["kernel"] = self.routes(&difference.kernel);
        value["rib"] = self.routes(&difference.rib);
        value
    }

    fn head(&self, between: &str, (vrf, prefix): Place) -> Value {
        let name = self.vrfs.get(usize::from(vrf)).map_or("", String::as_str);
        json!({ "between": between, "vrf": name, "prefix": prefix.to_string() })
    }

    fn routes(&self, routes: &Routes) -> Value {
        let route = |(metric, to): &(u32, Option<_>)| {
            let to = to.as_ref().map_or(Value::Null, |to| path(self.fabric, self.devices, to));
            json!({ "metric": metric, "next_hop": to })
        };
        if routes.is_empty() { Value::Null } else { routes.iter().map(route).collect() }
    }
}

impl OwnedNames {
    /// Returns a difference of kernel and RIB.
    pub(super) fn kernel_difference(&self, feed: &str, difference: &kernel::Difference) -> Value {
        let Self { fabric, vrfs, devices } = self;
        Names { fabric, vrfs, devices }.kernel_difference(feed, difference)
    }
}

/// Returns a difference in a line for the log.
pub(super) fn line(difference: &Value) -> String {
    let text = |name: &str| difference[name].as_str().unwrap_or_default();
    let mut line = format!("VRF {}, {}", text("vrf"), text("prefix"));
    let sides = [("kernel", "the kernel"), ("rib", "the RIB"), ("fib", "the table"), ("lookup", "a lookup")];
    for (name, side) in sides {
        match difference.get(name) {
            Some(Value::Null) => _ = write!(line, ", {side}: nothing"),
            Some(value) => _ = write!(line, ", {side}: {value}"),
            None => {}
        }
    }
    line
}

impl Counts {
    /// Returns the counts for the control socket.
    pub(in crate::control) fn json(&self, rate: u32) -> Value {
        let differences: Map<String, Value> = BETWEEN
            .iter()
            .zip(self.differences)
            .map(|(name, count)| ((*name).into(), count.into()))
            .collect();
        json!({
            "rate": rate,
            "passes": self.passes,
            "compared": self.compared,
            "compared_kernel": self.compared_kernel,
            "differences": differences,
            "busy_seconds": self.busy_ns as f64 / 1e9,
        })
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
