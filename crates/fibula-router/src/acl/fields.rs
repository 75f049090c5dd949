//! The fields of a packet that rules test.

use crate::packet::{u16_at, u32_at};

/// Bits of the field `fragment`, as in RFC 8955, section 4.2.2.12.
pub(super) const DONT_FRAGMENT: u8 = 1;
pub(super) const LATER: u8 = 2;
pub(super) const FIRST: u8 = 4;
pub(super) const LAST: u8 = 8;

macro_rules! fields {
    ($($variant:ident $name:literal $most:literal $what:literal)*) => {
        /// A field whose value is a number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Field {
            $(#[doc = $what] $variant,)*
        }

        impl Field {
            /// All fields.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the word by which rules name the field.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Returns the largest value.
            #[must_use]
            pub const fn most(self) -> u16 {
                match self { $(Self::$variant => $most),* }
            }

            /// Describes the field in one sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $what),* }
            }
        }
    };
}

fields! {
    Protocol "protocol" 255 "The protocol above IP: a number or a name such as `tcp`."
    SourcePort "source-port" 65535 "The source port of TCP, UDP, UDP-Lite, DCCP and SCTP."
    DestinationPort "destination-port" 65535 "The destination port of the same protocols."
    Port "port" 65535 "The source port or the destination port."
    TcpFlags "tcp-flags" 255 "Flags of TCP that are set, or with `!` are not."
    IcmpType "icmp-type" 255 "The type of ICMP or ICMPv6, whose numbers differ."
    IcmpCode "icmp-code" 255 "The code of ICMP or ICMPv6."
    Length "length" 65535 "Bytes of the packet, its IP header included."
    Dscp "dscp" 63 "The code point of differentiated services, a number or a name such as `ef`."
    Fragment "fragment" 15 "Whether the packet is a part of a datagram: `none`, `any`, `first`, `later`, `last`, `df`."
    In "in" 65535 "The interface on which the packet came."
    Out "out" 65535 "The interface by which it leaves."
    Vrf "vrf" 65535 "The VRF of the interface on which it came."
}

impl Field {
    /// The number of fields.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns whether its values are names of the configuration.
    #[must_use]
    pub const fn is_named(self) -> bool {
        matches!(self, Self::In | Self::Out | Self::Vrf)
    }
}

/// The fields of a packet that conditions test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeaderFields {
    /// Whether it is IPv6.
    pub v6: bool,
    /// Source address. An IPv4 address is in the low bits.
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Protocol above IP, after extension headers.
    pub protocol: u8,
    /// Source and destination port; `None` if the protocol has none, or the packet does not contain them.
    pub ports: Option<(u16, u16)>,
    /// Flags of TCP; `None` likewise.
    pub tcp_flags: Option<u8>,
    /// Type and code of ICMP or ICMPv6; `None` likewise.
    pub icmp: Option<(u8, u8)>,
    /// Bytes, IP header included. Of several segments that the sender's or the receiver's offload has combined, that of one segment.
    pub length: u16,
    /// Code point of differentiated services, 6 bits.
    pub dscp: u8,
    /// 1: may not be fragmented; 2: a later part; 4: the first part; 8: the last part.
    pub fragment: u8,
    /// Number of the interface on which it came.
    pub input: u16,
    /// Number of the interface by which it leaves; `None` if it is for the router itself.
    pub output: Option<u16>,
    /// Number of the VRF.
    pub vrf: u16,
}

/// The kind of header above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UpperKind(u8);

impl UpperKind {
    /// No header whose fields are known.
    pub(super) const NONE: Self = Self(0);
    const PORTS: u8 = 1;
    const TCP: u8 = 2;
    const ICMP_4: u8 = 4;
    const ICMP_6: u8 = 8;

    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the kind of header above IP.
    #[inline]
    pub(super) fn of(protocol: u8, v6: bool) -> Self {
        let other = if v6 { Self::ICMP_4 } else { Self::ICMP_6 };
        Self(KINDS[usize::from(protocol)] & !other)
    }

