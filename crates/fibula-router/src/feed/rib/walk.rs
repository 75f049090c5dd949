//! Walks the routes a page at a time, for long comparisons.

use fibula::map::IpPrefixMap;
use fibula::net::IpPrefix;
use fibula::rib::DualRib;

use super::Rib;
use crate::feed::Place;
use crate::feed::path::Path;

impl Rib {
    /// Returns whether a change of a prefix waits to be taken. Until then, its table may differ.
    #[must_use]
    pub fn is_waiting(&self, place: Place) -> bool {
        self.everything || self.dirty.contains(&place) || self.taking.contains(&place)
    }

    /// Returns at most `most` prefixes of a VRF after `after`, in order: those for which the configuration or a feed has a route.
    #[must_use]
    pub fn places_after(&self, vrf: usize, after: Option<IpPrefix>, most: usize) -> Vec<IpPrefix> {
        let mut places = Vec::new();
        if let Some(own) = self.own.get(vrf) {
            places.extend(own_after(own, after).take(most));
        }
        for feed in 0..self.feeds.len() {
            places.extend(self.feed_places_after(feed, vrf, after).take(most));
        }
        places.sort_unstable();
        places.dedup();
        places.truncate(most);
        places
    }

    /// Returns the prefixes of a VRF after `after` for which a feed has a route, in order.
    pub fn feed_places_after(
        &self,
        feed: usize,
        vrf: usize,
        after: Option<IpPrefix>,
    ) -> impl Iterator<Item = IpPrefix> {
        let map = self.feeds[feed].vrfs.get(vrf);
        let (all, rest) = match after {
            None => (map.map(IpPrefixMap::keys), None),
            Some(after) => (None, map.map(|map| map.iter_after(after).map(|entry| entry.0))),
        };
        all.into_iter().flatten().chain(rest.into_iter().flatten())
    }

    /// Returns all routes that a feed has for a prefix, by metric. Next-hop objects in their paths are expanded.
    #[must_use]
    pub fn routes_of(&self, feed: usize, place: Place) -> Vec<(u32, Option<Path>)> {
        let routes = self.feeds[feed].of(place).map(|(metric, path)| (metric, self.expand(path)));
        let mut routes: Vec<_> = routes.collect();
        routes.sort_unstable_by_key(|route| route.0);
        routes
    }
}

fn own_after(own: &DualRib, after: Option<IpPrefix>) -> impl Iterator<Item = IpPrefix> {
    let (v4, v6) = match after {
        None => (Some(own.v4.iter()), own.v6.iter()),
        Some(IpPrefix::V4(after)) => (Some(own.v4.iter_after(after)), own.v6.iter()),
        Some(IpPrefix::V6(after)) => (None, own.v6.iter_after(after)),
    };
    let v4 = v4.into_iter().flatten().map(|route| IpPrefix::V4(route.prefix));
    v4.chain(v6.map(|route| IpPrefix::V6(route.prefix)))
}
