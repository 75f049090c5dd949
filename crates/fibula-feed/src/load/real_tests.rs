//! Real feeds, where `FIBULA_DATA` names a folder that has them. The names hold "real", by which they are run alone.

use std::path::PathBuf;

use super::*;

use crate::compression::{Compression, Decompressor};
use crate::mrt;

/// What other readers counted, by `tests/readers.py`.
const COUNTS: &str = include_str!("../../../../testdata/feeds.tsv");

/// Files up to this size are damaged in every way at every run; all of them with `FIBULA_DAMAGE=all`.
const SMALL_BYTES: usize = 20_000;

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("FIBULA_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: FIBULA_DATA is not set");
    }
    folder
}

fn options() -> LoadOptions {
    LoadOptions { threads: 2, ..LoadOptions::default() }
}

fn best() -> LoadOptions {
    LoadOptions { selection: Selection::Best, ..options() }
}

/// File, announcements and withdrawals of both families.
fn counts() -> impl Iterator<Item = (&'static str, [u64; 4])> {
    COUNTS.lines().filter(|line| !line.starts_with('#') && !line.starts_with("file\t")).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[0], [2, 3, 4, 5].map(|at| fields[at].parse().unwrap()))
    })
}

fn sums(report: &Report) -> [u64; 4] {
    let sum = |of: &dyn Fn(&PeerCounts) -> u64| report.peers.iter().map(of).sum();
    [
        sum(&|counts| counts.announced[0]),
        sum(&|counts| counts.announced[1]),
        sum(&|counts| counts.withdrawn[0]),
        sum(&|counts| counts.withdrawn[1]),
    ]
}

#[test]
fn real_feeds_hold_what_other_readers_count() {
    let Some(folder) = data() else { return };
    let mut files = 0;
    for (file, expected) in counts() {
        let report = survey(folder.join(file), &options(), &mut |_| ()).unwrap();
        assert_eq!(sums(&report), expected, "{file}");
        let loaded = load(folder.join(file), &best(), &mut |_| ()).unwrap();
        assert_eq!(sums(loaded.report()), expected, "{file}");
        files += 1;
        // What is cut says so, and one NLRI field ends inside its second prefix.
        let cut = file.contains("-cut.");
        assert_eq!(report.truncated.is_some(), cut, "{file}");
        assert_eq!(report.faults.iter().any(mrt::Fault::is_end), cut, "{file}");
        let broken = file.contains("trailing-bits");
        assert_eq!(
            (report.bad_lines, report.trailing_bits),
            if cut {
                (1, 0)
            } else if broken {
                (1, 1)
            } else {
                (0, 0)
            }
        );
    }
    assert_eq!(files, 26);
}

#[test]
fn real_table_of_2002() {
    let Some(folder) = data() else { return };
    let file = folder.join("mrt/rib-v1-rrc05-20020722.gz");
    let table = load(&file, &options(), &mut |_| ()).unwrap();
    let via = |table: &Table, address: u32| {
        table
            .v4
            .lookup_prefix(address)
            .map(|route| format!("{} {}", route.prefix, table.next_hops.label(route.next_hop).unwrap()))
    };
    assert_eq!(via(&table, 0xc100_068b).as_deref(), Some("193.0.0.0/21 193.203.0.1"));
    assert_eq!(via(&table, 0x0808_0808), None);
    assert_eq!(load(&file, &best(), &mut |_| ()).unwrap().v4.len(), 112_988);
}

#[test]
fn real_updates_and_their_text_make_one_table() {
    let Some(folder) = data() else { return };
    for (records, lines) in [
        ("mrt/updates-et-pch-20151023.gz", "updates/pch-transfer-20151023.upd.txt.xz"),
        ("mrt/updates-ris-20190101.gz", "updates/ris-20190101.upd.txt.xz"),
        ("mrt/updates-rrc15-20100227.gz", "updates/rrc15-20100227.upd.txt.xz"),
    ] {
        let [records, lines] =
            [records, lines].map(|file| load(folder.join(file), &options(), &mut |_| ()).unwrap());
        assert!(records.v4.iter().eq(lines.v4.iter()) && records.v6.iter().eq(lines.v6.iter()));
        assert!(records.next_hops.iter().eq(lines.next_hops.iter()));
    }
}

