//! Ethernet headers and VLAN tags (IEEE 802.3, 802.1Q).

use core::fmt;
use core::num::NonZeroU32;
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

/// Bytes of a header with one tag.
const TAGGED: usize = 18;
/// Most bytes of a header: with two tags.
pub const MAX_HEADER: usize = 22;

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

    /// Returns whether the address is one of VRRP, which several routers share (RFC 5798, section 7.3).
    #[must_use]
    pub const fn is_virtual_router(self) -> bool {
        matches!(self.0, [0, 0, 0x5e, 0, 1 | 2, _])
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

/// A VLAN tag as it is in a frame (IEEE 802.1Q, 9.3): its EtherType, then priority and VLAN. In one word that is never zero, so that
/// frames without a tag cost one comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tag(NonZeroU32);

impl Tag {
    /// Makes a tag. An EtherType other than [`VLAN`] becomes [`VLAN_OUTER`].
    #[inline]
    #[must_use]
    pub const fn new(ether_type: u16, control: u16) -> Self {
        let ether_type = if ether_type == VLAN { VLAN } else { VLAN_OUTER };
        match NonZeroU32::new((ether_type as u32) << 16 | control as u32) {
            Some(word) => Self(word),
            // An EtherType is not zero.
            None => Self(NonZeroU32::MAX),
        }
    }

    /// Returns the EtherType.
    #[inline]
    #[must_use]
    pub const fn ether_type(self) -> u16 {
        (self.0.get() >> 16) as u16
    }

    /// Returns the priority and the VLAN.
    #[inline]
    #[must_use]
    pub const fn control(self) -> u16 {
        self.0.get() as u16
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.ether_type(), self.control())
    }
}

impl From<u16> for Tag {
    fn from(control: u16) -> Self {
        Self::new(VLAN, control)
    }
}

/// The VLAN, or the pair of VLANs, of a frame: none, one tag, or two (QinQ).
///
/// In one word, so that a header without tags costs one comparison: the VLAN in the bits from 0, the outer one from 12, and bit 24
/// for an outer tag of 802.1ad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Tags(u32);

impl Tags {
    /// No tag.
    pub const NONE: Self = Self(0);
    const VLANS: u32 = 0xfff;
    const OUTER_AD: u32 = 1 << 24;

    /// Returns one tag of a VLAN; none for VLAN 0, which is that of tags that have a priority alone.
    #[inline]
    #[must_use]
    pub const fn one(vlan: u16) -> Self {
        Self(vlan as u32 & Self::VLANS)
    }

    /// Returns an outer tag with this EtherType, and an inner one.
    #[must_use]
    pub const fn two(ether_type: u16, outer: u16, vlan: u16) -> Self {
        let kind = if ether_type == VLAN_OUTER { Self::OUTER_AD } else { 0 };
        match outer as u32 & Self::VLANS {
            // A priority alone.
            0 => Self::one(vlan),
            outer => Self(kind | outer << 12 | vlan as u32 & Self::VLANS),
        }
    }

    /// Returns the only tag of a frame.
    #[cold]
    fn only(tag: Tag) -> Self {
        match tag.ether_type() {
            VLAN => Self::one(tag.control()),
            kind => Self::two(kind, tag.control(), 0),
        }
    }

    /// Returns whether there is no tag.
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the VLAN of the inner tag, or of the only one; 0 without tags.
    #[inline]
    #[must_use]
    pub const fn vlan(self) -> u16 {
        (self.0 & Self::VLANS) as u16
    }

    /// Returns the outer tag's EtherType and VLAN, if there are two tags.
    #[must_use]
    pub const fn outer(self) -> Option<(u16, u16)> {
        let ether_type = if self.0 & Self::OUTER_AD == 0 { VLAN } else { VLAN_OUTER };
        match (self.0 >> 12 & Self::VLANS) as u16 {
            0 => None,
            outer => Some((ether_type, outer)),
        }
    }

    /// Returns the VLAN if there is one tag, and 0 if there is none.
    #[inline]
    pub(crate) const fn single(self) -> Option<usize> {
        if self.0 <= Self::VLANS { Some(self.0 as usize) } else { None }
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, outer)) = self.outer() {
            write!(f, "{outer}.")?;
        }
        write!(f, "{}", self.vlan())
    }
}

/// The fields of an Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ethernet {
    /// The station or group that the frame is for.
    pub destination: Mac,
    /// VLANs; none without a tag, and for priority tags.
    pub tags: Tags,
    /// EtherType of the payload; lengths (below 1536) stay as they are.
    pub ether_type: u16,
    /// Where the payload begins.
    pub payload: usize,
}

