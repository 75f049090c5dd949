//! The library's allocator: the system's, and a reserve for small allocations that the system refuses.
//!
//! The standard library ends the process where one of its small allocations is refused. With the reserve, such a call goes on to its end. Large
//! allocations need no reserve: when one of them is refused, the call returns `FIBULA_E_MEMORY`. While parts of the reserve are in use, each
//! later call first asks the system for memory, and returns that code if it gets none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::{Code, Failure, Outcome};

/// The parts of one size. A part holds one allocation.
struct Class {
    /// The bytes of a part, which is aligned to them, up to a page.
    bytes: usize,
    /// A bit for each part that is in use.
    taken: [AtomicU64; WORDS],
    /// How many of these words there are.
    words: usize,
}

/// The most words of a class.
const WORDS: usize = 16;
const PAGE: usize = 4096;
const SIZES: [usize; 3] = [256, 4 << 10, 64 << 10];
const COUNTS: [usize; 3] = [1024, 64, 64];
/// Where the parts of each size begin. The larger ones come first, so that all are aligned.
const STARTS: [usize; 3] = [SIZES[2] * COUNTS[2] + SIZES[1] * COUNTS[1], SIZES[2] * COUNTS[2], 0];
const BYTES: usize = STARTS[0] + SIZES[0] * COUNTS[0];

#[repr(align(4096))]
struct Parts(UnsafeCell<[u8; BYTES]>);

// SAFETY: `take` sets the bit of a part atomically, so two threads never write to the same part.
unsafe impl Sync for Parts {}

/// It is zeros, so the system gives it memory page by page, at the first write.
static RESERVE: Parts = Parts(UnsafeCell::new([0; BYTES]));

static CLASSES: [Class; 3] = [class(0), class(1), class(2)];

/// How many parts are in use.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

const fn class(number: usize) -> Class {
    Class {
        bytes: SIZES[number],
        taken: [const { AtomicU64::new(0) }; WORDS],
        words: COUNTS[number] / u64::BITS as usize,
    }
}

pub struct Allocator;

#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Returns whether a pointer is to a part.
#[inline]
fn is_part(pointer: *mut u8) -> bool {
    pointer.addr().wrapping_sub(RESERVE.0.get().addr()) < BYTES
}

/// Returns the class and the number of a part.
fn part(pointer: *mut u8) -> (usize, usize) {
    let from_start = pointer.addr().wrapping_sub(RESERVE.0.get().addr());
    let class = (0..SIZES.len()).find(|&class| from_start >= STARTS[class]).unwrap_or_default();
    (class, (from_start - STARTS[class]) / SIZES[class])
}

/// Returns a part of the reserve; NULL where the allocation is too large or all parts that are large enough are in use.
#[cold]
fn take(layout: Layout) -> *mut u8 {
    let lowest_free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
    for (class, start) in CLASSES.iter().zip(STARTS) {
        if layout.size() > class.bytes || layout.align() > class.bytes.min(PAGE) {
            continue;
        }
        for (word, taken) in class.taken[..class.words].iter().enumerate() {
            // Acquire: what the last user of the part wrote comes before.
            if let Ok(before) = taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest_free) {
                IN_USE.fetch_add(1, Ordering::Relaxed);
                let number = word * u64::BITS as usize + before.trailing_ones() as usize;
                return RESERVE.0.get().cast::<u8>().wrapping_add(start + number * class.bytes);
            }
        }
    }
    ptr::null_mut()
}

#[cold]
fn give_back(pointer: *mut u8) {
    let (class, number) = part(pointer);
    let bits = u64::BITS as usize;
    CLASSES[class].taken[number / bits].fetch_and(!(1 << (number % bits)), Ordering::Release);
    IN_USE.fetch_sub(1, Ordering::Relaxed);
}

/// Refuses a call that allocates while parts of the reserve are in use and the system has no more memory: what it makes would stay in the
/// reserve.
#[inline]
pub fn check() -> Outcome<()> {
    if IN_USE.load(Ordering::Relaxed) != 0 && is_refused() {
        return Err(Failure::new(Code::Memory, "the system has no more memory"));
    }
    Ok(())
}

