//! The program's allocator, which counts: what the tables of other crates take, most of them do not say.

use std::alloc::System;

use cap::Cap;

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes that are handed out now.
pub(crate) fn allocated() -> usize {
    HEAP.allocated()
}
