//! What can be wrong with a record, and where.

use core::fmt;

use fibula::net::IpPrefix;

/// Something wrong at a place in a record or in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    reason: Reason,
    offset: u64,
}

/// What is wrong; prints without the place.
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
    Behind(usize),
    Subtype { kind: &'static str, subtype: u16 },
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
    /// What is wrong.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// At which byte: of the record as [`decode`](super::decode) tells it, of the decompressed file in reports.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether nothing is lost by it: the route is read all the same.
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
                | FaultKind::Behind(_)
        )
    }

    /// Whether it is a prefix with bits set behind its length.
    #[must_use]
    pub fn is_trailing_bits(&self) -> bool {
        matches!(self.reason.0, FaultKind::TrailingBits(_))
    }

    /// Whether the input ends here, inside a record.
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(self.reason.0, FaultKind::EndsEarly { .. })
    }

    /// Bytes that belong to no record that could be found.
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
                write!(f, "{what}: {need} bytes are wanted, {have} are left")
            }
            FaultKind::Lost { bytes } => write!(f, "no record begins here; {bytes} bytes are passed over"),
            FaultKind::EndsEarly { bytes } => {
                write!(f, "the file ends inside a record, of which it has {bytes} bytes")
            }
            FaultKind::PrefixLength { len, bits } => {
                write!(f, "prefix length {len} is above the {bits} bits of the family")
            }
            FaultKind::TrailingBits(prefix) => {
                write!(f, "bits are set behind the prefix; it is read as {prefix}")
            }
            FaultKind::AddressFamily(family) => write!(f, "address family {family} is neither IPv4 nor IPv6"),
            FaultKind::Status(status) => write!(f, "status {status} where 1 is wanted"),
            FaultKind::NoPeerTable => f.write_str("no list of peers came before this record"),
            FaultKind::PeerIndex { index, peers } => {
                write!(f, "peer {index} of a list of {peers}, which count from 0")
            }
            FaultKind::NoNextHop => f.write_str("a route without next hop"),
            FaultKind::PeerForNextHop => {
                f.write_str("a route without next hop; the peer's address stands for it")
            }
            FaultKind::PathIdentifiers { declared: true } => {
                f.write_str("prefixes are declared to have path identifiers, and are read as having none")
            }
            FaultKind::PathIdentifiers { declared: false } => {
                f.write_str("prefixes have path identifiers that are not declared")
            }
            FaultKind::NextHopLength(len) => write!(f, "a next hop of {len} bytes"),
            FaultKind::Repeated(kind) => write!(f, "attribute {kind} is repeated; the first counts"),
            FaultKind::Missing(name) => write!(f, "the mandatory attribute {name} is missing"),
            FaultKind::Attributes(text) => write!(f, "attributes: {text}"),
            FaultKind::Marker => f.write_str("the message does not begin with the marker"),
            FaultKind::MessageType(kind) => write!(f, "message type {kind} is none of BGP's"),
            FaultKind::MessageLength { len, have } => {
                write!(f, "a message of {len} bytes in a place of {have}")
            }
            FaultKind::Behind(bytes) => write!(f, "{bytes} bytes behind the end"),
            FaultKind::Subtype { kind, subtype } => write!(f, "subtype {subtype} is none of {kind}'s"),
        }
    }
}
