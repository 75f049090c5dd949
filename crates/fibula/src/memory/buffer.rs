//! An array for random access: aligned to cache lines, and in huge pages if it is large.
//!
//! A random load from a large table misses the translation buffer (TLB) before it misses the cache. A page of 2 MiB
//! holds as much as 512 pages of 4 KiB; `docs/adr/0007-huge-pages.md` has measurements.
//!
//! ```text
//! bytes               < 1.78 MiB: from the allocator, aligned to 64 bytes
//!                     otherwise:  mapped, aligned to 2 MiB, with huge pages requested (Linux)
//! bytes of a mapping  whole huge pages if the last one is at least half full and at most an eighth is wasted;
//!                     else whole small pages at the end. While it grows, always whole huge pages: where small ones
//!                     were touched, the system puts no huge one
//! ```
//!
//! Mapping is optional: if the system cannot map or advise, or the limit has no room for whole pages, the memory comes
//! from the allocator. [`Buffer::is_mapped`] returns which.

#![allow(
    unsafe_code,
    reason = "blocks aligned beyond their elements, and mapped ones, are not what Vec can hold"
)]

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut, Range};
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};

use super::Memory;
use super::shared::Word;
use super::storage::{Allowance, Grow, Refusal};

#[cfg(test)]
mod tests;

/// Alignment of every buffer: a cache line, or a vector register.
pub const ALIGN_BYTES: usize = 64;

/// Alignment of mapped buffers: the huge page of x86-64, and of AArch64 with small pages of 4 KiB.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A vector of `Copy` elements, aligned to cache lines and in huge pages if it is large and they are available.
///
/// Only a [`Budget`](super::Budget) makes it grow; methods that append panic if there is no room. A clone has no spare
/// capacity and, like a clone of a `Vec`, aborts if there is no memory.
pub struct Buffer<T> {
    /// Room for `capacity` elements, of which the first `len` are initialised; dangling if there is no room.
    start: NonNull<T>,
    len: usize,
    capacity: usize,
    /// Bytes of the mapping; 0 if the block is from the allocator and has room for exactly `capacity` elements.
    mapped_bytes: usize,
    /// Bytes of the allocator's block before the first element, at least 1; 0 if the block begins with that element.
    before_bytes: usize,
}

// SAFETY: a buffer owns its elements, as a vector does; nothing else uses the block.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: a shared buffer gives out shared references only.
unsafe impl<T: Sync> Sync for Buffer<T> {}

/// Has the alignment of a block of elements: at least a cache line.
#[repr(align(64))]
struct Aligned<T>([T; 0]);

const _: () = assert!(align_of::<Aligned<u8>>() == ALIGN_BYTES);

