//! What `SECURITY.md` promises of hostile files: each is loaded or refused with an error, nothing panics, and at no moment
//! is more memory in use than the limit and a fixed amount for each thread.

use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

use fibula::memory::Limits;
use fibula_feed::{LoadOptions, Loader, Selection, Source, THREAD_BYTES, TableForm};
use fibula_proof::allocator::{TestAllocator, measure_process};

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

const MIB: usize = 1 << 20;

/// Held by the test that measures: what others allocate meanwhile would be counted too.
static MEASURING: Mutex<()> = Mutex::new(());

fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut record = 1_700_000_000_u32.to_be_bytes().to_vec();
    record.extend(kind.to_be_bytes());
    record.extend(subtype.to_be_bytes());
    record.extend((body.len() as u32).to_be_bytes());
    record.extend(body);
    record
}

/// ORIGIN, an AS path of one AS, NEXT_HOP.
fn attributes(next_hop: u32) -> Vec<u8> {
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfb, 0xf4, 0x40, 3, 4];
    attributes.extend(next_hop.to_be_bytes());
    attributes
}

/// The list of peers of a `TABLE_DUMP_V2`, with addresses from `first` on.
fn peers(count: u16, first: u32) -> Vec<u8> {
    let mut body = vec![192, 0, 2, 255, 0, 0];
    body.extend(count.to_be_bytes());
    for index in 0..u32::from(count) {
        body.push(2);
        body.extend([192, 0, 2, 1]);
        body.extend((first + index).to_be_bytes());
        body.extend((64_500 + index).to_be_bytes());
    }
    record(13, 1, &body)
}

/// A prefix of a `TABLE_DUMP_V2` with routes of the peers before `routes`.
fn rib(prefix: u32, routes: u16, attributes: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 1, 32];
    body.extend(prefix.to_be_bytes());
    body.extend(routes.to_be_bytes());
    for peer in 0..routes {
        body.extend(peer.to_be_bytes());
        body.extend([0; 4]);
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(attributes);
    }
    record(13, 2, &body)
}

/// A record of an UPDATE of this peer.
fn update(peer: u32, withdrawn: &[u8], attributes: &[u8], nlri: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0, 0xfb, 0xf4, 0, 0, 0xfb, 0xf5, 0, 0, 0, 1];
    body.extend(peer.to_be_bytes());
    body.extend([192, 0, 2, 1]);
    body.extend([0xff; 16]);
    body.extend((23 + withdrawn.len() as u16 + attributes.len() as u16 + nlri.len() as u16).to_be_bytes());
    body.push(2);
    body.extend((withdrawn.len() as u16).to_be_bytes());
    body.extend(withdrawn);
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    body.extend(nlri);
    record(16, 4, &body)
}

/// A route of a `TABLE_DUMP`, without the view and sequence number before it.
fn dumped(prefix: u32, peer: u32) -> Vec<u8> {
    let mut body = prefix.to_be_bytes().to_vec();
    body.extend([32, 1, 0, 0, 0, 0]);
    body.extend(peer.to_be_bytes());
    let attributes = [0x40, 1, 1, 0, 0x40, 2, 4, 2, 1, 0xfb, 0xf4, 0x40, 3, 4, 192, 0, 2, 1];
    body.extend([0xfb, 0xf4, 0, attributes.len() as u8]);
    body.extend(attributes);
    body
}

fn many(count: u32, each: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(each).collect()
}

/// A gzip stream of stored blocks or of one byte repeated.
fn gzip(byte: u8, count: usize) -> Vec<u8> {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let piece = vec![byte; MIB.min(count)];
    for _ in 0..count / piece.len() {
        encoder.write_all(&piece).unwrap();
    }
    encoder.finish().unwrap()
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// An xz stream with an empty block that claims a dictionary: 40 is 4 GiB, 18 is 2 MiB (xz format 1.2.1, 5.3.1).
fn xz(dictionary: u8) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        crc.sum().to_le_bytes()
    };
    let mut bytes = b"\xfd7zXZ\0\0\0".to_vec();
    bytes.extend(crc(&[0, 0]));
    let header = [2, 0, 0x21, 1, dictionary, 0, 0, 0];
    bytes.extend(header);
    bytes.extend(crc(&header));
    // A chunk of five bytes as they are, the next kept open: the stream is cut.
    bytes.extend([1, 0, 4, b'1', b'.', b'0', b'.', b'0']);
    bytes
}

/// A Zstandard frame with a window of 2^`log` bytes, of blocks of one byte repeated 128 Ki times.
fn zstd(log: u8, blocks: usize, byte: u8) -> Vec<u8> {
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3];
    for block in 1..=blocks {
        let header = (128_u32 << 10) << 3 | 1 << 1 | u32::from(block == blocks);
        bytes.extend(&header.to_le_bytes()[..3]);
        bytes.push(byte);
    }
    bytes
}

