//! The peers whose routes become the table.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use fibula::memory::OutOfMemory;
use fibula::net::{Family, parse_address};

use super::live::Live;
use crate::event::Peer;
use crate::ledger::{Held, Ledger, Map};
use crate::value::asn;

/// Selects the peers whose routes become the table, if a feed has several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// For each family, the routes of the peer that has the most at the end of the feed. If several peers have equally
    /// many, the one with the lowest address is taken. The feed is read twice.
    ///
    /// For updates, the first reading keeps the paths of all peers, within the limits.
    #[default]
    MostRoutes,
    /// The routes of the peers with these names; if several have a prefix, the [best path](crate::select).
    Peers(Vec<PeerName>),
    /// The [best path](crate::select) over all peers.
    Best,
}

/// The name of a peer: its address or its AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerName {
    /// The peer with this address.
    Address(IpAddr),
    /// All peers of this AS.
    As(u32),
}

impl PeerName {
    /// Returns whether the peer has this name.
    #[must_use]
    pub fn is(&self, peer: &Peer) -> bool {
        match self {
            Self::Address(address) => *address == peer.address,
            Self::As(asn) => *asn == peer.asn,
        }
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::As(asn) => write!(f, "AS{asn}"),
        }
    }
}

/// `192.0.2.1`, `2001:db8::1`, `AS64500`, `64500` or, for AS 65546, `1.10`.
impl FromStr for PeerName {
    type Err = PeerNameError;

    fn from_str(text: &str) -> Result<Self, PeerNameError> {
        let number = asn(text).map(Self::As);
        number.or_else(|| parse_address(text.as_bytes()).ok().map(Self::Address)).ok_or(PeerNameError)
    }
}

/// The error for a text that is not the name of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerNameError;

impl fmt::Display for PeerNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an address or an AS number, such as 192.0.2.1 or AS64500")
    }
}

impl core::error::Error for PeerNameError {}

/// Counts of the routes that a peer announced and withdrew in a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerCounts {
    /// The peer.
    pub peer: Peer,
    /// Its routes in table dumps and its announcements, IPv4 and IPv6, with every repetition.
    pub announced: [u64; 2],
    /// Its withdrawals, IPv4 and IPv6.
    pub withdrawn: [u64; 2],
    /// Its routes at the end of the feed, IPv4 and IPv6; `None` if [`Selection`] named the peers, because nothing is
    /// counted then.
    pub routes: Option<[u64; 2]>,
    /// Those of its routes that a table dump lists.
    pub(super) listed: [u64; 2],
    /// Whether its routes, IPv4 and IPv6, were candidates for the table.
    pub chosen: [bool; 2],
}

impl PeerCounts {
    pub(super) fn new(peer: Peer) -> Self {
        let none = [0; 2];
        Self { peer, announced: none, withdrawn: none, routes: None, listed: none, chosen: [false; 2] }
    }
}

/// 0 for IPv4, 1 for IPv6.
pub(super) fn slot(family: Family) -> usize {
    usize::from(family == Family::Ipv6)
}

/// The peers of a feed and their counts.
#[derive(Debug)]
pub(super) struct Tally {
    peers: Map<Peer, PeerCounts>,
}

impl Tally {
    pub(super) fn new(ledger: &Ledger) -> Self {
        Self { peers: Map::new(ledger) }
    }

    pub(super) fn of(&mut self, peer: Peer) -> Result<&mut PeerCounts, OutOfMemory> {
        self.peers.get_or_insert_with(peer, || PeerCounts::new(peer))
    }