impl<T: Copy> Buffer<T> {
    /// Returns a buffer without elements or room.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(size_of::<T>() > 0, "elements must have a size");
            assert!(align_of::<Aligned<T>>() <= HUGE_PAGE_BYTES);
        }
        Self {
            start: NonNull::<Aligned<T>>::dangling().cast(),
            len: 0,
            capacity: 0,
            mapped_bytes: 0,
            before_bytes: 0,
        }
    }

    /// Returns a buffer with room for `elements`.
    fn with_room(elements: usize, tail: Tail, allowance: Allowance) -> Result<Self, Refusal> {
        if elements == 0 {
            return Ok(Self::new());
        }
        let bytes = elements.saturating_mul(size_of::<T>());
        if allowance.huge_pages
            && let Some(mapped_bytes) = mapping(bytes, tail)
            && allowance.grant(mapped_bytes).is_ok()
            && let Some(start) = pages::map(mapped_bytes)
        {
            return Ok(Self::mapped(start, mapped_bytes));
        }
        allowance.grant(bytes)?;
        let layout = layout::<T>(elements).ok_or(Refusal::System)?;
        // SAFETY: there are elements and they have a size: the layout is not empty.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).ok_or(Refusal::System)?.cast();
        Ok(Self { start, len: 0, capacity: elements, mapped_bytes: 0, before_bytes: 0 })
    }

    /// Returns a buffer of zeros, `None` if the system has no more. Memory is taken where it is written, if it is mapped or
    /// the allocator maps blocks of this size.
    pub(super) fn zeros(elements: usize, huge_pages: bool) -> Option<Self>
    where
        T: Word,
    {
        if elements == 0 {
            return Some(Self::new());
        }
        let bytes = elements.checked_mul(size_of::<T>())?;
        if huge_pages
            && let Some(mapped_bytes) = mapping(bytes, Tail::Whole)
            && let Some(start) = pages::map(mapped_bytes)
        {
            // New mappings are of zeros.
            let mut buffer = Self::mapped(start, mapped_bytes);
            buffer.len = elements;
            return Some(buffer);
        }
        // SAFETY: there are elements and they have a size: the layout is not empty.
        let block = NonNull::new(unsafe { alloc_zeroed(loose_layout::<T>(elements)?) })?;
        let before_bytes = ALIGN_BYTES - block.addr().get() % ALIGN_BYTES;
        // SAFETY: the layout has room for a line before the elements.
        let start = unsafe { block.add(before_bytes) }.cast();
        // Integers of zeros are valid.
        Some(Self { start, len: elements, capacity: elements, mapped_bytes: 0, before_bytes })
    }

    /// Returns an empty buffer in this mapping.
    fn mapped(start: NonNull<u8>, mapped_bytes: usize) -> Self {
        let capacity = mapped_bytes / size_of::<T>();
        Self { start: start.cast(), len: 0, capacity, mapped_bytes, before_bytes: 0 }
    }

    /// Returns the number of elements there is room for.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns whether it is mapped, with huge pages requested, rather than from the allocator.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.mapped_bytes > 0
    }

    /// Returns the address of the first element, dangling if there is no room. It is not taken from a reference, so that
    /// what is written through it is not forbidden by one.
    #[inline]
    pub(super) fn start(&self) -> *const T {
        self.start.as_ptr()
    }

    /// Returns the number of elements.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.len
    }

    /// Returns the room after the last element.
    #[inline]
    fn spare(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: `len` is at most `capacity`, which the block has room for.
        let end = unsafe { self.start.add(self.len) };
        // SAFETY: the room after `len` is this buffer's alone, and may be uninitialised.
        unsafe { core::slice::from_raw_parts_mut(end.cast().as_ptr(), self.capacity - self.len) }
    }

    /// Returns the room of `count` more elements.
    #[inline]
    fn room(&mut self, count: usize) -> &mut [MaybeUninit<T>] {
        self.spare().get_mut(..count).unwrap_or_else(|| no_room())
    }

    /// Appends an element.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.room(1)[0].write(element);
        self.len += 1;
    }

    /// Appends copies of `elements`.
    ///
    /// # Panics
    /// When there is no room.
    pub fn extend_from_slice(&mut self, elements: &[T]) {
        let room = self.room(elements.len());
        let to = room.as_mut_ptr().cast::<T>();
        // SAFETY: `room` is as long as `elements`, and borrowed alone while `elements` are borrowed too.
        unsafe { to.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) };
        self.len += elements.len();
    }

    /// Appends elements whose bytes `read` fills in, the lowest byte of each first. On an error none is appended.
    ///
    /// # Panics
    /// When there is no room.
    pub(crate) fn append_read<E>(
        &mut self,
        count: usize,
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E>
    where
        T: Word,
    {
        let len = self.len;
        self.resize(len + count, T::default());
        let new = &mut self[len..];
        let bytes = size_of_val(new);
        // SAFETY: these are the bytes of the elements, which are integers: initialised, and valid whatever is written.
        let result = read(unsafe { core::slice::from_raw_parts_mut(new.as_mut_ptr().cast::<u8>(), bytes) });
        if result.is_err() {
            self.len = len;
            return result;
        }
        if cfg!(target_endian = "big") {
            new.iter_mut().for_each(|element| *element = element.of_little_endian());
        }
        result
    }

    /// Appends copies of the elements of `range`.
    ///
    /// # Panics
    /// When there is no room, or the range ends past the last element.
    pub fn extend_from_within(&mut self, range: Range<usize>) {
        for at in range {
            self.push(self[at]);
        }
    }

    /// Sets the length to `len`; new elements are copies of `element`.
    ///
    /// # Panics
    /// When there is no room.
    pub fn resize(&mut self, len: usize, element: T) {
        if let Some(more) = len.checked_sub(self.len) {
            self.room(more).fill(MaybeUninit::new(element));
        }
        self.len = len;
    }

    /// Keeps only the first `len` elements; the capacity stays.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Moves to a block with room for `elements`, more than fit now.
    fn move_to_larger(&mut self, elements: usize, allowance: Allowance) -> Result<(), Refusal> {
        let tail = if self.len == 0 { Tail::Fitting } else { Tail::Whole };
        if allowance.huge_pages
            && self.mapped_bytes > 0
            && let Some(bytes) = mapping(elements.saturating_mul(size_of::<T>()), tail)
            && allowance.grant(bytes).is_ok()
            && let Some(start) = pages::move_to_larger(self.start.cast(), self.mapped_bytes, bytes)
        {
            let len = self.len;
            // `mremap` has ended the old mapping, which must not be unmapped again.
            core::mem::forget(core::mem::replace(self, Self::mapped(start, bytes)));
            self.len = len;
            return Ok(());
        }
        self.move_to(elements, tail, allowance)
    }

    /// Moves to a new block.
    fn move_to(&mut self, elements: usize, tail: Tail, allowance: Allowance) -> Result<(), Refusal> {
        let mut moved = Self::with_room(elements, tail, allowance)?;
        moved.extend_from_slice(self);
        *self = moved;
        Ok(())
    }
}

