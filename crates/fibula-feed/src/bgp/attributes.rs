//! Path attributes: decoded by `bgpkit-parser`, except the two that hold prefixes.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bgpkit_parser::models::{
    self, AsPath, AsPathSegment, AsnLength, AttrType, Community, MetaCommunity, Origin,
};
use bgpkit_parser::parser::bgp::attributes::parse_attributes;
use bytes::{Bytes, BytesMut};
use fibula::net::Family;

use crate::mrt::{Cursor, Fault, FaultKind, Reading, Skipped};

/// Width of the AS numbers in an AS_PATH (RFC 6793).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsWidth {
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
}

impl AsWidth {
    /// Returns the width in which the AS path among these attributes fits: four bytes if it fits both, or none.
    pub(crate) fn of(section: &[u8]) -> Self {
        let path = as_path(section).unwrap_or_default();
        if !Self::Four.fits(path) && Self::Two.fits(path) { Self::Two } else { Self::Four }
    }

    /// Returns whether a path is a row of segments of this width (RFC 4271 section 4.3).
    fn fits(self, mut path: &[u8]) -> bool {
        let width = if self == Self::Two { 2 } else { 4 };
        while let [kind, count, rest @ ..] = path {
            let Some(rest) = rest.get(usize::from(*count) * width..).filter(|_| (1..=4).contains(kind))
            else {
                return false;
            };
            path = rest;
        }
        path.is_empty()
    }
}

/// Returns the value of AS_PATH.
fn as_path(section: &[u8]) -> Option<&[u8]> {
    let mut at = Cursor::new(section, 0);
    while !at.is_empty() {
        let [flags, kind] = at.array("attribute").ok()?;
        let len = match flags & EXTENDED {
            0 => at.u8("attribute length").ok()?.into(),
            _ => at.u16("attribute length").ok()?.into(),
        };
        let value = at.take(len, "attribute").ok()?;
        if kind == AS_PATH {
            return Some(value);
        }
    }
    None
}

/// The path attributes of a route.
#[derive(Debug, Clone)]
pub struct Attributes {
    next_hop: Option<IpAddr>,
    parsed: models::Attributes,
    encoded_bytes: usize,
    since: Option<u32>,
    is_of_first_version: bool,
}

/// Attributes, and the two fields of prefixes that may be among them, as offsets within the message.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) attributes: Attributes,
    pub(crate) reach: Option<Multiprotocol>,
    pub(crate) unreach: Option<Multiprotocol>,
}

/// The prefixes of MP_REACH_NLRI or MP_UNREACH_NLRI (RFC 4760).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Multiprotocol {
    /// The error is a family other than unicast.
    pub(crate) family: Result<Family, Skipped>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The family of a table dump, whose MP_REACH_NLRI holds the next hop alone (RFC 6396 section 4.3.4); `None` in
/// messages.
pub(crate) type RibFamily = Option<Family>;

const AS_PATH: u8 = 2;
const MP_REACH: u8 = 14;
pub(super) const MP_UNREACH: u8 = 15;
/// The flag of a length of two bytes (RFC 4271 section 4.3).
pub(super) const EXTENDED: u8 = 0x10;

impl Attributes {
    /// Reads the attributes that fill `section`, whose first byte is at `base`.
    pub(crate) fn decode(
        section: &Bytes,
        base: usize,
        width: AsWidth,
        rib: RibFamily,
        faults: &mut Vec<Fault>,
    ) -> Reading<Decoded> {
        let mut at = Cursor::new(section, base);
        // Input of the library: the first attribute of each kind, except those with prefixes. It is mostly one piece.
        let mut rest = BytesMut::new();
        let mut from = 0;
        let (mut reach, mut unreach, mut next_hop) = (None, None, None);
        let mut seen = [0_u8; 256];
        while !at.is_empty() {
            let start = at.position();
            let [flags, kind] = at.array("attribute")?;
            let len = match flags & EXTENDED {
                0 => at.u8("attribute length")?.into(),
                _ => at.u16("attribute length")?.into(),
            };
            let value = at.take(len, "attribute")?;
            // The first of repeated attributes counts (RFC 7606 section 3), so no list of them is endless.
            let repeated = &mut seen[usize::from(kind)];
            *repeated = repeated.saturating_add(1);
            let repeated = *repeated;
            if repeated == 1 && kind != MP_REACH && kind != MP_UNREACH {
                continue;
            }
            rest.extend_from_slice(&section[from..start - base]);
            from = at.position() - base;
            if repeated > 1 {
                if repeated == 2 {
                    faults.push(FaultKind::Repeated(kind).at(start));
                }
                continue;
            }
            let mut value = Cursor::new(value, at.position() - len);
            let found = if kind == MP_REACH { &mut reach } else { &mut unreach };
            let (prefixes, hop) = multiprotocol(&mut value, kind == MP_REACH, rib)?;
            *found = Some(prefixes);
            next_hop = hop.or(next_hop);
        }
        let rest = if from == 0 {
            section.clone()
        } else {
            rest.extend_from_slice(&section[from..]);
            rest.freeze()
        };
        let parsed = parse(rest, width, base, faults)?;
        let next_hop = next_hop.or(parsed.next_hop());
        let attributes =
            Self { next_hop, parsed, encoded_bytes: section.len(), since: None, is_of_first_version: false };
        Ok(Decoded { attributes, reach, unreach })
    }

