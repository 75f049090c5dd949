//! Messages of route netlink about routes and next-hop objects, as the kernel and FPM send them.
//!
//! Decoding does no I/O and never reads past a message. Unknown attributes are ignored, so that newer senders do no harm.

use std::net::{IpAddr, Ipv6Addr};

use fibula::net::{IpPrefix, Prefix};
use netlink_packet_core::{NLA_HEADER_SIZE, NLA_TYPE_MASK, NetlinkBuffer, NlasIterator};

use super::path::{Object, Out, Path, Way};

/// Header of a netlink message.
pub(super) const HEADER: usize = 16;
const ROUTE: usize = 12;
const NEXT_HOP: usize = 8;
/// `rtnh_flags`: the way cannot be used.
const DEAD: u8 = 1;
/// `rtm_flags`: an entry of a cache, no route.
const CLONED: u32 = 0x200;

/// Numbers of `rtnetlink.h` that the C library's crate lacks.
pub(super) mod number {
    pub(crate) const NEW_NEXT_HOP: u16 = 104;
    pub(crate) const DEL_NEXT_HOP: u16 = 105;
    pub(crate) const RTA_VIA: u16 = 18;
    pub(crate) const RTA_ENCAP_TYPE: u16 = 21;
    pub(crate) const RTA_NH_ID: u16 = 30;
    pub(crate) const NHA_ID: u16 = 1;
    pub(crate) const NHA_GROUP: u16 = 2;
    pub(crate) const NHA_BLACKHOLE: u16 = 4;
    pub(crate) const NHA_OIF: u16 = 5;
    pub(crate) const NHA_GATEWAY: u16 = 6;
    pub(crate) const NHA_ENCAP_TYPE: u16 = 7;
}

/// A route in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteMessage {
    /// Destinations.
    pub prefix: IpPrefix,
    /// Number of the kernel's table.
    pub table: u32,
    /// Metric: the lowest counts.
    pub metric: u32,
    /// Where the route leads. `None` if its type or encapsulation is not supported.
    pub target: Option<Target>,
}

/// Where a route in a message leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path of its own.
    Path(Path),
    /// A next-hop object.
    Object(u32),
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A route was added.
    Route(RouteMessage),
    /// A route was removed.
    RouteGone(RouteMessage),
    /// A next-hop object was added. `None` if it is not supported.
    Object(u32, Option<Object>),
    /// A next-hop object was removed.
    ObjectGone(u32),
    /// A message of another type, or not about unicast routes of IPv4 and IPv6.
    Other,
    /// The message is damaged.
    Malformed,
}

/// Type and flags of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Type.
    pub kind: u16,
    /// Flags.
    pub flags: u16,
    /// Sequence number of the request that it answers.
    pub sequence: u32,
}

/// Splits off the first message. Returns its head, its body and the remaining bytes; `None` if there is no complete message.
#[must_use]
pub fn split(bytes: &[u8]) -> Option<(Head, &[u8], &[u8])> {
    let header = NetlinkBuffer::new_checked(bytes).ok()?;
    let head =
        Head { kind: header.message_type(), flags: header.flags(), sequence: header.sequence_number() };
    let len = header.length() as usize;
    let rest = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    Some((head, bytes.get(HEADER..len)?, rest))
}

/// Decodes the body of a message.
#[must_use]
pub fn decode(kind: u16, body: &[u8]) -> Message {
    let decoded = match kind {
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => route(body).map(|route| match route {
            Some(route) if kind == libc::RTM_NEWROUTE => Message::Route(route),
            Some(route) => Message::RouteGone(route),
            None => Message::Other,
        }),
        number::NEW_NEXT_HOP => object(body),
        number::DEL_NEXT_HOP => object(body).map(|message| match message {
            Message::Object(id, _) => Message::ObjectGone(id),
            other => other,
        }),
        _ => Some(Message::Other),
    };
    decoded.unwrap_or(Message::Malformed)
}

