//! Records made by hand, and what is read from them.

use core::net::IpAddr;

use fibula::net::{IpPrefix, Prefix};

use super::*;
use crate::event::{Action, Time};

/// Seconds of all records.
const TIME: u32 = 1_700_000_000;

pub(crate) fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut record = TIME.to_be_bytes().to_vec();
    record.extend(kind.to_be_bytes());
    record.extend(subtype.to_be_bytes());
    record.extend((body.len() as u32).to_be_bytes());
    record.extend(body);
    record
}

/// A prefix as BGP writes it: `"10.0.0.0/8"`.
pub(crate) fn nlri(prefix: &str) -> Vec<u8> {
    let (bytes, len) = match prefix.parse().unwrap() {
        IpPrefix::V4(prefix) => (prefix.addr().to_be_bytes().to_vec(), prefix.len()),
        IpPrefix::V6(prefix) => (prefix.addr().to_be_bytes().to_vec(), prefix.len()),
    };
    let mut nlri = vec![len];
    nlri.extend(&bytes[..usize::from(len.div_ceil(8))]);
    nlri
}

pub(crate) fn octets(address: &str) -> Vec<u8> {
    match address.parse().unwrap() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(crate) fn attribute(flags: u8, kind: u8, value: &[u8]) -> Vec<u8> {
    let mut attribute = vec![flags, kind, value.len() as u8];
    attribute.extend(value);
    attribute
}

/// ORIGIN, AS_PATH of this many ASes of `width` bytes, NEXT_HOP where it is IPv4 and MP_REACH_NLRI of a table dump where
/// it is IPv6.
pub(crate) fn attributes(path_len: u8, width: usize, next_hop: &str) -> Vec<u8> {
    let mut attributes = attribute(0x40, 1, &[0]);
    let mut path = vec![2, path_len];
    (0..path_len).for_each(|hop| path.extend(&(64_500 + u32::from(hop)).to_be_bytes()[4 - width..]));
    attributes.extend(attribute(0x40, 2, if path_len == 0 { &[] } else { &path }));
    let next_hop = octets(next_hop);
    if next_hop.len() == 4 {
        attributes.extend(attribute(0x40, 3, &next_hop));
    } else {
        attributes.extend(attribute(0x80, 14, &[&[16][..], &next_hop].concat()));
    }
    attributes
}

/// `TABLE_DUMP_V2`: the list of peers, AS 64501 and following.
pub(crate) fn peer_table(addresses: &[&str]) -> Vec<u8> {
    let mut body = vec![192, 0, 2, 255, 0, 4];
    body.extend(b"test");
    body.extend((addresses.len() as u16).to_be_bytes());
    for (index, address) in addresses.iter().enumerate() {
        let address = octets(address);
        body.push(if address.len() == 16 { 3 } else { 2 });
        body.extend([192, 0, 2, 1]);
        body.extend(address);
        body.extend((64_501 + index as u32).to_be_bytes());
    }
    record(13, 1, &body)
}

/// `TABLE_DUMP_V2`: peer, path identifier and attributes of each route of a prefix.
pub(crate) fn rib(prefix: &str, routes: &[(u16, Option<u32>, Vec<u8>)]) -> Vec<u8> {
    let v6 = prefix.contains(':');
    let add_path = routes.iter().any(|route| route.1.is_some());
    let mut body = vec![0, 0, 0, 1];
    body.extend(nlri(prefix));
    body.extend((routes.len() as u16).to_be_bytes());
    for (peer, id, attributes) in routes {
        body.extend(peer.to_be_bytes());
        body.extend(TIME.to_be_bytes());
        body.extend(id.map(u32::to_be_bytes).iter().flatten());
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(attributes);
    }
    record(13, if v6 { 4 } else { 2 } + if add_path { 6 } else { 0 }, &body)
}

/// `TABLE_DUMP`.
pub(crate) fn table_dump(prefix: &str, peer: &str, asn: u16, attributes: &[u8]) -> Vec<u8> {
    let (address, len) = prefix.split_once('/').unwrap();
    let mut body = vec![0, 0, 0, 1];
    body.extend(octets(address));
    body.extend([len.parse().unwrap(), 1]);
    body.extend(TIME.to_be_bytes());
    body.extend(octets(peer));
    body.extend(asn.to_be_bytes());
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    record(12, if address.contains(':') { 2 } else { 1 }, &body)
}

fn session(peer: &str, asn: u32, four: bool) -> Vec<u8> {
    let mut body = Vec::new();
    for asn in [asn, 65_000] {
        body.extend(&asn.to_be_bytes()[if four { 0 } else { 2 }..]);
    }
    let peer = octets(peer);
    body.extend([0, 0, 0, if peer.len() == 16 { 2 } else { 1 }]);
    body.extend(&peer);
    body.extend(vec![0; peer.len()]);
    body
}

/// An UPDATE.
pub(crate) fn update(withdrawn: &[u8], attributes: &[u8], nlri: &[u8]) -> Vec<u8> {
    let mut message = vec![0xff; 16];
    let len = 19 + 4 + withdrawn.len() + attributes.len() + nlri.len();
    message.extend((len as u16).to_be_bytes());
    message.push(2);
    message.extend((withdrawn.len() as u16).to_be_bytes());
    message.extend(withdrawn);
    message.extend((attributes.len() as u16).to_be_bytes());
    message.extend(attributes);
    message.extend(nlri);
    message
}

/// `BGP4MP_MESSAGE_AS4` of a peer, or another subtype with AS numbers of four bytes.
pub(crate) fn message(peer: &str, subtype: u16, message: &[u8]) -> Vec<u8> {
    record(16, subtype, &[session(peer, 64_501, true), message.to_vec()].concat())
}

/// `BGP4MP_STATE_CHANGE_AS4`.
pub(crate) fn state(peer: &str, before: u8, after: u8) -> Vec<u8> {
    record(16, 5, &[session(peer, 64_501, true), vec![0, before, 0, after]].concat())
}

/// `BGP_UPDATE` of RFC 6396 appendix B.2: the body of the message alone.
pub(crate) fn legacy_update(peer: &str, asn: u16, message: &[u8]) -> Vec<u8> {
    let ends = [&asn.to_be_bytes()[..], &octets(peer), &[0x33, 0x33], &octets("192.0.2.255")].concat();
    record(5, 1, &[&ends[..], &message[19..]].concat())
}

/// `BGP_STATE_CHANGE` of RFC 6396 appendix B.2, which has the peer's end only.
pub(crate) fn legacy_state(peer: &str, asn: u16, before: u8, after: u8) -> Vec<u8> {
    record(5, 3, &[&asn.to_be_bytes()[..], &octets(peer), &[0, before, 0, after]].concat())
}

/// What a decoder reports, a line each.
#[derive(Default)]
struct Told(Vec<String>);

impl Sink for Told {
    fn wants(&mut self, _: &Peer, _: Option<u16>, _: &Path, _: Mention) -> bool {
        true
    }

    fn event(&mut self, event: Event) {
        let path = |path: Path| match path.id {
            Some(id) => format!("{} #{id}", path.prefix),
            None => path.prefix.to_string(),
        };
        let peer = event.peer.unwrap();
        self.0.push(match event.action {
            Action::Announce(route) => {
                let len = route.path_len.map_or("?".to_owned(), |len| len.to_string());
                format!("{} + {} via {} ({len})", peer.address, path(route.path), route.next_hop)
            }
            Action::Withdraw(gone) => format!("{} - {}", peer.address, path(gone)),
            Action::SessionEnd => format!("{} ends", peer.address),
            Action::Nothing => unreachable!(),
        });
    }

    fn fault(&mut self, fault: Fault) {
        self.0.push(fault.to_string());
    }

    fn skipped(&mut self, kind: Skipped, offset: usize) {
        self.0.push(format!("byte {offset}: {kind}"));
    }
}

/// What the records say.
pub(crate) fn told(bytes: &[u8]) -> Vec<String> {
    let mut told = Told::default();
    let mut peers = None;
    let mut rest = bytes;
    while let Frame::Record(header) = Frame::next(rest, true) {
        let record = Record { header, body: Bytes::copy_from_slice(&rest[12..header.record_bytes()]) };
        if let Some(table) = PeerIndexTable::read(&record) {
            peers = table.ok();
        }
        if let Err(fault) = decode(&record, peers.as_ref(), &mut told) {
            told.fault(fault);
        }
        rest = &rest[header.record_bytes()..];
    }
    assert!(rest.is_empty());
    told.0
}

#[test]
fn table_dumps_of_both_versions() {
    let path = |len, width, next_hop| attributes(len, width, next_hop);
    let bytes = [
        table_dump("10.0.0.0/8", "192.0.2.1", 64_501, &path(3, 2, "192.0.2.9")),
        // A whole MP_REACH_NLRI, as version 1 has it.
        table_dump(
            "2001:db8::/32",
            "2001:db8::1",
            64_501,
            &[
                path(1, 2, "192.0.2.9"),
                attribute(0x80, 14, &[&[0, 2, 1, 16][..], &octets("fe80::9"), &[0]].concat()),
            ]
            .concat(),
        ),
        peer_table(&["192.0.2.1", "2001:db8::2"]),
        rib("10.0.0.0/8", &[(0, None, path(2, 4, "192.0.2.9")), (1, None, path(0, 4, "192.0.2.8"))]),
        rib("2001:db8::/32", &[(1, None, path(4, 4, "2001:db8::9"))]),
        rib("0.0.0.0/0", &[(1, Some(7), path(1, 4, "192.0.2.7")), (1, Some(8), path(2, 4, "192.0.2.6"))]),
    ];
    assert_eq!(
        told(&bytes.concat()),
        [
            "192.0.2.1 + 10.0.0.0/8 via 192.0.2.9 (3)",
            "2001:db8::1 + 2001:db8::/32 via fe80::9 (1)",
            "192.0.2.1 + 10.0.0.0/8 via 192.0.2.9 (2)",
            "2001:db8::2 + 10.0.0.0/8 via 192.0.2.8 (0)",
            "2001:db8::2 + 2001:db8::/32 via 2001:db8::9 (4)",
            "2001:db8::2 + 0.0.0.0/0 #7 via 192.0.2.7 (1)",
            "2001:db8::2 + 0.0.0.0/0 #8 via 192.0.2.6 (2)",
        ]
    );
}

#[test]
fn faults_of_table_dumps() {
    let good = attributes(1, 4, "192.0.2.9");
    let rib_alone = rib("10.0.0.0/8", &[(0, None, good.clone())]);
    assert_eq!(told(&rib_alone), ["byte 16: no list of peers precedes this record"]);
    let peers = peer_table(&["192.0.2.1"]);
    let without_next_hop = attribute(0x40, 1, &[0]);
    let short = [0x40, 2, 200, 1].to_vec();
    let bytes = [
        peers.clone(),
        rib("10.0.0.0/8", &[(3, None, good.clone()), (0, None, without_next_hop), (0, None, short)]),
    ];
    assert_eq!(
        told(&bytes.concat()),
        [
            "byte 20: peer 3 is not in the list of 1 peers (numbered from 0)",
            "byte 56: the mandatory attribute AS_PATH is missing",
            "byte 56: route without a next hop; the peer's address is used instead",
            "192.0.2.1 + 10.0.0.0/8 via 192.0.2.1 (?)",
            "byte 71: attribute: 200 bytes needed, 1 left",
        ]
    );
    // Multicast, and a subtype that does not exist.
    let mut other = rib("10.0.0.0/8", &[(0, None, good)]);
    other[7] = 3;
    assert_eq!(told(&[peers.clone(), other.clone()].concat()), ["byte 6: IPv4 multicast"]);
    let mut body = rib("10.0.0.0/8", &[]);
    body[16] = 33;
    assert_eq!(
        told(&[peers, body].concat()),
        ["byte 16: prefix length 33 is above the 32 bits of the family"]
    );
}

#[test]
fn updates_and_sessions() {
    let announced = attributes(2, 4, "192.0.2.9");
    let reach = |value: &[&[u8]]| attribute(0x80, 14, &value.concat());
    let v6 = [
        attributes(3, 4, "192.0.2.9"),
        reach(&[&[0, 2, 1, 32], &octets("2001:db8::9"), &octets("fe80::9"), &[0], &nlri("2001:db8::/48")]),
        attribute(0x80, 15, &[&[0, 2, 1][..], &nlri("2001:db8:1::/48")].concat()),
    ]
    .concat();
    let path = |id: u8, prefix| [vec![0, 0, 0, id], nlri(prefix)].concat();
    let et = {
        let message = update(&nlri("10.1.0.0/16"), &[], &[]);
        record(17, 4, &[vec![0, 0, 0, 7], session("192.0.2.1", 64_501, true), message].concat())
    };
    let two = {
        let message = update(&[], &attributes(2, 2, "192.0.2.9"), &nlri("10.2.0.0/16"));
        record(16, 1, &[session("192.0.2.1", 64_501, false), message].concat())
    };
    let bytes = [
        state("192.0.2.1", 3, 6),
        message("192.0.2.1", 4, &update(&nlri("10.0.0.0/8"), &announced, &nlri("10.0.0.0/9"))),
        message("2001:db8::1", 4, &update(&[], &v6, &[])),
        message("192.0.2.1", 9, &update(&path(1, "10.0.0.0/8"), &announced, &path(2, "0.0.0.0/0"))),
        et,
        two,
        // Sent by the recorder itself.
        message("192.0.2.1", 7, &update(&nlri("10.0.0.0/8"), &[], &[])),
        // KEEPALIVE.
        message("192.0.2.1", 4, &[&[0xff; 16][..], &[0, 19, 4]].concat()),
        state("192.0.2.1", 6, 1),
    ];
    assert_eq!(
        told(&bytes.concat()),
        [
            "byte 32: session state changes",
            "192.0.2.1 - 10.0.0.0/8",
            "192.0.2.1 + 10.0.0.0/9 via 192.0.2.9 (2)",
            "2001:db8::1 - 2001:db8:1::/48",
            "2001:db8::1 + 2001:db8::/48 via 2001:db8::9 (3)",
            "192.0.2.1 - 10.0.0.0/8 #1",
            "192.0.2.1 + 0.0.0.0/0 #2 via 192.0.2.9 (2)",
            "192.0.2.1 - 10.1.0.0/16",
            "192.0.2.1 + 10.2.0.0/16 via 192.0.2.9 (2)",
            "byte 6: BGP4MP local messages",
            "byte 50: BGP KEEPALIVE",
            "192.0.2.1 ends",
        ]
    );
}

#[test]
fn peers_have_addresses_and_as_numbers_of_either_width() {
    // The collector, an empty view name, four peers: bit 0 of the type is IPv6, bit 1 an AS of four bytes.
    let mut body = vec![192, 0, 2, 255, 0, 0, 0, 4];
    for (kind, address, asn) in [
        (0, "192.0.2.1", &[0xfb, 0xf5][..]),
        (1, "2001:db8::2", &[0xfb, 0xf6]),
        (2, "192.0.2.3", &[0, 1, 0xfb, 0xf7]),
        (3, "2001:db8::4", &[0, 2, 0xfb, 0xf8]),
    ] {
        body.push(kind);
        body.extend([192, 0, 2, 1]);
        body.extend(octets(address));
        body.extend(asn);
    }
    let read = |body: &[u8]| {
        let header = Header::read(&record(13, 1, body)).unwrap();
        PeerIndexTable::read(&Record { header, body: Bytes::copy_from_slice(body) }).unwrap()
    };
    let peers: Vec<_> = read(&body).unwrap().peers().iter().map(ToString::to_string).collect();
    let expected = [
        "192.0.2.1 (AS 64501)",
        "2001:db8::2 (AS 64502)",
        "192.0.2.3 (AS 130039)",
        "2001:db8::4 (AS 195576)",
    ];
    assert_eq!(peers, expected);
    let cut = read(&body[..body.len() - 1]).unwrap_err();
    assert_eq!(cut.to_string(), "byte 88: AS number: 4 bytes needed, 3 left");
}

#[test]
fn each_family_of_an_update_has_its_own_next_hop() {
    let reach = |family: u8, next_hop: &str, prefix: &str| {
        let next_hop = octets(next_hop);
        let len = next_hop.len() as u8;
        attribute(0x80, 14, &[&[0, family, 1, len][..], &next_hop, &[0], &nlri(prefix)].concat())
    };
    let both = |reach: Vec<u8>| {
        let attributes = [attributes(1, 4, "192.0.2.9"), reach].concat();
        told(&message("192.0.2.1", 4, &update(&[], &attributes, &nlri("10.0.0.0/8"))))
    };
    assert_eq!(
        both(reach(2, "2001:db8::9", "2001:db8::/32")),
        ["192.0.2.1 + 10.0.0.0/8 via 192.0.2.9 (1)", "192.0.2.1 + 2001:db8::/32 via 2001:db8::9 (1)",]
    );
    // IPv4 in MP_REACH_NLRI has the next hop that is there, of either family (RFC 8950).
    assert_eq!(
        both(reach(1, "2001:db8::9", "10.1.0.0/16")),
        ["192.0.2.1 + 10.0.0.0/8 via 192.0.2.9 (1)", "192.0.2.1 + 10.1.0.0/16 via 2001:db8::9 (1)"]
    );
    // Without NEXT_HOP, that of MP_REACH_NLRI does not serve the prefixes after the attributes.
    let alone = [attributes(1, 4, "192.0.2.9")[..13].to_vec(), reach(2, "2001:db8::9", "2001:db8::/32")];
    let lines = told(&message("192.0.2.1", 4, &update(&[], &alone.concat(), &nlri("10.0.0.0/8"))));
    assert_eq!(lines[..2], ["192.0.2.1 - 10.0.0.0/8", "192.0.2.1 + 2001:db8::/32 via 2001:db8::9 (1)"]);
    assert!(lines[2].ends_with("route without a next hop"), "{lines:?}");
}

#[test]
fn only_leaving_the_established_state_ends_a_session() {
    for before in 0..=7u8 {
        for after in 0..=7u8 {
            let two =
                record(16, 0, &[session("192.0.2.1", 64_501, false), vec![0, before, 0, after]].concat());
            let ends = before == 6 && after != 6;
            for bytes in [two, state("192.0.2.1", before, after), legacy_state("192.0.2.1", 7, before, after)]
            {
                let lines = told(&bytes);
                assert_eq!(lines.len(), 1);
                assert_eq!(lines[0] == "192.0.2.1 ends", ends, "{before} {after} {lines:?}");
                assert_eq!(lines[0].ends_with("session state changes"), !ends, "{before} {after} {lines:?}");
            }
        }
    }
    // The upper bytes of the states count.
    let high = record(16, 5, &[session("192.0.2.1", 64_501, true), vec![1, 6, 0, 1]].concat());
    assert_eq!(told(&high), ["byte 32: session state changes"]);
}

#[test]
fn headers_are_believed_by_type_subtype_and_length() {
    let header = |kind: u16, subtype: u16, len: usize| Header {
        time: Time { seconds: TIME, micros: None },
        kind,
        subtype,
        len: u32::try_from(len).unwrap(),
    };
    for kind in 0..=100 {
        // How many subtypes there are, of types that exist.
        let subtypes = match kind {
            5 => 8,
            12 => 3,
            13 => 13,
            16 | 17 => 12,
            0..=11 | 32 | 33 | 48 | 49 => 64,
            _ => 0,
        };
        for subtype in [0, 1, 2, 3, 7, 8, 11, 12, 13, 63, 64, 255, 256, u16::MAX] {
            let plausible = header(kind, subtype, 100).is_plausible();
            assert_eq!(plausible, subtype < subtypes, "{kind} {subtype}");
        }
    }
    assert!(!header(16 << 8, 4, 100).is_plausible());
    for (len, plausible) in [(0, true), (MAX_RECORD_BYTES - 12, true), (MAX_RECORD_BYTES - 11, false)] {
        assert_eq!(header(13, 2, len).is_plausible(), plausible, "{len}");
        assert_eq!(header(13, 2, len).record_bytes(), len + 12);
    }
    assert!(!header(13, 2, u32::MAX as usize).is_plausible());
}

#[test]
fn faults_of_updates() {
    let announced = attributes(2, 4, "192.0.2.9");
    let peer = "192.0.2.1";
    // Bits after the length are cleared and reported.
    let bits = message(peer, 4, &update(&[], &announced, &[13, 11, 13]));
    assert_eq!(
        told(&bits),
        [
            "byte 79: bits set after the prefix length; read as 11.8.0.0/13",
            "192.0.2.1 + 11.8.0.0/13 via 192.0.2.9 (2)",
        ]
    );
    // Path identifiers of a session that does not declare them; a default route is none.
    let ids = [&[0, 0, 0, 1][..], &nlri("172.16.0.0/24"), &[0, 0, 0, 2], &nlri("172.16.1.0/24")].concat();
    let told_ids = told(&message(peer, 4, &update(&[], &announced, &ids)));
    assert_eq!(told_ids[0], "192.0.2.1 + 172.16.0.0/24 #1 via 192.0.2.9 (2)");
    assert_eq!(
        told_ids[2],
        "byte 79: path identifiers are present but not declared; the prefixes are read with them"
    );
    let default =
        message(peer, 4, &update(&[], &announced, &[nlri("0.0.0.0/0"), nlri("10.0.0.0/8")].concat()));
    assert_eq!(told(&default).len(), 2);
    // Without attributes that can be read, announced is as good as withdrawn.
    let broken = message(peer, 4, &update(&[], &[0x40, 1], &nlri("10.0.0.0/8")));
    assert_eq!(
        told(&broken),
        ["192.0.2.1 - 10.0.0.0/8", "byte 57: attribute length: 1 bytes needed, 0 left"]
    );
    let no_next_hop = message(peer, 4, &update(&[], &announced[..announced.len() - 7], &nlri("10.0.0.0/8")));
    assert_eq!(told(&no_next_hop), ["192.0.2.1 - 10.0.0.0/8", "byte 72: route without a next hop"]);
    let mut long = update(&[], &announced, &nlri("10.0.0.0/8"));
    long[17] += 1;
    assert_eq!(
        told(&message(peer, 4, &long)),
        ["byte 48: message length 50 does not fit: 49 bytes are present"]
    );
    let mut kind = update(&[], &[], &[]);
    (kind[0], kind[18]) = (0, 9);
    let faults = told(&message(peer, 4, &kind));
    assert_eq!(
        faults,
        ["byte 32: the message does not begin with the BGP marker", "byte 50: unknown BGP message type 9"]
    );
    // Flags and lengths that the library finds wrong.
    let odd = [attribute(0xc0, 1, &[0]), announced[4..].to_vec()].concat();
    let odd = told(&message(peer, 4, &update(&[], &odd, &nlri("10.0.0.0/8"))));
    assert!(odd[0].starts_with("byte 55: attributes: Attribute flags error"), "{odd:?}");
}

#[test]
fn records_are_found_again_behind_damage() {
    let one = message("192.0.2.1", 4, &update(&nlri("10.0.0.0/8"), &[], &[]));
    let frames = |bytes: &[u8]| {
        let mut frames = Vec::new();
        let mut rest = bytes;
        loop {
            let skip = match Frame::next(rest, true) {
                Frame::Record(header) => {
                    frames.push(format!("record {}", header.record_bytes()));
                    header.record_bytes()
                }
                Frame::Lost(count) => {
                    frames.push(format!("lost {count}"));
                    count
                }
                Frame::Cut => {
                    frames.push(format!("cut {}", rest.len()));
                    return frames;
                }
                Frame::More => unreachable!(),
            };
            rest = &rest[skip..];
        }
    };
    let len = one.len();
    let (whole, lost) = (format!("record {len}"), format!("lost {len}"));
    let five = one.repeat(5);
    assert_eq!(frames(&five), [&whole[..], &whole, &whole, &whole, &whole, "cut 0"]);
    // The kind of the second; its length, too long and too short.
    let damaged = |at: usize, byte: u8| {
        let mut bytes = five.clone();
        bytes[len + at] = byte;
        frames(&bytes)
    };
    for (at, byte) in [(4, 99), (8, 1), (10, 1)] {
        assert_eq!(damaged(at, byte), [&whole[..], &lost, &whole, &whole, &whole, "cut 0"], "{at} {byte}");
    }
    let short = damaged(11, len as u8 - 12 - 5);
    assert_eq!(
        short,
        [&whole[..], &format!("record {}", len - 5), "lost 5", &whole, &whole, &whole, "cut 0"]
    );
    // A cut is reported at its place, and bytes that are not a record give no whole record.
    assert_eq!(frames(&five[..3 * len + 7]), [&whole[..], &whole, &whole, "cut 7"]);
    assert_eq!(frames(&[0xee; 100]), ["lost 100", "cut 0"]);
    assert_eq!(frames(&[0xee; 11]), ["cut 11"]);
    assert!(is_mrt(&five) && is_mrt(&one[..12]) && is_mrt(&five[3..]));
    for text in [&b"192.0.2.0/24 198.51.100.1\n"[..], b"", b"TABLE_DUMP2|1400824800|B|", &[0; 2], &[0xee; 80]]
    {
        assert!(!is_mrt(text));
    }
}

#[test]
fn lines_of_bgpdump_say_what_the_records_say() {
    let communities = attribute(0xc0, 8, &[0xfb, 0xf5, 0, 7, 0xff, 0xff, 0xff, 1]);
    let aggregator = attribute(0xc0, 7, &[&[0, 0, 0xfb, 0xf5][..], &octets("192.0.2.4")].concat());
    let medium = attribute(0x80, 4, &[0, 0, 0, 5]);
    let full =
        [attributes(2, 4, "192.0.2.9"), medium, attribute(0x40, 6, &[]), aggregator, communities].concat();
    let bytes = [
        peer_table(&["192.0.2.1"]),
        rib("10.0.0.0/8", &[(0, None, full.clone())]),
        rib("10.0.0.0/9", &[(0, Some(3), full)]),
        message("192.0.2.1", 4, &update(&nlri("10.0.0.0/10"), &[], &[])),
    ]
    .concat();
    let mut lines = Vec::new();
    let mut each = |event| crate::text::write_bgpdump(&event, &mut lines);
    crate::load::events_reader("x", &bytes[..], &crate::LoadOptions::default(), &mut each, &mut |_| ())
        .unwrap();
    let rest = "64500 64501|IGP|192.0.2.9|0|5|64501:7 no-export|AG|64501 192.0.2.4|";
    let text = format!(
        "TABLE_DUMP2|{TIME}|B|192.0.2.1|64501|10.0.0.0/8|{rest}\n\
         TABLE_DUMP2_AP|{TIME}|B|192.0.2.1|64501|10.0.0.0/9|3|{rest}\n\
         BGP4MP|{TIME}|W|192.0.2.1|64501|10.0.0.0/10\n"
    );
    assert_eq!(String::from_utf8(lines).unwrap(), text);
    // Read back, they make the table of the records.
    let load = |bytes: &[u8]| {
        crate::load::load_reader("x", bytes, &crate::LoadOptions::default(), &mut |_| ()).unwrap()
    };
    let (records, lines) = (load(&bytes), load(text.as_bytes()));
    assert!(records.ribs.v4.iter().eq(lines.ribs.v4.iter()));
    assert_eq!(
        records.ribs.v4.get(Prefix::new(0x0a00_0000, 9).unwrap()).map(fibula::net::NextHop::id),
        Some(1)
    );
    assert_eq!((records.ribs.v4.len(), lines.report().bad_lines), (2, 0));
}
