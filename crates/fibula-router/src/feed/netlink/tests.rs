use super::*;

/// Appends an attribute, filled up to a multiple of four.
pub(in crate::feed) fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend((value.len() as u16 + 4).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Returns a message of this type.
pub(in crate::feed) fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// Returns what follows the head of a message about a route of table 254.
pub(in crate::feed) fn route_body(prefix: &str, kind: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let prefix: IpPrefix = prefix.parse().unwrap();
    let (family, octets) = match prefix {
        IpPrefix::V4(prefix) => (libc::AF_INET, prefix.addr().to_be_bytes().to_vec()),
        IpPrefix::V6(prefix) => (libc::AF_INET6, prefix.addr().to_be_bytes().to_vec()),
    };
    let mut bytes = vec![family as u8, prefix.len(), 0, 0, 254, 11, 0, kind, 0, 0, 0, 0];
    if prefix.len() > 0 {
        attribute(&mut bytes, libc::RTA_DST, &octets);
    }
    attributes.iter().for_each(|&(kind, value)| attribute(&mut bytes, kind, value));
    bytes
}

/// Returns what follows the head of a message about a next-hop object.
pub(in crate::feed) fn object_body(id: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 11, 0, 0, 0, 0, 0];
    attribute(&mut bytes, number::NHA_ID, &id.to_ne_bytes());
    attributes.iter().for_each(|&(kind, value)| attribute(&mut bytes, kind, value));
    bytes
}

fn ways(ways: &[(Option<&str>, Out, u32)]) -> Option<Target> {
    let way = |&(gateway, out, weight): &(Option<&str>, Out, u32)| Way {
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        out,
        weight,
    };
    Some(Target::Path(Path::Ways(ways.iter().map(way).collect())))
}

