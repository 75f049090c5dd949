//! Sixteen lanes of 32 bits in 512-bit registers.
#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64::*;

use crate::simd::table::Cell32;
use crate::simd::{Leading, Longs, WIDE, Words, operations};

/// A vector of sixteen 32-bit lanes.
pub type W = __m512i;
/// A mask: true or false for each lane.
pub type M = __mmask16;
/// Byte offsets in bounds, counted from the second element, of a table whose last index is given.
#[derive(Clone, Copy)]
pub struct Places {
    at: W,
    last: u32,
}
/// A shift count for all lanes.
pub type Count = __m128i;
/// Eight entries to pick from, twice.
pub type Eight = __m512i;

operations! { "avx2,bmi2,avx512f,avx512vl,avx512bw,avx512dq"
    /// Returns the value in every lane.
    fn splat(value: u32) -> W { _mm512_set1_epi32(value as i32) }
    /// Loads the lanes from an array.
    fn load(from: &[u32; WIDE]) -> W {
        // SAFETY: the reference covers the 64 bytes read, which needs no alignment.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    /// Stores the lanes to an array.
    fn store(to: &mut [u32; WIDE], a: W) -> () {
        // SAFETY: the reference covers the 64 bytes written, which needs no alignment.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), a) }
    }
    /// Loads the entries of [`pick`].
    fn eight(from: &[u32; WIDE / 2]) -> Eight {
        // SAFETY: the reference covers the 32 bytes read, which needs no alignment.
        _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }
    /// Returns a shift count below 32.
    fn count(bits: u32) -> Count { _mm_cvtsi32_si128(bits as i32) }
    /// Adds, wrapping.
    fn add(a: W, b: W) -> W { _mm512_add_epi32(a, b) }
    /// Subtracts, wrapping.
    fn sub(a: W, b: W) -> W { _mm512_sub_epi32(a, b) }
    /// Returns the bits set in both.
    fn and(a: W, b: W) -> W { _mm512_and_si512(a, b) }
    /// Returns the bits set in either.
    fn or(a: W, b: W) -> W { _mm512_or_si512(a, b) }
    /// Returns the bits set in the second alone.
    fn but(a: W, b: W) -> W { _mm512_andnot_si512(a, b) }
    /// Shifts left by a constant.
    fn shl[const BITS: i32](a: W) -> W { _mm512_sll_epi32(a, const_count::<BITS>()) }
    /// Shifts right by a constant, filling with zeros.
    fn shr[const BITS: i32](a: W) -> W { _mm512_srl_epi32(a, const_count::<BITS>()) }
    /// Shifts all lanes left by one count.
    fn shl_by(a: W, by: Count) -> W { _mm512_sll_epi32(a, by) }
    /// Shifts all lanes right by one count.
    fn shr_by(a: W, by: Count) -> W { _mm512_srl_epi32(a, by) }
    /// Shifts each lane left by its own count; 32 and more give 0.
    fn shlv(a: W, by: W) -> W { _mm512_sllv_epi32(a, by) }
    /// Shifts each lane right by its own count; 32 and more give 0.
    fn shrv(a: W, by: W) -> W { _mm512_srlv_epi32(a, by) }
    /// Returns `table[index % 8]`.
    fn pick(table: Eight, index: W) -> W { _mm512_permutexvar_epi32(index, table) }
    /// Returns whether the lane has the one bit that `bits` has there.
    fn test(a: W, bits: W) -> M { _mm512_test_epi32_mask(a, bits) }
    /// Compares for equality.
    fn eq(a: W, b: W) -> M { _mm512_cmpeq_epi32_mask(a, b) }
    /// Returns whether the first is less than or equal to the second, unsigned.
    fn up_to(a: W, b: W) -> M { _mm512_cmple_epu32_mask(a, b) }
    /// True where both are.
    fn both(a: M, b: M) -> M { a & b }
    /// Returns one bit for each lane, lane 0 lowest.
    fn bits(m: M) -> u32 { u32::from(m) }
    /// Returns `a` where the mask is true, else `b`.
    fn select(m: M, a: W, b: W) -> W { _mm512_mask_mov_epi32(b, m, a) }
    /// Returns `a` where the mask is true, else 0.
    fn keep(m: M, a: W) -> W { _mm512_maskz_mov_epi32(m, a) }

    /// The count of a shift by a constant, which becomes part of the instruction.
    fn const_count[const BITS: i32]() -> Count { _mm_cvtsi32_si128(BITS) }

    /// Reads the elements at the lanes' indices; an index past the end reads the last element.
    fn gather[C: Cell32](table: Words<'_, C>, index: W) -> W {
        let index = _mm512_min_epu32(index, splat(table.last()));
        // SAFETY: every index is at most that of the last element.
        unsafe { words(table.slice().as_ptr().cast(), index) }
    }

    /// Reads the elements of the keys in the lanes.
    fn gather_leading(table: Leading<'_>, key: W) -> W {
        let index = shr_by(key, count(table.behind()));
        // SAFETY: there is an element for every value of the leading bits.
        unsafe { words(table.slice().as_ptr().cast(), index) }
    }

    /// Reads the 32 bits at the lanes' byte offsets, clamped.
    fn at_bytes(table: Longs<'_>, offset: W) -> W {
        let offset = _mm512_min_epu32(offset, splat(table.last_byte()));
        // SAFETY: every offset is at most that of the last 32 bits.
        unsafe { bytes::<0>(table.slice().as_ptr().cast(), offset) }
    }

    /// Reads the 32 bits at places of this table.
    fn at_places(table: Longs<'_>, places: Places) -> W {
        assert!(places.last <= table.last(), "places of this table");
        // SAFETY: every offset is that of an element that is not padding, and at most 64 * 8 bytes.
        unsafe { bytes::<8>(table.slice().as_ptr().cast(), places.at) }
    }

    /// Returns the places of values of 2^`width` bytes that follow the elements at the lanes' indices, by their ranks where the
    /// mask is true and else rank 0; of a width only the lower two bits count.
    fn placed(table: Longs<'_>, index: W, rank: W, counts: M, width: W) -> Places {
        let index = _mm512_min_epu32(index, splat(table.last()));
        let after = _mm512_maskz_sllv_epi32(counts, rank, and(width, splat(3)));
        Places { at: add(shl::<3>(index), after), last: table.last() }
    }

    /// Reads 64 bits at the lower 32 bits of eight lanes of 64, which count `SCALE` bytes and are in bounds.
    fn longs[const SCALE: i32](table: Longs<'_>, index: __m512i) -> __m512i {
        let mut found = _mm512_setzero_si512();
        // SAFETY: the caller has clamped the indices to the last one. Loads of whole elements are aligned, as in `gather`;
        // others are of a table that has no writer, or of bytes as they were or will be, as in `bytes`.
        unsafe {
            asm!(
                // As in `words`.
                "kxnorw {all}, {all}, {all}",
                "vpgatherqq {found:z}{{{all}}}, [{table} + {index:z} * {scale}]",
                found = inout(zmm_reg) found,
                all = out(kreg) _,
                table = in(reg) table.slice().as_ptr(),
                index = in(zmm_reg) index,
                scale = const SCALE,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        found
    }

    /// Reads 64 bits at the lanes' indices, which are in bounds: those of the even lanes, and those of the odd ones.
    fn evens_odds[const SCALE: i32](table: Longs<'_>, index: W) -> [__m512i; 2] {
        let even = longs::<SCALE>(table, _mm512_and_si512(index, _mm512_set1_epi64(0xffff_ffff)));
        [even, longs::<SCALE>(table, _mm512_srli_epi64::<32>(index))]
    }

    /// Reads the elements at the lanes' indices, clamped.
    fn elements(table: Longs<'_>, index: W) -> [__m512i; 2] {
        evens_odds::<8>(table, _mm512_min_epu32(index, splat(table.last())))
    }

    /// Reads the 64 bits at the lanes' byte offsets, clamped.
    fn longs_at(table: Longs<'_>, offset: W) -> [__m512i; 2] {
        evens_odds::<1>(table, _mm512_min_epu32(offset, splat(table.last_long())))
    }

    /// Returns the upper halves of elements.
    fn upper(longs: [__m512i; 2]) -> W {
        _mm512_mask_mov_epi32(_mm512_srli_epi64::<32>(longs[0]), 0xaaaa, longs[1])
    }

    /// Shifts elements of 64 bits left by the lanes' counts; 64 and more give 0.
    fn shifted(longs: [__m512i; 2], by: W) -> [__m512i; 2] {
        let even = _mm512_sllv_epi64(longs[0], _mm512_and_si512(by, _mm512_set1_epi64(0xffff_ffff)));
        [even, _mm512_sllv_epi64(longs[1], _mm512_srli_epi64::<32>(by))]
    }

    /// Counts the set bits of each byte.
    fn byte_counts(a: W) -> W {
        let counts = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
        let half = _mm512_set1_epi8(15);
        let low = _mm512_shuffle_epi8(counts, _mm512_and_si512(a, half));
        _mm512_add_epi8(low, _mm512_shuffle_epi8(counts, _mm512_and_si512(_mm512_srli_epi16::<4>(a), half)))
    }

    /// Shifts elements of 64 bits left by the lanes' counts (64 and more give 0), and counts the bits that are set then.
    fn counted(longs: [__m512i; 2], by: W) -> W {
        let [even, odd] =
            shifted(longs, by).map(|long| _mm512_sad_epu8(byte_counts(long), _mm512_setzero_si512()));
        _mm512_or_si512(even, _mm512_slli_epi64::<32>(odd))
    }

    /// Reads the elements at the lanes' indices, clamped, shifts each left by its count (64 and more give 0), and
    /// counts the bits that are set then.
    fn ranks(table: Longs<'_>, index: W, by: W) -> W { counted(elements(table, index), by) }

    /// Like [`ranks`], with the upper halves of the elements.
    fn ranks_and_upper(table: Longs<'_>, index: W, by: W) -> [W; 2] {
        let longs = elements(table, index);
        [counted(longs, by), upper(longs)]
    }

    /// Like [`ranks`], of the 64 bits at byte offsets.
    fn ranks_at(table: Longs<'_>, offset: W, by: W) -> W { counted(longs_at(table, offset), by) }

    /// The places of [`placed`] by [`ranks`].
    fn ranked(table: Longs<'_>, index: W, by: W, counts: M, width: W) -> Places {
        placed(table, index, ranks(table, index, by), counts, width)
    }
}

/// Reads the elements of a table of words at the lanes' indices.
///
/// # Safety
/// Every index is within the table, which is at most 2 GiB.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn words(table: *const u32, index: W) -> W {
    let mut found = _mm512_setzero_si512();
    // SAFETY: as the caller says. Each lane is one aligned load. On x86-64 a relaxed atomic load is the same, so
    // a writer's atomic stores do not race with them.
    unsafe {
        asm!(
            // The mask is made here: the compiler would make it of another register, which a comparison may have written last,
            // and the processor waits for that (measured: a fifth of the rate).
            "kxnorw {all}, {all}, {all}",
            "vpgatherdd {found:z}{{{all}}}, [{table} + {index:z} * 4]",
            found = inout(zmm_reg) found,
            all = out(kreg) _,
            table = in(reg) table,
            index = in(zmm_reg) index,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    found
}

/// Reads the 32 bits at the lanes' byte offsets, counted from byte `FROM`.
///
/// # Safety
/// Every offset is within a table of at most 2 GiB. An offset needs no alignment, because a writer changes single
/// bytes of it only, by stores of whole elements, and the processor loads each byte as it was or as it will be.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn bytes<const FROM: i32>(table: *const u8, offset: W) -> W {
    let mut found = _mm512_setzero_si512();
    // SAFETY: as the caller says.
    unsafe {
        asm!(
            // As in `words`.
            "kxnorw {all}, {all}, {all}",
            "vpgatherdd {found:z}{{{all}}}, [{table} + {offset:z} + {from}]",
            found = inout(zmm_reg) found,
            all = out(kreg) _,
            table = in(reg) table,
            offset = in(zmm_reg) offset,
            from = const FROM,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    found
}
