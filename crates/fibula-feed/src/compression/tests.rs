use std::io::Write;

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

pub(crate) const COMPRESSED: [Compression; 4] =
    [Compression::Gzip, Compression::Bzip2, Compression::Xz, Compression::Zstd];

/// `content` in one member, stream or frame.
pub(crate) fn compress(compression: Compression, content: &[u8]) -> Vec<u8> {
    match compression {
        Compression::Plain => content.to_vec(),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Bzip2 => {
            let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::default());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Xz => {
            let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).unwrap();
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => compress_to_vec(content, CompressionLevel::Fastest),
    }
}

/// What comes out, and what went wrong then.
fn decompress(bytes: &[u8]) -> (Vec<u8>, Option<ReadFault>) {
    let mut decompressor = Decompressor::new(bytes).unwrap();
    let mut content = Vec::new();
    let result = decompressor.read_to_end(&mut content);
    (content, result.is_err().then(|| decompressor.fault()))
}

/// Text that compresses, and fills several blocks.
fn text() -> Vec<u8> {
    (0..40_000u32).flat_map(|i| format!("{}\n", i.wrapping_mul(0x9e37_79b9)).into_bytes()).collect()
}

#[test]
fn streams_are_told_apart_by_their_first_bytes() {
    for compression in COMPRESSED {
        let bytes = compress(compression, b"10.0.0.0/8 1\n");
        assert_eq!(Compression::recognise(&bytes), compression);
        assert_eq!(Decompressor::new(&bytes[..]).unwrap().compression(), compression);
    }
    for text in [&b""[..], b"B", b"BZh", b"BZhello", b"10.0.0.0/8 1", b"\x1f\x8b", b"\xfd7zXY\0"] {
        assert_eq!(Compression::recognise(text), Compression::Plain);
        assert_eq!(decompress(text), (text.to_vec(), None));
    }
    let names: Vec<_> = COMPRESSED.iter().map(Compression::to_string).collect();
    assert_eq!(names, ["gzip", "bzip2", "xz", "zstd"]);
}

#[test]
fn streams_after_each_other_are_one() {
    let text = text();
    for compression in COMPRESSED {
        for parts in [&[][..], &[0], &[1], &[text.len() / 2, text.len() / 2], &[0, 1, 2, text.len() - 3]] {
            let mut bytes = Vec::new();
            let mut content = Vec::new();
            for &len in parts {
                bytes.extend(compress(compression, &text[..len]));
                content.extend_from_slice(&text[..len]);
            }
            assert_eq!(decompress(&bytes), (content, None), "{compression} {parts:?}");
        }
    }
}

#[test]
fn what_may_be_between_streams_is_skipped() {
    let xz = compress(Compression::Xz, b"ab");
    let padded = [&xz[..], &[0; 8], &xz, &[0; 4]].concat();
    assert_eq!(decompress(&padded), (b"abab".to_vec(), None));

    // What a tape or a disk block is filled with.
    for compression in [Compression::Gzip, Compression::Bzip2] {
        let one = compress(compression, b"ab");
        for zeros in [1, 4, 511, 200_000] {
            let padded = [&one[..], &one, &vec![0; zeros]].concat();
            assert_eq!(decompress(&padded), (b"abab".to_vec(), None), "{compression} {zeros}");
            let followed = [&padded[..], b"x"].concat();
            assert_eq!(
                decompress(&followed),
                (b"abab".to_vec(), Some(ReadFault::Damaged)),
                "{compression} {zeros}"
            );
        }
    }

    let zstd = compress(Compression::Zstd, b"ab");
    let skip = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let skipped = [&skip[..], &zstd, &skip, &zstd, &skip].concat();
    assert_eq!(decompress(&skipped), (b"abab".to_vec(), None));
    assert_eq!(decompress(&skipped[..skipped.len() - 1]), (b"abab".to_vec(), Some(ReadFault::EndsEarly)));
}