fn decoded(prefix: &str, kind: u8, attributes: &[(u16, &[u8])]) -> Option<Target> {
    match decode(libc::RTM_NEWROUTE, &route_body(prefix, kind, attributes)) {
        Message::Route(route) => {
            assert_eq!(route.prefix, prefix.parse().unwrap());
            route.target
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn routes_of_every_kind() {
    let three = 3u32.to_ne_bytes();
    let gateway: (u16, &[u8]) = (libc::RTA_GATEWAY, &[192, 0, 2, 1]);
    let device: (u16, &[u8]) = (libc::RTA_OIF, &three);
    assert_eq!(decoded("10.0.0.0/8", 1, &[gateway]), ways(&[(Some("192.0.2.1"), Out::Near(0), 1)]));
    assert_eq!(decoded("0.0.0.0/0", 1, &[gateway, device]), ways(&[(Some("192.0.2.1"), Out::Device(3), 1)]));
    assert_eq!(decoded("10.0.0.0/8", 1, &[device]), ways(&[(None, Out::Device(3), 1)]));
    assert_eq!(decoded("::/0", 1, &[device]), ways(&[(None, Out::Device(3), 1)]));
    assert_eq!(decoded("10.0.0.0/8", 1, &[]), None, "neither gateway nor device");
    for (kind, path) in [(6, Path::Blackhole), (7, Path::Unreachable), (8, Path::Prohibit)] {
        assert_eq!(decoded("2001:db8::/32", kind, &[]), Some(Target::Path(path)));
    }
    assert_eq!(decoded("10.0.0.1/32", 2, &[device]), None, "a local address");
    // A gateway of IPv6 for a route of IPv4, and an encapsulation.
    let mut via = vec![10, 0];
    via.extend("fe80::1".parse::<Ipv6Addr>().unwrap().octets());
    let with = [(number::RTA_VIA, &via[..]), device];
    assert_eq!(decoded("10.0.0.0/8", 1, &with), ways(&[(Some("fe80::1"), Out::Device(3), 1)]));
    assert_eq!(decoded("10.0.0.0/8", 1, &[gateway, (number::RTA_ENCAP_TYPE, &[1, 0])]), None);
    let object = [(number::RTA_NH_ID, &three[..])];
    assert_eq!(decoded("10.0.0.0/8", 1, &object), Some(Target::Object(3)));
    // Attributes of whatever kind that do not matter.
    assert!(decoded("10.0.0.0/8", 1, &[gateway, (999, &[1, 2, 3]), (0x8000 | 22, &[1])]).is_some());
    let table = 1000u32.to_ne_bytes();
    let body =
        route_body("10.0.0.0/8", 1, &[gateway, (libc::RTA_TABLE, &table), (libc::RTA_PRIORITY, &three)]);
    let Message::RouteGone(route) = decode(libc::RTM_DELROUTE, &body) else { panic!() };
    assert_eq!((route.table, route.metric), (1000, 3));
}

#[test]
fn several_ways_have_their_weights() {
    let mut value = Vec::new();
    for (last, flags, hops, device) in [(1u8, 0u8, 0u8, 2u32), (2, 1, 0, 3), (3, 0, 4, 4)] {
        value.extend([16, 0, flags, hops]);
        value.extend(device.to_ne_bytes());
        attribute(&mut value, libc::RTA_GATEWAY, &[192, 0, 2, last]);
    }
    let one = (Some("192.0.2.1"), Out::Device(2), 1);
    let three = (Some("192.0.2.3"), Out::Device(4), 5);
    assert_eq!(
        decoded("10.0.0.0/8", 1, &[(libc::RTA_MULTIPATH, &value)]),
        ways(&[one, three]),
        "one is dead"
    );
    assert_eq!(decoded("10.0.0.0/8", 1, &[(libc::RTA_MULTIPATH, &value[16..32])]), None, "all are dead");
    value[0] = 0;
    let body = route_body("10.0.0.0/8", 1, &[(libc::RTA_MULTIPATH, &value)]);
    assert_eq!(decode(libc::RTM_NEWROUTE, &body), Message::Malformed);
}

#[test]
fn next_hop_objects() {
    let five = 5u32.to_ne_bytes();
    let body = object_body(7, &[(number::NHA_GATEWAY, &[192, 0, 2, 1]), (number::NHA_OIF, &five)]);
    let way = Way::new(Some(IpAddr::from([192, 0, 2, 1])), Out::Device(5));
    assert_eq!(decode(number::NEW_NEXT_HOP, &body), Message::Object(7, Some(Object::Way(way))));
    assert_eq!(decode(number::DEL_NEXT_HOP, &body), Message::ObjectGone(7));
    let body = object_body(8, &[(number::NHA_BLACKHOLE, &[])]);
    assert_eq!(decode(number::NEW_NEXT_HOP, &body), Message::Object(8, Some(Object::Blackhole)));
    let mut group = 7u32.to_ne_bytes().to_vec();
    group.extend([0, 0, 0, 0]);
    group.extend(8u32.to_ne_bytes());
    group.extend([255, 1, 0, 0]);
    let body = object_body(9, &[(number::NHA_GROUP, &group)]);
    let members = Object::Group([(7, 1), (8, 512)].into());
    assert_eq!(decode(number::NEW_NEXT_HOP, &body), Message::Object(9, Some(members)));
    let body = object_body(9, &[(number::NHA_GROUP, &group[..12])]);
    assert_eq!(decode(number::NEW_NEXT_HOP, &body), Message::Malformed);
    assert_eq!(decode(number::NEW_NEXT_HOP, &object_body(0, &[])), Message::Malformed);
    assert_eq!(decode(number::NEW_NEXT_HOP, &object_body(3, &[])), Message::Object(3, None));
}

#[test]
fn what_is_about_something_else_is_left_out_and_damage_is_seen() {
    let new = |body: &[u8]| decode(libc::RTM_NEWROUTE, body);
    let mut body = route_body("10.0.0.0/8", 1, &[(libc::RTA_OIF, &3u32.to_ne_bytes())]);
    for (at, value) in [(0, 28), (3, 4), (9, 2)] {
        let mut other = body.clone();
        other[at] = value;
        assert_eq!(new(&other), Message::Other, "byte {at}");
    }
    for prefix in ["224.0.0.0/4", "fe80::/64", "ff00::/8"] {
        assert_eq!(new(&route_body(prefix, 1, &[])), Message::Other, "{prefix}");
    }
    // RTM_NEWNHGFIB of a newer FRR, and a neighbour.
    assert_eq!(decode(2000, &[1, 2, 3]), Message::Other);
    assert_eq!(decode(28, &body), Message::Other);
    body[1] = 33;
    assert_eq!(new(&body), Message::Malformed);
    body[1] = 8;
    // Cut anywhere, or with any byte changed: no panic, and never a route of another family.
    for len in 0..body.len() {
        assert!(!matches!(new(&body[..len]), Message::Route(RouteMessage { prefix: IpPrefix::V6(_), .. })));
    }
    for at in 0..body.len() {
        for value in [0, 1, 4, 127, 255] {
            let mut other = body.clone();
            other[at] = value;
            let _ = new(&other);
            let _ = decode(number::NEW_NEXT_HOP, &other);
        }
    }
    let whole = message(libc::RTM_NEWROUTE, 0, 9, &body);
    for len in 0..whole.len() {
        assert_eq!(split(&whole[..len]), None, "{len}");
    }
    assert_eq!(
        split(&whole).map(|(head, body, _)| (head.kind, head.sequence, body.len())),
        Some((24, 9, body.len()))
    );
}
