//! Faults of records, and their places.

use core::fmt;
use core::net::IpAddr;

use fibula::net::IpPrefix;

use super::Skipped;

/// A fault at a place in a record or in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    reason: Reason,
    offset: u64,
}

/// The kind of a fault; prints without the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason(FaultKind);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Short { what: &'static str, need: usize, have: usize },
    Lost { bytes: u64 },
    EndsEarly { bytes: u64 },
    PrefixLength { len: u8, bits: u8 },
    TrailingBits(IpPrefix),
    AddressFamily(u16),
    Status(u16),
    NoPeerTable,
    PeerIndex { index: u16, peers: usize },
    NoNextHop,
    PeerForNextHop,
    PathIdentifiers { declared: bool },
    NextHopLength(u8),
    Repeated(u8),
    Missing(&'static str),
    Attributes(Box<str>),
    Marker,
    MessageType(u8),
    MessageLength { len: u16, have: usize },
    Surplus(usize),
    LeftOut(Skipped),
    Subtype { kind: &'static str, subtype: u16 },
    Version(u8),
    TooShort { len: u32, least: usize },
    NotUp(IpAddr),
}

impl FaultKind {
    pub(crate) fn at(self, offset: usize) -> Fault {
        self.at_byte(offset as u64)
    }

    pub(crate) fn at_byte(self, offset: u64) -> Fault {
        Fault { reason: Reason(self), offset }
    }
}

impl Fault {
    /// Returns the kind of the fault.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// Returns the offset of the fault: in the record as [`decode`](super::decode) reports it, in the decompressed file
    /// in reports.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns whether the route is read in spite of the fault.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        matches!(
            self.reason.0,
            FaultKind::TrailingBits(_)
                | FaultKind::Attributes(_)
                | FaultKind::Missing(_)
                | FaultKind::Repeated(_)
                | FaultKind::Marker
                | FaultKind::Status(_)
                | FaultKind::PeerForNextHop
                | FaultKind::PathIdentifiers { .. }
                | FaultKind::Surplus(_)
        )
    }

    /// Returns whether the fault is a prefix with bits set after its length.
    #[must_use]
    pub fn is_trailing_bits(&self) -> bool {
        matches!(self.reason.0, FaultKind::TrailingBits(_))
    }

    /// Returns whether the fault is a route without a next hop, which counts as withdrawn.
    pub(crate) fn is_without_next_hop(&self) -> bool {
        matches!(self.reason.0, FaultKind::NoNextHop)
    }

    /// Returns whether the input ends here, inside a record.
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(self.reason.0, FaultKind::EndsEarly { .. })
    }

    /// Returns the kind of the content that was recognised and left out; `None` if the fault is damage.
    #[must_use]
    pub fn skipped(&self) -> Option<Skipped> {
        match self.reason.0 {
            FaultKind::LeftOut(kind) => Some(kind),
            _ => None,
        }
    }

    /// Returns the number of bytes that belong to no record that could be found.
    pub(crate) fn lost_bytes(&self) -> Option<u64> {
        match self.reason.0 {
            FaultKind::Lost { bytes } | FaultKind::EndsEarly { bytes } => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn shifted(mut self, by: u64) -> Self {
        self.offset += by;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.reason)
    }
}

