//! Eight lanes of 32 bits in 256-bit registers with the mask registers of AVX-512VL.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::avx2::rank_few;
pub(crate) use super::avx2::*;
use crate::simd::{Bytes, Halves, LANES, Words, operations};

/// One truth a lane.
pub(crate) type M = __mmask8;

operations! { "avx2,bmi2,avx512f,avx512vl,avx512bw,avx512dq"
    /// Whether two lanes are equal.
    fn eq(a: V, b: V) -> M { _mm256_cmpeq_epi32_mask(a, b) }
    /// Whether the first is not above the second, unsigned.
    fn up_to(a: V, b: V) -> M { _mm256_cmple_epu32_mask(a, b) }
    /// Whether the highest bit is set.
    fn sign(a: V) -> M { _mm256_movepi32_mask(a) }
    /// Whether any bit of `bits` is set, which has one bit set a lane.
    fn test(a: V, bits: V) -> M { _mm256_test_epi32_mask(a, bits) }
    /// True in both.
    fn both(a: M, b: M) -> M { a & b }
    /// True in the second alone.
    fn but(a: M, b: M) -> M { !a & b }
    /// One bit a lane, lane 0 lowest.
    fn bits(m: M) -> u32 { u32::from(m) }
    /// `a` where the mask is true, else `b`.
    fn select(m: M, a: V, b: V) -> V { _mm256_mask_mov_epi32(b, m, a) }
    /// `a` where the mask is true, else 0.
    fn keep(m: M, a: V) -> V { _mm256_maskz_mov_epi32(m, a) }

    /// One more where the mask is true.
    fn increment(m: M, a: V) -> V { _mm256_mask_add_epi32(a, m, a, splat(1)) }

    /// The lanes where the mask is true, moved together from lane 0 on; the lanes behind them mean nothing.
    fn compress(m: M, a: V) -> V { _mm256_maskz_compress_epi32(m, a) }

    /// As [`gather`] where the mask is true, else 0.
    fn gather_where(m: M, table: Words<'_>, index: V) -> V {
        let index = min(index, splat(table.last()));
        let none = splat(0);
        // SAFETY: every index is at most that of the last element, and byte offsets stay below 2^31.
        unsafe { _mm256_mmask_i32gather_epi32::<4>(none, m, index, table.slice().as_ptr().cast()) }
    }

    /// As [`gather_halves`] where the mask is true, else 0.
    fn gather_halves_where(m: M, table: Halves<'_>, index: V) -> V {
        let index = min(index, splat(table.last()));
        let none = splat(0);
        // SAFETY: every index is at most that of the last but one element, so that the 32 bits read end with the last.
        let pairs =
            unsafe { _mm256_mmask_i32gather_epi32::<2>(none, m, index, table.slice().as_ptr().cast()) };
        and(pairs, splat(0xffff))
    }

    /// The 32 bits at the lanes' byte offsets where the mask is true, else 0; an offset beyond the last word reads
    /// the last word.
    fn gather_bytes_where(m: M, table: Bytes<'_>, offset: V) -> V {
        let offset = min(offset, splat(table.last()));
        let none = splat(0);
        // SAFETY: every offset is at most that of the last word, and they stay below 2^31.
        unsafe { _mm256_mmask_i32gather_epi32::<1>(none, m, offset, table.slice().as_ptr().cast()) }
    }

    /// How many of `keys` lie strictly below `key`; they ascend.
    fn rank64(keys: &[u64], key: u64) -> usize {
        let (eights, rest) = keys.as_chunks::<8>();
        let splat = _mm512_set1_epi64(key as i64);
        let mut rank = rank_few(rest, key);
        for eight in eights {
            // SAFETY: the reference covers the 64 bytes read; no alignment is asked for.
            let node = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
            rank += _mm512_cmpgt_epu64_mask(splat, node).count_ones() as usize;
        }
        rank
    }

    /// How many of `keys` lie strictly below `key`; they ascend.
    fn rank32(keys: &[u32], key: u32) -> usize {
        let (sixteens, rest) = keys.as_chunks::<16>();
        let splat = _mm512_set1_epi32(key as i32);
        let mut rank = rank_few(rest, key);
        for sixteen in sixteens {
            // SAFETY: the reference covers the 64 bytes read; no alignment is asked for.
            let node = unsafe { _mm512_loadu_si512(sixteen.as_ptr().cast()) };
            rank += _mm512_cmpgt_epu32_mask(splat, node).count_ones() as usize;
        }
        rank
    }

    /// How many of the first `COUNT` words of a line lie strictly below `key`; they ascend.
    fn rank_first[const COUNT: u32](line: &[u32; 16], key: u32) -> u32 {
        let splat = _mm512_set1_epi32(key as i32);
        // SAFETY: the reference covers the 64 bytes read; no alignment is asked for.
        let line = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        let counted = const { ((1u32 << COUNT) - 1) as u16 };
        _mm512_mask_cmpgt_epu32_mask(counted, splat, line).count_ones()
    }

    /// The highest 32 bits of each key, and the 32 bits behind them.
    fn high_words(keys: &[u128; LANES]) -> [V; 2] {
        let four = |at: usize| {
            let four: &[u128; 4] = keys[at..].first_chunk().expect("eight are two fours");
            // SAFETY: the reference covers the 64 bytes read; no alignment is asked for.
            unsafe { _mm512_loadu_si512(four.as_ptr().cast()) }
        };
        let (low, high) = (four(0), four(4));
        let every_fourth = |first: i32| {
            let order = _mm512_castsi256_si512(_mm256_add_epi32(
                _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28),
                _mm256_set1_epi32(first),
            ));
            _mm512_castsi512_si256(_mm512_permutex2var_epi32(low, order, high))
        };
        [every_fourth(3), every_fourth(2)]
    }
}
