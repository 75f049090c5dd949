//! Messages made by hand and recorded ones, and what is read from them.

use fibula::net::{Dual, Family};

use super::*;
use crate::event::{Action, Event, Path, Peer};
use crate::mrt::Mention;
use crate::mrt::tests::{attribute, attributes, nlri, octets, update};

/// A session of a router: Initiation, a peer, its routes, Peer Down, as FRR 8.4 has sent it.
const RECORDED: &[u8] = include_bytes!("../../tests/data/frr-8.4.bmp");

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[3][..], &(body.len() as u32 + 6).to_be_bytes(), &[kind], body].concat()
}

/// The header of a peer of AS 64501.
fn header(kind: u8, flags: u8, distinguisher: u64, address: &str) -> Vec<u8> {
    let mut octets = octets(address);
    if octets.len() == 4 {
        octets.splice(0..0, [0; 12]);
    }
    let rest = [&64_501_u32.to_be_bytes()[..], &[192, 0, 2, 200], &1_700_000_000_u32.to_be_bytes(), &[0; 4]];
    [&[kind, flags][..], &distinguisher.to_be_bytes(), &octets, &rest.concat()].concat()
}

fn open(capabilities: &[u8]) -> Vec<u8> {
    let parameters = match capabilities.len() {
        0 => vec![0],
        len => [&[len as u8 + 2, 2, len as u8][..], capabilities].concat(),
    };
    let body = [&[4, 0xfb, 0xf5, 0, 180, 192, 0, 2, 1][..], &parameters].concat();
    [&[0xff; 16][..], &(body.len() as u16 + 19).to_be_bytes(), &[1], &body].concat()
}

const FOUR: &[u8] = &[65, 4, 0, 0, 0xfb, 0xf5];
const BOTH_FAMILIES: &[u8] = &[1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1];

fn up(header: &[u8], sent: &[u8], received: &[u8]) -> Vec<u8> {
    message(3, &[header, &[0; 20], sent, received, &[0, 0, 0, 2, b'h', b'i']].concat())
}

fn routes(header: &[u8], update: &[u8]) -> Vec<u8> {
    message(0, &[header, update].concat())
}

/// What a decoder reports, a line each.
#[derive(Default)]
struct Told {
    lines: Vec<String>,
    /// Routes of tables are passed over.
    refuses: bool,
}

impl Told {
    fn say(&mut self, line: String) {
        self.lines.push(line);
    }
}

impl mrt::Sink for Told {
    fn wants(&mut self, _: &Peer, _: Option<u16>, _: &Path, _: Mention) -> bool {
        true
    }

    fn event(&mut self, event: Event) {
        let path = |path: Path| match path.id {
            Some(id) => format!("{} #{id}", path.prefix),
            None => path.prefix.to_string(),
        };
        self.say(match event.action {
            Action::Announce(route) => {
                let as_path = route.attributes.as_ref().unwrap().as_path();
                format!("+ {} via {} [{as_path}]", path(route.path), route.next_hop)
            }
            Action::Withdraw(gone) => format!("- {}", path(gone)),
            other => panic!("{other:?}"),
        });
    }

    fn fault(&mut self, fault: Fault) {
        self.say(fault.to_string());
    }

    fn skipped(&mut self, kind: Skipped, offset: usize) {
        self.say(format!("byte {offset}: {kind}"));
    }
}

impl Sink for Told {
    fn up(&mut self, peer: &PeerHeader, families: Dual<bool>) {
        self.say(format!("up {} {} {}", peer.peer, families.v4, families.v6));
    }

    fn down(&mut self, peer: &PeerHeader, reason: u8) {
        self.say(format!("down {} {reason}", peer.peer.address));
    }

    fn routes(&mut self, peer: &PeerHeader) -> bool {
        self.say(format!("{} {:?} {:?}", peer.id.distinguisher, peer.id.kind, peer.table));
        !self.refuses
    }

