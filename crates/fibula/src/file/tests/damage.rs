//! Files that differ from what was written.

use super::super::VERSION;
use super::super::format::{HEADER_BYTES, Header, MAGIC, SECTION_BYTES, Section, read_table};
use super::*;

/// Asserts the answers of every key, whatever opened the file.
fn assert_answers_as_before(file: &TableFile, v4: &Rib<u32>, v6: &Rib<u128>) {
    for key in keys(v4).into_iter().step_by(5) {
        assert_eq!(file.v4.lookup(key), v4.lookup(key));
    }
    for key in keys(v6) {
        assert_eq!(file.v6.lookup(key), v6.lookup(key));
    }
    assert!(file.v4.routes.as_ref().unwrap().iter().eq(v4.iter()));
    assert!(file.v6.routes.as_ref().unwrap().iter().eq(v6.iter()));
}

#[test]
fn every_byte_that_is_altered_is_noticed_or_without_effect() {
    for (good, v4, v6) in [small(1), small_of_version_2(1)] {
        alter_every_byte(&good, &v4, &v6);
    }
}

fn alter_every_byte(good: &[u8], v4: &Rib<u32>, v6: &Rib<u128>) {
    let sections = sections(good);
    let used = |at: usize| {
        let head = HEADER_BYTES + sections.len() * SECTION_BYTES;
        at < head
            || sections
                .iter()
                .any(|section| (section.offset..section.offset + section.bytes).contains(&(at as u64)))
    };
    let mut without_effect = 0;
    let mut bytes = good.to_vec();
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            bytes[at] ^= flip;
            match open(&bytes) {
                Ok(file) => {
                    assert!(!used(at), "byte {at} is of no section");
                    without_effect += 1;
                    if without_effect % 50 == 1 {
                        assert_answers_as_before(&file, v4, v6);
                    }
                }
                Err(error) => {
                    assert!(used(at), "byte {at}: {error}");
                    let is_told = error.is_damage() || error.is_foreign() && at < MAGIC.len();
                    assert!(is_told, "byte {at}: {error}");
                }
            }
            bytes[at] ^= flip;
        }
    }
    assert_eq!(bytes, good);
}

#[test]
fn every_length_but_its_own_is_refused() {
    for (good, ..) in [small(2), small_of_version_2(2)] {
        cut_everywhere(&good);
    }
}

fn cut_everywhere(good: &[u8]) {
    for end in 0..good.len() {
        let error = open(&good[..end]).unwrap_err();
        assert!(if end == 0 { error.is_foreign() } else { error.is_damage() }, "{end}: {error}");
        let says = error.to_string();
        assert!(end == 0 || says.starts_with(&format!("truncated: {end} bytes of ")), "{says}");
    }
    let mut longer = good.to_vec();
    longer.push(0);
    let error = open(&longer).unwrap_err();
    assert!(
        error.is_damage()
            && error.to_string().contains(&format!("bytes instead of {}; copy it again", good.len()))
    );
}

pub(super) fn sections(bytes: &[u8]) -> Vec<Section> {
    let header = Header::read(&bytes[..HEADER_BYTES]).unwrap();
    read_table(header, &bytes[HEADER_BYTES..HEADER_BYTES + header.table_bytes()]).unwrap()
}

