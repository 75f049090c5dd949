//! Ethernet headers and VLAN tags (IEEE 802.3, 802.1Q).

use core::fmt;
use core::str::FromStr;

use crate::drops::DropReason;

use super::u16_at;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of a VLAN tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of an outer VLAN tag (802.1ad).
pub const VLAN_OUTER: u16 = 0x88a8;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// Most bytes of a header with one tag.
pub const MAX_HEADER: usize = 18;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Returns whether the address is of a group, or of all stations.
    #[inline]
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns whether the address can be that of one station: neither a group nor zero.
    #[must_use]
    pub fn is_station(self) -> bool {
        !self.is_group() && self.0 != [0; 6]
    }

    /// Returns the MAC address for IPv6 multicast to `address` (RFC 2464, section 7).
    #[must_use]
    pub const fn of_ipv6_group(address: u128) -> Self {
        let low = (address as u32).to_be_bytes();
        Self([0x33, 0x33, low[0], low[1], low[2], low[3]])
    }

    /// Returns the link-local address that is made of this one (RFC 4291, appendix A).
    #[must_use]
    pub const fn link_local(self) -> u128 {
        let m = self.0;
        let id = [m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]];
        (0xfe80_u128 << 112) | u64::from_be_bytes(id) as u128
    }

    /// Returns the address as the low 48 bits of a word.
    #[inline]
    #[must_use]
    pub const fn word(self) -> u64 {
        let m = self.0;
        u64::from_be_bytes([0, 0, m[0], m[1], m[2], m[3], m[4], m[5]])
    }

    /// Returns the address in the low 48 bits of a word.
    #[inline]
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = word.to_be_bytes();
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not a MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacError;

impl fmt::Display for MacError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a MAC address is six pairs of hexadecimal digits, as in 02:00:00:00:00:01")
    }
}

impl core::error::Error for MacError {}

impl FromStr for Mac {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(MacError)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| MacError)?;
        }
        if parts.next().is_some() { Err(MacError) } else { Ok(Self(bytes)) }
    }
}

/// The fields of an Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ethernet {
    /// The station or group that the frame is for.
    pub destination: Mac,
    /// VLAN; 0 without a tag, and for priority tags.
    pub vlan: u16,
    /// EtherType of the payload; lengths (below 1536) stay as they are.
    pub ether_type: u16,
    /// Where the payload begins.
    pub payload: usize,
}

/// Reads the header of a frame. `tag` is the tag that the kernel took out of the frame, if it did.
///
/// # Errors
/// When the frame ends within its header, or has several tags.
#[inline]
pub fn parse(frame: &[u8], tag: Option<u16>) -> Result<Ethernet, DropReason> {
    let Some((header, _)) = frame.split_first_chunk::<14>() else { return Err(DropReason::FrameTruncated) };
    let destination = Mac([header[0], header[1], header[2], header[3], header[4], header[5]]);
    let ether_type = u16_at(header, 12);
    if ether_type != VLAN && ether_type != VLAN_OUTER {
        return Ok(Ethernet { destination, vlan: tag.map_or(0, |tag| tag & 0xfff), ether_type, payload: 14 });
    }
    if tag.is_some() || ether_type == VLAN_OUTER {
        return Err(DropReason::VlanNested);
    }
    if frame.len() < MAX_HEADER {
        return Err(DropReason::FrameTruncated);
    }
    match u16_at(frame, 16) {
        VLAN | VLAN_OUTER => Err(DropReason::VlanNested),
        ether_type => {
            Ok(Ethernet { destination, vlan: u16_at(frame, 14) & 0xfff, ether_type, payload: MAX_HEADER })
        }
    }
}

/// A header to send with.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    bytes: [u8; MAX_HEADER],
    len: u8,
}

