//! `fibula compile` with columns of values: what is in the file, against the table that it was made from.

use std::collections::{BTreeMap, HashSet};

use fibula::file::{ColumnType, ColumnValue, TableFile};
use fibula::net::NextHop;

use crate::support::{Folder, run};

/// A table of some hundred routes with values, some of them missing and many of them repeated: its text, and what each prefix has.
fn sites() -> (String, BTreeMap<String, [Option<String>; 5]>) {
    let mut text = "prefix,country,asn,latitude,code,open\n".to_owned();
    let mut rows = BTreeMap::new();
    let mut state = 1_u32;
    let mut below = |most: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % most
    };
    for number in 0..400_u32 {
        let prefix = if number % 5 == 0 {
            format!("2001:db8:{number:x}::/48")
        } else {
            format!("10.{}.{}.0/{}", number / 200, number % 200, 24 + number % 3)
        };
        let some = |is_there: u32, text: String| (is_there > 0).then_some(text);
        let row = [
            some(below(6), ["DE", "FR", "\u{d6}sterreich, Wien", "say \"x\""][below(4) as usize].to_owned()),
            some(below(9), (64_500 + below(20)).to_string()),
            some(below(4), ["48.25", "-7.5", "0.125"][below(3) as usize].to_owned()),
            some(below(5), format!("0{}", below(9))),
            some(below(3), (below(2) == 1).to_string()),
        ];
        let cells = row.iter().enumerate().map(|(at, cell)| {
            // Equal values need not be written alike.
            let end = if at == 2 && cell.is_some() && number % 2 == 0 { "0" } else { "" };
            format!("\"{}{end}\"", cell.clone().unwrap_or_default().replace('"', "\"\""))
        });
        text += &format!("{prefix},{}\n", cells.collect::<Vec<_>>().join(","));
        rows.insert(prefix, row);
    }
    (text, rows)
}

const VALUES: &str = "country:text,asn,latitude:f64,code,open:bool";

