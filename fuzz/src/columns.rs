//! Arrays of Arrow as columns, against a reader of the same buffers that goes row by row, as the specification says.

use core::net::IpAddr;

use fibula::check::CheckError;
use fibula::fib::Fib;
use fibula::memory::Memory;
use fibula::net::NextHop;
use fibula_column::arrow::{ArrayParts, OwnedArray};
use fibula_column::{Column, LookupCounts, LookupOptions, TableView, V4MappedRule};

/// The formats: integers, addresses in network order, bytes, text, nulls.
const FORMATS: [&str; 13] = ["I", "i", "L", "l", "w:4", "w:16", "z", "Z", "vz", "u", "U", "vu", "n"];

/// Answers every address by a number that is made of it.
struct Echo;

fn of_v4(key: u32) -> u32 {
    key.wrapping_mul(0x9e37_79b1) << 1 | 1 << 31
}

fn of_v6(key: u128) -> u32 {
    ((key ^ key >> 61).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 96) as u32 | 1
}

macro_rules! echo {
    ($($key:ty, $of:ident;)*) => {$(
        impl Fib<$key> for Echo {
            fn lookup_key(&self, key: $key) -> Option<NextHop> {
                NextHop::new($of(key))
            }

            fn memory(&self) -> Memory {
                Memory::default()
            }

            fn check(&self) -> Result<(), CheckError> {
                Ok(())
            }
        }
    )*};
}
echo! { u32, of_v4; u128, of_v6; }

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    Null,
    Invalid,
    Address(IpAddr),
}

/// The buffers of an array, as its parts have them too.
#[derive(Clone)]
struct Buffers {
    format: &'static str,
    rows: usize,
    offset: usize,
    validity: Option<Vec<u8>>,
    /// Offsets, views, or rows of a fixed width.
    first: Vec<u8>,
    /// Bytes that offsets and views lead to.
    bytes: Vec<u8>,
}

impl Buffers {
    /// Returns an array of this format that is made of these bytes. `change` may break its offsets or views.
    fn new(format: &'static str, offset: usize, has_nulls: bool, change: [u8; 3], bytes: &[u8]) -> Self {
        let width = match format {
            "I" | "i" | "w:4" => 4,
            "L" | "l" => 8,
            "w:16" => 16,
            _ => 0,
        };
        let (mut first, mut all) = (Vec::new(), Vec::new());
        let mut count = bytes.len();
        if let Some(rows) = bytes.len().checked_div(width) {
            count = rows;
            first = bytes[..count * width].to_vec();
        } else if format != "n" {
            // Rows end where lines do.
            let rows: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
            count = rows.len();
            let mut ends = vec![0];
            for row in &rows {
                all.extend_from_slice(row);
                ends.push(all.len());
            }
            for (row, ends) in rows.iter().zip(ends.windows(2)) {
                match format {
                    "z" | "u" => first.extend((ends[0] as i32).to_ne_bytes()),
                    "Z" | "U" => first.extend((ends[0] as i64).to_ne_bytes()),
                    _ => first.extend(view(row, ends[0])),
                }
            }
            match format {
                "z" | "u" => first.extend((all.len() as i32).to_ne_bytes()),
                "Z" | "U" => first.extend((all.len() as i64).to_ne_bytes()),
                _ => {}
            }
            let at = usize::from(change[1]) % first.len().max(1);
            if change[0] % 2 == 1 && at < first.len() {
                first[at] = change[2];
            }
        }
        let offset = offset.min(count);
        let validity = has_nulls.then(|| {
            (0..count.div_ceil(8)).map(|at| (at as u8).wrapping_mul(change[2] | 1) ^ change[1]).collect()
        });
        Self { format, rows: count - offset, offset, validity, first, bytes: all }
    }

    fn parts(&self) -> ArrayParts {
        let parts = ArrayParts { offset: self.offset, ..ArrayParts::new(self.format, self.rows) };
        if self.format == "n" {
            return parts;
        }
        let parts = match &self.validity {
            Some(bits) => parts.buffer(bits.clone()),
            None => parts.no_buffer(),
        };
        let parts = parts.buffer(self.first.clone());
        match self.format {
            "z" | "u" | "Z" | "U" => parts.buffer(self.bytes.clone()),
            "vz" | "vu" => parts.buffer(self.bytes.clone()).buffer(vec![self.bytes.len() as i64]),
            _ => parts,
        }
    }

    /// Returns the field of this many bytes at a place.
    fn field<const BYTES: usize>(&self, at: usize) -> [u8; BYTES] {
        self.first[at..at + BYTES].try_into().expect("as many as there are")
    }

    /// Returns the bytes of a row of bytes or text.
    fn row(&self, at: usize) -> Option<&[u8]> {
        let between = |start: i64, end: i64| {
            // The last offset of the slice is where the bytes end.
            let last = match self.format {
                "z" | "u" => i32::from_ne_bytes(self.field(4 * (self.offset + self.rows))).into(),
                "Z" | "U" => i64::from_ne_bytes(self.field(8 * (self.offset + self.rows))),
                _ => self.bytes.len() as i64,
            };
            let is_inside = 0 <= start && start <= end && end <= last;
            if is_inside { self.bytes.get(start as usize..end as usize) } else { None }
        };
        match self.format {
            "z" | "u" => {
                let [start, end] =
                    [4 * at, 4 * (at + 1)].map(|at| i64::from(i32::from_ne_bytes(self.field(at))));
                between(start, end)
            }
            "Z" | "U" => {
                let [start, end] = [8 * at, 8 * (at + 1)].map(|at| i64::from_ne_bytes(self.field(at)));
                between(start, end)
            }
            _ => {
                let [len, _, buffer, start] =
                    [0, 4, 8, 12].map(|field| i64::from(i32::from_ne_bytes(self.field(16 * at + field))));
                match len {
                    0..=12 => Some(&self.first[16 * at + 4..16 * at + 4 + len as usize]),
                    13.. if buffer == 0 => between(start, start + len),
                    _ => None,
                }
            }
        }
    }