/// Corrects the header's checksum.
fn sum_header(bytes: &mut [u8]) {
    let crc = crc32fast::hash(&bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}

/// Replaces the section table and corrects the checksums.
fn with_table(good: &[u8], change: impl FnOnce(&mut Vec<Section>)) -> Vec<u8> {
    let mut all = sections(good);
    change(&mut all);
    let table: Vec<u8> = all.iter().flat_map(Section::to_bytes).collect();
    let mut header = Header::read(&good[..HEADER_BYTES]).unwrap();
    header.table_crc = crc32fast::hash(&table);
    let mut bytes = good.to_vec();
    bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    bytes[HEADER_BYTES..HEADER_BYTES + table.len()].copy_from_slice(&table);
    bytes
}

#[test]
fn newer_foreign_and_swapped_files_are_refused_by_their_reasons() {
    let (good, v4, v6) = small(3);
    let mut newer = good.clone();
    newer[8..12].copy_from_slice(&(VERSION + 1).to_le_bytes());
    sum_header(&mut newer);
    let error = open(&newer).unwrap_err();
    assert!(error.is_newer() && error.to_string().contains("of version 3"), "{error}");
    // There is no version before the first one.
    newer[8..12].copy_from_slice(&0_u32.to_le_bytes());
    sum_header(&mut newer);
    assert!(open(&newer).unwrap_err().is_damage());

    let needed = with_table(&good, |all| all[5].name = "ipv4/shortcuts".to_owned());
    let error = open(&needed).unwrap_err();
    assert!(error.is_damage() || error.is_newer(), "{error}");
    let needed = with_table(&good, |all| {
        all.iter_mut().for_each(|one| one.name = one.name.replace("values", "labels"));
    });
    let error = open(&needed).unwrap_err();
    assert!(error.is_newer() && error.to_string().contains("'labels/"), "{error}");
    // Sections that are not needed are skipped, but still verified.
    let skipped = |all: &mut Vec<Section>| {
        for one in all.iter_mut().filter(|one| one.name.starts_with("values")) {
            (one.name, one.is_needed) = (one.name.replace("values", "labels"), false);
        }
    };
    let mut bytes = with_table(&good, skipped);
    let file = open(&bytes).unwrap();
    assert_answers_as_before(&file, &v4, &v6);
    assert!(file.columns().is_empty());
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert!(open(&bytes).unwrap_err().to_string().contains("'labels/bytes'"));
    // Values without one of their three sections are damage, and no table without values.
    for part in ["next-hops", "ends", "bytes"] {
        let lacks = with_table(&good, |all| {
            let name = format!("values/{part}");
            for one in all.iter_mut().filter(|one| one.name == name) {
                (one.name, one.is_needed) = (format!("labels/{part}"), false);
            }
        });
        let error = open(&lacks).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("values"), "{part}: {error}");
    }

    let structure = sections(&good)[0].clone();
    let text = &good[structure.offset as usize..][..structure.bytes as usize];
    let other = String::from_utf8(text.to_vec()).unwrap().replace("range-btree", "range-ctree");
    let mut unknown = with_table(&good, |all| all[0].crc = crc32fast::hash(other.as_bytes()));
    unknown[structure.offset as usize..][..other.len()].copy_from_slice(other.as_bytes());
    // The engine of a later version: another one is built from the routes, and without routes there is nothing to build from.
    let file = open(&unknown).unwrap();
    assert_eq!(file.v4.replaced.as_deref(), Some("range-ctree"));
    assert_answers_as_before(&file, &v4, &v6);
    let alone = with_table(&unknown, |all| {
        for one in all.iter_mut().filter(|one| one.name.starts_with("ipv4/routes")) {
            (one.name, one.is_needed) = (one.name.replace("ipv4/routes", "lost"), false);
        }
    });
    let error = open(&alone).unwrap_err();
    assert!(error.is_newer() && error.to_string().contains("'range-ctree'"), "{error}");

    for foreign in [&b"\x89PNG\r\n\x1a\n"[..], b"", b"10.0.0.0/8 1\n", &[0; 200]] {
        assert!(open(foreign).unwrap_err().is_foreign());
    }
    // Words in the other byte order, as a machine would write them that does not convert.
    let mut swapped = good;
    swapped[8..HEADER_BYTES].as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    let error = open(&swapped).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("wrong byte order"), "{error}");
}

/// Section tables that are wrong although their checksums are right.
#[test]
fn sections_outside_the_file_or_of_another_kind_are_refused() {
    let (good, ..) = small(4);
    let changes: [fn(&mut Vec<Section>); 13] = [
        |all| all[1].offset = u64::MAX - 63,
        |all| all[1].bytes = u64::MAX - 63,
        |all| all[1].bytes += 1 << 40,
        |all| all[1].offset += 1,
        |all| all[1].offset = 0,
        |all| all[1].offset = all[0].offset,
        |all| all[1].width = 3,
        |all| all[1].width = 0,
        |all| all[1].width = 1,
        |all| all[1].width = 8,
        |all| all[1].name = all[0].name.clone(),
        |all| all.last_mut().unwrap().bytes -= 1,
        |all| all.iter_mut().for_each(|one| one.name = one.name.replace("lengths", "next-hopz")),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let error = open(&with_table(&good, change)).unwrap_err();
        assert!(error.is_damage() || error.is_newer(), "{number}: {error}");
    }
    // Those that are not needed have names of their own, too.
    let twice = with_table(&good, |all| {
        for one in all.iter_mut().filter(|one| one.name.starts_with("values")) {
            (one.name, one.is_needed) = ("labels".to_owned(), false);
        }
    });
    let error = open(&twice).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("section table"), "{error}");
}

