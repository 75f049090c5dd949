//! ICMP and ICMPv6: errors that the router sends (RFC 792, RFC 1812 section 4.3, RFC 4443), and answers to pings.

use super::checksum;
use super::ipv4::{self, Ipv4};
use super::ipv6::{self, Ipv6, Upper};
use super::martian::Martians;
use super::{u32_at, u128_at};

/// Room that any message fits in.
pub const MAX_MESSAGE: usize = ipv6::MIN_MTU;
/// Longest ICMP error (RFC 1812, section 4.3.2.3).
const MAX_V4: usize = 576;
/// TTL and hop limit of messages.
const TTL: u8 = 64;

/// The reason of an ICMP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// No route matches.
    NoRoute,
    /// The neighbour does not answer, or the route is unreachable.
    HostUnreachable,
    /// The route is prohibited.
    Prohibited,
    /// The packet would leave the scope of its source (IPv6 alone).
    BeyondScope,
    /// TTL or hop limit ran out.
    Expired,
    /// The packet exceeds this MTU.
    TooBig(usize),
    /// The byte of the header that is wrong.
    Parameter(u8),
}

impl Problem {
    /// Returns type, code and the second word of the ICMP message.
    fn v4(self) -> (u8, u8, u32) {
        match self {
            Self::NoRoute => (3, 0, 0),
            Self::HostUnreachable | Self::BeyondScope => (3, 1, 0),
            Self::Prohibited => (3, 13, 0),
            Self::Expired => (11, 0, 0),
            Self::TooBig(mtu) => (3, 4, mtu.min(0xffff) as u32),
            Self::Parameter(pointer) => (12, 0, u32::from(pointer) << 24),
        }
    }

    /// Returns type, code and the second word of the ICMPv6 message.
    fn v6(self) -> (u8, u8, u32) {
        match self {
            Self::NoRoute => (1, 0, 0),
            Self::HostUnreachable => (1, 3, 0),
            Self::Prohibited => (1, 1, 0),
            Self::BeyondScope => (1, 2, 0),
            Self::Expired => (3, 0, 0),
            // Below 1280 it would be an error of the link, which must fragment by itself (RFC 8200, section 5).
            Self::TooBig(mtu) => (2, 0, mtu.max(ipv6::MIN_MTU) as u32),
            Self::Parameter(pointer) => (4, 0, u32::from(pointer)),
        }
    }
}

/// Returns whether an error about this packet may be sent (RFC 1812, section 4.3.2.7). `accepted` are the martians that may be its
/// source.
#[must_use]
pub fn may_answer_v4(packet: &[u8], parsed: &Ipv4, accepted: Martians) -> bool {
    let about_error = parsed.protocol == ipv4::ICMP
        // Echo, timestamp and similar types are queries. All other types count as errors, including unreadable ones.
        && !matches!(packet.get(parsed.header), Some(0 | 8..=10 | 13..=18 | 42 | 43));
    !about_error
        && !parsed.is_later_fragment()
        && !ipv4::is_martian_source(parsed.source, accepted)
        && !ipv4::is_multicast(parsed.destination)
        && parsed.destination != u32::MAX
}

/// Returns whether an error about this packet may be sent (RFC 4443, section 2.4 e). `problem` matters: packets to groups may be
/// too big.
#[must_use]
pub fn may_answer_v6(packet: &[u8], parsed: &Ipv6, upper: &Upper, problem: Problem) -> bool {
    // A redirect counts as an error; a type that is cut off may be one.
    let about_error = upper.protocol == ipv6::ICMPV6
        && upper.offset.is_none_or(|at| packet.get(at).is_none_or(|&kind| kind < 128 || kind == 137));
    !about_error
        && !ipv6::is_martian_source(parsed.source)
        && (!ipv6::is_multicast(parsed.destination) || matches!(problem, Problem::TooBig(_)))
}

