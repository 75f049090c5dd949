//! Neighbour discovery of IPv6 (RFC 4861).

use crate::drops::DropReason;

use super::ethernet::Mac;
use super::icmp::{finish_v6, is_intact_v6};
use super::ipv6::{self, Ipv6};
use super::u128_at;

/// Bytes of a solicitation or advertisement with its link-layer address, IPv6 header included.
pub const LEN: usize = 72;

/// All nodes of the link.
pub const ALL_NODES: u128 = 0xff02_0000_0000_0000_0000_0000_0000_0001;

/// Returns the group of stations whose addresses end like `address` (RFC 4291, section 2.7.1).
#[must_use]
pub const fn solicited_node(address: u128) -> u128 {
    0xff02_0000_0000_0000_0000_0001_ff00_0000 | (address & 0xff_ffff)
}

/// A message of neighbour discovery that has passed the checks of RFC 4861.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nd {
    /// A station looks for a neighbour, or whether an address is taken (from the unspecified address).
    Solicitation {
        /// Address that is looked for.
        target: u128,
        /// MAC address of the sender.
        link: Option<Mac>,
    },
    /// A station announces its address.
    Advertisement {
        /// Address of the station.
        target: u128,
        /// Its MAC address.
        link: Option<Mac>,
        /// Whether this answers a solicitation.
        solicited: bool,
        /// Whether a MAC address that was known before is to be replaced.
        replaces: bool,
    },
    /// Router solicitations, router advertisements, redirects.
    Other,
}

/// Returns whether this type of ICMPv6 is neighbour discovery.
#[must_use]
pub const fn is_nd(kind: u8) -> bool {
    matches!(kind, 133..=137)
}

/// Reads a message that begins at `offset` of a packet, whose type [`is_nd`].
///
/// # Errors
/// When hop limit, code, checksum, length, an option or an address is not as RFC 4861, section 7.1, demands.
pub fn parse(packet: &[u8], parsed: &Ipv6, offset: usize) -> Result<Nd, DropReason> {
    let refused = Err(DropReason::NdMalformed);
    let Some(message) = packet.get(offset..parsed.len) else { return refused };
    if parsed.hop_limit != 255
        || message.len() < 8
        || message[1] != 0
        || !is_intact_v6(packet, parsed, offset)
    {
        return refused;
    }
    let kind = message[0];
    if !matches!(kind, 135 | 136) {
        return Ok(Nd::Other);
    }
    let Some(options) = message.get(24..) else { return refused };
    let target = u128_at(message, 8);
    let Ok(link) = link_option(options, if kind == 135 { 1 } else { 2 }) else { return refused };
    let to_group = ipv6::is_multicast(parsed.destination);
    if ipv6::is_multicast(target) || target == 0 {
        return refused;
    }
    if kind == 135 {
        let probe = parsed.source == 0;
        if probe && (parsed.destination != solicited_node(target) || link.is_some()) {
            return refused;
        }
        return Ok(Nd::Solicitation { target, link });
    }
    let solicited = message[4] & 0x40 != 0;
    if to_group && solicited {
        return refused;
    }
    Ok(Nd::Advertisement { target, link, solicited, replaces: message[4] & 0x20 != 0 })
}

/// Returns the link-layer address among options; an option of length zero, or one that is cut, is an error.
fn link_option(mut options: &[u8], wanted: u8) -> Result<Option<Mac>, DropReason> {
    let mut found = None;
    while !options.is_empty() {
        let len = options.get(1).map_or(0, |&units| usize::from(units) * 8);
        if len == 0 || len > options.len() {
            return Err(DropReason::NdMalformed);
        }
        if options[0] == wanted {
            let mac = Mac([options[2], options[3], options[4], options[5], options[6], options[7]]);
            if len != 8 || !mac.is_station() {
                return Err(DropReason::NdMalformed);
            }
            found = Some(mac);
        }
        options = &options[len..];
    }
    Ok(found)
}

