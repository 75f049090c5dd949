//! Cache lines of words that a writer may change, as lookups search them.

use core::sync::atomic::AtomicU32;

use crate::memory::Cell;

use super::LINE_WORDS;

/// A cache line whose words are keys, or keys and then values of 16 bits.
pub(crate) type SharedLine = [AtomicU32; LINE_WORDS];

/// Number of keys of a line that has values too: 10 keys and 11 values are 62 bytes.
pub(crate) const LEAF_KEYS: usize = 10;

/// Keys are stored with this bit flipped, so that sets without unsigned comparisons compare them as they are.
pub(crate) const FLIP: u32 = 1 << 31;

/// Returns the half of a word at an index, the lower one of each word first.
///
/// # Panics
/// When it is past the end.
#[inline(always)]
pub(crate) fn half_of_shared(line: &SharedLine, index: usize) -> u32 {
    line[index / 2].read() >> (16 * (index % 2)) & 0xffff
}

/// Returns whether a flipped key of the line is below a flipped key.
#[inline(always)]
fn below(line: &SharedLine, at: u32, key: u32) -> u32 {
    u32::from((line[at as usize % LINE_WORDS].read() as i32) < key as i32)
}

/// Counts the words of a line, in ascending order, that are below `key`; all are flipped. Two words select a third of one
/// half, and two more decide the rest: no branch.
#[inline(always)]
pub(crate) fn rank_by_thirds(line: &SharedLine, key: u32) -> u32 {
    let half = 8 * below(line, 7, key);
    let third = half + 3 * (below(line, half + 2, key) + below(line, half + 5, key));
    third + below(line, third, key) + below(line, third + 1, key)
}

/// Counts the keys of a leaf that are below `key`; all are flipped.
#[inline(always)]
pub(crate) fn leaf_rank_by_thirds(line: &SharedLine, key: u32) -> u32 {
    let third = 3 * (below(line, 2, key) + below(line, 5, key) + below(line, 8, key));
    // There is no key after the tenth.
    let second = below(line, third + 1, key) & u32::from(third < 9);
    third + below(line, third, key) + second
}

/// Returns the value of a leaf that follows those of its keys that are below `key`; all are flipped.
#[inline(always)]
pub(crate) fn leaf_by_thirds(line: &SharedLine, key: u32) -> u32 {
    half_of_shared(line, 2 * LEAF_KEYS + leaf_rank_by_thirds(line, key) as usize)
}

/// Prefetches the cache line in which a value begins, or the line after the values.
#[inline(always)]
pub(crate) fn fetch_at<T>(values: &[T], at: usize) {
    super::fetch(values.get(at..=at).unwrap_or(&[]));
}

/// Prefetches the cache line so many bytes after a value, whatever is there.
#[inline(always)]
pub(crate) fn fetch_after<T>(value: &T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program could see, and faults nowhere.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast::<i8>().wrapping_add(bytes));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, bytes);
}