/// The file of the table, compiled with these options.
fn compiled(folder: &Folder, text: &str, options: &[&str]) -> String {
    let table = folder.write("sites.csv", text).display().to_string();
    let file = folder.path().join("sites.fibula").display().to_string();
    let run = run(&[&["compile", "-q", &table, "-o", &file], options].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    file
}

/// Asserts that a file has the values of each prefix, under ids without gaps, one for each distinct row.
fn assert_has(file: &str, rows: &BTreeMap<String, [Option<String>; 5]>) {
    for file in [TableFile::open(file).unwrap(), TableFile::map(file).unwrap()] {
        let kinds: Vec<_> = file.columns().iter().map(|column| (column.name(), column.kind())).collect();
        assert_eq!(
            kinds,
            [
                ("country", ColumnType::Text),
                ("asn", ColumnType::U32),
                ("latitude", ColumnType::F64),
                ("code", ColumnType::Text),
                ("open", ColumnType::Bool)
            ]
        );
        let mut ids = HashSet::new();
        for (prefix, row) in rows {
            let address: core::net::IpAddr = prefix.split('/').next().unwrap().parse().unwrap();
            let id = file.lookup(address).unwrap();
            ids.insert(id);
            let found: Vec<_> =
                file.columns().iter().map(|column| column.value(id).map(|value| value.to_string())).collect();
            assert_eq!(found, row, "{prefix}");
        }
        let distinct: HashSet<_> = rows.values().collect();
        assert!(distinct.len() > 100 && distinct.len() < rows.len());
        assert_eq!(ids.len(), distinct.len());
        assert!(file.columns().iter().all(|column| column.len() == distinct.len() && column.ids().is_none()));
        assert!((1..=distinct.len() as u32).all(|id| ids.contains(&NextHop::new(id).unwrap())));
    }
}

#[test]
fn columns_have_the_values_of_the_table_by_dense_ids() {
    let folder = Folder::new();
    let (text, rows) = sites();
    let file = compiled(&folder, &text, &["--value", VALUES]);
    assert_has(&file, &rows);
    // A compiled table from a compiled one has the same columns.
    let again = folder.path().join("again.fibula").display().to_string();
    assert_eq!(run(&["compile", "-q", &file, "-o", &again, "--engine", "dir-18-lines"]).code, 0);
    assert_has(&again, &rows);
    // Named ones alone, with another type.
    assert_eq!(run(&["compile", "-q", &file, "-o", &again, "--value", "code:bytes,asn:u64"]).code, 0);
    let again = TableFile::open(&again).unwrap();
    let id = again.lookup([10, 0, 1, 0]).unwrap();
    let [_, asn, _, code, _] = &rows["10.0.1.0/25"];
    let expected = code.as_ref().map(|code| ColumnValue::Bytes(code.as_bytes().into()));
    assert_eq!(again.column("code").unwrap().value(id), expected);
    let expected = asn.as_ref().map(|asn| ColumnValue::U64(asn.parse().unwrap()));
    assert_eq!(again.column("asn").unwrap().value(id), expected);
}

#[test]
fn columns_are_shown_by_their_names_and_types() {
    let folder = Folder::new();
    let text =
        "prefix,country,asn,open\n10.0.0.0/8,DE,64500,true\n10.1.0.0/16,,64501,\n2001:db8::/32,FR,,false\n";
    for options in [
        &["--value", "country,asn:u64,open:bool"][..],
        &["--value", "country,asn:u64,open:bool", "--no-routes", "--with-length"],
    ] {
        let file = compiled(&folder, text, options);
        let lookup = |more: &[&str]| {
            run(&[&["lookup", "-q", "-t", &file, "10.0.0.1", "10.1.0.1", "2001:db8::1", "8.8.8.8"], more]
                .concat())
            .out
        };
        assert_eq!(
            lookup(&[]),
            "10.0.0.1 10.0.0.0/8 via DE asn 64500 open true\n10.1.0.1 10.1.0.0/16 via - asn 64501 open -\n\
             2001:db8::1 2001:db8::/32 via FR asn - open false\n8.8.8.8 no route\n"
        );
        assert_eq!(
            lookup(&["--format", "csv"]),
            "address,prefix,next_hop,country,asn,open\n10.0.0.1,10.0.0.0/8,DE,DE,64500,true\n\
             10.1.0.1,10.1.0.0/16,,,64501,\n2001:db8::1,2001:db8::/32,FR,FR,,false\n8.8.8.8,,,,,\n"
        );
        assert!(lookup(&["--format", "json-line"]).starts_with(
            "{\"address\":\"10.0.0.1\",\"prefix\":\"10.0.0.0/8\",\"next_hop\":\"DE\",\"country\":\"DE\",\"asn\":64500,\"open\":true}\n\
             {\"address\":\"10.1.0.1\",\"prefix\":\"10.1.0.0/16\",\"next_hop\":null,\"country\":null,\"asn\":64501,\"open\":null}\n"
        ));
        assert!(lookup(&["--value", "asn"]).starts_with("10.0.0.1 10.0.0.0/8 via 64500\n"));
        let log = folder.write("log.csv", "ip,n\n10.0.0.1,1\n9.9.9.9,2\n").display().to_string();
        let enriched = run(&["enrich", "-q", "-t", &file, "--column", "ip", &log, "--value", "open,asn"]).out;
        assert_eq!(
            enriched,
            "ip,n,prefix,next_hop,open,asn\n10.0.0.1,1,10.0.0.0/8,DE,true,64500\n9.9.9.9,2,,,,\n"
        );
    }
}

/// Lookups in a file without routes, with and without lengths, against the table itself.
#[test]
fn a_file_with_lengths_needs_no_routes_to_tell_the_prefix() {
    let folder = Folder::new();
    let (text, rows) = sites();
    let addresses: String =
        rows.keys().map(|prefix| prefix.split('/').next().unwrap().to_owned() + "\n").collect();
    let addresses = folder.write("addresses", addresses).display().to_string();
    let plain = compiled(&folder, &text, &["--value", VALUES]);
    let expected = run(&["lookup", "-q", "-t", &plain, "--addresses", &addresses, "--format", "csv"]).out;
    let engines = [
        "range-btree",
        "dir-17-bitmap",
        "dir-17-sparse",
        "dir-18-lines",
        "planb",
        "dir-btree",
        "dir-btree-byte",
    ];
    for engine in engines {
        let options = ["--value", VALUES, "--with-length", "--no-routes", "--engine", engine];
        let file = compiled(&folder, &text, &options);
        assert_has(&file, &rows);
        let lengths = run(&["lookup", "-q", "-t", &file, "--addresses", &addresses, "--format", "csv"]).out;
        assert!(lengths == expected, "{engine}");
    }
    assert_eq!(
        expected.lines().filter(|line| line.contains("/2") || line.contains("/48")).count(),
        rows.len()
    );
}

#[test]
fn values_that_do_not_fit_their_type_name_their_row() {
    let folder = Folder::new();
    let table =
        folder.write("t.csv", "prefix,asn,n\n10.0.0.0/8,1,1\n10.1.0.0/16,-2,2\n").display().to_string();
    let file = folder.path().join("t.fibula").display().to_string();
    let compile = |value: &str| run(&["compile", &table, "-o", &file, "--value", value]);
    let refused = compile("n,asn:u32");
    assert_eq!(refused.code, 3);
    assert!(
        refused.err.ends_with("t.csv:3: the value 'asn' is '-2', which is not of type u32\n"),
        "{}",
        refused.err
    );
    assert!(!std::path::Path::new(&file).exists());
    assert!(compile("asn").err.contains("2 rows of asn (text)"));
    assert!(compile("asn:i64,n").err.contains("2 rows of asn (i64), n (u32)"));
    assert_eq!(compile("asn:i64,asn:text").code, 2);
    // A type that is none belongs to the name, and no column has that.
    let refused = compile("asn:u16");
    assert!(refused.code == 3 && refused.err.contains("no route has the value 'asn:u16'"), "{}", refused.err);
}

#[test]
fn routes_of_peers_have_columns_too() {
    let folder = Folder::new();
    let table = super::values::dump(&folder);
    let file = folder.path().join("t.fibula").display().to_string();
    let values = "peer-as:u32,as-path,communities:text,origin-as";
    assert_eq!(run(&["compile", "-q", &table, "-o", &file, "--value", values]).code, 0);
    let table = TableFile::open(&file).unwrap();
    let told = |address: [u8; 4]| {
        let id = table.lookup(address).unwrap();
        table
            .columns()
            .iter()
            .map(|column| column.value(id).map(|value| value.to_string()))
            .collect::<Vec<_>>()
    };
    let some =
        |texts: [&str; 4]| texts.map(|text| Some(text.to_owned()).filter(|text| !text.is_empty())).to_vec();
    assert_eq!(told([8, 8, 8, 8]), some(["64501", "64501 64510 15169", "64501:1 64501:20", "15169"]));
    assert_eq!(told([10, 0, 0, 1]), some(["64501", "64501 {64511,64512}", "", "64511,64512"]));
    // A set of origins is no number.
    let refused = run(&["compile", &super::values::dump(&folder), "-o", &file, "--value", "origin-as:u32"]);
    assert!(
        refused.code == 3
            && refused
                .err
                .contains("dump.txt:3: the value 'origin-as' is '64511,64512', which is not of type u32"),
        "{}",
        refused.err
    );
}
