//! An allocator for tests: counts what a thread allocates, and refuses beyond a limit.
//!
//! Counts are kept by thread, so that tests which run side by side do not disturb each other, and for the whole process,
//! for tests that run alone.

#![allow(
    unsafe_code,
    reason = "GlobalAlloc is an unsafe trait; every call is passed to the system's allocator"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Install with `#[global_allocator]`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TestAllocator;

/// What a thread has allocated since [`measure`] began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Bytes allocated and not freed; negative when more was freed than allocated.
    pub live_bytes: isize,
    /// Most bytes that were live at any moment.
    pub peak_bytes: isize,
}

/// Requests up to this size are never refused. The standard library has no fallible box, so the box that holds
/// a finished structure, and the text of an error, cannot be requested fallibly.
pub const ALWAYS_GRANTED_BYTES: usize = 512;

const QUIET: Usage = Usage { live_bytes: 0, peak_bytes: 0 };

thread_local! {
    static USAGE: Cell<Usage> = const { Cell::new(QUIET) };
    static LIMIT_BYTES: Cell<isize> = const { Cell::new(isize::MAX) };
    /// What is still to be refused.
    static REFUSAL: Cell<Option<Refusal>> = const { Cell::new(None) };
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// A request of this thread that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Its number, from 1 on, among those of more than `least_bytes`.
    pub number: usize,
    /// Requests up to this size are granted.
    pub least_bytes: usize,
    /// Whether all such requests after it are refused as well.
    pub stays: bool,
}

/// Runs `work`, and refuses a request that it makes. Returns whether it came to that.
pub fn refuse<R>(refusal: Refusal, work: impl FnOnce() -> R) -> (R, bool) {
    REFUSED.set(false);
    REFUSAL.set(Some(refusal));
    let result = work();
    REFUSAL.set(None);
    (result, REFUSED.get())
}

/// Returns whether a request is the one to refuse.
fn is_refused(request: usize) -> bool {
    let Ok(Some(refusal)) = REFUSAL.try_with(Cell::get) else { return false };
    if request <= refusal.least_bytes {
        return false;
    }
    let number = refusal.number.saturating_sub(1);
    let is_refused = number == 0;
    let left = if is_refused && !refusal.stays { None } else { Some(Refusal { number, ..refusal }) };
    REFUSAL.set(left);
    if is_refused {
        REFUSED.set(true);
    }
    is_refused
}

/// Runs `work` and returns what this thread allocated meanwhile. With a limit, requests that would exceed it are
/// refused, as by an allocator that has no memory left.
pub fn measure<R>(limit_bytes: Option<usize>, work: impl FnOnce() -> R) -> (R, Usage) {
    USAGE.set(QUIET);
    LIMIT_BYTES.set(limit_bytes.map_or(isize::MAX, |limit| limit as isize));
    let result = work();
    LIMIT_BYTES.set(isize::MAX);
    (result, USAGE.get())
}

static PROCESS_LIVE: AtomicIsize = AtomicIsize::new(0);
static PROCESS_PEAK: AtomicIsize = AtomicIsize::new(0);

/// Runs `work` and says what all threads of the process allocated meanwhile.
pub fn measure_process<R>(work: impl FnOnce() -> R) -> (R, Usage) {
    PROCESS_LIVE.store(0, Ordering::SeqCst);
    PROCESS_PEAK.store(0, Ordering::SeqCst);
    let result = work();
    let live_bytes = PROCESS_LIVE.load(Ordering::SeqCst);
    (result, Usage { live_bytes, peak_bytes: PROCESS_PEAK.load(Ordering::SeqCst) })
}

/// Counts a change of `bytes`, unless it must be refused.
fn grant(bytes: isize, request: usize) -> bool {
    let limit = LIMIT_BYTES.try_with(Cell::get).unwrap_or(isize::MAX);
    let note = |usage: &Cell<Usage>| {
        let Usage { live_bytes, peak_bytes } = usage.get();
        let live_bytes = live_bytes + bytes;
        if bytes > 0 && live_bytes > limit && request > ALWAYS_GRANTED_BYTES {
            return false;
        }
        usage.set(Usage { live_bytes, peak_bytes: peak_bytes.max(live_bytes) });
        true
    };
    // A thread that is ending has no counters left; what it frees is not counted.
    let granted = !(bytes > 0 && is_refused(request)) && USAGE.try_with(note).unwrap_or(true);
    if granted {
        let live = PROCESS_LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PROCESS_PEAK.fetch_max(live, Ordering::Relaxed);
    }
    granted
}

// SAFETY: every block comes from and goes back to `System` with the layout it was requested with; refusing by a
// null pointer is what the trait allows.
unsafe impl GlobalAlloc for TestAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !grant(layout.size() as isize, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        grant(-(layout.size() as isize), 0);
        // SAFETY: the block came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Where a block moves, both exist for a moment: the worst case is what counts.
        if !grant(size as isize, size) {
            return std::ptr::null_mut();
        }
        grant(-(layout.size() as isize), 0);
        // SAFETY: the block came from `System` with this layout; the new size is the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
