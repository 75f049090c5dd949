//! Attributes, next hops and messages made by hand, and what is read from them.

use core::net::IpAddr;

use bytes::Bytes;
use fibula::net::Family;

use super::attributes::Decoded;
use super::*;
use crate::mrt::tests::{attribute, attributes, message, nlri, octets, told, update};

/// The attributes at byte 100, and the faults in them.
fn decode(section: &[u8]) -> (Decoded, Vec<String>) {
    let mut faults = Vec::new();
    let decoded =
        Attributes::decode(&Bytes::copy_from_slice(section), 100, AsWidth::Four, None, &mut faults).unwrap();
    (decoded, faults.iter().map(ToString::to_string).collect())
}

fn clean(section: &[u8]) -> Attributes {
    let (decoded, faults) = decode(section);
    assert!(faults.is_empty(), "{faults:?}");
    decoded.attributes
}

/// Type, AS numbers of four bytes.
fn segment(kind: u8, path: &[u32]) -> Vec<u8> {
    let head = vec![kind, path.len() as u8];
    path.iter().fold(head, |bytes, asn| [&bytes[..], &asn.to_be_bytes()].concat())
}

#[test]
fn every_attribute_is_read_back() {
    let mandatory = attributes(2, 4, "192.0.2.9");
    let least = clean(&mandatory);
    assert_eq!((least.origin(), least.as_path().to_string()), ("IGP", "64500 64501".to_owned()));
    assert_eq!((least.next_hop(), least.path_len()), (Some("192.0.2.9".parse().unwrap()), Some(2)));
    assert_eq!((least.local_preference(), least.multi_exit_discriminator()), (None, None));
    assert_eq!((least.atomic_aggregate(), least.aggregator()), (false, None));
    assert_eq!((least.communities(), least.encoded_bytes()), (String::new(), mandatory.len()));

    let more = [
        mandatory.clone(),
        attribute(0x80, 4, &[0, 0, 1, 2]),
        attribute(0x40, 5, &[0, 1, 0, 7]),
        attribute(0x40, 6, &[]),
        attribute(0xc0, 7, &[&64_502_u32.to_be_bytes()[..], &octets("192.0.2.4")].concat()),
        attribute(0xc0, 8, &[0xfb, 0xf5, 0, 7, 0, 1, 0, 2]),
    ]
    .concat();
    let most = clean(&more);
    assert_eq!(most.multi_exit_discriminator(), Some(258));
    assert_eq!(most.local_preference(), Some(65_543));
    assert!(most.atomic_aggregate());
    assert_eq!(most.aggregator(), Some((64_502, "192.0.2.4".parse().unwrap())));
    assert_eq!((most.communities(), most.encoded_bytes()), ("64501:7 1:2".to_owned(), more.len()));
    assert_eq!(most.missing().count(), 0);

    for (value, name) in [(0, "IGP"), (1, "EGP"), (2, "INCOMPLETE")] {
        let origin = [attribute(0x40, 1, &[value]), mandatory[4..].to_vec()].concat();
        assert_eq!(clean(&origin).origin(), name);
    }
}

#[test]
fn paths_show_their_sets_and_confederations() {
    let path = [
        segment(3, &[65_001, 65_002]),
        segment(2, &[1, 2]),
        segment(1, &[3, 4, 5]),
        segment(4, &[65_003, 65_004]),
    ];
    let rest = attributes(0, 4, "192.0.2.9");
    let section = [&rest[..4], &attribute(0x40, 2, &path.concat()), &rest[7..]].concat();
    let read = clean(&section);
    assert_eq!(read.as_path().to_string(), "(65001 65002) 1 2 {3,4,5} [65003,65004]");
    // A set is one AS; a confederation's own are none.
    assert_eq!(read.path_len(), Some(3));
    assert_eq!(clean(&rest).path_len(), Some(0));
    assert_eq!(clean(&rest).as_path().to_string(), "");
}

#[test]
fn the_origin_is_the_last_as_of_a_path() {
    let rest = attributes(0, 4, "192.0.2.9");
    for (segments, origin) in [
        (vec![], None),
        (vec![segment(2, &[64_500, 4_200_000_000])], Some(4_200_000_000)),
        (vec![segment(2, &[1]), segment(2, &[2, 3])], Some(3)),
        (vec![segment(2, &[1, 2]), segment(1, &[5, 4, 3])], Some(5)),
        // Not of a confederation, and not of the AS before it, which may not have announced the route.
        (vec![segment(2, &[1, 2]), segment(3, &[65_001])], None),
        (vec![segment(2, &[1, 2]), segment(4, &[65_001])], None),
        (vec![segment(3, &[65_001]), segment(2, &[1, 2])], Some(2)),
        // No network may use AS 0 (RFC 7607).
        (vec![segment(2, &[1, 0])], None),
    ] {
        let section = [&rest[..4], &attribute(0x40, 2, &segments.concat()), &rest[7..]].concat();
        assert_eq!(clean(&section).origin_as(), origin, "{segments:?}");
    }
}

