//! MaxMind databases are feeds. The databases are written here, after the MaxMind DB file format, version 2.0.

use fibula::file::ColumnType;
use fibula::memory::Limits;
use fibula::net::{HostBits, IpPrefix};

use super::LoadOptions;
use crate::load::Loader;

fn text(text: &str) -> Vec<u8> {
    let size = match text.len() as u8 {
        short @ ..29 => vec![0b010 << 5 | short],
        long => vec![0b010 << 5 | 29, long - 29],
    };
    [&size, text.as_bytes()].concat()
}

fn number(value: u32) -> Vec<u8> {
    [&[0b110 << 5 | 4][..], &value.to_be_bytes()].concat()
}

fn short(value: u16) -> Vec<u8> {
    [&[0b101 << 5 | 2][..], &value.to_be_bytes()].concat()
}

fn map(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let fields = fields.iter().map(|(name, value)| [text(name), value.clone()].concat());
    [vec![0b111 << 5 | fields.len() as u8], fields.collect::<Vec<_>>().concat()].concat()
}

/// A child of a node: another node, a record, or nothing.
#[derive(Clone, Copy)]
enum Child {
    Node(usize),
    Record(usize),
    Nothing,
}

/// Returns a database with these records at these prefixes, in 128 bits a key if `is_v6`; `aliases` lead to where the first
/// prefix of the pair leads.
fn database(is_v6: bool, records: &[(&str, Vec<u8>)], aliases: &[(&str, &str)]) -> Vec<u8> {
    let mut nodes = vec![[Child::Nothing; 2]];
    let bits = |prefix: &str| -> Vec<usize> {
        let (key, len) = match IpPrefix::parse(prefix.as_bytes(), HostBits::Refuse).unwrap() {
            IpPrefix::V4(prefix) if is_v6 => (u128::from(prefix.addr()), prefix.len() + 96),
            IpPrefix::V4(prefix) => (u128::from(prefix.addr()) << 96, prefix.len()),
            IpPrefix::V6(prefix) => (prefix.addr(), prefix.len()),
        };
        (0..len).map(|at| (key >> (127 - at)) as usize & 1).collect()
    };
    let mut set = |bits: &[usize], child: Child| {
        let (last, way) = bits.split_last().unwrap();
        let mut at = 0;
        for &bit in way {
            at = match nodes[at][bit] {
                Child::Node(next) => next,
                _ => {
                    nodes.push([Child::Nothing; 2]);
                    nodes[at][bit] = Child::Node(nodes.len() - 1);
                    nodes.len() - 1
                }
            };
        }
        std::mem::replace(&mut nodes[at][*last], child)
    };
    let mut data: Vec<u8> = Vec::new();
    for (prefix, record) in records {
        set(&bits(prefix), Child::Record(data.len()));
        data.extend(record);
    }
    for (of, alias) in aliases {
        let target = set(&bits(of), Child::Nothing);
        set(&bits(of), target);
        set(&bits(alias), target);
    }
    let count = nodes.len();
    let mut bytes = Vec::new();
    for child in nodes.into_iter().flatten() {
        let record = match child {
            Child::Node(node) => node,
            Child::Nothing => count,
            Child::Record(at) => count + 16 + at,
        };
        bytes.extend(&(record as u32).to_be_bytes()[1..]);
    }
    bytes.extend([0; 16]);
    bytes.extend(data);
    bytes.extend(b"\xab\xcd\xefMaxMind.com");
    bytes.extend(map(&[
        ("binary_format_major_version", short(2)),
        ("binary_format_minor_version", short(0)),
        ("build_epoch", vec![0, 2]),
        ("database_type", text("Test")),
        ("description", map(&[])),
        ("ip_version", short(if is_v6 { 6 } else { 4 })),
        ("languages", vec![0, 4]),
        ("node_count", number(count as u32)),
        ("record_size", short(24)),
    ]));
    bytes
}

fn asn(number_of_it: u32, organization: &str) -> Vec<u8> {
    map(&[
        ("autonomous_system_number", number(number_of_it)),
        ("autonomous_system_organization", text(organization)),
    ])
}