/// Makes a solicitation for `target`, from `source`: to its solicited-node group, or to the target itself when its MAC address
/// is verified. From the unspecified address, it asks whether the address is taken, and carries no MAC address.
/// Returns the packet and its length.
#[must_use]
pub fn solicitation(target: u128, source: u128, mac: Mac, unicast: bool) -> ([u8; LEN], usize) {
    let destination = if unicast { target } else { solicited_node(target) };
    let len = if source == 0 { LEN - 8 } else { LEN };
    let mut packet = [0; LEN];
    message(&mut packet[..len], 135, 0, target, source, destination);
    if source != 0 {
        packet[64..66].copy_from_slice(&[1, 1]);
        packet[66..72].copy_from_slice(&mac.0);
    }
    finish_v6(&mut packet[..len], source, destination);
    (packet, len)
}

/// Makes the advertisement of a router's own address. To the unspecified address it goes to all nodes, unsolicited.
#[must_use]
pub fn advertisement(target: u128, mac: Mac, to: u128) -> [u8; LEN] {
    let solicited = if to == 0 { 0 } else { 0x40 };
    let destination = if to == 0 { ALL_NODES } else { to };
    let mut packet = [0; LEN];
    // R: from a router; O: replaces the known address.
    message(&mut packet, 136, 0xa0 | solicited, target, target, destination);
    packet[64..66].copy_from_slice(&[2, 1]);
    packet[66..72].copy_from_slice(&mac.0);
    finish_v6(&mut packet, target, destination);
    packet
}

fn message(packet: &mut [u8], kind: u8, flags: u8, target: u128, source: u128, destination: u128) {
    let payload = packet.len() - ipv6::HEADER;
    ipv6::write(packet, payload, 255, ipv6::ICMPV6, source, destination);
    packet[40] = kind;
    packet[44] = flags;
    packet[48..64].copy_from_slice(&target.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u128 = 0x2001_0db8 << 96 | 1;
    const B: u128 = 0x2001_0db8 << 96 | 2;
    const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

    fn read(packet: &[u8]) -> Result<Nd, DropReason> {
        parse(packet, &ipv6::parse(packet).unwrap(), 40)
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let (packet, len) = solicitation(A, B, MAC, false);
        assert_eq!(ipv6::parse(&packet).unwrap().destination, solicited_node(A));
        assert_eq!(read(&packet[..len]), Ok(Nd::Solicitation { target: A, link: Some(MAC) }));
        let (packet, len) = solicitation(A, 0, MAC, false);
        assert_eq!(read(&packet[..len]), Ok(Nd::Solicitation { target: A, link: None }));
        let packet = advertisement(A, MAC, B);
        let told = |solicited| Nd::Advertisement { target: A, link: Some(MAC), solicited, replaces: true };
        assert_eq!(read(&packet), Ok(told(true)));
        assert_eq!(read(&advertisement(A, MAC, 0)), Ok(told(false)));
    }

    #[test]
    fn damaged_messages_are_refused() {
        let (packet, _) = solicitation(A, B, MAC, true);
        let changed = |change: &dyn Fn(&mut [u8; LEN])| {
            let mut packet = packet;
            change(&mut packet);
            let (source, destination) = (u128_at(&packet, 8), u128_at(&packet, 24));
            finish_v6(&mut packet, source, destination);
            read(&packet)
        };
        assert!(changed(&|_| {}).is_ok());
        let refused = Err(DropReason::NdMalformed);
        assert_eq!(changed(&|packet| packet[7] = 254), refused, "came through a router");
        assert_eq!(changed(&|packet| packet[41] = 1), refused, "code");
        assert_eq!(changed(&|packet| packet[48] = 0xff), refused, "a group as target");
        assert_eq!(changed(&|packet| packet[65] = 0), refused, "an option of length zero");
        assert_eq!(changed(&|packet| packet[65] = 2), refused, "an option that is cut");
        assert_eq!(changed(&|packet| packet[8..24].fill(0)), refused, "a probe that tells an address");
        let mut wrong = packet;
        wrong[50] ^= 1;
        assert_eq!(read(&wrong), refused, "checksum");
    }
}
