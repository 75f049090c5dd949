//! `prefix nexthop`: what routers, looking glasses and most archives print.

use fibula::net::{HostBits, IpPrefix};

use super::error::{LineError, LineErrorKind};
use super::fields::{Field, Fields};
use super::{Entry, Form, Line, next_hop};

pub(super) const FORM: Form = Form {
    name: "prefix-next-hop",
    syntax: "PREFIX [via] NEXT-HOP",
    example: "198.51.100.0/24 via 192.0.2.1",
    recognises: |_| true,
    decode,
};

/// A prefix without a length is the address alone.
fn decode(fields: &Fields<'_>, host_bits: HostBits) -> Result<Line, LineError> {
    let (first, rest) = fields.words().split_first().ok_or_else(|| no_next_hop(fields))?;
    let prefix = parse(*first, host_bits)?;
    let (next_hop, count) = match rest {
        [] => return Err(no_next_hop(fields)),
        [Field { bytes: b"via", .. }] => return Err(no_next_hop(fields)),
        [Field { bytes: b"via", .. }, next_hop, ..] => (next_hop, 3),
        [next_hop, ..] => (next_hop, 2),
    };
    let next_hop = next_hop::parse(*next_hop)?;
    fields.refuse_behind(count)?;
    Ok(Line::Route(Entry { prefix, next_hop }))
}

pub(super) fn parse(field: Field<'_>, host_bits: HostBits) -> Result<IpPrefix, LineError> {
    IpPrefix::parse(field.bytes, host_bits).map_err(|error| {
        let offset = field.offset + error.offset().unwrap_or(0);
        LineError::new(LineErrorKind::Prefix(error), offset)
    })
}

fn no_next_hop(fields: &Fields<'_>) -> LineError {
    fields.ends(LineErrorKind::NoNextHop)
}
