//! Enters the messages of a feed into the RIB.

use super::netlink::{Message, RouteMessage, Target};
use super::path::{Out, Path};
use super::routes::{Effect, Full};
use super::state::Count;
use super::{Place, Rib};

/// How to interpret the messages of a feed.
#[derive(Debug, Clone)]
pub struct Entrance {
    /// Number of the feed in the RIB.
    pub feed: usize,
    /// The VRF of each of the kernel's tables.
    pub tables: Vec<(u32, u16)>,
    /// Whether a prefix may have a route for each metric, as in the kernel. Otherwise it has at most one.
    pub has_metrics: bool,
}

impl Entrance {
    /// Returns the VRF and prefix of a route, if a VRF is mapped to its table.
    #[must_use]
    pub fn place(&self, route: &RouteMessage) -> Option<Place> {
        let vrf = self.tables.iter().find(|table| table.0 == route.table)?.1;
        Some((vrf, route.prefix))
    }

    /// Returns the metric that distinguishes routes of the same prefix.
    #[must_use]
    pub const fn metric(&self, route: &RouteMessage) -> u32 {
        if self.has_metrics { route.metric } else { 0 }
    }

    /// Returns the path of a target.
    #[must_use]
    pub fn path(&self, vrf: u16, target: Target) -> Path {
        match target {
            Target::Object(id) => Path::Object { feed: self.feed as u16, id },
            Target::Path(Path::Ways(mut ways)) => {
                for way in &mut ways {
                    if let Out::Near(near) = &mut way.out {
                        *near = vrf;
                    }
                }
                Path::Ways(ways)
            }
            Target::Path(path) => path,
        }
    }

    /// Enters a message. Returns the effect on its route, if the message is about a route of a VRF.
    ///
    /// # Errors
    /// When there is no room for a route or an object.
    pub fn message(&self, rib: &mut Rib, message: Message) -> Result<Option<Effect>, Full> {
        let state = &mut rib.feed(self.feed).state;
        state.count(Count::Messages, 1);
        match message {
            Message::Route(route) => {
                let Some(place) = self.place(&route) else {
                    state.count(Count::OtherTable, 1);
                    return Ok(None);
                };
                let metric = self.metric(&route);
                let Some(target) = route.target else {
                    // The new route replaces an earlier one, even though it cannot be used. It is no surprise if there was none.
                    state.count(Count::Unsupported, 1);
                    let effect = rib.remove(self.feed, place, Some(metric));
                    return Ok(Some(if effect == Effect::Unexpected { Effect::Same } else { effect }));
                };
                let path = self.path(place.0, target);
                rib.insert(self.feed, place, metric, path).map(Some)
            }
            Message::RouteGone(route) => {
                let Some(place) = self.place(&route) else {
                    state.count(Count::OtherTable, 1);
                    return Ok(None);
                };
                let metric = self.has_metrics.then_some(route.metric);
                Ok(Some(rib.remove(self.feed, place, metric)))
            }
            Message::Object(id, Some(object)) => rib.set_object(self.feed, id, object).map(|()| None),
            Message::Object(id, None) => {
                state.count(Count::Unsupported, 1);
                rib.remove_object(self.feed, id);
                Ok(None)
            }
            Message::ObjectGone(id) => {
                rib.remove_object(self.feed, id);
                Ok(None)
            }
            Message::Other => {
                state.count(Count::Skipped, 1);
                Ok(None)
            }
            Message::Malformed => {
                state.count(Count::Malformed, 1);
                Ok(None)
            }
        }
    }
}
