//! Feeds of several peers: whose routes are taken, what updates do to them, what damage leaves.

use super::*;
use crate::compression::Compression;
use crate::compression::tests::compress;
use crate::event::Event;
use crate::mrt::Fault;
use crate::mrt::tests::{attributes, message, nlri, peer_table, rib, state, table_dump, update};
use fibula::net::Key;
use fibula::rib::Rib;

const ONE: &str = "192.0.2.1";
const TWO: &str = "192.0.2.2";
const SIX: &str = "2001:db8::6";

fn options(selection: Selection) -> LoadOptions {
    LoadOptions { selection, ..LoadOptions::default() }
}

fn load_bytes(bytes: &[u8], options: &LoadOptions) -> Result<LoadedRoutes, LoadError> {
    load_reader("x", bytes, options, &mut |_| ())
}

fn print(table: &LoadedRoutes) -> String {
    fn rows<K: Key>(rib: &Rib<K>, next_hops: &NextHops) -> String {
        let row = |route: fibula::net::Route<K>| {
            format!("{} {}\n", route.prefix, next_hops.label(route.next_hop).unwrap())
        };
        rib.iter().map(row).collect()
    }
    rows(&table.ribs.v4, &table.next_hops) + &rows(&table.ribs.v6, &table.next_hops)
}

fn named(names: &[&str]) -> Selection {
    Selection::Peers(names.iter().map(|name| name.parse().unwrap()).collect())
}

/// Three peers; the second has most IPv4 routes, the third alone IPv6 ones.
fn dump() -> Vec<u8> {
    [
        peer_table(&[ONE, TWO, SIX]),
        rib("10.0.0.0/8", &[(0, None, attributes(3, 4, ONE)), (1, None, attributes(3, 4, TWO))]),
        rib("10.0.0.0/9", &[(0, None, attributes(1, 4, ONE)), (1, None, attributes(2, 4, TWO))]),
        rib("10.0.0.0/10", &[(1, None, attributes(2, 4, TWO))]),
        rib("2001:db8::/32", &[(2, None, attributes(2, 4, SIX))]),
    ]
    .concat()
}

#[test]
fn the_peer_with_most_routes_is_the_default() {
    let bytes = dump();
    for bytes in [bytes.clone(), compress(Compression::Gzip, &bytes), compress(Compression::Xz, &bytes)] {
        for threads in [1, 2, 4] {
            let options = LoadOptions { threads, strict: true, ..LoadOptions::default() };
            let table = load_bytes(&bytes, &options).unwrap();
            assert_eq!(
                print(&table),
                "10.0.0.0/8 192.0.2.2\n10.0.0.0/9 192.0.2.2\n10.0.0.0/10 192.0.2.2\n2001:db8::/32 2001:db8::6\n"
            );
            let report = table.report();
            assert_eq!((report.content, report.lines, report.bad_lines), (Content::Mrt, 5, 0));
            let counts: Vec<_> = report
                .peers
                .iter()
                .map(|counts| (counts.peer.asn, counts.announced, counts.chosen))
                .collect();
            let expected = [
                (64_501, [2, 0], [false, false]),
                (64_502, [3, 0], [true, false]),
                (64_503, [0, 1], [false, true]),
            ];
            assert_eq!(counts, expected);
        }
    }
}

#[test]
fn peers_can_be_named_and_the_best_path_asked_for() {
    let bytes = dump();
    let with = |selection| load_bytes(&bytes, &options(selection)).map(|table| print(&table));
    let one = "10.0.0.0/8 192.0.2.1\n10.0.0.0/9 192.0.2.1\n";
    assert_eq!(with(named(&[ONE])).unwrap(), one);
    assert_eq!(with(named(&["AS64501"])).unwrap(), one);
    assert_eq!(with(named(&["64503"])).unwrap(), "2001:db8::/32 2001:db8::6\n");
    // 10/8: equal lengths, the lower address; 10/9: the shorter path.
    let best = format!("{one}10.0.0.0/10 192.0.2.2\n");
    assert_eq!(with(named(&[ONE, TWO])).unwrap(), best);
    assert_eq!(with(Selection::Best).unwrap(), format!("{best}2001:db8::/32 2001:db8::6\n"));
    let error = with(named(&["192.0.2.77", "AS5"])).unwrap_err();
    assert_eq!(error.to_string(), "x: no peer matches 192.0.2.77 or AS5 (the file has 3 peers)");
    assert_eq!(error.unknown_peers().unwrap().len(), 2);
    let four = LoadOptions { family: Some(Family::Ipv4), ..options(Selection::Best) };
    assert_eq!(print(&load_bytes(&bytes, &four).unwrap()), best);
    for wrong in ["", "AS", "ASx", "1.2.3", "4294967296", "-1"] {
        assert!(wrong.parse::<PeerName>().is_err(), "{wrong}");
    }
}

