//! What is recognised and left out is counted by kind, and refused where it may hold routes.

use super::*;
use crate::mrt::tests::{attributes, legacy_state, legacy_update, message, nlri, record, rib, state, update};

const ONE: &str = "192.0.2.1";

fn load_bytes(bytes: &[u8], strict: bool, threads: usize) -> Result<LoadedRoutes, LoadError> {
    let options = LoadOptions { selection: Selection::Best, strict, threads, ..LoadOptions::default() };
    load_reader("x", bytes, &options, &mut |_| ())
}

fn skipped(report: &Report) -> Vec<(&'static str, u64)> {
    report.skipped.iter().map(|(kind, &count)| (kind.name(), count)).collect()
}

/// MP_REACH_NLRI of a family, without routes.
fn reach(afi: u16, safi: u8) -> Vec<u8> {
    let [high, low] = afi.to_be_bytes();
    let attribute = [0x80, 14, 5, high, low, safi, 0, 0];
    message(ONE, 4, &update(&[], &attribute, &[]))
}

#[test]
fn everything_left_out_is_counted_by_kind() {
    let route = message(ONE, 4, &update(&[], &attributes(1, 4, ONE), &nlri("10.0.0.0/8")));
    let mut multicast = rib("10.0.0.0/8", &[]);
    multicast[7] = 3;
    let with_routes = [
        ("EVPN", reach(25, 70)),
        ("IPv4 VPN", reach(1, 128)),
        ("IPv4 labelled unicast", reach(1, 4)),
        ("IPv4 multicast", multicast),
        ("ISIS", record(32, 0, &[1, 2, 3])),
        ("OSPFv2", record(11, 0, &[1, 2, 3])),
        ("BGP4PLUS", record(9, 1, &[1, 2, 3])),
        ("BGP_PREF_UPDATE", record(5, 2, &[])),
        ("other address families", reach(77, 99)),
    ];
    for threads in [1, 3] {
        for (name, bytes) in &with_routes {
            let bytes = [&route[..], bytes, bytes, &route].concat();
            let table = load_bytes(&bytes, false, threads).unwrap();
            assert_eq!(skipped(table.report()), [(*name, 2)]);
            assert_eq!((table.ribs.v4.len(), table.report().bad_lines), (1, 0), "{name}");
            assert!(!table.report().is_complete() && table.report().faults.is_empty(), "{name}");
            let error = load_bytes(&bytes, true, threads).unwrap_err();
            let error_text = error.to_string();
            assert!(error_text.ends_with(&format!(": {name} is not read")), "{error_text}");
            let place = error.fault().unwrap().offset();
            assert!(
                (route.len() as u64..(bytes.len() - route.len()) as u64).contains(&place),
                "{error_text}"
            );
            assert!(error.is_bad_input());
        }
    }
}

#[test]
fn sessions_are_counted_and_never_refused() {
    let keepalive = message(ONE, 4, &[&[0xff; 16][..], &[0, 19, 4]].concat());
    let bytes = [
        state(ONE, 5, 6),
        keepalive.clone(),
        keepalive,
        message(ONE, 7, &[]),
        legacy_state("192.0.2.2", 7, 1, 2),
        record(5, 7, &[]),
        record(13, 7, &[]),
    ]
    .concat();
    let table = load_bytes(&bytes, true, 1).unwrap();
    let expected = [
        ("BGP KEEPALIVE", 3),
        ("BGP4MP local messages", 1),
        ("GEO_PEER_TABLE", 1),
        ("session state changes", 2),
    ];
    assert_eq!(skipped(table.report()), expected);
    assert!(table.report().is_complete());
    // Lines of text have states as well.
    let lines = format!("BGP4MP|1|STATE|{ONE}|7|5|6\nBGP4MP|1|STATE|{ONE}|7|6|1\n");
    let table = load_bytes(lines.as_bytes(), true, 1).unwrap();
    assert_eq!(skipped(table.report()), [("session state changes", 1)]);
    assert_eq!(table.report().sessions_ended, 1);
}

#[test]
fn the_end_of_a_session_alone_changes_a_table() {
    let route = message(ONE, 4, &update(&[], &attributes(1, 4, ONE), &nlri("10.0.0.0/8")));
    let keepalive = message(ONE, 4, &[&[0xff; 16][..], &[0, 19, 4]].concat());
    for (after, routes) in [
        (keepalive, 1),
        (message(ONE, 7, &[]), 1),
        (state(ONE, 5, 6), 1),
        (record(5, 7, &[]), 1),
        (record(13, 7, &[]), 1),
        (state("192.0.2.2", 6, 1), 1),
        (state(ONE, 6, 1), 0),
    ] {
        let table = load_bytes(&[&route[..], &after].concat(), true, 1).unwrap();
        assert_eq!(table.ribs.v4.len(), routes, "{after:?}");
    }
}

#[test]
fn the_early_format_makes_a_table() {
    let announce =
        |peer, prefix| legacy_update(peer, 7, &update(&[], &attributes(1, 2, peer), &nlri(prefix)));
    let mut bytes = [announce(ONE, "10.0.0.0/8"), announce("192.0.2.2", "10.1.0.0/16")].concat();
    bytes.extend(legacy_state(ONE, 7, 6, 1));
    let table = load_bytes(&bytes, true, 1).unwrap();
    let routes: Vec<_> = table.ribs.v4.iter().map(|route| route.prefix.to_string()).collect();
    assert_eq!(routes, ["10.1.0.0/16"]);
    assert_eq!((table.report().sessions_ended, table.report().lines), (1, 3));
}
