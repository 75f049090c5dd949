use std::io::{self, Read};
use std::path::PathBuf;

use fibula::net::{Key, Prefix};
use fibula::rib::Rib;
use proptest::prelude::*;

use super::*;
use crate::compression::Compression;
use crate::compression::tests::{COMPRESSED, compress};
use crate::mrt;
use crate::next_hops::Label;

fn strict() -> LoadOptions {
    LoadOptions { strict: true, ..LoadOptions::default() }
}

fn read_with(bytes: &[u8], options: &LoadOptions) -> Result<LoadedRoutes, LoadError> {
    load_reader("tables/x.txt", bytes, options, &mut |_| ())
}

fn read(bytes: &[u8]) -> LoadedRoutes {
    let table = read_with(bytes, &LoadOptions::default()).unwrap();
    check_sums(&table);
    table
}

fn check_sums(table: &LoadedRoutes) {
    let report = table.report();
    assert_eq!(
        report.lines,
        report.routes_v4
            + report.routes_v6
            + report.repeated
            + report.comments
            + report.left_out
            + report.bad_lines
    );
    assert_eq!(report.first_bad.len() as u64, report.bad_lines.min(Report::MOST_BAD as u64));
    assert_eq!(report.routes_v4, table.ribs.v4.len() as u64);
    assert_eq!(report.routes_v6, table.ribs.v6.len() as u64);
}

/// The table as the text that it represents.
fn print(table: &LoadedRoutes) -> String {
    fn rows<K: Key>(rib: &Rib<K>, next_hops: &NextHops) -> String {
        rib.iter()
            .map(|route| format!("{} {}\n", route.prefix, next_hops.label(route.next_hop).unwrap()))
            .collect()
    }
    rows(&table.ribs.v4, &table.next_hops) + &rows(&table.ribs.v6, &table.next_hops)
}

const MIXED: &str = "\
0.0.0.0/0 192.0.2.1
1.0.0.0/24 0
1.0.0.0/25 64500_64501
10.0.0.0/8 192.0.2.1
::/0 2001:db8::1
2001:db8::/32 0
";

#[test]
fn forms_and_families_mix_in_a_file() {
    let text = "\
# a comment

1.0.0.0/24 via 192.0.2.1
1.0.1.0\t24\t64500\r
2001:db8::/32 192.0.2.1
";
    let table = read(text.as_bytes());
    assert_eq!(print(&table), "1.0.0.0/24 192.0.2.1\n1.0.1.0/24 64500\n2001:db8::/32 192.0.2.1\n");
    let report = table.report();
    assert_eq!((report.lines, report.comments, report.bad_lines), (5, 2, 0));
    assert_eq!((report.routes_v4, report.routes_v6), (2, 1));
    assert_eq!(&*report.name, "tables/x.txt");
    assert_eq!(report.compression, Compression::Plain);
    assert_eq!(table.next_hops.len(), 2);
}

#[test]
fn an_empty_file_is_an_empty_table() {
    for text in [&b""[..], b"\n", b"# nothing"] {
        let table = read(text);
        assert!(table.ribs.v4.is_empty() && table.ribs.v6.is_empty() && table.next_hops.is_empty());
        assert!(read_with(text, &strict()).is_ok());
    }
    for compression in COMPRESSED {
        let table = read(&compress(compression, b""));
        assert_eq!((table.report().lines, table.report().compression), (0, compression));
    }
}