/// Writes an ICMP error about `packet` and returns its length. It quotes as much of the packet as fits.
pub fn error_v4(out: &mut [u8; MAX_MESSAGE], problem: Problem, source: u32, packet: &[u8]) -> usize {
    let quoted = packet.len().min(MAX_V4 - 28);
    let len = 28 + quoted;
    ipv4::write(out, len, TTL, ipv4::ICMP, source, u32_at(packet, 12));
    // Precedence "internetwork control", and the type of service of the packet (RFC 1812, section 4.3.2.5).
    out[1] = 0xc0 | packet.get(1).map_or(0, |tos| tos & 0x1e);
    out[10..12].fill(0);
    let sum = checksum::checksum(&out[..20]);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    let (kind, code, rest) = problem.v4();
    out[20..24].copy_from_slice(&[kind, code, 0, 0]);
    out[24..28].copy_from_slice(&rest.to_be_bytes());
    out[28..len].copy_from_slice(&packet[..quoted]);
    let sum = checksum::checksum(&out[20..len]);
    out[22..24].copy_from_slice(&sum.to_be_bytes());
    len
}

/// Writes an ICMPv6 error about `packet` and returns its length.
pub fn error_v6(out: &mut [u8; MAX_MESSAGE], problem: Problem, source: u128, packet: &[u8]) -> usize {
    let quoted = packet.len().min(ipv6::MIN_MTU - 48);
    let len = 48 + quoted;
    let destination = u128_at(packet, 8);
    ipv6::write(out, 8 + quoted, TTL, ipv6::ICMPV6, source, destination);
    let (kind, code, rest) = problem.v6();
    out[40..44].copy_from_slice(&[kind, code, 0, 0]);
    out[44..48].copy_from_slice(&rest.to_be_bytes());
    out[48..len].copy_from_slice(&packet[..quoted]);
    finish_v6(&mut out[..len], source, destination);
    len
}

/// Computes the checksum of an ICMPv6 message without extension headers.
pub(crate) fn finish_v6(packet: &mut [u8], source: u128, destination: u128) {
    let pseudo = checksum::pseudo_ipv6(source, destination, packet.len() - 40, ipv6::ICMPV6);
    packet[42..44].fill(0);
    let sum = !checksum::sum(&packet[40..], pseudo);
    packet[42..44].copy_from_slice(&sum.to_be_bytes());
}

/// Returns whether an ICMPv6 message at `offset` has the right checksum.
#[must_use]
pub fn is_intact_v6(packet: &[u8], parsed: &Ipv6, offset: usize) -> bool {
    let Some(message) = packet.get(offset..parsed.len) else { return false };
    let pseudo = checksum::pseudo_ipv6(parsed.source, parsed.destination, message.len(), ipv6::ICMPV6);
    checksum::sum(message, pseudo) == 0xffff
}

/// Turns a ping of the router into its answer, in `out`; `None` for what is not a ping, is a fragment, does not fit or is
/// damaged.
#[must_use]
pub fn echo_reply_v4(out: &mut [u8; MAX_MESSAGE], packet: &[u8], parsed: &Ipv4) -> Option<usize> {
    let message = packet.get(parsed.header..parsed.len)?;
    let ping = parsed.protocol == ipv4::ICMP && message.len() >= 8 && message[..2] == [8, 0];
    let len = 20 + message.len();
    if !ping || parsed.is_fragment() || len > out.len() || checksum::sum(message, 0) != 0xffff {
        return None;
    }
    ipv4::write(out, len, TTL, ipv4::ICMP, parsed.destination, parsed.source);
    // Precedence and type of service of the request (RFC 1812, section 4.3.2.5).
    out[1] = packet[1];
    out[10..12].fill(0);
    let sum = checksum::checksum(&out[..20]);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out[20..len].copy_from_slice(message);
    out[20..24].fill(0);
    let sum = checksum::checksum(&out[20..len]);
    out[22..24].copy_from_slice(&sum.to_be_bytes());
    Some(len)
}

