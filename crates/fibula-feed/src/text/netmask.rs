//! `address netmask next-hop`, as routers configure it and print it in columns.

use fibula::net::{HostBits, IpPrefix, parse_address};

use super::error::{LineError, LineErrorKind};
use super::fields::LineFields;
use super::{Entry, Form, Line, next_hop, prefix};

pub(super) const FORM: Form = Form {
    name: "netmask",
    syntax: "ADDRESS NETMASK NEXT-HOP",
    example: "198.51.100.0 255.255.255.0 192.0.2.1",
    recognises,
    decode,
};

/// Returns whether an address comes before a netmask and something else.
fn recognises(fields: &LineFields<'_>) -> bool {
    let [address, mask, _, ..] = fields.words() else { return false };
    mask.bytes.contains(&b'.') && !address.bytes.contains(&b'/') && length(mask.bytes).is_some()
}

fn decode(fields: &LineFields<'_>, host_bits: HostBits) -> Result<Line, LineError> {
    let [address, mask, next_hop, ..] = fields.words() else {
        return Err(fields.ends(LineErrorKind::NoNextHop));
    };
    let prefix = join(address.bytes, mask.bytes, address.offset, host_bits)?;
    let next_hop = next_hop::parse(*next_hop)?;
    fields.refuse_after(3, LineErrorKind::ExtraField)?;
    Ok(Line::Route(Entry { prefix, next_hop }))
}

/// Returns the length of a netmask.
pub(super) fn length(mask: &[u8]) -> Option<u32> {
    let std::net::IpAddr::V4(mask) = parse_address(mask).ok()? else { return None };
    let mask = u32::from(mask);
    (mask.leading_ones() + mask.trailing_zeros() == u32::BITS || mask == 0).then(|| mask.leading_ones())
}

/// Reads an address and a netmask or a length.
pub(super) fn join(
    address: &[u8],
    mask: &[u8],
    offset: usize,
    host_bits: HostBits,
) -> Result<IpPrefix, LineError> {
    let length = length(mask).map(|length| length.to_string());
    let length = length.as_deref().map_or(mask, str::as_bytes);
    let joined = [address, b"/", length].concat();
    prefix::parse_with_length(&joined, offset, host_bits)
}