#[test]
fn bad_lines_are_counted_and_the_rest_is_loaded() {
    let mut text = String::from("10.0.0.0/8 1\n10.0.0.0/33 1\n");
    text += &"x\x1b[31m y\n".repeat(8);
    let good: String = (0..9).map(|index| format!("11.{index}.0.0/16 1\n")).collect();
    text += &good;
    let table = read(text.as_bytes());
    assert_eq!(print(&table), format!("10.0.0.0/8 1\n{good}"));
    let report = table.report();
    assert_eq!((report.lines, report.bad_lines, report.first_bad.len()), (19, 9, 5));
    let first = &report.first_bad[0];
    assert_eq!(first.to_string(), "tables/x.txt:2:10: prefix length 33 is above the 32 bits of IPv4");
    assert_eq!((first.name(), first.line(), first.error().column()), ("tables/x.txt", 2, 10));
    assert_eq!(first.excerpt(), "10.0.0.0/33 1");
    assert_eq!(report.first_bad[4].to_string(), "tables/x.txt:6:1: not an IP address: unexpected 'x'");
    assert_eq!(report.first_bad[4].excerpt(), "x\\x1b[31m y");

    let error = read_with(text.as_bytes(), &strict()).unwrap_err();
    assert_eq!(error.to_string(), first.to_string());
    assert_eq!(error.bad_line(), Some(first));
    assert_eq!((error.name(), error.line()), ("tables/x.txt", Some(2)));
    assert!(error.is_bad_input() && error.io_error().is_none() && error.out_of_memory().is_none());
}

#[test]
fn lines_without_an_end_are_bad_lines() {
    let long = [b"10.0.0.0/8 1\n".to_vec(), vec![b'1'; 3 << 20], b"\n11.0.0.0/8 1\n".to_vec()].concat();
    for bytes in [long.clone(), compress(Compression::Zstd, &long)] {
        let table = read(&bytes);
        assert_eq!(print(&table), "10.0.0.0/8 1\n11.0.0.0/8 1\n");
        let bad = &table.report().first_bad[0];
        assert_eq!(bad.to_string(), "tables/x.txt:2:65537: the line is longer than 65536 bytes");
        assert_eq!(bad.excerpt(), format!("{}...", "1".repeat(77)));
        assert_eq!(table.report().bad_lines, 1);
    }
}

#[test]
fn the_last_of_repeated_prefixes_wins() {
    let table = read(b"10.0.0.0/8 1\n10.0.0.0/8 1\n10.0.0.0/8 2\n::/0 1\n::/0 3\n10.0.0.0/8 1\n");
    assert_eq!(print(&table), "10.0.0.0/8 1\n::/0 3\n");
    assert_eq!((table.report().repeated, table.report().repeated_changed), (4, 3));
}

#[test]
fn host_bits_are_refused_or_masked_as_asked() {
    let text = b"10.0.0.1/8 1\n11.0.0.0/8 1\n";
    assert_eq!(read(text).report().bad_lines, 1);
    let mask = LoadOptions { host_bits: HostBits::Mask, ..strict() };
    assert_eq!(print(&read_with(text, &mask).unwrap()), "10.0.0.0/8 1\n11.0.0.0/8 1\n");
}

#[test]
fn one_family_leaves_the_other_out() {
    for (family, kept) in [(Family::Ipv4, 4), (Family::Ipv6, 2)] {
        let options = LoadOptions { family: Some(family), ..strict() };
        let table = read_with(MIXED.as_bytes(), &options).unwrap();
        check_sums(&table);
        assert_eq!(
            (table.ribs.v4.len() + table.ribs.v6.len(), table.report().left_out),
            (kept, 6 - kept as u64)
        );
        let unseen = Label::Address("192.0.2.1".parse().unwrap());
        assert_eq!(table.next_hops.get(&unseen).is_some(), family == Family::Ipv4);
    }
}

#[test]
fn a_table_beyond_its_limit_is_refused_with_the_line() {
    let text: String = (0..1000).map(|i| format!("10.0.{}.{}/32 1\n", i / 256, i % 256)).collect();
    let options = LoadOptions { limits: Limits::within(4096), ..LoadOptions::default() };
    let error = read_with(text.as_bytes(), &options).unwrap_err();
    let line = error.line().unwrap();
    assert!((10..200).contains(&line), "{line}");
    let out_of_memory = error.out_of_memory().unwrap();
    assert_eq!(error.to_string(), format!("tables/x.txt:{line}: the table cannot grow: {out_of_memory}"));
    assert_eq!(out_of_memory.limit_bytes, Some(4096));
    assert!(!error.is_bad_input());
}

