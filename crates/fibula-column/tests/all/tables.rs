//! What columns are looked up in: engines, table files, VRFs; and what is refused.

use std::fs;
use std::path::PathBuf;

use fibula::Vrfs;
use fibula::fib::{self, Fib, WithLength};
use fibula::file::{self, Contents, TableFile};
use fibula::memory::Limits;
use fibula::net::{NextHop, Route};
use fibula::rib::Rib;
use fibula_column::{
    AddressLayout, Bitmap, Column, ColumnError, EntryNumbers, LookupCounts, LookupOptions, RowFault,
    TableView, lookup_in_vrfs,
};

const TEXTS: [&[u8]; 5] = [b"192.0.2.1", b"2001:db8::1", b"192.0.3.1", b"2001:db9::", b"localhost"];

fn ids_of(view: TableView<'_>) -> [u32; 5] {
    let mut ids = [u32::MAX; 5];
    let counts = view.lookup(&Column::texts(&TEXTS), &mut ids, &LookupOptions::default()).unwrap();
    assert_eq!(counts, LookupCounts { invalid: 1, first_invalid: Some(4) });
    ids
}

fn ribs() -> (Rib<u32>, Rib<u128>) {
    let (mut v4, mut v6) = (Rib::default(), Rib::default());
    v4.insert(Route::new("192.0.2.0/24".parse().unwrap(), NextHop::new(7).unwrap())).unwrap();
    v6.insert(Route::new("2001:db8::/32".parse().unwrap(), NextHop::new(9).unwrap())).unwrap();
    (v4, v6)
}

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_family_without_an_engine_has_no_routes() {
    let (v4, v6) = ribs();
    let (v4, v6) = (fib::build(&v4).unwrap(), fib::build(&v6).unwrap());
    assert_eq!(ids_of(TableView::new(Some(&*v4), Some(&*v6))), [7, 9, 0, 0, 0]);
    assert_eq!(ids_of(TableView::new(Some(&*v4), None)), [7, 0, 0, 0, 0]);
    assert_eq!(ids_of(TableView::new(None, Some(&*v6))), [0, 9, 0, 0, 0]);
    assert_eq!(ids_of(TableView::default()), [0; 5]);
}

#[test]
fn a_table_file_answers_by_its_engines_or_by_its_routes() {
    let folder = Folder(std::env::temp_dir().join(format!("fibula-column-{}", std::process::id())));
    fs::create_dir_all(&folder.0).unwrap();
    let (v4, v6) = ribs();
    let engine = fib::build(&v6).unwrap();
    let mut contents = Contents::default();
    contents.v4.routes = Some(&v4);
    contents.v6.fib = Some(&*engine);
    let path = folder.0.join("table.fibula");
    file::save(&path, &contents).unwrap();
    assert_eq!(ids_of(TableView::from(&TableFile::open(&path).unwrap())), [7, 9, 0, 0, 0]);
    contents.v6.fib = None;
    file::save(&path, &contents).unwrap();
    assert_eq!(ids_of(TableView::from(&TableFile::open(&path).unwrap())), [7, 0, 0, 0, 0]);
}

/// Tables of both families, some routes within others.
fn nested() -> (Rib<u32>, Rib<u128>) {
    let (mut v4, mut v6) = ribs();
    for (prefix, id) in [("192.0.2.128/25", 7), ("192.0.2.64/26", 3), ("0.0.0.0/1", 1), ("192.0.0.0/16", 7)] {
        v4.insert(Route::new(prefix.parse().unwrap(), NextHop::new(id).unwrap())).unwrap();
    }
    for (prefix, id) in [("2001:db8:7::/48", 9), ("2001:db8::/33", 7), ("::/0", 4)] {
        v6.insert(Route::new(prefix.parse().unwrap(), NextHop::new(id).unwrap())).unwrap();
    }
    (v4, v6)
}

