//! A route of a document: where it applies, and named fields.

use std::borrow::Cow;
use std::net::IpAddr;

use fibula::net::{Family, HostBits, IpPrefix, PrefixesOf, parse_address, prefixes_of};

use crate::filter::Filter;
use crate::next_hops::Label;
use crate::text::{self, LineError, LineErrorKind};
use crate::value::{self, Value};

/// Where a route applies, as the document writes it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RouteScope<'a> {
    /// A prefix, an address, a range `FIRST-LAST`, or `default`.
    Prefix(&'a str),
    /// An address, and a netmask or a length.
    Masked(&'a str, &'a str),
    /// The first and the last address, as texts or as integers.
    Range(&'a str, &'a str),
    /// An address, and how many addresses follow from it on.
    Count(&'a str, &'a str),
}

/// The addresses of a route.
pub(crate) enum Addresses {
    One(IpPrefix),
    /// A range that is not one prefix: its prefixes, and the number of addresses less one.
    Several(Range, u128),
    /// All addresses of a family that the document does not name on this line.
    Default,
}

/// The prefixes of a range of one family.
pub(crate) enum Range {
    V4(PrefixesOf<u32>),
    V6(PrefixesOf<u128>),
}

impl Iterator for Range {
    type Item = IpPrefix;

    fn next(&mut self) -> Option<IpPrefix> {
        match self {
            Self::V4(prefixes) => prefixes.next().map(IpPrefix::from),
            Self::V6(prefixes) => prefixes.next().map(IpPrefix::from),
        }
    }
}

/// The fields of a route by name.
pub(crate) trait Fields {
    /// Returns the text of a value, if the route has it.
    fn text(&self, value: &Value) -> Option<Cow<'_, str>>;

    /// Returns the value of a route that names no next hop: the first field that does not say where the route applies.
    fn first(&self) -> Option<Cow<'_, str>> {
        None
    }
}

/// A route of a document.
pub(crate) struct TableRecord<'a> {
    pub(crate) place: RouteScope<'a>,
    /// Of several routes of a prefix the one with the lowest rank is in use, of equals the first; without a rank, the last.
    pub(crate) rank: Option<u64>,
    /// The family of `default`, if the words of the route give it.
    pub(crate) family: Option<Family>,
    /// The VRF or the table; `None` is the one that is read if none is named.
    pub(crate) vrf: Option<&'a str>,
    pub(crate) fields: &'a dyn Fields,
}

impl<'a> TableRecord<'a> {
    /// Returns a route of a table in which the last of repeated routes counts.
    pub(crate) fn plain(place: RouteScope<'a>, fields: &'a dyn Fields) -> Self {
        Self { place, rank: None, family: None, vrf: None, fields }
    }

    fn value(&self, value: &Value) -> Label {
        let text = self.fields.text(value);
        match value {
            Value::OriginAs => {
                let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
                match (text, self.fields.text(&Value::AsPath)) {
                    (Some(text), _) => value::origins(text),
                    (None, Some(path)) => value::origin(&path),
                    // The number that is a route's only value may be an AS.
                    (None, None) => value::plain(&self.next_hop(), value),
                }
            }
            Value::NextHop => self.next_hop(),
            _ => text.map_or(Label::Absent, |text| Label::of_text(&text)),
        }
    }

    /// Returns the next hop; in a table that names none, the first field that does not say where the route applies.
    fn next_hop(&self) -> Label {
        let text = self.fields.text(&Value::NextHop).or_else(|| self.fields.first());
        text.map_or(Label::Absent, |text| Label::of_text(&text))
    }

    /// Returns the origin if the route has it in a field of its own, and it is not the next hop.
    fn named_origin(&self) -> Label {
        let text = self.fields.text(&Value::OriginAs).filter(|text| !text.trim().is_empty());
        let origin = text.map_or(Label::Absent, |text| value::origins(&text));
        if origin == value::plain(&self.next_hop(), &Value::OriginAs) { Label::Absent } else { origin }
    }

    /// Returns the label for these values.
    pub(crate) fn label(&self, values: &[Value], implied_origin: bool) -> Label {
        value::label(values, |value| match value {
            Value::OriginAs if implied_origin => self.named_origin(),
            value => self.value(value),
        })
    }

    /// Returns whether a filter takes the route.
    pub(crate) fn passes(&self, filter: &Filter) -> bool {
        if !filter.needs_attributes() {
            return true;
        }
        let text = |value| self.fields.text(&value).unwrap_or_default();
        filter.passes_fields(&self.value(&Value::OriginAs), &text(Value::AsPath), &text(Value::Communities))
    }

    /// Returns whether the next hop is an address of IPv6 or of IPv4. Use it only where nothing else gives the family.
    pub(crate) fn next_hop_family(&self) -> Option<Family> {
        let next_hop = self.fields.text(&Value::NextHop)?;
        parse_address(next_hop.trim().as_bytes()).ok().map(|address| match address {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        })
    }