#[test]
fn of_repeated_attributes_the_first_counts() {
    let mandatory = attributes(1, 4, "192.0.2.9");
    let preference = |value: u8| attribute(0x40, 5, &[0, 0, 0, value]);
    let thrice = [mandatory.clone(), preference(1), preference(2), preference(3)].concat();
    let (decoded, faults) = decode(&thrice);
    assert_eq!(decoded.attributes.local_preference(), Some(1));
    assert_eq!(
        faults,
        [format!("byte {}: attribute 5 is repeated; the first one counts", 107 + mandatory.len())]
    );
    // An attribute with a length of two bytes is the same.
    let long = [mandatory.clone(), vec![0x50, 5, 0, 4, 0, 0, 0, 9]].concat();
    assert_eq!(clean(&long).local_preference(), Some(9));
    let reach = |last: u8| attribute(0x80, 14, &[0, 1, 1, 4, 192, 0, 2, last, 0, 8, 10]);
    let (decoded, faults) = decode(&[mandatory, reach(1), reach(2), preference(4)].concat());
    assert_eq!(decoded.attributes.next_hop(), Some("192.0.2.1".parse().unwrap()));
    assert_eq!((decoded.attributes.local_preference(), faults.len()), (Some(4), 1));
}

#[test]
fn missing_attributes_are_named() {
    let mandatory = attributes(1, 4, "192.0.2.9");
    let without = |section: &[u8]| -> Vec<String> {
        clean(section).missing().map(|kind| kind.at(0).reason().to_string()).collect()
    };
    assert_eq!(without(&mandatory[4..]), ["the mandatory attribute ORIGIN is missing"]);
    assert_eq!(without(&mandatory[..4]), ["the mandatory attribute AS_PATH is missing"]);
    assert_eq!(without(&[]).len(), 2);
}

#[test]
fn next_hops_have_six_lengths() {
    let (four, six, local) = (octets("192.0.2.9"), octets("2001:db8::9"), octets("fe80::9"));
    let (none, distinguisher) = (vec![0; 16], vec![0, 0, 0xfd, 0xe8, 0, 0, 0, 7]);
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    for (parts, expected) in [
        (vec![&four], "192.0.2.9"),
        (vec![&distinguisher, &four], "192.0.2.9"),
        (vec![&six], "2001:db8::9"),
        (vec![&distinguisher, &six], "2001:db8::9"),
        (vec![&six, &local], "2001:db8::9"),
        (vec![&none, &local], "fe80::9"),
        (vec![&distinguisher, &six, &distinguisher, &local], "2001:db8::9"),
        (vec![&distinguisher, &none, &distinguisher, &local], "fe80::9"),
    ] {
        let bytes: Vec<u8> = parts.into_iter().flatten().copied().collect();
        assert_eq!(next_hop(&bytes), Some(Some(address(expected))), "{} bytes", bytes.len());
    }
    assert_eq!(next_hop(&[]), Some(None));
    for len in 1..=255 {
        let legal = [4, 12, 16, 24, 32, 48].contains(&len);
        assert_eq!(next_hop(&vec![1; len]).is_some(), legal, "{len}");
    }
}

#[test]
fn multiprotocol_attributes_say_where_their_prefixes_are() {
    let mandatory = attributes(1, 4, "192.0.2.9");
    let start = 100 + mandatory.len();
    let with = |kind: u8, value: &[u8]| decode(&[mandatory.clone(), attribute(0x80, kind, value)].concat()).0;
    // Flags, type, length; family, next hop and its length, the reserved byte.
    let reach = with(14, &[0, 1, 1, 4, 192, 0, 2, 8, 0, 8, 10]).reach.unwrap();
    assert_eq!((reach.family, reach.start, reach.end), (Ok(Family::Ipv4), start + 12, start + 14));
    let unreach = with(15, &[0, 2, 1, 8, 32]).unreach.unwrap();
    assert_eq!((unreach.family, unreach.start, unreach.end), (Ok(Family::Ipv6), start + 6, start + 8));
    // A next hop of another family is not looked at.
    let other = with(14, &[0, 1, 128, 3, 1, 2, 3, 0, 8, 10]);
    assert_eq!(other.reach.unwrap().family.unwrap_err().name(), "IPv4 VPN");
    assert_eq!(other.attributes.next_hop(), Some("192.0.2.9".parse().unwrap()));
    // The reserved byte may be absent where there is no prefix.
    let reach = with(14, &[0, 1, 1, 4, 192, 0, 2, 8]).reach.unwrap();
    assert_eq!((reach.start, reach.end), (start + 11, start + 11));
}