impl core::error::Error for Fault {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            FaultKind::Short { what, need, have } => {
                write!(f, "{what}: {need} bytes needed, {have} left")
            }
            FaultKind::Lost { bytes } => write!(f, "no record begins here; {bytes} bytes skipped"),
            FaultKind::EndsEarly { bytes } => {
                write!(f, "file truncated: the last record is incomplete ({bytes} bytes present)")
            }
            FaultKind::PrefixLength { len, bits } => {
                write!(f, "prefix length {len} is above the {bits} bits of the family")
            }
            FaultKind::TrailingBits(prefix) => {
                write!(f, "bits set after the prefix length; read as {prefix}")
            }
            FaultKind::AddressFamily(family) => write!(f, "address family {family} is neither IPv4 nor IPv6"),
            FaultKind::Status(status) => write!(f, "status {status} instead of 1"),
            FaultKind::NoPeerTable => f.write_str("no list of peers precedes this record"),
            FaultKind::PeerIndex { index, peers } => {
                write!(f, "peer {index} is not in the list of {peers} peers (numbered from 0)")
            }
            FaultKind::NoNextHop => f.write_str("route without a next hop"),
            FaultKind::PeerForNextHop => {
                f.write_str("route without a next hop; the peer's address is used instead")
            }
            FaultKind::PathIdentifiers { declared: true } => {
                f.write_str("path identifiers are declared but absent; the prefixes are read without them")
            }
            FaultKind::PathIdentifiers { declared: false } => {
                f.write_str("path identifiers are present but not declared; the prefixes are read with them")
            }
            FaultKind::NextHopLength(len) => write!(f, "a next hop cannot have {len} bytes"),
            FaultKind::Repeated(kind) => write!(f, "attribute {kind} is repeated; the first one counts"),
            FaultKind::Missing(name) => write!(f, "the mandatory attribute {name} is missing"),
            FaultKind::Attributes(text) => write!(f, "attributes: {text}"),
            FaultKind::Marker => f.write_str("the message does not begin with the BGP marker"),
            FaultKind::MessageType(kind) => write!(f, "unknown BGP message type {kind}"),
            FaultKind::MessageLength { len, have } => {
                write!(f, "message length {len} does not fit: {have} bytes are present")
            }
            FaultKind::Surplus(bytes) => write!(f, "{bytes} bytes after the end"),
            FaultKind::LeftOut(kind) => write!(f, "{kind} is not read"),
            FaultKind::Subtype { kind, subtype } => write!(f, "unknown subtype {subtype} of {kind}"),
            FaultKind::Version(version) => write!(f, "BMP version {version}: only 3 is known"),
            FaultKind::TooShort { len, least } => {
                write!(f, "a BMP message of {len} bytes is too short: {least} is the least")
            }
            FaultKind::NotUp(peer) => write!(f, "routes of the peer {peer}, which is not up"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_know_their_place_and_what_they_cost() {
        let prefix: IpPrefix = "10.0.0.0/8".parse().unwrap();
        let left_out = Skipped::family(1, 2);
        let (lost, cut) = (FaultKind::Lost { bytes: 5 }, FaultKind::EndsEarly { bytes: 7 });
        // Whether it is a warning, and the lost bytes.
        let cases = [
            (FaultKind::Short { what: "prefix", need: 2, have: 1 }, false, None),
            (lost.clone(), false, Some(5)),
            (cut.clone(), false, Some(7)),
            (FaultKind::PrefixLength { len: 33, bits: 32 }, false, None),
            (FaultKind::TrailingBits(prefix), true, None),
            (FaultKind::AddressFamily(3), false, None),
            (FaultKind::Status(0), true, None),
            (FaultKind::NoPeerTable, false, None),
            (FaultKind::PeerIndex { index: 1, peers: 1 }, false, None),
            (FaultKind::NoNextHop, false, None),
            (FaultKind::PeerForNextHop, true, None),
            (FaultKind::PathIdentifiers { declared: true }, true, None),
            (FaultKind::NextHopLength(3), false, None),
            (FaultKind::Repeated(1), true, None),
            (FaultKind::Missing("ORIGIN"), true, None),
            (FaultKind::Attributes("flags".into()), true, None),
            (FaultKind::Marker, true, None),
            (FaultKind::MessageType(9), false, None),
            (FaultKind::MessageLength { len: 1, have: 2 }, false, None),
            (FaultKind::Surplus(3), true, None),
            (FaultKind::LeftOut(left_out), false, None),
            (FaultKind::Subtype { kind: "BGP", subtype: 9 }, false, None),
            (FaultKind::Version(4), false, None),
            (FaultKind::TooShort { len: 5, least: 6 }, false, None),
            (FaultKind::NotUp([192, 0, 2, 1].into()), false, None),
        ];
        for (kind, warning, bytes) in cases {
            let fault = kind.clone().at(40);
            assert_eq!((fault.is_warning(), fault.lost_bytes()), (warning, bytes), "{fault}");
            assert_eq!(fault.is_end(), kind == cut, "{fault}");
            assert_eq!(fault.is_trailing_bits(), kind == FaultKind::TrailingBits(prefix), "{fault}");
            assert_eq!(
                fault.skipped(),
                (kind == FaultKind::LeftOut(left_out)).then_some(left_out),
                "{fault}"
            );
            let moved = fault.clone().shifted(100);
            assert_eq!((fault.offset(), moved.offset()), (40, 140));
            assert_eq!(moved.reason(), fault.reason());
        }
    }
}
