//! What columns are looked up in: engines, table files, VRFs; and what is refused.

use std::fs;
use std::path::PathBuf;

use fibula::Vrfs;
use fibula::fib::{self, Fib};
use fibula::file::{self, Contents, TableFile};
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
