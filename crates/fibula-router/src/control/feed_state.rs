//! Feeds as the control socket and the metrics show them.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::Router;
use super::metrics::{head, quoted};
use crate::feed::state::Count;
use crate::kernel::sys;

const SECOND_NS: u64 = 1_000_000_000;

/// Answers with the state of all feeds.
pub(super) fn feeds(router: &Router<'_>) -> Value {
    let now_ns = sys::now_ns();
    let ago = |then_ns: u64| now_ns.saturating_sub(then_ns) / SECOND_NS;
    let rib = router.feeds.rib();
    let feeds = router.config.feeds.iter().zip(rib.feeds()).enumerate().map(|(number, (config, feed))| {
        let state = &feed.state;
        let counts: Map<String, Value> =
            Count::ALL.iter().map(|&count| (count.name().into(), state.counted(count).into())).collect();
        let mut value = json!({
            "name": feed.name,
            "kind": config.kind.name(),
            "distance": feed.distance,
            "state": state.phase.name(),
            "state_seconds": ago(state.since_ns),
            "overrun": state.is_overrun,
            "routes": feed.len(),
            "unresolved": rib.unresolved(number),
            "next_hop_objects": feed.objects(),
            "limit": feed.limit,
            "changes_per_second": state.rate(),
            "counts": counts,
            "last_error": state.last_error.as_ref().map(|error| &error.1),
            "last_error_seconds_ago": state.last_error.as_ref().map(|error| ago(error.0)),
        });
        if !state.full_vrfs.is_empty() {
            let vrf = |vrf: &u16| {
                let vrf = usize::from(*vrf);
                json!({ "name": router.config.vrfs.get(vrf), "limit": rib.vrf_limit(vrf) })
            };
            value["full_vrfs"] = state.full_vrfs.iter().map(vrf).collect();
        }
        if !state.rules.is_empty() {
            value["rules_not_heeded"] = state.rules.clone().into();
        }
        if let Some(server) = config.kind.server() {
            value["listen"] = server.listen.to_string().into();
        }
        if let Some(answers) = &feed.answers {
            value["acknowledgements"] = json!({ "waiting": answers.waiting(), "ready": answers.ready() });
        }
        for (name, number) in [("peers", state.peers), ("peer_routes", state.peer_routes)] {
            if let Some(number) = number {
                value[name] = number.into();
            }
        }
        value
    });
    feeds.collect()
}

/// Appends the metrics of all feeds.
pub(super) fn metrics(out: &mut String, router: &Router<'_>) {
    if router.config.feeds.is_empty() {
        return;
    }
    let rib = router.feeds.rib();
    head(out, ("feed_routes", "gauge", "Routes of a feed."));
    for feed in rib.feeds() {
        let _ = writeln!(out, "fibula_router_feed_routes{{feed=\"{}\"}} {}", quoted(&feed.name), feed.len());
    }
    head(out, ("feed_state", "gauge", "State of a feed: 1 at the one that it is in."));
    for feed in rib.feeds() {
        let (name, state) = (quoted(&feed.name), feed.state.phase.name());
        let _ = writeln!(out, "fibula_router_feed_state{{feed=\"{name}\",state=\"{state}\"}} 1");
    }
    head(out, ("feed_events_total", "counter", "What feeds count, by kind."));
    for feed in rib.feeds() {
        for count in Count::ALL {
            let (name, kind, counted) = (quoted(&feed.name), count.name(), feed.state.counted(count));
            let _ =
                writeln!(out, "fibula_router_feed_events_total{{feed=\"{name}\",kind=\"{kind}\"}} {counted}");
        }
    }
}
