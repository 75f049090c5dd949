//! Columns of values by id: named, typed, read one by one or as arrays of Arrow, and given to a table.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use engine::file::{ColumnBuilder, ColumnRefusal, ColumnType, ColumnValue, StoredColumn};
use engine::net::NextHop;
use fibula_column::ValueColumn;
use fibula_column::arrow::{ArrowArray, ArrowSchema};

use crate::error::{Code, ErrorPlace, Failure, Outcome, call, plain, plain_counted};
use crate::input::{elements, handle, make, put};
use crate::lookup::put_array;
use crate::table::{Table, put_bytes};

/// `FIBULA_U32` and so on.
const TYPES: [ColumnType; 7] = [
    ColumnType::U32,
    ColumnType::U64,
    ColumnType::I64,
    ColumnType::F64,
    ColumnType::Bool,
    ColumnType::Text,
    ColumnType::Bytes,
];

pub const DICTIONARY: u32 = 1;
pub const AS_TEXT: u32 = 2;

/// Most columns that files can hold.
const MOST: usize = 256;

/// `fibula_column`.
#[repr(C)]
pub struct ColumnPlace {
    name: *const c_char,
    count: u64,
    kind: u32,
    reserved: u32,
}

/// `fibula_values`.
#[repr(C)]
pub struct ValuesPlace {
    name: *const c_char,
    values: *const c_void,
    lengths: *const usize,
    valid: *const u8,
    count: usize,
    kind: u32,
    reserved: u32,
}

