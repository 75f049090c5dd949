//! A router that sends the routes of its peers by BMP (RFC 7854), as the other end sees it.

use std::collections::{BTreeMap, VecDeque};

use fibula::net::IpPrefix;

use crate::oracle::{Spec, Way};
use crate::random::Random;
use crate::zebra::Wire;

/// The VRF of each peer.
const PEERS: [u16; 3] = [0, 0, 1];
/// The distinguisher by which the router calls each VRF.
pub const DISTINGUISHERS: [u64; 2] = [0, 7];
const ROUTES: u8 = 0;
const DOWN: u8 = 2;
const UP: u8 = 3;
const INITIATION: u8 = 4;

/// A route of a peer: by host 9 of the network of an interface, over a path of so many ASes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub network: u8,
    pub ases: u8,
}

#[derive(Default)]
pub struct Collector {
    /// The routes of each peer that is up.
    peers: BTreeMap<usize, BTreeMap<IpPrefix, Route>>,
    pub session: Option<Wire>,
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[3][..], &(body.len() as u32 + 6).to_be_bytes(), &[kind], body].concat()
}

fn bgp(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[0xff; 16][..], &(body.len() as u16 + 19).to_be_bytes(), &[kind], body].concat()
}

/// The header of a peer.
fn header(peer: usize) -> Vec<u8> {
    let (vrf, last) = (PEERS[peer], peer as u8 + 1);
    let mut header = vec![u8::from(vrf != 0), 0];
    header.extend(DISTINGUISHERS[usize::from(vrf)].to_be_bytes());
    header.extend([[0; 12].as_slice(), &[10, 9, 0, last]].concat());
    header.extend((64_500 + u32::from(last)).to_be_bytes());
    header.extend([10, 9, 0, last, 0, 0, 0, 0, 0, 0, 0, 0]);
    header
}

fn up(peer: usize) -> Vec<u8> {
    let open = bgp(1, &[4, 0xfb, 0xf5, 0, 180, 10, 0, 0, 9, 8, 2, 6, 65, 4, 0, 0, 0xfb, 0xf5]);
    message(UP, &[&header(peer), &[0; 20][..], &open, &open].concat())
}

/// An update of BGP.
pub fn update(withdrawn: &[u8], attributes: &[u8], announced: &[u8]) -> Vec<u8> {
    let lens = [withdrawn.len(), attributes.len()].map(|len| (len as u16).to_be_bytes());
    bgp(2, &[&lens[0][..], withdrawn, &lens[1], attributes, announced].concat())
}

fn updated(peer: usize, withdrawn: &[u8], attributes: &[u8], announced: &[u8]) -> Vec<u8> {
    message(ROUTES, &[header(peer), update(withdrawn, attributes, announced)].concat())
}

/// The prefix as an update has it; `None` if it is not of IPv4.
pub fn packed(prefix: IpPrefix) -> Option<Vec<u8>> {
    let IpPrefix::V4(prefix) = prefix else { return None };
    let bytes = usize::from(prefix.len()).div_ceil(8);
    Some([&[prefix.len()][..], &prefix.addr().to_be_bytes()[..bytes]].concat())
}

fn announcement(peer: usize, prefix: &[u8], route: Route) -> Vec<u8> {
    let path: Vec<u8> = (0..route.ases).flat_map(|hop| (64_500 + u32::from(hop)).to_be_bytes()).collect();
    let head = [0x40, 1, 1, 0, 0x40, 2, 2 + 4 * route.ases, 2, route.ases];
    let attributes = [&head[..], &path, &[0x40, 3, 4, 10, 0, route.network, 9]].concat();
    updated(peer, &[], &attributes, prefix)
}

impl Collector {
    /// Connects: the router tells everything of all peers that are up, one after another.
    pub fn connect(&mut self, number: u64, random: &mut Random) {
        let mut bytes = message(INITIATION, b"\0\x02\0\x01r");
        for (&peer, routes) in &self.peers {
            bytes.extend(up(peer));
            let mut routes: Vec<_> = routes.iter().collect();
            for at in (1..routes.len()).rev() {
                routes.swap(at, random.below(at + 1));
            }
            for (&prefix, &route) in routes {
                bytes.extend(packed(prefix).iter().flat_map(|prefix| announcement(peer, prefix, route)));
            }
            bytes.extend(updated(peer, &[], &[], &[]));
        }
        self.session = Some(Wire { number, bytes: VecDeque::from(bytes) });
    }

    fn tell(&mut self, bytes: &[u8]) {
        if let Some(session) = &mut self.session {
            session.bytes.extend(bytes);
        }
    }

    /// Changes something.
    pub fn change(&mut self, prefixes: &[IpPrefix], random: &mut Random) {
        let peer = random.below(PEERS.len());
        let Some(routes) = self.peers.get_mut(&peer) else {
            self.peers.insert(peer, BTreeMap::new());
            self.tell(&[up(peer), updated(peer, &[], &[], &[])].concat());
            return;
        };
        match random.below(12) {
            0 => {
                self.peers.remove(&peer);
                self.tell(&message(DOWN, &[header(peer), vec![1]].concat()));
            }
            1 => {
                // It comes up again without having gone down: its routes are those that follow.
                routes.clear();
                self.tell(&[up(peer), updated(peer, &[], &[], &[])].concat());
            }
            2..=4 => {
                let Some(prefix) = routes.keys().nth(random.below(routes.len().max(1))).copied() else {
                    return;
                };
                routes.remove(&prefix);
                self.tell(&updated(peer, &packed(prefix).unwrap_or_default(), &[], &[]));
            }
            _ => {
                let prefix = *random.pick(prefixes);
                let Some(bytes) = packed(prefix) else { return };
                // No two peers have paths of the same length, so that the best route follows from the length alone.
                let ases = 1 + (peer + PEERS.len() * random.below(4)) as u8;
                let route = Route { network: 1 + random.below(3) as u8, ases };
                routes.insert(prefix, route);
                self.tell(&announcement(peer, &bytes, route));
            }
        }
    }

    /// Returns the best route to a prefix.
    pub fn best(&self, vrf: u16, prefix: IpPrefix) -> Option<Spec> {
        let of_vrf = self.peers.iter().filter(|&(&peer, _)| PEERS[peer] == vrf);
        let best = of_vrf.filter_map(|(_, routes)| routes.get(&prefix)).min_by_key(|route| route.ases)?;
        Some(Spec::Ways(vec![Way { network: best.network, device: 0, weight: 1 }]))
    }

    /// Returns how many prefixes of a VRF have a route.
    pub fn len(&self, vrf: u16, prefixes: &[IpPrefix]) -> usize {
        prefixes.iter().filter(|&&prefix| self.best(vrf, prefix).is_some()).count()
    }

    /// Returns the number of routes of all peers.
    pub fn all(&self) -> usize {
        self.peers.values().map(BTreeMap::len).sum()
    }

    /// All routes go, and so do most peers.
    pub fn shrink(&mut self) {
        self.peers.retain(|&peer, _| peer == 0);
        self.peers.values_mut().for_each(BTreeMap::clear);
    }
}
