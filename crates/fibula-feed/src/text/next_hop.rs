//! Next hops, and other labels, as text.

use fibula::net::parse_address;

use super::error::{LineError, LineErrorKind};
use super::fields::Field;
use crate::next_hops::Label;

/// Reads a number, an address, several AS numbers, or any other word.
pub(super) fn parse(field: Field<'_>) -> Result<Label, LineError> {
    // Lines of configurations, such as those of `geo` of nginx, end so.
    let bytes = field.bytes.strip_suffix(b";").filter(|word| !word.is_empty()).unwrap_or(field.bytes);
    let field = Field { bytes, ..field };
    let is_numeric = |&byte: &u8| byte.is_ascii_digit() || is_separator(byte);
    if bytes.iter().all(is_numeric) {
        if bytes.iter().any(|&byte| is_separator(byte)) {
            return parse_origins(field);
        }
        return parse_number(bytes)
            .map(Label::Number)
            .ok_or(LineError::new(LineErrorKind::NumberTooLarge, field.offset));
    }
    // Only addresses have a dot or a colon and nothing else but digits.
    let is_punctuation = |byte: &u8| matches!(byte, b'.' | b':');
    if bytes.iter().any(is_punctuation) {
        match parse_address(bytes) {
            Ok(address) => return Ok(Label::Address(address)),
            Err(error) if bytes.iter().all(|byte| byte.is_ascii_hexdigit() || is_punctuation(byte)) => {
                return Err(LineError::new(
                    LineErrorKind::NextHopAddress(error),
                    field.offset + error.offset(),
                ));
            }
            Err(_) => {}
        }
    }
    free(field)
}

/// Reads a word that is neither a number nor an address: the name of an interface, of a site, of anything.
fn free(field: Field<'_>) -> Result<Label, LineError> {
    let wrong = LineError::new(LineErrorKind::NotANextHop, field.offset);
    let text = core::str::from_utf8(field.bytes).map_err(|_| wrong)?;
    // A word of signs and digits is more likely a slip than a name. For example, `-` is how a table marks a missing
    // next hop.
    let has_name = text.chars().any(char::is_alphabetic) && text != "via";
    match text {
        "-" => Ok(Label::Absent),
        _ if has_name && !text.chars().any(|c| c.is_control() || c == '"') => Ok(Label::Text(text.into())),
        _ => Err(wrong),
    }
}

/// Reads a text in quotes, which is the rest of a line.
pub(super) fn parse_quoted(field: Field<'_>) -> Result<Label, LineError> {
    let error = |kind| LineError::new(kind, field.offset);
    let open = error(LineErrorKind::UnterminatedQuote);
    let text =
        core::str::from_utf8(field.bytes.trim_ascii_end()).map_err(|_| error(LineErrorKind::NotText))?;
    let inner = text.strip_prefix('"').ok_or(open)?;
    let mut label = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_comment(chars.as_str()) => return Ok(Label::of_text(&label)),
            '"' => return Err(error(LineErrorKind::AfterQuote)),
            '\\' => label.push(chars.next().ok_or(open)?),
            c if c.is_control() => return Err(error(LineErrorKind::NotText)),
            c => label.push(c),
        }
    }
    Err(open)
}

/// Returns whether nothing or a comment follows.
fn is_comment(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t']) && rest.trim_start().starts_with(['#', ';'])
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