/// A file of each engine that files can hold, and the routes of both families.
fn every_engine() -> (Rib<u32>, Rib<u128>, Vec<Vec<u8>>) {
    let v4 = table::<u32>(5, 300, 1 << 31);
    let v6 = table::<u128>(6, 200, 1 << 31);
    // Values come after the words of an engine, so that sections of it may be cut.
    let contents = || {
        let mut contents = Contents::default();
        contents.values.insert(NextHop::new(1).unwrap(), b"one".to_vec());
        contents
    };
    let mut written: Vec<Vec<u8>> = Vec::new();
    for name in ["range-btree", "dir-18-lines", "dir-17-bitmap", "dir-17-sparse"] {
        let (fib, mut contents) = (build(name, &v4), contents());
        contents.v4.fib = Some(&*fib);
        written.push(bytes(&contents));
    }
    for name in ["planb", "dir-btree", "dir-btree-byte"] {
        let (fib, mut contents) = (build(name, &v6), contents());
        contents.v6.fib = Some(&*fib);
        written.push(bytes(&contents));
    }
    (v4, v6, written)
}

/// Asserts that single lookups and batches of every instruction set agree.
fn assert_agrees<K: Key>(fib: Option<&dyn Fib<K>>, keys: &[K], what: &str) {
    let Some(fib) = fib else { return };
    for isa in crate::simd::Present::all() {
        let mut found = vec![None; keys.len()];
        fib.lookup_batch_on(isa, keys, &mut found);
        for (&key, found) in keys.iter().zip(found) {
            assert_eq!(fib.lookup_key(key), found, "{what}, {isa:?}: {}", key.address());
        }
    }
}

/// Whoever cuts a section and puts the checksums right gets an error, or a table whose lookups agree: vectors must not read the padding
/// for what single lookups read.
#[test]
fn units_in_the_padding_are_refused() {
    let (v4, v6, written) = every_engine();
    let (v4, v6) = (keys(&v4), keys(&v6));
    let (mut refused, mut opened) = (0, 0);
    for good in written {
        for (at, section) in sections(&good).iter().enumerate().filter(|(_, section)| section.bytes > 0) {
            for words in [1, 2, 8, 16, 40, 60, 66, 67, 100] {
                let Some(left) = section.bytes.checked_sub(words * u64::from(section.width)) else {
                    continue;
                };
                let crc = crc32fast::hash(&good[section.offset as usize..][..left as usize]);
                let cut = with_table(&good, |all| (all[at].bytes, all[at].crc) = (left, crc));
                let Ok(file) = open(&cut) else {
                    refused += 1;
                    continue;
                };
                opened += 1;
                let what = format!("{} without {words} words", section.name);
                assert_agrees(file.v4.fib.as_deref(), &v4, &what);
                assert_agrees(file.v6.fib.as_deref(), &v6, &what);
            }
        }
    }
    assert!(refused > 50, "{refused} refused, {opened} opened");
}

/// Words that are wrong although their checksums are right: lookups in such files stay within them.
#[test]
fn structures_out_of_order_are_refused_or_stay_within_their_words() {
    let mut random = Random(7);
    let (v4, v6, written) = every_engine();
    let (mut refused, mut opened) = (0, 0);
    for good in written {
        let all = sections(&good);
        for _ in 0..if good.len() > 1 << 18 { 15 } else { 150 } {
            let mut bytes = good.clone();
            let at = random.below(all.len() as u64) as usize;
            let section = &all[at];
            if section.bytes == 0 {
                continue;
            }
            let to = &mut bytes[section.offset as usize..][..section.bytes as usize];
            for _ in 0..1 + random.below(3) {
                to[random.below(to.len() as u64) as usize] = random.below(256) as u8;
            }
            let crc = crc32fast::hash(to);
            let bytes = with_table(&bytes, |all| all[at].crc = crc);
            let Ok(file) = open(&bytes) else {
                refused += 1;
                continue;
            };
            opened += 1;
            keys(&v4).into_iter().for_each(|key| assert_ne!(file.v4.lookup(key).map(NextHop::id), Some(0)));
            keys(&v6).into_iter().for_each(|key| assert_ne!(file.v6.lookup(key).map(NextHop::id), Some(0)));
        }
    }
    assert!(refused > 100 && opened > 10, "{refused} refused, {opened} opened");
}

