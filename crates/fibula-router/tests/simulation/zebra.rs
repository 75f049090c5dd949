//! FRR's zebra, as the other end of FPM sees it.

use std::collections::{BTreeMap, VecDeque};

use fibula::net::IpPrefix;

use crate::netlink::{self, DEL_NEXT_HOP, DEL_ROUTE, NEW_NEXT_HOP, NEW_ROUTE, frame, message};
use crate::oracle::{DEVICES, FOREIGN, Object, Routes, Spec, TABLES, VRF_OF, Way};
use crate::random::Random;

/// Next-hop objects: the first are single ways, the others groups of these.
const OBJECTS: usize = 6;
const WAYS: usize = 4;

/// A connection: its number at the server, and what is under way.
pub struct Wire {
    pub number: u64,
    pub bytes: VecDeque<u8>,
}

#[derive(Default)]
pub struct Zebra {
    pub routes: Routes,
    pub objects: BTreeMap<u32, Object>,
    pub session: Option<Wire>,
    /// A connection before, which zebra has left without closing it.
    pub left: Option<Wire>,
}

pub fn way(random: &mut Random) -> Way {
    let at = random.below(3);
    let device = match random.below(8) {
        0 => 0,
        1 => FOREIGN,
        _ => DEVICES[at],
    };
    Way { network: at as u8 + 1, device, weight: 1 + random.below(3) as u32 }
}

impl Zebra {
    /// Connects: everything is told.
    pub fn connect(&mut self, number: u64, random: &mut Random) {
        let mut wire = Wire { number, bytes: VecDeque::new() };
        for (&id, object) in &self.objects {
            wire.bytes.extend(frame(1, &message(NEW_NEXT_HOP, 0x500, 0, &netlink::object(id, Some(object)))));
        }
        let mut routes: Vec<_> = self.routes.iter().collect();
        for at in (1..routes.len()).rev() {
            routes.swap(at, random.below(at + 1));
        }
        for (place, spec) in routes {
            let route = netlink::route(place.1, TABLES[usize::from(place.0)], 20, Some(spec));
            wire.bytes.extend(frame(1, &message(NEW_ROUTE, 0x500, 0, &route)));
        }
        self.left = self.session.take();
        self.session = Some(wire);
    }

    fn tell(&mut self, bytes: &[u8]) {
        if let Some(session) = &mut self.session {
            session.bytes.extend(bytes);
        }
    }

    /// Changes something. Returns where, if it is a route.
    pub fn change(&mut self, prefixes: &[IpPrefix], random: &mut Random) -> Option<(u16, IpPrefix)> {
        match random.below(16) {
            0 => self.tell(&frame(2, b"protobuf")),
            1 => self.tell(&frame(1, &message(2000, 0, 0, &[1, 2, 3, 4]))),
            2..=4 => {
                // Groups are not members of groups.
                let id = 1 + random.below(OBJECTS) as u32;
                let member =
                    |random: &mut Random| (1 + random.below(WAYS) as u32, 1 + random.below(3) as u32);
                let object = match random.below(6) {
                    _ if id > WAYS as u32 => Object::Group((0..2).map(|_| member(random)).collect()),
                    0 => Object::Blackhole,
                    _ => Object::Way(Way { weight: 1, ..way(random) }),
                };
                self.tell(&frame(1, &message(NEW_NEXT_HOP, 0x500, 0, &netlink::object(id, Some(&object)))));
                self.objects.insert(id, object);
            }
            5 => {
                let id = 1 + random.below(OBJECTS) as u32;
                if self.objects.remove(&id).is_some() {
                    self.tell(&frame(1, &message(DEL_NEXT_HOP, 0, 0, &netlink::object(id, None))));
                }
            }
            6..=8 => {
                let at = random.below(self.routes.len());
                let place = self.routes.keys().nth(at).copied()?;
                self.routes.remove(&place);
                let gone = netlink::route(place.1, TABLES[usize::from(place.0)], 20, None);
                self.tell(&frame(1, &message(DEL_ROUTE, 0, 0, &gone)));
                return Some(place);
            }
            _ => return Some(self.set(prefixes, random)),
        }
        None
    }

    fn set(&mut self, prefixes: &[IpPrefix], random: &mut Random) -> (u16, IpPrefix) {
        let vrf = VRF_OF[random.below(3)];
        let place = (vrf, *random.pick(prefixes));
        let spec = match random.below(8) {
            0 => Spec::Blackhole,
            1 => Spec::Unreachable,
            2 | 3 => Spec::Object(1 + random.below(OBJECTS) as u32),
            4 => Spec::Ways((0..2 + random.below(2)).map(|_| way(random)).collect()),
            5 if random.once_in(4) => Spec::Unsupported,
            _ => Spec::Ways(vec![Way { weight: 1, ..way(random) }]),
        };
        let table = TABLES[usize::from(vrf)];
        let new = message(NEW_ROUTE, 0x500, 0, &netlink::route(place.1, table, 20, Some(&spec)));
        // Changes come as a removal and a new route, in one frame or two.
        let gone = message(DEL_ROUTE, 0, 0, &netlink::route(place.1, table, 20, None));
        match (self.routes.insert(place, spec), random.below(3)) {
            (Some(_), 0) => self.tell(&frame(1, &[gone, new].concat())),
            (Some(_), 1) => self.tell(&[frame(1, &gone), frame(1, &new)].concat()),
            _ => self.tell(&frame(1, &new)),
        }
        place
    }
}
