use core::net::IpAddr;

use fibula::net::Prefix;
use proptest::prelude::*;

use super::*;
use crate::event::{Action, Path};

/// The route of a plain line.
fn decode_route(line: &[u8], host_bits: HostBits) -> Result<Option<Entry>, LineError> {
    decode(line, host_bits).map(|line| line.map(route))
}

fn route(line: Line) -> Entry {
    match line {
        Line::Route(entry) => entry,
        other => panic!("{other:?}"),
    }
}

fn read(line: &str) -> Result<Option<String>, String> {
    decode_route(line.as_bytes(), HostBits::Refuse)
        .map(|entry| entry.map(|entry| entry.to_string()))
        .map_err(|error| error.to_string())
}

fn entry(line: &str) -> String {
    read(line).unwrap().unwrap()
}

pub(super) fn error(line: &str) -> String {
    read(line).unwrap_err()
}

fn label(line: &str) -> Label {
    decode_route(line.as_bytes(), HostBits::Refuse).unwrap().unwrap().next_hop
}

#[test]
fn every_form_recognises_its_example_first() {
    for form in FORMS {
        let fields = LineFields::split(form.example.as_bytes());
        let first = FORMS.iter().find(|form| (form.recognises)(&fields)).unwrap();
        assert_eq!(first.name, form.name);
        assert_eq!(format!("{form:?}"), format!("Form {{ name: {:?}, .. }}", form.name));
        assert!((form.decode)(&fields, HostBits::Refuse).is_ok(), "{form:?}");
    }
    let last = FORMS.last().unwrap();
    for line in ["", "x", "10.0.0.0 24 1", "a b c d e"] {
        assert!((last.recognises)(&LineFields::split(line.as_bytes())));
    }
}

#[test]
fn prefixes_with_a_next_hop() {
    assert_eq!(entry("1.0.0.0/24 78"), "1.0.0.0/24 78");
    assert_eq!(entry("1.0.0.0/24\t78\r"), "1.0.0.0/24 78");
    assert_eq!(entry("  1.0.0.0/24 \t via   192.0.2.1\t \r"), "1.0.0.0/24 192.0.2.1");
    assert_eq!(entry("0.0.0.0/0 0"), "0.0.0.0/0 0");
    assert_eq!(entry("192.0.2.1 5"), "192.0.2.1/32 5");
    assert_eq!(entry("192.0.2.1 via 192.0.2.2"), "192.0.2.1/32 192.0.2.2");
    assert_eq!(entry("2001:DB8:0::/32 2001:db8:0::1"), "2001:db8::/32 2001:db8::1");
    assert_eq!(entry("10.0.0.0/8 2001:db8::1"), "10.0.0.0/8 2001:db8::1");
    assert_eq!(entry("::/0 007"), "::/0 7");
    assert_eq!(entry("10.0.0.0/8 1_2,3"), "10.0.0.0/8 1_2,3");
    assert_eq!(label("10.0.0.0/8 4294967295"), Label::Number(u32::MAX));
    assert_eq!(label("10.0.0.0/8 ::ffff:192.0.2.1"), Label::Address("::ffff:192.0.2.1".parse().unwrap()));
}

#[test]
fn comments_end_lines() {
    for line in ["1.0.0.0/24 78 # a", "1.0.0.0/24 78 ; a b", "1.0.0.0/24 78 #", "1.0.0.0/24 via 78\t;x"] {
        assert_eq!(entry(line), "1.0.0.0/24 78", "{line}");
    }
    assert_eq!(entry("1.0.0.0/24 \"a # b\" # c"), "1.0.0.0/24 \"a # b\"");
    assert_eq!(entry("1.0.0.0/24 a#b"), "1.0.0.0/24 a#b");
    assert_eq!(entry("1.0.0.0/24 \"#b\""), "1.0.0.0/24 \"#b\"");
    assert_eq!(error("1.0.0.0/24 # a"), "column 11: no next hop after the prefix");
}