/// Updates of three peers: ONE announces most but withdraws it, TWO keeps two routes, SIX loses all with its session.
fn update_bytes() -> Vec<u8> {
    let announce = |peer, prefix: &str| {
        let message_of = |attributes: &[u8]| update(&[], attributes, &nlri(prefix));
        message(peer, 4, &message_of(&attributes(1, 4, "192.0.2.9")))
    };
    let withdraw = |peer, prefix| message(peer, 4, &update(&nlri(prefix), &[], &[]));
    let (eight, nine, ten) = ("10.0.0.0/8", "10.0.0.0/9", "10.0.0.0/10");
    [
        announce(ONE, eight),
        announce(ONE, nine),
        announce(ONE, ten),
        announce(ONE, eight),
        announce(TWO, eight),
        announce(TWO, nine),
        announce(SIX, eight),
        announce(SIX, nine),
        announce(SIX, ten),
        withdraw(ONE, nine),
        withdraw(ONE, ten),
        withdraw(ONE, "10.0.0.0/11"),
        state(SIX, 6, 1),
    ]
    .concat()
}

/// The same as lines.
fn update_lines() -> String {
    let bytes = update_bytes();
    let mut lines = Vec::new();
    let mut each = |event: Event| {
        if event.ends_session() {
            let line = format!("BGP4MP|1|STATE|{SIX}|64501|6|1\n");
            lines.extend_from_slice(line.as_bytes());
            return Ok(());
        }
        crate::text::write_bgpdump(&event, &mut lines)
    };
    events_reader("x", &bytes[..], &options(Selection::Best), &mut each, &mut |_| ()).unwrap();
    String::from_utf8(lines).unwrap()
}

#[test]
fn of_updates_the_default_peer_has_most_routes_at_the_end() {
    for bytes in [update_bytes(), update_lines().into_bytes()] {
        for threads in [1, 3] {
            let options = LoadOptions { threads, ..LoadOptions::default() };
            let table = load_bytes(&bytes, &options).unwrap();
            assert_eq!(print(&table), "10.0.0.0/8 192.0.2.9\n10.0.0.0/9 192.0.2.9\n");
            let surveyed = survey_reader("x", &bytes[..], &options, &mut |_| ()).unwrap();
            for report in [table.report(), &surveyed] {
                let peers: Vec<_> = report
                    .peers
                    .iter()
                    .map(|counts| (counts.announced[0], counts.withdrawn[0], counts.routes, counts.chosen[0]))
                    .collect();
                let expected =
                    [(4, 3, Some([1, 0]), false), (2, 0, Some([2, 0]), true), (3, 0, Some([0, 0]), false)];
                assert_eq!(peers, expected);
            }
        }
        // Nothing is counted where the peers are named.
        let best = load_bytes(&bytes, &options(Selection::Best)).unwrap();
        assert!(best.report().peers.iter().all(|counts| counts.routes.is_none()));
    }
}

#[test]
fn routes_of_a_dump_are_counted_as_they_are_listed() {
    let table = load_bytes(&dump(), &LoadOptions::default()).unwrap();
    let routes: Vec<_> = table.report().peers.iter().map(|counts| counts.routes).collect();
    assert_eq!(routes, [Some([2, 0]), Some([3, 0]), Some([0, 1])]);
    // Updates after it add and take away.
    let more = [
        message(TWO, 4, &update(&nlri("10.0.0.0/8"), &[], &[])),
        message(ONE, 4, &update(&[], &attributes(1, 4, ONE), &nlri("172.16.0.0/12"))),
    ];
    let report =
        survey_reader("x", &[dump(), more.concat()].concat()[..], &LoadOptions::default(), &mut |_| ())
            .unwrap();
    let of = |address: &str| {
        let of_peer = report.peers.iter().filter(|counts| counts.peer.address.to_string() == address);
        of_peer.map(|counts| counts.routes.unwrap()[0]).sum::<u64>()
    };
    assert_eq!((of(ONE), of(TWO)), (3, 3));
}

