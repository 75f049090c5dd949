//! Addresses and prefixes: ours against the standard library's parsers and `ipnet`'s masking.
//!
//! `ipnet`'s own parser is not an oracle: it accepts `1.2.3.043/2`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula::net::{HostBits, IpPrefix, Key, Prefix, parse_address};

pub(crate) fn compare(bytes: &[u8]) {
    // Both need text; other bytes must only not panic.
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(parse_address(bytes).is_err() && IpPrefix::parse(bytes, HostBits::Mask).is_err());
        return;
    };
    assert_eq!(parse_address(bytes).ok(), text.parse::<IpAddr>().ok(), "{text:?}");
    assert_eq!(u32::parse(bytes).ok(), text.parse::<Ipv4Addr>().ok().map(u32::from), "{text:?}");
    assert_eq!(u128::parse(bytes).ok(), text.parse::<Ipv6Addr>().ok().map(u128::from), "{text:?}");
    for error in [u32::parse(bytes).err(), u128::parse(bytes).err()].into_iter().flatten() {
        assert!(error.offset() <= bytes.len(), "{error}");
    }

    let masked = IpPrefix::parse(bytes, HostBits::Mask);
    assert_eq!(masked.ok(), reference(text), "{text:?}");
    // Printing and parsing again gives the same, and refusing host bits refuses nothing else.
    if let Ok(prefix) = masked {
        assert_eq!(prefix.to_string().parse(), Ok(prefix));
        match IpPrefix::parse(bytes, HostBits::Refuse) {
            Ok(strict) => assert_eq!(strict, prefix),
            Err(error) => assert!(error.is_host_bits(), "{error}"),
        }
    }
    assert_eq!(Prefix::<u32>::parse(bytes, HostBits::Mask).is_ok(), matches!(masked, Ok(IpPrefix::V4(_))));
}

/// The prefix, as the standard library and `ipnet` read it.
pub(crate) fn reference(text: &str) -> Option<IpPrefix> {
    let Some((address, len)) = text.split_once('/') else {
        return text.parse::<IpAddr>().ok().map(IpPrefix::from);
    };
    if len.is_empty() || !len.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let len = len.trim_start_matches('0');
    let len = if len.is_empty() { 0 } else { len.parse().ok()? };
    ipnet::IpNet::new(address.parse().ok()?, len).ok().map(IpPrefix::from)
}
