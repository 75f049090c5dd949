//! Inputs made to be expensive: the work for them is bounded by their length, input without routes is given up, other
//! formats are refused by name.

use std::io::{self, Read};

use super::choice::Wanted;
use super::input::Input;
use super::loader::LoadSession;
use super::routes::Routes;
use super::*;
use crate::compression::tests::compress;
use crate::compression::{Compression, OtherForm};
use crate::ledger::Ledger;
use crate::mrt::tests::{attributes, message, nlri, peer_table, record, rib, state, table_dump, update};
use crate::mrt::{Header, MAX_RECORD_BYTES};

const ONE: &str = "192.0.2.1";

/// Most steps for a byte: a few looks at each place, and a few moves.
const STEPS: u64 = 12;

fn within(memory_bytes: usize) -> LoadOptions {
    LoadOptions {
        limits: Limits { memory_bytes: Some(memory_bytes), huge_pages: false },
        ..LoadOptions::default()
    }
}

fn read(bytes: &[u8]) -> Result<LoadedRoutes, LoadError> {
    load_reader("x", bytes, &LoadOptions::default(), &mut |_| ())
}

fn refused(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

/// The steps of one reading, and what it reports.
fn steps(bytes: &[u8], threads: usize) -> (u64, Report) {
    let options = LoadOptions { threads, selection: Selection::Best, ..LoadOptions::default() };
    let mut loader = LoadSession::new(&options, None);
    let mut pass = loader.pass(&"x".into(), Some(Wanted::All), None);
    pass.run(&mut &bytes[..], &mut |_| ()).unwrap();
    let outcome = pass.outcome();
    (outcome.steps, outcome.report)
}

/// A list of as many peers as there can be.
fn long_peer_table() -> Vec<u8> {
    let addresses: Vec<String> =
        (0..u16::MAX).map(|index| format!("10.1.{}.{}", index >> 8, index & 255)).collect();
    peer_table(&addresses.iter().map(String::as_str).collect::<Vec<_>>())
}

fn route(index: u32) -> Vec<u8> {
    let prefix = format!("10.{}.{}.0/24", index >> 8 & 255, index & 255);
    rib(&prefix, &[(0, None, attributes(1, 4, ONE))])
}

#[test]
fn the_work_is_linear_in_the_bytes() {
    let routes: Vec<u8> = (0..20_000).flat_map(route).collect();
    let with = |bytes: Vec<u8>| [long_peer_table(), bytes].concat();
    let alternating: Vec<u8> = (0..20_000).flat_map(|index| [route(index), vec![0xff]].concat()).collect();
    let claims = |len: u32| -> Vec<u8> {
        let header = [&[0x65, 0, 0, 0, 0, 13, 0, 2][..], &len.to_be_bytes()].concat();
        header.repeat((9 << 20) / header.len())
    };
    let peers: Vec<u8> = (0..50_000_u32)
        .flat_map(|index| {
            let peer = format!("10.{}.{}.1", index >> 8, index & 255);
            table_dump("192.0.2.0/24", &peer, index as u16, &attributes(1, 2, ONE))
        })
        .collect();
    // Early writers put several routes into one record: here each of another peer.
    let bodies: Vec<u8> = (0..50_000_u32)
        .flat_map(|index| {
            let peer = format!("10.{}.{}.1", index >> 8, index & 255);
            table_dump("192.0.2.0/24", &peer, index as u16, &[])[Header::BYTES + 4..].to_vec()
        })
        .collect();
    let one_record = record(12, 1, &[&[0, 0, 0, 1][..], &bodies].concat());
    let cases = [
        ("good", with(routes.clone())),
        ("all damaged", with(routes.iter().map(|byte| byte ^ 0xff).collect())),
        ("every other byte damaged", {
            with(routes.iter().enumerate().map(|(at, byte)| byte ^ [0, 0xff][at % 2]).collect())
        }),
        ("damage after each record", with(alternating)),
        ("long lists of peers", [long_peer_table(), route(0)].concat().repeat(4)),
        ("short lists of peers", [peer_table(&[ONE]), route(0)].concat().repeat(20_000)),
        ("claims of the longest record", with(claims((MAX_RECORD_BYTES - Header::BYTES) as u32))),
        ("claims of long records", with(claims(1 << 20))),
        ("empty records", record(13, 2, &[]).repeat(100_000)),
        ("a peer a record", peers),
        ("a peer a route of one record", one_record),
        ("zeros after a record", [route(0), vec![0; 12 << 20]].concat()),
    ];
    for (name, bytes) in &cases {
        for threads in [1, 3] {
            let (steps, report) = steps(bytes, threads);
            let most = STEPS * bytes.len() as u64 + 70_000 * threads as u64;
            assert!(steps > report.lines && steps <= most, "{name}: {steps} steps for {} bytes", bytes.len());
        }
    }
    let zeros = compress(Compression::Gzip, &vec![0; 20 << 20]);
    assert_eq!(refused(&zeros), "x: no route in the first 16 MiB");
}

#[test]
fn a_damaged_place_is_told_once_however_long_it_is() {
    // Longer than what is looked at in one piece.
    let lost = vec![0xfe; 3 * MAX_RECORD_BYTES];
    let start = [peer_table(&[ONE]), route(0), route(1)].concat();
    let bytes = [&start[..], &lost, &route(2), &route(3), &[0xfe; 5], &route(4), &route(5)].concat();
    for threads in [1, 3] {
        let (_, report) = steps(&bytes, threads);
        let told: Vec<_> = report.faults.iter().map(|fault| (fault.offset(), fault.lost_bytes())).collect();
        let second = start.len() + lost.len() + 2 * route(2).len();
        let expected = [(start.len() as u64, Some(lost.len() as u64)), (second as u64, Some(5))];
        assert_eq!(told, expected);
        assert_eq!((report.bad_lines, report.lost_bytes), (2, lost.len() as u64 + 5));
        assert_eq!(report.lines, 7);
    }
    // Bytes at the end that may be the rest of a record are told once, too.
    let (_, report) = steps(&[&start[..], &lost].concat(), 1);
    assert_eq!((report.bad_lines, report.lost_bytes), (1, lost.len() as u64));
}

#[test]
fn listed_peers_count_once_for_each_list() {
    // Several blocks of records follow one list.
    let bytes = [peer_table(&[ONE, "192.0.2.2"]), (0..20_000).flat_map(route).collect()].concat();
    let report = survey_reader("x", &bytes[..], &LoadOptions::default(), &mut |_| ()).unwrap();
    let counts: Vec<_> = report.peers.iter().map(|counts| counts.announced[0]).collect();
    assert_eq!(counts, [20_000, 0]);
}

#[test]
fn what_is_withdrawn_gives_its_memory_back() {
    let ledger = Ledger::new(Some(4 << 20));
    let mut routes = Routes::new(within(4 << 20).limits, &ledger);
    let mut report = Report::new("x".into());
    let mut peers = 0;
    let mut run = |bytes: &[u8]| {
        let options = within(4 << 20);
        let mut events = Vec::new();
        let mut each = |event| {
            events.push(event);
            Ok(())
        };
        let best = LoadOptions { selection: Selection::Best, ..options };
        events_reader("x", bytes, &best, &mut each, &mut |_| ()).unwrap();
        peers += 1;
        for event in events {
            routes.event(event, &mut report).unwrap();
        }
        ledger.used_bytes()
    };
    let announce = |index: u32| {
        let prefix = format!("10.{}.{}.0/24", index >> 8 & 255, index & 255);
        message(ONE, 4, &update(&[], &attributes(1, 4, ONE), &nlri(&prefix)))
    };
    let withdraw = |index: u32| {
        let prefix = format!("10.{}.{}.0/24", index >> 8 & 255, index & 255);
        message(ONE, 4, &update(&nlri(&prefix), &[], &[]))
    };
    // The peer, the next hop and the candidate stay known.
    let before = run(&[announce(0), state(ONE, 6, 1)].concat());
    let many: Vec<u8> = (0..2_000).flat_map(announce).collect();
    let held = run(&many);
    assert!(held > before + 2_000 * size_of::<crate::event::Path>(), "{before} {held}");
    assert_eq!(run(&state(ONE, 6, 1)), before, "the session has ended");
    // Withdrawn one by one they make room for as many others.
    run(&many);
    for round in 1..20 {
        let change = |index: u32| [withdraw(index + 2_000 * (round - 1)), announce(index + 2_000 * round)];
        let now = run(&(0..2_000).flat_map(change).flatten().collect::<Vec<u8>>());
        // A hash table grows once where many of its entries come and go.
        assert!(now <= 2 * held, "{round}: {now}");
    }
    assert_eq!(run(&state(ONE, 6, 1)), before);
    assert_eq!(report.withdrawn_absent, 0);
}

#[test]
fn a_load_gives_all_its_memory_back() {
    let bytes = [peer_table(&[ONE]), (0..2_000).flat_map(route).collect()].concat();
    let options = within(8 << 20);
    let mut loader = LoadSession::new(&options, None);
    let ledger = loader.ledger.clone();
    let input = Input::stream(&bytes[..], &ledger);
    loader.feed("x".into(), input, false, &mut |_| ()).unwrap();
    assert!(ledger.used_bytes() > 2_000 * 20);
    let table = loader.finish().unwrap();
    assert_eq!((ledger.used_bytes(), table.ribs.v4.len()), (0, 2_000));
}

#[test]
fn the_parts_of_a_load_share_one_limit() {
    // As many next hops as prefixes: neither fills the limit alone.
    let text: String = (0..6_000_u32).map(|i| format!("10.{}.{}.0/24 {i}\n", i >> 8, i & 255)).collect();
    assert!(load_reader("x", text.as_bytes(), &within(2 << 20), &mut |_| ()).is_ok());
    let error = load_reader("x", text.as_bytes(), &within(400_000), &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("the memory limit is 400000 bytes"), "{error}");
    let few: String = (0..6_000_u32).map(|i| format!("10.{}.{}.0/24 7\n", i >> 8, i & 255)).collect();
    assert!(load_reader("x", few.as_bytes(), &within(800_000), &mut |_| ()).is_ok());
}

#[test]
#[cfg(unix)]
fn a_fifo_is_read_like_a_stream() {
    let path = std::env::temp_dir().join(format!("fibula-feed-fifo-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let bytes = [peer_table(&[ONE, "192.0.2.2"]), (0..5_000).flat_map(route).collect()].concat();
    let written = |bytes: &[u8], read: &dyn Fn()| {
        std::thread::scope(|scope| {
            // A reader that stops early breaks the pipe.
            scope.spawn(|| drop(std::fs::write(&path, bytes)));
            read();
        });
    };
    written(&bytes, &|| {
        let mut seen = Vec::new();
        let table = load(&path, &LoadOptions::default(), &mut |progress| seen.push(progress)).unwrap();
        assert_eq!((table.ribs.v4.len(), table.report().peers.len()), (5_000, 2));
        assert!(seen.iter().all(|progress| progress.bytes_total.is_none()));
        assert!(seen.first().unwrap().counting && !seen.last().unwrap().counting);
    });
    written(&bytes, &|| {
        let report = survey(&path, &LoadOptions::default(), &mut |_| ()).unwrap();
        assert_eq!(report.peers[0].announced[0], 5_000);
    });
    written(&bytes, &|| {
        let mut count = 0;
        let mut each = |_| {
            count += 1;
            Ok(())
        };
        events(&path, &LoadOptions::default(), &mut each, &mut |_| ()).unwrap();
        assert_eq!(count, 5_000);
    });
    written(&bytes, &|| {
        let error = load(&path, &within(100_000), &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("at most 100 kB of it can be kept"), "{error}");
    });
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn input_that_never_becomes_a_table_ends() {
    struct Endless(&'static [u8], usize);

    impl Read for Endless {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            for byte in &mut *buf {
                *byte = self.0[self.1 % self.0.len()];
                self.1 += 1;
            }
            Ok(buf.len())
        }
    }

    for bytes in [&b"\0"[..], b"\n", b"# no route\n", b" \t", b"x", b"\0\0\0\x01\0\0\0\x01\0\0\0\0", b"# x"] {
        for selection in [Selection::MostRoutes, Selection::Best] {
            let mut input = Endless(bytes, 0);
            let options = LoadOptions { selection, ..within(64 << 20) };
            let error = load_reader("x", &mut input, &options, &mut |_| ()).unwrap_err();
            assert_eq!(error.to_string(), "x: no route in the first 16 MiB", "{bytes:?}");
            assert!(error.is_bad_input());
            assert!(input.1 as u64 <= MAX_UNSETTLED_BYTES + (8 << 20), "{}", input.1);
        }
    }
    // Whatever comes first, one route settles it.
    let long =
        [b"# a licence\n".repeat(1 << 20), b"10.0.0.0/8 1\n".to_vec(), b"\n".repeat(17 << 20)].concat();
    assert_eq!(read(&long).unwrap().ribs.v4.len(), 1);
    // Records that hold no route are records.
    let sessions = [state(ONE, 1, 2).repeat(500_000), route(0)].concat();
    assert!(sessions.len() as u64 > MAX_UNSETTLED_BYTES && read(&sessions).is_ok());
}

#[test]
fn other_forms_are_refused_by_name() {
    let zip = [&b"PK\x03\x04\x14\0\0\0\x08\0"[..], &[7; 100]].concat();
    let tar = [&[b'x'; 257][..], b"ustar\x0000", &[0; 300]].concat();
    let parquet = [&b"PAR1\x15\x04\x15"[..], &[1; 60]].concat();
    for (bytes, error) in [
        (zip.clone(), "x is a zip archive; unpack it first: unzip -p x | fibula ... --table -"),
        (tar.clone(), "x is a tar archive; unpack it first: tar -xOf x | fibula ... --table -"),
        (
            compress(Compression::Gzip, &tar),
            "x is a tar archive in gzip; unpack it first: gzip -dc x | tar -xOf - | fibula ... --table -",
        ),
        (
            compress(Compression::Zstd, &compress(Compression::Gzip, b"10.0.0.0/8 1\n")),
            "x is a gzip stream in zstd; unpack it first: zstd -dc x | gzip -dc | fibula ... --table -",
        ),
        (parquet, "x is a Parquet file, which is not read here"),
    ] {
        assert_eq!(refused(&bytes), error);
        assert!(read(&bytes).unwrap_err().is_bad_input());
    }
    // The seconds of this record are those bytes.
    let mut bytes = [route(0), route(1)].concat();
    bytes[..4].copy_from_slice(b"PK\x03\x04");
    assert!(OtherForm::recognise(&bytes).is_some());
    assert_eq!(read(&bytes).unwrap().report().lines, 2);
}

/// Most steps for a byte of a text: a quoted field that is given up is read again, and lists are entered one by one.
const TEXT_STEPS: u64 = 64;

#[test]
fn the_work_for_hostile_texts_is_linear_in_the_bytes() {
    for form in TableForm::ALL.iter().filter(|form| form.is_text()) {
        for hostile in form.hostile {
            let bytes = (hostile.make)();
            let options = LoadOptions { selection: Selection::Best, ..LoadOptions::default() };
            let mut session = LoadSession::new(&options, None);
            let mut pass = session.pass(&"x".into(), Some(Wanted::All), None);
            let _refused = pass.run(&mut &bytes[..], &mut |_| ());
            let steps = pass.outcome().steps;
            assert!(
                steps <= TEXT_STEPS * bytes.len() as u64,
                "{}: {steps} steps for {}",
                hostile.name,
                bytes.len()
            );
        }
    }
}

#[test]
fn a_stream_that_grows_too_much_is_refused() {
    // A frame of zstd: a line as it is, and blocks of one byte repeated 128 Ki times.
    let line = b"10.0.0.0/8 1\n";
    let frame = |blocks: u32| {
        let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
        bytes.extend(&((line.len() as u32) << 3).to_le_bytes()[..3]);
        bytes.extend(line);
        for block in 1..=blocks {
            bytes.extend(&((128 << 10) << 3 | 1 << 1 | u32::from(block == blocks)).to_le_bytes()[..3]);
            bytes.push(b'\n');
        }
        bytes
    };
    // Of 64 MiB less a block, nothing is refused, whatever the ratio.
    assert!(load_reader("x", &frame(511)[..], &LoadOptions::default(), &mut |_| ()).is_ok());
    let bytes = frame(600);
    let error = refused(&bytes);
    assert!(
        error.contains("more than 2000 bytes for one of its own") && error.contains("--any-ratio"),
        "{error}"
    );
    let options = LoadOptions { any_ratio: true, ..LoadOptions::default() };
    assert!(load_reader("x", &bytes[..], &options, &mut |_| ()).is_ok());
}

#[test]
fn a_text_most_of_whose_lines_are_no_routes_is_refused() {
    let page = "<!DOCTYPE html>\n<html>\n<body>10.0.0.0/8 1</body>\n10.0.0.0/8 1\n</html>\n";
    let error = read(page.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "x: not a routing table: 4 of its first 5 lines are not routes; line 1, column 1: not an IP address: \
         unexpected '<': '<!DOCTYPE html>'; read are MRT, MaxMind DB, JSON, the output of 'birdc', of 'vtysh', \
         of 'ip route', lines of 'PREFIX NEXT-HOP', CSV, and more: docs/guide/routes.md"
    );
    assert!(error.is_bad_input());
    assert_eq!(error.bad_line().unwrap().line(), 1);
    // A bracket alone does not make a text JSON.
    let settings = refused(b"[workspace]\nmembers = []\n");
    assert!(
        settings.contains("line 1, column 1: not an IP address: unexpected '[': '[workspace]'"),
        "{settings}"
    );
    // Few of a few, and up to half of all, are warnings.
    let good = |count: u32| -> String {
        (0..count).map(|i| format!("10.{}.{}.0/24 1\n", i >> 8, i & 255)).collect()
    };
    let bad = |count: usize| "no route\n".repeat(count);
    for text in [
        good(3) + &bad(1),
        bad(1) + &good(1),
        good(501) + &bad(499),
        good(500) + &bad(500),
        good(1000) + &bad(900),
        "# comment\n\n".repeat(3000) + &good(1),
    ] {
        read(text.as_bytes()).unwrap();
    }
    let refusals = [bad(1), bad(2) + &good(1), good(499) + &bad(501) + &good(9000), good(1000) + &bad(1001)];
    for text in refusals {
        assert!(refused(text.as_bytes()).contains("not a routing table"));
    }
}