#[test]
fn compressed_tables_load_as_plain_ones_do() {
    for compression in COMPRESSED {
        let (first, second) = MIXED.split_at(40);
        let bytes =
            [compress(compression, first.as_bytes()), compress(compression, second.as_bytes())].concat();
        let table = read(&bytes);
        assert_eq!(print(&table), MIXED);
        assert_eq!(table.report().compression, compression);
        assert_eq!(table.report().truncated, None);
    }
}

#[test]
fn a_cut_stream_keeps_its_complete_lines() {
    for compression in COMPRESSED {
        let second = compress(compression, b"11.0.0.0/8 7\n12.0.0.0/8 78\n");
        let first = compress(compression, MIXED.as_bytes());
        let bytes = [&first[..], &second[..]].concat();
        for cut in 0..bytes.len() {
            // Too short to be recognised: read as text that is not a route.
            if (1..Compression::MAGIC_BYTES).contains(&cut)
                && Compression::recognise(&bytes[..cut]) == Compression::Plain
            {
                let error = read_with(&bytes[..cut], &LoadOptions::default()).unwrap_err();
                assert!(error.to_string().contains("not a routing table"), "{error}");
                continue;
            }
            let table = read(&bytes[..cut]);
            let report = table.report();
            if cut == 0 || cut == first.len() {
                assert_eq!(report.truncated, None);
            } else if Compression::recognise(&bytes[..cut]) == compression {
                let truncation = report.truncated.as_ref().unwrap();
                assert_eq!((truncation.bytes(), truncation.lines()), (cut as u64, report.lines));
                assert_eq!((truncation.compression(), report.bad_lines), (compression, 0));
                let error = read_with(&bytes[..cut], &strict()).unwrap_err();
                assert_eq!(error.truncation(), Some(truncation));
                assert_eq!(error.to_string(), truncation.to_string());
            }
            if cut >= first.len() {
                let kept = print(&table);
                assert!(MIXED.lines().all(|line| kept.contains(line)), "{compression} {cut}");
                // 78 cut down to 7 would be another next hop.
                assert!(!kept.contains("12.0.0.0/8 7\n"), "{compression} {cut}");
            }
        }
    }
}

#[test]
fn a_cut_is_told_with_its_place() {
    let bytes = compress(Compression::Gzip, MIXED.as_bytes());
    let table = read(&bytes[..bytes.len() - 1]);
    assert_eq!(print(&table), MIXED);
    assert_eq!(
        table.report().truncated.clone().unwrap().to_string(),
        format!(
            "tables/x.txt: the gzip stream ends early at byte {} of the file, after line 6",
            bytes.len() - 1
        )
    );
}

#[test]
fn of_a_damaged_stream_what_came_before_is_used() {
    for compression in COMPRESSED {
        let first = compress(compression, MIXED.as_bytes());
        let mut second = compress(compression, b"12.0.0.0/8 7\n");
        second[1] ^= 1;
        let bytes = [&first[..], &second].concat();
        let table = read(&bytes);
        assert_eq!(print(&table), MIXED);
        let truncation = table.report().truncated.clone().unwrap();
        let at = truncation.bytes() as usize;
        assert!((first.len()..first.len() + 20).contains(&at), "{compression} {at}");
        let reason = truncation.damage().unwrap();
        assert_eq!(
            truncation.to_string(),
            format!(
                "tables/x.txt: the {compression} stream is damaged, noticed at byte {at} of the file, after line 6: \
                 {reason}"
            )
        );
        let error = read_with(&bytes, &strict()).unwrap_err();
        let expected =
            format!("tables/x.txt: the {compression} stream is damaged, noticed at byte {at} of the file: ");
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(error.is_bad_input() && error.io_error().is_none() && error.line().is_none());
    }
}

