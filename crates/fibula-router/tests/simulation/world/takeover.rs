//! A router that takes over: it has the routes of the other one's sessions, and nothing else of it.

use std::collections::BTreeMap;

use fibula::net::IpPrefix;
use fibula_router::feed::{Choice, Path, lock};

use super::{COLLECTOR, World, ZEBRA};
use crate::oracle::{self, Answer};
use crate::random::Random;

/// Where a router leads by a route of a session: the feed, the path, and what that means with its interfaces.
type Taken = BTreeMap<(u16, IpPrefix), (usize, Path, Option<Answer>)>;

impl World {
    /// Another router takes over, at whatever this one was. It copies the routes that are used, its feeds begin anew, and nobody has a
    /// session with it yet.
    pub fn take_over(&mut self) {
        let (taken, is_settled) = (self.used(), !self.is_stale && !lock(&self.rib).is_dirty());
        let mut next = self.next();
        {
            let mut rib = lock(&next.rib);
            for (place, (feed, path, _)) in &taken {
                // What is beyond a limit is refused.
                let _ = rib.insert(*feed, *place, 0, path.clone());
            }
            for feed in [ZEBRA, COLLECTOR] {
                rib.feed(feed).state.has_table = true;
            }
        }
        (next.inherited[ZEBRA], next.inherited[COLLECTOR]) = (true, true);
        next.sessions.inherit(&next.rib, next.now_ns);
        next.monitored.inherit(&next.rib, next.now_ns);
        std::mem::replace(self, next).end();
        let took = (0..50).any(|_| self.turn(16) && !lock(&self.rib).is_dirty());
        if !took
            || !is_settled
            || [ZEBRA, COLLECTOR].map(|feed| lock(&self.rib).feeds()[feed].state.is_overrun).contains(&true)
        {
            return;
        }
        let now = self.used();
        for (place, (feed, _, before)) in &taken {
            if self.may_lack(&lock(&self.rib), *feed, place.0) {
                continue;
            }
            assert_eq!(
                now.get(place).map(|now| &now.2),
                Some(before),
                "the router that has taken over has another route for {place:?}"
            );
        }
    }

    /// The router stops, at whatever it was, and another one starts that knows nothing of it.
    pub fn start_again(&mut self) {
        let next = self.next();
        std::mem::replace(self, next).end();
    }

    /// Returns a router that begins in the world of this one, and leaves this one without.
    fn next(&mut self) -> Self {
        let seed = self.random.next();
        let mut next = Self::new(seed, self.is_traced);
        next.random = Random::new(seed);
        next.now_ns = self.now_ns;
        std::mem::swap(&mut next.kernel, &mut self.kernel);
        std::mem::swap(&mut next.zebra, &mut self.zebra);
        std::mem::swap(&mut next.collector, &mut self.collector);
        std::mem::swap(&mut next.archive, &mut self.archive);
        (next.zebra.session, next.zebra.left, next.collector.session) = (None, None, None);
        next.kernel.open();
        next.replay = next.archive.replay();
        next
    }

    /// Returns the routes of sessions that are used.
    fn used(&self) -> Taken {
        let rib = lock(&self.rib);
        let places = (0..2).flat_map(|vrf| self.prefixes.iter().map(move |&prefix| (vrf, prefix)));
        let used = places.filter_map(|place| {
            let Some((Some(feed @ (ZEBRA | COLLECTOR)), Choice::Path(path))) = rib.choice(place) else {
                return None;
            };
            let number = self.vrfs[usize::from(place.0)].table.get(place.1).unwrap();
            let answer = number.and_then(|number| oracle::meaning(&self.fabric, number));
            Some((place, (feed, rib.expand(path)?, answer)))
        });
        used.collect()
    }
}