    fn end_of_rib(&mut self, _: &PeerHeader, family: Family) {
        self.say(format!("end of {family:?}"));
    }

    fn router(&mut self, name: &str) {
        self.say(format!("router {name}"));
    }

    fn ends(&mut self, reason: &str) {
        self.say(format!("ends: {reason}"));
    }
}

/// What the messages say, and the damage that ends the session.
fn told(bytes: &[u8]) -> Vec<String> {
    let (mut told, mut peers, mut rest) = (Told::default(), Peers::default(), bytes);
    loop {
        match Frame::next(rest, 1 << 16) {
            Frame::Message(header) => {
                let (bytes, after) = rest.split_at(header.len as usize);
                let message = Message::new(header, bytes);
                if let Err(fault) = decode(&message, &mut peers, &mut told) {
                    assert!(fault.offset() <= bytes.len() as u64, "{fault}");
                    told.say(format!("DAMAGE {fault}"));
                    break;
                }
                rest = after;
            }
            Frame::More => break,
            Frame::TooLong(header) => {
                told.say(format!("TOO LONG {}", header.len));
                break;
            }
            Frame::Damaged(fault) => {
                told.say(format!("DAMAGE {fault}"));
                break;
            }
        }
    }
    told.lines
}

fn session() -> Vec<u8> {
    let peer = header(0, 0, 0, "192.0.2.1");
    let post = header(0, 0x40, 0, "192.0.2.1");
    let reach = attribute(
        0x80,
        14,
        &[&[0, 2, 1, 16][..], &octets("2001:db8::9"), &[0], &nlri("2001:db8::/32")].concat(),
    );
    [
        message(4, &[&[0, 2, 0, 3][..], b"r\n1", &[0, 1, 0, 3], b"FRR", &[0, 0, 0, 0]].concat()),
        up(&peer, &open(&[FOUR, BOTH_FAMILIES].concat()), &open(&[FOUR, BOTH_FAMILIES].concat())),
        routes(&peer, &update(&[], &attributes(2, 4, "192.0.2.9"), &nlri("10.0.0.0/8"))),
        routes(
            &post,
            &update(&nlri("10.0.0.0/8"), &[&attributes(1, 4, "192.0.2.9")[..], &reach].concat(), &[]),
        ),
        routes(&peer, &update(&[], &[], &[])),
        routes(&peer, &update(&[], &attribute(0x80, 15, &[0, 2, 1]), &[])),
        message(1, &[&peer[..], &[0, 0, 0, 0]].concat()),
        message(6, &peer),
        message(9, b"new"),
        message(2, &[&peer[..], &[4]].concat()),
        message(5, &[&[0, 1, 0, 2, 0, 2, 0, 0, 0, 3][..], b"bye"].concat()),
    ]
    .concat()
}

#[test]
fn a_session_is_read() {
    assert_eq!(
        told(&session()),
        [
            "router r 1",
            "up 192.0.2.1 (AS 64501) true true",
            "0 Global AdjRibIn { post_policy: false }",
            "+ 10.0.0.0/8 via 192.0.2.9 [64500 64501]",
            "0 Global AdjRibIn { post_policy: true }",
            "- 10.0.0.0/8",
            "+ 2001:db8::/32 via 2001:db8::9 [64500]",
            "0 Global AdjRibIn { post_policy: false }",
            "end of Ipv4",
            "0 Global AdjRibIn { post_policy: false }",
            "end of Ipv6",
            "byte 0: BMP Statistics Report",
            "byte 0: BMP Route Mirroring",
            "byte 5: BMP messages of unknown types",
            "down 192.0.2.1 4",
            "ends: out of resources: bye",
        ]
    );
}

