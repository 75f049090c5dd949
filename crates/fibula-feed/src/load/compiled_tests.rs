//! Compiled tables are feeds.

use std::io::Cursor;

use fibula::file::{ColumnBuilder, ColumnType, ColumnValue, Contents};
use fibula::net::{Family, NextHop};

use super::{LoadOptions, load_reader, survey_reader};
use crate::load::Loader;
use crate::value::Value;

const TEXT: &str = "10.0.0.0/8 7\n10.1.0.0/16 192.0.2.1\n2001:db8::/32 0\n2001:db8:1::/48 2001:db8::1\n";

/// The table of the text as a file, with or without its routes.
fn compiled(with_routes: bool) -> Vec<u8> {
    let table = load_reader("text", TEXT.as_bytes(), &LoadOptions::default(), &mut |_| ()).unwrap();
    let fib = fibula::fib::DualFib::build(&table.ribs).unwrap();
    let mut contents = Contents::default();
    (contents.v4.fib, contents.v6.fib) = (Some(&*fib.v4), Some(&*fib.v6));
    if with_routes {
        contents.v4.routes = Some(&table.ribs.v4);
        contents.v6.routes = Some(&table.ribs.v6);
    }
    for id in 1..=table.next_hops.len() {
        let id = NextHop::try_from(id as u32).unwrap();
        contents.values.insert(id, table.next_hops.label(id).unwrap().to_string().into_bytes());
    }
    let mut bytes = Vec::new();
    contents.write(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_compiled_table_is_read_as_its_routes() {
    let bytes = compiled(true);
    let path = std::env::temp_dir().join(format!("fibula-compiled-{}", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let of_file = Loader::new(LoadOptions::default()).load(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // As a stream too, and one byte at a time.
    let of_stream = load_reader("stream", Cursor::new(&bytes), &LoadOptions::default(), &mut |_| ()).unwrap();
    for table in [of_file, of_stream] {
        let lines = table
            .ribs
            .iter()
            .map(|(prefix, next_hop)| format!("{prefix} {}\n", table.next_hops.label(next_hop).unwrap()));
        assert_eq!(lines.collect::<String>(), TEXT);
        assert_eq!((table.report().lines, table.report().bad_lines), (4, 0));
    }
    let options = LoadOptions { family: Some(Family::Ipv6), ..LoadOptions::default() };
    let table = load_reader("stream", &bytes[..], &options, &mut |_| ()).unwrap();
    assert_eq!((table.ribs.v4.len(), table.ribs.v6.len()), (0, 2));
    assert_eq!(survey_reader("stream", &bytes[..], &LoadOptions::default(), &mut |_| ()).unwrap().lines, 4);
}

#[test]
fn compiled_tables_without_routes_or_damaged_are_refused_by_name() {
    let refused = |bytes: &[u8]| {
        let error = load_reader("x.fibula", bytes, &LoadOptions::default(), &mut |_| ()).unwrap_err();
        assert!(error.is_bad_input());
        error.to_string()
    };
    let error = refused(&compiled(false));
    assert!(error.starts_with("x.fibula: compiled without its routes, which are needed here"), "{error}");
    let bytes = compiled(true);
    let error = refused(&bytes[..bytes.len() - 1]);
    assert!(error.starts_with("x.fibula: truncated: "), "{error}");
    // A file that is cut off within its first bytes is no compiled table yet.
    assert!(refused(&bytes[..5]).contains("not a routing table"));
}

/// A compiled table with columns: what a route has of each, and of the first one in place of the next hop.
#[test]
fn columns_of_a_compiled_table_are_values_of_its_routes() {
    let table = load_reader("text", TEXT.as_bytes(), &LoadOptions::default(), &mut |_| ()).unwrap();
    let mut place = ColumnBuilder::new("place", ColumnType::Text);
    let mut asn = ColumnBuilder::new("origin_as", ColumnType::U32);
    let mut network = ColumnBuilder::new("network", ColumnType::F64);
    for (at, text) in [Some("07"), None, Some("a \"b\""), Some("c")].into_iter().enumerate() {
        place.push(text.map(|text| ColumnValue::Text(text.into()))).unwrap();
        asn.push((at != 3).then_some(ColumnValue::U32(64_500 + at as u32))).unwrap();
        network.push(Some(ColumnValue::F64(if at == 0 { f64::INFINITY } else { 1.5 }))).unwrap();
    }
    let columns = [place, asn, network].map(ColumnBuilder::finish);
    let mut contents = Contents { columns: columns.iter().collect(), ..Contents::default() };
    contents.v4.routes = Some(&table.ribs.v4);
    contents.v6.routes = Some(&table.ribs.v6);
    let mut bytes = Vec::new();
    contents.write(&mut bytes).unwrap();
    let lines = |values: &[&str]| {
        let values = values.iter().map(|value| value.parse().unwrap()).collect();
        let options = LoadOptions { values, ..LoadOptions::default() };
        let table = load_reader("stream", &bytes[..], &options, &mut |_| ()).unwrap();
        let label = |id| table.next_hops.label(id).unwrap().to_string();
        table.ribs.iter().map(|(_, next_hop)| label(next_hop)).collect::<Vec<_>>()
    };
    assert_eq!(lines(&[]), ["07", "-", "a \"b\"", "c"]);
    assert_eq!(lines(&["place"]), ["07", "-", "a \"b\"", "c"]);
    assert_eq!(lines(&["origin-as"]), ["64500", "64501", "64502", "-"]);
    // A name that says where a route applies is another one.
    assert_eq!(lines(&["value_network", "origin-as"])[..2], ["inf 64500", "1.5 64501"]);
}

#[test]
fn a_value_that_is_not_of_its_type_fails_with_its_line() {
    let csv = "prefix,place,asn\n10.0.0.0/8,a,1\n10.1.0.0/16,b,\n10.2.0.0/16,c,x\n10.3.0.0/16,d,y\n";
    let load = |types: Vec<Option<ColumnType>>| {
        let values = ["place", "asn"].map(|name| Value::Column(name.into())).to_vec();
        load_reader(
            "t.csv",
            csv.as_bytes(),
            &LoadOptions { values, types, ..LoadOptions::default() },
            &mut |_| (),
        )
    };
    for types in [vec![], vec![None, None], vec![Some(ColumnType::Bytes), Some(ColumnType::Text)]] {
        assert_eq!(load(types).unwrap().ribs.v4.len(), 4);
    }
    let error = load(vec![None, Some(ColumnType::U32)]).unwrap_err();
    assert_eq!(error.to_string(), "t.csv:4: the value 'asn' is 'x', which is not of type u32");
    assert!(error.is_bad_input() && error.line() == Some(4));
    let error = load(vec![Some(ColumnType::Bool)]).unwrap_err();
    assert_eq!(error.to_string(), "t.csv:2: the value 'place' is 'a', which is not of type bool");
    // A route that is left out needs no value.
    let mut options = LoadOptions {
        values: vec![Value::OriginAs],
        types: vec![Some(ColumnType::U32)],
        ..LoadOptions::default()
    };
    options.family = Some(Family::Ipv6);
    assert!(load_reader("t.csv", csv.as_bytes(), &options, &mut |_| ()).unwrap().ribs.v4.is_empty());
}
