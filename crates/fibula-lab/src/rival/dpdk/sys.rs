//! The boundary to DPDK: the only unsafe code of the rivals. `shim.c` is the other side.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::NonNull;
use std::sync::OnceLock;

use super::form::Kind;

/// `struct fibula_dpdk_config`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Config {
    pub(super) kind: Kind,
    pub(super) lookup: u32,
    /// Logarithm of an entry's bytes.
    pub(super) entry: u32,
    pub(super) routes: u32,
    pub(super) groups: u32,
    pub(super) huge_pages: u32,
    pub(super) heap_bytes: u64,
}

/// `enum fibula_dpdk_shape`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Call {
    Batch = 0,
    BatchX4 = 1,
    Single = 2,
    Dependent = 3,
}

/// Keys in the form of the library.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keys<'a> {
    /// In host order.
    V4(&'a [u32]),
    /// In network order.
    V6(&'a [[u8; 16]]),
}

#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn fibula_dpdk_start() -> c_int;
    fn fibula_dpdk_create(config: *const Config, error: *mut c_int) -> *mut Raw;
    fn fibula_dpdk_make(table: *mut Raw, config: *const Config) -> c_int;
    fn fibula_dpdk_free(table: *mut Raw);
    fn fibula_dpdk_add(table: *mut Raw, key: *const c_void, len: u8, next_hop: u32) -> c_int;
    fn fibula_dpdk_delete(table: *mut Raw, key: *const c_void, len: u8) -> c_int;
    fn fibula_dpdk_lookup(
        table: *const Raw,
        shape: u32,
        keys: *const c_void,
        count: u32,
        room: u32,
        answers: *mut u64,
    );
    fn fibula_dpdk_next_hops(
        table: *const Raw,
        shape: u32,
        answers: *const u64,
        count: u32,
        next_hops: *mut u32,
    );
    fn fibula_dpdk_allocated(table: *const Raw) -> u64;
    fn fibula_dpdk_error(error: c_int) -> *const c_char;
}

/// Starts DPDK's environment at the first call, and returns how that went at every call.
pub(super) fn start() -> Result<(), String> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    // DPDK pins the thread that starts the environment to a core, so it must not be one of ours.
    let started = STARTED.get_or_init(|| {
        // SAFETY: it takes nothing; `OnceLock` makes sure that it is called once, as DPDK demands.
        let start = || unsafe { fibula_dpdk_start() };
        let error = std::thread::spawn(start).join().map_err(|_| "the starting thread died".to_owned())?;
        if error == 0 { Ok(()) } else { Err(message(error)) }
    });
    started.clone()
}

