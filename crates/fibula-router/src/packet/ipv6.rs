//! IPv6 headers and extension headers (RFC 8200).

use crate::drops::DropReason;

use super::{u16_at, u32_at, u128_at};

/// Protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;
/// Bytes of the fixed header.
pub const HEADER: usize = 40;
/// No link has a smaller MTU (RFC 8200, section 5).
pub const MIN_MTU: usize = 1280;

/// Extension headers that are walked at most: longer chains are taken for packets without ports.
const MAX_EXTENSIONS: usize = 8;

/// The fields of a valid IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6 {
    /// Bytes of the packet, header included.
    pub len: usize,
    /// Source address.
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Hop limit.
    pub hop_limit: u8,
    /// Type of the header after this one.
    pub next_header: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
}

/// Reads the header at the beginning of `packet`, which may be longer than the packet is.
///
/// # Errors
/// When the version is wrong, or header or payload exceed `packet`.
#[inline]
pub fn parse(packet: &[u8]) -> Result<Ipv6, DropReason> {
    let Some((header, _)) = packet.split_first_chunk::<HEADER>() else { return Err(DropReason::Ipv6Length) };
    if header[0] >> 4 != 6 {
        return Err(DropReason::Ipv6Version);
    }
    let len = HEADER + usize::from(u16_at(header, 4));
    if len > packet.len() {
        return Err(DropReason::Ipv6Length);
    }
    Ok(Ipv6 {
        len,
        source: u128_at(header, 8),
        destination: u128_at(header, 24),
        hop_limit: header[7],
        next_header: header[6],
        flow_label: u32_at(header, 0) & 0xf_ffff,
    })
}

/// The payload after the extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upper {
    /// Protocol of the payload; of an unknown or cut chain, the last type that was read.
    pub protocol: u8,
    /// Where the payload begins; `None` if it is not in the packet: a cut chain.
    pub offset: Option<usize>,
    /// Whether there is a fragment header that makes the packet a part of a datagram.
    pub fragment: bool,
    /// Whether the packet is a part of a datagram and not its first.
    pub later_fragment: bool,
    /// Whether the packet is a part of a datagram and not its last.
    pub more_fragments: bool,
    /// Whether there is a routing header of type 0.
    pub routing_0: bool,
}

/// Walks the extension headers of a packet of `packet.len()` bytes. Hop-by-hop options are skipped like others (RFC 8200,
/// section 4: routers need not look at them).
#[inline]
#[must_use]
pub fn upper(packet: &[u8], next_header: u8) -> Upper {
    let mut upper = Upper {
        protocol: next_header,
        offset: Some(HEADER),
        fragment: false,
        later_fragment: false,
        more_fragments: false,
        routing_0: false,
    };
    let mut at = HEADER;
    for _ in 0..MAX_EXTENSIONS {
        let units = match upper.protocol {
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => 8,
            // Authentication counts words of four bytes, less two.
            51 => 4,
            44 => 0,
            _ => {
                upper.offset = (at <= packet.len()).then_some(at);
                return upper;
            }
        };
        let Some(extension) = packet.get(at..at + 8) else {
            upper.offset = None;
            return upper;
        };
        match upper.protocol {
            43 => upper.routing_0 |= extension[2] == 0,
            44 => {
                let field = u16_at(extension, 2);
                upper.fragment |= field & 0xfff9 != 0;
                upper.later_fragment |= field & 0xfff8 != 0;
                upper.more_fragments |= field & 1 != 0;
            }
            _ => {}
        }
        let length = usize::from(extension[1]);
        at += match units {
            8 => (length + 1) * 8,
            4 => (length + 2) * 4,
            _ => 8,
        };
        upper.protocol = extension[0];
        if upper.later_fragment {
            // The bytes after this are payload of the datagram, not a header.
            upper.offset = None;
            return upper;
        }
    }
    upper.offset = None;
    upper
}

/// Counts one hop.
#[inline]
pub fn hop(packet: &mut [u8]) {
    if let Some(limit) = packet.get_mut(7) {
        *limit = limit.wrapping_sub(1);
    }
}

