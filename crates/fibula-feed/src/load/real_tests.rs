//! Real feeds, in the folder that `FIBULA_DATA` names: `cargo test -p fibula-feed --lib real -- --ignored`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

use crate::compression::{Compression, Decompressor};
use crate::mrt;

/// What other readers counted, by `tests/readers.py`. Read only when a test needs it, because the published crate does
/// not contain it.
static COUNTS: LazyLock<String> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/feeds.tsv");
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"))
});

/// Files up to this size are damaged in every way at every run; all of them with `FIBULA_DAMAGE=all`. `FIBULA_DAMAGED` names one file alone.
const SMALL_BYTES: usize = 20_000;

fn data() -> PathBuf {
    std::env::var_os("FIBULA_DATA").expect("FIBULA_DATA names the folder of real feeds").into()
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
#[ignore = "needs FIBULA_DATA"]
fn real_feeds_hold_what_other_readers_count() {
    let folder = data();
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
#[ignore = "needs FIBULA_DATA"]
fn real_table_of_2002() {
    let folder = data();
    let file = folder.join("mrt/rib-v1-rrc05-20020722.gz");
    let table = load(&file, &options(), &mut |_| ()).unwrap();
    let via = |table: &LoadedRoutes, address: u32| {
        table
            .ribs
            .v4
            .lookup_prefix(address)
            .map(|route| format!("{} {}", route.prefix, table.next_hops.label(route.next_hop).unwrap()))
    };
    assert_eq!(via(&table, 0xc100_068b).as_deref(), Some("193.0.0.0/21 193.203.0.1"));
    assert_eq!(via(&table, 0x0808_0808), None);
    assert_eq!(load(&file, &best(), &mut |_| ()).unwrap().ribs.v4.len(), 112_988);
}

#[test]
#[ignore = "needs FIBULA_DATA"]
fn real_updates_and_their_text_make_one_table() {
    let folder = data();
    for (records, lines) in [
        ("mrt/updates-et-pch-20151023.gz", "updates/pch-transfer-20151023.upd.txt.xz"),
        ("mrt/updates-ris-20190101.gz", "updates/ris-20190101.upd.txt.xz"),
        ("mrt/updates-rrc15-20100227.gz", "updates/rrc15-20100227.upd.txt.xz"),
    ] {
        let [records, lines] =
            [records, lines].map(|file| load(folder.join(file), &options(), &mut |_| ()).unwrap());
        assert!(records.ribs.iter().eq(lines.ribs.iter()));
        assert!(records.next_hops.iter().eq(lines.next_hops.iter()));
    }
}

/// A way to damage a file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut(usize),
    Flip(usize),
    /// As `Flip`, and of the file only its beginning and what is around.
    FlipInside(usize),
}

impl Damage {
    /// On each side of a place, what it can matter to: several records of any kind.
    const AROUND_BYTES: usize = 256 << 10;

    /// Of a file of `len` bytes: cut at every 1 % of its length, one byte altered in a thousand places.
    fn all(len: usize, thin: bool) -> Vec<Self> {
        let (cuts, flips) = if thin { (2, 2) } else { (100, 1000) };
        let cuts = (0..cuts).map(|step| Self::Cut(len * step / cuts));
        cuts.chain((0..flips).map(|step| Self::Flip(len * step / flips))).collect()
    }

    /// The same where records and lines stand for themselves: of ten altered copies one is whole.
    fn all_inside(len: usize, thin: bool) -> Vec<Self> {
        let inside = |(index, damage)| match damage {
            Self::Flip(at) if index % 10 != 0 => Self::FlipInside(at),
            other => other,
        };
        Self::all(len, thin).into_iter().enumerate().map(inside).collect()
    }

    fn place(self) -> usize {
        match self {
            Self::Cut(at) | Self::Flip(at) | Self::FlipInside(at) => at,
        }
    }

    fn copy(self, bytes: &[u8]) -> Vec<u8> {
        let altered = |from: usize, to: usize, at: usize| {
            let mut altered = bytes[from..to].to_vec();
            altered[at - from] ^= 1 << (at % 8);
            altered
        };
        match self {
            Self::Cut(at) => bytes[..at].to_vec(),
            Self::Flip(at) => altered(0, bytes.len(), at),
            Self::FlipInside(at) => {
                let from = at.saturating_sub(Self::AROUND_BYTES);
                let around = altered(from, bytes.len().min(at + Self::AROUND_BYTES), at);
                // The peers are at the beginning.
                [&bytes[..from.min(Self::AROUND_BYTES)], &around].concat()
            }
        }
    }
}

/// Damages a file in these ways and judges what each copy loads as, several copies at a time. Every eighth copy is read
/// twice to choose a peer, another eighth decoded by several threads.
fn damage(
    bytes: &[u8],
    copies: &[Damage],
    judge: impl Fn(Damage, &[u8], Result<LoadedRoutes, LoadError>) + Sync,
) -> usize {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&damage) = copies.get(next.fetch_add(1, Ordering::Relaxed)) {
            let at = damage.place();
            let selection = if at % 8 == 0 { Selection::MostRoutes } else { Selection::Best };
            let threads = if at % 8 == 1 { 2 } else { 1 };
            let options = LoadOptions { threads, selection, ..LoadOptions::default() };
            let copy = damage.copy(bytes);
            judge(damage, &copy, load_reader("damaged", &copy[..], &options, &mut |_| ()));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    copies.len()
}

fn is_same(one: &LoadedRoutes, other: &LoadedRoutes) -> bool {
    one.ribs.iter().eq(other.ribs.iter())
}

#[test]
#[ignore = "needs FIBULA_DATA"]
fn real_feeds_damaged() {
    let folder = data();
    let all = std::env::var_os("FIBULA_DAMAGE").is_some_and(|value| value == "all");
    let only = std::env::var("FIBULA_DAMAGED").ok();
    let mut copies = 0;
    for (file, _) in counts().filter(|(file, _)| only.as_ref().is_none_or(|only| only == file)) {
        let start = std::time::Instant::now();
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let thin = !all && bytes.len() > SMALL_BYTES;
        copies += damage_compressed(file, &bytes, thin);
        copies += damage_content(file, &content(&folder.join(file)), thin);
        eprintln!("{file}: {copies} damaged copies so far, {:.1} s", start.elapsed().as_secs_f64());
    }
    assert!(copies > 0, "no feed {only:?}");
}

/// Of a compressed file whatever is damaged shows: by the checksum, or because the stream ends early.
fn damage_compressed(file: &str, bytes: &[u8], thin: bool) -> usize {
    let whole = [Selection::MostRoutes, Selection::Best].map(|selection| {
        load_reader("whole", bytes, &LoadOptions { selection, ..options() }, &mut |_| ()).unwrap()
    });
    damage(bytes, &Damage::all(bytes.len(), thin), |damage, copy, loaded| match loaded {
        // Nothing could be used; or the beginning is no longer that of a compressed stream; or it claims a larger window.
        Err(error) => {
            let expected =
                [" stream is damaged, noticed at byte ", ": not a routing table: ", " is accepted"];
            assert!(expected.iter().any(|part| error.to_string().contains(part)), "{error}");
        }
        Ok(table) => {
            let report = table.report();
            let told = !report.is_complete() || copy.is_empty();
            // Bits of a header that mean nothing to the content: the time in gzip's.
            let harmless = copy.len() == bytes.len() && whole.iter().any(|whole| is_same(&table, whole));
            // What no longer begins as a compressed file does is text of one kind or another, and bad.
            assert!(told || harmless || report.compression == Compression::Plain, "{file} {damage:?}");
            table.ribs.v4.check().unwrap();
            table.ribs.v6.check().unwrap();
        }
    })
}

/// What is not compressed has no checksum; where it is cut must show, unless it is between two records or lines.
fn damage_content(file: &str, bytes: &[u8], thin: bool) -> usize {
    damage(bytes, &Damage::all_inside(bytes.len(), thin), |damage, copy, loaded| {
        // What no longer begins as MRT may begin as a compressed stream.
        let Ok(table) = loaded else { return };
        let report = table.report();
        if matches!(damage, Damage::Cut(_)) && report.content == Content::Mrt {
            let end = report.faults.iter().find(|fault| fault.is_end());
            let kept = end.map_or(copy.len() as u64, mrt::Fault::offset);
            assert!(kept + end.map_or(0, |_| report.lost_bytes) >= copy.len() as u64, "{file} {damage:?}");
        }
        assert_eq!(
            (report.routes_v4, report.routes_v6),
            (table.ribs.v4.len() as u64, table.ribs.v6.len() as u64)
        );
        table.ribs.v4.check().unwrap();
        table.ribs.v6.check().unwrap();
    })
}

/// What the file holds, up to where it is cut.
fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let mut input = Decompressor::new(File::open(path).unwrap()).unwrap();
    let _ = Read::read_to_end(&mut input, &mut content);
    content
}
