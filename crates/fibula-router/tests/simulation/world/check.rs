//! What must hold when everything has come to rest.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fibula::net::{Dual, IpPrefix, NextHop};
use fibula_router::control::verify::{Scene, TableDifference, Walk};
use fibula_router::feed::{Path, Rib, lock};
use fibula_router::forward::fabric::Hop;

use super::{COLLECTOR, KERNEL, World, ZEBRA};
use crate::archive::ARCHIVE;
use crate::oracle::{self, Answer, Spec, TABLES, Way};

impl World {
    /// Returns whether a feed, or all of them in a VRF, are to have so many routes, so near the limit, that some may be missing.
    pub fn may_lack(&self, rib: &Rib, feed: usize, vrf: u16) -> bool {
        let zebra = |vrf: u16| self.zebra.routes.keys().filter(|place| place.0 == vrf).count();
        let kernel = |vrf: u16| {
            let of_vrf = self.kernel.routes.iter().filter(|route| route.0.0 == TABLES[usize::from(vrf)]);
            of_vrf.map(|route| route.1.len()).sum::<usize>()
        };
        let near = |routes: usize, limit: usize| routes >= limit - limit / 8;
        let collector = |vrf: u16| self.collector.len(vrf, &self.prefixes);
        let is_near = |vrf: u16| {
            let limit = rib.vrf_limit(usize::from(vrf));
            limit.is_some_and(|limit| {
                near(zebra(vrf) + kernel(vrf) + collector(vrf) + self.archive.len(vrf), limit)
            })
        };
        let of_feed = match feed {
            ZEBRA => zebra(0) + zebra(1),
            KERNEL => kernel(0) + kernel(1),
            // What was refused may be of the file before.
            ARCHIVE => return is_near(0) || near(self.archive.len(0), rib.feeds()[feed].limit),
            // Routes of all peers count, and a limit that one VRF reaches ends the session of all.
            _ => return is_near(0) || is_near(1) || near(self.collector.all(), rib.feeds()[feed].limit),
        };
        near(of_feed, rib.feeds()[feed].limit) || is_near(vrf)
    }

    /// Compares everything with plain maps. Routes beyond the limit of a feed or a VRF, and of tables beyond their memory, may be missing.
    pub fn check(&mut self) {
        let is_full = lock(&self.rib).is_dirty();
        let wanted = self.wanted();
        assert_eq!(self.verify(), [], "RIB and tables differ");
        for (vrf, table) in self.vrfs.iter().enumerate().map(|(at, vrf)| (at as u16, &vrf.table)) {
            if self.random.once_in(32) {
                table.check().unwrap_or_else(|error| panic!("VRF {vrf}: {error}"));
            }
            let routes: BTreeMap<IpPrefix, NextHop> = table.routes().unwrap().iter().collect();
            assert_eq!(
                routes.len(),
                self.counts[usize::from(vrf)].v4 + self.counts[usize::from(vrf)].v6,
                "VRF {vrf}: the count of its routes is wrong"
            );
            if is_full {
                continue;
            }
            let mut reader = table.reader().unwrap();
            for &prefix in &self.prefixes {
                let has = routes.get(&prefix).map(|&number| oracle::meaning(&self.fabric, number));
                let want = wanted.get(&(vrf, prefix)).map(|want| Some(want.clone()));
                let told = [ZEBRA, KERNEL, COLLECTOR, ARCHIVE]
                    .map(|feed| lock(&self.rib).routes_of(feed, (vrf, prefix)));
                assert_eq!(
                    has,
                    want,
                    "VRF {vrf}: {prefix} has another route than it is to have; RIB {told:?}; zebra {:?}, {:?}; kernel {:?}; {:?}",
                    self.zebra.routes.get(&(vrf, prefix)),
                    self.zebra.objects,
                    self.kernel.best(vrf, prefix, None),
                    self.kernel.devices
                );
            }
            for address in &*self.samples {
                let longest = self
                    .prefixes
                    .iter()
                    .filter(|prefix| prefix.contains(*address) && routes.contains_key(prefix))
                    .max_by_key(|prefix| prefix.len());
                let want = longest.map(|prefix| routes[prefix]);
                assert_eq!(reader.pin().lookup(*address), want, "VRF {vrf}: {address}");
            }
        }
        if !is_full {
            self.check_answers(&wanted);
        }
        assert!(self.hops.all().len() < 400, "{} numbers of next hops: they leak", self.hops.all().len());
        self.check_verify(is_full);
    }

    /// Zebra knows of each of its routes that is in the tables, and of each that cannot be.
    fn check_answers(&self, wanted: &BTreeMap<(u16, IpPrefix), Answer>) {
        let Some(told) = &self.told else { return };
        let rib = lock(&self.rib);
        for (place, spec) in &self.zebra.routes {
            let is_own = matches!(wanted.get(place), Some(Answer::Fixed(Hop::Local | Hop::Connected { .. })));
            let is_near_limit = self.may_lack(&rib, ZEBRA, place.0);
            if is_own || is_near_limit || !self.prefixes.contains(&place.1) {
                continue;
            }
            let installed = told.get(place).copied();
            let resolved = oracle::resolve(spec, place.0, &self.zebra.objects, &self.kernel.devices);
            if *spec == Spec::Unsupported {
                assert_eq!(installed, Some(false), "zebra's route {place:?} cannot be forwarded by");
            } else if resolved.is_some() {
                assert_eq!(installed, Some(true), "zebra's route {place:?}, {spec:?} is in the tables");
            }
        }
    }