fn column(table: &Table, number: u32) -> Outcome<&StoredColumn> {
    let absent = || Failure::new(Code::Absent, "the table has no such column");
    table.columns().get(number as usize).ok_or_else(absent)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_column_count(table: *const Table) -> i64 {
    // SAFETY: the promises that fibula.h asks of the caller, here and below.
    unsafe { plain_counted(|| Ok(handle(table)?.columns().len() as i64)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_column_at(
    table: *const Table,
    number: u32,
    place: *mut ColumnPlace,
) -> c_int {
    // SAFETY: as in `fibula_column_count`.
    unsafe {
        plain(|| {
            let table = handle(table)?;
            let column = column(table, number)?;
            let name = table.name(number as usize).map_or(ptr::null(), CStr::as_ptr);
            let kind = TYPES.iter().zip(1..).find(|(kind, _)| **kind == column.kind());
            let kind = kind.map_or(0, |(_, number)| number);
            put(place, ColumnPlace { name, count: column.len() as u64, kind, reserved: 0 })
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_column_find(table: *const Table, name: *const c_char) -> i64 {
    // SAFETY: as in `fibula_column_count`.
    unsafe {
        plain_counted(|| {
            let table = handle(table)?;
            let name = name.as_ref().ok_or(Failure::argument("the name is NULL"))?;
            let name = CStr::from_ptr(name).to_bytes();
            let found = table.columns().iter().position(|column| column.name().as_bytes() == name);
            let absent = || Failure::new(Code::Absent, "the table has no such column");
            found.map(|number| number as i64).ok_or_else(absent)
        })
    }
}

/// Returns the value of an id, if the column has this type.
fn value(table: &Table, number: u32, id: u32, kind: ColumnType) -> Outcome<ColumnValue<'static>> {
    let column = column(table, number)?;
    if column.kind() != kind {
        return Err(Failure::argument("the column has another type"));
    }
    let found = NextHop::new(id).and_then(|id| column.value(id));
    found.ok_or_else(|| Failure::new(Code::Absent, "the id has no value"))
}

/// Declares the call that reads a value of one type.
macro_rules! value_calls {
    ($($name:ident, $word:ty, $kind:ident;)+) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(table: *const Table, column: u32, id: u32, place: *mut $word) -> c_int {
            // SAFETY: as in `fibula_column_count`.
            unsafe {
                plain(|| {
                    match value(handle(table)?, column, id, ColumnType::$kind)? {
                        ColumnValue::$kind(found) => put(place, <$word>::from(found)),
                        _ => Err(Failure::argument("the column has another type")),
                    }
                })
            }
        }
    )+};
}

value_calls! {
    fibula_value_u32, u32, U32;
    fibula_value_u64, u64, U64;
    fibula_value_i64, i64, I64;
    fibula_value_f64, f64, F64;
    fibula_value_bool, u8, Bool;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_value_bytes(
    table: *const Table,
    number: u32,
    id: u32,
    value: *mut *const u8,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as in `fibula_column_count`.
    unsafe {
        plain(|| {
            let column = column(handle(table)?, number)?;
            if !matches!(column.kind(), ColumnType::Text | ColumnType::Bytes) {
                return Err(Failure::argument("the column has another type"));
            }
            put_bytes(column, id, value, bytes)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_values_arrow(
    table: *const Table,
    number: u32,
    ids: *const u32,
    count: usize,
    flags: u32,
    values_schema: *mut ArrowSchema,
    values_array: *mut ArrowArray,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_column_count`.
    unsafe {
        call(error, || {
            if !matches!(flags, 0 | DICTIONARY | AS_TEXT) {
                return Err(Failure::argument("flags that this call does not take"));
            }
            let values = ValueColumn::from(column(handle(table)?, number)?);
            let ids = elements(ids, count)?;
            let array = match flags {
                DICTIONARY => values.dictionary(ids),
                AS_TEXT => values.gather_text(ids),
                _ => values.gather(ids),
            };
            put_array(array?, values_schema, values_array)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_with_values(
    table: *const Table,
    columns: *const ValuesPlace,
    count: usize,
    result: *mut *mut Table,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_column_count`.
    unsafe {
        make(result, error, || {
            let table = handle(table)?;
            let columns = elements(columns, count)?.iter().map(|values| built(values));
            let columns = columns.collect::<Outcome<Vec<_>>>()?;
            let is_twice = |(at, column): (usize, &StoredColumn)| {
                columns[..at].iter().any(|before| before.name() == column.name())
            };
            if !(1..=MOST).contains(&columns.len()) || columns.iter().enumerate().any(is_twice) {
                return Err(Failure::argument("columns are 1 to 256, and have different names"));
            }
            Ok(table.with_columns(columns).into_raw())
        })
    }
}

/// Returns the column of arrays.
///
/// # Safety
/// The arrays are as long as their count says, and have elements of their type.
unsafe fn built(place: &ValuesPlace) -> Outcome<StoredColumn> {
    let no_type = || Failure::argument("a type is one of FIBULA_U32 to FIBULA_BYTES");
    let kind =
        (place.kind as usize).checked_sub(1).and_then(|at| TYPES.get(at)).copied().ok_or_else(no_type)?;
    if place.reserved != 0 {
        return Err(Failure::argument("the reserved part of fibula_values is not 0"));
    }
    // SAFETY: the caller's promise.
    let name = unsafe { place.name.as_ref() }.ok_or(Failure::argument("the name of a column is NULL"))?;
    // SAFETY: as above: a text that ends with 0.
    let name = unsafe { CStr::from_ptr(name) }.to_str();
    let name = name.ok().filter(|name| !name.is_empty() && !name.chars().any(char::is_control));
    let name = name.filter(|name| name.len() <= 1000);
    let name = name.ok_or(Failure::argument(
        "the name of a column is 1 to 1,000 bytes of UTF-8 without control characters",
    ))?;
    let mut builder = ColumnBuilder::new(name, kind);
    let count = place.count;
    // SAFETY: the caller's promise, for this and the arrays below.
    let valid = if place.valid.is_null() { None } else { Some(unsafe { elements(place.valid, count) }?) };
    let mut push = |row: usize, value: Option<ColumnValue<'_>>| {
        let value = value.filter(|_| valid.is_none_or(|valid| valid[row] != 0));
        builder.push(value).map_err(|refusal| match refusal {
            ColumnRefusal::Memory(error) => Failure::new(Code::Memory, error.to_string()),
            other => Failure::new(Code::Argument, other.to_string()).at(row),
        })
    };
    macro_rules! words {
        ($word:ty, $value:expr) => {{
            // SAFETY: as above.
            let words = unsafe { elements(place.values.cast::<$word>(), count) }?;
            words.iter().enumerate().try_for_each(|(row, &word)| push(row, Some($value(word))))?;
        }};
    }
    match kind {
        ColumnType::U32 => words!(u32, ColumnValue::U32),
        ColumnType::U64 => words!(u64, ColumnValue::U64),
        ColumnType::I64 => words!(i64, ColumnValue::I64),
        ColumnType::F64 => words!(f64, ColumnValue::F64),
        ColumnType::Bool => words!(u8, |word| ColumnValue::Bool(word != 0)),
        _ => {
            let is_text = kind == ColumnType::Text;
            // SAFETY: as above.
            let starts = unsafe { elements(place.values.cast::<*const u8>(), count) }?;
            let lengths = match (place.lengths.is_null(), is_text) {
                // SAFETY: as above.
                (false, _) => Some(unsafe { elements(place.lengths, count) }?),
                (true, true) => None,
                (true, false) => return Err(Failure::argument("values of FIBULA_BYTES have lengths")),
            };
            for (row, &start) in starts.iter().enumerate() {
                if start.is_null() {
                    push(row, None)?;
                    continue;
                }
                let bytes = match lengths {
                    // SAFETY: the caller promises that each value has as many bytes as its length says.
                    Some(lengths) => unsafe { elements(start, lengths[row]) }?,
                    // SAFETY: as above: a text that ends with 0.
                    None => unsafe { CStr::from_ptr(start.cast()) }.to_bytes(),
                };
                let value = match str::from_utf8(bytes) {
                    _ if !is_text => ColumnValue::Bytes(bytes.into()),
                    Ok(text) => ColumnValue::Text(text.into()),
                    Err(_) => return Err(Failure::new(Code::Invalid, "a text is not UTF-8").at(row)),
                };
                push(row, Some(value))?;
            }
        }
    }
    Ok(builder.finish())
}