#[test]
fn damage_inside_a_stream_costs_what_follows_it() {
    let line = |index: u32| format!("10.{}.{}.0/24 {}\n", index >> 8 & 255, index & 255, index % 7);
    let text: String = (0..60_000).map(line).collect();
    let record = |index: u32| {
        let prefix = format!("10.{}.{}.0/24", index >> 8 & 255, index & 255);
        mrt::tests::rib(&prefix, &[(0, None, mrt::tests::attributes(1, 4, "192.0.2.1"))])
    };
    let records = [mrt::tests::peer_table(&["192.0.2.1"]), (0..60_000).flat_map(record).collect()].concat();
    for content in [text.as_bytes(), &records] {
        for compression in COMPRESSED {
            let mut bytes = compress(compression, content);
            let at = bytes.len() - bytes.len() / 8;
            bytes[at..at + 8].fill(0xff);
            let table = read_with(&bytes, &LoadOptions::default()).unwrap();
            let report = table.report();
            assert!(report.truncated.as_ref().is_some_and(|cut| cut.damage().is_some()), "{compression}");
            assert!(report.lines > 1_000, "{compression} {}", report.lines);
            assert!(table.ribs.v4.get("10.0.0.0/24".parse().unwrap()).is_some(), "{compression}");
        }
    }
}

#[test]
fn a_stream_without_anything_good_is_refused() {
    for compression in COMPRESSED {
        let mut bytes = compress(compression, MIXED.as_bytes());
        bytes.truncate(16);
        bytes[6..].fill(0xff);
        match read_with(&bytes, &LoadOptions::default()) {
            Err(error) => {
                let expected = format!("tables/x.txt: the {compression} stream is damaged, noticed at byte ");
                assert!(error.to_string().starts_with(&expected), "{error}");
            }
            // As good as a header whose rest is missing.
            Ok(table) => assert!(table.report().truncated.is_some(), "{compression}"),
        }
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let error = load("no/such/file", &LoadOptions::default(), &mut |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("no/such/file: cannot be opened: "), "{error}");
    assert_eq!(error.io_error().unwrap().kind(), io::ErrorKind::NotFound);
    assert!(!error.is_bad_input() && error.line().is_none());

    let broken = b"10.0.0.0/8 1\n".chain(Broken);
    let error = load_reader("pipe", broken, &LoadOptions::default(), &mut |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "pipe: cannot be read after byte 13: the cable was pulled");
    let error = load_reader("pipe", Broken, &LoadOptions::default(), &mut |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "pipe: cannot be read after byte 0: the cable was pulled");
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the cable was pulled"))
    }
}

#[test]
fn progress_is_told_now_and_then_and_at_the_end() {
    let text: String =
        (0..100_000).map(|i| format!("10.{}.{}.{}/32 1\n", i >> 16, i >> 8 & 255, i & 255)).collect();
    let mut seen = Vec::new();
    load_reader("x", text.as_bytes(), &LoadOptions::default(), &mut |progress| seen.push(progress)).unwrap();
    assert!((4..20).contains(&seen.len()), "{}", seen.len());
    assert!(seen.is_sorted_by_key(|progress| (progress.bytes_read, progress.lines)));
    let last = seen.last().unwrap();
    assert_eq!((last.bytes_read, last.bytes_total, last.lines), (text.len() as u64, None, 100_000));
}

