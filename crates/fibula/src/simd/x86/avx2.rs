//! Eight lanes of 32 bits in AVX2 registers; a mask is a vector of all ones or all zeros a lane.
#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64::*;

use crate::simd::table::Cell32;
use crate::simd::{Bounded, Bytes, Halves, LANES, Leading, Longs, Words, operations};

pub mod lines;
pub mod wide;

/// A vector of eight 32-bit lanes.
pub type V = __m256i;
/// A mask: true or false for each lane.
pub type M = __m256i;
/// Byte offsets in bounds, counted from the second element, of a table whose last index is given.
#[derive(Clone, Copy)]
pub struct Places8 {
    at: V,
    last: u32,
}
/// A shift count for all lanes.
pub type Count = __m128i;

operations! { "avx2,bmi2"
    /// Returns the value in every lane.
    fn splat(value: u32) -> V { _mm256_set1_epi32(value as i32) }

    /// Loads the lanes from an array.
    fn load(from: &[u32; LANES]) -> V {
        // SAFETY: the reference covers the 32 bytes read, which needs no alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    /// Stores the lanes to an array.
    fn store(to: &mut [u32; LANES], v: V) -> () {
        // SAFETY: the reference covers the 32 bytes written, which needs no alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
    }

    /// Returns a shift count below 32.
    fn count(bits: u32) -> Count { _mm_cvtsi32_si128(bits as i32) }

    /// Adds, wrapping.
    fn add(a: V, b: V) -> V { _mm256_add_epi32(a, b) }
    /// Subtracts, wrapping.
    fn sub(a: V, b: V) -> V { _mm256_sub_epi32(a, b) }
    /// Returns the bits set in both.
    fn and(a: V, b: V) -> V { _mm256_and_si256(a, b) }
    /// Returns the bits set in either.
    fn or(a: V, b: V) -> V { _mm256_or_si256(a, b) }
    /// Returns the bits set in the second alone.
    fn only(a: V, b: V) -> V { _mm256_andnot_si256(a, b) }
    /// Returns the bits in which the two differ.
    fn xor(a: V, b: V) -> V { _mm256_xor_si256(a, b) }
    /// Returns the smaller of two unsigned lanes.
    fn min(a: V, b: V) -> V { _mm256_min_epu32(a, b) }
    /// Returns the bits that are set in any lane.
    fn union(a: V) -> u32 {
        let half = _mm_or_si128(_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a));
        let quarter = _mm_or_si128(half, _mm_unpackhi_epi64(half, half));
        (_mm_cvtsi128_si32(quarter) | _mm_extract_epi32::<1>(quarter)) as u32
    }
    /// Multiplies the lower and the upper 16 bits of each lane separately. The plain product if factors and products
    /// are below 2^16.
    fn mul16(a: V, b: V) -> V { _mm256_mullo_epi16(a, b) }
    /// Multiplies, wrapping.
    fn mul(a: V, b: V) -> V { _mm256_mullo_epi32(a, b) }
    /// Returns the upper halves of the products of unsigned lanes.
    fn mul_high(a: V, b: V) -> V {
        let even = _mm256_srli_epi64::<32>(_mm256_mul_epu32(a, b));
        let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
        _mm256_blend_epi32::<0b1010_1010>(even, odd)
    }
    /// Shifts left by a constant.
    fn shl[const BITS: i32](a: V) -> V { _mm256_slli_epi32::<BITS>(a) }
    /// Shifts right by a constant, filling with zeros.
    fn shr[const BITS: i32](a: V) -> V { _mm256_srli_epi32::<BITS>(a) }
    /// Shifts all lanes left by one count.
    fn shl_by(a: V, by: Count) -> V {
        _mm256_sll_epi32(a, by)
    }
    /// Shifts all lanes right by one count.
    fn shr_by(a: V, by: Count) -> V { _mm256_srl_epi32(a, by) }
    /// Shifts each lane left by its own count; 32 and more give 0.
    fn shlv(a: V, by: V) -> V { _mm256_sllv_epi32(a, by) }
    /// Shifts each lane right by its own count; 32 and more give 0.
    fn shrv(a: V, by: V) -> V { _mm256_srlv_epi32(a, by) }
    /// Returns `table[index % 8]` of eight entries in a register.
    fn pick(table: V, index: V) -> V { _mm256_permutevar8x32_epi32(table, index) }
    /// Returns `table[index % 16]` of sixteen entries in two registers.
    fn pick_of_two(low: V, high: V, index: V) -> V {
        let (low, high) = (pick(low, index), pick(high, index));
        // The fourth bit of an index selects the register: as the sign of a lane.
        let upper = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index));
        _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), upper))
    }
    /// Transposes eight rows of eight words: vector `c` has word `c` of every row.
    fn columns(rows: [&[u32; LANES]; LANES]) -> [V; LANES] {
        let [low, high] = [0, 4].map(|half| {
            // A row and the fourth after it, four words of each, in the two halves of a register.
            let pair = |row: usize| {
                let four = |row: usize| {
                    let four: &[u32; 4] = rows[row][half..].first_chunk().expect("eight are two fours");
                    // SAFETY: the reference covers the 16 bytes read, which needs no alignment.
                    unsafe { _mm_loadu_si128(four.as_ptr().cast()) }
                };
                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(four(row)), four(row + 4))
            };
            let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            [
                _mm256_unpacklo_epi64(ab, cd),
                _mm256_unpackhi_epi64(ab, cd),
                _mm256_unpacklo_epi64(ab_high, cd_high),
                _mm256_unpackhi_epi64(ab_high, cd_high),
            ]
        });
        [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]]
    }

    /// Compares for equality.
    fn eq(a: V, b: V) -> M { _mm256_cmpeq_epi32(a, b) }
    /// Returns whether the first is less than or equal to the second, unsigned.
    fn up_to(a: V, b: V) -> M { _mm256_cmpeq_epi32(_mm256_min_epu32(a, b), a) }
    /// Returns whether the highest bit is set.
    fn sign(a: V) -> M { _mm256_srai_epi32::<31>(a) }
    /// Returns whether the lane has the one bit that `bits` has there.
    fn test(a: V, bits: V) -> M { _mm256_cmpeq_epi32(_mm256_and_si256(a, bits), bits) }
    /// True where both are.
    fn both(a: M, b: M) -> M { _mm256_and_si256(a, b) }
    /// True where only the second is.
    fn but(a: M, b: M) -> M { _mm256_andnot_si256(a, b) }
    /// Returns one bit for each lane, lane 0 lowest.
    fn bits(m: M) -> u32 { _mm256_movemask_ps(_mm256_castsi256_ps(m)) as u32 }
    /// Returns `a` where the mask is true, else `b`.
    fn select(m: M, a: V, b: V) -> V { _mm256_blendv_epi8(b, a, m) }
    /// Returns `a` where the mask is true, else 0.
    fn keep(m: M, a: V) -> V { _mm256_and_si256(m, a) }

    /// Moves the lanes where the mask is true to the front; the lanes after them are unspecified.
    fn compress(m: M, a: V) -> V {
        // One byte of ones or zeros for each lane of the mask selects the lane numbers to pack.
        let lanes = _pdep_u64(bits(m).into(), 0x0101_0101_0101_0101) * 0xff;
        let from = _pext_u64(0x0706_0504_0302_0100, lanes);
        pick(a, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(from as i64)))
    }

    /// Adds one where the mask is true.
    fn increment(m: M, a: V) -> V { _mm256_sub_epi32(a, m) }

    /// Counts the bytes of each lane that are below `limit`, which is at most 255.
    fn bytes_below(bytes: V, limit: V) -> V {
        let spread = _mm256_setr_epi8(
            0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12,
        );
        let above = _mm256_subs_epu8(_mm256_shuffle_epi8(limit, spread), bytes);
        sum_bytes(_mm256_min_epu8(above, _mm256_set1_epi8(1)))
    }

    /// Adds the four bytes of each lane, each at most 127.
    fn sum_bytes(a: V) -> V {
        _mm256_madd_epi16(_mm256_maddubs_epi16(a, _mm256_set1_epi8(1)), _mm256_set1_epi16(1))
    }

    /// Counts the set bits of each lane.
    fn popcount(a: V) -> V { sum_bytes(byte_counts(a)) }

    /// Counts the set bits of each byte, by looking up each half byte in a register.
    fn byte_counts(a: V) -> V {
        let counts = _mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
        );
        let half = _mm256_set1_epi8(15);
        let low = _mm256_shuffle_epi8(counts, _mm256_and_si256(a, half));
        let high = _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16::<4>(a), half));
        _mm256_add_epi8(low, high)
    }

    /// Reads the elements at the lanes' indices; an index past the end reads the last element.
    fn gather(table: Words<'_>, index: V) -> V {
        let index = min(index, splat(table.last()));
        // SAFETY: every index is at most that of the last element, and byte offsets stay below 2^31.
        unsafe { _mm256_i32gather_epi32::<4>(table.slice().as_ptr().cast(), index) }
    }

    /// Like [`gather`] where the mask is true, else 0.
    fn gather_where(m: M, table: Words<'_>, index: V) -> V {
        let index = min(index, splat(table.last()));
        let none = splat(0);
        // SAFETY: every index is at most that of the last element, and byte offsets stay below 2^31.
        unsafe { _mm256_mask_i32gather_epi32::<4>(none, table.slice().as_ptr().cast(), index, m) }
    }

    /// Reads the 16-bit elements at the lanes' indices, clamped as in [`gather`], and the next element into the upper
    /// half of each lane.
    fn gather_pairs(table: Halves<'_>, index: V) -> V {
        let index = min(index, splat(table.last()));
        // SAFETY: every index is at most that of the last but one element, so that the 32 bits read end with the last.
        unsafe { _mm256_i32gather_epi32::<2>(table.slice().as_ptr().cast(), index) }
    }

    /// Reads the 16-bit elements at the lanes' indices, clamped as in [`gather_pairs`].
    fn gather_halves(table: Halves<'_>, index: V) -> V { and(gather_pairs(table, index), splat(0xffff)) }

    /// Like [`gather_halves`] where the mask is true, else 0.
    fn gather_halves_where(m: M, table: Halves<'_>, index: V) -> V {
        let index = min(index, splat(table.last()));
        let none = splat(0);
        // SAFETY: every index is at most that of the last but one element, so that the 32 bits read end with the last.
        let pairs =
            unsafe { _mm256_mask_i32gather_epi32::<2>(none, table.slice().as_ptr().cast(), index, m) };
        and(pairs, splat(0xffff))
    }

    /// Reads the 32 bits at the lanes' byte offsets where the mask is true, else 0; an offset past the last word
    /// reads the last word.
    fn gather_bytes_where(m: M, table: Bytes<'_>, offset: V) -> V {
        let offset = min(offset, splat(table.last()));
        let none = splat(0);
        // SAFETY: every offset is at most that of the last word, and they stay below 2^31.
        unsafe { _mm256_mask_i32gather_epi32::<1>(none, table.slice().as_ptr().cast(), offset, m) }
    }

    /// Like [`gather`], from elements that a writer may change.
    fn gather_cells[C: Cell32](table: Words<'_, C>, index: V) -> V {
        let index = min(index, splat(table.last()));
        // SAFETY: every index is at most that of the last element.
        unsafe { words(table.slice().as_ptr().cast(), index) }
    }

    /// Reads the elements of the keys in the lanes.
    fn gather_leading(table: Leading<'_>, key: V) -> V {
        let index = shr_by(key, count(table.behind()));
        // SAFETY: there is an element for every value of the leading bits.
        unsafe { words(table.slice().as_ptr().cast(), index) }
    }

    /// Reads the 32 bits at the lanes' byte offsets; one past the last reads the last.
    fn at_bytes(table: Longs<'_>, offset: V) -> V {
        let offset = min(offset, splat(table.last_byte()));
        // SAFETY: every offset is at most that of the last 32 bits.
        unsafe { bytes::<0>(table.slice().as_ptr().cast(), offset) }
    }

    /// Reads the 32 bits at places of this table.
    fn at_places(table: Longs<'_>, places: Places8) -> V {
        assert!(places.last <= table.last(), "places of this table");
        // SAFETY: every offset is that of an element that is not padding, and at most 64 * 8 bytes.
        unsafe { bytes::<8>(table.slice().as_ptr().cast(), places.at) }
    }

    /// Returns the places of values of 2^`width` bytes that follow the elements at the lanes' indices, by their [`ranks`]
    /// where the mask is true and else rank 0; of a width only the lower two bits count.
    fn ranked(table: Longs<'_>, index: V, by: V, counts: M, width: V) -> Places8 {
        let index = min(index, splat(table.last()));
        let rank = keep(counts, ranks(table, index, by));
        Places8 { at: add(shl::<3>(index), shlv(rank, and(width, splat(3)))), last: table.last() }
    }

    /// Reads 64 bits at the lower 32 bits of four lanes of 64, which count `SCALE` bytes and are in bounds.
    fn longs[const SCALE: i32](table: Longs<'_>, index: __m256i) -> __m256i {
        let (mut found, mut all) = (_mm256_setzero_si256(), _mm256_set1_epi32(-1));
        // SAFETY: the caller has clamped the indices to the last one. Loads of whole elements are aligned, as in `gather_cells`;
        // others are of a table that has no writer, or of bytes as they were or will be, as in `bytes`.
        unsafe {
            asm!(
                "vpgatherqq {found}, [{table} + {index} * {scale}], {all}",
                found = inout(ymm_reg) found,
                all = inout(ymm_reg) all,
                table = in(reg) table.slice().as_ptr(),
                index = in(ymm_reg) index,
                scale = const SCALE,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        let _ = all;
        found
    }

    /// Reads 64 bits at the lanes' indices, which are in bounds: those of the even lanes, and those of the odd ones.
    fn evens_odds[const SCALE: i32](table: Longs<'_>, index: V) -> [__m256i; 2] {
        let even = longs::<SCALE>(table, _mm256_and_si256(index, _mm256_set1_epi64x(0xffff_ffff)));
        [even, longs::<SCALE>(table, _mm256_srli_epi64::<32>(index))]
    }

    /// Shifts elements of 64 bits left by the lanes' counts (64 and more give 0), and counts the bits that are set then.
    fn counted(longs: [__m256i; 2], by: V) -> V {
        let ones = |long| _mm256_sad_epu8(byte_counts(long), _mm256_setzero_si256());
        let even = ones(_mm256_sllv_epi64(longs[0], _mm256_and_si256(by, _mm256_set1_epi64x(0xffff_ffff))));
        let odd = ones(_mm256_sllv_epi64(longs[1], _mm256_srli_epi64::<32>(by)));
        _mm256_or_si256(even, _mm256_slli_epi64::<32>(odd))
    }

    /// Reads the elements at the lanes' indices, clamped, shifts each left by its count (64 and more give 0), and
    /// counts the bits that are set then.
    fn ranks(table: Longs<'_>, index: V, by: V) -> V {
        counted(evens_odds::<8>(table, min(index, splat(table.last()))), by)
    }

    /// Like [`ranks`], with the upper halves of the elements.
    fn ranks_and_upper(table: Longs<'_>, index: V, by: V) -> [V; 2] {
        let longs = evens_odds::<8>(table, min(index, splat(table.last())));
        let upper = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(longs[0]), longs[1]);
        [counted(longs, by), upper]
    }

    /// Like [`ranks`], of the 64 bits at byte offsets.
    fn ranks_at(table: Longs<'_>, offset: V, by: V) -> V {
        counted(evens_odds::<1>(table, min(offset, splat(table.last_long()))), by)
    }

    /// Appends a vector of places; one past the last becomes the last.
    fn place(places: &mut Bounded<'_>, offset: V) -> () {
        let offset = min(offset, splat(places.last()));
        store(places.next(), offset);
    }

    /// Counts the `keys`, in ascending order, that are below `key`.
    fn rank64(keys: &[u64], key: u64) -> usize {
        let (eights, rest) = keys.as_chunks::<8>();
        let mut rank = rank_few(rest, key);
        let flip = _mm256_set1_epi64x(i64::MIN);
        let splat = _mm256_xor_si256(_mm256_set1_epi64x(key as i64), flip);
        for eight in eights {
            let [low, high] = [0, 4].map(|at| {
                let four: &[u64; 4] = eight[at..].first_chunk().expect("eight are two fours");
                // SAFETY: the reference covers the 32 bytes read, which needs no alignment.
                let node = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
                _mm256_xor_si256(node, flip)
            });
            // The results for four keys fill eight 32-bit lanes in pairs: one of each pair is enough.
            let both = _mm256_blend_epi32::<0b1010_1010>(
                _mm256_cmpgt_epi64(splat, low),
                _mm256_cmpgt_epi64(splat, high),
            );
            rank += _mm256_movemask_ps(_mm256_castsi256_ps(both)).count_ones() as usize;
        }
        rank
    }

    /// Counts the `keys`, in ascending order, that are below `key`.
    fn rank32(keys: &[u32], key: u32) -> usize {
        let (sixteens, rest) = keys.as_chunks::<16>();
        let mut rank = rank_few(rest, key);
        let flip = _mm256_set1_epi32(i32::MIN);
        let splat = _mm256_xor_si256(_mm256_set1_epi32(key as i32), flip);
        for sixteen in sixteens {
            let [low, high] = [0, 8].map(|at| {
                let eight: &[u32; 8] = sixteen[at..].first_chunk().expect("sixteen are two eights");
                // SAFETY: the reference covers the 32 bytes read, which needs no alignment.
                let node = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
                _mm256_xor_si256(node, flip)
            });
            // Two bytes for each key.
            let both = _mm256_blend_epi16::<0b1010_1010>(
                _mm256_cmpgt_epi32(splat, low),
                _mm256_cmpgt_epi32(splat, high),
            );
            rank += _mm256_movemask_epi8(both).count_ones() as usize / 2;
        }
        rank
    }

    /// Counts those of the first `COUNT` words of a line, in ascending order, that are below `key`.
    fn rank_first[const COUNT: u32](line: &[u32; 16], key: u32) -> u32 {
        let flip = _mm256_set1_epi32(i32::MIN);
        let splat = _mm256_xor_si256(_mm256_set1_epi32(key as i32), flip);
        let [low, high] = [0, 8].map(|at| {
            let eight: &[u32; 8] = line[at..].first_chunk().expect("sixteen are two eights");
            _mm256_cmpgt_epi32(splat, _mm256_xor_si256(load(eight), flip))
        });
        // Sixteen results of 16 bits, in the order 0 to 3, 8 to 11, 4 to 7, 12 to 15; two bits each.
        let both = _mm256_movemask_epi8(_mm256_packs_epi32(low, high)) as u32;
        let counted = const {
            let mut mask = 0;
            let mut at = 0;
            while at < COUNT {
                mask |= 1 << (2 * (8 * (at / 4 % 2) + 4 * (at / 8) + at % 4));
                at += 1;
            }
            mask
        };
        (both & counted).count_ones()
    }
}

/// Counts the `keys` that are below `key` one by one, for nodes narrower than a register.
#[inline]
pub(super) fn rank_few<T: PartialOrd>(keys: &[T], key: T) -> usize {
    keys.iter().filter(|&at| *at < key).count()
}

/// Reads the elements of a table of words at the lanes' indices.
///
/// # Safety
/// Every index is within the table, which is at most 2 GiB.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn words(table: *const u32, index: V) -> V {
    let (mut found, mut all) = (_mm256_setzero_si256(), _mm256_set1_epi32(-1));
    // SAFETY: as the caller says. Each lane is one aligned load. On x86-64 a relaxed atomic load is the same, so
    // a writer's atomic stores do not race with them.
    unsafe {
        asm!(
            "vpgatherdd {found}, [{table} + {index} * 4], {all}",
            found = inout(ymm_reg) found,
            all = inout(ymm_reg) all,
            table = in(reg) table,
            index = in(ymm_reg) index,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    let _ = all;
    found
}

/// Reads the 32 bits at the lanes' byte offsets, counted from byte `FROM`.
///
/// # Safety
/// Every offset is within a table of at most 2 GiB. An offset needs no alignment, because a writer changes single
/// bytes of it only, by stores of whole elements, and the processor loads each byte as it was or as it will be.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn bytes<const FROM: i32>(table: *const u8, offset: V) -> V {
    let (mut found, mut all) = (_mm256_setzero_si256(), _mm256_set1_epi32(-1));
    // SAFETY: as the caller says.
    unsafe {
        asm!(
            "vpgatherdd {found}, [{table} + {offset} + {from}], {all}",
            found = inout(ymm_reg) found,
            all = inout(ymm_reg) all,
            table = in(reg) table,
            offset = in(ymm_reg) offset,
            from = const FROM,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    let _ = all;
    found
}
