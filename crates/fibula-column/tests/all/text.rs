//! Texts in bulk against parsers of one text.

use core::net::IpAddr;

use fibula::unstable::simd::{Present, force};
use fibula_column::{ByteRows, Column, LookupOptions};

use crate::echo::{id_of, whole};

/// Looks texts up in every shape, with every instruction set, and compares with `oracle`.
fn agree(texts: &[impl AsRef<[u8]>], oracle: impl Fn(&[u8]) -> Option<IpAddr>) {
    agree_where(texts, oracle, |_| true);
}

/// Like [`agree`], in those shapes and with those instruction sets whose number, counted over both, is chosen.
pub(crate) fn agree_where(
    texts: &[impl AsRef<[u8]>],
    oracle: impl Fn(&[u8]) -> Option<IpAddr>,
    is_chosen: impl Fn(usize) -> bool,
) {
    let expected: Vec<u32> = texts.iter().map(|text| id_of(oracle(text.as_ref()))).collect();
    let invalid = texts.iter().zip(&expected).filter(|&(_, &id)| id == 0).count();
    let slices: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
    let bytes = slices.concat();
    let mut offsets = vec![0_i64];
    offsets.extend(slices.iter().scan(0, |end, text| {
        *end += text.len() as i64;
        Some(*end)
    }));
    let narrow: Vec<i32> = offsets.iter().map(|&offset| offset as i32).collect();
    let views: Vec<[u8; 16]> = slices.iter().zip(&narrow).map(|(text, &start)| view(text, start)).collect();
    let shapes = [
        Column::texts(&slices),
        Column::text(ByteRows::offsets32(&narrow, &bytes)),
        Column::text(ByteRows::offsets64(&offsets, &bytes)),
        Column::text(ByteRows::views(&views, vec![&bytes])),
    ];
    let sets: Vec<Present> = Present::all().collect();
    let ways = sets.iter().flat_map(|set| shapes.iter().map(move |column| (set.isa(), column)));
    for (isa, column) in ways.enumerate().filter(|&(at, _)| is_chosen(at)).map(|(_, way)| way) {
        force(Some(isa)).unwrap();
        let (ids, counts) = whole(column, &LookupOptions::default());
        if let Some(row) = ids.iter().zip(&expected).position(|(id, expected)| id != expected) {
            let text = String::from_utf8_lossy(slices[row]);
            panic!("{text:?} in row {row} with {isa}: {:x}, not {:x}", ids[row], expected[row]);
        }
        assert_eq!(counts.invalid, invalid);
    }
    force(None).unwrap();
}

/// Returns the view of a text that starts here in the only buffer.
pub(crate) fn view(text: &[u8], start: i32) -> [u8; 16] {
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(text.len() as i32).to_ne_bytes());
    if text.len() <= 12 {
        view[4..4 + text.len()].copy_from_slice(text);
    } else {
        view[4..8].copy_from_slice(&text[..4]);
        view[12..].copy_from_slice(&start.to_ne_bytes());
    }
    view
}

fn standard(text: &[u8]) -> Option<IpAddr> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[test]
fn every_short_text_is_read_as_the_standard_library_reads_it() {
    let alphabet = b"0:1.f";
    let mut texts = Vec::new();
    let mut frontier = vec![String::new()];
    for _ in 0..6 {
        for text in &frontier {
            for (before, after) in [
                ("", ""),
                ("::", ""),
                ("", "::"),
                ("1:2:3:4:5:", ""),
                ("", ":4:5:6:7:8"),
                ("25", ""),
                ("1.2.", ""),
                ("", ".3.4"),
                ("1:2:3:", ":6:7:8"),
            ] {
                texts.push(format!("{before}{text}{after}"));
            }
        }
        frontier = frontier
            .iter()
            .flat_map(|text| alphabet.iter().map(move |&byte| format!("{text}{}", char::from(byte))))
            .collect();
    }
    agree(&texts, standard);
}

#[test]
fn every_octet_in_every_place() {
    let mut texts = Vec::new();
    for place in 0..4 {
        for octet in 0..1000 {
            for others in ["1", "22", "133"] {
                for octet in [format!("{octet}"), format!("{octet:03}"), format!("{octet:02}")] {
                    let mut parts = [others; 4];
                    parts[place] = &octet;
                    texts.push(parts.join("."));
                }
            }
        }
    }
    agree(&texts, standard);
}

#[test]
fn every_byte_in_every_place() {
    let addresses = [
        "192.0.2.1",
        "1.2.3.4",
        "255.255.255.255",
        "0.0.0.0",
        "::",
        "::1",
        "1::",
        "2001:db8::1",
        "fe80::1:2",
        "1:2:3:4:5:6:7:8",
        "1::3:4:5:6:7:8",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "2001:0DB8:aaaa:FFFF:0123:4567:89ab:cdef",
        "::ffff:192.0.2.1",
        "1:2:3:4:5:6:255.255.255.255",
        "1111:2222:3333:4444:5555:6666:255.255.255.255",
    ];
    let mut texts = vec![Vec::new()];
    for address in addresses.map(str::as_bytes) {
        for byte in 0..=u8::MAX {
            for at in 0..=address.len() {
                let mut inserted = address.to_vec();
                inserted.insert(at, byte);
                texts.push(inserted);
                if at < address.len() {
                    let mut replaced = address.to_vec();
                    replaced[at] = byte;
                    texts.push(replaced);
                }
            }
        }
        for at in 0..address.len() {
            texts.push([&address[..at], &address[at + 1..]].concat());
            texts.push(address[..at].to_vec());
            texts.push(address[at..].to_vec());
        }
    }
    agree(&texts, standard);
}

#[test]
fn every_place_of_a_gap_and_every_length_of_groups() {
    let digits = "89abcdef";
    let mut texts = Vec::new();
    for groups in 0..=9 {
        for len in 1..=5 {
            let all: Vec<&str> = (0..groups).map(|at| &digits[at % 4..(at % 4 + len).min(8)]).collect();
            texts.push(all.join(":"));
            for gap in 0..=groups {
                texts.push(format!("{}::{}", all[..gap].join(":"), all[gap..].join(":")));
                texts.push(format!("{}::{}:192.0.2.33", all[..gap].join(":"), all[gap..].join(":")));
                texts.push(format!("{}:::{}", all[..gap].join(":"), all[gap..].join(":")));
                for second in gap..=groups {
                    let parts = [&all[..gap], &all[gap..second], &all[second..]].map(|part| part.join(":"));
                    texts.push(parts.join("::"));
                }
            }
            texts.push(format!("{}:", all.join(":")));
            texts.push(format!(":{}", all.join(":")));
            texts.push(format!("{}:192.0.2.33", all.join(":")));
        }
    }
    agree(&texts, standard);
}