#[test]
fn addresses_with_a_netmask() {
    assert_eq!(entry("10.0.0.0 255.0.0.0 192.0.2.1"), "10.0.0.0/8 192.0.2.1");
    assert_eq!(entry("0.0.0.0 0.0.0.0 192.0.2.1"), "0.0.0.0/0 192.0.2.1");
    assert_eq!(entry("10.0.0.0/255.255.0.0 via 7"), "10.0.0.0/16 7");
    assert!(error("10.0.0.1 255.0.0.0 7").contains("host bits set after /8"));
}

#[test]
fn lines_of_other_tools_say_what_those_of_bgpdump_do() {
    for (line, expected) in [
        (
            "A|1.5|192.0.2.1|7|10.0.0.0/8|7 8|IGP|192.0.2.9|0|0|7:1|NAG||",
            "announces 10.0.0.0/8 via 192.0.2.9 (2)",
        ),
        ("W|1.5|192.0.2.1|7|10.0.0.0/8|||||||||", "withdraws 10.0.0.0/8"),
        (
            "R|R|1.5|ris|rrc00|||7|192.0.2.1|10.0.0.0/8|192.0.2.9|7 8|8|7:1||",
            "has 10.0.0.0/8 via 192.0.2.9 (2)",
        ),
        (
            "U|A|1.5|ris|rrc00|||7|192.0.2.1|10.0.0.0/8|192.0.2.9|7 8|8|7:1||",
            "announces 10.0.0.0/8 via 192.0.2.9 (2)",
        ),
        ("U|W|1.5|ris|rrc00|||7|192.0.2.1|10.0.0.0/8||||||", "withdraws 10.0.0.0/8"),
        ("U|S|1.5|ris|rrc00|||7|192.0.2.1||||||ESTABLISHED|IDLE", "ends"),
    ] {
        assert_eq!(said(line).split_once(' ').unwrap().1.trim_start_matches("(AS 7) "), expected, "{line}");
        assert!(BgpdumpFields::is_of_other_tool(line.as_bytes()), "{line}");
        let fields = BgpdumpFields::of(line.as_bytes()).unwrap();
        if !line.contains("W|") && !line.contains("S|") {
            assert_eq!((fields.as_path(), fields.communities()), ("7 8", Some("7:1")), "{line}");
        }
    }
}

#[test]
fn addresses_with_a_length_and_origins() {
    assert_eq!(entry("1.0.0.0\t24\t13335"), "1.0.0.0/24 13335");
    assert_eq!(entry("2001:200::\t32\t2500\r"), "2001:200::/32 2500");
    assert_eq!(label("1.0.0.0\t24\t1_2_3"), Label::Origins("1_2_3".into()));
    assert_eq!(label("1.0.0.0 24 1,2"), Label::Origins("1,2".into()));
    assert_eq!(label("1.0.0.0 24 1_2,3_4"), Label::Origins("1_2,3_4".into()));
    assert_eq!(label("1.0.0.0 24 0"), Label::Number(0));
}