#[cold]
fn no_room() -> ! {
    panic!("no room left in the buffer: reserve through its budget first")
}

/// Returns the layout of an allocated block.
fn layout<T>(elements: usize) -> Option<Layout> {
    let bytes = elements.checked_mul(size_of::<T>())?;
    Layout::from_size_align(bytes, align_of::<Aligned<T>>()).ok()
}

/// Returns the layout of an allocated block of words with room for a line before them. It asks for no more than the
/// alignment that every block has: the allocator then takes large blocks of zeros from the system as they are, where it
/// would write all of one that is aligned to a line.
fn loose_layout<T>(elements: usize) -> Option<Layout> {
    let bytes = elements.checked_mul(size_of::<T>())?;
    Layout::from_size_align(bytes.checked_add(ALIGN_BYTES)?, align_of::<usize>()).ok()
}

/// How the last page of a mapping is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// A huge page, or small ones if a huge one would waste too much.
    Fitting,
    /// A huge page, because the buffer is growing.
    Whole,
}

/// Returns how many bytes to map; none if the allocator does as well.
fn mapping(bytes: usize, tail: Tail) -> Option<usize> {
    let huge = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES)?;
    let fits = huge - bytes <= (bytes / 8).min(HUGE_PAGE_BYTES / 2);
    let mapped = if fits || tail == Tail::Whole && bytes >= HUGE_PAGE_BYTES {
        huge
    } else {
        bytes.checked_next_multiple_of(pages::size()?)?
    };
    (mapped >= HUGE_PAGE_BYTES).then_some(mapped)
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.mapped_bytes > 0 {
            // SAFETY: the mapping is this buffer's, and nothing uses it after this.
            unsafe { pages::unmap(self.start.cast(), self.mapped_bytes) };
            return;
        }
        let layout =
            if self.before_bytes > 0 { loose_layout::<T>(self.capacity) } else { layout::<T>(self.capacity) };
        if let Some(layout) = layout.filter(|layout| layout.size() > 0) {
            // SAFETY: the block begins so many bytes before its first element.
            let block = unsafe { self.start.as_ptr().cast::<u8>().sub(self.before_bytes) };
            // SAFETY: the block was allocated with this layout, as `capacity` has not changed since.
            unsafe { dealloc(block, layout) };
        }
    }
}

impl<T: Copy> Grow for Buffer<T> {
    type Item = T;

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn held(&self) -> Memory {
        let allocated_bytes = if self.mapped_bytes > 0 { 0 } else { self.capacity * size_of::<T>() };
        Memory {
            lookup_bytes: 0,
            allocated_bytes,
            mapped_bytes: self.mapped_bytes,
            huge_bytes: self.mapped_bytes,
        }
    }

    fn grow(&mut self, elements: usize, allowance: Allowance) -> Result<(), Refusal> {
        if elements <= self.capacity { Ok(()) } else { self.move_to_larger(elements, allowance) }
    }

    #[inline]
    fn push_within(&mut self, item: T) {
        self.push(item);
    }