/// Reads the header of a frame. `tag` is the tag that the kernel took out of the frame, if it did.
///
/// # Errors
/// When the frame ends within its header, or has more than two tags.
// Always, because the compiler takes the cases with tags for too much, and each frame would pay a call.
#[inline(always)]
pub fn parse(frame: &[u8], tag: Option<Tag>) -> Result<Ethernet, DropReason> {
    let Some((header, _)) = frame.split_first_chunk::<14>() else { return Err(DropReason::FrameTruncated) };
    let destination = Mac([header[0], header[1], header[2], header[3], header[4], header[5]]);
    let ether_type = u16_at(header, 12);
    if !is_tag(ether_type) {
        let tags = match tag {
            None => Tags::NONE,
            Some(tag) if tag.ether_type() == VLAN => Tags::one(tag.control()),
            Some(tag) => Tags::only(tag),
        };
        return Ok(Ethernet { destination, tags, ether_type, payload: 14 });
    }
    if tag.is_none() && ether_type == VLAN && frame.len() >= TAGGED {
        let ether_type = u16_at(frame, 16);
        if !is_tag(ether_type) {
            let tags = Tags::one(u16_at(frame, 14));
            return Ok(Ethernet { destination, tags, ether_type, payload: TAGGED });
        }
    }
    nested(frame, destination, tag)
}

#[inline]
const fn is_tag(ether_type: u16) -> bool {
    ether_type == VLAN || ether_type == VLAN_OUTER
}

/// Reads a header with two tags, or with one of 802.1ad.
#[cold]
fn nested(frame: &[u8], destination: Mac, taken: Option<Tag>) -> Result<Ethernet, DropReason> {
    let tag_at = |at: usize| match frame.get(at..at + 6) {
        Some(bytes) => Ok((Tag::new(u16_at(bytes, 0), u16_at(bytes, 2)), u16_at(bytes, 4))),
        None => Err(DropReason::FrameTruncated),
    };
    let (outer, at) = match taken {
        Some(tag) => (tag, 12),
        None => (tag_at(12)?.0, 16),
    };
    if !is_tag(u16_at(frame, at)) {
        let (tags, ether_type) = (Tags::only(outer), u16_at(frame, at));
        return Ok(Ethernet { destination, tags, ether_type, payload: at + 2 });
    }
    let (inner, ether_type) = tag_at(at)?;
    if is_tag(ether_type) {
        return Err(DropReason::VlanNested);
    }
    // Within a tag of 802.1ad is one of 802.1Q.
    if inner.ether_type() != VLAN {
        return Err(DropReason::VlanUnknown);
    }
    let tags = Tags::two(outer.ether_type(), outer.control(), inner.control());
    Ok(Ethernet { destination, tags, ether_type, payload: at + 6 })
}

/// A header to send with.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    bytes: [u8; MAX_HEADER],
    len: u8,
}

impl Header {
    /// Makes a header.
    // See `parse`.
    #[inline(always)]
    #[must_use]
    pub fn new(destination: Mac, source: Mac, tags: Tags, ether_type: u16) -> Self {
        let mut bytes = [0; MAX_HEADER];
        bytes[..6].copy_from_slice(&destination.0);
        bytes[6..12].copy_from_slice(&source.0);
        let [high, low] = ether_type.to_be_bytes();
        let Some(vlan) = tags.single() else { return Self::nested(destination, source, tags, ether_type) };
        if vlan == 0 {
            bytes[12..14].copy_from_slice(&[high, low]);
            return Self { bytes, len: 14 };
        }
        let [vlan_high, vlan_low] = (vlan as u16).to_be_bytes();
        bytes[12..18].copy_from_slice(&[0x81, 0x00, vlan_high, vlan_low, high, low]);
        Self { bytes, len: TAGGED as u8 }
    }

    /// Makes a header with two tags.
    #[cold]
    fn nested(destination: Mac, source: Mac, tags: Tags, ether_type: u16) -> Self {
        let mut bytes = [0; MAX_HEADER];
        bytes[..6].copy_from_slice(&destination.0);
        bytes[6..12].copy_from_slice(&source.0);
        let (kind, outer) = tags.outer().unwrap_or((VLAN, 0));
        for (at, word) in [kind, outer, VLAN, tags.vlan(), ether_type].into_iter().enumerate() {
            bytes[12 + 2 * at..14 + 2 * at].copy_from_slice(&word.to_be_bytes());
        }
        Self { bytes, len: MAX_HEADER as u8 }
    }

    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the number of bytes: 14, 18 with a tag, or 22 with two.
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
        match self.size() {
            14 => room[..14].copy_from_slice(&self.bytes[..14]),
            TAGGED => room[..TAGGED].copy_from_slice(&self.bytes[..TAGGED]),
            _ => room[..MAX_HEADER].copy_from_slice(&self.bytes),
        }
    }
}

