//! Whose routes become the table.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use fibula::memory::OutOfMemory;
use fibula::net::{Family, parse_address};

use crate::event::Peer;
use crate::ledger::{Held, Ledger, Map};

/// Whose routes become the table where a feed has those of several peers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// Of each family, those of the peer that announces most; of several, the one with the lowest address. The feed is
    /// read twice.
    #[default]
    MostRoutes,
    /// Those of the peers with these names; where several have a prefix, the best path.
    Peers(Vec<PeerName>),
    /// The best path over all peers: the shortest AS path, a path of unknown length behind all others; then the lowest
    /// peer address.
    Best,
}

/// How people name a peer: by its address or its AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerName {
    /// The peer with this address.
    Address(IpAddr),
    /// All peers of this AS.
    As(u32),
}

impl PeerName {
    /// Whether the peer is meant.
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

/// `192.0.2.1`, `2001:db8::1`, `AS64500` or `64500`.
impl FromStr for PeerName {
    type Err = PeerNameError;

    fn from_str(text: &str) -> Result<Self, PeerNameError> {
        let number = text.strip_prefix("AS").or(text.strip_prefix("as")).unwrap_or(text);
        if number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty() {
            return number.parse().map(Self::As).map_err(|_| PeerNameError);
        }
        parse_address(text.as_bytes()).map(Self::Address).map_err(|_| PeerNameError)
    }
}

/// A text that names no peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerNameError;

impl fmt::Display for PeerNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("neither an address nor an AS number, such as 192.0.2.1 or AS64500")
    }
}

impl core::error::Error for PeerNameError {}

/// What a peer said in a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerCounts {
    /// The peer.
    pub peer: Peer,
    /// Its routes and announcements, IPv4 and IPv6.
    pub announced: [u64; 2],
    /// Its withdrawals, IPv4 and IPv6.
    pub withdrawn: [u64; 2],
    /// Whether its routes, IPv4 and IPv6, were candidates for the table.
    pub chosen: [bool; 2],
}

impl PeerCounts {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, announced: [0; 2], withdrawn: [0; 2], chosen: [false; 2] }
    }
}

/// 0 for IPv4, 1 for IPv6.
pub(super) fn slot(family: Family) -> usize {
    usize::from(family == Family::Ipv6)
}

/// The peers of a feed and what they said.
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
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// The peer of each family that announces most.
    pub(super) fn most(&self) -> Wanted {
        let most = |slot: usize| {
            let announcing = self.peers.values().filter(|counts| counts.announced[slot] > 0);
            let order = |counts: &&PeerCounts| (counts.announced[slot], core::cmp::Reverse(counts.peer));
            announcing.max_by_key(order).map(|counts| counts.peer)
        };
        Wanted::Chosen([most(0), most(1)])
    }

    /// The counts in the order of the peers' addresses, with what was wanted marked; `held` takes the charge for them.
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

/// A selection that is settled.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// Nobody: the peers are only counted.
    Nobody,
    /// These, of IPv4 and of IPv6.
    Chosen([Option<Peer>; 2]),
    Named(Vec<PeerName>),
    All,
}

impl Wanted {
    pub(super) fn includes(&self, peer: &Peer, family: Family) -> bool {
        match self {
            Self::Nobody => false,
            Self::Chosen(chosen) => chosen[slot(family)].as_ref() == Some(peer),
            Self::Named(names) => names.iter().any(|name| name.is(peer)),
            Self::All => true,
        }
    }
}