/// Loads a database from a file of this name.
fn load(name: &str, bytes: &[u8], options: LoadOptions) -> Result<Vec<String>, String> {
    let path = std::env::temp_dir().join(format!("fibula-{name}-{}.mmdb", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let loaded = Loader::new(options).load(&path);
    std::fs::remove_file(&path).unwrap();
    let table = loaded.map_err(|error| error.to_string().replace(&path.display().to_string(), "x.mmdb"))?;
    let line = |(prefix, id)| format!("{prefix} {}", table.next_hops.label(id).unwrap());
    Ok(table.ribs.iter().map(line).collect())
}

fn values(names: &str) -> LoadOptions {
    let values = names.split(',').map(|name| name.parse().unwrap()).collect();
    LoadOptions { values, ..LoadOptions::default() }
}

#[test]
fn networks_of_both_families_come_once() {
    let records = [
        ("1.0.0.0/24", asn(13335, "CLOUDFLARENET")),
        ("1.0.4.0/22", asn(38803, "Wirefreebroadband")),
        ("255.255.255.255/32", asn(7, "last")),
        ("2001:200::/32", asn(2500, "WIDE")),
        ("2400::/12", asn(4608, "APNIC")),
        ("ffff::/16", asn(8, "last of all")),
    ];
    // The other names of IPv4's addresses, as the databases of MaxMind have them.
    let aliases = [("0.0.0.0/0", "::ffff:0:0/96"), ("0.0.0.0/0", "2001::/32"), ("0.0.0.0/0", "2002::/16")];
    let bytes = database(true, &records, &aliases);
    let expected = [
        "1.0.0.0/24 13335",
        "1.0.4.0/22 38803",
        "255.255.255.255/32 7",
        "2001:200::/32 2500",
        "2400::/12 4608",
        "ffff::/16 8",
    ];
    assert_eq!(load("mmdb-both", &bytes, LoadOptions::default()).unwrap(), expected);
    assert_eq!(load("mmdb-origin", &bytes, values("origin-as")).unwrap(), expected);
    let named = load("mmdb-named", &bytes, values("autonomous_system_organization")).unwrap();
    assert_eq!(named[3], "2001:200::/32 WIDE");
}

#[test]
fn more_networks_than_are_written_at_a_time() {
    let prefixes: Vec<String> = (0..3000).map(|at| format!("10.{}.{}.0/24", at / 256, at % 256)).collect();
    let records: Vec<_> = prefixes.iter().map(|prefix| (&**prefix, text(&prefix[3..8]))).collect();
    for is_v6 in [false, true] {
        let lines = load("mmdb-many", &database(is_v6, &records, &[]), LoadOptions::default()).unwrap();
        let expected: Vec<String> =
            prefixes.iter().map(|prefix| format!("{prefix} {}", &prefix[3..8])).collect();
        assert_eq!(lines, expected);
    }
}

#[test]
fn records_in_records_have_names_with_dots() {
    let record = map(&[
        ("country", map(&[("iso_code", text("JP")), ("geoname_id", number(1_861_060))])),
        ("prefix", text("not where it is")),
    ]);
    let bytes = database(false, &[("192.0.2.0/24", record)], &[]);
    assert_eq!(load("mmdb-dots", &bytes, values("country.iso_code")).unwrap(), ["192.0.2.0/24 JP"]);
    assert_eq!(load("mmdb-first", &bytes, LoadOptions::default()).unwrap(), ["192.0.2.0/24 JP"]);
}

#[test]
fn values_of_records_have_the_type_that_was_named() {
    let records = [("10.0.0.0/8", asn(64_500, "AS of one")), ("11.0.0.0/8", asn(64_501, "another"))];
    let bytes = database(false, &records, &[]);
    let typed = |kind| LoadOptions { types: vec![Some(kind)], ..values("autonomous_system_organization") };
    assert_eq!(load("text", &bytes, typed(ColumnType::Text)).unwrap().len(), 2);
    let error = load("number", &bytes, typed(ColumnType::U32)).unwrap_err();
    assert!(
        error.contains(
            ": the value 'autonomous_system_organization' is 'AS of one', which is not of type u32"
        ),
        "{error}"
    );
    let number = LoadOptions { types: vec![Some(ColumnType::U32)], ..values("autonomous_system_number") };
    assert_eq!(load("origin", &bytes, number).unwrap().len(), 2);
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let bytes = database(false, &[("192.0.2.0/24", text("x"))], &[]);
    let mark = bytes.windows(3).position(|bytes| bytes == b"\xab\xcd\xef").unwrap();
    let without_description = load("mmdb-short", &bytes[..mark + 14], LoadOptions::default()).unwrap_err();
    assert!(
        without_description.starts_with("x.mmdb: not a readable MaxMind database: "),
        "{without_description}"
    );
    let limits = Limits::within(100);
    let refused = load("mmdb-limit", &bytes, LoadOptions { limits, ..LoadOptions::default() }).unwrap_err();
    assert!(refused.contains("the memory limit is 100 bytes"), "{refused}");
    // Every byte altered: another table or an error, no panic and no endless reading.
    for at in 0..bytes.len() {
        for value in [0, 0x7f, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            drop(load(
                "mmdb-damaged",
                &damaged,
                LoadOptions { limits: Limits::within(1 << 20), ..LoadOptions::default() },
            ));
        }
    }
}

/// Both halves of each node lead to the same child, so one record has `2^len` networks.
fn shared(len: u8) -> Vec<u8> {
    let pairs: Vec<_> = (1..=len)
        .map(|at| {
            (format!("0.0.0.0/{at}"), format!("{}/{at}", core::net::Ipv4Addr::from(1_u32 << (32 - at))))
        })
        .collect();
    let pairs: Vec<_> = pairs.iter().map(|(of, alias)| (of.as_str(), alias.as_str())).collect();
    database(false, &[(&format!("0.0.0.0/{len}"), asn(7, "one"))], &pairs)
}

#[test]
fn a_record_that_is_repeated_for_too_many_networks_is_refused() {
    assert_eq!(load("mmdb-shared", &shared(10), LoadOptions::default()).unwrap().len(), 1 << 10);
    let bytes = shared(20);
    // A line of text has 11 bytes at least.
    assert!(11 << 20 > 1_000 * bytes.len() as u64, "{}", bytes.len());
    let error = load("mmdb-repeated", &bytes, LoadOptions::default()).unwrap_err();
    assert!(error.contains("repeated for all networks, are more than 1000 times its length"), "{error}");
}
