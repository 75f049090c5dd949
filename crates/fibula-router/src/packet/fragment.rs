//! Fragmentation of IPv4 (RFC 791, section 3.2).

use super::ipv4::Ipv4;
use super::{checksum, u16_at};

/// Most bytes of an IPv4 header.
pub const MAX_HEADER: usize = 60;

const COPIED: u8 = 0x80;
const MORE: u16 = 0x2000;

/// One fragment: a header of its own, and a part of the packet's payload.
#[derive(Debug)]
pub struct Fragment<'p> {
    header: [u8; MAX_HEADER],
    header_len: usize,
    /// The payload, as it is in the packet.
    pub payload: &'p [u8],
}

impl Fragment<'_> {
    /// Returns the header, with its checksum.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header[..self.header_len]
    }
}

/// The fragments of a packet, in order.
#[derive(Debug)]
pub struct Fragments<'p> {
    packet: &'p [u8],
    first_header: usize,
    /// Options that later fragments carry too, with the fixed header before them.
    later: [u8; MAX_HEADER],
    later_header: usize,
    mtu: usize,
    /// Bytes of payload that are in earlier fragments.
    done: usize,
}

/// Splits a valid packet into fragments of at most `mtu` bytes; `None` if not even eight bytes of payload fit.
#[must_use]
pub fn split<'p>(packet: &'p [u8], parsed: &Ipv4, mtu: usize) -> Option<Fragments<'p>> {
    let header = packet.get(..parsed.header)?;
    if mtu < parsed.header + 8 || packet.len() < parsed.len {
        return None;
    }
    let mut later = [0; MAX_HEADER];
    later[..20].copy_from_slice(&header[..20]);
    let (mut at, mut to) = (20, 20);
    while at < header.len() && header[at] != 0 {
        let len = if header[at] == 1 { 1 } else { header.get(at + 1).copied().map_or(0, usize::from) };
        if len == 0 || at + len > header.len() {
            return None;
        }
        if header[at] & COPIED != 0 {
            later[to..to + len].copy_from_slice(&header[at..at + len]);
            to += len;
        }
        at += len;
    }
    // Headers are whole words; option 0 ends the list.
    let later_header = to.next_multiple_of(4);
    let packet = &packet[..parsed.len];
    Some(Fragments { packet, first_header: parsed.header, later, later_header, mtu, done: 0 })
}

impl<'p> Iterator for Fragments<'p> {
    type Item = Fragment<'p>;

    fn next(&mut self) -> Option<Fragment<'p>> {
        let payload = self.packet.get(self.first_header + self.done..).filter(|rest| !rest.is_empty())?;
        let mut header = [0; MAX_HEADER];
        let header_len = if self.done == 0 { self.first_header } else { self.later_header };
        let source: &[u8] = if self.done == 0 { self.packet } else { &self.later };
        header[..header_len].copy_from_slice(&source[..header_len]);
        header[0] = 0x40 | (header_len / 4) as u8;
        let room = (self.mtu - header_len) & !7;
        let last = payload.len() <= self.mtu - header_len;
        let payload = if last { payload } else { &payload[..room] };
        let original = u16_at(self.packet, 6);
        // The packet may be a fragment itself. Its last part keeps the packet's own flag, and offsets count from the packet's
        // own.
        let more = if last { original & MORE } else { MORE };
        let offset = (original & 0x1fff).wrapping_add((self.done / 8) as u16) & 0x1fff;
        header[2..4].copy_from_slice(&((header_len + payload.len()) as u16).to_be_bytes());
        header[6..8].copy_from_slice(&(more | offset).to_be_bytes());
        header[10..12].fill(0);
        let sum = checksum::checksum(&header[..header_len]);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        self.done += payload.len();
        Some(Fragment { header, header_len, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ipv4;
    use super::*;

    fn packet(options: &[u8], payload: usize, field: u16) -> Vec<u8> {
        let header = 20 + options.len();
        let mut packet = vec![0; header + payload];
        let len = packet.len();
        ipv4::write(&mut packet, len, 64, 17, 1, 2);
        packet[0] = 0x40 | (header / 4) as u8;
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        packet[20..header].copy_from_slice(options);
        for (index, byte) in packet[header..].iter_mut().enumerate() {
            *byte = index as u8;
        }
        packet[10..12].fill(0);
        let sum = checksum::checksum(&packet[..header]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn fragments_make_the_packet_again() {
        for payload in [1, 8, 9, 100, 1400, 3000] {
            for mtu in [68, 69, 100, 576, 1500] {
                for field in [0, 0x2000 | 10, 20] {
                    let packet = packet(&[], payload, field);
                    let parsed = ipv4::parse(&packet).unwrap();
                    let mut whole: Vec<u8> = Vec::new();
                    let mut parts = split(&packet, &parsed, mtu).unwrap().peekable();
                    while let Some(part) = parts.next() {
                        let mut bytes = part.header().to_vec();
                        bytes.extend(part.payload);
                        let header = ipv4::parse(&bytes).unwrap();
                        assert!(bytes.len() <= mtu);
                        assert_eq!(
                            usize::from(header.fragment & 0x1fff),
                            whole.len() / 8 + usize::from(field & 0x1fff)
                        );
                        let last = parts.peek().is_none();
                        assert_eq!(header.fragment & MORE != 0, !last || field & MORE != 0);
                        whole.extend(part.payload);
                    }
                    assert_eq!(whole, packet[20..], "{payload} bytes, MTU {mtu}");
                }
            }
        }
    }

    #[test]
    fn later_fragments_carry_the_options_that_are_to_be_copied() {
        // Record route (not copied), router alert (copied), end.
        let options = [7, 3, 4, 148, 4, 0, 0, 0];
        let packet = packet(&options, 100, 0);
        let parsed = ipv4::parse(&packet).unwrap();
        let parts: Vec<_> = split(&packet, &parsed, 68).unwrap().collect();
        assert_eq!(&parts[0].header()[20..], options);
        assert_eq!(&parts[1].header()[20..], [148, 4, 0, 0]);
        assert!(split(&packet, &parsed, 35).is_none());
    }
}