#[test]
fn a_cut_anywhere_keeps_what_came_before() {
    let text = text();
    for compression in COMPRESSED {
        let bytes = compress(compression, &text);
        let mut kept = 0;
        // Every cut near both ends, and some between.
        let cuts = (4..200).chain((200..bytes.len() - 50).step_by(997)).chain(bytes.len() - 50..bytes.len());
        for cut in cuts.filter(|&cut| Compression::recognise(&bytes[..cut]) == compression) {
            let (content, fault) = decompress(&bytes[..cut]);
            assert_eq!(fault, Some(ReadFault::EndsEarly), "{compression} {cut}");
            assert!(text.starts_with(&content), "{compression} {cut}");
            assert!(content.len() >= kept, "{compression} {cut}");
            kept = content.len();
        }
        assert_eq!(kept, text.len(), "{compression}: only the checksum was missing");
    }
}

/// A Zstandard frame of `blocks` raw blocks of 1 KiB, with a window of 2^`window_log` bytes.
fn zstd_with_window(window_log: u8, blocks: usize) -> Vec<u8> {
    // Neither content size nor checksum; the window's exponent counts from 10 (RFC 8878 section 3.1.1.1).
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (window_log - 10) << 3];
    for block in 1..=blocks {
        let header = (1024u32 << 3) | u32::from(block == blocks);
        bytes.extend_from_slice(&header.to_le_bytes()[..3]);
        bytes.extend([b'x'; 1024]);
    }
    bytes
}

#[test]
fn a_cut_zstd_frame_gives_up_its_window() {
    let bytes = zstd_with_window(23, 20);
    assert_eq!(decompress(&bytes), (vec![b'x'; 20 * 1024], None));
    let (content, fault) = decompress(&bytes[..bytes.len() - 1]);
    assert_eq!((content.len(), fault), (19 * 1024, Some(ReadFault::EndsEarly)));
}

#[test]
fn damage_is_no_cut() {
    let text = text();
    for compression in COMPRESSED {
        let mut bytes = compress(compression, &text);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        let (content, fault) = decompress(&bytes);
        assert_eq!(fault, Some(ReadFault::Damaged), "{compression}");
        // A block is good or bad as a whole: bzip2 has but one here.
        let same = content.iter().zip(&text).take_while(|(one, other)| one == other).count();
        assert!(same > 100_000 || compression == Compression::Bzip2, "{compression} {same}");

        let mut bytes = compress(compression, b"10.0.0.0/8 1\n");
        bytes.extend(b"something else that follows");
        assert_eq!(decompress(&bytes).1, Some(ReadFault::Damaged), "{compression}");
    }
}

#[test]
fn a_header_cannot_ask_for_all_memory() {
    let mut bytes = compress(Compression::Xz, b"ab");
    // The dictionary size in the first block's header (xz format 1.2.1 section 5.3.1), 40 is 4 GiB - 1.
    let at = 12 + 4;
    assert_eq!(bytes[at - 2..at], [0x21, 1]);
    bytes[at] = 40;
    let sum = crc32(&bytes[12..20]);
    bytes[20..24].copy_from_slice(&sum.to_le_bytes());
    let mut decompressor = Decompressor::new(&bytes[..]).unwrap();
    let error = decompressor.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory, "{error}");
    assert_eq!(decompressor.fault(), ReadFault::TooLarge);
    assert_eq!(
        error.to_string(),
        "xz: its dictionary of 4.3 GB is above 536.9 MB, the most that is accepted without a memory limit"
    );

    assert_eq!(decompress(&zstd_with_window(27, 1)), (vec![b'x'; 1024], None));
    assert_eq!(decompress(&zstd_with_window(28, 1)), (Vec::new(), Some(ReadFault::TooLarge)));
    assert_eq!(decompress(&zstd_with_window(41, 1)), (Vec::new(), Some(ReadFault::TooLarge)));
}

/// What comes out under a memory limit, or why nothing does.
fn decompress_within(bytes: &[u8], memory_bytes: usize) -> Result<Vec<u8>, String> {
    let mut decompressor = Decompressor::within(bytes, Limits::within(memory_bytes)).unwrap();
    let mut content = Vec::new();
    match decompressor.read_to_end(&mut content) {
        Ok(_) => Ok(content),
        Err(error) => {
            assert_eq!(decompressor.fault(), ReadFault::TooLarge, "{error}");
            Err(error.to_string())
        }
    }
}

