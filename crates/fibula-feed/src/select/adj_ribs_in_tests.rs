//! Best routes as they change, against a model that compares all routes of a prefix each time.

use std::collections::BTreeMap;

use fibula::memory::Limits;
use fibula::net::{IpPrefix, NextHop};

use super::{AdjRibsIn, AdjRibsInError, Rank};
use crate::event::{Action, Announcement, Event, Path, Peer, Time};
use crate::next_hops::{Label, NextHops};
use crate::{LoadOptions, Loader, Selection, Source};

/// Numbers that look random, the same ones in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn event(&mut self) -> Event {
        let asn = 64500 + self.below(6) as u32;
        let peer = Some(Peer { address: [192, 0, 2, asn as u8 % 4].into(), asn }).filter(|_| asn != 64500);
        let prefix: IpPrefix = match self.below(40) {
            at @ 0..30 => format!("10.{at}.0.0/{}", 16 + self.below(2)).parse().unwrap(),
            at => format!("2001:db8:{at}::/48").parse().unwrap(),
        };
        let path = Path { prefix, id: [None, Some(1)][self.below(2) as usize] };
        let action = match self.below(20) {
            0 if self.below(5) == 0 => Action::SessionEnd,
            1 => Action::Nothing,
            2..8 => Action::Withdraw(path),
            _ => Action::Announce(Announcement {
                path,
                next_hop: Label::Number(self.below(9) as u32),
                path_len: [None, Some(2), Some(3), Some(4)][self.below(4) as usize],
                dumped: false,
                attributes: None,
            }),
        };
        Event { time: Time::default(), peer, action }
    }
}

/// Routes by prefix, and by peer and path identifier: the label and the length.
type Model = BTreeMap<IpPrefix, Paths>;
type Paths = BTreeMap<(Option<Peer>, Option<u32>), (Label, Option<u32>)>;

fn follow(model: &mut Model, event: &Event) {
    match &event.action {
        Action::Announce(route) => {
            let routes = model.entry(route.path.prefix).or_default();
            routes.insert((event.peer, route.path.id), (route.next_hop.clone(), route.path_len));
        }
        Action::Withdraw(path) => {
            if let Some(routes) = model.get_mut(&path.prefix) {
                routes.remove(&(event.peer, path.id));
            }
        }
        Action::SessionEnd => {
            model.values_mut().for_each(|routes| routes.retain(|(peer, _), _| *peer != event.peer));
        }
        Action::Nothing => {}
    }
    model.retain(|_, routes| !routes.is_empty());
}

/// Returns the label of the best route of each prefix.
fn best(model: &Model) -> BTreeMap<IpPrefix, Label> {
    let best = |routes: &Paths| {
        let ranked = routes.iter().map(|(&(peer, path_id), (label, path_len))| {
            (Rank { path_len: *path_len, peer, feed: 0, path_id }, label.clone())
        });
        ranked.reduce(|one, other| if one.0.stays(&other.0).0 { one } else { other }).unwrap().1
    };
    model.iter().map(|(&prefix, routes)| (prefix, best(routes))).collect()
}

#[test]
fn the_best_routes_follow_all_events() {
    let (mut numbers, mut model) = (Numbers(5), Model::new());
    let (mut routes, mut next_hops) = (AdjRibsIn::default(), NextHops::default());
    let mut table: BTreeMap<IpPrefix, NextHop> = BTreeMap::new();
    for at in 0..20_000 {
        let event = numbers.event();
        follow(&mut model, &event);
        let each = |prefix, next_hop: Option<NextHop>| {
            let before = match next_hop {
                Some(next_hop) => table.insert(prefix, next_hop),
                None => table.remove(&prefix),
            };
            assert_ne!(before, next_hop, "only what changes is told");
        };
        routes.apply(event, &mut next_hops, each).unwrap();
        let expected = best(&model);
        assert_eq!(routes.routes(), model.values().map(BTreeMap::len).sum::<usize>(), "{at}");
        assert_eq!((routes.prefixes(), table.len()), (expected.len(), expected.len()), "{at}");
        for (&prefix, label) in &expected {
            assert_eq!((table.get(&prefix).copied(), routes.best(prefix)), {
                let next_hop = next_hops.get(label);
                (next_hop, next_hop)
            });
        }
    }
    assert!(routes.memory().allocated_bytes > 0);
}

/// The loader keeps candidates in its own way (docs/adr/0018-where-a-route-is-kept.md), by the same rules.
#[test]
fn a_loader_has_the_same_best_routes() {
    let mut numbers = Numbers(8);
    let mut text = String::new();
    for second in 0..4_000 {
        let peer = 1 + numbers.below(6);
        let prefix = format!("10.{}.0.0/{}", numbers.below(30), 16 + numbers.below(2));
        if numbers.below(3) == 0 {
            text += &format!("{second} w {prefix} - 192.0.2.{peer} {} -\n", 64500 + peer);
        } else {
            let path = "64600 ".repeat(1 + numbers.below(3) as usize);
            let next_hop = numbers.below(9);
            text += &format!(
                "{second} a {prefix} 198.51.100.{next_hop} 192.0.2.{peer} {} {path}\n",
                64500 + peer
            );
        }
    }
    let source = || Source::reader("updates.txt", text.as_bytes());
    let options = LoadOptions { selection: Selection::Best, ..LoadOptions::default() };
    let loaded = Loader::new(options.clone()).load(source()).unwrap();
    let (mut routes, mut next_hops) = (AdjRibsIn::default(), NextHops::default());
    let follow = |event| routes.apply(event, &mut next_hops, |_, _| ()).map_err(std::io::Error::other);
    Loader::new(options).events(source(), follow).unwrap();
    assert!(loaded.ribs.len() > 30);
    assert_eq!(loaded.ribs.len(), routes.prefixes());
    for (prefix, next_hop) in loaded.ribs.iter() {
        let best = routes.best(prefix).and_then(|best| next_hops.label(best));
        assert_eq!(best, loaded.next_hops.label(next_hop), "{prefix}");
    }
}

#[test]
fn refused_events_change_nothing() {
    let (mut numbers, mut refused) = (Numbers(6), 0);
    for limit in (2_000..60_000).step_by(500) {
        let mut routes = AdjRibsIn::new(Limits { memory_bytes: Some(limit), ..Limits::default() });
        let (mut next_hops, mut model) = (NextHops::default(), Model::new());
        for _ in 0..300 {
            let event = numbers.event();
            match routes.apply(event.clone(), &mut next_hops, |_, _| ()) {
                Ok(()) => follow(&mut model, &event),
                Err(AdjRibsInError::Memory(_)) => refused += 1,
                Err(error) => panic!("{error}"),
            }
            assert!(routes.memory().allocated_bytes <= limit);
            assert_eq!(routes.routes(), model.values().map(BTreeMap::len).sum::<usize>());
            for (prefix, label) in best(&model) {
                assert_eq!(routes.best(prefix), next_hops.get(&label));
            }
        }
    }
    assert!(refused > 0);
}
