//! Reading addresses from bytes, saying what is wrong and where.
//!
//! The standard library's parsers accept the same language (RFC 4291 section 2.2 for IPv6, strict dotted
//! decimal for IPv4) but do not say where an address went wrong, and take only UTF-8. A test compares the two.

use core::fmt;

/// Why a piece of text is not an IP address, and at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressError {
    kind: AddressErrorKind,
    offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressErrorKind {
    Empty,
    Unexpected(u8),
    EndsEarly,
    OctetTooLarge,
    LeadingZero,
    GroupTooLong,
    TooManyGroups,
    SecondGap,
    TooLarge(u32),
}

impl AddressError {
    fn new(kind: AddressErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }

    /// Returns the position of the fault, in bytes from the start of the text.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns what is wrong, without the position: `too short`, `unexpected 'x'`.
    #[must_use]
    pub fn reason(&self) -> impl fmt::Display + use<> {
        self.kind
    }

    pub(super) fn shifted(self, by: usize) -> Self {
        Self { offset: self.offset + by, ..self }
    }
}

impl fmt::Display for AddressErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::Unexpected(byte) => write!(f, "unexpected '{}'", byte.escape_ascii()),
            Self::EndsEarly => f.write_str("too short"),
            Self::OctetTooLarge => f.write_str("a number is above 255"),
            Self::LeadingZero => f.write_str("a number has a leading zero"),
            Self::GroupTooLong => f.write_str("a group has more than 4 digits"),
            Self::TooManyGroups => f.write_str("more than 8 groups"),
            Self::SecondGap => f.write_str("more than one '::'"),
            Self::TooLarge(limit) => write!(f, "above {limit}"),
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an IP address: {} (at byte {})", self.kind, self.offset)
    }
}

impl core::error::Error for AddressError {}

/// Reads a dotted-decimal address: four numbers of 0 to 255 without leading zeros.
#[inline]
pub(super) fn parse_ipv4(text: &[u8]) -> Result<u32, AddressError> {
    let (address, end) = leading_ipv4(text)?;
    match text.get(end) {
        None => Ok(address),
        Some(&byte) => Err(AddressError::new(AddressErrorKind::Unexpected(byte), end)),
    }
}

/// Reads the dotted-decimal address at the start of `text`; returns it and where it ends.
#[inline]
fn leading_ipv4(text: &[u8]) -> Result<(u32, usize), AddressError> {
    match quick_ipv4(text) {
        Some(found) => Ok(found),
        None => any_ipv4(text),
    }
}

/// Returns what [`any_ipv4`] does for an address that is well formed, without branches on its bytes: lengths of numbers are hard to
/// predict. `None` for others, and for a text of less than eight bytes.
#[inline]
fn quick_ipv4(text: &[u8]) -> Option<(u32, usize)> {
    /// The least number of so many digits, as there are no leading zeros; for no digits, one that no octet reaches.
    const LEAST: [u32; 4] = [256, 0, 10, 100];
    let every = |byte: u8| u128::from_le_bytes([byte; 16]);
    // The first bytes, the very first in the lowest bits.
    let bytes = match text.first_chunk() {
        Some(&bytes) => u128::from_le_bytes(bytes),
        None => {
            // The last eight bytes overlap the first, where they are the same.
            let (first, last) = (text.first_chunk()?, text.last_chunk()?);
            let last = u128::from(u64::from_le_bytes(*last)) << (8 * (text.len() - 8));
            u128::from(u64::from_le_bytes(*first)) | last
        }
    };
    // The highest bit of each byte that is not a digit.
    let low = bytes ^ every(b'0');
    let mut others = (((low & every(0x7f)) + every(0x80 - 10)) | low) & every(0x80);
    let (mut address, mut start, mut is_bad) = (0, 0, false);
    for part in 0..4 {
        let end = others.trailing_zeros() / 8;
        others &= others.wrapping_sub(1);
        // What is malformed may wrap around, and is found to be bad.
        let len = end.wrapping_sub(start);
        let len_bits = len.wrapping_mul(8);
        let word = bytes.wrapping_shr(8 * start) as u32;
        // The last digit in the highest byte, and zeros before the first.
        let digits = word.wrapping_shl(32_u32.wrapping_sub(len_bits)) & 0x0f0f_0f0f;
        let octet = (digits >> 24) + 10 * (digits >> 16 & 0xf) + 100 * (digits >> 8 & 0xf);
        is_bad |= len > 3 || octet > 255 || octet < LEAST[len as usize & 3];
        is_bad |= part < 3 && word.wrapping_shr(len_bits) & 0xff != u32::from(b'.');
        address = address << 8 | octet;
        start = end.wrapping_add(1);
    }
    (!is_bad).then_some((address, start as usize - 1))
}