/// Calls `each` with the attributes of `bytes`. Returns `None` if they are damaged, or if `each` returns `None`.
pub(super) fn attributes<'b>(
    bytes: &'b [u8],
    mut each: impl FnMut(u16, &'b [u8]) -> Option<()>,
) -> Option<()> {
    for attribute in NlasIterator::new(bytes) {
        let attribute = attribute.ok()?;
        let (kind, len) = (attribute.kind() & NLA_TYPE_MASK, usize::from(attribute.length()));
        each(kind, attribute.into_inner().get(NLA_HEADER_SIZE..len)?)?;
    }
    Some(())
}

pub(super) fn u32_of(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

pub(super) fn ip_of(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(<[u8; 4]>::try_from(value).ok()?.into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
        _ => None,
    }
}

/// The gateway and device of a route or of one of its ways.
#[derive(Default)]
struct Leads {
    gateway: Option<IpAddr>,
    device: Option<u32>,
    is_encapsulated: bool,
}

impl Leads {
    /// Reads an attribute, if it is one of these. An all-zero gateway means none.
    fn take(&mut self, kind: u16, value: &[u8]) -> Option<()> {
        match kind {
            libc::RTA_GATEWAY => self.gateway = Some(ip_of(value)?),
            // Family, then address.
            number::RTA_VIA => self.gateway = Some(ip_of(value.get(2..)?)?),
            libc::RTA_OIF => self.device = Some(u32_of(value)?),
            number::RTA_ENCAP_TYPE => self.is_encapsulated = value.iter().any(|&byte| byte != 0),
            _ => {}
        }
        Some(())
    }

    fn way(&self, weight: u32) -> Option<Way> {
        let gateway = self.gateway.filter(|gateway| !gateway.is_unspecified());
        let out = match (self.device, gateway) {
            (Some(device @ 1..), _) => Out::Device(device),
            (_, Some(_)) => Out::Near(0),
            (_, None) => return None,
        };
        (!self.is_encapsulated).then_some(Way { gateway, out, weight })
    }
}

/// Decodes a route. Returns `Some(None)` if the message is about something else.
fn route(body: &[u8]) -> Option<Option<RouteMessage>> {
    let header: &[u8; ROUTE] = body.get(..ROUTE)?.try_into().ok()?;
    let [family, len, _, tos, table, _, _, kind, ..] = *header;
    let family = i32::from(family);
    let is_cached = u32_of(&header[8..])? & CLONED != 0;
    if !matches!(family, libc::AF_INET | libc::AF_INET6) || tos != 0 || is_cached {
        return Some(None);
    }
    let (mut destination, mut table, mut metric) = (None, u32::from(table), 0);
    let (mut leads, mut object, mut ways) = (Leads::default(), None, None);
    let mut is_source = false;
    attributes(body.get(ROUTE..)?, |kind, value| {
        match kind {
            libc::RTA_DST => destination = Some(value),
            // The route applies to some sources only.
            libc::RTA_SRC => is_source = true,
            libc::RTA_TABLE => table = u32_of(value)?,
            libc::RTA_PRIORITY => metric = u32_of(value)?,
            number::RTA_NH_ID => object = Some(u32_of(value)?).filter(|&id| id != 0),
            libc::RTA_MULTIPATH => ways = Some(multipath(value)?),
            _ => leads.take(kind, value)?,
        }
        Some(())
    })?;
    let prefix = prefix(family, destination.unwrap_or(&[]), len)?;
    let is_local = match prefix {
        IpPrefix::V4(prefix) => prefix.len() >= 4 && prefix.addr() >> 28 == 0xe,
        IpPrefix::V6(prefix) => {
            prefix.len() >= 8 && (prefix.addr() >> 120 == 0xff || prefix.addr() >> 118 == 0x3fa)
        }
    };
    if is_source || is_local {
        return Some(None);
    }
    let target = match kind {
        libc::RTN_BLACKHOLE => Some(Target::Path(Path::Blackhole)),
        libc::RTN_UNREACHABLE => Some(Target::Path(Path::Unreachable)),
        libc::RTN_PROHIBIT => Some(Target::Path(Path::Prohibit)),
        libc::RTN_UNICAST => match (object, ways) {
            (Some(id), _) => Some(Target::Object(id)),
            (None, Some(Some(ways))) => Some(Target::Path(Path::Ways(ways.into()))),
            (None, Some(None)) => None,
            (None, None) => leads.way(1).map(|way| Target::Path(Path::Ways([way].into()))),
        },
        _ => None,
    };
    Some(Some(RouteMessage { prefix, table, metric, target }))
}

fn prefix(family: i32, destination: &[u8], len: u8) -> Option<IpPrefix> {
    // Senders may leave out trailing zero bytes, for example all bytes of a default route.
    let mut octets = [0; 16];
    let most = if family == libc::AF_INET { 4 } else { 16 };
    if destination.len() > most || usize::from(len).div_ceil(8) > destination.len() {
        return None;
    }
    octets[..destination.len()].copy_from_slice(destination);
    let [a, b, c, d, ..] = octets;
    match family {
        libc::AF_INET => Prefix::masked(u32::from_be_bytes([a, b, c, d]), len).ok().map(IpPrefix::V4),
        _ => Prefix::masked(u128::from_be_bytes(octets), len).ok().map(IpPrefix::V6),
    }
}

/// Decodes the ways of a multipath route: each is a `struct rtnexthop`, followed by its attributes. Returns `Some(None)` if none
/// can be used.
fn multipath(mut bytes: &[u8]) -> Option<Option<Vec<Way>>> {
    let mut ways = Vec::new();
    while !bytes.is_empty() {
        let header: &[u8; 8] = bytes.get(..8)?.try_into().ok()?;
        let [a, b, flags, hops, ..] = *header;
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let mut leads = Leads { device: Some(u32_of(&header[4..])?), ..Leads::default() };
        attributes(bytes.get(8..len)?, |kind, value| leads.take(kind, value))?;
        if flags & DEAD == 0 {
            ways.extend(leads.way(u32::from(hops) + 1));
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Some((!ways.is_empty()).then_some(ways))
}

fn object(body: &[u8]) -> Option<Message> {
    let (mut id, mut leads) = (0, Leads::default());
    let (mut group, mut is_blackhole) = (None, false);
    attributes(body.get(NEXT_HOP..)?, |kind, value| {
        match kind {
            number::NHA_ID => id = u32_of(value)?,
            number::NHA_GROUP => group = Some(members(value)?),
            number::NHA_BLACKHOLE => is_blackhole = true,
            number::NHA_OIF => leads.device = Some(u32_of(value)?),
            number::NHA_GATEWAY => leads.gateway = Some(ip_of(value)?),
            number::NHA_ENCAP_TYPE => leads.is_encapsulated = value.iter().any(|&byte| byte != 0),
            _ => {}
        }
        Some(())
    })?;
    if id == 0 {
        return None;
    }
    let object = match group {
        Some(members) => Some(Object::Group(members.into())),
        None if is_blackhole => Some(Object::Blackhole),
        None => leads.way(1).map(Object::Way),
    };
    Some(Message::Object(id, object))
}

/// Decodes the members of a group: `struct nexthop_grp`. The stored weight is one less than the real weight, and its high byte
/// follows the low one.
fn members(bytes: &[u8]) -> Option<Vec<(u32, u32)>> {
    let (members, []) = bytes.as_chunks::<8>() else { return None };
    let member = |member: &[u8; 8]| {
        let [a, b, c, d, low, high, ..] = *member;
        (u32::from_ne_bytes([a, b, c, d]), u32::from(u16::from_le_bytes([low, high])) + 1)
    };
    Some(members.iter().map(member).collect())
}

#[cfg(test)]
pub(super) mod tests;