/// A peer that announces several paths of a prefix has one route for it.
#[test]
fn paths_of_one_prefix_are_one_route_of_a_dump() {
    let paths = |index, ids: &[u32]| -> Vec<_> {
        ids.iter().map(|&id| (index, Some(id), attributes(2, 4, "192.0.2.9"))).collect()
    };
    let bytes = [
        peer_table(&[ONE, TWO]),
        rib("10.0.0.0/8", &[paths(0, &[1, 2, 3]), paths(1, &[1])].concat()),
        rib("10.1.0.0/16", &paths(1, &[1])),
    ];
    let table = load_bytes(&bytes.concat(), &LoadOptions::default()).unwrap();
    let routes: Vec<_> = table.report().peers.iter().map(|counts| counts.routes.unwrap()[0]).collect();
    assert_eq!((routes, table.ribs.v4.len()), (vec![1, 2], 2));
}

#[test]
fn counting_routes_stays_within_the_limit() {
    let announce = |index: u32| {
        let prefix = format!("10.{}.{}.0/24", index >> 8 & 255, index & 255);
        message(ONE, 4, &update(&[], &attributes(1, 4, ONE), &nlri(&prefix)))
    };
    let bytes: Vec<u8> = (0..30_000).flat_map(announce).collect();
    let limits = Limits { memory_bytes: Some(400_000), ..Limits::default() };
    let error =
        survey_reader("x", &bytes[..], &LoadOptions { limits, ..LoadOptions::default() }, &mut |_| ())
            .unwrap_err();
    assert_eq!(error.out_of_memory().unwrap().limit_bytes, Some(400_000));
    let text = error.to_string();
    assert!(text.starts_with("x: near byte "), "{text}");
    assert!(text.ends_with("; name a peer, or take the best path of all peers"), "{text}");
    assert!(!error.is_bad_input());
}

#[test]
fn updates_are_followed_by_peer_and_path() {
    let announce =
        |peer, len, prefix| message(peer, 4, &update(&[], &attributes(len, 4, peer), &nlri(prefix)));
    let withdraw = |peer, prefix| message(peer, 4, &update(&nlri(prefix), &[], &[]));
    let mut bytes = [
        announce(ONE, 1, "10.0.0.0/8"),
        announce(TWO, 2, "10.0.0.0/8"),
        announce(TWO, 2, "10.1.0.0/16"),
        announce(ONE, 3, "10.1.0.0/16"),
        withdraw(TWO, "10.2.0.0/16"),
    ]
    .concat();
    let best = |bytes: &[u8]| {
        let table = load_bytes(bytes, &options(Selection::Best)).unwrap();
        (print(&table), table.report().clone())
    };
    let (table, report) = best(&bytes);
    assert_eq!(table, "10.0.0.0/8 192.0.2.1\n10.1.0.0/16 192.0.2.2\n");
    assert_eq!((report.withdrawn_absent, report.outrivalled), (1, 2));
    // The second best comes back.
    bytes.extend(withdraw(ONE, "10.0.0.0/8"));
    assert_eq!(best(&bytes).0, "10.0.0.0/8 192.0.2.2\n10.1.0.0/16 192.0.2.2\n");
    // A session ends, and with it all of its routes; one that only comes up changes nothing.
    bytes.extend(state(TWO, 6, 1));
    bytes.extend(state(ONE, 5, 6));
    let (table, report) = best(&bytes);
    assert_eq!((&table[..], report.sessions_ended), ("10.1.0.0/16 192.0.2.1\n", 1));
    // The paths of one peer: the shorter, then that with the lower identifier.
    let path = |id: u8, len, hop| {
        let nlri = [vec![0, 0, 0, id], nlri("10.0.0.0/8")].concat();
        message(ONE, 9, &update(&[], &attributes(len, 4, hop), &nlri))
    };
    let paths = [path(9, 2, "192.0.2.9"), path(8, 2, "192.0.2.8"), path(7, 3, "192.0.2.7")].concat();
    assert_eq!(best(&paths).0, "10.0.0.0/8 192.0.2.8\n");
}