/// Damaged copies of a file: cut at every 1 % of its length, one byte altered in a thousand places.
fn damaged(bytes: &[u8], thin: bool) -> impl Iterator<Item = (String, Vec<u8>)> {
    let (cuts, flips) = if thin { (2, 2) } else { (100, 1000) };
    let cut = move |at: usize| (format!("cut at {at}"), bytes[..at].to_vec());
    let flip = move |at: usize| {
        let mut altered = bytes.to_vec();
        altered[at] ^= 1 << (at % 8);
        (format!("altered at {at}"), altered)
    };
    let place = move |step: usize, steps: usize| bytes.len() * step / steps;
    (0..cuts)
        .map(move |step| cut(place(step, cuts)))
        .chain((0..flips).map(move |step| flip(place(step, flips))))
}

fn load_bytes(bytes: &[u8]) -> Result<Table, LoadError> {
    load_reader("damaged", bytes, &options(), &mut |_| ())
}

fn is_same(one: &Table, other: &Table) -> bool {
    one.v4.iter().eq(other.v4.iter()) && one.v6.iter().eq(other.v6.iter())
}

#[test]
fn real_feeds_damaged() {
    let Some(folder) = data() else { return };
    let all = std::env::var_os("FIBULA_DAMAGE").is_some_and(|value| value == "all");
    let mut copies = 0;
    for (file, _) in counts() {
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let thin = !all && bytes.len() > SMALL_BYTES;
        copies += damage_compressed(file, &bytes, thin);
        copies += damage_content(&content(&folder.join(file)), thin);
    }
    eprintln!("{copies} damaged copies");
}

/// Of a compressed file whatever is damaged shows: by the checksum, or because the stream ends early.
fn damage_compressed(file: &str, bytes: &[u8], thin: bool) -> usize {
    let whole = load_bytes(bytes).unwrap();
    let mut copies = 0;
    for (what, copy) in damaged(bytes, thin) {
        copies += 1;
        match load_bytes(&copy) {
            Err(error) => assert!(error.to_string().starts_with("damaged: "), "{error}"),
            Ok(table) => {
                let report = table.report();
                let told = !report.is_complete() || copy.is_empty();
                // Bits of a header that mean nothing to the content: the time in gzip's.
                let harmless = copy.len() == bytes.len() && is_same(&table, &whole);
                // What no longer begins as a compressed file does is text of one kind or another, and bad.
                assert!(told || harmless || report.compression == Compression::Plain, "{file} {what}");
            }
        }
    }
    copies
}

/// What is not compressed has no checksum; where it is cut must show, unless it is between two records or lines.
fn damage_content(bytes: &[u8], thin: bool) -> usize {
    let mut copies = 0;
    for (what, copy) in damaged(bytes, thin) {
        copies += 1;
        let Ok(table) = load_bytes(&copy) else { continue };
        let report = table.report();
        if what.starts_with("cut") && report.content == Content::Mrt {
            let end = report.faults.iter().find(|fault| fault.is_end());
            let kept = end.map_or(copy.len() as u64, mrt::Fault::offset);
            assert!(kept + end.map_or(0, |_| report.lost_bytes) >= copy.len() as u64, "{what}");
        }
        assert_eq!((report.routes_v4, report.routes_v6), (table.v4.len() as u64, table.v6.len() as u64));
    }
    copies
}

/// What the file holds, up to where it is cut.
fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let mut input = Decompressor::new(File::open(path).unwrap()).unwrap();
    let _ = Read::read_to_end(&mut input, &mut content);
    content
}
