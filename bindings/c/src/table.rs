//! Tables that do not change: opened from files, or built from arrays.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Cursor;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::Arc;

use engine::engines::{Dir17Bitmap, Dir18Lines, DirBtree, EngineType, RangeBtree};
use engine::fib::registry::Engines;
use engine::fib::{DualFib, Fib};
use engine::file::{self, Contents, Half, StoredColumn, StoredRoutes, TableFile};
use engine::net::{HostBits, Key, NextHop, Route, Routes};
use engine::rib::{ColumnRules, DualRib, Duplicates, Rib, RibColumnsError};
use engine::simd::{self, Present};
use fibula_column::{PrefixView, TableView};

use crate::checked::{self, Handle};
use crate::error::{Code, ErrorPlace, Failure, Outcome, answer, call, plain, plain_counted};
use crate::input::{elements, handle, make, path, peek, put};
use crate::options::{FASTEST, LAST_WINS, MAP, MASK, Options, OptionsPlace, VERIFY};

/// The engines of this library. Others would add a tenth to its size: tables are not built with them here, and a file that has `planb`,
/// `dir-17-sparse` or `dir-btree-byte` is opened with an engine of these over its routes.
pub const ENGINES: Engines = Engines::new(
    || vec![Dir17Bitmap::engine(), Dir18Lines::engine(), RangeBtree::engine()],
    || vec![DirBtree::engine()],
);

/// `fibula_table`. C counts references to it; each is one of an `Arc`.
pub struct Table {
    source: Source,
    /// The engines of the source, which lookups reach in one step.
    engines: Borrowed,
    /// Values that were given to the table; those of the file otherwise.
    columns: Vec<StoredColumn>,
    /// The names of the columns, with their ends.
    names: Vec<CString>,
}

impl Handle for Table {
    const NAME: &'static str = "table";
    const NULL: &'static str = "the table is NULL";
}

/// Engines that are borrowed from the source next to them, which is counted and does not change: they live as long as it does, and are not
/// given out.
#[derive(Clone, Copy)]
struct Borrowed {
    v4: Option<&'static dyn Fib<u32>>,
    v6: Option<&'static dyn Fib<u128>>,
    /// The instruction set of batches, which C cannot change: to find it for each batch would cost as much as the checks of a call.
    set: Present,
}

impl Borrowed {
    fn of(source: &Source) -> Self {
        fn extend<K: Key>(engine: &dyn Fib<K>) -> &'static dyn Fib<K> {
            // SAFETY: the source is in an `Arc` that the table holds, so the engine stays where it is as long as the table is there.
            unsafe { std::mem::transmute::<&dyn Fib<K>, &'static dyn Fib<K>>(engine) }
        }
        let set = simd::chosen();
        match source {
            Source::File(file) => {
                Self { v4: file.v4.fib.as_deref().map(extend), v6: file.v6.fib.as_deref().map(extend), set }
            }
            Source::Built(built) => {
                Self { v4: Some(extend(&*built.fibs.v4)), v6: Some(extend(&*built.fibs.v6)), set }
            }
        }
    }
}

#[derive(Clone)]
enum Source {
    File(Arc<TableFile>),
    Built(Arc<Built>),
}

struct Built {
    fibs: DualFib,
    ribs: DualRib,
    /// The engines' names, of IPv4 and of IPv6.
    engines: [&'static str; 2],
}

/// `fibula_routes`.
#[repr(C)]
pub struct RoutesPlace {
    addresses: *const c_void,
    lengths: *const u8,
    ids: *const u32,
    count: usize,
}

impl Table {
    fn new(source: Source, columns: Vec<StoredColumn>, names: Vec<CString>) -> Self {
        let engines = Borrowed::of(&source);
        Self { source, engines, columns, names }
    }

    pub fn of_file(file: Arc<TableFile>) -> Self {
        let names = names(file.columns());
        Self::new(Source::File(file), Vec::new(), names)
    }

    /// Returns the same routes with these columns.
    pub fn with_columns(&self, columns: Vec<StoredColumn>) -> Self {
        let names = names(&columns);
        Self::new(self.source.clone(), columns, names)
    }

    /// Returns the columns of values.
    pub fn columns(&self) -> &[StoredColumn] {
        match &self.source {
            Source::File(file) if self.columns.is_empty() => file.columns(),
            _ => &self.columns,
        }
    }

    /// Returns the name of a column, which ends with 0.
    pub fn name(&self, column: usize) -> Option<&CStr> {
        self.names.get(column).map(CString::as_c_str)
    }

