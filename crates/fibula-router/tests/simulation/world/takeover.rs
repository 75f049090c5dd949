//! A router that takes over: it has the routes of the other one's sessions, and nothing else of it.

use std::collections::BTreeMap;

use fibula::net::IpPrefix;
use fibula_router::feed::{Choice, Path, lock};

use super::{World, ZEBRA};
use crate::oracle::{self, Answer};
use crate::random::Random;

/// Where a router leads by a route of a session: the path, and what that means with its interfaces.
type Taken = BTreeMap<(u16, IpPrefix), (Path, Option<Answer>)>;

impl World {
    /// Another router takes over, at whatever this one was. It copies the routes that are used, its feeds begin anew, and zebra has no
    /// session with it yet.
    pub fn take_over(&mut self) {
        let (taken, is_settled) = (self.used(), !self.is_stale && !lock(&self.rib).is_dirty());
        let seed = self.random.next();
        let mut next = Self::new(seed, self.is_traced);
        next.random = Random::new(seed);
        next.now_ns = self.now_ns;
        std::mem::swap(&mut next.kernel, &mut self.kernel);
        std::mem::swap(&mut next.zebra, &mut self.zebra);
        (next.zebra.session, next.zebra.left) = (None, None);
        next.kernel.open();
        {
            let mut rib = lock(&next.rib);
            for (place, (path, _)) in &taken {
                // What is beyond a limit is refused.
                let _ = rib.insert(ZEBRA, *place, 0, path.clone());
            }
            rib.feed(ZEBRA).state.has_table = true;
        }
        next.sessions.inherit(&next.rib, next.now_ns);
        std::mem::replace(self, next).end();
        let took = (0..50).any(|_| self.turn(16) && !lock(&self.rib).is_dirty());
        if !took || !is_settled || lock(&self.rib).feeds()[ZEBRA].state.is_overrun {
            return;
        }
        let now = self.used();
        for (place, (_, before)) in &taken {
            if self.may_lack(&lock(&self.rib), ZEBRA, place.0) {
                continue;
            }
            assert_eq!(
                now.get(place).map(|now| &now.1),
                Some(before),
                "the router that has taken over has another route for {place:?}"
            );
        }
    }

    /// Returns the routes of zebra that are used.
    fn used(&self) -> Taken {
        let rib = lock(&self.rib);
        let places = (0..2).flat_map(|vrf| self.prefixes.iter().map(move |&prefix| (vrf, prefix)));
        let used = places.filter_map(|place| {
            let Some((Some(ZEBRA), Choice::Path(path))) = rib.choice(place) else { return None };
            let number = self.vrfs[usize::from(place.0)].table.get(place.1).unwrap();
            let answer = number.and_then(|number| oracle::meaning(&self.fabric, number));
            Some((place, (rib.expand(path)?, answer)))
        });
        used.collect()
    }
}