    /// Returns the addresses of the route.
    pub(crate) fn addresses(&self, host_bits: HostBits) -> Result<Addresses, LineError> {
        match self.place {
            RouteScope::Prefix(text) => {
                let text = text.trim();
                if text.eq_ignore_ascii_case("default") {
                    return Ok(Addresses::Default);
                }
                match text.split_once('-') {
                    Some((first, last)) => range(ends(first.trim(), last.trim())?),
                    None => text::place(text, host_bits).map(Addresses::One),
                }
            }
            RouteScope::Masked(address, mask) => {
                text::masked(address.trim(), mask.trim(), host_bits).map(Addresses::One)
            }
            RouteScope::Range(first, last) => range(ends(first.trim(), last.trim())?),
            RouteScope::Count(first, count) => range(counted(first.trim(), count.trim())?),
        }
    }
}

/// Returns the ends of a range of addresses or of integers.
fn ends(first: &str, last: &str) -> Result<(IpAddr, IpAddr), LineError> {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    if number(first) && number(last) {
        let parse =
            |text: &str| text.parse::<u128>().map_err(|_| LineError::new(LineErrorKind::RangeNumber, 0));
        let (first, last) = (parse(first)?, parse(last)?);
        // The lowest addresses of IPv6 are those of IPv4: integers that fit are IPv4.
        return Ok(match (u32::try_from(first), u32::try_from(last)) {
            (Ok(first), Ok(last)) => (IpAddr::V4(first.into()), IpAddr::V4(last.into())),
            _ => (IpAddr::V6(first.into()), IpAddr::V6(last.into())),
        });
    }
    Ok((end(first)?, end(last)?))
}

fn end(text: &str) -> Result<IpAddr, LineError> {
    parse_address(text.as_bytes()).map_err(|error| LineError::new(LineErrorKind::RangeAddress(error), 0))
}

fn counted(first: &str, count: &str) -> Result<(IpAddr, IpAddr), LineError> {
    let wrong = || LineError::new(LineErrorKind::RangeNumber, 0);
    let count = count.parse::<u128>().ok().and_then(|count| count.checked_sub(1)).ok_or_else(wrong)?;
    Ok(match end(first)? {
        IpAddr::V4(first) => {
            let count = u32::try_from(count).map_err(|_| wrong())?;
            let last = u32::from(first).checked_add(count).ok_or_else(wrong)?;
            (first.into(), IpAddr::V4(last.into()))
        }
        IpAddr::V6(first) => {
            let last = u128::from(first).checked_add(count).ok_or_else(wrong)?;
            (first.into(), IpAddr::V6(last.into()))
        }
    })
}

fn range((first, last): (IpAddr, IpAddr)) -> Result<Addresses, LineError> {
    if first.is_ipv4() != last.is_ipv4() {
        return Err(LineError::new(LineErrorKind::RangeFamilies, 0));
    }
    if last < first {
        return Err(LineError::new(LineErrorKind::RangeOrder, 0));
    }
    Ok(Addresses::of_range(first, last))
}

impl Addresses {
    /// Returns the addresses of a range of one family, whose ends are in order.
    pub(crate) fn of_range(first: IpAddr, last: IpAddr) -> Self {
        let (mut range, low, size) = match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                let (first, last) = (u32::from(first), u32::from(last));
                (
                    Range::V4(prefixes_of(first..=last)),
                    u128::from(first),
                    u128::from(last.wrapping_sub(first)),
                )
            }
            (first, last) => {
                let (first, last) = (bits(first), bits(last));
                (Range::V6(prefixes_of(first..=last)), first, last.wrapping_sub(first))
            }
        };
        // A prefix has a power of two of addresses, and begins at a multiple of it.
        let is_prefix = size & size.wrapping_add(1) == 0 && low & size == 0;
        if is_prefix && let Some(prefix) = range.next() {
            return Self::One(prefix);
        }
        Self::Several(range, size)
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// Fields that a form names itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedFields<'a> {
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> NamedFields<'a> {
    pub(crate) fn push(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        self.fields.push((name.into(), value.into()));
    }
}

impl Fields for NamedFields<'_> {
    fn text(&self, value: &Value) -> Option<Cow<'_, str>> {
        let exact = self.fields.iter().find(|(name, _)| value.is_exactly(name));
        let found = exact.or_else(|| self.fields.iter().find(|(name, _)| value.is_column(name)));
        found.map(|(_, text)| Cow::Borrowed(&**text))
    }
}

/// Writes communities as bgpdump does: `(64500,7) (64500, 1, 2)` of BIRD is `64500:7 64500:1:2`.
pub(crate) fn communities(text: &str) -> String {
    if !text.contains('(') {
        return text.to_owned();
    }
    let mut written = String::with_capacity(text.len());
    for part in text.split(')') {
        let Some((_, inner)) = part.split_once('(') else { continue };
        if !written.is_empty() {
            written.push(' ');
        }
        for (at, number) in inner.split(',').enumerate() {
            if at > 0 {
                written.push(':');
            }
            written.push_str(number.trim());
        }
    }
    written
}