    /// Returns whether the payload begins with two ports.
    #[inline]
    pub(super) const fn has_ports(self) -> bool {
        self.0 & Self::PORTS != 0
    }

    #[inline]
    pub(super) const fn is_tcp(self) -> bool {
        self.0 & Self::TCP != 0
    }

    /// Returns whether it is the ICMP of its family.
    #[inline]
    pub(super) const fn is_icmp(self) -> bool {
        self.0 & (Self::ICMP_4 | Self::ICMP_6) != 0
    }
}

/// The kinds of protocols, as a table, because traffic has many protocols in no order.
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    kinds[6] = UpperKind::PORTS | UpperKind::TCP;
    // UDP, DCCP, SCTP, UDP-Lite.
    kinds[17] = UpperKind::PORTS;
    kinds[33] = UpperKind::PORTS;
    kinds[132] = UpperKind::PORTS;
    kinds[136] = UpperKind::PORTS;
    kinds[1] = UpperKind::ICMP_4;
    kinds[58] = UpperKind::ICMP_6;
    kinds
};

/// The parts of a packet that lie above IP: ports, flags of TCP, and ICMP.
pub(crate) type UpperFields = (Option<(u16, u16)>, Option<u8>, Option<(u8, u8)>);

/// Reads the fields above IP. `upper` is the packet from the end of the IP headers on; empty for later fragments.
#[inline]
pub(crate) fn upper(protocol: u8, v6: bool, upper: &[u8]) -> UpperFields {
    let kind = UpperKind::of(protocol, v6);
    let ports = upper.get(..4).filter(|_| kind.has_ports());
    let ports = ports.map(|word| (u16_at(word, 0), u16_at(word, 2)));
    let flags = upper.get(13).copied().filter(|_| kind.is_tcp());
    let icmp = upper.get(..2).filter(|_| kind.is_icmp()).map(|bytes| (bytes[0], bytes[1]));
    (ports, flags, icmp)
}

/// Returns the code point of the IP header at the beginning of `packet`.
#[inline]
pub(crate) fn dscp(packet: &[u8], v6: bool) -> u8 {
    let word = u32_at(packet, 0);
    // The traffic class is bits 4 to 11 of an IPv6 header, the type of service the second byte of an IPv4 header.
    (if v6 { word >> 22 } else { word >> 18 }) as u8 & 63
}

/// Returns the value of the field `fragment`.
#[inline]
pub(crate) fn fragment(dont: bool, is_fragment: bool, later: bool, more: bool) -> u8 {
    let part = match (is_fragment, later, more) {
        (false, ..) => 0,
        (true, false, _) => FIRST,
        (true, true, true) => LATER,
        (true, true, false) => LATER | LAST,
    };
    part | if dont { DONT_FRAGMENT } else { 0 }
}

impl HeaderFields {
    /// Returns the value of a field; `None` if the packet does not have it. [`Field::Port`] has two and is not here.
    #[inline]
    #[must_use]
    pub fn get(&self, field: Field) -> Option<u16> {
        match field {
            Field::Protocol => Some(u16::from(self.protocol)),
            Field::SourcePort => self.ports.map(|ports| ports.0),
            Field::DestinationPort => self.ports.map(|ports| ports.1),
            Field::Port => None,
            Field::TcpFlags => self.tcp_flags.map(u16::from),
            Field::IcmpType => self.icmp.map(|icmp| u16::from(icmp.0)),
            Field::IcmpCode => self.icmp.map(|icmp| u16::from(icmp.1)),
            Field::Length => Some(self.length),
            Field::Dscp => Some(u16::from(self.dscp)),
            Field::Fragment => Some(u16::from(self.fragment)),
            Field::In => Some(self.input),
            Field::Out => self.output,
            Field::Vrf => Some(self.vrf),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_in_the_guide() {
        let guide =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/router.md"));
        let guide = guide.expect("docs/guide/router.md");
        for field in Field::ALL {
            let row = format!("| `{}` | {} |", field.name(), field.meaning());
            assert!(guide.contains(&row), "docs/guide/router.md lacks this row:\n{row}");
        }
    }
}