/// Returns the address and its end, or says what is wrong.
fn any_ipv4(text: &[u8]) -> Result<(u32, usize), AddressError> {
    if text.is_empty() {
        return Err(AddressError::new(AddressErrorKind::Empty, 0));
    }
    let mut address = 0;
    let mut at = 0;
    for part in 0..4 {
        if part > 0 {
            match text.get(at) {
                Some(b'.') => at += 1,
                Some(&byte) => return Err(AddressError::new(AddressErrorKind::Unexpected(byte), at)),
                None => return Err(AddressError::new(AddressErrorKind::EndsEarly, at)),
            }
        }
        let start = at;
        let mut octet = 0;
        while let Some(&byte) = text.get(at)
            && byte.is_ascii_digit()
        {
            octet = octet * 10 + u32::from(byte - b'0');
            at += 1;
            if octet > 255 {
                return Err(AddressError::new(AddressErrorKind::OctetTooLarge, start));
            }
            if at - start == 2 && text[start] == b'0' {
                return Err(AddressError::new(AddressErrorKind::LeadingZero, start));
            }
        }
        if at == start {
            return Err(match text.get(at) {
                Some(&byte) => AddressError::new(AddressErrorKind::Unexpected(byte), at),
                None => AddressError::new(AddressErrorKind::EndsEarly, at),
            });
        }
        address = address << 8 | octet;
    }
    Ok((address, at))
}

/// Reads an IPv6 address in any of the forms of RFC 4291 section 2.2. Zone names (`%eth0`) are refused: they
/// are not part of an address.
pub(super) fn parse_ipv6(text: &[u8]) -> Result<u128, AddressError> {
    if text.is_empty() {
        return Err(AddressError::new(AddressErrorKind::Empty, 0));
    }
    let unexpected = |at: usize| match text.get(at) {
        Some(&byte) => AddressError::new(AddressErrorKind::Unexpected(byte), at),
        None => AddressError::new(AddressErrorKind::EndsEarly, at),
    };
    let mut address = 0u128;
    let mut groups = 0u32;
    // Number of groups before the '::'.
    let mut gap = None;
    let mut at = 0;
    if text.starts_with(b"::") {
        gap = Some(0);
        at = 2;
    }
    while at < text.len() {
        if groups == 8 {
            return Err(AddressError::new(AddressErrorKind::TooManyGroups, at));
        }
        let start = at;
        let mut group = 0u128;
        while let Some(digit) = text.get(at).and_then(|&byte| char::from(byte).to_digit(16)) {
            if at - start == 4 {
                return Err(AddressError::new(AddressErrorKind::GroupTooLong, start));
            }
            group = group << 4 | u128::from(digit);
            at += 1;
        }
        if at == start {
            return Err(unexpected(at));
        }
        if text.get(at) == Some(&b'.') {
            let (tail, end) = leading_ipv4(&text[start..]).map_err(|error| error.shifted(start))?;
            if groups > 6 {
                return Err(AddressError::new(AddressErrorKind::TooManyGroups, start));
            }
            at = start + end;
            if at < text.len() {
                return Err(unexpected(at));
            }
            address = address << 32 | u128::from(tail);
            groups += 2;
            break;
        }
        address = address << 16 | group;
        groups += 1;
        match text.get(at) {
            None => break,
            Some(b':') => at += 1,
            Some(_) => return Err(unexpected(at)),
        }
        if text.get(at) == Some(&b':') {
            if gap.is_some() {
                return Err(AddressError::new(AddressErrorKind::SecondGap, at - 1));
            }
            gap = Some(groups);
            at += 1;
        } else if at == text.len() {
            return Err(unexpected(at));
        }
    }
    match gap {
        None if groups == 8 => Ok(address),
        None => Err(unexpected(text.len())),
        // '::' replaces at least one group.
        Some(_) if groups == 8 => Err(AddressError::new(AddressErrorKind::TooManyGroups, text.len())),
        Some(front) => {
            let after = groups - front;
            // 1 to 8 groups are absent, so neither shift reaches the full width.
            let low_mask = (1u128 << (16 * after)) - 1;
            let high = if front == 0 { 0 } else { (address & !low_mask) << (16 * (8 - groups)) };
            Ok(high | address & low_mask)
        }
    }
}