/// Returns the header of a frame as it is, with the tag that the kernel took out of it, and where the payload begins; `None` if
/// the frame ends before. An inner tag is payload.
#[inline]
#[must_use]
pub fn whole_header(frame: &[u8], tag: Option<Tag>) -> Option<(Header, usize)> {
    let mut bytes = [0; MAX_HEADER];
    let payload = match tag {
        None if frame.len() >= TAGGED && u16_at(frame, 12) == VLAN => TAGGED,
        _ => 14,
    };
    bytes[..payload].copy_from_slice(frame.get(..payload)?);
    let Some(tag) = tag else { return Some((Header { bytes, len: payload as u8 }, payload)) };
    bytes.copy_within(12..14, 16);
    bytes[12..14].copy_from_slice(&tag.ether_type().to_be_bytes());
    bytes[14..16].copy_from_slice(&tag.control().to_be_bytes());
    Some((Header { bytes, len: TAGGED as u8 }, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const FROM: Mac = Mac([2, 0, 0, 0, 0, 2]);

    #[test]
    fn headers_are_passed_on_whole() {
        let plain = Header::new(TO, FROM, Tags::NONE, IPV4);
        let tagged = Header::new(TO, FROM, Tags::one(7), IPV4);
        let outer = Tag::new(VLAN_OUTER, 7);
        let mut service = tagged.bytes;
        service[12..14].copy_from_slice(&VLAN_OUTER.to_be_bytes());
        for (frame, tag, expected, payload) in [
            (&plain, None, plain.as_bytes(), 14),
            (&tagged, None, tagged.as_bytes(), 18),
            (&plain, Some(7.into()), tagged.as_bytes(), 14),
            // The kernel takes tags of 802.1ad out too, and a bridge must not make others of them.
            (&plain, Some(outer), &service[..18], 14),
        ] {
            let mut bytes = frame.as_bytes().to_vec();
            bytes.extend([0; 20]);
            let (header, at) = whole_header(&bytes, tag).unwrap();
            assert_eq!((header.as_bytes(), at), (expected, payload));
        }
        assert!(whole_header(&[0; 13], None).is_none());
    }

    #[test]
    fn tags_are_read_and_written() {
        let all = [Tags::NONE, Tags::one(1), Tags::one(100), Tags::one(4094)];
        let pairs = [(VLAN, 1, 4094), (VLAN_OUTER, 1, 4094), (VLAN_OUTER, 4094, 1), (VLAN, 7, 7)];
        let pairs = pairs.map(|(kind, outer, vlan)| Tags::two(kind, outer, vlan));
        for tags in all.into_iter().chain(pairs) {
            let header = Header::new(TO, FROM, tags, IPV6);
            let parsed = parse(header.as_bytes(), None).unwrap();
            let payload = header.as_bytes().len();
            assert_eq!(parsed, Ethernet { destination: TO, tags, ether_type: IPV6, payload });
            let mut written = [0; MAX_HEADER];
            header.write(&mut written);
            assert_eq!(&written[..payload], header.as_bytes());
            for short in 0..payload {
                let cut = parse(&header.as_bytes()[..short], None);
                assert_eq!(cut, Err(DropReason::FrameTruncated), "{short}");
            }
        }
        let plain = Header::new(TO, FROM, Tags::NONE, IPV4);
        assert_eq!(parse(plain.as_bytes(), Some(0x6007.into())).unwrap().tags, Tags::one(7));
    }

    /// The bytes of QinQ frames, by IEEE 802.1Q (9.3 to 9.6), and not by the code under test.
    #[test]
    fn two_tags_have_their_golden_bytes() {
        let header = |tags| Header::new(TO, FROM, tags, IPV4);
        let macs = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        let service = [0x88, 0xa8, 0x00, 0x64, 0x81, 0x00, 0x00, 0x07, 0x08, 0x00];
        let customer = [0x81, 0x00, 0x00, 0x64, 0x81, 0x00, 0x00, 0x07, 0x08, 0x00];
        for (kind, tags) in [(VLAN_OUTER, service), (VLAN, customer)] {
            let (pair, frame) = (Tags::two(kind, 100, 7), [&macs[..], &tags].concat());
            assert_eq!(header(pair).as_bytes(), frame);
            assert_eq!((pair.to_string(), pair.outer(), pair.vlan()), ("100.7".into(), Some((kind, 100)), 7));
            // As packet sockets give it: the kernel has taken out the outer tag.
            let taken = [&macs[..], &tags[4..]].concat();
            let tag = Tag::new(kind, 0xe064);
            let expected = Ethernet { destination: TO, tags: pair, ether_type: IPV4, payload: 18 };
            assert_eq!(parse(&taken, Some(tag)), Ok(expected));
            for short in 14..18 {
                assert_eq!(parse(&taken[..short], Some(tag)), Err(DropReason::FrameTruncated));
            }
        }
        // Three tags.
        let three = [&macs[..], &service[..4], &customer].concat();
        assert_eq!(parse(&three, None), Err(DropReason::VlanNested));
        let taken = [&macs[..], &customer].concat();
        assert_eq!(parse(&taken, Some(9.into())), Err(DropReason::VlanNested));
        // An outer tag that has a priority alone is none, as for Linux.
        let priority = [&macs[..], &[0x81, 0x00, 0xe0, 0x00], &service[4..]].concat();
        assert_eq!(parse(&priority, None).unwrap().tags, Tags::one(7));
        // A single tag of 802.1ad is not that of a VLAN of 802.1Q, and an inner one is no pair that an interface can have.
        let single = [&macs[..], &service[..4], &service[8..]].concat();
        assert_eq!(parse(&single, None).unwrap().tags, Tags::two(VLAN_OUTER, 100, 0));
        let inner = [&macs[..], &customer[..4], &service[..4], &service[8..]].concat();
        assert_eq!(parse(&inner, None), Err(DropReason::VlanUnknown));
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
