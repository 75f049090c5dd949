//! A file as memory: pages that the system reads when they are touched, and that all processes share.

#![allow(unsafe_code, reason = "mapped pages are not what Vec can hold")]

use core::ptr::NonNull;
use std::fs::File;
use std::io;
use std::sync::Arc;

use super::Memory;
use super::shared::{Shared, Word};

/// A file, mapped for reading.
///
/// Other processes may change the file at any time, so its bytes are only ever read as atomic words. Pages past the end of a
/// file that became shorter cannot be read at all: the system ends a process that touches them.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages belong to the mapping, and are read only.
unsafe impl Send for Mapping {}
// SAFETY: as above; atomic loads may race with whoever writes the file.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file, of which there must be as many.
    ///
    /// # Errors
    /// When the system cannot map files, the file is empty, or the system refuses.
    pub(crate) fn of(file: &File, bytes: usize) -> io::Result<Self> {
        Ok(Self { start: system::map(file, bytes)?, bytes })
    }

    /// Returns `count` words of the file, from a byte on; `None` if they are not all within it or the first one is not
    /// aligned to its size.
    pub(crate) fn words<T: Word>(self: &Arc<Self>, from: usize, count: usize) -> Option<Shared<T>> {
        let end = count.checked_mul(size_of::<T>())?.checked_add(from)?;
        if end > self.bytes || !from.is_multiple_of(align_of::<T::Atomic>()) {
            return None;
        }
        // SAFETY: the place is within the mapping, or its end.
        let start = unsafe { self.start.add(from) };
        // SAFETY: so many words from this place on are within the pages, aligned as atomic words must be, since a mapping
        // begins at a page. The handle keeps the pages.
        Some(unsafe { Shared::mapped(start.cast(), count, Arc::clone(self)) })
    }

    /// Returns the memory that some of its bytes are.
    pub(super) fn memory(bytes: usize) -> Memory {
        Memory { lookup_bytes: bytes, mapped_bytes: bytes, ..Memory::default() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are this mapping's, and all words of it keep the mapping.
        unsafe { system::unmap(self.start, self.bytes) };
    }
}

/// Linux on processors that load words of up to 64 bits by plain loads, whatever the order: others may write to load.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_endian = "little",
    not(miri)
))]
mod system {
    use core::ptr::{NonNull, null_mut};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    pub(super) fn map(file: &File, bytes: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: a new mapping at an address that the system chooses; the descriptor is the file's.
        let mapped =
            unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(mapped.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
    }

    /// Unmaps a mapping.
    ///
    /// # Safety
    /// The mapping is the caller's, and nothing uses it after this.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise. There is nothing to do where it fails.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }
}

/// No mappings of files on this system.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_endian = "little",
    not(miri)
)))]
mod system {
    use core::ptr::NonNull;
    use std::fs::File;
    use std::io;

    pub(super) fn map(_file: &File, _bytes: usize) -> io::Result<NonNull<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) unsafe fn unmap(_start: NonNull<u8>, _bytes: usize) {}
}

#[cfg(all(
    test,
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_endian = "little",
    not(miri)
))]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::memory::Cell;

    #[test]
    fn words_of_a_file_are_read_where_they_are_and_nowhere_else() {
        let path = std::env::temp_dir().join(format!("fibula-mapped-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]).unwrap();
        let file = File::open(&path).unwrap();
        let mapping = Arc::new(Mapping::of(&file, 12).unwrap());
        let words = mapping.words::<u32>(4, 2).unwrap();
        assert!(mapping.words::<u32>(4, 3).is_none() && mapping.words::<u32>(2, 1).is_none());
        assert!(mapping.words::<u64>(4, 1).is_none() && mapping.words::<u64>(usize::MAX & !7, 1).is_none());
        assert_eq!(mapping.words::<u64>(8, 0).unwrap().len(), 0);
        drop(mapping);
        // What other processes write into the file is seen, and the pages stay while there are words of them.
        let mut writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all(&[0, 0, 0, 0, 9]).unwrap();
        assert_eq!(words.iter().map(Cell::read).collect::<Vec<_>>(), [9, 3]);
        assert_eq!((words.memory().mapped_bytes, words.memory().allocated_bytes), (8, 0));
        fs::remove_file(&path).unwrap();
        assert_eq!(words[1].read(), 3);
        assert!(Mapping::of(&file, 0).is_err());
    }
}
