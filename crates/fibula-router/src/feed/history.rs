//! The last changes of routes, for operators: a ring of bounded memory.

use std::collections::VecDeque;

use super::Place;
use super::path::Path;
use crate::config::HISTORY;

/// Most ways of a path that are recorded.
const MOST_WAYS: usize = 16;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The route is new.
    Inserted,
    /// The route leads elsewhere than before.
    Replaced,
    /// Its feed has removed the route.
    Removed,
    /// Its feed has not sent the route again.
    Swept,
    /// Its feed did not come back in time.
    Expired,
    /// The route was refused, because a limit was reached.
    Refused,
}

/// A change of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteEvent {
    /// Time of the change.
    pub at_ns: u64,
    /// Number of the feed; `None`: the configuration, or the machine's interfaces.
    pub feed: Option<usize>,
    /// Kind of the change.
    pub what: What,
    /// The prefix, in its VRF.
    pub place: Place,
    /// Its metric.
    pub metric: u32,
    /// The path of the route after the change, or before it if the route is gone. Of more than 16 ways, the first ones are kept.
    /// `None` if the path was not recorded.
    pub path: Option<Path>,
}

/// The last changes.
#[derive(Debug)]
pub struct History {
    ring: VecDeque<RouteEvent>,
    most: usize,
    now_ns: u64,
}

impl Default for History {
    fn default() -> Self {
        Self::new(HISTORY)
    }
}

impl History {
    /// Creates an empty history of at most `most` changes. It allocates memory as it fills.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { ring: VecDeque::new(), most, now_ns: 0 }
    }

    pub(super) const fn set_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    pub(super) fn record(
        &mut self,
        feed: Option<usize>,
        what: What,
        place: Place,
        metric: u32,
        path: Option<&Path>,
    ) {
        if self.most == 0 {
            return;
        }
        if self.ring.len() >= self.most {
            self.ring.pop_front();
        }
        let path = path.map(|path| match path {
            Path::Ways(ways) if ways.len() > MOST_WAYS => Path::Ways(ways[..MOST_WAYS].into()),
            path => path.clone(),
        });
        self.ring.push_back(RouteEvent { at_ns: self.now_ns, feed, what, place, metric, path });
    }

    /// Records many changes. Only the last ones are kept.
    pub(super) fn record_all<'p>(
        &mut self,
        feed: Option<usize>,
        what: What,
        events: impl ExactSizeIterator<Item = (Place, u32, Option<&'p Path>)>,
    ) {
        let skip = events.len().saturating_sub(self.most);
        for (place, metric, path) in events.skip(skip) {
            self.record(feed, what, place, metric, path);
        }
    }

    /// Returns the changes, latest first.
    pub fn events(&self) -> impl Iterator<Item = &RouteEvent> {
        self.ring.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ChangeKind;
    use crate::feed::Rib;
    use crate::feed::path::{self, Out, Way};
    use crate::feed::routes::Routes;
    use crate::feed::state::Count;

    fn place(text: &str) -> Place {
        (0, text.parse().unwrap())
    }

    fn to(device: u32) -> Path {
        Path::Ways([Way::new(None, Out::Device(device))].into())
    }

    fn told(rib: &Rib) -> Vec<(u64, &'static str, String, Option<Path>)> {
        let event = |event: &RouteEvent| {
            let word = ChangeKind::from(event.what).name();
            (event.at_ns, word, event.place.1.to_string(), event.path.clone())
        };
        rib.history().events().map(event).collect()
    }

    #[test]
    fn every_change_is_noted_and_nothing_else() {
        let mut rib = Rib::new(vec![Routes::new("feed", 20, 2, 1)]);
        let (one, two, three) = (place("10.1.0.0/16"), place("10.2.0.0/16"), place("10.3.0.0/16"));
        rib.set_time(1);
        rib.insert(0, one, 0, to(1)).unwrap();
        rib.insert(0, one, 0, to(1)).unwrap();
        rib.set_time(2);
        rib.insert(0, one, 0, to(2)).unwrap();
        rib.insert(0, two, 0, Path::Blackhole).unwrap();
        rib.insert(0, three, 0, to(1)).unwrap_err();
        rib.remove(0, two, Some(0));
        rib.remove(0, two, Some(0));
        rib.set_time(3);
        rib.begin(0);
        assert_eq!(rib.sweep(0, None, Count::Swept), 1);
        let names = ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"].map(str::to_owned);
        let [one, two, three] = names;
        assert_eq!(
            told(&rib),
            [
                (3, "swept", one.clone(), Some(to(2))),
                (2, "removed", two.clone(), Some(Path::Blackhole)),
                (2, "refused", three, None),
                (2, "inserted", two, Some(Path::Blackhole)),
                (2, "replaced", one.clone(), Some(to(2))),
                (1, "inserted", one, Some(to(1))),
            ]
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut rib = Rib::new(vec![Routes::new("feed", 20, 1000, 1)]);
        rib.keep_history(3);
        let ways: Vec<_> = (1..100).map(|device| Way::new(None, Out::Device(device))).collect();
        for n in 0..10 {
            rib.insert(0, place(&format!("10.{n}.0.0/16")), 0, Path::Ways(ways.clone().into())).unwrap();
        }
        let prefixes: Vec<_> = told(&rib).into_iter().map(|event| event.2).collect();
        assert_eq!(prefixes, ["10.9.0.0/16", "10.8.0.0/16", "10.7.0.0/16"]);
        let Some(Path::Ways(kept)) = &told(&rib)[0].3 else { panic!() };
        assert_eq!((kept.len(), path::shares(kept).len()), (MOST_WAYS, MOST_WAYS));
        rib.expire(0, 1);
        assert_eq!(told(&rib).iter().filter(|event| event.1 == "expired").count(), 3);
        rib.keep_history(0);
        rib.insert(0, place("10.0.0.0/16"), 0, to(1)).unwrap();
        assert!(told(&rib).is_empty());
    }
}