/// Reads a decimal number of 0 to `limit`.
pub(super) fn parse_number(text: &[u8], limit: u32) -> Result<u32, AddressError> {
    if text.is_empty() {
        return Err(AddressError::new(AddressErrorKind::Empty, 0));
    }
    let mut value = 0u64;
    for (at, &byte) in text.iter().enumerate() {
        if !byte.is_ascii_digit() {
            return Err(AddressError::new(AddressErrorKind::Unexpected(byte), at));
        }
        value = value * 10 + u64::from(byte - b'0');
        if value > u64::from(limit) {
            return Err(AddressError::new(AddressErrorKind::TooLarge(limit), 0));
        }
    }
    Ok(value as u32)
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn v4_agrees(text: &str) {
        let ours = parse_ipv4(text.as_bytes()).ok();
        assert_eq!(ours, text.parse::<Ipv4Addr>().ok().map(u32::from), "{text:?}");
    }

    fn v6_agrees(text: &str) {
        let ours = parse_ipv6(text.as_bytes()).ok();
        assert_eq!(ours, text.parse::<Ipv6Addr>().ok().map(u128::from), "{text:?}");
    }

    #[test]
    fn every_short_text_is_read_as_the_standard_library_reads_it() {
        // All strings of up to six letters, with every character that decides anything in either grammar.
        let alphabet = b"0:1.f";
        let mut frontier = vec![String::new()];
        for _ in 0..6 {
            for text in &frontier {
                v4_agrees(text);
                v6_agrees(text);
                v6_agrees(&format!("::{text}"));
                v6_agrees(&format!("1:2:3:4:5:{text}"));
                v4_agrees(&format!("25{text}"));
                v4_agrees(&format!("1.2.{text}"));
            }
            let grow = |text: &String| {
                let text = text.clone();
                alphabet.iter().map(move |&letter| format!("{text}{}", char::from(letter)))
            };
            frontier = frontier.iter().flat_map(grow).collect();
        }
    }

    #[test]
    fn quick_reading_agrees_with_the_other() {
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % bound
        };
        let mut found = 0;
        for _ in 0..200_000 {
            let numbers: [u64; 4] = core::array::from_fn(|_| {
                let bound = [10, 100, 256, 1_100][below(4) as usize];
                below(bound)
            });
            let after = ["", "/24", ",x", " via 192.0.2.1", ".", "9", "x"][below(7) as usize];
            let mut text = numbers.map(|number| number.to_string()).join(".").into_bytes();
            text.extend_from_slice(after.as_bytes());
            if below(4) == 0 {
                let at = below(text.len() as u64) as usize;
                text[at] = b"0.:/9\0\xff"[below(7) as usize];
            }
            let (quick, any) = (quick_ipv4(&text), any_ipv4(&text).ok());
            assert_eq!(quick, any.filter(|_| text.len() >= 8), "{}", text.escape_ascii());
            found += u32::from(quick.is_some());
        }
        assert!(found > 50_000, "{found}");
    }

    #[test]
    fn usual_and_odd_forms_agree() {
        for text in [
            "0.0.0.0",
            "255.255.255.255",
            "256.1.1.1",
            "01.1.1.1",
            "00.1.1.1",
            "1.1.1",
            "1.1.1.1.",
            "1.1.1.1 ",
            "1.1.1.1000",
            " 1.1.1.1",
            "-1.1.1.1",
            "1..1.1",
            "٣.1.1.1",
        ] {
            v4_agrees(text);
        }
        for text in [
            "::",
            "::1",
            "1::",
            "2001:db8::1",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            ":::",
            "1:::2",
            ":1",
            "1:",
            "12345::",
            "::ffff:192.0.2.1",
            "1:2:3:4:5:6:192.0.2.1",
            "1:2:3:4:5:6:7:192.0.2.1",
            "::192.0.2.1:1",
            "::1.2.3",
            "1:2:3:4:5:6:7:8::",
            "::1:2:3:4:5:6:7:8",
            "fe80::1%eth0",
            "ABCD:ef01::",
            "1:2:3:4::5:6:7:8",
            "::0001",
            "::00001",
            "1::1.2.3.4",
            "::01.2.3.4",
            "::fff.2.3.4",
            "1:2:3:4:5:6:7:",
            "1.2.3.4",
            "1.2.3.4::",
        ] {
            v6_agrees(text);
        }
    }

    #[test]
    fn errors_say_what_and_where() {
        let v4 = |text: &str| parse_ipv4(text.as_bytes()).unwrap_err().to_string();
        let v6 = |text: &str| parse_ipv6(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(v4("10.0.300.1"), "not an IP address: a number is above 255 (at byte 5)");
        assert_eq!(v4("10.0.03.1"), "not an IP address: a number has a leading zero (at byte 5)");
        assert_eq!(v4("10.0.1"), "not an IP address: too short (at byte 6)");
        assert_eq!(v4("10.0.1.1x"), "not an IP address: unexpected 'x' (at byte 8)");
        assert_eq!(v4(""), "not an IP address: empty (at byte 0)");
        assert_eq!(v6("1::2::3"), "not an IP address: more than one '::' (at byte 4)");
        assert_eq!(v6("12345::"), "not an IP address: a group has more than 4 digits (at byte 0)");
        assert_eq!(v6("1:2:3:4:5:6:7:8:9"), "not an IP address: more than 8 groups (at byte 16)");
        assert_eq!(v6("fe80::1%eth0"), "not an IP address: unexpected '%' (at byte 7)");
        assert_eq!(v6("::1.2.300.4"), "not an IP address: a number is above 255 (at byte 6)");
    }
}