/// Attributes that fill a message: of `value` bytes each, of this kind.
fn attribute_list(kind: u8, value: usize, fill: u8) -> Vec<u8> {
    let attribute = [&[0xc0, kind, value as u8][..], &vec![fill; value]].concat();
    attribute.repeat(60_000 / attribute.len())
}

/// One attribute that fills a message.
fn long_attribute(kind: u8, fill: &[u8]) -> Vec<u8> {
    let value = fill.repeat(60_000 / fill.len());
    [&[0xd0, kind][..], &(value.len() as u16).to_be_bytes(), &value].concat()
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let good = [peers(3, 1), many(50_000, |index| rib(index << 8, 1, &attributes(7)))].concat();
    let with_peers = |bytes: Vec<u8>| [peers(3, 1), bytes].concat();
    let segments = long_attribute(2, &[2, 0]);
    let communities = long_attribute(8, &[1, 2, 3, 4]);
    let unknown: Vec<u8> = (0..230_u8).flat_map(|kind| [0xc0, kind, 0]).collect();
    vec![
        ("routes", good.clone()),
        ("routes in gzip", gzipped(&good)),
        ("gzip bomb of zeros", gzip(0, 24 * MIB)),
        ("gzip bomb of blank lines", gzipped(&[&[b' '; 63][..], b"\n"].concat().repeat(MIB / 2))),
        ("gzip bomb of one line", gzip(b'1', 24 * MIB)),
        ("gzip bomb of comments", gzipped(&b"# no route in this line of a comment\n".repeat(MIB))),
        ("xz with a dictionary of 4 GiB", xz(40)),
        ("xz with a dictionary of 2 MiB", xz(18)),
        ("zstd with a window of 1 TiB", zstd(40, 1, b'\n')),
        ("zstd with a window of 8 MiB", zstd(23, 100, b'\n')),
        ("zstd with a window of 2 MiB", zstd(21, 100, b'\n')),
        ("zstd with larger and larger windows", (10..24).flat_map(|log| zstd(log, 2, b'\n')).collect()),
        ("65,535 peers again and again", peers(u16::MAX, 1).repeat(12)),
        ("other peers again and again", many(12, |index| peers(u16::MAX, index << 16))),
        ("many peers before damage", [peers(u16::MAX, 1), vec![0xff; 2 * MIB]].concat()),
        (
            "many peers, many routes",
            [peers(u16::MAX, 1), many(3, |index| rib(index, u16::MAX, &attributes(7)))].concat(),
        ),
        (
            "a peer a record",
            many(60_000, |index| record(12, 1, &[&[0; 4][..], &dumped(index << 8, index)].concat())),
        ),
        (
            "a peer a route of a record",
            record(12, 1, &[vec![0; 4], many(90_000, |index| dumped(index << 8, index))].concat()),
        ),
        ("a next hop a route", with_peers(many(50_000, |index| rib(index << 8, 1, &attributes(index))))),
        (
            "a next hop a line",
            many(100_000, |index| format!("{}/32 {index}\n", Ipv4Addr::from(index)).into_bytes()),
        ),
        (
            "long origins",
            many(3_000, |index| {
                format!("{}/32 {index}{}\n", Ipv4Addr::from(index), "_1".repeat(5_000)).into_bytes()
            }),
        ),
        ("a prefix a byte", many(6, |index| update(index, &[], &attributes(7), &[0; 60_000]))),
        ("withdrawn a byte", many(6, |index| update(index, &[0; 60_000], &[], &[]))),
        (
            "bits after each length",
            many(6, |index| update(index, &[], &attributes(7), &[1, 0xff].repeat(30_000))),
        ),
        ("bits after each length of a message without a bound", {
            // The early type BGP: a body without the length of a BGP message, as long as its record.
            let ends = [0xfb, 0xf5, 192, 0, 2, 2, 0xfb, 0xf4, 192, 0, 2, 1];
            let attributes = [0x40, 1, 1, 0, 0x40, 2, 4, 2, 1, 0xfb, 0xf4, 0x40, 3, 4, 192, 0, 2, 1];
            let lengths = [0, 0, 0, attributes.len() as u8];
            let body = [&ends[..], &lengths, &attributes, &[1, 0xff].repeat(2 * MIB - 1_000)].concat();
            record(5, 1, &body)
        }),
        ("an update a peer", many(100_000, |index| update(index, &[], &attributes(7), &[8, 10]))),
        (
            "sessions that end",
            many(50_000, |index| {
                [update(index, &[], &attributes(7), &[8, 10]), update(index, &[8, 10], &[], &[])].concat()
            }),
        ),
        ("attributes of nothing", many(20, |index| update(index, &[], &attribute_list(200, 0, 0), &[8, 10]))),
        (
            "attributes that are wrong",
            many(20, |index| update(index, &[], &attribute_list(1, 3, 9), &[8, 10])),
        ),
        ("attributes of every kind", many(2_000, |index| update(index, &[], &unknown, &[8, 10]))),
        ("an endless path", many(20, |index| update(index, &[], &segments, &[8, 10]))),
        ("endless communities", many(20, |index| update(index, &[], &communities, &[8, 10]))),
        ("communities of many routes", with_peers(many(2, |index| rib(index, 60, &communities)))),
        ("claims of the longest record", {
            let header = [&[0x65, 0, 0, 0, 0, 13, 0, 2][..], &(4 * MIB as u32 - 12).to_be_bytes()].concat();
            header.repeat(12 * MIB / header.len())
        }),
        (
            "the longest record",
            [record(16, 4, &vec![0; 4 * MIB - 12]), record(16, 4, &vec![0; 4 * MIB - 12])].concat(),
        ),
        ("records of one byte", record(16, 4, &[0]).repeat(300_000)),
        ("records of nothing", record(13, 2, &[]).repeat(300_000)),
        ("damage everywhere", good.iter().map(|byte| byte ^ 0x55).collect()),
        (
            "damage after each record",
            many(30_000, |index| [rib(index, 1, &attributes(7)), vec![0xff]].concat()),
        ),
        ("lines of a byte", b"x\n".repeat(2 * MIB)),
        (
            "lines of many peers",
            many(100_000, |index| {
                format!("1 a 10.0.0.0/8 192.0.2.1 {} 5 6\n", Ipv4Addr::from(index)).into_bytes()
            }),
        ),
        (
            "lines of many routes",
            many(100_000, |index| format!("{}/32 7\n", Ipv4Addr::from(index)).into_bytes()),
        ),
    ]
}

