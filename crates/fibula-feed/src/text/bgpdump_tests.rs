//! Lines about peers: bgpdump's, written and read, and those of single updates.

use std::sync::Arc;

use bytes::Bytes;

use super::tests::{error, said};
use super::*;
use crate::bgp::{AsWidth, Attributes};
use crate::event::{Action, Announcement, Path, Peer, Time};
use crate::mrt::tests::{attribute, attributes, octets};

fn event(line: &str) -> Event {
    match decode(line.as_bytes(), HostBits::Refuse).unwrap().unwrap() {
        Line::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

fn written(event: &Event) -> String {
    let mut line = Vec::new();
    write_bgpdump(event, &mut line).unwrap();
    String::from_utf8(line).unwrap()
}

fn path(prefix: &str, id: Option<u32>) -> Path {
    Path { prefix: prefix.parse().unwrap(), id }
}

fn route(path: Path, dumped: bool, attributes: Option<Arc<Attributes>>) -> Action {
    let next_hop = Label::Address("192.0.2.9".parse().unwrap());
    Action::Announce(Announcement { path, next_hop, path_len: None, dumped, attributes })
}

#[test]
fn lines_with_bars_are_known_by_their_first_field() {
    for line in ["x|y 1", "|1|B|192.0.2.1|7|10.0.0.0/8", "TABLE_DUMP2 1", "BGP4MP 1", "BGP 1"] {
        assert!(error(line).starts_with("column 1: not an IP address"), "{line}");
    }
    for line in ["BGP|x", "BGP4MP|x", "BGP4MP_ET|x", "TABLE_DUMP|x", "TABLE_DUMP2_AP|x"] {
        assert!(error(line).ends_with("the time is not a number of seconds"), "{line}");
    }
    // Blanks may come before it.
    assert_eq!(said(" \tBGP4MP_AP|1|W|192.0.2.1|7|10.0.0.0/8|6"), "192.0.2.1 (AS 7) withdraws 10.0.0.0/8 #6");
}

#[test]
fn paths_are_counted_as_route_selection_does() {
    let line = |path: &str| format!("BGP4MP|1|A|192.0.2.1|7|::/0|{path}|IGP|192.0.2.9|");
    for (path, len) in [
        ("", 0),
        ("7", 1),
        ("64500", 1),
        ("7 8 9", 3),
        ("7 {8,9}", 2),
        ("{8,9} {10}", 2),
        ("(65001 65002) 7", 1),
        ("[65001,65002] 7 8", 2),
        ("(65001) [65002,65003]", 0),
        ("7 {8} (9) 10", 3),
    ] {
        assert_eq!(
            said(&line(path)),
            format!("192.0.2.1 (AS 7) announces ::/0 via 192.0.2.9 ({len})"),
            "{path}"
        );
    }
    // Columns count from 1; the path begins at the 29th.
    for (path, column) in
        [("x", 29), ("7 x", 31), ("7,8", 30), ("{7)", 31), ("(7}", 31), ("[7}", 31), ("7 }", 31), ("{(7", 30)]
    {
        let fault = format!("column {column}: an AS number is missing or not a number");
        assert_eq!(error(&line(path)), fault, "{path}");
    }
}

#[test]
fn fields_of_bgpdump_are_checked() {
    for (line, expected) in [
        ("BGP4MP|", "column 8: the time is not a number of seconds"),
        ("BGP4MP|1", "column 9: the line ends before its action"),
        ("BGP4MP|1|X|192.0.2.1|7|", "column 10: expected B, A, W or STATE"),
        ("BGP4MP|1|W|192.0.2.x|7|::/0", "column 20: the peer is not an IP address: unexpected 'x'"),
        ("BGP4MP|1|W|192.0.2.1|x|::/0", "column 22: an AS number is missing or not a number"),
        ("BGP4MP|1|W|192.0.2.1||::/0", "column 22: an AS number is missing or not a number"),
        ("BGP4MP|1|W|192.0.2.1|7", "column 23: the line ends before its prefix"),
        ("BGP4MP|1|W|192.0.2.1|7|::/129", "column 27: prefix length 129 is above the 128 bits of IPv6"),
        ("BGP4MP|1|STATE|192.0.2.1|7|6", "column 29: the line ends before its new state"),
        ("BGP4MP|1|STATE|192.0.2.1|7|x|1", "column 28: expected a number"),
        ("BGP4MP|1|A|192.0.2.1|7|::/0", "column 28: the line ends before its AS path"),
        ("BGP4MP|1|A|192.0.2.1|7|::/0|7", "column 30: the line ends before its origin"),
        ("BGP4MP|1|A|192.0.2.1|7|::/0|7|IGP|255.255.255.255|", "column 35: no next hop after the prefix"),
    ] {
        assert_eq!(error(line), expected, "{line}");
    }
    // Lines of -M have a date and no next hop.
    let short = "TABLE_DUMP2|05/23/14 00:00:00|B|192.0.2.1|7|10.0.0.0/8|7 8|IGP";
    assert_eq!(said(short), "192.0.2.1 (AS 7) has 10.0.0.0/8 via 192.0.2.1 (2)");
    assert_eq!(event(short).time, Time::default());
}

#[test]
fn times_have_up_to_six_digits_after_the_point() {
    let line = |time: &str| format!("BGP4MP_ET|{time}|W|192.0.2.1|7|::/0");
    for (text, seconds, micros) in [
        ("5", 5, None),
        ("4294967295", u32::MAX, None),
        ("5.0", 5, Some(0)),
        ("5.25", 5, Some(250_000)),
        ("5.000007", 5, Some(7)),
    ] {
        assert_eq!(event(&line(text)).time, Time { seconds, micros }, "{text}");
    }
    for text in ["", "x", "-1", "4294967296", ".5", "5.", "5.1234567", "5.x", "5.1.2"] {
        assert_eq!(error(&line(text)), "column 11: the time is not a number of seconds", "{text}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let peer = Some(Peer { address: "192.0.2.1".parse().unwrap(), asn: 7 });
    let time = Time { seconds: 5, micros: None };
    let exact = Time { seconds: 5, micros: Some(7) };
    let (v4, v6) = (path("10.0.0.0/8", None), path("2001:db8::/32", Some(3)));
    let bare = "||INCOMPLETE|192.0.2.9|0|0||NAG||";
    for (time, peer, action, expected) in [
        (time, peer, route(v4, true, None), format!("TABLE_DUMP2|5|B|192.0.2.1|7|10.0.0.0/8{bare}\n")),
        (time, peer, route(v4, false, None), format!("BGP4MP|5|A|192.0.2.1|7|10.0.0.0/8{bare}\n")),
        (
            exact,
            peer,
            route(v6, false, None),
            format!("BGP4MP_ET_AP|5.000007|A|192.0.2.1|7|2001:db8::/32|3{bare}\n"),
        ),
        (time, peer, Action::Withdraw(v6), "BGP4MP_AP|5|W|192.0.2.1|7|2001:db8::/32|3\n".to_owned()),
        (time, None, Action::Withdraw(v4), "BGP4MP|5|W|0.0.0.0|0|10.0.0.0/8\n".to_owned()),
        (time, None, Action::Withdraw(v6), "BGP4MP_AP|5|W|::|0|2001:db8::/32|3\n".to_owned()),
    ] {
        let line = written(&Event { time, peer, action });
        assert_eq!(line, expected);
        assert_eq!(written(&event(line.trim_end())), line);
    }
    for action in [Action::SessionEnd, Action::Nothing] {
        assert_eq!(written(&Event { time, peer, action }), "");
    }
}

#[test]
fn attributes_are_written_in_their_fields() {
    let least = attributes(2, 4, "192.0.2.9");
    let most = [
        least.clone(),
        attribute(0x80, 4, &[0, 0, 0, 5]),
        attribute(0x40, 5, &[0, 0, 0, 6]),
        attribute(0x40, 6, &[]),
        attribute(0xc0, 7, &[&[0, 0, 0xfb, 0xf5][..], &octets("192.0.2.4")].concat()),
        attribute(0xc0, 8, &[0xfb, 0xf5, 0, 7]),
    ];
    for (section, rest) in [
        (least, "64500 64501|IGP|192.0.2.9|0|0||NAG||\n"),
        (most.concat(), "64500 64501|IGP|192.0.2.9|6|5|64501:7|AG|64501 192.0.2.4|\n"),
    ] {
        let decoded =
            Attributes::decode(&Bytes::from(section), 0, AsWidth::Four, None, &mut Vec::new()).unwrap();
        let action = route(path("10.0.0.0/8", None), true, Some(Arc::new(decoded.attributes)));
        let line = written(&Event { time: Time::default(), peer: None, action });
        assert_eq!(line, format!("TABLE_DUMP2|0|B|0.0.0.0|0|10.0.0.0/8|{rest}"));
        assert_eq!(said(line.trim_end()), "0.0.0.0 (AS 0) has 10.0.0.0/8 via 192.0.2.9 (2)");
    }
}

#[test]
fn updates_have_seven_words() {
    let announced = event("5 a 10.0.0.0/8 192.0.2.9 192.0.2.1 7 8");
    let Action::Announce(route) = &announced.action else { panic!("{announced:?}") };
    assert_eq!((route.path, route.next_hop.to_string()), (path("10.0.0.0/8", None), "192.0.2.9".to_owned()));
    assert_eq!((route.path_len, route.dumped), (None, false));
    assert_eq!(announced.peer.unwrap().to_string(), "192.0.2.1 (AS 7)");
    assert_eq!(announced.time, Time { seconds: 5, micros: None });
    assert_eq!(said("5.5 w 10.0.0.0/8 - 192.0.2.1 7 -"), "192.0.2.1 (AS 7) withdraws 10.0.0.0/8");
    for (line, expected) in [
        ("5 a 10.0.0.0/8", "column 15: the line ends before its next hop"),
        ("5 a 10.0.0.0/8 192.0.2.9", "column 25: the line ends before its peer"),
        ("5 a 10.0.0.0/8 192.0.2.9 192.0.2.1", "column 35: the line ends before its peer's AS"),
        ("5 a 10.0.0.0/8 192.0.2.9 192.0.2.1 7", "column 37: the line ends before its next AS"),
        ("5 a 10.0.0.0/8 192.0.2.9 192.0.2.1 7 8 9", "column 40: unexpected text after the next AS"),
        ("5 w 10.0.0.0/8 192.0.2.9 192.0.2.1 7 8", "column 16: expected '-' in place of a next hop"),
        ("5x a 10.0.0.0/8 192.0.2.9 192.0.2.1 7 8", "column 1: the time is not a number of seconds"),
        (
            "5 a 10.0.0.0/8 192.0.2.9 192.0.2.x 7 8",
            "column 34: the peer is not an IP address: unexpected 'x'",
        ),
    ] {
        assert_eq!(error(line), expected, "{line}");
    }
    // Without a number, an action and a word after them the first word is a prefix.
    for line in ["5 a", "x a 10.0.0.0/8 192.0.2.9 192.0.2.1 7 8", "5 b 10.0.0.0/8 192.0.2.9 192.0.2.1 7 8"] {
        assert!(error(line).contains("not an IP address"), "{line}");
    }
}
