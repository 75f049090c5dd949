//! Cache lines of keys and codes, which lead to values of 32 bits, and their search.
#![cfg_attr(target_arch = "x86_64", allow(unsafe_code))]

use core::sync::atomic::AtomicU32;

use crate::memory::Cell;

use super::{LINE_UNITS, LINE_WORDS, SharedLine};

/// Number of keys of a line that has codes too: 12 keys and 13 codes of a byte are 61 bytes.
pub(crate) const CODED_KEYS: usize = 12;

/// Values that codes of a byte have.
pub(crate) const CODED_VALUES: usize = 1 << 8;

/// Where the codes of a leaf begin, in bytes.
const CODES: usize = size_of::<u32>() * CODED_KEYS;

/// Lines that begin with the values of codes, a word each. Leaves among the others have codes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodedLines<'a> {
    words: &'a [AtomicU32],
    /// Number of units at which a whole line begins.
    places: usize,
}

impl<'a> CodedLines<'a> {
    /// Takes the words.
    ///
    /// # Panics
    /// When there is not a value for each code.
    #[inline]
    #[must_use]
    pub(crate) fn new(words: &'a [AtomicU32]) -> Self {
        assert!(words.len() >= CODED_VALUES, "a value for each code");
        let unit_words = LINE_WORDS / LINE_UNITS as usize;
        Self { words, places: (words.len() / unit_words + 1).saturating_sub(LINE_UNITS as usize) }
    }

    /// Returns the value of a code.
    #[inline(always)]
    pub(crate) fn value(self, code: u32) -> u32 {
        self.words[code as usize % CODED_VALUES].read()
    }

    /// Returns the line that begins after this many units.
    ///
    /// # Panics
    /// When there is none.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn at(self, place: u32) -> &'a SharedLine {
        assert!((place as usize) < self.places, "a line that there is");
        let unit_words = LINE_WORDS / LINE_UNITS as usize;
        let line = self.words.as_ptr().wrapping_add(place as usize * unit_words).cast();
        // SAFETY: a whole line begins at each of these places, and needs no more alignment than its words.
        unsafe { &*line }
    }
}

/// Returns the code of an interval of a leaf.
///
/// # Panics
/// When it is past the end.
#[inline(always)]
pub(crate) fn leaf_code(leaf: &SharedLine, interval: usize) -> u32 {
    let byte = CODES + interval;
    leaf[byte / 4].read() >> (8 * (byte % 4)) & 0xff
}

/// Counts the keys of a leaf of codes that are below `key`.
#[inline(always)]
pub(crate) fn code_rank_by_thirds(leaf: &SharedLine, key: u32) -> u32 {
    let below = |at: u32| u32::from((leaf[at as usize % LINE_WORDS].read() as i32) < key as i32);
    let third = 3 * (below(2) + below(5) + below(8));
    // The last key is below only where all others are.
    third + below(third) + below(third + 1) + below(CODED_KEYS as u32 - 1)
}

/// Returns the value of the code that follows those keys of the leaf after `leaf` units that are below `key`.
#[inline(always)]
pub(crate) fn coded_by_thirds(lines: CodedLines<'_>, leaf: u32, key: u32) -> u32 {
    let line = lines.at(leaf);
    lines.value(leaf_code(line, code_rank_by_thirds(line, key) as usize))
}

#[cfg(target_arch = "x86_64")]
#[allow(unreachable_pub, reason = "operations are public, but only those of a set's module are exported")]
mod of_set {
    use core::arch::asm;
    use core::arch::x86_64::_mm256_set1_epi32;

    use super::{CODES, CodedLines};
    use crate::simd::operations;

    operations! { "avx2,bmi2,popcnt"
        /// Returns the value of the code that follows those keys of the leaf after `leaf` units that are below `key`.
        ///
        /// # Panics
        /// When there is no such leaf.
        fn coded(lines: CodedLines<'_>, leaf: u32, key: u32) -> u32 {
            assert!((leaf as usize) < lines.places, "a line that there is");
            let key = _mm256_set1_epi32(key as i32);
            let value: u32;
            // SAFETY: a whole line begins after that many units, and its 64 bytes are read. The loads are of aligned words, each as
            // good as a relaxed load, so that a writer's atomic stores do not race with them. At most 24 bits of the mask are
            // set, so the byte is within the line; it is part of one aligned word. There is a word for each byte.
            unsafe {
                asm!(
                    "lea {line}, [{first} + 8 * {line}]",
                    "vpcmpgtd {low}, {key}, [{line}]",
                    "vpcmpgtd {high:x}, {key:x}, [{line} + 32]",
                    "vpackssdw {low}, {low}, {high}",
                    "vpmovmskb {value:e}, {low}",
                    "popcnt {value:e}, {value:e}",
                    "shr {value:e}",
                    "movzx {value:e}, byte ptr [{line} + {value:r} + {CODES}]",
                    "mov {value:e}, dword ptr [{first} + 4 * {value:r}]",
                    first = in(reg) lines.words.as_ptr(),
                    line = inout(reg) u64::from(leaf) => _,
                    key = in(ymm_reg) key,
                    low = out(ymm_reg) _,
                    high = out(ymm_reg) _,
                    value = out(reg) value,
                    CODES = const CODES,
                    options(pure, readonly, nostack)
                );
            }
            value
        }
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[allow(unreachable_pub, reason = "operations are public, but only those of a set's module are exported")]
mod of_set {
    use core::arch::aarch64::*;

    use super::{CodedLines, leaf_code};
    use crate::simd::aarch64::neon::lines::four;
    use crate::simd::operations;

    operations! { "neon"
        /// Returns the value of the code that follows those keys of the leaf after `leaf` units that are below `key`.
        ///
        /// # Panics
        /// When there is no such leaf.
        fn coded(lines: CodedLines<'_>, leaf: u32, key: u32) -> u32 {
            let (line, key) = (lines.at(leaf), vdupq_n_s32(key as i32));
            let below = |four| vcltq_s32(four, key);
            let all = vaddq_u32(vaddq_u32(below(four::<0>(line)), below(four::<4>(line))), below(four::<8>(line)));
            lines.value(leaf_code(line, vaddvq_u32(all).wrapping_neg() as usize))
        }
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
pub(crate) use of_set::coded;