/// Sections of columns that are wrong although their checksums are right.
#[test]
fn columns_out_of_order_are_refused() {
    let (good, ..) = small_of_version_2(5);
    let edited = |name: &str, edit: &dyn Fn(&mut [u8])| {
        let at = sections(&good).iter().position(|one| one.name == name).unwrap();
        let section = &sections(&good)[at];
        let mut bytes = good.clone();
        let to = &mut bytes[section.offset as usize..][..section.bytes as usize];
        edit(to);
        let crc = crc32fast::hash(to);
        open(&with_table(&bytes, |all| all[at].crc = crc))
    };
    assert!(edited("values/columns", &|_| ()).is_ok());
    let replace = |from: &'static str, to: &'static str| {
        move |bytes: &mut [u8]| {
            let at = bytes.windows(from.len()).position(|found| found == from.as_bytes()).unwrap();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    };
    // The list: a type that is none, another one, another number of values, the name of another column, and no name.
    for (from, to) in [
        ("u32 11", "u33 11"),
        ("u32 11", "u64 11"),
        ("u32 11", "u32 10"),
        ("u32 11", "u32 12"),
        ("u32 11", "u32 1x"),
        ("bool 11", "bool 17"),
        ("text 11", "bool 11"),
        ("11 is", "11 \u{1}s"),
        ("number", "\nu32 1"),
        ("number", "\u{7f}umber"),
    ] {
        let error = edited("values/columns", &replace(from, to)).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("values/"), "{from} to {to}: {error}");
    }
    // Offsets: not from 0, past the end, before the one before, within a character. Bits past the last value. Text that is none.
    let wrong: [(&str, usize, u8); 7] = [
        ("values/2/offsets", 0, 2),
        ("values/2/offsets", 44, 108),
        ("values/2/offsets", 20, 9),
        ("values/2/offsets", 8, 3),
        ("values/0/valid", 1, 0xff),
        ("values/1/bits", 1, 0xff),
        ("values/2/bytes", 6, 0xff),
    ];
    for (name, at, byte) in wrong {
        let error = edited(name, &|bytes| bytes[at] = byte).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("out of order"), "{name}, {at}: {error}");
    }
    // A match without a next hop, and one with a length that the family does not have.
    for (at, byte) in [(0, 0), (4, 33)] {
        let error = edited("ipv4/matches", &|bytes| bytes[at] = byte).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("a match has"), "{error}");
    }
    // Sections that are not there.
    for lost in [
        "values/columns",
        "values/0/words",
        "values/0/valid",
        "values/1/bits",
        "values/2/offsets",
        "values/2/bytes",
    ] {
        let rename = |all: &mut Vec<Section>| {
            for one in all.iter_mut().filter(|one| one.name == lost) {
                one.name = "values/lost".to_owned();
            }
        };
        let error = open(&with_table(&good, rename)).unwrap_err();
        assert!(error.is_damage() || error.is_newer(), "{lost}: {error}");
    }
}

#[test]
fn the_limit_is_for_all_sections_together() {
    let folder = Folder::new("sum");
    let path = folder.path("table.fibula");
    let rib = table::<u32>(3, 4_000, NARROW);
    let fib = build("range-btree", &rib);
    let mut contents = Contents::default();
    contents.v4 = Half::new(&*fib, &rib);
    super::super::save(&path, &contents).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len() as usize;
    let within = |memory_bytes: usize| {
        TableFile::open_within(&path, Limits { memory_bytes: Some(memory_bytes), ..Limits::default() })
    };
    assert!(within(bytes).is_ok());
    // No section has half of the bytes, and all together have more.
    assert!(within(bytes / 2).unwrap_err().to_string().contains("limit"), "{:?}", within(bytes / 2).err());
}

#[test]
fn an_error_of_the_system_is_the_source_of_ours() {
    let source = |error: FileError| core::error::Error::source(&error).map(ToString::to_string);
    let absent = std::env::temp_dir().join("fibula-no-such-folder/table.fibula");
    assert!(source(TableFile::open(&absent).unwrap_err()).is_some());
    assert_eq!(source(open(b"FIBULA").unwrap_err()), None);
}