/// Ids and lengths of columns of every kind, against the longest matches of the routes.
#[test]
fn lengths_of_matched_prefixes_are_a_column_of_their_own() {
    let (v4, v6) = nested();
    let engine4 = fib::registry::find::<u32>("dir-17-bitmap").unwrap();
    let engine6 = fib::registry::find::<u128>("dir-btree").unwrap();
    let (fib4, fib6) = (
        WithLength::build(&engine4, &v4, Limits::default()).unwrap(),
        WithLength::build(&engine6, &v6, Limits::default()).unwrap(),
    );
    let texts: Vec<String> = (0..1000_u32)
        .map(|number| match number % 7 {
            0 => format!("192.0.{}.{}", number % 4, number % 256),
            1 => format!("10.{}.1.1", number % 256),
            2 => format!("2001:db8:{:x}::1", number % 9),
            3 => format!("2001:db8:9{:03x}::", number),
            4 => "240.0.0.1".to_owned(),
            5 => format!("3000::{number}"),
            _ => "x".to_owned(),
        })
        .collect();
    let expected: Vec<(u32, u8)> = texts
        .iter()
        .map(|text| {
            let found = match text.parse() {
                Ok(core::net::IpAddr::V4(address)) => {
                    v4.lookup_prefix(address).map(|route| (route.next_hop, route.prefix.len()))
                }
                Ok(core::net::IpAddr::V6(address)) => {
                    v6.lookup_prefix(address).map(|route| (route.next_hop, route.prefix.len()))
                }
                Err(_) => None,
            };
            found.map_or((0, 0), |(id, len)| (id.id(), len))
        })
        .collect();
    let rows: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let entries: Vec<u32> = (0..1000).rev().collect();
    let columns = [
        (Column::texts(&rows), expected.clone()),
        (
            Column::dictionary(EntryNumbers::from(&entries[..]), Column::texts(&rows)).unwrap(),
            expected.iter().rev().copied().collect(),
        ),
    ];
    let mut contents = Contents::default();
    contents.v4.fib = Some(&fib4);
    contents.v6.fib = Some(&fib6);
    let mut bytes = Vec::new();
    contents.write(&mut bytes).unwrap();
    let file = TableFile::copy_of(std::io::Cursor::new(&bytes), Limits::default()).unwrap();
    for view in [TableView::new(Some(&fib4), Some(&fib6)), TableView::from(&file)] {
        for (column, expected) in &columns {
            let (mut ids, mut lengths, mut plain) = (vec![9; 1000], vec![9; 1000], vec![9; 1000]);
            let options = LookupOptions::default();
            let counts = view.lookup_with_lengths(column, &mut ids, &mut lengths, &options).unwrap();
            assert_eq!(counts, view.lookup(column, &mut plain, &options).unwrap());
            assert!(ids.iter().copied().zip(lengths).eq(expected.iter().copied()));
            assert_eq!(ids, plain);
        }
    }
    let column = Column::texts(&rows);
    let view = TableView::new(Some(&fib4), None);
    let (mut ids, mut lengths) = (vec![9; 1000], vec![9; 1000]);
    view.lookup_with_lengths(&column, &mut ids, &mut lengths, &LookupOptions::default()).unwrap();
    let only4 =
        texts.iter().zip(&expected).map(|(text, &found)| if text.contains(':') { (0, 0) } else { found });
    assert!(ids.into_iter().zip(lengths).eq(only4));
}

#[test]
fn lengths_that_are_not_known_are_refused() {
    let (v4, _) = ribs();
    let engine = fib::build(&v4).unwrap();
    let column = Column::texts(&TEXTS);
    let (mut ids, mut lengths) = ([8; 5], [8; 5]);
    let mut look_up = |view: TableView<'_>, lengths: &mut [u8]| {
        view.lookup_with_lengths(&column, &mut ids, lengths, &LookupOptions::default())
    };
    let error = look_up(TableView::new(Some(&*engine), None), &mut lengths).unwrap_err();
    assert!(error.to_string().contains("--with-length"), "{error}");
    assert!(matches!(
        look_up(TableView::default(), &mut lengths[..4]),
        Err(ColumnError::Length { other: 4, .. })
    ));
    assert!(look_up(TableView::default(), &mut lengths).is_ok());
    assert_eq!((ids, lengths), ([0; 5], [0; 5]));
}

