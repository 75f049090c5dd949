//! IPv4 headers (RFC 791, RFC 1812).

use crate::drops::DropReason;

use super::checksum;
use super::martian::Martians;
use super::{u16_at, u32_at};

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;

/// Most bytes of a datagram.
const MAX_LEN: usize = 65_535;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// The fields of a valid IPv4 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4 {
    /// Bytes of the header, options included.
    pub header: usize,
    /// Bytes of the packet.
    pub len: usize,
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Flags and fragment offset, as in the header.
    pub fragment: u16,
}

impl Ipv4 {
    /// Returns whether the packet is a part of a datagram.
    #[inline]
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.fragment & (MORE_FRAGMENTS | OFFSET) != 0
    }

    /// Returns whether the packet is a part of a datagram and not its first.
    #[inline]
    #[must_use]
    pub const fn is_later_fragment(&self) -> bool {
        self.fragment & OFFSET != 0
    }

    /// Returns whether the packet is a part of a datagram and not its last.
    #[inline]
    #[must_use]
    pub const fn more_fragments(&self) -> bool {
        self.fragment & MORE_FRAGMENTS != 0
    }

    /// Returns whether the packet is a part of a datagram that would be longer than any may be.
    #[inline]
    #[must_use]
    pub const fn is_beyond_datagram(&self) -> bool {
        (self.fragment & OFFSET) as usize * 8 + self.len > MAX_LEN
    }

    /// Returns whether routers may not fragment the packet.
    #[inline]
    #[must_use]
    pub const fn dont_fragment(&self) -> bool {
        self.fragment & DONT_FRAGMENT != 0
    }
}

/// Reads the header at the beginning of `packet`, which may be longer than the packet is (Ethernet pads short frames), and
/// checks the rules of RFC 1812, section 5.2.2.
///
/// # Errors
/// When version, header length, total length or checksum are wrong.
#[inline]
pub fn parse(packet: &[u8]) -> Result<Ipv4, DropReason> {
    let Some((fixed, _)) = packet.split_first_chunk::<20>() else { return Err(DropReason::Ipv4Header) };
    if fixed[0] >> 4 != 4 {
        return Err(DropReason::Ipv4Version);
    }
    let header = usize::from(fixed[0] & 15) * 4;
    if header < 20 || header > packet.len() {
        return Err(DropReason::Ipv4Header);
    }
    let len = usize::from(u16_at(fixed, 2));
    if len < header || len > packet.len() {
        return Err(DropReason::Ipv4Length);
    }
    let is_right =
        if header == 20 { checksum::is_right(fixed) } else { checksum::sum(&packet[..header], 0) == 0xffff };
    if !is_right {
        return Err(DropReason::Ipv4Checksum);
    }
    Ok(Ipv4 {
        header,
        len,
        source: u32_at(fixed, 12),
        destination: u32_at(fixed, 16),
        ttl: fixed[8],
        protocol: fixed[9],
        fragment: u16_at(fixed, 6),
    })
}

/// Counts one hop: TTL less one, and the checksum corrected for it.
#[inline]
pub fn hop(packet: &mut [u8]) {
    let Some((header, _)) = packet.split_first_chunk_mut::<20>() else { return };
    // One word: TTL, protocol and checksum, because bytes just stored could not be loaded in one piece with those beside them.
    let old = u32_at(header, 8);
    let new = old.wrapping_sub(0x0100_0000);
    let corrected = checksum::update(old as u16, (old >> 16) as u16, (new >> 16) as u16);
    header[8..12].copy_from_slice(&(new & 0xffff_0000 | u32::from(corrected)).to_be_bytes());
}

/// Writes a header without options and with its checksum. Identification and fragment field are zero but for "do not fragment".
pub fn write(header: &mut [u8], len: usize, ttl: u8, protocol: u8, source: u32, destination: u32) {
    let header = &mut header[..20];
    header.copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, ttl, protocol, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    header[12..16].copy_from_slice(&source.to_be_bytes());
    header[16..20].copy_from_slice(&destination.to_be_bytes());
    let sum = checksum::checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Returns whether packets from this address are never forwarded: unspecified, loopback, link-local, multicast, reserved and
/// broadcast (RFC 1812, section 5.3.7; RFC 3927, section 2.7), but for those that are accepted.
#[inline]
#[must_use]
pub fn is_martian_source(address: u32, accepted: Martians) -> bool {
    (matches!(address >> 24, 0 | 127 | 224..=255) || address >> 16 == 0xa9fe) && !accepted.contains(address)
}

/// Returns whether packets to this address are never forwarded. Multicast is not among them.
#[inline]
#[must_use]
pub fn is_martian_destination(address: u32, accepted: Martians) -> bool {
    (matches!(address >> 24, 0 | 127 | 240..=255) || address >> 16 == 0xa9fe) && !accepted.contains(address)
}

/// Returns whether the address is multicast.
#[inline]
#[must_use]
pub const fn is_multicast(address: u32) -> bool {
    address >> 28 == 0xe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Vec<u8> {
        let mut packet = vec![0; 28];
        write(&mut packet, 28, 64, UDP, 0x0a00_0001, 0x0a00_0002);
        packet
    }

    fn fixed(mut packet: Vec<u8>) -> Vec<u8> {
        let header = usize::from(packet[0] & 15) * 4;
        packet[10..12].fill(0);
        let sum = checksum::checksum(&packet[..header.min(packet.len())]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn each_rule_of_a_header() {
        let good = packet();
        let parsed = parse(&good).unwrap();
        assert_eq!((parsed.header, parsed.len, parsed.ttl, parsed.protocol), (20, 28, 64, UDP));
        assert!(parsed.dont_fragment() && !parsed.is_fragment());
        let with = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            parse(&fixed(packet)).map(|header| header.len)
        };
        assert_eq!(with(0, 0x65), Err(DropReason::Ipv4Version));
        assert_eq!(with(0, 0x44), Err(DropReason::Ipv4Header));
        assert_eq!(with(0, 0x48), Err(DropReason::Ipv4Header));
        assert_eq!(with(3, 19), Err(DropReason::Ipv4Length));
        assert_eq!(with(3, 29), Err(DropReason::Ipv4Length));
        assert_eq!(with(3, 20), Ok(20));
        assert_eq!(parse(&good[..19]), Err(DropReason::Ipv4Header));
        assert_eq!(parse(&good[..27]), Err(DropReason::Ipv4Length));
        let mut wrong = good.clone();
        wrong[15] ^= 1;
        assert_eq!(parse(&wrong), Err(DropReason::Ipv4Checksum));
    }

    #[test]
    fn a_hop_keeps_the_checksum_right() {
        for ttl in 2..=255 {
            let mut packet = vec![0; 20];
            write(&mut packet, 20, ttl, TCP, 0xc000_0201, 0xffff_0000);
            hop(&mut packet);
            assert_eq!(parse(&packet).unwrap().ttl, ttl - 1);
        }
    }
}
