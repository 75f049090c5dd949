//! The surroundings that logs give an address: a port, brackets, a zone, the length of a host's prefix.

use fibula::net::Key;

/// Bytes of a zone, `eth0` in `fe80::1%eth0`. Linux has at most 15.
const ZONE_BYTES: usize = 32;

/// Returns the address in a text: `192.0.2.1` in `192.0.2.1:443`, `2001:db8::1` in `[2001:db8::1]:443`. Whether it is one remains to be
/// seen.
///
/// | form | written by |
/// |---|---|
/// | `192.0.2.1:443`, `[2001:db8::1]:443`, `[2001:db8::1]` | most programs |
/// | `2001:db8::1.443` | nfdump |
/// | `fe80::1%eth0`, `[fe80::1%eth0]:443`, `[fe80::1]%eth0:443`, `192.0.2.1%eth0:68` | Linux, ss |
/// | `192.0.2.1/32`, `2001:db8::1/128` | PostgreSQL, lists of prefixes |
pub(super) fn address_in(text: &[u8]) -> Option<&[u8]> {
    if let Some(inside) = text.strip_prefix(b"[") {
        let (inside, after) = split(inside, b']')?;
        let after = zone(after).unwrap_or(after);
        let is_end = after.is_empty() || after.strip_prefix(b":").is_some_and(is_port);
        let address = if is_v6(inside) { inside } else { without_zone(inside)? };
        return (is_end && is_v6(address)).then_some(address);
    }
    if let Some((address, len)) = split(text, b'/') {
        return match len {
            b"32" if u32::parse(address).is_ok() => Some(address),
            b"128" if is_v6(address) => Some(address),
            _ => None,
        };
    }
    if let Some(address) = without_zone(text) {
        return Some(address);
    }
    // More than one colon are those of IPv6.
    if let Some((address, _)) = split(text, b':').filter(|(_, port)| is_port(port)) {
        return match split(address, b'%') {
            Some((inner, _)) if zone(&address[inner.len()..]) == Some(b"") => Some(inner),
            Some(_) => None,
            None => Some(address),
        };
    }
    let (address, port) = split(text, b'.')?;
    (is_v6(address) && is_port(port)).then_some(address)
}

/// Returns the address before a zone, if the text is that.
fn without_zone(text: &[u8]) -> Option<&[u8]> {
    let (address, _) = split(text, b'%')?;
    (zone(&text[address.len()..]) == Some(b"") && is_v6(address)).then_some(address)
}

/// Returns the rest after a zone: nothing, or a colon and more.
fn zone(text: &[u8]) -> Option<&[u8]> {
    let name = text.strip_prefix(b"%")?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let len = name.iter().position(|byte| !plain(byte)).unwrap_or(name.len());
    let rest = &name[len..];
    ((1..=ZONE_BYTES).contains(&len) && matches!(rest, [] | [b':', ..])).then_some(rest)
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let found = memchr::memchr(at, text)?;
    Some((&text[..found], &text[found + 1..]))
}

fn is_v6(text: &[u8]) -> bool {
    memchr::memchr(b':', text).is_some() && u128::parse(text).is_ok()
}

fn is_port(text: &[u8]) -> bool {
    (1..=5).contains(&text.len())
        && text.iter().all(u8::is_ascii_digit)
        && std::str::from_utf8(text).is_ok_and(|digits| digits.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_all_forms() {
        for (text, address) in [
            ("192.0.2.1:443", "192.0.2.1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1.53", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%eth0.7]:443", "fe80::1"),
            ("[fe80::1]%eth0:443", "fe80::1"),
            ("192.0.2.1%lo:53", "192.0.2.1"),
            ("192.0.2.1/32", "192.0.2.1"),
            ("2001:db8::1/128", "2001:db8::1"),
            ("[::ffff:192.0.2.1]:80", "::ffff:192.0.2.1"),
        ] {
            assert_eq!(address_in(text.as_bytes()), Some(address.as_bytes()), "{text}");
        }
    }

    #[test]
    fn other_texts_have_none() {
        for text in [
            "",
            "[",
            "[]",
            "[192.0.2.1]",
            "[2001:db8::1]443",
            "[2001:db8::1]:",
            "[2001:db8::1]:65536",
            "[2001:db8::1]:80x",
            "2001:db8::1.65536",
            "192.0.2.1/24",
            "192.0.2.1/128",
            "2001:db8::1/32",
            "fe80::1%",
            "fe80::1%a,b",
            "fe80::1%a b",
            "192.0.2.1:",
            "192.0.2.1:-1",
            "192.0.2.1%:80",
        ] {
            let found = address_in(text.as_bytes());
            let is_address =
                found.is_some_and(|found| u32::parse(found).is_ok() || u128::parse(found).is_ok());
            assert!(!is_address, "{text}");
        }
    }
}