#[test]
fn updates_follow_a_dump_where_that_is_clear() {
    let change = message(TWO, 4, &update(&nlri("10.0.0.0/8"), &attributes(1, 4, ONE), &nlri("10.3.0.0/16")));
    let first = [peer_table(&[TWO]), rib("10.0.0.0/8", &[(0, None, attributes(3, 4, TWO))]), change.clone()];
    let table = load_bytes(&first.concat(), &options(Selection::Best)).unwrap();
    assert_eq!(print(&table), "10.3.0.0/16 192.0.2.1\n");
    let contested = [dump(), change].concat();
    let error = load_bytes(&contested, &options(Selection::Best)).unwrap_err();
    assert!(error.to_string().contains("updates follow a table dump with several paths a prefix"), "{error}");
    assert!(load_bytes(&contested, &LoadOptions::default()).is_ok());
}

#[test]
fn several_feeds_meet_by_the_rule() {
    let folder = std::env::temp_dir().join(format!("fibula-feeds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let long = write("long", &table_dump("10.0.0.0/8", ONE, 64_501, &attributes(5, 2, "192.0.2.15")));
    let short = write("short", &table_dump("10.0.0.0/8", TWO, 64_502, &attributes(2, 2, "192.0.2.12")));
    let plain = write("plain", b"10.0.0.0/8 7\n11.0.0.0/8 7\n12.0.0.0/8 7\n12.0.0.0/8 8\n");
    let other = write("other", b"11.0.0.0/8 9\n");
    let lines =
        write("lines", b"1 a 10.0.0.0/8 192.0.2.50 192.0.2.3 5 6\n1 a 11.0.0.0/8 192.0.2.50 192.0.2.3 5 -\n");
    let load = |paths: &[&std::path::PathBuf]| {
        let table = load_all(paths, &options(Selection::Best), &mut |_| ()).unwrap();
        assert_eq!(table.reports.len(), paths.len());
        print(&table)
    };
    // The shorter path, whichever comes first; a table without peers before all of them; then the first.
    for paths in [[&long, &short], [&short, &long]] {
        assert_eq!(load(&paths), "10.0.0.0/8 192.0.2.12\n");
    }
    for paths in [[&long, &short, &plain, &other], [&plain, &short, &other, &long]] {
        assert_eq!(load(&paths), "10.0.0.0/8 7\n11.0.0.0/8 7\n12.0.0.0/8 8\n");
    }
    assert_eq!(load(&[&other, &plain]), "10.0.0.0/8 7\n11.0.0.0/8 9\n12.0.0.0/8 8\n");
    assert_eq!(load(&[&plain, &lines]), "10.0.0.0/8 7\n11.0.0.0/8 7\n12.0.0.0/8 8\n");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn lines_with_peers_are_chosen_from_as_records_are() {
    let text = "\
# updates
1 a 10.0.0.0/8 192.0.2.11 192.0.2.1 64501 -
1 a 10.1.0.0/16 192.0.2.12 192.0.2.2 64502 64500
2 a 10.2.0.0/16 192.0.2.12 192.0.2.2 64502 64500
2 a 10.3.0.0/16 192.0.2.12 192.0.2.2 64502 64500
3 w 10.2.0.0/16 - 192.0.2.2 64502 -
";
    let table = load_bytes(text.as_bytes(), &LoadOptions::default()).unwrap();
    assert_eq!(print(&table), "10.1.0.0/16 192.0.2.12\n10.3.0.0/16 192.0.2.12\n");
    let report = table.report();
    assert_eq!((report.content, report.lines, report.comments, report.bad_lines), (Content::Text, 6, 1, 0));
    assert_eq!(report.peers[1].withdrawn, [1, 0]);
    // -M has no next hop; states of sessions are no routes, but may end them.
    let dumped = "\
TABLE_DUMP2|05/23/14 06:00:00|B|192.0.2.1|64501|10.0.0.0/8|64501 {64502,64503} (65001)|IGP
BGP4MP|1700000000|STATE|192.0.2.2|64502|1|3
BGP4MP|1700000000.5|A|192.0.2.2|64502|10.0.0.0/8|64502|IGP|192.0.2.99|0|0||NAG||
BGP4MP|1700000000|STATE|192.0.2.2|64502|6|1
TABLE_DUMP2|1|B|192.0.2.1|64501|10.1.0.0/16|64501|IGP|255.255.255.255|0|0||NAG||
10.0.0.0/8 192.0.2.5
";
    let table = load_bytes(dumped.as_bytes(), &options(named(&[ONE]))).unwrap();
    assert_eq!(print(&table), "10.0.0.0/8 192.0.2.1\n");
    let bad: Vec<_> = table.report().first_bad.iter().map(ToString::to_string).collect();
    assert_eq!(bad[0], "x:5:55: no next hop after the prefix");
    assert!(bad[1].starts_with("x:6:1: lines with and without a peer are mixed"), "{}", bad[1]);
    let mixed = load_bytes(b"10.0.0.0/8 1\n1 w 10.0.0.0/8 - 192.0.2.2 64502 -\n", &LoadOptions::default());
    assert_eq!(mixed.unwrap().report().bad_lines, 1);
}

#[test]
fn a_stream_that_must_be_read_twice_is_kept_up_to_the_limit() {
    let limits = |bytes| Limits { memory_bytes: Some(bytes), ..Limits::default() };
    let mut bytes = dump();
    for index in 0..20_000u32 {
        let prefix = format!("10.{}.{}.0/24", index >> 8 & 255, index & 255);
        bytes.extend(rib(&prefix, &[(0, None, attributes(1, 4, ONE))]));
    }
    let error =
        load_bytes(&bytes, &LoadOptions { limits: limits(200_000), ..LoadOptions::default() }).unwrap_err();
    assert!(error.to_string().starts_with("x: to find the peer with most routes"), "{error}");
    // Where the peer is named nothing is kept.
    let error =
        load_bytes(&bytes, &LoadOptions { limits: limits(200_000), ..options(named(&[ONE])) }).unwrap_err();
    assert_eq!(error.out_of_memory().unwrap().limit_bytes, Some(200_000));
    assert!(error.to_string().contains("x: near byte "), "{error}");
    assert_eq!(
        load_bytes(&bytes, &LoadOptions { threads: 3, ..LoadOptions::default() }).unwrap().ribs.v4.len(),
        20_002
    );
    let mut seen = Vec::new();
    load_reader("x", &bytes[..], &LoadOptions::default(), &mut |progress| seen.push(progress)).unwrap();
    assert!(seen.first().unwrap().counting && !seen.last().unwrap().counting);
    assert_eq!(seen.last().unwrap().lines, 20_005);
}

#[test]
fn damaged_files_say_what_was_lost() {
    let bytes = dump();
    let whole = load_bytes(&bytes, &options(Selection::Best)).unwrap();
    for cut in 0..bytes.len() {
        let table = match load_bytes(&bytes[..cut], &options(Selection::Best)) {
            Ok(table) => table,
            // What is shorter than a header is too short to be taken for MRT.
            Err(error) => {
                assert!(cut < 12 && error.to_string().contains("not a routing table"), "{cut} {error}");
                continue;
            }
        };
        let kept = print(&table);
        assert!(kept.lines().all(|line| print(&whole).contains(line)));
        let report = table.report();
        if report.content == Content::Mrt {
            let ended = report.faults.iter().find(|fault| fault.is_end());
            assert_eq!(ended.is_none(), report.lost_bytes == 0);
            let end = ended.map_or(cut as u64, Fault::offset);
            assert_eq!(end + report.lost_bytes, cut as u64);
            let strict = LoadOptions { strict: true, ..options(Selection::Best) };
            assert_eq!(load_bytes(&bytes[..cut], &strict).is_err(), ended.is_some());
        }
    }
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            for threads in [1, 2] {
                let table = load_bytes(&bytes, &LoadOptions { threads, ..options(Selection::Best) });
                if let Ok(table) = table {
                    table.ribs.v4.check().unwrap();
                    table.ribs.v6.check().unwrap();
                }
            }
        }
    }
    let zip = compress(Compression::Gzip, &bytes);
    for cut in 20..zip.len() {
        let table = load_bytes(&zip[..cut], &LoadOptions::default()).unwrap();
        assert_eq!(table.report().truncated.as_ref().unwrap().bytes(), cut as u64);
        assert!(!table.report().is_complete());
    }
}