#[test]
fn columns_of_unequal_lengths_are_refused() {
    let column = Column::texts(&TEXTS);
    let options = LookupOptions::default();
    let mut ids = [7; 4];
    let refused = TableView::default().lookup(&column, &mut ids, &options);
    assert_eq!((refused, ids), (Err(ColumnError::Length { rows: 5, other: 4 }), [7; 4]));
    let vrfs = Vrfs::new().unwrap();
    let refused = lookup_in_vrfs(&vrfs, &[0; 6], &column, &mut [0; 5], &options);
    assert_eq!(refused, Err(ColumnError::Length { rows: 5, other: 6 }));
    let validity = Bitmap::new(&[0], 0, 4).unwrap();
    assert_eq!(
        column.with_validity(validity).map(drop).unwrap_err(),
        ColumnError::Length { rows: 5, other: 4 }
    );
}

#[test]
fn strides_that_leave_the_buffer_are_refused() {
    let bytes = [0; 40];
    let strided = |first, stride, rows| {
        Column::strided(&bytes, first, stride, rows, AddressLayout::NetworkIpv6).map(|column| column.len())
    };
    assert_eq!((strided(0, 12, 3), strided(24, -12, 3), strided(24, 0, 9)), (Ok(3), Ok(3), Ok(9)));
    assert_eq!(strided(usize::MAX, -1, 0), Ok(0));
    for (first, stride, rows) in [
        (0, 13, 3),
        (1, 12, 3),
        (23, -12, 3),
        (25, -12, 3),
        (0, isize::MAX, 3),
        (usize::MAX, 1, 1),
        (0, 1, usize::MAX),
    ] {
        assert!(strided(first, stride, rows).is_err(), "{rows} rows from {first}, {stride} apart");
    }
}

#[test]
fn a_dictionary_has_no_dictionary() {
    let inner = Column::dictionary(EntryNumbers::from(&[0_u8][..]), Column::texts(&TEXTS)).unwrap();
    assert!(Column::dictionary(EntryNumbers::from(&[0_u8][..]), inner).is_err());
}

#[test]
fn errors_say_which_row_and_what_is_wrong() {
    let refuse = LookupOptions { refuse_invalid: true, ..LookupOptions::default() };
    let error = |column: &Column<'_>| {
        TableView::default().lookup(column, &mut vec![0; column.len()], &refuse).unwrap_err().to_string()
    };
    assert_eq!(
        error(&Column::texts(&TEXTS)),
        "row 4: 'localhost': not an IP address: unexpected 'l' (at byte 0)"
    );
    assert_eq!(
        error(&Column::ipv4_wide(&[7, 1 << 32])),
        "row 1: 4294967296 is above 4294967295, the last IPv4 address"
    );
    let entries = [0_i8, -1];
    let dictionary =
        Column::dictionary(EntryNumbers::from(&entries[..]), Column::texts(&TEXTS[..1])).unwrap();
    assert_eq!(error(&dictionary), "row 1: no entry -1 in the dictionary");
    assert_eq!(
        ColumnError::Invalid { row: 2, fault: RowFault::Bytes(5) }.to_string(),
        "row 2: 5 bytes, where an address has 4 or 16"
    );
    let long = [b'x'; 99];
    assert!(error(&Column::texts(&[&long])).starts_with(&format!("row 0: '{}...':", "x".repeat(64))));
}

#[test]
fn one_engine_serves_many_columns() {
    let (v4, _) = ribs();
    let engine: Box<dyn Fib<u32>> = fib::build(&v4).unwrap();
    let view = TableView::new(Some(&*engine), None);
    let mut ids = [0; 2];
    for _ in 0..2 {
        view.lookup(&Column::ipv4(&[0xc000_0207, 0]), &mut ids, &LookupOptions::default()).unwrap();
        assert_eq!(ids, [7, 0]);
    }
}