    /// Returns what a row is.
    fn cell(&self, row: usize, is_text: bool) -> Cell {
        let at = self.offset + row;
        if self.format == "n" || self.validity.as_ref().is_some_and(|bits| bits[at / 8] >> (at % 8) & 1 == 0)
        {
            return Cell::Null;
        }
        let v4 = |bytes: [u8; 4]| Cell::Address(IpAddr::from(bytes));
        let v6 = |bytes: [u8; 16]| Cell::Address(IpAddr::from(bytes));
        match self.format {
            "I" | "i" => v4(u32::from_ne_bytes(self.field(4 * at)).to_be_bytes()),
            "L" | "l" => match u32::try_from(u64::from_ne_bytes(self.field(8 * at))) {
                Ok(key) => v4(key.to_be_bytes()),
                Err(_) => Cell::Invalid,
            },
            "w:4" => v4(self.field(4 * at)),
            "w:16" => v6(self.field(16 * at)),
            _ => match (self.row(at), is_text) {
                (None, _) => Cell::Invalid,
                (Some(text), true) => {
                    let address = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                    address.map_or(Cell::Invalid, Cell::Address)
                }
                (Some(bytes), false) => match (bytes.try_into(), bytes.try_into()) {
                    (Ok(bytes), _) => v4(bytes),
                    (_, Ok(bytes)) => v6(bytes),
                    _ => Cell::Invalid,
                },
            },
        }
    }
}

/// Returns the view of a row that starts here in the only buffer.
fn view(row: &[u8], start: usize) -> [u8; 16] {
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(row.len() as i32).to_ne_bytes());
    if row.len() <= 12 {
        view[4..4 + row.len()].copy_from_slice(row);
    } else {
        view[4..8].copy_from_slice(&row[..4]);
        view[12..].copy_from_slice(&(start as i32).to_ne_bytes());
    }
    view
}

/// Looks an array up that is made of the bytes, and compares every row.
pub(crate) fn compare(bytes: &[u8]) {
    let Some((&[format, how, offset, entries, a, b, c], rest)) = bytes.split_first_chunk() else { return };
    let format = FORMATS[usize::from(format) % FORMATS.len()];
    let [is_mapped, has_nulls, as_text, has_dictionary] = [1, 2, 4, 8].map(|bit| how & bit != 0);
    let offset = usize::from(offset % 20);
    let is_text = as_text || matches!(format, "u" | "U" | "vu");
    let (values, numbers) =
        rest.split_at(if has_dictionary { usize::from(entries).min(rest.len()) } else { rest.len() });
    let of_values = Buffers::new(format, offset, has_nulls, [a, b, c], values);
    let Ok(array) = OwnedArray::new(of_values.parts()) else { return };

    let mut cells: Vec<Cell> = (0..of_values.rows).map(|row| of_values.cell(row, is_text)).collect();
    let mut array = array;
    if has_dictionary {
        let is_signed = how & 16 != 0;
        let (numbers, offset) = (numbers.to_vec(), offset.min(numbers.len()));
        let parts = ArrayParts {
            offset,
            ..ArrayParts::new(if is_signed { "c" } else { "C" }, numbers.len() - offset)
        };
        cells = numbers[offset..]
            .iter()
            .map(|&number| {
                let entry = if is_signed { usize::try_from(number as i8).ok() } else { Some(number.into()) };
                entry.and_then(|entry| cells.get(entry).copied()).unwrap_or(Cell::Invalid)
            })
            .collect();
        let parts = parts.no_buffer().buffer(numbers);
        array = OwnedArray::new(ArrayParts { dictionary: Some(Box::new(array)), ..parts })
            .expect("a byte for each row");
    }
    let column = array.borrowed().and_then(Column::from_arrow).expect("a column of addresses");
    let column = if as_text { column.bytes_as_text() } else { column };
    assert_eq!(column.len(), cells.len());

    let mut counts = LookupCounts::default();
    let expected: Vec<u32> = cells
        .iter()
        .enumerate()
        .map(|(row, cell)| match cell {
            Cell::Null => 0,
            Cell::Invalid => {
                counts.invalid += 1;
                counts.first_invalid.get_or_insert(row);
                0
            }
            Cell::Address(IpAddr::V4(address)) => of_v4(address.to_bits()),
            Cell::Address(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
                Some(address) if is_mapped => of_v4(address.to_bits()),
                _ => of_v6(address.to_bits()),
            },
        })
        .collect();
    let v4_mapped = if is_mapped { V4MappedRule::Ipv4 } else { V4MappedRule::Ipv6 };
    let mut ids = vec![u32::MAX; cells.len()];
    let options = LookupOptions { v4_mapped, ..LookupOptions::default() };
    let found = TableView::new(Some(&Echo), Some(&Echo)).lookup(&column, &mut ids, &options);
    assert_eq!((found, &ids), (Ok(counts), &expected), "{format}");
    for (row, cell) in cells.iter().enumerate() {
        let of_row = match column.address(row) {
            Ok(None) => Cell::Null,
            Ok(Some(address)) => Cell::Address(address),
            Err(_) => Cell::Invalid,
        };
        assert_eq!(of_row, *cell, "{format}, row {row}");
    }
}
