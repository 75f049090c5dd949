//! Compiled tables are feeds.

use std::io::Cursor;

use fibula::file::Contents;
use fibula::net::{Family, NextHop};

use super::{LoadOptions, load_reader, survey_reader};
use crate::load::Loader;

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