    /// Compiles routes.
    pub fn build(ribs: DualRib, options: &Options) -> Outcome<Self> {
        let fast = options.has(FASTEST);
        let names = [if fast { "dir-18-lines" } else { "dir-17-bitmap" }, "dir-btree"];
        let v4 = built::<u32>(names[0], &ribs.v4, options)?;
        let v6 = built::<u128>(names[1], &ribs.v6, options)?;
        let built = Arc::new(Built { fibs: DualFib { v4, v6 }, ribs, engines: names });
        Ok(Self::new(Source::Built(built), Vec::new(), Vec::new()))
    }

    pub fn view(&self) -> TableView<'_> {
        match &self.source {
            Source::File(file) => TableView::from(&**file),
            Source::Built(built) => TableView::from(&built.fibs),
        }
    }

    /// Returns what finds matched prefixes.
    pub fn prefixes(&self) -> PrefixView<'_> {
        match &self.source {
            Source::File(file) => PrefixView::from(&**file),
            Source::Built(built) => PrefixView::from((&built.fibs, &built.ribs)),
        }
    }

    #[inline]
    pub fn lookup4(&self, key: u32) -> Option<NextHop> {
        match self.engines.v4 {
            Some(engine) => engine.lookup_key(key),
            None => self.route4(key),
        }
    }

    #[inline]
    pub fn lookup6(&self, key: u128) -> Option<NextHop> {
        match self.engines.v6 {
            Some(engine) => engine.lookup_key(key),
            None => self.route6(key),
        }
    }

    /// Returns the engine of IPv4, if there is one, and the instruction set for its batches.
    #[inline]
    pub fn engine4(&self) -> Option<(&dyn Fib<u32>, Present)> {
        Some((self.engines.v4?, self.engines.set))
    }

    /// A file may have routes without an engine. Apart, so that other lookups need no place for what this one returns.
    #[cold]
    #[inline(never)]
    fn route4(&self, key: u32) -> Option<NextHop> {
        let Source::File(file) = &self.source else { return None };
        file.v4.lookup(key)
    }

    /// As [`route4`](Self::route4).
    #[cold]
    #[inline(never)]
    fn route6(&self, key: u128) -> Option<NextHop> {
        let Source::File(file) = &self.source else { return None };
        file.v6.lookup(key)
    }

    /// Returns the reference that C gets.
    pub fn into_raw(self) -> *mut Self {
        let table = Arc::into_raw(Arc::new(self));
        checked::made(table);
        table.cast_mut()
    }
}

/// Names of files have no control characters, and so no 0 inside.
fn names(columns: &[StoredColumn]) -> Vec<CString> {
    columns.iter().map(|column| CString::new(column.name()).unwrap_or_default()).collect()
}

fn built<K: Key>(name: &str, rib: &Rib<K>, options: &Options) -> Outcome<Box<dyn Fib<K>>> {
    let engine = ENGINES.find::<K>(name).map_err(|error| Failure::new(Code::Bug, error.to_string()))?;
    Ok(engine.build(rib, options.limits())?)
}

