use std::net::IpAddr;

use fibula::memory::Limits;
use maxminddb::Reader;
use serde_json::{Value as Json, json};

use super::*;
use crate::{LoadOptions, Loader, Source, WantedColumns};

/// A table of this CSV with these columns.
fn table(csv: &str, values: &[&str]) -> (LoadedRoutes, Vec<StoredColumn>) {
    let values: Vec<_> = values.iter().map(|value| value.parse().unwrap()).collect();
    let wanted = WantedColumns::new(&values).unwrap().or_next_hops();
    let mut options = LoadOptions::default();
    (options.values, options.types) = (wanted.values(), wanted.types());
    let source = Source::reader("table.csv", io::Cursor::new(csv.to_owned().into_bytes()));
    let mut table = Loader::new(options).load(source).unwrap();
    let columns = wanted.fill(&mut table, Limits::default()).unwrap();
    (table, columns)
}

fn written(csv: &str, values: &[&str], options: &MmdbOptions) -> Result<Reader<Vec<u8>>, MmdbError> {
    let (table, columns) = table(csv, values);
    let mut bytes = Vec::new();
    let summary = write(&table, &columns, options, &mut bytes)?;
    assert_eq!(summary.bytes, bytes.len());
    Ok(Reader::from_source(bytes).unwrap())
}

fn find(reader: &Reader<Vec<u8>>, address: &str) -> Option<Json> {
    reader.lookup(address.parse::<IpAddr>().unwrap()).unwrap().decode().unwrap()
}

#[test]
fn records_have_the_fields_that_readers_look_for() {
    let csv = "prefix,asn,as_name,country,latitude,is_anycast,offset,note\n\
        192.0.2.0/24,64500,Example,NL,52.5,true,-7,\n\
        192.0.2.128/25,64501,,NL,,false,7,Example\n\
        2001:db8::/32,4294967295,Other,DE,-0.25,true,4294967296,x\n";
    let values =
        ["asn:u32", "as_name", "country", "latitude:f64", "is_anycast:bool", "offset:i64", "note:text"];
    let names = [("latitude", "location.latitude"), ("note", "country.note")];
    let options = MmdbOptions {
        names: names.map(|(column, name)| (column.to_owned(), name.to_owned())).into(),
        build_epoch: 1_700_000_000,
        ..MmdbOptions::default()
    };
    let reader = written(csv, &values, &options).unwrap();
    let first = json!({
        "autonomous_system_number": 64500, "autonomous_system_organization": "Example", "country": {"iso_code": "NL"},
        "location": {"latitude": 52.5}, "is_anycast": true, "offset": -7
    });
    assert_eq!(find(&reader, "192.0.2.1"), Some(first));
    let second = json!({
        "autonomous_system_number": 64501, "country": {"iso_code": "NL", "note": "Example"}, "is_anycast": false, "offset": 7
    });
    assert_eq!(find(&reader, "192.0.2.200"), Some(second));
    let third = find(&reader, "2001:db8::1").unwrap();
    assert_eq!(third["autonomous_system_number"], json!(u32::MAX));
    assert_eq!((&third["offset"], &third["location"]["latitude"]), (&json!(1_u64 << 32), &json!(-0.25)));
    assert_eq!((find(&reader, "192.0.3.0"), find(&reader, "::1")), (None, None));
    assert_eq!(find(&reader, "::ffff:192.0.2.1"), None);
    let metadata = reader.metadata();
    assert_eq!((metadata.ip_version, metadata.record_size, metadata.build_epoch), (6, 24, 1_700_000_000));
    assert_eq!(metadata.database_type, "Fibula-GeoLite2-ASN-Country");
}

#[test]
fn aliases_lead_to_ipv4() {
    let csv = "prefix,next_hop\n192.0.2.0/24,a\n::/0,b\n2002::/15,c\n";
    let options = MmdbOptions { has_aliases: true, ..MmdbOptions::default() };
    let reader = written(csv, &[], &options).unwrap();
    for address in ["192.0.2.9", "::ffff:192.0.2.9", "::192.0.2.9", "2002:c000:0209::1"] {
        assert_eq!(find(&reader, address), Some(json!({"next_hop": "a"})), "{address}");
    }
    for (address, value) in
        [("2003::1", Some("c")), ("2002::1", None), ("192.0.3.1", None), ("fe80::1", Some("b"))]
    {
        assert_eq!(find(&reader, address), value.map(|value| json!({"next_hop": value})), "{address}");
    }
    // Without routes of IPv6, it is a database of both families for the aliases alone.
    let narrow = "prefix,next_hop\n0.0.0.0/0,a\n";
    assert_eq!(written(narrow, &[], &MmdbOptions::default()).unwrap().metadata().ip_version, 4);
    let reader = written(narrow, &[], &options).unwrap();
    assert_eq!(reader.metadata().ip_version, 6);
    assert_eq!(find(&reader, "::ffff:1.2.3.4"), Some(json!({"next_hop": "a"})));
}