impl Header {
    /// Makes a header; VLAN 0 is no tag.
    #[inline]
    #[must_use]
    pub fn new(destination: Mac, source: Mac, vlan: u16, ether_type: u16) -> Self {
        let mut bytes = [0; MAX_HEADER];
        bytes[..6].copy_from_slice(&destination.0);
        bytes[6..12].copy_from_slice(&source.0);
        let [high, low] = ether_type.to_be_bytes();
        if vlan == 0 {
            bytes[12..14].copy_from_slice(&[high, low]);
            return Self { bytes, len: 14 };
        }
        let [vlan_high, vlan_low] = vlan.to_be_bytes();
        bytes[12..18].copy_from_slice(&[0x81, 0x00, vlan_high, vlan_low, high, low]);
        Self { bytes, len: 18 }
    }

    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the number of bytes: 14, or 18 with a tag.
    #[inline]
    #[must_use]
    pub const fn size(&self) -> usize {
        self.len as usize
    }

    /// Writes the header to the beginning of `room`. Each length has a copy of its own, which takes no call and no memory in between.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub fn write(&self, room: &mut [u8]) {
        if self.size() == 14 {
            room[..14].copy_from_slice(&self.bytes[..14]);
        } else {
            room[..MAX_HEADER].copy_from_slice(&self.bytes);
        }
    }
}

/// Returns the header of a frame as it is, with the tag that the kernel took out of it, and where the payload begins; `None` if
/// the frame ends before.
#[inline]
#[must_use]
pub fn whole_header(frame: &[u8], tag: Option<u16>) -> Option<(Header, usize)> {
    let mut bytes = [0; MAX_HEADER];
    let payload = match tag {
        None if frame.len() >= MAX_HEADER && u16_at(frame, 12) == VLAN => MAX_HEADER,
        _ => 14,
    };
    bytes[..payload].copy_from_slice(frame.get(..payload)?);
    let Some(tag) = tag else { return Some((Header { bytes, len: payload as u8 }, payload)) };
    bytes.copy_within(12..14, 16);
    bytes[12..14].copy_from_slice(&VLAN.to_be_bytes());
    bytes[14..16].copy_from_slice(&tag.to_be_bytes());
    Some((Header { bytes, len: MAX_HEADER as u8 }, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_passed_on_whole() {
        let plain = Header::new(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), 0, IPV4);
        let tagged = Header::new(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), 7, IPV4);
        for (frame, tag, expected, payload) in
            [(&plain, None, &plain, 14), (&tagged, None, &tagged, 18), (&plain, Some(7), &tagged, 14)]
        {
            let mut bytes = frame.as_bytes().to_vec();
            bytes.extend([0; 20]);
            let (header, at) = whole_header(&bytes, tag).unwrap();
            assert_eq!((header.as_bytes(), at), (expected.as_bytes(), payload));
        }
        assert!(whole_header(&[0; 13], None).is_none());
    }

    #[test]
    fn tags_are_read_and_written() {
        let (to, from) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
        for vlan in [0, 1, 100, 4094] {
            let header = Header::new(to, from, vlan, IPV6);
            let parsed = parse(header.as_bytes(), None).unwrap();
            let payload = header.as_bytes().len();
            assert_eq!(parsed, Ethernet { destination: to, vlan, ether_type: IPV6, payload });
            for short in 0..payload {
                assert_eq!(
                    parse(&header.as_bytes()[..short], None),
                    Err(DropReason::FrameTruncated),
                    "{short}"
                );
            }
        }
        let plain = Header::new(to, from, 0, IPV4);
        assert_eq!(parse(plain.as_bytes(), Some(0x6007)).unwrap().vlan, 7);
        assert_eq!(parse(Header::new(to, from, 5, VLAN).as_bytes(), None), Err(DropReason::VlanNested));
        assert_eq!(parse(Header::new(to, from, 5, IPV4).as_bytes(), Some(9)), Err(DropReason::VlanNested));
    }

    #[test]
    fn addresses_as_text() {
        let mac: Mac = "02:00:5e:10:00:ff".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:10:00:ff");
        assert_eq!(Mac::from_word(mac.word()), mac);
        for wrong in ["", "02:00:5e:10:00", "02:00:5e:10:00:ff:01", "2:0:5e:10:0:ff", "02:00:5e:10:00:fg"] {
            assert_eq!(wrong.parse::<Mac>(), Err(MacError), "{wrong}");
        }
        assert_eq!(mac.link_local(), 0xfe80_0000_0000_0000_0000_5eff_fe10_00ff);
    }
}
