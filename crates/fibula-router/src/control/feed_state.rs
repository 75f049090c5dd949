//! Shows feeds on the control socket and in the metrics.

use std::fmt::Write as _;

use super::Router;
use super::metrics::{head, quoted};
use crate::api;
use crate::config::FeedKind;
use crate::feed::state::{Count, Phase};
use crate::kernel::sys;

const SECOND_NS: u64 = 1_000_000_000;

/// Answers with the state of all feeds.
pub(super) fn feeds(router: &Router<'_>) -> Vec<api::Feed> {
    let (now_ns, missing) = (sys::now_ns(), router.missing());
    let ago = |then_ns: u64| now_ns.saturating_sub(then_ns) / SECOND_NS;
    let rib = router.feeds.rib();
    let feeds = router.config.feeds.iter().zip(rib.feeds()).enumerate().map(|(number, (config, feed))| {
        let state = &feed.state;
        let full = |&vrf: &u16| {
            let vrf = usize::from(vrf);
            let limit = rib.vrf_limit(vrf).map(|limit| limit as u64);
            api::FullVrf { name: router.config.vrfs.get(vrf).cloned(), limit }
        };
        let answers = feed.answers.as_ref();
        api::Feed {
            name: feed.name.clone(),
            kind: (&config.kind).into(),
            distance: feed.distance,
            state: state.phase.into(),
            state_seconds: ago(state.since_ns),
            overrun: state.is_overrun,
            lacks_memory: state.lacks_memory,
            routes: feed.len() as u64,
            unresolved: rib.unresolved(number) as u64,
            next_hop_objects: feed.objects() as u64,
            limit: feed.limit as u64,
            changes_per_second: state.rate(),
            counts: Count::ALL.iter().map(|&count| (count.name(), state.counted(count))).collect(),
            last_error: state.last_error.as_ref().map(|error| error.1.clone()),
            last_error_seconds_ago: state.last_error.as_ref().map(|error| ago(error.0)),
            full_vrfs: state.full_vrfs.iter().map(full).collect(),
            rules_not_heeded: state.rules.clone(),
            listen: config.kind.server().map(|server| server.listen),
            acknowledgements: answers.map(|answers| api::Acknowledgements {
                waiting: answers.waiting() as u64,
                ready: answers.ready() as u64,
            }),
            missing_interfaces: missing.clone(),
            peers: state.peers.map(|peers| peers as u64),
            peer_routes: state.peer_routes.map(|routes| routes as u64),
        }
    });
    feeds.collect()
}

impl From<&FeedKind> for api::FeedKind {
    fn from(kind: &FeedKind) -> Self {
        match kind {
            FeedKind::Fpm { .. } => Self::Fpm,
            FeedKind::Kernel { .. } => Self::Kernel,
            FeedKind::Bmp { .. } => Self::Bmp,
            FeedKind::Mrt { .. } => Self::Mrt,
        }
    }
}

impl From<Phase> for api::FeedPhase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Waiting => Self::Waiting,
            Phase::Synchronising => Self::Synchronising,
            Phase::Established => Self::Established,
            Phase::Kept => Self::Kept,
            Phase::Down => Self::Down,
        }
    }
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
        let (name, state) = (quoted(&feed.name), api::FeedPhase::from(feed.state.phase).name());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_the_configuration() {
        assert_eq!(api::FeedKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>(), FeedKind::NAMES);
    }
}