#[test]
fn ranges_are_the_fewest_prefixes() {
    let prefixes = |line: &str| match decode(line.as_bytes(), HostBits::Refuse) {
        Ok(Some(Line::Range(range))) => Ok((
            range.prefixes().map(|prefix| prefix.to_string()).collect::<Vec<_>>().join(" "),
            range.next_hop,
        )),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    let of = |line: &str| prefixes(line).unwrap();
    assert_eq!(of("10.0.0.0-10.0.0.255 7"), ("10.0.0.0/24".to_owned(), Label::Number(7)));
    assert_eq!(of("10.0.0.1-10.0.0.6\tvia 192.0.2.1").0, "10.0.0.1/32 10.0.0.2/31 10.0.0.4/31 10.0.0.6/32");
    assert_eq!(of("0.0.0.0-255.255.255.255 7").0, "0.0.0.0/0");
    assert_eq!(of("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 7").0, "::/0");
    assert_eq!(of("2001:db8::-2001:db8::2 \"a name\"").0, "2001:db8::/127 2001:db8::2/128");
    assert_eq!(of("10.0.0.7-10.0.0.7 1").0, "10.0.0.7/32");
    for (line, expected) in [
        ("10.0.0.2-10.0.0.1 7", "column 10: the range ends before it begins"),
        ("10.0.0.2-2001:db8:: 7", "column 10: the range begins and ends in different families"),
        ("10.0.0.2-10.0.0.3", "column 18: no next hop after the prefix"),
        ("10.0.0.2-10.0.0.3 7 8", "column 21: unexpected text after the next hop"),
    ] {
        assert_eq!(prefixes(line), Err(expected.to_owned()), "{line}");
    }
    for line in ["- 7", "10.0.0.1- 7", "-10.0.0.1 7", "10.0.0.1-10.0.0.2-10.0.0.3 7", "10.0.0.1-10.0.0.256 7"]
    {
        assert!(prefixes(line).is_err(), "{line}");
    }
}

/// What a line of bgpdump says, in short.
pub(super) fn said(line: &str) -> String {
    let event = match decode(line.as_bytes(), HostBits::Refuse).unwrap().unwrap() {
        Line::Event(event) => event,
        other => panic!("{other:?}"),
    };
    let peer = event.peer.unwrap();
    let path = |path: Path| match path.id {
        Some(id) => format!("{} #{id}", path.prefix),
        None => path.prefix.to_string(),
    };
    match event.action {
        Action::Announce(route) => {
            let kind = if route.dumped { "has" } else { "announces" };
            let len = route.path_len.unwrap();
            format!("{peer} {kind} {} via {} ({len})", path(route.path), route.next_hop)
        }
        Action::Withdraw(gone) => format!("{peer} withdraws {}", path(gone)),
        Action::SessionEnd => format!("{peer} ends"),
        Action::Nothing => format!("{peer} says nothing"),
    }
}

#[test]
fn lines_of_bgpdump_with_and_without_path_identifiers() {
    let rest = "7 8|IGP|192.0.2.9|0|0||NAG||";
    for (line, expected) in [
        (format!("TABLE_DUMP2|1|B|192.0.2.1|7|10.0.0.0/8|{rest}"), "has 10.0.0.0/8 via 192.0.2.9 (2)"),
        (
            format!("TABLE_DUMP2_AP|1|B|192.0.2.1|7|10.0.0.0/8|5|{rest}"),
            "has 10.0.0.0/8 #5 via 192.0.2.9 (2)",
        ),
        (format!("BGP4MP_AP|1|A|192.0.2.1|7|::/0|0|{rest}"), "announces ::/0 #0 via 192.0.2.9 (2)"),
        (
            format!("BGP4MP_ET_AP|1.5|A|192.0.2.1|7|::/0|4294967295|{rest}"),
            "announces ::/0 #4294967295 via 192.0.2.9 (2)",
        ),
        ("BGP4MP_AP|1|W|192.0.2.1|7|10.0.0.0/8|6".to_owned(), "withdraws 10.0.0.0/8 #6"),
        ("BGP4MP|1|W|192.0.2.1|7|10.0.0.0/8".to_owned(), "withdraws 10.0.0.0/8"),
        (format!("BGP|1|A|192.0.2.1|7|10.0.0.0/8|{rest}"), "announces 10.0.0.0/8 via 192.0.2.9 (2)"),
        ("BGP|1|STATE|192.0.2.1|7|6|1".to_owned(), "ends"),
    ] {
        assert_eq!(said(&line), format!("192.0.2.1 (AS 7) {expected}"), "{line}");
        assert!(!BgpdumpFields::is_of_other_tool(line.as_bytes()), "{line}");
        if line.ends_with(rest) {
            assert_eq!(BgpdumpFields::of(line.as_bytes()).unwrap().as_path(), "7 8", "{line}");
        }
    }
    let missing = error("BGP4MP_AP|1|W|192.0.2.1|7|10.0.0.0/8");
    assert_eq!(missing, "column 37: the line ends before its path identifier");
    assert_eq!(error("BGP4MP_AP|1|W|192.0.2.1|7|10.0.0.0/8|x"), "column 38: expected a number");
}

#[test]
fn only_leaving_the_established_state_ends_a_session() {
    for before in 0..=7 {
        for after in 0..=7 {
            let line = format!("BGP4MP|1|STATE|192.0.2.1|7|{before}|{after}");
            let expected = if before == 6 && after != 6 { "ends" } else { "says nothing" };
            assert_eq!(said(&line), format!("192.0.2.1 (AS 7) {expected}"), "{line}");
        }
    }
}

#[test]
fn blank_lines_and_comments_hold_nothing() {
    for line in ["", "\r", " \t ", "#", "# 1.0.0.0/24 78", "  # x", "#1 2 3 4 5 6"] {
        assert_eq!(read(line), Ok(None), "{line:?}");
    }
}

#[test]
fn errors_of_prefix_and_next_hop() {
    assert_eq!(error("1.0.0.0/33 78"), "column 9: prefix length 33 is above the 32 bits of IPv4");
    assert_eq!(error("  ::/129 78"), "column 6: prefix length 129 is above the 128 bits of IPv6");
    assert_eq!(error("1.0.0.1/24 78"), "column 8: host bits set after /24; did you mean 1.0.0.0/24?");
    assert_eq!(error("1.0.0/24 78"), "column 6: not an IP address: too short");
    assert_eq!(error(" 1.0.0.256/24 78"), "column 8: not an IP address: a number is above 255");
    assert_eq!(error("1.0.0.0/ 78"), "column 9: no prefix length after '/'");
    assert_eq!(error("1.0.0.0/2x 78"), "column 10: unexpected 'x' in the prefix length");
    assert_eq!(error("default 78"), "column 1: not an IP address: unexpected 'd'");
    for (line, column) in [("1.0.0.0/24", 11), ("1.0.0.0/24  \r", 11), ("1.0.0.0/24 via ", 15)] {
        assert_eq!(error(line), format!("column {column}: no next hop after the prefix"));
    }
    let neither = "the next hop is not a number, an address, a list of AS numbers or a name";
    assert_eq!(error("1.0.0.0/24 -1"), format!("column 12: {neither}"));
    assert_eq!(error("1.0.0.0/24 via via"), format!("column 16: {neither}"));
    assert_eq!(error("1.0.0.0/24 4294967296"), "column 12: the next hop is a number above 4294967295");
    assert_eq!(
        error("1.0.0.0/24 192.0.2.300"),
        "column 20: the next hop is not an IP address: a number is above 255"
    );
    let (open, after) = ("unterminated quote", "unexpected text after the closing quote");
    let not_text = "the quoted text has control characters or is not UTF-8";
    for (line, fault) in [
        ("\"", open),
        ("\"a", open),
        ("\"a\\\"", open),
        ("\"a\\", open),
        ("\"a\" b", after),
        ("\"a\"b\"", after),
        ("\"\u{7}\"", not_text),
    ] {
        assert_eq!(error(&format!("1.0.0.0/24 {line}")), format!("column 12: {fault}"), "{line}");
    }
    let more = "unexpected text after the next hop";
    assert_eq!(error("1.0.0.0/24 78 79"), format!("column 15: {more}"));
    assert_eq!(error("1.0.0.0/24 via 78 79 80"), format!("column 19: {more}"));
    assert_eq!(error("1.0.0.0 192.0.2.1 79"), format!("column 19: {more}"));
}

#[test]
fn numbers_that_may_be_octal_are_refused() {
    let length = "the prefix length has a leading zero, which some tools read as octal: leave it out";
    for (line, column) in [
        ("10.0.0.0/08 1", 10),
        (" 10.0.0.0/010 via 192.0.2.1", 11),
        ("2001:db8::/032 1", 12),
        ("0.0.0.0/00 1", 9),
        ("10.0.0.0\t08\t1", 10),
        ("10.0.0.0 000000000000000000000000000000000000000000000000000000000008 1", 10),
    ] {
        assert_eq!(error(line), format!("column {column}: {length}"), "{line}");
    }
    let octet = "not an IP address: a number has a leading zero";
    assert_eq!(error("010.0.0.0/8 1"), format!("column 1: {octet}"));
    assert_eq!(error("10.0.00.0 8 1"), format!("column 6: {octet}"));
    // Next hops and AS numbers are decimal everywhere, and groups of IPv6 are hexadecimal.
    assert_eq!(entry("2001:0db8::/32 007"), "2001:db8::/32 7");
    assert_eq!(entry("0.0.0.0/0 0"), "0.0.0.0/0 0");
}

#[test]
fn errors_of_address_length_and_origins() {
    assert_eq!(error("1.0.0.0\t33\t1"), "column 9: prefix length 33 is above the 32 bits of IPv4");
    assert_eq!(error("1.0.0.0   2x 1"), "column 12: unexpected 'x' in the prefix length");
    assert_eq!(error("1.0.0 24 1"), "column 6: not an IP address: too short");
    assert_eq!(error(" 1.0.x.0 24 1"), "column 6: not an IP address: unexpected 'x'");
    assert_eq!(error("1.0.0.1  24 1"), "column 10: host bits set after /24; did you mean 1.0.0.0/24?");
    for (line, column) in [
        ("1.0.0.0 24 x", 12),
        ("1.0.0.0 24 1_x", 14),
        ("1.0.0.0 24 1__2", 14),
        ("1.0.0.0 24 _1", 12),
        ("1.0.0.0 24 1,", 14),
        ("1.0.0.0 24 192.0.2.1", 15),
        ("1.0.0.0/24 1_", 14),
    ] {
        assert_eq!(
            error(line),
            format!("column {column}: an AS number is missing or not a number"),
            "{line}"
        );
    }
    assert_eq!(error("1.0.0.0 24 1_4294967296"), "column 14: an AS number is above 4294967295");
    assert_eq!(error("1.0.0.0 24 4294967296"), "column 12: an AS number is above 4294967295");
    assert_eq!(error("1.0.0.0 24 1 2"), "column 14: unexpected text after the next hop");
    let long = format!("{} 24 1", "1".repeat(100));
    assert_eq!(error(&long), "column 1: not an IP address: a number is above 255");
}

#[test]
fn columns_host_bits_and_limits_can_be_asked_for() {
    let line = b"10.0.0.1/8 1";
    let error = decode(line, HostBits::Refuse).unwrap_err();
    assert!(error.is_host_bits());
    assert_eq!((error.offset(), error.column()), (8, 9));
    for line in [&b"10.0.0.0/33 1"[..], b"10.0.0.0/8 +", b"10.0.0.0/08 1"] {
        assert!(!decode(line, HostBits::Refuse).unwrap_err().is_host_bits());
    }
    assert_eq!(decode_route(line, HostBits::Mask).unwrap().unwrap().to_string(), "10.0.0.0/8 1");
    assert_eq!(decode_route(b"10.0.0.1 8 1", HostBits::Mask).unwrap().unwrap().to_string(), "10.0.0.0/8 1");
    let error = LineError::new(LineErrorKind::LineTooLong { limit_bytes: 65_536 }, 65_536);
    assert_eq!(error.to_string(), "column 65537: the line is longer than 65536 bytes");
}

fn any_prefix() -> impl Strategy<Value = IpPrefix> {
    prop_oneof![
        (any::<u32>(), 0u8..=32).prop_map(|(addr, len)| IpPrefix::V4(Prefix::masked(addr, len).unwrap())),
        (any::<u128>(), 0u8..=128).prop_map(|(addr, len)| IpPrefix::V6(Prefix::masked(addr, len).unwrap())),
    ]
}

fn any_label() -> impl Strategy<Value = Label> {
    prop_oneof![
        any::<u32>().prop_map(Label::Number),
        any::<IpAddr>().prop_map(Label::Address),
        "(0|[1-9][0-9]{0,8})([_,](0|[1-9][0-9]{0,8})){1,9}"
            .prop_map(|origins| Label::Origins(origins.into())),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(prefix in any_prefix(), next_hop in any_label()) {
        let entry = Entry { prefix, next_hop };
        prop_assert_eq!(decode_route(entry.to_string().as_bytes(), HostBits::Refuse), Ok(Some(entry.clone())));
        let via = format!("\t{} via {}\r", entry.prefix, entry.next_hop);
        prop_assert_eq!(decode_route(via.as_bytes(), HostBits::Refuse), Ok(Some(entry.clone())));
        if !matches!(entry.next_hop, Label::Address(_)) {
            let pfx2as = entry.to_string().replace(['/', ' '], "\t");
            prop_assert_eq!(decode_route(pfx2as.as_bytes(), HostBits::Refuse), Ok(Some(entry)));
        }
    }

    #[test]
    fn bytes_never_panic_and_errors_point_into_the_line(line in proptest::collection::vec(any::<u8>(), 0..80)) {
        check_error(&line);
    }

    #[test]
    fn nearly_lines_never_panic(line in "[0-9a-f.:/ \t#_,via-]{0,60}") {
        check_error(line.as_bytes());
    }
}

fn check_error(line: &[u8]) {
    for host_bits in [HostBits::Refuse, HostBits::Mask] {
        match decode(line, host_bits) {
            Err(error) => {
                assert!(error.offset() <= line.len(), "{error}");
                assert!(!error.reason().to_string().contains("at byte"), "{error}");
            }
            // Whatever is accepted prints as something that means the same.
            Ok(Some(Line::Route(entry))) => {
                assert_eq!(decode_route(entry.to_string().as_bytes(), host_bits), Ok(Some(entry)));
            }
            Ok(Some(Line::Range(range))) => {
                let again = decode(range.to_string().as_bytes(), host_bits);
                assert!(matches!(again, Ok(Some(Line::Range(again))) if again == range));
            }
            Ok(Some(Line::Event(_))) => {}
            Ok(None) => {}
        }
    }
}

#[test]
fn labels_are_any_words_and_texts_in_quotes() {
    let label = |text: &str| match decode(format!("10.0.0.0/8 {text}").as_bytes(), HostBits::Refuse) {
        Ok(Some(Line::Route(entry))) => entry.next_hop,
        other => panic!("{other:?}"),
    };
    for word in ["eth0", "eth0.100", "office-berlin", "fe80::1%eth0", "Zürich", "1a", "AS64500", "a,b"] {
        assert_eq!(label(word), Label::Text(word.into()));
        assert_eq!(label(&format!("via {word}")), Label::Text(word.into()));
    }
    assert_eq!(label("-"), Label::Absent);
    for text in ["two words", "a \"quoted\" word", "back\\slash \\", "1, 2", "via"] {
        let entry = Entry { prefix: "10.0.0.0/8".parse().unwrap(), next_hop: Label::Text(text.into()) };
        assert_eq!(label(entry.to_string().strip_prefix("10.0.0.0/8 ").unwrap()), entry.next_hop, "{text}");
    }
    for (text, expected) in [
        (" 7 ", Label::Number(7)),
        ("192.0.2.1", Label::Address("192.0.2.1".parse().unwrap())),
        ("", Label::Absent),
        ("two\nlines", Label::Text("two lines".into())),
        ("1.2.3.4.5", Label::Text("1.2.3.4.5".into())),
    ] {
        assert_eq!(Label::of_text(text), expected, "{text:?}");
    }
}