#[test]
fn a_file_tells_its_length() {
    let path = std::env::temp_dir().join(format!("fibula-feed-{}.txt", std::process::id()));
    std::fs::write(&path, MIXED).unwrap();
    let mut last = None;
    let table = load(&path, &strict(), &mut |progress| last = Some(progress));
    std::fs::remove_file(&path).unwrap();
    let total = MIXED.len() as u64;
    assert_eq!(print(&table.unwrap()), MIXED);
    assert_eq!(
        last,
        Some(Progress { bytes_read: total, bytes_total: Some(total), lines: 6, counting: false })
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_printed_table_is_read_back(
        routes in proptest::collection::vec((any::<u32>(), 0u8..=32, any::<u128>(), 0u8..=128, 0u32..9), 0..60),
        compression in proptest::sample::select(&COMPRESSED[..]),
    ) {
        let text: String = routes
            .iter()
            .map(|&(v4, len_v4, v6, len_v6, next_hop)| {
                let v4 = Prefix::masked(v4, len_v4).unwrap();
                let v6 = Prefix::masked(v6, len_v6).unwrap();
                format!("{v4} {next_hop}\n{v6} via {}\n", v4.network())
            })
            .collect();
        let table = read_with(text.as_bytes(), &strict()).unwrap();
        check_sums(&table);
        let printed = print(&table);
        let again = read_with(&compress(compression, printed.as_bytes()), &strict()).unwrap();
        prop_assert_eq!(print(&again), printed);
        prop_assert_eq!(again.report().repeated, 0);
    }

    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        // A stream recognised by chance may be damaged; all else loads.
        if let Ok(table) = read_with(&bytes, &LoadOptions::default()) {
            check_sums(&table);
        }
    }
}

fn data() -> PathBuf {
    std::env::var_os("FIBULA_DATA").expect("FIBULA_DATA names the folder of real tables").into()
}

#[test]
#[ignore = "needs FIBULA_DATA"]
fn real_tables_hold_what_is_known_of_them() {
    let folder = data();
    for (file, v4, v6, next_hops) in [
        ("dfz4-2023.txt.xz", 901_899, 0, 256),
        ("dfz4-2023-origin-as.txt.xz", 901_899, 0, 72_998),
        ("dfz6-2024.txt.xz", 0, 228_726, 256),
        ("dfz6-2024-origin-as.txt.xz", 0, 228_726, 34_125),
        ("pch4-2015.txt.xz", 577_703, 0, 3_771),
    ] {
        let table = load(folder.join(file), &strict(), &mut |_| ()).unwrap();
        check_sums(&table);
        assert_eq!((table.ribs.v4.len(), table.ribs.v6.len()), (v4, v6), "{file}");
        assert_eq!(table.next_hops.len(), next_hops, "{file}");
        assert_eq!(table.report().lines, (v4 + v6) as u64, "{file}");
        assert_eq!(table.report().compression, Compression::Xz, "{file}");
        // Origin 0, unknown.
        let unknown = table.next_hops.get(&Label::Number(0));
        assert_eq!(unknown.is_some(), file == "dfz4-2023-origin-as.txt.xz", "{file}");
        let default = table.ribs.v4.get(Prefix::ALL).and_then(|next_hop| table.next_hops.label(next_hop));
        let expected = file.starts_with("pch4").then(|| Label::Address("185.1.1.241".parse().unwrap()));
        assert_eq!(default, expected.as_ref(), "{file}");
    }
}

#[test]
#[ignore = "needs FIBULA_DATA"]
fn a_real_table_cut_in_half_keeps_about_half() {
    let folder = data();
    let bytes = std::fs::read(folder.join("dfz4-2023.txt.xz")).unwrap();
    let table = read(&bytes[..bytes.len() / 2]);
    assert!((350_000..550_000).contains(&table.ribs.v4.len()), "{}", table.ribs.v4.len());
    assert_eq!(table.report().bad_lines, 0);
    assert_eq!(table.report().truncated.clone().unwrap().bytes(), bytes.len() as u64 / 2);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let text = b"\xef\xbb\xbf192.0.2.0/24 5\n\xef\xbb\xbf10.0.0.0/8 6\n";
    let table = load_reader("bom", &text[..], &LoadOptions::default(), &mut |_| ()).unwrap();
    assert_eq!((table.ribs.v4.len(), table.report().bad_lines), (1, 1));
}