    /// Returns when the collector received the route, in seconds since 1970; only table dumps have this.
    #[must_use]
    pub fn since(&self) -> Option<u32> {
        self.since
    }

    /// Marks the attributes as those of a table dump. A time of 0 is unknown.
    pub(crate) fn set_dumped(&mut self, since: u32, is_second_version: bool) {
        self.since = Some(since).filter(|&since| since != 0);
        self.is_of_first_version = !is_second_version;
    }

    /// Returns whether they are from a record of `TABLE_DUMP`, not of its second version.
    pub(crate) fn is_of_first_version(&self) -> bool {
        self.is_of_first_version
    }

    /// Returns the number of bytes that they were decoded from; the memory they take is proportional to it.
    pub(crate) fn encoded_bytes(&self) -> usize {
        self.encoded_bytes
    }

    /// Returns the next hop of MP_REACH_NLRI if there is one, otherwise NEXT_HOP.
    #[must_use]
    pub fn next_hop(&self) -> Option<IpAddr> {
        self.next_hop
    }

    /// Returns NEXT_HOP, even if MP_REACH_NLRI has another next hop.
    pub(crate) fn ipv4_next_hop(&self) -> Option<IpAddr> {
        self.parsed.next_hop()
    }

    /// Returns the length of the AS path as route selection counts it: a set counts as one AS, segments of a
    /// confederation do not count.
    #[must_use]
    pub fn path_len(&self) -> Option<u32> {
        self.parsed.as_path().map(|path| path.route_len() as u32)
    }

    /// Returns the AS that announced the route first: the last of the AS path, and of a set at its end the first one. `None` where the
    /// path is empty, or ends in a confederation, whose AS numbers mean nothing outside it.
    #[must_use]
    pub fn origin_as(&self) -> Option<u32> {
        let path = self.parsed.effective_as_path()?;
        let last = match path.segments.last()? {
            AsPathSegment::AsSequence(list) => list.last(),
            AsPathSegment::AsSet(set) => set.first(),
            AsPathSegment::ConfedSequence(_) | AsPathSegment::ConfedSet(_) => None,
        };
        last.map(|&asn| asn.into()).filter(|&asn: &u32| asn != 0)
    }

    /// Returns the mandatory attributes that are absent, apart from the next hop (RFC 4271 section 5).
    pub(crate) fn missing(&self) -> impl Iterator<Item = FaultKind> + use<> {
        let mandatory = [(AttrType::ORIGIN, "ORIGIN"), (AttrType::AS_PATH, "AS_PATH")];
        let absent = mandatory.map(|(kind, name)| (!self.parsed.has_attr(kind)).then_some(name));
        absent.into_iter().flatten().map(FaultKind::Missing)
    }

