//! Lookups of one address and of many.

use std::ffi::{CStr, c_char, c_int, c_void};

use engine::net::NextHop;
use fibula_column::arrow::{self, ArrowArray, ArrowSchema, OwnedArray};
use fibula_column::{
    AddressLayout, Column, ColumnError, LookupCounts, LookupOptions, TableView, V4MappedRule, texts_of,
};

use crate::error::{Code, ErrorPlace, Failure, Outcome, answer, counted, plain};
use crate::input::{elements, elements_mut, handle, peek, put, reference};
use crate::table::Table;

pub const NETWORK_ORDER: u32 = 1;
pub const V4_MAPPED: u32 = 2;
pub const REFUSE_INVALID: u32 = 4;
pub const TEXT: u32 = 8;

/// Texts that are looked up together.
const BLOCK: usize = 256;

/// Returns the options of a call.
fn options(flags: u32, known: u32, threads: u32) -> Outcome<LookupOptions> {
    if flags & !known != 0 {
        return Err(Failure::argument("a flag that this call does not take"));
    }
    Ok(LookupOptions {
        threads: (threads as usize).max(1),
        v4_mapped: if flags & V4_MAPPED == 0 { V4MappedRule::Ipv6 } else { V4MappedRule::Ipv4 },
        refuse_invalid: flags & REFUSE_INVALID != 0,
    })
}

/// Returns a column of IPv4 addresses at a distance of `stride` bytes.
///
/// # Safety
/// So many addresses are there, and nobody changes them meanwhile.
pub unsafe fn column4<'a>(
    addresses: *const c_void,
    stride: usize,
    flags: u32,
    count: usize,
) -> Outcome<Column<'a>> {
    if flags & !NETWORK_ORDER != 0 {
        return Err(Failure::argument("a flag that this call does not take"));
    }
    let host = flags & NETWORK_ORDER == 0;
    if host && (stride == 0 || stride == 4) && addresses.cast::<u32>().is_aligned() {
        // SAFETY: the caller's promise.
        return Ok(Column::ipv4(unsafe { elements(addresses.cast(), count) }?));
    }
    let layout = if host { AddressLayout::HostIpv4 } else { AddressLayout::NetworkIpv4 };
    // SAFETY: the caller's promise.
    unsafe { strided(addresses, stride, count, layout) }
}

/// Returns a column of IPv6 addresses, in network order, at a distance of `stride` bytes.
///
/// # Safety
/// As for [`column4`].
pub unsafe fn column6<'a>(
    addresses: *const c_void,
    stride: usize,
    flags: u32,
    count: usize,
) -> Outcome<Column<'a>> {
    if flags & !NETWORK_ORDER != 0 {
        return Err(Failure::argument("a flag that this call does not take"));
    }
    // SAFETY: the caller's promise.
    unsafe { strided(addresses, stride, count, AddressLayout::NetworkIpv6) }
}

