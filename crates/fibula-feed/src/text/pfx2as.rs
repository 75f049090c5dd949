//! `address length origin`: CAIDA's mapping of prefixes to the ASes that announce them (Routeviews Prefix to
//! AS mappings, pfx2as).

use fibula::net::{HostBits, IpPrefix};

use super::error::{LineError, LineErrorKind};
use super::fields::{Field, LineFields};
use super::{Entry, Form, Line, next_hop, prefix};

pub(super) const FORM: Form = Form {
    name: "pfx2as",
    syntax: "ADDRESS LENGTH ORIGIN",
    example: "198.51.100.0\t24\t64500_64501,64502",
    recognises,
    decode,
};

/// Returns whether the line has at least three fields, the first without a length and the second a length, not an
/// address.
fn recognises(fields: &LineFields<'_>) -> bool {
    let [address, length, _, ..] = fields.words() else {
        return false;
    };
    !address.bytes.contains(&b'/')
        && length.bytes[0].is_ascii_digit()
        && !length.bytes.iter().any(|byte| matches!(byte, b'.' | b':'))
}

fn decode(fields: &LineFields<'_>, host_bits: HostBits) -> Result<Line, LineError> {
    let [address, length, origin, ..] = fields.words() else {
        return Err(fields.ends(LineErrorKind::NoNextHop));
    };
    let prefix = parse(*address, *length, host_bits)?;
    let next_hop = next_hop::parse_origins(*origin)?;
    fields.refuse_after(3, LineErrorKind::ExtraField)?;
    Ok(Line::Route(Entry { prefix, next_hop }))
}

/// Reads a prefix from two fields, which are joined by a slash for the prefix parser.
fn parse(address: Field<'_>, length: Field<'_>, host_bits: HostBits) -> Result<IpPrefix, LineError> {
    // No valid pair of fields is longer: 45 bytes of IPv6 with dotted decimal, 3 of length.
    let mut room = [0; 64];
    let slash = address.bytes.len();
    let len = slash + 1 + length.bytes.len();
    let result = match room.get_mut(..len) {
        Some(text) => {
            text[..slash].copy_from_slice(address.bytes);
            text[slash] = b'/';
            text[slash + 1..].copy_from_slice(length.bytes);
            IpPrefix::parse(text, host_bits)
        }
        None => IpPrefix::parse(&[address.bytes, b"/", length.bytes].concat(), host_bits),
    };
    let prefix = result.map_err(|error| {
        let at = error.offset().unwrap_or(0);
        // Host bits are reported at the slash; they and all after it belong to the length.
        let offset = if error.is_host_bits() || at > slash {
            length.offset + at.saturating_sub(slash + 1)
        } else {
            address.offset + at
        };
        LineError::new(LineErrorKind::Prefix(error), offset)
    })?;
    prefix::refuse_leading_zero(length.bytes, length.offset)?;
    Ok(prefix)
}