#[test]
fn peers_of_all_kinds() {
    let v6 = header(1, 0x80, 1 << 48 | 0xc000_0201 << 16 | 7, "2001:db8::1");
    let out = header(2, 0x10, 5, "192.0.2.1");
    let loc = header(3, 0x80, 0, "::");
    let unknown = header(4, 0, 0, "192.0.2.1");
    let bytes = [
        up(&v6, &open(FOUR), &open(FOUR)),
        up(&out, &open(FOUR), &open(FOUR)),
        up(&loc, &open(FOUR), &open(FOUR)),
        up(&unknown, &open(FOUR), &open(FOUR)),
        routes(&v6, &update(&[], &attributes(1, 4, "192.0.2.9"), &nlri("10.0.0.0/8"))),
        routes(&out, &update(&[], &attributes(1, 4, "192.0.2.9"), &nlri("10.0.0.0/8"))),
        routes(&loc, &update(&[], &attributes(1, 4, "192.0.2.9"), &nlri("10.0.0.0/8"))),
        message(2, &[&loc[..], &[6, 0, 3, 0, 1, b'x']].concat()),
        // What is not up has no routes, and cannot go down.
        routes(&loc, &update(&[], &attributes(1, 4, "192.0.2.9"), &nlri("10.0.0.0/8"))),
        message(2, &[&loc[..], &[6]].concat()),
    ];
    assert_eq!(
        told(&bytes.concat()),
        [
            "up 2001:db8::1 (AS 64501) true false",
            "up 192.0.2.1 (AS 64501) true false",
            "up 192.0.2.200 (AS 64501) true false",
            "byte 6: BMP peers of unknown types",
            "192.0.2.1:7 Distinguished AdjRibIn { post_policy: false }",
            "+ 10.0.0.0/8 via 192.0.2.9 [64500]",
            "byte 48: BMP Adj-RIB-Out",
            "0 LocRib LocRib { filtered: true }",
            "+ 10.0.0.0/8 via 192.0.2.9 [64500]",
            "down 192.0.2.200 6",
            "byte 48: routes of the peer 192.0.2.200, which is not up",
            "byte 48: session state changes",
        ]
    );
}

#[test]
fn a_table_of_used_routes_may_come_without_a_word_before() {
    // As GoBGP 3.10 tells it: the identifier of the router, no address, no Peer Up.
    let loc = header(3, 0, 0, "::");
    let told = told(&routes(&loc, &update(&[], &attributes(2, 4, "192.0.2.9"), &nlri("10.0.0.0/8"))));
    assert_eq!(
        told,
        [
            "up 192.0.2.200 (AS 64501) true true",
            "0 LocRib LocRib { filtered: false }",
            "+ 10.0.0.0/8 via 192.0.2.9 [64500 64501]",
        ]
    );
}

/// The routes of a peer by messages that opened its session, and by the flags of its header.
fn read_as(flags: u8, sent: &[u8], received: &[u8], update: &[u8]) -> Vec<String> {
    let peer = header(0, flags, 0, "192.0.2.1");
    let mut lines = told(&[up(&peer, &open(sent), &open(received)), routes(&peer, update)].concat());
    lines.drain(..2);
    lines
}

