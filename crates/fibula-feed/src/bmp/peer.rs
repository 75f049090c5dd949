//! The per-peer header (RFC 7854 section 4.2), and the peers that are up.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use core::str::FromStr;
use std::collections::HashMap;

use fibula::net::Dual;

use crate::bgp::AsWidth;
use crate::event::{Peer, Time};
use crate::mrt::{Cursor, Reading, Sink, Skipped};

/// The flags; those of a Loc-RIB have one of their own (RFC 9069 section 4.2) in the place of the first.
const V6: u8 = 0x80;
const POST_POLICY: u8 = 0x40;
const TWO_OCTETS: u8 = 0x20;
const OUT: u8 = 0x10;
const FILTERED: u8 = 0x80;

/// The kind of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PeerKind {
    /// A peer of the router's main instance.
    Global,
    /// A peer of a VRF, which its route distinguisher names.
    Distinguished,
    /// A peer of another instance of the router, which has a number of its own.
    Local,
    /// The table of routes that the router itself uses (RFC 9069).
    LocRib,
}

/// The identity of a peer among those of its router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId {
    /// The kind of the peer.
    pub kind: PeerKind,
    /// The VRF or the instance that it belongs to.
    pub distinguisher: Distinguisher,
    /// Its address; unspecified for a Loc-RIB.
    pub address: IpAddr,
}

/// The table of a peer that routes are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerTable {
    /// Routes that the peer has announced: before the router's policy, or after it.
    AdjRibIn {
        /// After the policy.
        post_policy: bool,
    },
    /// Routes that the router announces to the peer (RFC 8671).
    AdjRibOut,
    /// Routes that the router uses (RFC 9069).
    LocRib {
        /// The router reports only some of them.
        filtered: bool,
    },
}

/// A per-peer header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerHeader {
    /// Which peer of the router.
    pub id: PeerId,
    /// The peer as events name it; of a Loc-RIB, the router's identifier in the place of an address.
    pub peer: Peer,
    /// Which of its tables.
    pub table: PeerTable,
    /// When the routes were heard of.
    pub time: Time,
    /// Whether AS paths are written with AS numbers of two bytes.
    pub two_octets: bool,
}

impl PeerHeader {
    /// Reads the header; `None` for a kind of peer that is not known, which is reported.
    pub(super) fn read(at: &mut Cursor<'_>, sink: &mut (impl Sink + ?Sized)) -> Reading<Option<Self>> {
        let start = at.position();
        let [kind, flags] = at.array("type and flags of the peer")?;
        let distinguisher = Distinguisher(u64::from_be_bytes(at.array("distinguisher")?));
        let address: [u8; 16] = at.array("address of the peer")?;
        let asn = at.u32("AS of the peer")?;
        let router = IpAddr::from(at.array::<4>("identifier of the peer")?);
        let time = Time { seconds: at.u32("time")?, micros: Some(at.u32("microseconds")?) };
        let kind = match kind {
            0 => PeerKind::Global,
            1 => PeerKind::Distinguished,
            2 => PeerKind::Local,
            3 => PeerKind::LocRib,
            _ => {
                sink.skipped(Skipped::with_routes("BMP peers of unknown types"), start);
                return Ok(None);
            }
        };
        if kind == PeerKind::LocRib {
            let id = PeerId { kind, distinguisher, address: Ipv4Addr::UNSPECIFIED.into() };
            let table = PeerTable::LocRib { filtered: flags & FILTERED != 0 };
            let peer = Peer { address: router, asn };
            return Ok(Some(Self { id, peer, table, time, two_octets: false }));
        }
        let address = match address {
            [_, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d] if flags & V6 == 0 => [a, b, c, d].into(),
            address => IpAddr::from(address),
        };
        let table = match flags & OUT {
            0 => PeerTable::AdjRibIn { post_policy: flags & POST_POLICY != 0 },
            _ => PeerTable::AdjRibOut,
        };
        let id = PeerId { kind, distinguisher, address };
        let two_octets = flags & TWO_OCTETS != 0;
        Ok(Some(Self { id, peer: Peer { address, asn }, table, time, two_octets }))
    }
}

/// The peers of a session that are up.
#[derive(Debug, Default)]
pub struct Peers {
    up: HashMap<PeerId, MessageFormat>,
    /// The router has reported that a Loc-RIB is down, so it also reports when one is up.
    tells_loc_rib: bool,
}

/// How the messages of a peer are written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageFormat {
    /// Width of AS numbers where the header does not say two bytes; `None` if the session with the peer did not agree
    /// on four.
    pub(super) width: Option<AsWidth>,
    pub(super) add_path: Dual<bool>,
}

impl Peers {
    /// Returns the number of peers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.up.len()
    }

    /// Returns whether there are no peers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.up.is_empty()
    }

    pub(super) fn get(&self, id: &PeerId) -> Option<MessageFormat> {
        self.up.get(id).copied()
    }

    pub(super) fn insert(&mut self, id: PeerId, codec: MessageFormat) {
        self.up.insert(id, codec);
    }

    pub(super) fn remove(&mut self, id: &PeerId) -> bool {
        self.tells_loc_rib |= id.kind == PeerKind::LocRib;
        self.up.remove(id).is_some()
    }

    /// Returns whether routes may come without a Peer Up. Those of a Loc-RIB may, because GoBGP 3.10 sends them so.
    /// They are written with four bytes for an AS (RFC 9069 section 4.2), without identifiers of paths.
    pub(super) fn may_begin_untold(&self, header: &PeerHeader) -> bool {
        header.id.kind == PeerKind::LocRib && !self.tells_loc_rib
    }
}

/// The number that distinguishes the VRFs or instances of a router: a route distinguisher (RFC 4364 section 4.2), or
/// any number of 64 bits; 0 for the main instance.
///
/// Reads and prints as `64500:7`, `192.0.2.1:7`, or a number alone where it is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Distinguisher(pub u64);

impl fmt::Display for Distinguisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, low, a, b, c, d, y, z] = self.0.to_be_bytes();
        let (short, long) = (u16::from_be_bytes([y, z]), u32::from_be_bytes([a, b, c, d]));
        match u16::from_be_bytes([high, low]) {
            0 if a > 0 || b > 0 => {
                write!(f, "{}:{}", u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, y, z]))
            }
            1 => write!(f, "{}:{short}", Ipv4Addr::from(long)),
            2 => write!(f, "{long}:{short}"),
            _ => self.0.fmt(f),
        }
    }
}

impl FromStr for Distinguisher {
    type Err = DistinguisherError;

    fn from_str(text: &str) -> Result<Self, DistinguisherError> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| DistinguisherError);
        let below = |text: &str, bits: u32| number(text).ok().filter(|&number| number >> bits == 0);
        let Some((owner, count)) = text.split_once(':') else { return number(text).map(Self) };
        let found = match (owner.parse::<Ipv4Addr>(), below(owner, 16), below(owner, 32)) {
            (Ok(address), ..) => {
                below(count, 16).map(|count| 1 << 48 | u64::from(u32::from(address)) << 16 | count)
            }
            (_, Some(asn), _) => below(count, 32).map(|count| asn << 32 | count),
            (.., Some(asn)) => below(count, 16).map(|count| 2 << 48 | asn << 16 | count),
            _ => None,
        };
        found.map(Self).ok_or(DistinguisherError)
    }
}

/// The error for a text that is not a route distinguisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistinguisherError;

impl fmt::Display for DistinguisherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a route distinguisher, such as 64500:7 or 192.0.2.1:7, nor a number")
    }
}

impl core::error::Error for DistinguisherError {}
