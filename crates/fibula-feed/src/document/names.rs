//! The names that columns and fields with prefixes have.

/// Names of fields that hold the prefix.
pub(super) const PREFIX: &[&str] = &[
    "prefix",
    "network",
    "cidr",
    "subnet",
    "route",
    "dst",
    "destination",
    "ip_prefix",
    "ipv6_prefix",
    "ipv4Prefix",
    "ipv6Prefix",
    "ip_network",
    "netblock",
    "ip_range",
    "ipprefix",
    "addressPrefix",
    "destRange",
];

/// Names of fields that hold the first and the last address of a range.
pub(super) const FIRST: &[&str] = &[
    "start",
    "first",
    "start_ip",
    "range_start",
    "ip_from",
    "from",
    "ip_start",
    "start_address",
    "first_ip",
    "ip_range_start",
];
pub(super) const LAST: &[&str] = &[
    "end",
    "last",
    "end_ip",
    "range_end",
    "ip_to",
    "to",
    "ip_end",
    "end_address",
    "last_ip",
    "ip_range_end",
];

/// Names of fields that hold a netmask or the length of a prefix whose address is in another field.
pub(super) const MASK: &[&str] =
    &["netmask", "mask", "genmask", "prefixlen", "prefix_length", "prefix_len", "masklen"];

/// Returns whether two names are the same without regard to case, blanks, hyphens and underscores.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let letters = text.bytes().filter(|byte| !matches!(byte, b' ' | b'_' | b'-'));
        letters.map(|byte| byte.to_ascii_lowercase()).collect::<Vec<u8>>()
    };
    // Most names differ in their first letters.
    let first = |text: &str| text.trim_start().bytes().next().map(|byte| byte.to_ascii_lowercase());
    first(one) == first(other) && plain(one) == plain(other)
}

/// Returns the place of the first of the names.
pub(super) fn find(header: &[String], names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| header.iter().position(|own| is_same(own, name)))
}

/// Returns whether a field of this name says where a route applies.
pub(crate) fn is_place(name: &str) -> bool {
    [PREFIX, FIRST, LAST, MASK].concat().iter().any(|one| is_same(one, name))
}