/// Like [`echo_reply_v4`], for ICMPv6 without extension headers.
#[must_use]
pub fn echo_reply_v6(out: &mut [u8; MAX_MESSAGE], packet: &[u8], parsed: &Ipv6) -> Option<usize> {
    let message = packet.get(ipv6::HEADER..parsed.len)?;
    let ping = parsed.next_header == ipv6::ICMPV6 && message.len() >= 8 && message[..2] == [128, 0];
    if !ping || parsed.len > out.len() || !is_intact_v6(packet, parsed, ipv6::HEADER) {
        return None;
    }
    ipv6::write(out, message.len(), TTL, ipv6::ICMPV6, parsed.destination, parsed.source);
    // The traffic class of the request.
    out[0] |= packet[0] & 15;
    out[1] |= packet[1] & 0xf0;
    out[40..parsed.len].copy_from_slice(message);
    out[40] = 129;
    finish_v6(&mut out[..parsed.len], parsed.destination, parsed.source);
    Some(parsed.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, payload: &[u8], field: u16, source: u32, destination: u32) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet.extend(payload);
        let len = packet.len();
        ipv4::write(&mut packet, len, 1, protocol, source, destination);
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        packet[10..12].fill(0);
        let sum = checksum::checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn errors_are_never_about_errors_groups_or_later_fragments() {
        let may =
            |packet: Vec<u8>| may_answer_v4(&packet, &ipv4::parse(&packet).unwrap(), Martians::default());
        let (a, b) = (0x0a00_0001, 0x0a00_0002);
        assert!(may(v4(17, &[0; 8], 0, a, b)));
        assert!(may(v4(1, &[8, 0, 0, 0], 0, a, b)), "a ping");
        for kind in [3, 4, 5, 11, 12, 40] {
            assert!(!may(v4(1, &[kind, 0, 0, 0], 0, a, b)), "ICMP {kind}");
        }
        assert!(!may(v4(1, &[], 0, a, b)), "ICMP without a type");
        assert!(may(v4(17, &[0; 8], 0x2000, a, b)), "the first fragment");
        assert!(!may(v4(17, &[0; 8], 5, a, b)), "a later one");
        assert!(!may(v4(17, &[0; 8], 0, a, 0xe000_0005)));
        assert!(!may(v4(17, &[0; 8], 0, a, u32::MAX)));
        assert!(!may(v4(17, &[0; 8], 0, 0, b)));
    }

    #[test]
    fn messages_have_their_form_and_length() {
        let mut out = [0; MAX_MESSAGE];
        let packet = v4(17, &[7; 1400], 0, 0x0a00_0001, 0x0a00_0002);
        let len = error_v4(&mut out, Problem::TooBig(1300), 0x0a00_00fe, &packet);
        assert_eq!(len, 576);
        let header = ipv4::parse(&out[..len]).unwrap();
        assert_eq!((header.destination, header.source), (0x0a00_0001, 0x0a00_00fe));
        assert_eq!(out[20..22], [3, 4]);
        assert_eq!(u32_at(&out, 24), 1300);
        assert_eq!(checksum::sum(&out[20..len], 0), 0xffff);

        let mut packet = vec![0; 1500];
        ipv6::write(&mut packet, 1460, 1, 17, 1 << 100, 2 << 100);
        let len = error_v6(&mut out, Problem::TooBig(600), 3 << 100, &packet);
        assert_eq!(len, 1280);
        let header = ipv6::parse(&out[..len]).unwrap();
        assert!(is_intact_v6(&out[..len], &header, 40));
        assert_eq!((out[40], u32_at(&out, 44)), (2, 1280), "no packet too big below 1280");
    }

    #[test]
    fn pings_are_answered_and_damaged_ones_are_not() {
        let mut out = [0; MAX_MESSAGE];
        let mut ping = v4(1, &[8, 0, 0, 0, 0, 1, 0, 2, 3, 4, 5], 0, 0x0a00_0001, 0x0a00_0002);
        let sum = checksum::checksum(&ping[20..]);
        ping[22..24].copy_from_slice(&sum.to_be_bytes());
        let parsed = ipv4::parse(&ping).unwrap();
        let len = echo_reply_v4(&mut out, &ping, &parsed).unwrap();
        assert_eq!((len, out[20]), (ping.len(), 0));
        assert_eq!(checksum::sum(&out[20..len], 0), 0xffff);
        assert_eq!(out[24..len], ping[24..]);
        ping[28] ^= 1;
        assert_eq!(echo_reply_v4(&mut out, &ping, &parsed), None);
    }
}
