//! Multicast listener discovery (RFC 3810): which groups the router listens to, told to switches and routers that pass on groups
//! only where somebody listens.

use super::checksum;
use super::icmp::is_intact_v6;
use super::ipv6::{self, Ipv6};

/// Type of a query.
pub const QUERY: u8 = 130;
/// Where reports go: all routers that know MLDv2.
pub const ALL_MLD_ROUTERS: u128 = 0xff02_0000_0000_0000_0000_0000_0000_0016;
/// All routers of the link: a group of every router.
pub const ALL_ROUTERS: u128 = 0xff02_0000_0000_0000_0000_0000_0000_0002;
/// Most groups of a report.
pub const GROUPS: usize = 32;

const REPORT: u8 = 143;
/// IPv6 header, hop-by-hop options, and the fixed part of a report.
const FIXED: usize = ipv6::HEADER + 8 + 8;
const RECORD: usize = 20;
/// Bytes of the largest report.
pub const LEN: usize = FIXED + GROUPS * RECORD;

/// Why a report is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A query.
    Query,
    /// The groups are new.
    Change,
}

/// Returns whether the ICMPv6 message at `offset` is a query as RFC 3810, section 6.2, wants it.
#[must_use]
pub fn is_query(packet: &[u8], parsed: &Ipv6, offset: usize) -> bool {
    let message = packet.get(offset..parsed.len).unwrap_or_default();
    message.len() >= 24
        && message[0] == QUERY
        && parsed.hop_limit == 1
        && ipv6::is_link_local(parsed.source)
        && is_intact_v6(packet, parsed, offset)
}

/// Builds a report saying that the router listens to `groups` (at most [`GROUPS`]), from every sender. Returns the packet and its
/// length. `source` is a link-local address, or the unspecified one while there is none.
#[must_use]
pub fn report(groups: &[u128], reason: Reason, source: u128) -> ([u8; LEN], usize) {
    let groups = &groups[..groups.len().min(GROUPS)];
    let len = FIXED + groups.len() * RECORD;
    let mut packet = [0; LEN];
    ipv6::write(&mut packet, len - ipv6::HEADER, 1, 0, source, ALL_MLD_ROUTERS);
    // Hop-by-hop options: ICMPv6 follows; an alert for routers, "MLD"; padding.
    packet[40..48].copy_from_slice(&[ipv6::ICMPV6, 0, 5, 2, 0, 0, 1, 0]);
    packet[48] = REPORT;
    packet[54..56].copy_from_slice(&(groups.len() as u16).to_be_bytes());
    for (record, group) in packet[FIXED..].chunks_exact_mut(RECORD).zip(groups) {
        // MODE_IS_EXCLUDE or CHANGE_TO_EXCLUDE_MODE, of no sources.
        record[0] = if reason == Reason::Query { 2 } else { 4 };
        record[4..].copy_from_slice(&group.to_be_bytes());
    }
    let pseudo = checksum::pseudo_ipv6(source, ALL_MLD_ROUTERS, len - 48, ipv6::ICMPV6);
    let sum = !checksum::sum(&packet[48..len], pseudo);
    packet[50..52].copy_from_slice(&sum.to_be_bytes());
    (packet, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK_LOCAL: u128 = 0xfe80 << 112 | 7;

    #[test]
    fn a_report_is_a_whole_packet_with_its_groups() {
        let groups = [ALL_ROUTERS, 0xff02 << 112 | 0x1_ff00_0007];
        let (packet, len) = report(&groups, Reason::Change, LINK_LOCAL);
        let packet = &packet[..len];
        let parsed = ipv6::parse(packet).unwrap();
        assert_eq!((parsed.hop_limit, parsed.source, parsed.destination), (1, LINK_LOCAL, ALL_MLD_ROUTERS));
        let upper = ipv6::upper(packet, parsed.next_header);
        assert_eq!((upper.protocol, upper.offset), (ipv6::ICMPV6, Some(48)));
        assert!(is_intact_v6(packet, &parsed, 48));
        assert_eq!((packet[48], packet[55], packet[56], packet[76]), (143, 2, 4, 4));
        assert_eq!(packet[60..76], ALL_ROUTERS.to_be_bytes());
        assert_eq!(report(&[ALL_ROUTERS; 40], Reason::Query, 0).1, LEN);
        assert!(!is_query(packet, &parsed, 48), "a report");
    }

    #[test]
    fn queries_are_checked() {
        let query = |source: u128, hop_limit: u8, len: usize| {
            let mut packet = vec![0; 40 + len];
            ipv6::write(&mut packet, len, hop_limit, ipv6::ICMPV6, source, 0xff02 << 112 | 1);
            packet[40] = QUERY;
            super::super::icmp::finish_v6(&mut packet, source, 0xff02 << 112 | 1);
            packet
        };
        let is = |packet: &[u8]| is_query(packet, &ipv6::parse(packet).unwrap(), 40);
        assert!(is(&query(LINK_LOCAL, 1, 24)) && is(&query(LINK_LOCAL, 1, 28)));
        assert!(!is(&query(LINK_LOCAL, 255, 24)), "from afar");
        assert!(!is(&query(1 << 125, 1, 24)), "not from this link");
        assert!(!is(&query(LINK_LOCAL, 1, 20)), "too short");
        let mut wrong = query(LINK_LOCAL, 1, 24);
        wrong[45] ^= 1;
        assert!(!is(&wrong), "checksum");
    }
}