#[test]
fn prefixes_are_as_long_as_their_family() {
    let peer = "192.0.2.1";
    let path = attributes(1, 4, "192.0.2.9");
    let announced = |prefixes: &[u8]| told(&message(peer, 4, &update(&[], &path, prefixes)));
    assert_eq!(announced(&nlri("10.0.0.1/32")), ["192.0.2.1 + 10.0.0.1/32 via 192.0.2.9 (1)"]);
    let fault = "prefix length 33 is above the 32 bits of the family";
    assert_eq!(announced(&[33, 10, 0, 0, 0, 0]), [format!("byte 75: {fault}")]);
    let withdrawn = |prefix: &[u8]| {
        let unreach = attribute(0x80, 15, &[&[0, 2, 1][..], prefix].concat());
        told(&message(peer, 4, &update(&[], &unreach, &[])))
    };
    assert_eq!(withdrawn(&nlri("2001:db8::1/128")), ["192.0.2.1 - 2001:db8::1/128"]);
    let long = [&[129][..], &[0; 17]].concat();
    assert_eq!(withdrawn(&long), ["byte 61: prefix length 129 is above the 128 bits of the family"]);
}

#[test]
fn path_identifiers_are_believed_only_where_nothing_is_wrong_with_them() {
    let path = attributes(1, 4, "192.0.2.9");
    let told_of = |subtype: u16, prefixes: &[u8]| {
        told(&message("192.0.2.1", subtype, &update(&[], &path, prefixes))).pop().unwrap()
    };
    let with_id = [&[0, 0, 0, 1][..], &nlri("172.16.0.0/12")].concat();
    assert!(told_of(4, &with_id).ends_with("read with them"));
    // Bits after the length make the other reading no better.
    let bits = [0, 0, 0, 1, 12, 172, 0xff];
    assert!(told_of(4, &bits).ends_with("prefix length 172 is above the 32 bits of the family"));
    // Declared, but absent.
    assert!(told_of(9, &nlri("172.16.0.0/12")).ends_with("read without them"));
}

#[test]
fn messages_end_where_their_length_says() {
    let whole = update(&nlri("10.0.0.0/8"), &[], &[]);
    let longer = [whole.clone(), vec![1, 2, 3]].concat();
    let route = "192.0.2.1 - 10.0.0.0/8";
    assert_eq!(
        told(&message("192.0.2.1", 4, &longer)),
        [&format!("byte {}: 3 bytes after the end", 32 + whole.len())[..], route]
    );
    assert_eq!(told(&message("192.0.2.1", 4, &whole)), [route]);
    for len in [0, 18, whole.len() as u8 + 1] {
        let mut wrong = whole.clone();
        wrong[17] = len;
        let fault = format!("byte 48: message length {len} does not fit: {} bytes are present", whole.len());
        assert_eq!(told(&message("192.0.2.1", 4, &wrong)), [fault]);
    }
    let mut header = [0xff; 19];
    (header[16], header[17], header[18]) = (0, 19, 2);
    assert!(told(&message("192.0.2.1", 4, &header))[0].contains("length of the withdrawn routes"));
}

#[test]
fn missing_attributes_count_where_something_is_announced() {
    let next_hop = attribute(0x40, 3, &octets("192.0.2.9"));
    let reach = |prefixes: &[u8]| {
        attribute(0x80, 14, &[&[0, 1, 1, 4][..], &octets("192.0.2.9"), &[0], prefixes].concat())
    };
    let faults = |section: &[u8], prefixes: &[u8]| {
        let lines = told(&message("192.0.2.1", 4, &update(&[], section, prefixes)));
        lines.iter().filter(|line| line.contains("mandatory")).count()
    };
    let prefix = nlri("10.0.0.0/8");
    assert_eq!(faults(&next_hop, &prefix), 2);
    assert_eq!(faults(&reach(&prefix), &[]), 2);
    assert_eq!(faults(&[next_hop.clone(), reach(&prefix)].concat(), &prefix), 2);
    // The end of the first table is an update without prefixes (RFC 4724).
    assert_eq!((faults(&reach(&[]), &[]), faults(&next_hop, &[]), faults(&[], &[])), (0, 0, 0));
}
