//! Cache lines of words that a writer may change, as lookups search them. Keys are compared as signed numbers, because all
//! instruction sets have that comparison.

use core::sync::atomic::AtomicU32;

use crate::memory::Cell;

use super::{LINE_WORDS, WIDE};

/// A cache line whose words are keys, or keys and then values of 16 bits.
pub type SharedLine = [AtomicU32; LINE_WORDS];

/// Number of keys of a line that has values too: 10 keys and 11 values are 62 bytes.
pub const LEAF_KEYS: usize = 10;

/// Units of eight bytes in a line. Lines are found by the number of units before them, because addresses of x86-64 can
/// multiply an index by eight and by no more.
pub const LINE_UNITS: u32 = 8;

/// Words of such a unit.
const UNIT_WORDS: usize = LINE_WORDS / LINE_UNITS as usize;

/// Lines, found by the units before them.
#[derive(Debug, Clone, Copy)]
pub struct SharedLines<'a> {
    words: &'a [AtomicU32],
    /// Number of units at which a whole line begins.
    places: usize,
}

impl<'a> SharedLines<'a> {
    /// Takes the words.
    #[inline]
    #[must_use]
    pub fn new(words: &'a [AtomicU32]) -> Self {
        Self { words, places: (words.len() / UNIT_WORDS + 1).saturating_sub(LINE_UNITS as usize) }
    }

    /// Returns the line that begins after this many units.
    ///
    /// # Panics
    /// When there is none.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn at(self, place: u32) -> &'a SharedLine {
        assert!((place as usize) < self.places, "a line that there is");
        let line = self.words.as_ptr().wrapping_add(place as usize * UNIT_WORDS).cast();
        // SAFETY: a whole line begins at each of these places, and needs no more alignment than its words.
        unsafe { &*line }
    }

    /// Returns the start of the lines, after checking that a whole line begins at each of these units.
    ///
    /// # Panics
    /// When there is none at one of the places.
    #[inline(always)]
    #[allow(dead_code, reason = "not every architecture searches several lines by one operation")]
    pub fn all_at(self, places: &[u32; WIDE]) -> *const AtomicU32 {
        let last = places.iter().fold(0, |last, &place| last.max(place));
        assert!((last as usize) < self.places, "lines that there are");
        self.words.as_ptr()
    }
}

/// Returns the half of a word at an index, the lower one of each word first.
///
/// # Panics
/// When it is past the end.
#[inline(always)]
pub fn half_of_shared(line: &SharedLine, index: usize) -> u32 {
    line[index / 2].read() >> (16 * (index % 2)) & 0xffff
}

/// Returns whether a key of the line is below a key.
#[inline(always)]
fn below(line: &SharedLine, at: u32, key: u32) -> u32 {
    u32::from((line[at as usize % LINE_WORDS].read() as i32) < key as i32)
}

/// Counts the words of a line, in ascending order, that are below `key`. Two words select a third of one half, and two more
/// decide the rest: no branch.
#[inline(always)]
pub fn rank_by_thirds(line: &SharedLine, key: u32) -> u32 {
    let half = 8 * below(line, 7, key);
    let third = half + 3 * (below(line, half + 2, key) + below(line, half + 5, key));
    third + below(line, third, key) + below(line, third + 1, key)
}

/// Counts the keys of a leaf that are below `key`.
#[inline(always)]
pub fn leaf_rank_by_thirds(line: &SharedLine, key: u32) -> u32 {
    let third = 3 * (below(line, 2, key) + below(line, 5, key) + below(line, 8, key));
    // There is no key after the tenth.
    let second = below(line, third + 1, key) & u32::from(third < 9);
    third + below(line, third, key) + second
}

/// Returns the value of a leaf that follows those of its keys that are below `key`.
#[inline(always)]
pub fn leaf_by_thirds(line: &SharedLine, key: u32) -> u32 {
    half_of_shared(line, 2 * LEAF_KEYS + leaf_rank_by_thirds(line, key) as usize)
}

/// Stores twice the result of [`rank_by_thirds`] for each lane, in the line at its place.
#[inline(always)]
pub fn double_ranks_by_thirds(
    lines: SharedLines<'_>,
    places: &[u32; WIDE],
    keys: &[u32; WIDE],
    to: &mut [u32; WIDE],
) {
    for lane in 0..WIDE {
        to[lane] = 2 * rank_by_thirds(lines.at(places[lane]), keys[lane]);
    }
}

/// Stores the result of [`leaf_by_thirds`] for each lane, in the leaf at its place.
#[inline(always)]
pub fn leaves_by_thirds(
    lines: SharedLines<'_>,
    places: &[u32; WIDE],
    keys: &[u32; WIDE],
    to: &mut [u32; WIDE],
) {
    for lane in 0..WIDE {
        to[lane] = leaf_by_thirds(lines.at(places[lane]), keys[lane]);
    }
}

/// Returns whether any of the values has any of these bits.
#[inline(always)]
pub fn any_has(values: &[u32], bits: u32) -> bool {
    values.iter().fold(0, |all, &value| all | value) & bits != 0
}

/// Returns the reference unchanged, and makes the compiler read both values from memory again. Without this it keeps the values
/// of many lanes in registers, and spills them. Unlike `black_box`, this does not store the reference itself.
#[inline(always)]
#[allow(unsafe_code)]
pub fn anew<'a, T, U>(value: &'a T, other: &mut U) -> &'a T {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut address = core::ptr::from_ref(value);
        // SAFETY: the block is empty, so it does not change the address.
        unsafe {
            core::arch::asm!(
                "/* {0} {1} */",
                inout(reg) address,
                in(reg) core::ptr::from_mut(other),
                options(nostack, preserves_flags)
            );
        }
        // SAFETY: it is the address of the value.
        unsafe { &*address }
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    {
        core::hint::black_box(other);
        core::hint::black_box(value)
    }
}

/// Prefetches the cache line in which a value begins, or the line after the values.
#[inline(always)]
pub fn fetch_at<T>(values: &[T], at: usize) {
    super::fetch(values.get(at..=at).unwrap_or(&[]));
}

/// Prefetches the cache line that is this many bytes after a value. There need not be anything.
#[inline(always)]
pub fn fetch_after<T>(value: &T, bytes: usize) {
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
