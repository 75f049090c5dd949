//! Tables that change while threads look addresses up in them.

use std::ffi::c_int;

use engine::live::{Options as LiveOptions, Pinned, Reader, Table as LiveTable};
use engine::net::{Change, IpPrefix, Key, NextHop, Prefix, Route};
use engine::rib::DualRib;
use fibula_column::{Column, LookupOptions, lookup_pinned};

use crate::checked::{self, Handle};
use crate::error::{Code, ErrorPlace, Failure, Outcome, answer, call, plain, plain_counted};
use crate::input::{elements, free, handle, make, owned, peek, reference};
use crate::lookup::bulk_calls;
use crate::options::{Options, OptionsPlace};
use crate::table::Table;

/// `fibula_live`.
pub struct Live {
    table: LiveTable,
    options: Options,
}

impl Handle for Live {
    const NAME: &'static str = "live table";
    const NULL: &'static str = "the table is NULL";
}

/// `fibula_reader`.
pub struct LiveReader {
    /// The pin. While there is one, it borrows `reader`.
    pin: Option<Pinned<'static>>,
    /// A pointer from `Box::into_raw`, so that the reader does not move with this struct.
    reader: *mut Reader,
}

impl Handle for LiveReader {
    const NAME: &'static str = "reader";
    const NULL: &'static str = "the reader is NULL";
}

impl LiveReader {
    fn pin(&mut self) {
        match &mut self.pin {
            Some(pin) => pin.refresh(),
            // SAFETY: the reader lives until `drop`, which ends the pin before it; it is borrowed here alone, and only while there is
            // no pin.
            None => self.pin = Some(unsafe { &mut *self.reader }.pin()),
        }
    }

    /// Runs lookups under the pin; where there is none, under one that ends with them.
    fn pinned<T>(&mut self, run: impl FnOnce(&Pinned<'static>) -> T) -> Option<T> {
        let stays = self.pin.is_some();
        if !stays {
            self.pin();
        }
        let result = self.pin.as_ref().map(run);
        if !stays {
            self.pin = None;
        }
        result
    }
}

impl Drop for LiveReader {
    fn drop(&mut self) {
        self.pin = None;
        // SAFETY: from `Box::into_raw`, and no pin borrows it any more.
        drop(unsafe { Box::from_raw(self.reader) });
    }
}

/// `fibula_change`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ChangePlace {
    address: [u8; 16],
    family: u8,
    length: u8,
    reserved: [u8; 2],
    id: u32,
}