#[test]
fn tables_without_a_place_are_refused() {
    let refused = |csv: &str, values: &[&str], names: &[(&str, &str)], has_aliases| {
        let names = names.iter().map(|(column, name)| ((*column).to_owned(), (*name).to_owned())).collect();
        let options = MmdbOptions { names, has_aliases, ..MmdbOptions::default() };
        written(csv, values, &options).map(drop).unwrap_err().to_string()
    };
    let why = refused("prefix,next_hop\n1.0.0.0/8,a\n::1/128,b\n", &[], &[], false);
    assert_eq!(why, "::1/128 has no place in a MaxMind database: the records of IPv4 are there");
    let why = refused("prefix,next_hop\n1.0.0.0/8,a\n2002:1::/32,b\n", &[], &[], true);
    assert!(why.starts_with("2002:1::/32 has no place"), "{why}");
    let csv = "prefix,a,b\n1.0.0.0/8,1,-2147483649\n";
    let why = refused(csv, &["a", "b"], &[("a", "x"), ("b", "x.y")], false);
    assert_eq!(why, "two columns have the field 'x.y', or one lies within it");
    assert!(refused(csv, &["a", "b"], &[("b", "..")], false).contains("the field '..'"));
    assert_eq!(refused(csv, &["a"], &[("b", "x")], false), "there is no column 'b' to be named");
    assert!(refused(csv, &["b:i64"], &[], false).starts_with("-2147483649 is below -2147483648"));
}

/// Nested prefixes of both families by a generator of its own, with as many distinct records as places of each width need.
#[test]
fn answers_are_those_of_the_table() {
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    for (count, labels) in [(0, 1), (1, 1), (2_000, 3), (20_000, 20_000)] {
        let mut csv = String::from("prefix,next_hop,note\n");
        let mut keys = Vec::new();
        for _ in 0..count {
            let (label, is_v4) = (next() % labels, next() % 2 == 0);
            let prefix: IpPrefix = if is_v4 {
                let address = (10_u32 << 24) | (next() as u32 & 0xff_ffff);
                Prefix::masked(address, 6 + (next() % 27) as u8).unwrap().into()
            } else {
                let address = 0x2001_0db8_u128 << 96 | u128::from(next()) << 64 | u128::from(next()) << 40;
                Prefix::masked(address, 28 + (next() % 101) as u8).unwrap().into()
            };
            csv += &format!("{prefix},text{label},{}\n", "long ".repeat((label % 70) as usize));
            keys.push(prefix);
        }
        let (table, columns) = table(&csv, &["next_hop", "note"]);
        let mut bytes = Vec::new();
        let summary = write(&table, &columns, &MmdbOptions::default(), &mut bytes).unwrap();
        assert_eq!(summary.record_bits, 24);
        let reader = Reader::from_source(bytes).unwrap();
        let judge = |address: IpAddr| {
            let id = match address {
                IpAddr::V4(address) => table.ribs.v4.lookup(address),
                IpAddr::V6(address) => table.ribs.v6.lookup(address),
            };
            if address.is_ipv6() && reader.metadata().ip_version == 4 {
                return;
            }
            let found: Option<Json> = reader.lookup(address).unwrap().decode().unwrap();
            let right = id.and_then(|id| columns[0].value(id)).map(|value| value.to_string());
            assert_eq!(
                found.map(|record| record["next_hop"].as_str().unwrap().to_owned()),
                right,
                "{address}"
            );
        };
        for prefix in keys {
            match prefix {
                IpPrefix::V4(prefix) => [prefix.addr(), prefix.last(), prefix.last().wrapping_add(1)]
                    .into_iter()
                    .for_each(|key| judge(IpAddr::V4(key.into()))),
                IpPrefix::V6(prefix) => [prefix.addr(), prefix.last(), prefix.last().wrapping_add(1)]
                    .into_iter()
                    .for_each(|key| judge(IpAddr::V6(key.into()))),
            }
        }
    }
}

#[test]
fn nodes_of_all_widths_are_packed() {
    assert_eq!(packed(0x01_02_03, 0xfe_dc_ba, 24)[..6], [1, 2, 3, 0xfe, 0xdc, 0xba]);
    assert_eq!(packed(0xa01_0203, 0xbfe_dcba, 28)[..7], [1, 2, 3, 0xab, 0xfe, 0xdc, 0xba]);
    assert_eq!(packed(0xf001_0203, 1, 32), [0xf0, 1, 2, 3, 0, 0, 0, 1]);
}