    fn shrink(&mut self, allowance: Allowance) {
        match mapping(self.len * size_of::<T>(), Tail::Fitting) {
            Some(bytes) if self.mapped_bytes > 0 => {
                let shorter = bytes < self.mapped_bytes;
                // SAFETY: the mapping is this buffer's, and no element is past `bytes`.
                let cut = shorter && unsafe { pages::cut(self.start.cast(), self.mapped_bytes, bytes) };
                if cut {
                    self.mapped_bytes = bytes;
                    self.capacity = bytes / size_of::<T>();
                }
            }
            _ if self.len < self.capacity => {
                // On an error it keeps its size.
                let _ = self.move_to(self.len, Tail::Fitting, allowance);
            }
            _ => {}
        }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` elements were written, and are borrowed with the buffer.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the first `len` elements were written, and are borrowed with the buffer, alone.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Default for Buffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        let allowance = Allowance { bytes: None, huge_pages: self.is_mapped() };
        let Ok(mut copy) = Self::with_room(self.len, Tail::Fitting, allowance) else {
            handle_alloc_error(layout::<T>(self.len).unwrap_or(Layout::new::<T>()));
        };
        copy.extend_from_slice(self);
        copy
    }
}

impl<T: Copy> Extend<T> for Buffer<T> {
    /// Appends the elements.
    ///
    /// # Panics
    /// When there is no room.
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push(element));
    }
}

impl<'a, T> IntoIterator for &'a Buffer<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

/// Mappings, on Linux. Elsewhere, and under Miri, which does not know `madvise`, all memory comes from the allocator.
#[cfg(all(target_os = "linux", not(miri)))]
mod pages {
    use core::ptr::{NonNull, null_mut};

    use super::HUGE_PAGE_BYTES;

    /// Returns the bytes of a small page, if a huge page is a multiple of that.
    pub(super) fn size() -> Option<usize> {
        // SAFETY: the call only returns a number.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).ok().filter(|size| size.is_power_of_two() && *size <= HUGE_PAGE_BYTES)
    }

    /// Maps `bytes`, whole pages, aligned to huge pages, and requests huge pages.
    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        let start = reserve(bytes)?;
        // SAFETY: the mapping is this function's; the advice changes no content.
        if unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) } == 0 {
            return Some(start);
        }
        // SAFETY: as above, and it ends here.
        unsafe { unmap(start, bytes) };
        None
    }

    /// Maps `bytes`, aligned to huge pages, by mapping more and unmapping what is around them.
    fn reserve(bytes: usize) -> Option<NonNull<u8>> {
        let around = bytes.checked_add(HUGE_PAGE_BYTES)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: an anonymous mapping at an address that the system chooses.
        let mapped = unsafe { libc::mmap(null_mut(), around, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let mapped = NonNull::new(mapped.cast::<u8>())?;
        let before = mapped.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `before` is less than a huge page, by which the mapping exceeds `bytes`.
        let start = unsafe { mapped.add(before) };
        // SAFETY: the mapping continues past `before + bytes` with the rest of the huge page.
        let end = unsafe { start.add(bytes) };
        if before > 0 {
            // SAFETY: nothing uses the bytes before `start`.
            unsafe { unmap(mapped, before) };
        }
        // SAFETY: nothing uses the bytes from `end` on; `before` is less than a huge page, so there are some.
        unsafe { unmap(end, HUGE_PAGE_BYTES - before) };
        Some(start)
    }

    /// Moves a mapping to a larger one of `bytes`: pages change their address, nothing is copied. On an error the old
    /// mapping is unchanged.
    pub(super) fn move_to_larger(old: NonNull<u8>, old_bytes: usize, bytes: usize) -> Option<NonNull<u8>> {
        let start = reserve(bytes)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let to = start.as_ptr().cast::<libc::c_void>();
        // SAFETY: only the caller has the old mapping and only this function the new one, which the old one replaces.
        let moved = unsafe { libc::mremap(old.as_ptr().cast(), old_bytes, bytes, flags, to) };
        // On an error the new mapping may be gone already and its addresses in other use: it must not be unmapped here.
        // What is left of it has no pages.
        (moved == to).then_some(start)
    }

    /// Unmaps all but the first `keep` bytes, whole pages. Returns whether that succeeded.
    ///
    /// # Safety
    /// The mapping is the caller's, and nothing uses the bytes past `keep`.
    pub(super) unsafe fn cut(start: NonNull<u8>, bytes: usize, keep: usize) -> bool {
        // SAFETY: `keep` is less than the mapping.
        let end = unsafe { start.add(keep) };
        // SAFETY: nothing uses the bytes from `end` on, as the caller promises.
        unsafe { unmap(end, bytes - keep) }
    }

    /// Unmaps a mapping or a part of one. Returns whether that succeeded: it fails if it would split a mapping and the
    /// process already has as many as it may; the pages then stay until the process ends.
    ///
    /// # Safety
    /// These whole pages are the caller's, and nothing uses them after this.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) == 0 }
    }
}

/// No mappings on this system.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod pages {
    use core::ptr::NonNull;

    pub(super) fn size() -> Option<usize> {
        None
    }

    pub(super) fn map(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn move_to_larger(_old: NonNull<u8>, _old_bytes: usize, _bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) unsafe fn cut(_start: NonNull<u8>, _bytes: usize, _keep: usize) -> bool {
        false
    }

    pub(super) unsafe fn unmap(_start: NonNull<u8>, _bytes: usize) -> bool {
        false
    }
}