const _: () = assert!(size_of::<ChangePlace>() == 24);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_new(
    options: *const OptionsPlace,
    live: *mut *mut Live,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: the promises that fibula.h asks of the caller, here and below.
    unsafe {
        make(live, error, || {
            let options = Options::read(options)?;
            let table_options = LiveOptions { limits: options.limits(), ..LiveOptions::default() };
            let table = LiveTable::from_routes(DualRib::within(options.limits()), table_options)?;
            Ok(owned(Live { table, options }))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_free(live: *mut Live) {
    // SAFETY: as in `fibula_live_new`.
    unsafe { free(live) }
}

impl Live {
    fn change(&self, prefix: impl Into<IpPrefix>, id: u32) -> Outcome<()> {
        let prefix = prefix.into();
        match NextHop::new(id) {
            Some(next_hop) => self.table.insert(prefix, next_hop)?,
            None => self.table.remove(prefix)?,
        };
        Ok(())
    }

    /// Returns the id of exactly this prefix; 0 where there is none.
    fn get(&self, prefix: impl Into<IpPrefix>) -> Outcome<i64> {
        Ok(i64::from(NextHop::word(self.table.get(prefix.into())?)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_set4(
    live: *const Live,
    address: u32,
    length: u8,
    id: u32,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        call(error, || {
            let live = handle(live)?;
            live.change(live.options.prefix(address, length)?, id)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_set6(
    live: *const Live,
    address: *const u8,
    length: u8,
    id: u32,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        call(error, || {
            let live = handle(live)?;
            let address = reference(address.cast::<[u8; 16]>(), "the address is NULL")?;
            live.change(live.options.prefix(u128::from_be_bytes(*address), length)?, id)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_get4(live: *const Live, address: u32, length: u8) -> i64 {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        plain_counted(|| {
            let live = handle(live)?;
            live.get(live.options.prefix(address, length)?)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_get6(live: *const Live, address: *const u8, length: u8) -> i64 {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        plain_counted(|| {
            let live = handle(live)?;
            let address = reference(address.cast::<[u8; 16]>(), "the address is NULL")?;
            live.get(live.options.prefix(u128::from_be_bytes(*address), length)?)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_apply(
    live: *const Live,
    changes: *const ChangePlace,
    count: usize,
    error: *mut ErrorPlace,
) -> c_int {
    fn change<K: Key>(prefix: Prefix<K>, id: u32) -> Change<K> {
        NextHop::new(id)
            .map_or(Change::Remove(prefix), |next_hop| Change::Insert(Route::new(prefix, next_hop)))
    }
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        call(error, || {
            let live = handle(live)?;
            let (mut v4, mut v6) = (Vec::new(), Vec::new());
            for (row, &ChangePlace { address, family, length, id, .. }) in
                elements(changes, count)?.iter().enumerate()
            {
                match family {
                    4 => {
                        let [a, b, c, d, ..] = address;
                        let prefix = live.options.prefix(u32::from_be_bytes([a, b, c, d]), length);
                        v4.push(change(prefix.map_err(|failure| failure.at(row))?, id));
                    }
                    6 => {
                        let prefix = live.options.prefix(u128::from_be_bytes(address), length);
                        v6.push(change(prefix.map_err(|failure| failure.at(row))?, id));
                    }
                    _ => return Err(Failure::new(Code::Invalid, "a family is 4 or 6").at(row)),
                }
            }
            live.table.apply_atomic(&v4, &v6)?;
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_lookup4(live: *const Live, address: u32) -> u32 {
    answer(0, || {
        // SAFETY: as in `fibula_live_new`.
        let live = unsafe { peek(live) };
        NextHop::word(live.and_then(|live| live.table.lookup(address).ok().flatten()))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_lookup6(live: *const Live, address: *const u8) -> u32 {
    answer(0, || {
        // SAFETY: as in `fibula_live_new`.
        let (live, address) = unsafe { (peek(live), address.cast::<[u8; 16]>().as_ref()) };
        let (Some(live), Some(address)) = (live, address) else { return 0 };
        NextHop::word(live.table.lookup(u128::from_be_bytes(*address)).ok().flatten())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_count(live: *const Live) -> i64 {
    // SAFETY: as in `fibula_live_new`.
    unsafe { plain_counted(|| Ok(handle(live)?.table.len()? as i64)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_flush(live: *const Live, error: *mut ErrorPlace) -> c_int {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        call(error, || {
            let live = handle(live)?;
            live.table.flush()?;
            live.table.maintain()?;
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_snapshot(
    live: *const Live,
    table: *mut *mut Table,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        make(table, error, || {
            let live = handle(live)?;
            Ok(Table::build(live.table.routes()?, &live.options)?.into_raw())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_new(
    live: *const Live,
    reader: *mut *mut LiveReader,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        make(reader, error, || {
            let own = Box::into_raw(Box::new(handle(live)?.table.reader()?));
            Ok(owned(LiveReader { pin: None, reader: own }))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_free(reader: *mut LiveReader) {
    // SAFETY: as in `fibula_live_new`.
    unsafe { free(reader) }
}

/// Runs a call with a reader, which belongs to the thread of the caller.
///
/// # Safety
/// The pointer is NULL or a reader that no other thread uses.
#[inline]
unsafe fn own<T>(reader: *mut LiveReader, run: impl FnOnce(&mut LiveReader) -> Outcome<T>) -> Outcome<T> {
    let _use = checked::used(reader)?;
    // SAFETY: the caller's promise.
    run(unsafe { reader.as_mut() }.ok_or(Failure::argument(LiveReader::NULL))?)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_pin(reader: *mut LiveReader) -> c_int {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        plain(|| {
            own(reader, |reader| {
                reader.pin();
                Ok(())
            })
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_unpin(reader: *mut LiveReader) -> c_int {
    // SAFETY: as in `fibula_live_new`.
    unsafe {
        plain(|| {
            own(reader, |reader| {
                reader.pin = None;
                Ok(())
            })
        })
    }
}

/// Looks one address up.
///
/// # Safety
/// As for [`own`].
#[inline]
unsafe fn one(reader: *mut LiveReader, run: impl FnOnce(&Pinned<'static>) -> Option<NextHop>) -> u32 {
    if reader.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    let found = unsafe { own(reader, |reader| Ok(reader.pinned(run).flatten())) };
    NextHop::word(found.ok().flatten())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_lookup4(reader: *mut LiveReader, address: u32) -> u32 {
    answer(0, || {
        // SAFETY: as in `fibula_live_new`.
        unsafe { one(reader, |pin| pin.lookup(address)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_lookup6(reader: *mut LiveReader, address: *const u8) -> u32 {
    answer(0, || {
        // SAFETY: as in `fibula_live_new`.
        let Some(address) = (unsafe { address.cast::<[u8; 16]>().as_ref() }) else { return 0 };
        // SAFETY: as in `fibula_live_new`.
        unsafe { one(reader, |pin| pin.lookup(u128::from_be_bytes(*address))) }
    })
}

/// Looks a column up under the pin of a reader.
fn look_up(reader: &mut LiveReader, column: &Column<'_>, ids: &mut [u32]) -> Outcome<()> {
    let run = |pin: &Pinned<'static>| lookup_pinned(pin, column, ids, &LookupOptions::default());
    if let Some(result) = reader.pinned(run) {
        result?;
    }
    Ok(())
}

bulk_calls! {
    (fibula_reader_lookup4_bulk, fibula_reader_lookup6_bulk)
    (reader: *mut LiveReader)
    |column, ids| own(reader, |reader| look_up(reader, &column, ids))
}