#[test]
fn capabilities_decide_how_routes_are_read() {
    let plain = ["+ 10.0.0.0/8 via 192.0.2.9 [64500 64501]"];
    let (four, two) = (attributes(2, 4, "192.0.2.9"), attributes(2, 2, "192.0.2.9"));
    let eight = nlri("10.0.0.0/8");
    // The flag decides; without it four bytes, unless the session has two and the path fits nothing else.
    assert_eq!(read_as(0x20, FOUR, FOUR, &update(&[], &two, &eight)), plain);
    assert_eq!(read_as(0, FOUR, FOUR, &update(&[], &four, &eight)), plain);
    assert_eq!(read_as(0, FOUR, &[], &update(&[], &four, &eight)), plain);
    assert_eq!(read_as(0, FOUR, &[], &update(&[], &two, &eight)), plain);
    // Identifiers of paths where the peer sends them and the router receives them.
    let (send, receive, both) = ([69, 4, 0, 1, 1, 2], [69, 4, 0, 1, 1, 1], [69, 4, 0, 1, 1, 3]);
    let with = |capability: &[u8]| [FOUR, capability].concat();
    let identified = [&7_u32.to_be_bytes()[..], &eight].concat();
    let found = ["+ 10.0.0.0/8 #7 via 192.0.2.9 [64500 64501]"];
    for sent in [&receive, &both] {
        let read = read_as(0, &with(sent), &with(&send), &update(&[], &four, &identified));
        assert_eq!(read, found);
    }
    // The other way round there are none; a field that fits only so is read all the same.
    assert_eq!(read_as(0, &with(&send), &with(&receive), &update(&[], &four, &eight)), plain);
    let lines = read_as(0, FOUR, FOUR, &update(&[], &four, &[&identified[..], &identified].concat()));
    assert!(lines[2].contains("present but not declared"), "{lines:?}");
    // A header without a body, in place of an OPEN that the sender does not have.
    let header_alone = [&[0xff; 16][..], &[0, 19, 1]].concat();
    let peer = header(0, 0, 0, "192.0.2.1");
    let lines =
        told(&[up(&peer, &header_alone, &open(FOUR)), routes(&peer, &update(&[], &two, &eight))].concat());
    assert_eq!(lines[2..], plain);
    // Parameters with lengths of two bytes (RFC 9072).
    let long = [&[0; 9][..], &[255, 255, 0, 9, 2, 0, 6], FOUR].concat();
    let long = [&[0xff; 16][..], &(long.len() as u16 + 19).to_be_bytes(), &[1], &long].concat();
    let lines = told(&[up(&peer, &long, &long), routes(&peer, &update(&[], &four, &eight))].concat());
    assert_eq!(lines[2..], plain);
}

#[test]
fn damage_ends_the_session_and_treats_what_rfc_7606_allows_as_withdrawn() {
    let peer = header(0, 0, 0, "192.0.2.1");
    let begin = up(&peer, &open(FOUR), &open(FOUR));
    let last = |bytes: &[u8]| told(&[&begin[..], bytes].concat()).pop().unwrap();
    assert_eq!(last(&[4, 0, 0]), "DAMAGE byte 0: BMP version 4: only 3 is known");
    assert_eq!(
        last(&[3, 0, 0, 0, 5, 0]),
        "DAMAGE byte 1: a BMP message of 5 bytes is too short: 6 is the least"
    );
    assert_eq!(last(&[3, 0, 1, 0, 1, 0]), "TOO LONG 65537");
    assert_eq!(last(&message(0, &peer[..41])), "DAMAGE byte 44: microseconds: 4 bytes needed, 3 left");
    let good = update(&[], &attributes(1, 4, "192.0.2.9"), &nlri("10.0.0.0/8"));
    let surplus = routes(&peer, &[&good[..], &[0]].concat());
    assert_eq!(last(&surplus), "DAMAGE byte 64: message length 45 does not fit: 46 bytes are present");
    let bad = update(&[], &attributes(1, 4, "192.0.2.9"), &[33, 10, 0, 0, 0, 0]);
    assert!(last(&routes(&peer, &bad)).starts_with("DAMAGE byte 91: prefix length 33"));
    let keepalive = [&[0xff; 16][..], &[0, 19, 4]].concat();
    assert_eq!(last(&routes(&peer, &keepalive)), "byte 66: BGP KEEPALIVE");
    // Without a next hop there is no route, and everything is known that there is to know.
    let without = &attributes(1, 4, "192.0.2.9");
    let without = update(&[], &without[..without.len() - 7], &nlri("10.0.0.0/8"));
    assert_eq!(last(&routes(&peer, &without)), "byte 84: route without a next hop");
    assert!(told(&[&begin[..], &routes(&peer, &without)].concat()).contains(&"- 10.0.0.0/8".into()));
    let opened = message(3, &[&peer[..], &[0; 20], &good].concat());
    assert_eq!(last(&opened), "DAMAGE byte 86: unknown BGP message type 2");
}

