use super::*;
use std::net::IpAddr;

use crate::feed::Out;
use crate::feed::path::shares;

fn place(text: &str) -> Place {
    (0, text.parse().unwrap())
}

fn via(last: u8) -> Path {
    Path::Ways(Box::new([Way::new(Some(IpAddr::from([10, 0, 0, last])), Out::Device(1))]))
}

fn rib() -> Rib {
    Rib::new(vec![Routes::new("far", 200, 4, 1), Routes::new("near", 20, 100, 1)])
}

/// Activates everything that is new, and takes all changes.
fn turn(rib: &mut Rib) -> Vec<(String, Option<Path>)> {
    for number in rib.take_fresh() {
        let active = rib.expand(number).is_some();
        rib.set_fresh(number, active);
    }
    if rib.take_objects_changed() {
        let paths: Vec<_> =
            rib.paths(true).into_iter().map(|number| (number, rib.expand(number).is_some())).collect();
        rib.set_active(paths);
    }
    let mut all = Vec::new();
    while rib.is_dirty() {
        for (place, choice) in rib.take(2) {
            let path = match choice {
                Some(Choice::Path(number)) => rib.expand(number),
                Some(Choice::Own(number)) => Some(via(number.id() as u8)),
                None => None,
            };
            all.push((place.1.to_string(), path));
        }
    }
    all
}

#[test]
fn the_origin_is_that_of_the_route_in_use_or_of_another_of_its_prefix() {
    let (mut rib, net) = (rib(), place("192.0.2.0/24"));
    let origin = |rib: &mut Rib| {
        turn(rib);
        rib.origin_of(net)
    };
    assert_eq!(origin(&mut rib), 0);
    rib.insert_from(0, net, 0, via(1), 64_500).unwrap();
    assert_eq!(origin(&mut rib), 64_500);
    rib.insert(1, net, 0, via(2)).unwrap();
    assert_eq!(origin(&mut rib), 64_500, "the nearer feed has no AS paths");
    rib.insert_from(1, net, 0, via(2), 64_501).unwrap();
    assert_eq!(origin(&mut rib), 64_501);
    rib.remove(1, net, None);
    assert_eq!(origin(&mut rib), 64_500);
    // Feeds do not know whose the machine's own networks are.
    let mut own = DualRib::default();
    own.insert(net.1, NextHop::new(9).unwrap()).unwrap();
    rib.set_own(vec![own]);
    assert_eq!(origin(&mut rib), 0);
    assert_eq!(rib.origin_of(place("198.51.100.0/24")), 0);
}

#[test]
fn the_nearest_feed_that_leads_somewhere_counts() {
    let mut rib = rib();
    let net = place("192.0.2.0/24");
    rib.insert(0, net, 0, via(1)).unwrap();
    assert_eq!(turn(&mut rib), [("192.0.2.0/24".into(), Some(via(1)))]);
    rib.insert(1, net, 0, via(2)).unwrap();
    assert_eq!(turn(&mut rib), [("192.0.2.0/24".into(), Some(via(2)))]);
    let mut own = DualRib::default();
    own.insert(net.1, NextHop::new(9).unwrap()).unwrap();
    rib.set_own(vec![own.clone()]);
    assert_eq!(turn(&mut rib), [("192.0.2.0/24".into(), Some(via(9)))]);
    rib.set_own(vec![own]);
    assert_eq!(turn(&mut rib), [], "nothing new");
    rib.set_own(vec![DualRib::default()]);
    assert_eq!(turn(&mut rib).len(), 1);
    // A removal and an insertion at once are one change. A route that is sent again unchanged is none.
    rib.remove(1, net, None);
    rib.insert(1, net, 0, via(3)).unwrap();
    assert_eq!(turn(&mut rib), [("192.0.2.0/24".into(), Some(via(3)))]);
    rib.insert(1, net, 0, via(3)).unwrap();
    assert_eq!(turn(&mut rib), []);
    let near = rib.paths(false);
    rib.set_active(near.iter().map(|&number| (number, rib_is(&rib, number) != via(3))).collect::<Vec<_>>());
    assert_eq!(turn(&mut rib), [("192.0.2.0/24".into(), Some(via(1)))], "the other leads nowhere now");
    assert_eq!((rib.unresolved(0), rib.unresolved(1)), (0, 1));
    assert_eq!(rib.all(0, |path| NextHop::new(path + 1)).unwrap().len(), 1);
}

fn rib_is(rib: &Rib, number: u32) -> Path {
    rib.expand(number).unwrap()
}