    pub(super) fn add(&mut self, other: &PeerCounts) -> Result<(), OutOfMemory> {
        let counts = self.of(other.peer)?;
        for slot in 0..2 {
            counts.announced[slot] += other.announced[slot];
            counts.withdrawn[slot] += other.withdrawn[slot];
            counts.listed[slot] += other.listed[slot];
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// Records how many routes the peers have at the end.
    pub(super) fn settle(&mut self, live: &Live) {
        self.peers.values_mut().for_each(|counts| counts.routes = Some(live.routes(counts)));
    }

    /// Prepares for the second reading: keeps the peers and their routes, and resets the other counts.
    pub(super) fn restart(&mut self) {
        for counts in self.peers.values_mut() {
            *counts = PeerCounts { routes: counts.routes, ..PeerCounts::new(counts.peer) };
        }
    }

    /// Returns the peer of each family that has the most routes at the end. If several have equally many, it is the one
    /// with the lowest address.
    pub(super) fn most(&self) -> Wanted {
        let most = |slot: usize| {
            let routes = |counts: &PeerCounts| counts.routes.map_or(0, |routes| routes[slot]);
            let order = |counts: &&PeerCounts| (routes(counts), core::cmp::Reverse(counts.peer));
            let most = self.peers.values().max_by_key(order);
            most.filter(|counts| routes(counts) > 0).map(|counts| counts.peer)
        };
        Wanted::Chosen([most(0), most(1)])
    }

    /// Returns the counts in the order of the peers' addresses, with the wanted ones marked; `held` takes the charge
    /// for them.
    pub(super) fn finish(self, wanted: &Wanted, held: &mut Held) -> Result<Vec<PeerCounts>, OutOfMemory> {
        held.add(self.peers.len() * size_of::<PeerCounts>())?;
        let mut peers = Vec::with_capacity(self.peers.len());
        peers.extend(self.peers.values().copied());
        peers.sort_unstable_by_key(|counts| counts.peer);
        for counts in &mut peers {
            counts.chosen = [Family::Ipv4, Family::Ipv6].map(|family| wanted.includes(&counts.peer, family));
        }
        Ok(peers)
    }
}

/// A selection whose peers are known.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// No routes: the peers are only counted.
    None,
    /// These peers, for IPv4 and for IPv6.
    Chosen([Option<Peer>; 2]),
    Named(Vec<PeerName>),
    All,
}

impl Wanted {
    pub(super) fn includes(&self, peer: &Peer, family: Family) -> bool {
        match self {
            Self::None => false,
            Self::Chosen(chosen) => chosen[slot(family)].as_ref() == Some(peer),
            Self::Named(names) => names.iter().any(|name| name.is(peer)),
            Self::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str, asn: u32) -> Peer {
        Peer { address: address.parse().unwrap(), asn }
    }

    /// Returns the peers with the most IPv4 and IPv6 routes.
    fn most(routes: &[(Peer, [u64; 2])]) -> [Option<Peer>; 2] {
        let mut tally = Tally::new(&Ledger::new(None));
        for &(peer, routes) in routes {
            tally.of(peer).unwrap().routes = Some(routes);
        }
        match tally.most() {
            Wanted::Chosen(chosen) => chosen,
            wanted => panic!("{wanted:?}"),
        }
    }

    #[test]
    fn the_peer_with_most_routes_is_the_one_with_the_lowest_address_of_several() {
        let [one, two, ten] = ["192.0.2.1", "192.0.2.2", "192.0.2.10"].map(|address| peer(address, 7));
        let six = peer("2001:db8::1", 1);
        assert_eq!(most(&[]), [None, None]);
        assert_eq!(most(&[(one, [0, 0]), (two, [0, 0])]), [None, None]);
        assert_eq!(most(&[(one, [1, 5]), (two, [2, 4])]), [Some(two), Some(one)]);
        for order in [[one, two, ten, six], [six, ten, two, one], [two, six, one, ten], [ten, one, six, two]]
        {
            assert_eq!(most(&order.map(|peer| (peer, [3, 3]))), [Some(one), Some(one)]);
            let without_one: Vec<_> =
                order.iter().filter(|&&peer| peer != one).map(|&peer| (peer, [9, 0])).collect();
            assert_eq!(most(&without_one), [Some(two), None]);
        }
        // Of one address, the lower AS.
        let [lower, upper] = [1, 2].map(|asn| peer("192.0.2.1", asn));
        assert_eq!(most(&[(upper, [1, 1]), (lower, [1, 1])]), [Some(lower), Some(lower)]);
    }
}