    /// The comparison finds nothing where nothing is wrong, and finds what is.
    fn check_verify(&mut self, is_full: bool) {
        assert_eq!(self.verify(), [], "the comparison finds what is not wrong");
        if is_full || self.random.once_in(2) {
            return;
        }
        let (vrf, prefix) = (self.random.below(2) as u16, *self.random.pick(&self.prefixes));
        let table = self.vrfs[usize::from(vrf)].table.clone();
        let spoiled = match table.get(prefix).unwrap() {
            Some(_) => table.remove(prefix).is_ok(),
            None => table.insert(prefix, self.hops.number(Hop::Local)).is_ok(),
        };
        if !spoiled {
            return;
        }
        self.fabric = self.in_use();
        let found: Vec<_> = self.verify().iter().map(|difference| difference.place).collect();
        assert_eq!(found, [(vrf, prefix)], "the comparison does not find what is wrong");
        lock(&self.rib).put_back(found, false);
        // The count of routes follows changes, and this one went past it.
        let routes = table.routes().unwrap();
        self.counts[usize::from(vrf)] = Dual::new(routes.v4.len(), routes.v6.len());
        for _ in 0..50 {
            if !lock(&self.rib).is_dirty() {
                break;
            }
            self.turn(16);
        }
        assert_eq!(self.verify(), [], "it is not right again");
    }

    pub fn verify(&self) -> Vec<TableDifference> {
        let (mut walk, rib) = (Walk::default(), lock(&self.rib));
        let scene = Scene { rib: &rib, install: &self.install, vrfs: &self.vrfs };
        while !walk.step(&scene, 7).unwrap() {}
        walk.differences(&scene).unwrap()
    }

    /// Returns what the tables are to have.
    fn wanted(&self) -> BTreeMap<(u16, IpPrefix), Answer> {
        let rib = lock(&self.rib);
        let devices = &self.kernel.devices;
        let (mut wanted, none) = (BTreeMap::new(), BTreeMap::new());
        for (vrf, &prefix) in (0..2).flat_map(|vrf| self.prefixes.iter().map(move |prefix| (vrf, prefix))) {
            let place = (vrf, prefix);
            let zebra = self.zebra.routes.get(&place).filter(|spec| **spec != Spec::Unsupported);
            let zebra = self.of_feed(&rib, ZEBRA, place, zebra);
            let answer = zebra.and_then(|spec| oracle::resolve(spec, vrf, &self.zebra.objects, devices));
            // A feed at its limit may have the routes of some metrics alone.
            let metrics: Vec<u32> = rib.routes_of(KERNEL, place).iter().map(|route| route.0).collect();
            let metrics = self.may_lack(&rib, KERNEL, vrf).then_some(&metrics[..]);
            let kernel = self.kernel.best(vrf, prefix, metrics);
            let kernel = self.of_feed(&rib, KERNEL, place, kernel);
            let answer = answer
                .or_else(|| oracle::resolve(&self.of_bgp(&rib, COLLECTOR, place)?, vrf, &none, devices));
            let answer = answer.or_else(|| {
                kernel.and_then(|spec| oracle::resolve(spec, vrf, &self.kernel.objects, devices))
            });
            let answer =
                answer.or_else(|| oracle::resolve(&self.of_bgp(&rib, ARCHIVE, place)?, vrf, &none, devices));
            wanted.extend(answer.map(|answer| (place, answer)));
        }
        wanted.insert((0, self.prefix("10.1.128.7/32")), Answer::Fixed(Hop::Local));
        if devices[1].is_up() {
            wanted.insert((0, self.prefix("10.2.0.0/16")), Answer::Fixed(Hop::Connected { interface: 1 }));
        }
        wanted
    }

    /// Returns the route that the collector or the archive is to have for a prefix. At a limit its session ends again and again, or its
    /// file is read again and again, so that it has what it had before.
    fn of_bgp(&self, rib: &Rib, feed: usize, place: (u16, IpPrefix)) -> Option<Spec> {
        let spec = match feed {
            ARCHIVE => self.archive.best(place.0, place.1),
            _ => self.collector.best(place.0, place.1),
        };
        if !self.may_lack(rib, feed, place.0) {
            return self.of_feed(rib, feed, place, spec.as_ref()).cloned();
        }
        let path = rib.routes_of(feed, place).into_iter().next()?.1?;
        let Path::Ways(ways) = path else { panic!("BGP has no such path: {path:?}") };
        let Some(IpAddr::V4(gateway)) = ways[0].gateway else { panic!("{ways:?}") };
        Some(Spec::Ways(vec![Way { network: gateway.octets()[2], device: 0, weight: 1 }]))
    }

    /// Returns the route that a feed is to have for a prefix; one at its limit may lack it, but has no other.
    fn of_feed<'s>(
        &self,
        rib: &Rib,
        feed: usize,
        place: (u16, IpPrefix),
        spec: Option<&'s Spec>,
    ) -> Option<&'s Spec> {
        let has = !rib.routes_of(feed, place).is_empty();
        if spec.is_some() && !has && self.may_lack(rib, feed, place.0) {
            return None;
        }
        assert_eq!(
            has,
            spec.is_some(),
            "{}: {place:?}, {:?}",
            rib.feeds()[feed].name,
            rib.feeds()[feed].state
        );
        spec
    }
}
