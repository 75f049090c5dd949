//! `time a|w prefix next-hop peer peer-as next-as`: one announcement or withdrawal a line.

use fibula::net::{HostBits, parse_address};

use super::error::{LineError, LineErrorKind};
use super::fields::{Field, LineFields};
use super::{Form, Line, next_hop, prefix};
use crate::event::{Action, Announcement, Event, Peer, Time};

pub(super) const FORM: Form = Form {
    name: "updates",
    syntax: "TIME a|w PREFIX NEXT-HOP PEER PEER-AS NEXT-AS",
    example: "1445565695 a 198.51.100.0/24 192.0.2.1 192.0.2.2 64500 64501",
    recognises,
    decode,
};

/// Returns whether the line begins with a number and `a` or `w`. No other form begins with a number alone.
fn recognises(fields: &LineFields<'_>) -> bool {
    let [time, action, _, ..] = fields.words() else { return false };
    matches!(action.bytes, b"a" | b"w") && time.bytes[0].is_ascii_digit()
}

fn decode(fields: &LineFields<'_>, host_bits: HostBits) -> Result<Line, LineError> {
    let word = |at: usize, what| {
        fields.words().get(at).copied().ok_or_else(|| fields.ends(LineErrorKind::MissingField(what)))
    };
    let time = time(word(0, "time")?)?;
    let announces = word(1, "action")?.bytes == b"a";
    let prefix = prefix::parse(word(2, "prefix")?, host_bits)?;
    let next_hop = word(3, "next hop")?;
    let peer = peer(word(4, "peer")?, word(5, "peer's AS")?)?;
    // The first AS of the path, or `-`: not needed, and not looked at.
    word(6, "next AS")?;
    fields.refuse_after(7, LineErrorKind::ExtraUpdateField)?;
    let action = if announces {
        let next_hop = next_hop::parse(next_hop)?;
        let path = prefix.into();
        Action::Announce(Announcement { path, next_hop, path_len: None, dumped: false, attributes: None })
    } else if next_hop.bytes == b"-" {
        Action::Withdraw(prefix.into())
    } else {
        return Err(LineError::new(
            LineErrorKind::NotAWord { wanted: "'-' in place of a next hop" },
            next_hop.offset,
        ));
    };
    Ok(Line::Event(Event { time, peer: Some(peer), action }))
}

/// Reads seconds, and up to six digits after a point.
pub(super) fn time(field: Field<'_>) -> Result<Time, LineError> {
    let wrong = LineError::new(LineErrorKind::NotATime, field.offset);
    let point = field.bytes.iter().position(|&byte| byte == b'.');
    let (whole, part) = field.bytes.split_at(point.unwrap_or(field.bytes.len()));
    let seconds = next_hop::parse_digits(whole).ok_or(wrong)?;
    let micros = match part {
        [] => None,
        [_, digits @ ..] if (1..=6).contains(&digits.len()) => {
            let scale = 10u32.pow(6 - digits.len() as u32);
            Some(next_hop::parse_digits(digits).ok_or(wrong)? * scale)
        }
        _ => return Err(wrong),
    };
    Ok(Time { seconds, micros })
}

pub(super) fn peer(address: Field<'_>, asn: Field<'_>) -> Result<Peer, LineError> {
    let address = parse_address(address.bytes)
        .map_err(|error| LineError::new(LineErrorKind::Address(error), address.offset + error.offset()))?;
    let wrong = LineError::new(LineErrorKind::NotAnOrigin, asn.offset);
    let asn = next_hop::parse_digits(asn.bytes).ok_or(wrong)?;
    Ok(Peer { address, asn })
}
