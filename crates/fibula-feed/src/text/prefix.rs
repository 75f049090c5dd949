//! `prefix next-hop`, or any label in place of a next hop, as routers, looking glasses and most archives print it.

use fibula::net::{HostBits, IpPrefix};

use super::error::{LineError, LineErrorKind};
use super::fields::{Field, LineFields};
use super::{Entry, Form, Label, Line, netmask, next_hop};

pub(super) const FORM: Form = Form {
    name: "prefix-next-hop",
    syntax: "PREFIX [via] NEXT-HOP",
    example: "198.51.100.0/24 via 192.0.2.1",
    recognises: |_| true,
    decode,
};

/// Reads a route. An address without a length is a prefix of that address alone.
fn decode(fields: &LineFields<'_>, host_bits: HostBits) -> Result<Line, LineError> {
    let first = fields.words().first().ok_or_else(|| no_next_hop(fields))?;
    let prefix = parse(*first, host_bits)?;
    Ok(Line::Route(Entry { prefix, next_hop: next_hop_after(fields, 1)? }))
}

/// Reads the next hop of a line, after this many words.
pub(super) fn next_hop_after(fields: &LineFields<'_>, words: usize) -> Result<Label, LineError> {
    let (next_hop, count) = match fields.words().get(words..).unwrap_or_default() {
        [] => return Err(no_next_hop(fields)),
        [Field { bytes: b"via", .. }] => return Err(no_next_hop(fields)),
        [Field { bytes: b"via", .. }, next_hop, ..] => (next_hop, words + 2),
        [next_hop, ..] => (next_hop, words + 1),
    };
    if next_hop.bytes.starts_with(b"\"") {
        // Blanks belong to a label in quotes.
        let rest = Field { bytes: &fields.line()[next_hop.offset..], offset: next_hop.offset };
        return next_hop::parse_quoted(rest);
    }
    let next_hop = next_hop::parse(*next_hop)?;
    fields.refuse_after(count, LineErrorKind::ExtraField)?;
    Ok(next_hop)
}

pub(super) fn parse(field: Field<'_>, host_bits: HostBits) -> Result<IpPrefix, LineError> {
    let prefix = parse_with_length(field.bytes, field.offset, host_bits);
    if prefix.is_err()
        && let Some(slash) = memchr::memchr(b'/', field.bytes)
        && let (address, [_, mask @ ..]) = field.bytes.split_at(slash)
        && netmask::length(mask).is_some()
    {
        return netmask::join(address, mask, field.offset, host_bits);
    }
    prefix
}

pub(super) fn parse_with_length(
    text: &[u8],
    offset: usize,
    host_bits: HostBits,
) -> Result<IpPrefix, LineError> {
    let prefix = IpPrefix::parse(text, host_bits).map_err(|error| {
        LineError::new(LineErrorKind::Prefix(error), offset + error.offset().unwrap_or(0))
    })?;
    if let Some(slash) = memchr::memchr(b'/', text) {
        refuse_leading_zero(&text[slash + 1..], offset + slash + 1)?;
    }
    Ok(prefix)
}

/// Refuses a leading zero: `/010` is 8 to tools that read octal, and 10 to others.
pub(super) fn refuse_leading_zero(length: &[u8], offset: usize) -> Result<(), LineError> {
    match length {
        [b'0', _, ..] => Err(LineError::new(LineErrorKind::LeadingZero, offset)),
        _ => Ok(()),
    }
}

fn no_next_hop(fields: &LineFields<'_>) -> LineError {
    fields.ends(LineErrorKind::NoNextHop)
}