/// Writes a header.
pub fn write(
    header: &mut [u8],
    payload: usize,
    hop_limit: u8,
    next_header: u8,
    source: u128,
    destination: u128,
) {
    let header = &mut header[..HEADER];
    header[..4].copy_from_slice(&[0x60, 0, 0, 0]);
    header[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
    header[6] = next_header;
    header[7] = hop_limit;
    header[8..24].copy_from_slice(&source.to_be_bytes());
    header[24..40].copy_from_slice(&destination.to_be_bytes());
}

/// Returns whether packets from this address are never forwarded: unspecified, loopback, multicast. Those from link-local
/// addresses may not leave their link.
#[inline]
#[must_use]
pub const fn is_martian_source(address: u128) -> bool {
    address <= 1 || is_multicast(address)
}

/// Returns whether packets to this address are never forwarded: unspecified and loopback. Link-local and multicast
/// destinations have rules of their own.
#[inline]
#[must_use]
pub const fn is_martian_destination(address: u128) -> bool {
    address <= 1
}

/// Returns whether the address is multicast.
#[inline]
#[must_use]
pub const fn is_multicast(address: u128) -> bool {
    address >> 120 == 0xff
}

/// Returns whether the address is of fe80::/10.
#[inline]
#[must_use]
pub const fn is_link_local(address: u128) -> bool {
    address >> 118 == 0xfe80 >> 6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(first: u8, extensions: &[u8]) -> Upper {
        let mut packet = vec![0; HEADER];
        packet.extend(extensions);
        upper(&packet, first)
    }

    #[test]
    fn chains_are_walked_to_their_payload() {
        assert_eq!(chain(17, &[]).offset, Some(40));
        let hop_by_hop = [6, 0, 1, 4, 0, 0, 0, 0];
        assert_eq!((chain(0, &hop_by_hop).protocol, chain(0, &hop_by_hop).offset), (6, Some(48)));
        let two = [60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!((chain(0, &two).protocol, chain(0, &two).offset), (17, Some(64)));
        let authentication = [17, 4, 0, 0, 0, 0, 0, 1];
        let mut long = authentication.to_vec();
        long.resize(24, 0);
        assert_eq!((chain(51, &long).protocol, chain(51, &long).offset), (17, Some(64)));
    }

    #[test]
    fn fragments_and_cut_chains_have_no_ports() {
        let first = chain(44, &[17, 0, 0, 1, 0, 0, 0, 9]);
        assert!(first.fragment && !first.later_fragment && first.offset == Some(48));
        let later = chain(44, &[17, 0, 0, 8, 0, 0, 0, 9]);
        assert!(later.fragment && later.later_fragment && later.offset.is_none());
        let atomic = chain(44, &[17, 0, 0, 0, 0, 0, 0, 9]);
        assert!(!atomic.fragment && atomic.offset == Some(48), "RFC 6946");
        assert_eq!(chain(0, &[17, 0, 0]).offset, None);
        assert_eq!(chain(0, &[17, 9, 0, 0, 0, 0, 0, 0]).offset, None, "beyond the packet");
        let endless: Vec<u8> = [60, 0, 0, 0, 0, 0, 0, 0].repeat(20);
        assert_eq!(chain(60, &endless).offset, None);
    }

    #[test]
    fn routing_headers_of_type_0_are_seen() {
        assert!(chain(43, &[17, 2, 0, 1, 0, 0, 0, 0]).routing_0);
        assert!(!chain(43, &[17, 2, 4, 1, 0, 0, 0, 0]).routing_0, "segment routing");
    }

    #[test]
    fn each_rule_of_a_header() {
        let mut packet = vec![0; 48];
        write(&mut packet, 8, 64, 17, 1 << 100, 2 << 100);
        assert_eq!(parse(&packet).unwrap().len, 48);
        assert_eq!(parse(&packet[..47]), Err(DropReason::Ipv6Length));
        assert_eq!(parse(&packet[..39]), Err(DropReason::Ipv6Length));
        packet[0] = 0x40;
        assert_eq!(parse(&packet), Err(DropReason::Ipv6Version));
    }
}