/// # Safety
/// As for [`column4`].
unsafe fn strided<'a>(
    addresses: *const c_void,
    stride: usize,
    count: usize,
    layout: AddressLayout,
) -> Outcome<Column<'a>> {
    let stride = if stride == 0 { layout.bytes() } else { stride };
    let bytes = match count.checked_sub(1) {
        None => Some(0),
        Some(before) => before.checked_mul(stride).and_then(|bytes| bytes.checked_add(layout.bytes())),
    };
    let too_long = || Failure::argument("count times stride is longer than the address space");
    let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as usize).ok_or_else(too_long)?;
    let stride = isize::try_from(stride).map_err(|_| too_long())?;
    // SAFETY: the caller's promise: the last address ends there.
    let bytes = unsafe { elements(addresses.cast::<u8>(), bytes) }?;
    Ok(Column::strided(bytes, 0, stride, count, layout)?)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup4(table: *const Table, address: u32) -> u32 {
    answer(0, || {
        // SAFETY: the promises that fibula.h asks of the caller, here and below.
        NextHop::word(unsafe { peek(table) }.and_then(|table| table.lookup4(address)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup6(table: *const Table, address: *const u8) -> u32 {
    answer(0, || {
        // SAFETY: as in `fibula_lookup4`.
        let (table, address) = unsafe { (peek(table), address.cast::<[u8; 16]>().as_ref()) };
        let (Some(table), Some(address)) = (table, address) else { return 0 };
        NextHop::word(table.lookup6(u128::from_be_bytes(*address)))
    })
}

/// Looks a column up that has no invalid rows.
fn look_up(view: TableView<'_>, column: &Column<'_>, ids: &mut [u32]) -> Outcome<()> {
    view.lookup(column, ids, &LookupOptions::default())?;
    Ok(())
}

/// Declares the two calls, of IPv4 and of IPv6, that look up addresses at a distance of `stride` bytes: their names, their
/// parameters before the addresses, and the lookup of a column.
macro_rules! bulk_calls {
    (($v4:ident, $v6:ident) $parameters:tt |$column:ident, $ids:ident| $run:expr) => {
        $crate::lookup::bulk_calls! { @ $v4, column4, $parameters, $column, $ids, $run }
        $crate::lookup::bulk_calls! { @ $v6, column6, $parameters, $column, $ids, $run }
    };
    (@ $name:ident, $of:ident, ($($parameter:ident: $type:ty),+), $column:ident, $ids:ident, $run:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($parameter: $type,)+
            addresses: *const ::std::ffi::c_void,
            stride: usize,
            flags: u32,
            ids: *mut u32,
            count: usize,
        ) -> ::std::ffi::c_int {
            // SAFETY: the promises that fibula.h asks of the caller.
            unsafe {
                $crate::error::plain(|| {
                    let $column = $crate::lookup::$of(addresses, stride, flags, count)?;
                    let $ids = $crate::input::elements_mut(ids, count)?;
                    $run
                })
            }
        }
    };
}
pub(crate) use bulk_calls;

bulk_calls! {
    @ fibula_lookup6_bulk, column6, (table: *const Table),
    column, ids, look_up(handle(table)?.view(), &column, ids)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup4_bulk(
    table: *const Table,
    addresses: *const c_void,
    stride: usize,
    flags: u32,
    ids: *mut u32,
    count: usize,
) -> c_int {
    // Most calls have packed addresses. The engine then reads the caller's array, because to make a column of it, and to have room for what
    // may be wrong with it, would cost as much as the lookup of ten addresses.
    let places = (addresses.addr() | ids.addr()) % align_of::<u32>();
    let beyond = count / (isize::MAX as usize / size_of::<u32>() + 1);
    // Zero where all of it is as it should be: one branch. A stride of 0 is that of packed addresses too.
    let other = flags as usize | (stride & !size_of::<u32>()) | places | beyond;
    let are_there = !addresses.is_null() && !ids.is_null();
    // SAFETY: as in `fibula_lookup4`, here and below.
    let engine = unsafe { peek(table) }.and_then(Table::engine4);
    if let (Some((engine, set)), 0, true) = (engine, other, are_there) {
        return answer(Code::Bug as c_int, || {
            // SAFETY: as in `fibula_lookup4`; the pointer is aligned, and the bytes fit into the address space.
            let keys = unsafe { std::slice::from_raw_parts(addresses.cast::<u32>(), count) };
            // SAFETY: as above. Every word is an optional next hop, with 0 for none.
            let ids = unsafe { std::slice::from_raw_parts_mut(ids.cast::<Option<NextHop>>(), count) };
            engine.lookup_batch_on(set, keys, ids);
            0
        });
    }
    // SAFETY: as above.
    unsafe { lookup4_column(table, addresses, stride, flags, ids, count) }
}

/// The other calls of `fibula_lookup4_bulk`.
///
/// # Safety
/// As for that.
#[inline(never)]
unsafe fn lookup4_column(
    table: *const Table,
    addresses: *const c_void,
    stride: usize,
    flags: u32,
    ids: *mut u32,
    count: usize,
) -> c_int {
    // SAFETY: as in `fibula_lookup4`.
    unsafe {
        plain(|| {
            let table = handle(table)?;
            let column = column4(addresses, stride, flags, count)?;
            look_up(table.view(), &column, elements_mut(ids, count)?)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup_text(
    table: *const Table,
    texts: *const *const c_char,
    lengths: *const u32,
    flags: u32,
    ids: *mut u32,
    count: usize,
    error: *mut ErrorPlace,
) -> i64 {
    // SAFETY: as in `fibula_lookup4`.
    unsafe {
        counted(error, || {
            let view = handle(table)?.view();
            let mut options = options(flags, V4_MAPPED | REFUSE_INVALID, 1)?;
            let refuses = std::mem::take(&mut options.refuse_invalid);
            let (texts, ids) = (elements(texts, count)?, elements_mut(ids, count)?);
            let lengths = if lengths.is_null() { None } else { Some(elements(lengths, count)?) };
            let mut all = LookupCounts::default();
            for (block, ids) in ids.chunks_mut(BLOCK).enumerate() {
                let first = block * BLOCK;
                let mut rows: [&[u8]; BLOCK] = [&[]; BLOCK];
                let mut nulls = 0;
                for (at, row) in rows.iter_mut().enumerate().take(ids.len()) {
                    let text = texts[first + at];
                    *row = match lengths {
                        // An empty text is invalid, but a null is not, so nulls are subtracted from the count below.
                        _ if text.is_null() => {
                            nulls += 1;
                            &[]
                        }
                        Some(lengths) => elements(text.cast(), lengths[first + at] as usize)?,
                        None => CStr::from_ptr(text).to_bytes(),
                    };
                }
                let column = Column::texts(&rows[..ids.len()]);
                let counts = view.lookup(&column, ids, &options)?;
                let is_bad = |at: &usize| !texts[first + at].is_null();
                if refuses
                    && counts.invalid > nulls
                    && let Some(at) = (0..ids.len()).filter(is_bad).find(|&at| column.address(at).is_err())
                {
                    let text = String::from_utf8_lossy(&rows[at][..rows[at].len().min(64)]).into_owned();
                    let message = format!("'{}' is not an IP address", text.escape_debug());
                    return Err(Failure::new(Code::Invalid, message).at(first + at));
                }
                all.invalid += counts.invalid - nulls;
            }
            Ok(all.invalid as i64)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup_arrow(
    table: *const Table,
    schema: *const ArrowSchema,
    array: *const ArrowArray,
    threads: u32,
    flags: u32,
    ids: *mut u32,
    count: usize,
    error: *mut ErrorPlace,
) -> i64 {
    // SAFETY: as in `fibula_lookup4`.
    unsafe {
        counted(error, || {
            let view = handle(table)?.view();
            let (options, column) = (
                options(flags, V4_MAPPED | REFUSE_INVALID | TEXT, threads)?,
                of_arrow(schema, array, flags)?,
            );
            let counts = view.lookup(&column, elements_mut(ids, count)?, &options)?;
            Ok(counts.invalid as i64)
        })
    }
}

/// Returns the column of an array.
///
/// # Safety
/// The structs are as Arrow's C data interface says.
unsafe fn of_arrow<'a>(
    schema: *const ArrowSchema,
    array: *const ArrowArray,
    flags: u32,
) -> Outcome<Column<'a>> {
    // SAFETY: the caller's promise.
    let (schema, array) =
        unsafe { (reference(schema, "the schema is NULL")?, reference(array, "the array is NULL")?) };
    // SAFETY: the caller's promise.
    let column = Column::from_arrow(unsafe { arrow::borrow(schema, array) }?)?;
    Ok(if flags & TEXT == 0 { column } else { column.bytes_as_text() })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup_arrow_ids(
    table: *const Table,
    schema: *const ArrowSchema,
    array: *const ArrowArray,
    threads: u32,
    flags: u32,
    ids_schema: *mut ArrowSchema,
    ids_array: *mut ArrowArray,
    error: *mut ErrorPlace,
) -> i64 {
    // SAFETY: as in `fibula_lookup4`.
    unsafe {
        counted(error, || {
            if ids_schema.is_null() || ids_array.is_null() {
                return Err(Failure::argument("the place for the result is NULL"));
            }
            let view = handle(table)?.view();
            let (options, column) = (
                options(flags, V4_MAPPED | REFUSE_INVALID | TEXT, threads)?,
                of_arrow(schema, array, flags)?,
            );
            let mut ids = Vec::new();
            ids.try_reserve_exact(column.len())
                .map_err(|_| Failure::new(Code::Memory, "out of memory for the ids"))?;
            ids.resize(column.len(), 0);
            let counts = view.lookup(&column, &mut ids, &options)?;
            put_array(OwnedArray::of_ids(ids), ids_schema, ids_array)?;
            Ok(counts.invalid as i64)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup_arrow_prefixes(
    table: *const Table,
    schema: *const ArrowSchema,
    array: *const ArrowArray,
    flags: u32,
    prefixes_schema: *mut ArrowSchema,
    prefixes_array: *mut ArrowArray,
    error: *mut ErrorPlace,
) -> i64 {
    // SAFETY: as in `fibula_lookup4`.
    unsafe {
        counted(error, || {
            if prefixes_schema.is_null() || prefixes_array.is_null() {
                return Err(Failure::argument("the place for the result is NULL"));
            }
            let view = handle(table)?.prefixes();
            let (options, column) =
                (options(flags, V4_MAPPED | REFUSE_INVALID | TEXT, 1)?, of_arrow(schema, array, flags)?);
            let (prefixes, counts) = view.lookup(&column, &options).map_err(|error| match error {
                ColumnError::Lengths => Failure::new(Code::Absent, error.to_string()),
                error => error.into(),
            })?;
            put_array(texts_of(prefixes.into_iter())?, prefixes_schema, prefixes_array)?;
            Ok(counts.invalid as i64)
        })
    }
}

/// Writes an array to its places, for the caller to release.
///
/// # Safety
/// The places are NULL or can be written to.
pub unsafe fn put_array(
    array: OwnedArray,
    schema_place: *mut ArrowSchema,
    array_place: *mut ArrowArray,
) -> Outcome<()> {
    if schema_place.is_null() || array_place.is_null() {
        return Err(Failure::argument("the place for the result is NULL"));
    }
    let (schema, array) = array.into_structs();
    // SAFETY: the caller's promise.
    unsafe {
        put(schema_place, schema)?;
        put(array_place, array)
    }
}

/// Declares the two calls that also write the lengths of matched prefixes.
macro_rules! length_calls {
    ($($name:ident, $of:ident;)+) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            table: *const Table,
            addresses: *const c_void,
            stride: usize,
            flags: u32,
            ids: *mut u32,
            lengths: *mut u8,
            count: usize,
        ) -> c_int {
            // SAFETY: as in `fibula_lookup4`.
            unsafe {
                plain(|| {
                    let view = handle(table)?.view();
                    let column = $of(addresses, stride, flags, count)?;
                    let (ids, lengths) = (elements_mut(ids, count)?, elements_mut(lengths, count)?);
                    let found = view.lookup_with_lengths(&column, ids, lengths, &LookupOptions::default());
                    found.map(drop).map_err(|error| match error {
                        ColumnError::Lengths => Failure::new(Code::Absent, error.to_string()),
                        error => error.into(),
                    })
                })
            }
        }
    )+};
}

length_calls! {
    fibula_lookup4_lengths, column4;
    fibula_lookup6_lengths, column6;
}
