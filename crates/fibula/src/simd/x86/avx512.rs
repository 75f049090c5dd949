//! Eight lanes of 32 bits in 256-bit registers with the mask registers of AVX-512VL.
#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64::*;

pub mod lines;
pub mod wide;

use super::avx2::rank_few;
pub use super::avx2::*;
use crate::simd::{Bytes, Halves, Words, operations};

/// A mask: true or false for each lane.
pub type M = __mmask8;

operations! { "avx2,bmi2,avx512f,avx512vl,avx512bw,avx512dq"
    /// Returns `table[index % 16]` of sixteen entries in two registers.
    fn pick_of_two(low: V, high: V, index: V) -> V { _mm256_permutex2var_epi32(low, index, high) }
    /// Compares for equality.
    fn eq(a: V, b: V) -> M { _mm256_cmpeq_epi32_mask(a, b) }
    /// Returns whether the first is less than or equal to the second, unsigned.
    fn up_to(a: V, b: V) -> M { _mm256_cmple_epu32_mask(a, b) }
    /// Returns whether the highest bit is set.
    fn sign(a: V) -> M { _mm256_movepi32_mask(a) }
    /// Returns whether the lane has the one bit that `bits` has there.
    fn test(a: V, bits: V) -> M { _mm256_test_epi32_mask(a, bits) }
    /// True where both are.
    fn both(a: M, b: M) -> M { a & b }
    /// True where only the second is.
    fn but(a: M, b: M) -> M { !a & b }
    /// Returns one bit for each lane, lane 0 lowest.
    fn bits(m: M) -> u32 { u32::from(m) }
    /// Returns `a` where the mask is true, else `b`.
    fn select(m: M, a: V, b: V) -> V { _mm256_mask_mov_epi32(b, m, a) }
    /// Returns `a` where the mask is true, else 0.
    fn keep(m: M, a: V) -> V { _mm256_maskz_mov_epi32(m, a) }

    /// Adds one where the mask is true.
    fn increment(m: M, a: V) -> V { _mm256_mask_add_epi32(a, m, a, splat(1)) }

    /// Moves the lanes where the mask is true to the front; the lanes after them are unspecified.
    fn compress(m: M, a: V) -> V { _mm256_maskz_compress_epi32(m, a) }

    /// Like [`gather`] where the mask is true, else 0.
    fn gather_where(m: M, table: Words<'_>, index: V) -> V {
        let index = min(index, splat(table.last()));
        let none = splat(0);
        // SAFETY: every index is at most that of the last element, and byte offsets stay below 2^31.
        unsafe { _mm256_mmask_i32gather_epi32::<4>(none, m, index, table.slice().as_ptr().cast()) }
    }

    /// Like [`gather_halves`] where the mask is true, else 0.
    fn gather_halves_where(m: M, table: Halves<'_>, index: V) -> V {
        let index = min(index, splat(table.last()));
        let none = splat(0);
        // SAFETY: every index is at most that of the last but one element, so that the 32 bits read end with the last.
        let pairs =
            unsafe { _mm256_mmask_i32gather_epi32::<2>(none, m, index, table.slice().as_ptr().cast()) };
        and(pairs, splat(0xffff))
    }

    /// Reads the 32 bits at the lanes' byte offsets where the mask is true, else 0; an offset past the last word
    /// reads the last word.
    fn gather_bytes_where(m: M, table: Bytes<'_>, offset: V) -> V {
        let offset = min(offset, splat(table.last()));
        let none = splat(0);
        // SAFETY: every offset is at most that of the last word, and they stay below 2^31.
        unsafe { _mm256_mmask_i32gather_epi32::<1>(none, m, offset, table.slice().as_ptr().cast()) }
    }

    /// Counts the bits of a mask. Of `count_ones` LLVM makes a count of eight bits, which it extends once more.
    fn ones(mask: __mmask8) -> usize {
        let count: u64;
        // SAFETY: the instruction is one of the set, and touches no memory.
        unsafe { asm!("popcnt {0:e}, {0:e}", inout(reg) u64::from(mask) => count, options(pure, nomem, nostack)) };
        // SAFETY: a mask of eight lanes has at most eight bits.
        unsafe { core::hint::assert_unchecked(count <= 8) };
        count as usize
    }

    /// Counts the `keys`, in ascending order, that are below `key`.
    fn rank64(keys: &[u64], key: u64) -> usize {
        let (eights, rest) = keys.as_chunks::<8>();
        let splat = _mm512_set1_epi64(key as i64);
        let mut rank = rank_few(rest, key);
        for eight in eights {
            // SAFETY: the reference covers the 64 bytes read, which needs no alignment.
            let node = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
            rank += ones(_mm512_cmpgt_epu64_mask(splat, node));
        }
        rank
    }

    /// Counts the `keys`, in ascending order, that are below `key`.
    fn rank32(keys: &[u32], key: u32) -> usize {
        let (sixteens, rest) = keys.as_chunks::<16>();
        let splat = _mm512_set1_epi32(key as i32);
        let mut rank = rank_few(rest, key);
        for sixteen in sixteens {
            // SAFETY: the reference covers the 64 bytes read, which needs no alignment.
            let node = unsafe { _mm512_loadu_si512(sixteen.as_ptr().cast()) };
            rank += _mm512_cmpgt_epu32_mask(splat, node).count_ones() as usize;
        }
        rank
    }

    /// Counts those of the first `COUNT` words of a line, in ascending order, that are below `key`.
    fn rank_first[const COUNT: u32](line: &[u32; 16], key: u32) -> u32 {
        let splat = _mm512_set1_epi32(key as i32);
        // SAFETY: the reference covers the 64 bytes read, which needs no alignment.
        let line = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        let counted = const { ((1u32 << COUNT) - 1) as u16 };
        _mm512_mask_cmpgt_epu32_mask(counted, splat, line).count_ones()
    }
}