    /// Returns the ORIGIN: IGP, EGP or INCOMPLETE.
    #[must_use]
    pub fn origin(&self) -> &'static str {
        match self.parsed.origin() {
            Origin::IGP => "IGP",
            Origin::EGP => "EGP",
            _ => "INCOMPLETE",
        }
    }

    /// Returns the AS path as text, merged with AS4_PATH: sets in braces, confederations in parentheses and brackets.
    #[must_use]
    pub fn as_path(&self) -> impl fmt::Display + use<> {
        Shown(self.parsed.effective_as_path())
    }

    /// Returns LOCAL_PREF.
    #[must_use]
    pub fn local_preference(&self) -> Option<u32> {
        self.parsed.local_preference()
    }

    /// Returns MULTI_EXIT_DISC.
    #[must_use]
    pub fn multi_exit_discriminator(&self) -> Option<u32> {
        self.parsed.multi_exit_discriminator()
    }

    /// Returns COMMUNITIES in order, separated by blanks, as bgpdump prints them: without large and extended communities.
    #[must_use]
    pub fn communities(&self) -> String {
        let shown = self.parsed.iter_communities().filter_map(|community| match community {
            MetaCommunity::Plain(Community::NoExportSubConfed) => Some("local-AS".to_owned()),
            MetaCommunity::Plain(_) => Some(community.to_string()),
            _ => None,
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// Returns COMMUNITIES and LARGE_COMMUNITIES in order, separated by blanks, without extended communities.
    #[must_use]
    pub fn all_communities(&self) -> String {
        let shown = self.parsed.iter_communities().filter_map(|community| match community {
            MetaCommunity::Plain(_) | MetaCommunity::Large(_) => Some(community.to_string()),
            _ => None,
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// Returns whether ATOMIC_AGGREGATE is present.
    #[must_use]
    pub fn atomic_aggregate(&self) -> bool {
        self.parsed.atomic_aggregate()
    }

    /// Returns the AS and the address of AGGREGATOR.
    #[must_use]
    pub fn aggregator(&self) -> Option<(u32, Ipv4Addr)> {
        self.parsed.aggregator().map(|(asn, address)| (asn.into(), address))
    }
}

/// Decodes the attributes that the library handles.
fn parse(
    section: Bytes,
    width: AsWidth,
    base: usize,
    faults: &mut Vec<Fault>,
) -> Reading<models::Attributes> {
    let width = match width {
        AsWidth::Two => AsnLength::Bits16,
        AsWidth::Four => AsnLength::Bits32,
    };
    let parsed = parse_attributes(section, &width, false, None, None, None)
        .map_err(|error| FaultKind::Attributes(error.to_string().into()).at(base))?;
    for warning in parsed.validation_warnings() {
        faults.push(FaultKind::Attributes(warning.to_string().into()).at(base));
    }
    Ok(parsed)
}

fn multiprotocol(
    value: &mut Cursor<'_>,
    reach: bool,
    rib: RibFamily,
) -> Reading<(Multiprotocol, Option<IpAddr>)> {
    // Many daemons write the whole attribute into table dumps all the same. The first byte distinguishes the two,
    // because a next hop is never 0 bytes long, and every family's number begins with 0.
    let family = match rib {
        Some(family) if value.peek() != Some(0) => Ok(family),
        _ => family(value.u16("address family")?, value.u8("subsequent address family")?),
    };
    let mut found = None;
    if reach {
        let len = value.u8("next hop length")?;
        let start = value.position();
        let bytes = value.take(len.into(), "next hop")?;
        if family.is_ok() {
            found = next_hop(bytes).ok_or_else(|| FaultKind::NextHopLength(len).at(start))?;
        }
        if !value.is_empty() {
            value.u8("reserved byte")?;
        }
    }
    let start = value.position();
    Ok((Multiprotocol { family, start, end: start + value.remaining() }, found))
}

/// Returns the family of unicast routes; any other family is an error.
pub(crate) fn family(afi: u16, safi: u8) -> Result<Family, Skipped> {
    match (afi, safi) {
        (1, 1) => Ok(Family::Ipv4),
        (2, 1) => Ok(Family::Ipv6),
        _ => Err(Skipped::family(afi, safi)),
    }
}

/// Returns the next hop of MP_REACH_NLRI. The field holds an address, or a global and a link-local address (RFC 2545
/// section 3); the global one counts if there is one. Route distinguishers may come before them (RFC 8950 section 3).
/// The outer `None` means any other length.
pub(crate) fn next_hop(bytes: &[u8]) -> Option<Option<IpAddr>> {
    let v6 = |bytes: &[u8]| {
        let octets: [u8; 16] = bytes.try_into().ok()?;
        Some(Ipv6Addr::from(octets))
    };
    let either = |global: Ipv6Addr, local: Ipv6Addr| if global.is_unspecified() { local } else { global };
    Some(Some(match bytes.len() {
        0 => return Some(None),
        4 | 12 => {
            let octets: [u8; 4] = bytes[bytes.len() - 4..].try_into().ok()?;
            Ipv4Addr::from(octets).into()
        }
        16 | 24 => v6(&bytes[bytes.len() - 16..])?.into(),
        32 => either(v6(&bytes[..16])?, v6(&bytes[16..])?).into(),
        48 => either(v6(&bytes[8..24])?, v6(&bytes[32..])?).into(),
        _ => return None,
    }))
}

/// An AS path as collectors' tools print it.
struct Shown(Option<AsPath>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(path) = &self.0 else { return Ok(()) };
        for (index, segment) in path.iter_segments().enumerate() {
            let (open, between, close) = match segment {
                AsPathSegment::AsSequence(_) => ("", " ", ""),
                AsPathSegment::AsSet(_) => ("{", ",", "}"),
                AsPathSegment::ConfedSequence(_) => ("(", " ", ")"),
                AsPathSegment::ConfedSet(_) => ("[", ",", "]"),
            };
            f.write_str(if index > 0 { " " } else { "" })?;
            f.write_str(open)?;
            for (index, asn) in segment.as_ref().iter().enumerate() {
                f.write_str(if index > 0 { between } else { "" })?;
                write!(f, "{}", u32::from(*asn))?;
            }
            f.write_str(close)?;
        }
        Ok(())
    }
}