/// DPDK's words for an error number of its own.
fn message(error: c_int) -> String {
    // SAFETY: it takes any number.
    let text = unsafe { fibula_dpdk_error(error.abs()) };
    // SAFETY: `rte_strerror` returns a string that ends and stays until this thread's next call of it.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Room for a table of DPDK's.
#[derive(Debug)]
pub(super) struct Room {
    table: NonNull<Raw>,
    config: Config,
}

impl Room {
    /// Creates a heap, which DPDK erases, so that all of its pages are present.
    pub(super) fn new(config: Config) -> Result<Self, String> {
        start()?;
        let mut error = 0;
        // SAFETY: `Config` has the layout of the shim's struct, the environment is started, both references outlive
        // the call.
        let table = unsafe { fibula_dpdk_create(&raw const config, &raw mut error) };
        let table = NonNull::new(table).ok_or_else(|| message(error))?;
        Ok(Self { table, config })
    }

    /// Creates the empty table in it.
    pub(super) fn make(self) -> Result<Handle, String> {
        // SAFETY: the room lives, and holds no table before, for it is consumed here.
        match unsafe { fibula_dpdk_make(self.table.as_ptr(), &raw const self.config) } {
            0 => Ok(Handle { room: self }),
            error => Err(message(error)),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: the room lives until here, with a table or without, and nothing refers to it any more.
        unsafe { fibula_dpdk_free(self.table.as_ptr()) }
    }
}

/// A table of DPDK's.
#[derive(Debug)]
pub(super) struct Handle {
    room: Room,
}

// SAFETY: DPDK ties no table to a thread.
unsafe impl Send for Handle {}

// SAFETY: methods that take `&self` only read: lookups write to the caller's memory alone, and the statistics of a heap are
// read under its lock.
unsafe impl Sync for Handle {}

impl Handle {
    /// Adds a route to the prefix of the first key's first `len` bits.
    pub(super) fn add(&mut self, key: Keys<'_>, len: u8, next_hop: u32) -> Result<(), String> {
        let (keys, count) = self.raw(key);
        assert_eq!(count, 1, "a route has one prefix");
        // SAFETY: the table lives; `raw` checked that the key is of its family; the mutable borrow makes this the
        // only use of the table. The library refuses lengths and next hops that it does not take.
        match unsafe { fibula_dpdk_add(self.room.table.as_ptr(), keys, len, next_hop) } {
            0 => Ok(()),
            error => Err(message(error)),
        }
    }

    /// Deletes the route to the prefix of the first key's first `len` bits.
    pub(super) fn delete(&mut self, key: Keys<'_>, len: u8) -> Result<(), String> {
        let (keys, count) = self.raw(key);
        assert_eq!(count, 1, "a route has one prefix");
        // SAFETY: as for `add`.
        match unsafe { fibula_dpdk_delete(self.room.table.as_ptr(), keys, len) } {
            0 => Ok(()),
            error => Err(message(error)),
        }
    }

    /// Looks `keys` up in blocks of as many as `answers` has room for. The answers of a block, in the library's form,
    /// overwrite those of the one before.
    pub(super) fn lookup(&self, call: Call, keys: Keys<'_>, answers: &mut [u64]) {
        let (keys, count) = self.raw(keys);
        let room = u32::try_from(answers.len()).expect("a batch has fewer than 2^32 keys");
        assert!(room > 0 || count == 0, "answers need room");
        assert!(
            call != Call::BatchX4 || self.room.config.kind == Kind::Lpm,
            "rte_lpm alone has lookups of four"
        );
        // SAFETY: the table lives and is not changed while it is shared; `raw` checked that there are `count` keys of
        // its family; an answer takes at most 64 bits and there is room for `room` of them, which is not 0.
        unsafe {
            fibula_dpdk_lookup(
                self.room.table.as_ptr(),
                call as u32,
                keys,
                count,
                room,
                answers.as_mut_ptr(),
            );
        }
    }

    /// Converts the answers to `next_hops.len()` keys that were looked up by this kind of call. 0 is no route.
    pub(super) fn next_hops(&self, call: Call, answers: &[u64], next_hops: &mut [u32]) {
        assert!(next_hops.len() <= answers.len(), "more answers than there were");
        let count = u32::try_from(next_hops.len()).expect("a batch has fewer than 2^32 keys");
        // SAFETY: there are at least `count` words of answers and exactly `count` next hops; any bits are read as some
        // next hop.
        unsafe {
            fibula_dpdk_next_hops(
                self.room.table.as_ptr(),
                call as u32,
                answers.as_ptr(),
                count,
                next_hops.as_mut_ptr(),
            );
        }
    }

    /// Returns the number of bytes that the library's allocator has handed out for the table.
    pub(super) fn allocated(&self) -> u64 {
        // SAFETY: the table lives.
        unsafe { fibula_dpdk_allocated(self.room.table.as_ptr()) }
    }

    /// Returns the pointer to the keys, which must be of the table's family, and their number.
    #[inline]
    fn raw(&self, keys: Keys<'_>) -> (*const c_void, u32) {
        let (pointer, count, kinds) = match keys {
            Keys::V4(keys) => (keys.as_ptr().cast(), keys.len(), [Kind::Fib, Kind::Lpm]),
            Keys::V6(keys) => (keys.as_ptr().cast(), keys.len(), [Kind::Fib6, Kind::Lpm6]),
        };
        assert!(kinds.contains(&self.room.config.kind), "keys of the other family");
        // `rte_fib_lookup_bulk` counts in an int.
        assert!(i32::try_from(count).is_ok(), "a batch has fewer than 2^31 keys");
        (pointer, count as u32)
    }
}