#[test]
fn metrics_of_a_prefix_are_routes_of_their_own() {
    let mut rib = rib();
    let net = place("2001:db8::/32");
    for (metric, last) in [(20, 2), (10, 1), (30, 3)] {
        rib.insert(0, net, metric, via(last)).unwrap();
    }
    assert_eq!(turn(&mut rib), [("2001:db8::/32".into(), Some(via(1)))]);
    assert_eq!(rib.feeds()[0].len(), 3);
    assert_eq!(rib.remove(0, net, Some(30)), Effect::Same);
    assert_eq!(rib.remove(0, net, Some(30)), Effect::Unexpected);
    assert_eq!(rib.remove(0, net, Some(10)), Effect::Changed);
    assert_eq!(turn(&mut rib), [("2001:db8::/32".into(), Some(via(2)))]);
    assert_eq!(rib.remove(0, net, Some(20)), Effect::Changed);
    assert_eq!(turn(&mut rib), [("2001:db8::/32".into(), None)]);
    assert_eq!(rib.feeds()[0].len(), 0);
    assert_eq!(rib.collect().len(), 3);
    assert!(rib.paths(false).is_empty());
}

#[test]
fn objects_are_followed_by_their_routes() {
    let mut rib = rib();
    let way = |last: u8| Object::Way(Way::new(Some(IpAddr::from([10, 0, 0, last])), Out::Device(1)));
    let path = Path::Object { feed: 0, id: 7 };
    rib.insert(0, place("192.0.2.0/24"), 0, path.clone()).unwrap();
    assert_eq!(turn(&mut rib), [("192.0.2.0/24".into(), None)], "the object is not there yet");
    rib.set_object(0, 1, way(1)).unwrap();
    rib.set_object(0, 7, Object::Group([(1, 3), (2, 1)].into())).unwrap();
    let [(_, Some(Path::Ways(ways)))] = &turn(&mut rib)[..] else { panic!() };
    assert_eq!(shares(ways), [1]);
    rib.set_object(0, 2, way(2)).unwrap();
    assert_eq!(turn(&mut rib), [], "the number of the path stays, what it means is read anew");
    let number = rib.paths(true)[0];
    let Some(Path::Ways(ways)) = rib.expand(number) else { panic!() };
    assert_eq!(shares(&ways), [3, 1]);
    rib.set_object(0, 7, Object::Blackhole).unwrap();
    assert_eq!(rib.expand(number), Some(Path::Blackhole));
    // A group that holds itself or another group is refused, and what was there stays.
    rib.set_object(0, 7, Object::Group([(7, 1)].into())).unwrap();
    rib.set_object(0, 8, Object::Group([(1, 1), (2, 1)].into())).unwrap();
    rib.set_object(0, 7, Object::Group([(1, 1), (8, 1)].into())).unwrap();
    assert_eq!(rib.expand(number), Some(Path::Blackhole));
    assert_eq!(rib.feeds()[0].state.counted(Count::Nested), 2);
    // A member that becomes a group later has no ways.
    rib.set_object(0, 7, Object::Group([(1, 1), (2, 1)].into())).unwrap();
    rib.set_object(0, 2, Object::Group([(1, 1)].into())).unwrap();
    let Some(Path::Ways(ways)) = rib.expand(number) else { panic!() };
    assert_eq!(ways.len(), 1);
    rib.remove_object(0, 1);
    assert_eq!(rib.expand(number), None);
    assert_eq!(turn(&mut rib), [("192.0.2.0/24".into(), None)]);
    assert!(rib.remove_object(0, 7) && !rib.remove_object(0, 7));
}

#[test]
fn what_is_not_told_again_goes_and_limits_hold() {
    let mut rib = rib();
    for n in 0..6u8 {
        let done = rib.insert(0, place(&format!("10.{n}.0.0/16")), 0, via(1));
        assert_eq!(done.is_err(), n >= 4, "{n}");
    }
    rib.insert(0, place("10.0.0.0/16"), 0, via(2)).unwrap();
    assert!(rib.insert(0, place("10.0.0.0/16"), 5, via(2)).is_err(), "a further metric is a route too");
    assert!(rib.feeds()[0].state.is_overrun);
    assert_eq!(rib.feeds()[0].state.counted(Count::Refused), 3);
    rib.set_object(0, 1, Object::Blackhole).unwrap();
    turn(&mut rib);
    rib.begin(0);
    rib.insert(0, place("10.1.0.0/16"), 0, via(1)).unwrap();
    assert_eq!(rib.sweep(0, Some(Family::Ipv6), Count::Swept), 0);
    assert_eq!(rib.sweep(0, None, Count::Swept), 3);
    rib.sweep_objects(0);
    assert_eq!(rib.feeds()[0].objects(), 0);
    assert_eq!(turn(&mut rib).iter().filter(|change| change.1.is_none()).count(), 3);
    assert_eq!(rib.expire(0, 5), 1);
    assert_eq!(rib.feeds()[0].state.counted(Count::Expired), 1);
    assert_eq!(turn(&mut rib), [("10.1.0.0/16".into(), None)]);
    assert_eq!(rib.collect().len(), 2);
}

