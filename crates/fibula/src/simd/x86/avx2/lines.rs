//! Searches of a cache line that a writer may change, in two registers of eight words.
//!
//! Masks of bytes go to a general register in one instruction here; on Zen 4 that is faster than the mask registers of
//! AVX-512, so all sets of x86-64 search so.
#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64::*;

use crate::simd::{LEAF_KEYS, SharedLine, SharedLines, WIDE, operations};

/// Where the values of a leaf begin, in bytes.
const VALUES: usize = size_of::<u32>() * LEAF_KEYS;

/// The bits that are of keys in a mask of a leaf's comparisons, two for each: those of keys 0 to 3, 8 to 9 (there is no 10, 11),
/// 4 to 7.
const OF_KEYS: u32 = 0x00ff_0fff;

/// Stores the value of an expression for each lane: `$bytes` is the lane's distance in an array of words.
macro_rules! lanes {
    ($to:ident, $bytes:ident => $body:expr) => { lanes!(@ $to $bytes $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $to:ident $bytes:ident $body:expr; $($lane:literal)*) => {
        $({
            const $bytes: usize = size_of::<u32>() * $lane;
            $to[$lane] = $body;
        })*
    };
}

operations! { "avx2,bmi2,popcnt"
    /// Counts the words of a line, in ascending order, that are below `key`.
    fn rank(line: &SharedLine, key: u32) -> u32 {
        let key = _mm256_set1_epi32(key as i32);
        let twice: u32;
        // SAFETY: the reference covers the 64 bytes read. The loads are of aligned words, each as good as a relaxed load, so
        // that a writer's atomic stores do not race with them; no lane is a combination of two words.
        unsafe {
            asm!(
                "vpcmpgtd {low}, {key}, [{line}]",
                "vpcmpgtd {high}, {key}, [{line} + 32]",
                "vpackssdw {low}, {low}, {high}",
                "vpmovmskb {twice:e}, {low}",
                "popcnt {twice:e}, {twice:e}",
                line = in(reg) line.as_ptr(),
                key = in(ymm_reg) key,
                low = out(ymm_reg) _,
                high = out(ymm_reg) _,
                twice = lateout(reg) twice,
                options(pure, readonly, nostack)
            );
        }
        // SAFETY: each word below makes two bits.
        unsafe { core::hint::assert_unchecked(twice.is_multiple_of(2)) };
        twice / 2
    }

    /// Returns the value of a leaf that follows those of its keys that are below `key`.
    fn leaf(line: &SharedLine, key: u32) -> u32 {
        let key = _mm256_set1_epi32(key as i32);
        let value: u32;
        // SAFETY: as in `rank`. At most 20 bits of the mask are set, so the two bytes read are within the line; they are part
        // of one aligned word.
        unsafe {
            asm!(
                "vpcmpgtd {low}, {key}, [{line}]",
                "vpcmpgtd {high:x}, {key:x}, [{line} + 32]",
                "vpackssdw {low}, {low}, {high}",
                "vpmovmskb {twice:e}, {low}",
                "and {twice:e}, {OF_KEYS}",
                "popcnt {twice:e}, {twice:e}",
                "movzx {twice:e}, word ptr [{line} + {twice:r} + {VALUES}]",
                line = in(reg) line.as_ptr(),
                key = in(ymm_reg) key,
                low = out(ymm_reg) _,
                high = out(ymm_reg) _,
                twice = out(reg) value,
                VALUES = const VALUES,
                OF_KEYS = const OF_KEYS,
                options(pure, readonly, nostack)
            );
        }
        value
    }

    /// Stores, for each lane, twice the count of the words of the line at its place that are below its key.
    fn double_ranks(lines: SharedLines<'_>, places: &[u32; WIDE], keys: &[u32; WIDE], to: &mut [u32; WIDE]) -> () {
        let first = lines.all_at(places);
        lanes!(to, BYTES => {
            let twice: u32;
            // SAFETY: as in `rank`, of a line that there is; the lane is one of both arrays.
            unsafe {
                asm!(
                    "mov {twice:e}, dword ptr [{places} + {BYTES}]",
                    "vpbroadcastd {low}, dword ptr [{keys} + {BYTES}]",
                    "vpcmpgtd {high}, {low}, [{first} + 8 * {twice:r} + 32]",
                    "vpcmpgtd {low}, {low}, [{first} + 8 * {twice:r}]",
                    "vpackssdw {low}, {low}, {high}",
                    "vpmovmskb {twice:e}, {low}",
                    "popcnt {twice:e}, {twice:e}",
                    first = in(reg) first,
                    places = in(reg) places.as_ptr(),
                    keys = in(reg) keys.as_ptr(),
                    low = out(ymm_reg) _,
                    high = out(ymm_reg) _,
                    twice = out(reg) twice,
                    BYTES = const BYTES,
                    options(pure, readonly, nostack)
                );
            }
            twice
        });
    }

    /// Stores, for each lane, the value of the leaf at its place that follows those of its keys that are below the lane's.
    fn leaves(lines: SharedLines<'_>, places: &[u32; WIDE], keys: &[u32; WIDE], to: &mut [u32; WIDE]) -> () {
        let first = lines.all_at(places);
        lanes!(to, BYTES => {
            let value: u32;
            // SAFETY: as in `leaf`, of a line that there is; the lane is one of both arrays.
            unsafe {
                asm!(
                    "mov {line:e}, dword ptr [{places} + {BYTES}]",
                    "lea {line}, [{first} + 8 * {line}]",
                    "vpbroadcastd {low}, dword ptr [{keys} + {BYTES}]",
                    "vpcmpgtd {high:x}, {low:x}, [{line} + 32]",
                    "vpcmpgtd {low}, {low}, [{line}]",
                    "vpackssdw {low}, {low}, {high}",
                    "vpmovmskb {twice:e}, {low}",
                    "and {twice:e}, {OF_KEYS}",
                    "popcnt {twice:e}, {twice:e}",
                    "movzx {twice:e}, word ptr [{line} + {twice:r} + {VALUES}]",
                    first = in(reg) first,
                    places = in(reg) places.as_ptr(),
                    keys = in(reg) keys.as_ptr(),
                    line = out(reg) _,
                    low = out(ymm_reg) _,
                    high = out(ymm_reg) _,
                    twice = out(reg) value,
                    BYTES = const BYTES,
                    VALUES = const VALUES,
                    OF_KEYS = const OF_KEYS,
                    options(pure, readonly, nostack)
                );
            }
            value
        });
    }

    /// Returns whether any of the values, a multiple of eight, has any of these bits.
    fn any_has(values: &[u32], bits: u32) -> bool {
        let (eights, rest) = values.as_chunks::<8>();
        debug_assert!(rest.is_empty());
        let mut all = _mm256_setzero_si256();
        for eight in eights {
            // SAFETY: the reference covers the 32 bytes read, which needs no alignment.
            all = _mm256_or_si256(all, unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) });
        }
        _mm256_testz_si256(all, _mm256_set1_epi32(bits as i32)) == 0
    }
}
