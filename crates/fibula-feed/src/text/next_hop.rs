//! Next hops as text.

use fibula::net::parse_address;

use super::error::{LineError, LineErrorKind};
use super::fields::Field;
use crate::next_hops::Label;

/// Reads a number, an address, or several AS numbers.
pub(super) fn parse(field: Field<'_>) -> Result<Label, LineError> {
    // Only addresses have a dot or a colon.
    if field.bytes.iter().any(|byte| matches!(byte, b'.' | b':')) {
        return parse_address(field.bytes).map(Label::Address).map_err(|error| {
            LineError::new(LineErrorKind::NextHopAddress(error), field.offset + error.offset())
        });
    }
    if !field.bytes.iter().all(|&byte| byte.is_ascii_digit() || is_separator(byte)) {
        return Err(LineError::new(LineErrorKind::NotANextHop, field.offset));
    }
    if field.bytes.iter().any(|&byte| is_separator(byte)) {
        return parse_origins(field);
    }
    parse_number(field.bytes)
        .map(Label::Number)
        .ok_or(LineError::new(LineErrorKind::NumberTooLarge, field.offset))
}

/// Reads one AS number or several.
pub(super) fn parse_origins(field: Field<'_>) -> Result<Label, LineError> {
    let mut offset = field.offset;
    let mut last = 0;
    let mut count = 0;
    for origin in field.bytes.split(|&byte| is_separator(byte)) {
        if let Some(at) = origin.iter().position(|byte| !byte.is_ascii_digit()) {
            return Err(LineError::new(LineErrorKind::NotAnOrigin, offset + at));
        }
        if origin.is_empty() {
            return Err(LineError::new(LineErrorKind::NotAnOrigin, offset));
        }
        last = parse_number(origin).ok_or(LineError::new(LineErrorKind::OriginTooLarge, offset))?;
        count += 1;
        offset += origin.len() + 1;
    }
    if count == 1 {
        return Ok(Label::Number(last));
    }
    // Digits and separators only, as was just seen.
    Ok(Label::Origins(String::from_utf8_lossy(field.bytes).into()))
}

/// Reads a number; `None` if it is not one of 32 bits.
pub(super) fn parse_digits(text: &[u8]) -> Option<u32> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if digits { parse_number(text) } else { None }
}

/// Reads a number of digits only; `None` if it exceeds 32 bits.
fn parse_number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |number, &digit| {
        number.checked_mul(10)?.checked_add(u32::from(digit.wrapping_sub(b'0')))
    })
}

/// `_` separates origins, `,` the members of an AS set.
fn is_separator(byte: u8) -> bool {
    matches!(byte, b'_' | b',')
}