#[cold]
fn is_refused() -> bool {
    let Ok(layout) = Layout::from_size_align(SIZES[1], 16) else { return false };
    // SAFETY: the size is not 0.
    let probe = unsafe { System.alloc(layout) };
    if !probe.is_null() {
        // SAFETY: from the line above.
        unsafe { System.dealloc(probe, layout) };
    }
    probe.is_null()
}

// Not inlined: at every place that allocates, it would add a fifteenth to the library.
// SAFETY: memory is the system's or a whole part of the reserve, which no other allocation has until it is given back; a part is as long
// and as aligned as `take` verifies.
unsafe impl GlobalAlloc for Allocator {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, here and below.
        let pointer = unsafe { System.alloc(layout) };
        if pointer.is_null() { take(layout) } else { pointer }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let mut pointer = unsafe { System.alloc_zeroed(layout) };
        if pointer.is_null() {
            pointer = take(layout);
            if !pointer.is_null() {
                // SAFETY: the part is at least as long.
                unsafe { pointer.write_bytes(0, layout.size()) };
            }
        }
        pointer
    }

    #[inline(never)]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if is_part(pointer) {
            give_back(pointer);
        } else {
            // SAFETY: as in `alloc`; it is the system's.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_part(pointer) {
            // SAFETY: as in `dealloc`.
            let grown = unsafe { System.realloc(pointer, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: as in `alloc`.
        unsafe { moved(pointer, layout, size) }
    }
}

/// Moves an allocation that is in the reserve, or that the system does not grow.
///
/// # Safety
/// As for `realloc`.
#[cold]
unsafe fn moved(pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    let Ok(new) = Layout::from_size_align(size, layout.align()) else { return ptr::null_mut() };
    if is_part(pointer) && size <= SIZES[part(pointer).0] {
        return pointer;
    }
    // SAFETY: the caller's promise: the size is not 0.
    let to = unsafe { Allocator.alloc(new) };
    if !to.is_null() {
        // SAFETY: both are at least as long, and apart; the old one is not used afterwards.
        unsafe {
            ptr::copy_nonoverlapping(pointer, to, layout.size().min(size));
            Allocator.dealloc(pointer, layout);
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_given_out_once_and_come_back() {
        let layout = |size| Layout::from_size_align(size, 64).unwrap();
        assert!(take(layout(SIZES[2] + 1)).is_null());
        for class in [2, 1, 0] {
            let (size, count) = (SIZES[class], COUNTS[class]);
            let all: Vec<*mut u8> = (0..count).map(|_| take(layout(size))).collect();
            for (at, &pointer) in all.iter().enumerate() {
                assert_eq!((is_part(pointer), part(pointer)), (true, (class, at)));
                assert_eq!(pointer.addr() % size.min(PAGE), 0);
            }
            // SAFETY: the parts were taken with this layout, and each is given back once.
            unsafe {
                all[7].write(1);
                Allocator.dealloc(all[7], layout(size));
                assert_eq!(take(layout(size - 1)), all[7]);
                // It stays where it fits, and leaves where it does not.
                assert_eq!(Allocator.realloc(all[7], layout(size - 1), size), all[7]);
                let grown = Allocator.realloc(all[7], layout(size), size + 1);
                assert_eq!((is_part(grown), grown.read(), take(layout(size))), (false, 1, all[7]));
                Allocator.dealloc(grown, layout(size + 1));
                if class < 2 {
                    // The next larger one where all are in use.
                    let larger = take(layout(size));
                    assert_eq!(part(larger), (class + 1, 0));
                    Allocator.dealloc(larger, layout(size));
                }
                assert_eq!(IN_USE.load(Ordering::Relaxed), count);
                all.iter().for_each(|&pointer| Allocator.dealloc(pointer, layout(size)));
            }
        }
        assert!(check().is_ok() && IN_USE.load(Ordering::Relaxed) == 0);
    }
}