#[test]
fn routes_that_are_not_wanted_are_passed_over() {
    let peer = header(0, 0, 0, "192.0.2.1");
    let bytes = routes(&peer, &[0; 9]);
    let mut peers = Peers::default();
    peers.insert(
        PeerId { kind: PeerKind::Global, distinguisher: Distinguisher(0), address: [192, 0, 2, 1].into() },
        peer::MessageFormat::default(),
    );
    let header = Header { len: bytes.len() as u32, kind: 0 };
    let message = Message::new(header, &bytes);
    let mut told = Told { refuses: true, ..Told::default() };
    decode(&message, &mut peers, &mut told).unwrap();
    assert_eq!((told.lines.len(), peers.len(), peers.is_empty()), (1, 1, false));
    assert!(decode(&message, &mut peers, &mut Told::default()).is_err());
}

#[test]
fn a_session_of_frr_is_read() {
    let lines = told(RECORDED);
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(count("DAMAGE"), 0, "{lines:?}");
    assert_eq!(lines[..2], ["router vm", "up 10.0.1.2 (AS 64501) true true"], "{lines:?}");
    // Six routes, before and after the policy, and one of them withdrawn; the end of both families of both. FRR puts its own AS
    // in front of the path.
    assert_eq!((count("+ "), count("- "), count("end of ")), (12, 2, 4), "{lines:?}");
    assert_eq!(count("post_policy: true"), count("post_policy: false"), "{lines:?}");
    assert!(lines.contains(&"+ 10.20.1.0/24 via 10.0.1.2 [64500 64501]".into()), "{lines:?}");
    assert!(lines.contains(&"+ 2001:db8:1::/48 via fd00:1::2 [64500 64501]".into()), "{lines:?}");
    // The session has ended with a NOTIFICATION of the peer, of which FRR tells three times.
    assert!(lines.contains(&"down 10.0.1.2 3".into()), "{lines:?}");
    assert_eq!(
        (count("down"), count("byte 48: session state changes"), count("byte")),
        (1, 2, 2),
        "{lines:?}"
    );
}

#[test]
fn any_byte_may_be_another_and_any_number_of_them_missing() {
    for bytes in [&session()[..], RECORDED] {
        let whole = told(bytes);
        for cut in 0..bytes.len() {
            let part = told(&bytes[..cut]);
            assert!(whole.starts_with(&part), "cut at {cut}: {part:?}");
        }
        // Every value of every byte of a session made by hand, a few of one recorded.
        let values: &[u8] =
            if bytes.len() < 1200 { &[0, 1, 2, 3, 4, 5, 15, 16, 64, 127, 128, 254, 255] } else { &[0, 255] };
        let mut bytes = bytes.to_vec();
        for at in 0..bytes.len() {
            let before = bytes[at];
            for &value in values.iter().chain(&[before ^ 1, before ^ 0x80]) {
                bytes[at] = value;
                told(&bytes);
            }
            bytes[at] = before;
        }
    }
}

#[test]
fn distinguishers_are_read_back() {
    for (text, value) in [
        ("0", 0),
        ("7", 7),
        ("64500:7", 0xfbf4 << 32 | 7),
        ("1:4294967295", 1 << 32 | 0xffff_ffff),
        ("192.0.2.1:65535", 1 << 48 | 0xc000_0201 << 16 | 0xffff),
        ("70000:7", 2 << 48 | 70_000 << 16 | 7),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Distinguisher(value)), "{text}");
        assert_eq!(Distinguisher(value).to_string(), text);
    }
    for text in
        ["", "a", "1:", ":1", "1:4294967296", "70000:65536", "192.0.2.1:65536", "4294967296:1", "1:2:3"]
    {
        assert_eq!(text.parse::<Distinguisher>(), Err(DistinguisherError), "{text}");
    }
}

#[test]
fn kinds_have_names_and_numbers_of_their_own() {
    for (index, kind) in KINDS.iter().enumerate() {
        assert!(!kind.name.is_empty() && usize::from(kind.number) == index, "{kind:?}");
    }
}
