//! Arenas: one map with all arrays of a table, which user space maps at one address in every process.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fibula::net::Family;

use crate::error::BpfError;
use crate::layout::{ARRAYS, ROOM_MOST};
use crate::sys::{self, ARENA, Lasting, MMAPABLE, MapForm, Mapping};

/// The bytes of an array: both halves. `include/fibula_bpf.h` has the same.
const ARRAY_BYTES: usize = 2 << ROOM_MOST;
/// The bytes of a page of an arena.
const PAGE: usize = 4096;
/// The bytes of an arena: arrays, and a page with the word of the header that lookups read. Pages take memory when they are written.
const BYTES: u64 = (ARRAYS * ARRAY_BYTES + PAGE) as u64;

/// Where arenas are mapped: at multiples of 2^32, so that the lowest 32 bits of a place are the offset in the arena, which programs have. The
/// first is above the memory of sanitizers, the last far below libraries and stacks.
const FIRST: u64 = (1 << 44) + (2 << 32);
const PLACES: u64 = 1 << 12;

/// The mappings of arenas in this process, by the number of the map. An arena cannot be mapped twice, as it has one address.
static MAPPED: LazyLock<Mutex<HashMap<u32, Lasting>>> = LazyLock::new(Mutex::default);

/// The number of the first place of this process, and of the arenas that it has made.
static START: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish() % PLACES);
static MADE: AtomicU64 = AtomicU64::new(0);

/// Makes an arena for a family. Families have places of their own, because a process follows one table of each.
pub(crate) fn create(family: Family, name: &str) -> Result<OwnedFd, BpfError> {
    // One place after another from one that other processes hardly have, so that those of this process meet after thousands alone.
    let number = *START + MADE.fetch_add(1, Ordering::Relaxed);
    let place = (number * 2 % PLACES) | u64::from(family == Family::Ipv6);
    let extra = FIRST + (place << 32);
    let entries = (BYTES / PAGE as u64) as u32;
    let form = MapForm { kind: ARENA, key_bytes: 0, value_bytes: 0, entries, flags: MMAPABLE, extra };
    sys::create_map(form, name, None).map_err(BpfError::of_arena)
}

/// Refuses a map that is not the arena of a table.
pub(crate) fn refuse_other(fd: &OwnedFd, path: &Path) -> Result<(), BpfError> {
    let (_, form) = form(fd)?;
    let is_ours =
        (form.kind, u64::from(form.entries) * PAGE as u64, form.flags & MMAPABLE) == (ARENA, BYTES, MMAPABLE);
    if is_ours && form.extra != 0 && form.extra.trailing_zeros() >= 32 {
        return Ok(());
    }
    Err(BpfError::foreign(path, "not an arena of a table"))
}

fn form(fd: &OwnedFd) -> Result<(u32, MapForm), BpfError> {
    sys::map_form(fd.as_fd()).map_err(|error| BpfError::of_map("read a map's form", error))
}

/// Maps an arena at its place, and returns the memory of each array, and the page with the word that lookups read.
pub(crate) fn map(fd: &OwnedFd) -> Result<(Vec<Mapping>, Mapping), BpfError> {
    let (number, form) = form(fd)?;
    let mut all = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|_, mapping| mapping.upgrade().is_some());
    let whole = match all.get(&number).and_then(Lasting::upgrade) {
        Some(whole) => whole,
        None => {
            let whole = map_new(fd, form.extra).map_err(|error| BpfError::of_place(form.extra, error))?;
            all.insert(number, whole.downgrade());
            whole
        }
    };
    let arrays = (0..ARRAYS).map(|array| whole.part(array * ARRAY_BYTES, ARRAY_BYTES)).collect();
    Ok((arrays, whole.part(ARRAYS * ARRAY_BYTES, PAGE)))
}

fn map_new(fd: &OwnedFd, place: u64) -> io::Result<Mapping> {
    let mut tries = 0;
    loop {
        match Mapping::of_arena(fd.as_fd(), place, BYTES) {
            // Another thread may be about to unmap the same arena.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) && tries < 20 => {
                tries += 1;
                thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}
