//! Searches of a cache line that a writer may change, in two registers of eight words.
//!
//! Masks of bytes go to a general register in one instruction here; on Zen 4 that is faster than the mask registers of
//! AVX-512, so all sets of x86-64 search so.
#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64::*;

use crate::simd::{LEAF_KEYS, SharedLine, operations};

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
        const VALUES: usize = size_of::<u32>() * LEAF_KEYS;
        let key = _mm256_set1_epi32(key as i32);
        let value: u32;
        // SAFETY: as in `rank`. Two bits of the mask are a key's: those of keys 0 to 3, 8 to 9 (there is no 10, 11), 4 to 7.
        // At most 20 of them are set, so the two bytes read are within the line; they are part of one aligned word.
        unsafe {
            asm!(
                "vpcmpgtd {low}, {key}, [{line}]",
                "vpcmpgtd {high:x}, {key:x}, [{line} + 32]",
                "vpackssdw {low}, {low}, {high}",
                "vpmovmskb {twice:e}, {low}",
                "and {twice:e}, 0x00ff0fff",
                "popcnt {twice:e}, {twice:e}",
                "movzx {twice:e}, word ptr [{line} + {twice:r} + {VALUES}]",
                line = in(reg) line.as_ptr(),
                key = in(ymm_reg) key,
                low = out(ymm_reg) _,
                high = out(ymm_reg) _,
                twice = out(reg) value,
                VALUES = const VALUES,
                options(pure, readonly, nostack)
            );
        }
        value
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