#[test]
fn a_window_above_the_limit_is_refused_by_name() {
    let text = text();
    // The dictionary of preset 0 is 256 KiB; the block of bzip2 is as large as there are.
    let xz = compress(Compression::Xz, &text);
    let bzip2 = compress(Compression::Bzip2, &text);
    let zstd = zstd_with_window(20, 1);
    let expected = [
        (&xz, 200_000, "xz: its dictionary of 262.1 kB is above the memory limit of 200 kB"),
        (
            &xz,
            270_000,
            "xz: its dictionary of 262.1 kB takes up to 303.1 kB, and 270 kB of the memory limit of 270 kB are left",
        ),
        (&bzip2, 2_000_000, "bzip2: its block of 2.4 MB is above the memory limit of 2 MB"),
        (&zstd, 1_000_000, "zstd: its window of 1 MB is above the memory limit of 1 MB"),
    ];
    for (bytes, limit, error) in expected {
        assert_eq!(decompress_within(bytes, limit).unwrap_err(), error);
    }
    assert!(decompress_within(&xz, 310_000).unwrap() == text);
    assert!(decompress_within(&bzip2, 2_400_000).unwrap() == text);
    assert!(decompress_within(&[&xz[..], &xz].concat(), 310_000).unwrap() == [&text[..], &text].concat());
    assert_eq!(decompress_within(&zstd, 4_000_000).unwrap(), [b'x'; 1024]);
    // The second stream needs more than the first.
    let both = [zstd_with_window(15, 1), zstd].concat();
    assert!(decompress_within(&both, 1_000_000).unwrap_err().starts_with("zstd: its window of 1 MB"));
}

#[test]
fn a_block_of_zstd_cannot_claim_more_literals_than_fit() {
    // A compressed block whose literals are one byte, repeated 2^20 - 1 times.
    let claims = |size: u32| {
        let literals = (size << 4 | 0b1101).to_le_bytes();
        let block = [&literals[..3], b"x", &[0]].concat();
        let header = (block.len() as u32) << 3 | 2 << 1 | 1;
        let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (18 - 10) << 3];
        bytes.extend(&header.to_le_bytes()[..3]);
        bytes.extend(block);
        bytes
    };
    assert_eq!(decompress(&claims(1000)), (vec![b'x'; 1000], None));
    assert_eq!(decompress(&claims(128 << 10)), (vec![b'x'; 128 << 10], None));
    assert_eq!(decompress(&claims((1 << 20) - 1)), (Vec::new(), Some(ReadFault::Damaged)));
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Fails after some bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the cable was pulled")),
            count => Ok(count),
        }
    }
}

#[test]
fn an_input_that_fails_keeps_its_own_error() {
    let text = text();
    for compression in COMPRESSED.into_iter().chain([Compression::Plain]) {
        let bytes = compress(compression, &text);
        let mut decompressor = Decompressor::new(Failing(&bytes[..bytes.len() / 2])).unwrap();
        let error = decompressor.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "the cable was pulled", "{compression}");
        assert_eq!(decompressor.fault(), ReadFault::Input);
        assert_eq!(decompressor.bytes_read(), bytes.len() as u64 / 2);
    }
    assert_eq!(Decompressor::new(Failing(b"ab")).unwrap_err().to_string(), "the cable was pulled");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_after_a_magic_never_panic(
        compression in proptest::sample::select(&COMPRESSED[..]),
        keep in 0usize..60,
        noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = compress(compression, &text()[..2000]);
        bytes.truncate(keep);
        bytes.extend(noise);
        decompress(&bytes);
    }

    #[test]
    fn altered_bytes_never_panic(
        compression in proptest::sample::select(&COMPRESSED[..]),
        at in any::<proptest::sample::Index>(),
        flip in 1u8..,
    ) {
        let mut bytes = compress(compression, &text()[..2000]);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        decompress(&bytes);
    }
}
