//! `first-last next-hop`, as registries, GeoIP tables and access lists print it. It is read as the fewest prefixes that
//! have the addresses of the range and no others.

use core::fmt;
use core::net::IpAddr;

use fibula::net::{HostBits, IpPrefix, PrefixesOf, prefixes_of};

use super::error::{LineError, LineErrorKind};
use super::fields::{Field, LineFields};
use super::{Form, Label, Line, prefix};

pub(super) const FORM: Form = Form {
    name: "range",
    syntax: "FIRST-LAST [via] NEXT-HOP",
    example: "198.51.100.0-198.51.100.99 192.0.2.1",
    recognises,
    decode,
};

/// A range of addresses of one family, and its next hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeEntry {
    /// The first address.
    pub first: IpAddr,
    /// The last address, of the same family and not below the first.
    pub last: IpAddr,
    /// The next hop.
    pub next_hop: Label,
}

impl RangeEntry {
    /// Returns the fewest prefixes that have these addresses, in order: at most twice the bits of an address, less two.
    pub fn prefixes(&self) -> impl Iterator<Item = IpPrefix> + use<> {
        let (v4, v6): (Option<PrefixesOf<u32>>, Option<PrefixesOf<u128>>) = match (self.first, self.last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => (Some(prefixes_of(first..=last)), None),
            (IpAddr::V6(first), IpAddr::V6(last)) => (None, Some(prefixes_of(first..=last))),
            _ => (None, None),
        };
        let v4 = v4.into_iter().flatten().map(IpPrefix::from);
        v4.chain(v6.into_iter().flatten().map(IpPrefix::from))
    }
}

/// Prints a line that is read back as the same entry.
impl fmt::Display for RangeEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} {}", self.first, self.last, self.next_hop.line())
    }
}

fn recognises(fields: &LineFields<'_>) -> bool {
    let [first, rest @ ..] = fields.words() else { return false };
    // Most words are prefixes, with a slash near their ends.
    let end = &first.bytes[first.bytes.len().saturating_sub(4)..];
    let has_hyphen = || first.bytes.contains(&b'-') && !first.bytes.contains(&b'/');
    !end.contains(&b'/') && has_hyphen() || is_spaced(rest)
}

/// Returns whether there are blanks around the hyphen, as whois prints it.
fn is_spaced(after_first: &[Field<'_>]) -> bool {
    after_first.first().is_some_and(|word| word.bytes == b"-") && after_first.len() > 1
}

fn decode(fields: &LineFields<'_>, _: HostBits) -> Result<Line, LineError> {
    let [range, rest @ ..] = fields.words() else { return Err(fields.ends(LineErrorKind::NoNextHop)) };
    let (first, last, count) = if is_spaced(rest) {
        (*range, rest[1], 3)
    } else {
        let at = memchr::memchr(b'-', range.bytes).unwrap_or(range.bytes.len());
        let (first, last) = range.bytes.split_at(at);
        let last = Field { bytes: last.get(1..).unwrap_or_default(), offset: range.offset + at + 1 };
        (Field { bytes: first, offset: range.offset }, last, 1)
    };
    let last_offset = last.offset;
    let (first, last) = (address(first)?, address(last)?);
    if first.is_ipv4() != last.is_ipv4() {
        return Err(LineError::new(LineErrorKind::RangeFamilies, last_offset));
    }
    if last < first {
        return Err(LineError::new(LineErrorKind::RangeOrder, last_offset));
    }
    let next_hop = prefix::next_hop_after(fields, count)?;
    Ok(Line::Range(RangeEntry { first, last, next_hop }))
}

fn address(field: Field<'_>) -> Result<IpAddr, LineError> {
    Ok(match prefix::parse(field, HostBits::Refuse)? {
        IpPrefix::V4(host) => IpAddr::V4(host.addr().into()),
        IpPrefix::V6(host) => IpAddr::V6(host.addr().into()),
    })
}