/// What is done with a file.
#[derive(Debug, Clone, Copy)]
enum Way {
    MostRoutes,
    Best,
    Survey,
    Events,
}

/// Reads the file in this way and says why not, and how many bytes were in use at most.
fn read(way: Way, bytes: &[u8], limit: usize, threads: usize) -> (Option<String>, usize) {
    let mut options = LoadOptions::default();
    options.limits = Limits { memory_bytes: Some(limit), huge_pages: false };
    options.threads = threads;
    options.selection = if matches!(way, Way::MostRoutes) { Selection::MostRoutes } else { Selection::Best };
    let (error, usage) = measure_process(|| match way {
        Way::Survey => Loader::new(options).survey(Source::reader("x", bytes)).err(),
        Way::Events => Loader::new(options).events(Source::reader("x", bytes), |_| Ok(())).err(),
        Way::MostRoutes | Way::Best => Loader::new(options).load(Source::reader("x", bytes)).err(),
    });
    (error.map(|error| error.to_string()), usage.peak_bytes as usize)
}

#[test]
fn hostile_files_stay_within_the_limit() {
    use Way::{Best, Events, MostRoutes, Survey};
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let settings = [
        (1, 1, [MostRoutes, Events]),
        (1, 4, [Best, Survey]),
        (4, 1, [Best, Survey]),
        (4, 4, [MostRoutes, Events]),
        (16, 1, [Best, Events]),
        (16, 4, [MostRoutes, Best]),
    ];
    for (name, bytes) in files() {
        for (megabytes, threads, ways) in settings {
            for way in ways {
                let limit = megabytes * MIB;
                let (error, peak) = read(way, &bytes, limit, threads);
                let case = format!("{name}: {way:?}, {megabytes} MiB, {threads} threads: {error:?}");
                assert!(error.is_none_or(|error| error.starts_with('x') && error.len() > 10), "{case}");
                assert!(peak <= limit + threads * THREAD_BYTES, "{case}: {peak} bytes");
            }
        }
    }
}

/// Every form of the list has inputs made to be expensive, which stay within the limit as files.
#[test]
fn hostile_inputs_of_every_form_stay_within_the_limit() {
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = std::env::temp_dir().join(format!("fibula-hostile-{}", std::process::id()));
    for form in TableForm::ALL {
        assert!(!form.hostile.is_empty(), "{form:?} has no hostile inputs");
        for hostile in form.hostile {
            let bytes = (hostile.make)();
            for content in [gzipped(&bytes), bytes] {
                std::fs::write(&path, &content).unwrap();
                for megabytes in [1, 4, 16] {
                    let limit = megabytes * MIB;
                    let mut options = LoadOptions::default();
                    options.limits = Limits { memory_bytes: Some(limit), huge_pages: false };
                    let (error, usage) = measure_process(|| Loader::new(options).load(&path).err());
                    let case = format!("{form:?}, {}: {megabytes} MiB: {error:?}", hostile.name);
                    let peak = usage.peak_bytes as usize;
                    assert!(peak <= limit + THREAD_BYTES, "{case}: {peak} bytes");
                }
            }
        }
    }
    std::fs::remove_file(&path).unwrap();
}