/// Opens a file: mapped if that is wanted and possible, otherwise as a verified copy.
pub fn open(path: &std::path::Path, options: &Options) -> Outcome<TableFile> {
    if !options.has(MAP) {
        return Ok(TableFile::open_with(path, options.limits(), ENGINES)?);
    }
    let file = TableFile::map_with(path, ENGINES)?;
    // A copy was verified.
    if options.has(VERIFY) && file.is_mapped() {
        file.verify()?;
    }
    Ok(file)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_open(
    file: *const c_char,
    options: *const OptionsPlace,
    table: *mut *mut Table,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: the promises that fibula.h asks of the caller, here and below.
    unsafe {
        make(table, error, || {
            let opened = open(path(file)?, &Options::read(options)?)?;
            Ok(Table::of_file(Arc::new(opened)).into_raw())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_open_memory(
    image: *const c_void,
    bytes: usize,
    options: *const OptionsPlace,
    table: *mut *mut Table,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_table_open`.
    unsafe {
        make(table, error, || {
            let image = elements(image.cast::<u8>(), bytes)?;
            let opened = TableFile::copy_with(Cursor::new(image), Options::read(options)?.limits(), ENGINES)?;
            Ok(Table::of_file(Arc::new(opened)).into_raw())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_build(
    ipv4: *const RoutesPlace,
    ipv6: *const RoutesPlace,
    options: *const OptionsPlace,
    table: *mut *mut Table,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_table_open`.
    unsafe {
        make(table, error, || {
            let options = Options::read(options)?;
            let mut ribs = DualRib::within(options.limits());
            if let Some(routes) = ipv4.as_ref() {
                ribs.v4 = rib(elements(routes.addresses.cast::<u32>(), routes.count)?, routes, &options)?;
            }
            if let Some(routes) = ipv6.as_ref() {
                let bytes = elements(routes.addresses.cast::<[u8; 16]>(), routes.count)?;
                let mut addresses = Vec::new();
                addresses
                    .try_reserve_exact(bytes.len())
                    .map_err(|_| Failure::new(Code::Memory, "out of memory for the addresses"))?;
                addresses.extend(bytes.iter().map(|bytes| u128::from_be_bytes(*bytes)));
                ribs.v6 = rib(&addresses, routes, &options)?;
            }
            Ok(Table::build(ribs, &options)?.into_raw())
        })
    }
}

/// Returns the routes of arrays.
///
/// # Safety
/// The arrays are as long as the routes say.
unsafe fn rib<K: Key>(addresses: &[K], routes: &RoutesPlace, options: &Options) -> Outcome<Rib<K>> {
    // SAFETY: the caller's promise.
    let (lengths, ids) =
        unsafe { (elements(routes.lengths, routes.count)?, elements(routes.ids, routes.count)?) };
    let rules = ColumnRules {
        host_bits: if options.has(MASK) { HostBits::Mask } else { HostBits::Refuse },
        duplicates: if options.has(LAST_WINS) { Duplicates::LastWins } else { Duplicates::Refuse },
        limits: options.limits(),
    };
    Rib::from_columns(addresses, lengths, ids, rules).map_err(|error| {
        let row = error.row();
        let failure = match error {
            RibColumnsError::Memory(_) => Failure::new(Code::Memory, error.to_string()),
            RibColumnsError::Duplicate { prefix, .. } => {
                let message = format!("{prefix} is there already; FIBULA_LAST_WINS replaces it");
                Failure::new(Code::Invalid, message)
            }
            RibColumnsError::Prefix { error, .. } => Failure::new(Code::Invalid, error.to_string()),
            error => Failure::new(Code::Invalid, error.to_string()),
        };
        match row {
            Some(row) => failure.at(row),
            None => failure,
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_save(
    table: *const Table,
    file: *const c_char,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_table_open`.
    unsafe {
        call(error, || {
            let table = handle(table)?;
            let mut contents = Contents::default();
            match &table.source {
                Source::Built(built) => {
                    contents.v4 = Half::new(&*built.fibs.v4, &built.ribs.v4);
                    contents.v6 = Half::new(&*built.fibs.v6, &built.ribs.v6);
                }
                Source::File(file) => {
                    contents.v4.fib = file.v4.fib.as_deref();
                    contents.v4.routes = file.v4.routes.as_ref().map(|routes| routes as &dyn Routes<u32>);
                    contents.v6.fib = file.v6.fib.as_deref();
                    contents.v6.routes = file.v6.routes.as_ref().map(|routes| routes as &dyn Routes<u128>);
                }
            }
            match table.columns() {
                // Ids of a file of version 1 may have gaps, which they keep.
                [column] if column.ids().is_some() => {
                    for (id, _) in column.iter() {
                        let mut value = Vec::new();
                        column.append(id, &mut value);
                        contents.values.insert(id, value);
                    }
                }
                columns => contents.columns = columns.iter().collect(),
            }
            Ok(file::save(path(file)?, &contents)?)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_ref(table: *mut Table) -> *mut Table {
    if checked::referred(table).is_err() {
        return ptr::null_mut();
    }
    if !table.is_null() {
        // SAFETY: the caller has a reference, which is from `into_raw`.
        unsafe { Arc::increment_strong_count(table) };
    }
    table
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_unref(table: *mut Table) {
    let Ok(is_last) = checked::given_up(table) else { return };
    if !table.is_null() {
        // SAFETY: the caller gives its reference up, which is from `into_raw`.
        let table = unsafe { Arc::from_raw(table) };
        if is_last {
            // The memory stays, so that no other table has this address.
            std::mem::forget(Arc::downgrade(&table));
        }
        answer((), || drop(table));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_is_mapped(table: *const Table) -> c_int {
    // SAFETY: as in `fibula_table_open`.
    let table = unsafe { peek(table) };
    table.map_or(0, |table| c_int::from(matches!(&table.source, Source::File(file) if file.is_mapped())))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_bytes(table: *const Table) -> u64 {
    answer(0, || {
        // SAFETY: as in `fibula_table_open`.
        let Some(table) = (unsafe { peek(table) }) else { return 0 };
        let memory = match &table.source {
            Source::File(file) => file.memory(),
            Source::Built(built) => built.fibs.memory() + built.ribs.memory(),
        };
        memory.held_bytes() as u64
    })
}

/// Returns the routes of a family.
fn routes(table: &Table, family: c_int) -> Outcome<usize> {
    let absent = || Failure::new(Code::Absent, "the file has no routes of this family, only an engine");
    match (&table.source, family) {
        (Source::Built(built), 4) => Ok(built.ribs.v4.len()),
        (Source::Built(built), 6) => Ok(built.ribs.v6.len()),
        (Source::File(file), 4) if file.v4.is_empty() => Ok(0),
        (Source::File(file), 6) if file.v6.is_empty() => Ok(0),
        (Source::File(file), 4) => file.v4.routes.as_ref().map(StoredRoutes::len).ok_or_else(absent),
        (Source::File(file), 6) => file.v6.routes.as_ref().map(StoredRoutes::len).ok_or_else(absent),
        _ => Err(Failure::argument("a family is 4 or 6")),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_count(table: *const Table, family: c_int) -> i64 {
    // SAFETY: as in `fibula_table_open`.
    unsafe { plain_counted(|| Ok(routes(handle(table)?, family)? as i64)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_engine(table: *const Table, family: c_int) -> *const c_char {
    // SAFETY: as in `fibula_table_open`.
    let Some(table) = (unsafe { peek(table) }) else { return ptr::null() };
    let name = match (&table.source, family) {
        (Source::Built(built), 4) => Some(built.engines[0]),
        (Source::Built(built), 6) => Some(built.engines[1]),
        (Source::File(file), 4) => file.v4.engine,
        (Source::File(file), 6) => file.v6.engine,
        _ => None,
    };
    // Names that end with 0, because those of the registry do not.
    match name {
        Some("dir-17-bitmap") => c"dir-17-bitmap".as_ptr(),
        Some("dir-18-lines") => c"dir-18-lines".as_ptr(),
        Some("dir-btree") => c"dir-btree".as_ptr(),
        Some("range-btree") => c"range-btree".as_ptr(),
        Some(_) => c"another engine".as_ptr(),
        None => ptr::null(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_value(
    table: *const Table,
    id: u32,
    value: *mut *const u8,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as in `fibula_table_open`.
    unsafe {
        plain(|| {
            let table = handle(table)?;
            let column = table
                .columns()
                .first()
                .ok_or_else(|| Failure::new(Code::Absent, "the table has no values"))?;
            put_bytes(column, id, value, bytes)
        })
    }
}

/// Writes where the bytes of a value are.
///
/// # Safety
/// The places are NULL or can be written to.
pub unsafe fn put_bytes(
    column: &StoredColumn,
    id: u32,
    value: *mut *const u8,
    bytes: *mut usize,
) -> Outcome<()> {
    let found = NextHop::new(id).and_then(|id| column.bytes(id));
    let found = found.ok_or_else(|| Failure::new(Code::Absent, "the id has no value of text or bytes"))?;
    // SAFETY: the caller's promise.
    unsafe {
        put(value, found.as_ptr().cast())?;
        put(bytes, found.len())
    }
}

type Each4 = unsafe extern "C" fn(u32, u8, u32, *mut c_void) -> c_int;
type Each6 = unsafe extern "C" fn(*const u8, u8, u32, *mut c_void) -> c_int;

/// Calls `each` with every route until it returns something else than 0, which is returned.
fn iterate<K: Key>(
    mut routes: impl Iterator<Item = Route<K>>,
    each: &mut dyn FnMut(Route<K>) -> c_int,
) -> i64 {
    let stop = routes.try_for_each(|route| match each(route) {
        0 => ControlFlow::Continue(()),
        code => ControlFlow::Break(code),
    });
    stop.break_value().map_or(0, i64::from)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_iterate4(
    table: *const Table,
    each: Option<Each4>,
    user: *mut c_void,
) -> c_int {
    // SAFETY: as in `fibula_table_open`; the callback gets arguments of the types that it declares.
    unsafe {
        plain_counted(|| {
            let table = handle(table)?;
            let each = each.ok_or(Failure::argument("the callback is NULL"))?;
            let mut each =
                |route: Route<u32>| each(route.prefix.addr(), route.prefix.len(), route.next_hop.id(), user);
            routes(table, 4)?;
            Ok(match &table.source {
                Source::Built(built) => iterate(built.ribs.v4.iter(), &mut each),
                Source::File(file) => match &file.v4.routes {
                    Some(routes) => iterate(routes.iter(), &mut each),
                    None => 0,
                },
            })
        }) as c_int
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_iterate6(
    table: *const Table,
    each: Option<Each6>,
    user: *mut c_void,
) -> c_int {
    // SAFETY: as in `fibula_iterate4`.
    unsafe {
        plain_counted(|| {
            let table = handle(table)?;
            let each = each.ok_or(Failure::argument("the callback is NULL"))?;
            let mut each = |route: Route<u128>| {
                let address = route.prefix.addr().to_be_bytes();
                each(address.as_ptr(), route.prefix.len(), route.next_hop.id(), user)
            };
            routes(table, 6)?;
            Ok(match &table.source {
                Source::Built(built) => iterate(built.ribs.v6.iter(), &mut each),
                Source::File(file) => match &file.v6.routes {
                    Some(routes) => iterate(routes.iter(), &mut each),
                    None => 0,
                },
            })
        }) as c_int
    }
}