#[test]
fn a_vrf_has_a_limit_for_all_feeds_together() {
    let mut rib = Rib::new(vec![Routes::new("far", 200, 4, 2), Routes::new("near", 20, 100, 2)]);
    rib.limit_vrfs(vec![Some(3)]);
    rib.insert(0, place("10.0.0.0/16"), 0, via(1)).unwrap();
    rib.insert(0, place("10.0.0.0/16"), 5, via(1)).unwrap();
    rib.insert(1, place("10.0.0.0/16"), 0, via(2)).unwrap();
    assert_eq!((rib.len_of(0), rib.room(0, 0), rib.room(0, 1)), (3, 0, 2));
    assert_eq!(rib.insert(1, place("10.1.0.0/16"), 0, via(2)), Err(Full::Vrf));
    assert_eq!(
        rib.insert(1, place("10.0.0.0/16"), 7, via(2)),
        Err(Full::Vrf),
        "a further metric is a route too"
    );
    rib.insert(1, place("10.0.0.0/16"), 0, via(3)).unwrap();
    rib.insert(1, (1, place("10.1.0.0/16").1), 0, via(2)).unwrap();
    let overrun = |rib: &Rib| [0, 1].map(|feed| rib.feeds()[feed].state.is_overrun);
    assert_eq!(overrun(&rib), [false, true], "the one that had routes before is as it was");
    assert_eq!(rib.feeds()[1].state.counted(Count::Refused), 2);
    assert!(!rib.has_room_again(1) && rib.has_room_again(0));
    // Room that another feed makes is room for this one.
    rib.remove(0, place("10.0.0.0/16"), None);
    assert_eq!((rib.len_of(0), rib.has_room_again(1)), (1, true));
    rib.limit_vrfs(vec![Some(1), Some(1)]);
    assert!(!rib.has_room_again(1), "the limit is lower");
    assert_eq!(rib.insert(1, (1, place("10.2.0.0/16").1), 0, via(2)), Err(Full::Vrf));
    rib.limit_vrfs(vec![Some(1), Some(2)]);
    assert!(rib.has_room_again(1), "one of two that were full has room");
    rib.limit_vrfs(Vec::new());
    assert!(rib.has_room_again(1), "the limit is gone");
    rib.feed(1).state.forget_overrun();
    rib.insert(1, place("10.1.0.0/16"), 0, via(2)).unwrap();
    assert_eq!(overrun(&rib), [false, false]);
}

#[test]
fn weights_are_shares() {
    let ways = |weights: &[u32]| -> Vec<Way> {
        weights.iter().map(|&weight| Way { weight, ..Way::new(None, Out::Device(1)) }).collect()
    };
    assert_eq!(shares(&ways(&[4, 2])), [2, 1]);
    assert_eq!(shares(&ways(&[0, u32::MAX])), [1, 1023]);
    assert_eq!(shares(&[]), [] as [usize; 0]);
}

#[test]
fn ways_are_cut_and_the_memory_of_paths_is_limited() {
    let mut rib = rib();
    let ways = |count: u8| {
        Path::Ways((0..count).map(|n| Way::new(Some(IpAddr::from([10, 9, 0, n])), Out::Near(0))).collect())
    };
    rib.insert(0, place("192.0.2.0/24"), 0, ways(200)).unwrap();
    let Some(Path::Ways(kept)) = rib.path_of(0, place("192.0.2.0/24"), 0) else { panic!() };
    assert_eq!(kept.len(), MOST_MEMBERS);
    rib.set_object(0, 5, Object::Group((0..200).map(|n| (n + 100, 1)).collect())).unwrap();
    assert_eq!(rib.feeds()[0].state.counted(Count::Cut), 2);
    // At the limit a path that routes have already needs none, and another one is refused. Less is room again.
    rib.limit_paths(Some(rib.path_bytes()));
    rib.insert(0, place("198.51.100.0/24"), 0, ways(200)).unwrap();
    assert_eq!(rib.insert(0, place("203.0.113.0/24"), 0, via(1)), Err(Full::Memory));
    assert_eq!(rib.set_object(0, 6, Object::Blackhole), Err(Full::Memory));
    assert!(rib.feeds()[0].state.lacks_memory && !rib.feeds()[0].state.is_full);
    assert!(rib.remove_object(0, 5));
    rib.insert(0, place("203.0.113.0/24"), 0, via(1)).unwrap();
    for prefix in ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"] {
        rib.remove(0, place(prefix), None);
    }
    while !rib.take(9).is_empty() {}
    let _ = rib.take_objects_changed();
    rib.collect();
    assert_eq!(rib.path_bytes(), 0);
}
