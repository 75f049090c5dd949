//! [`avx512::wide`](super::super::avx512::wide) with population counts as one instruction.

use core::arch::x86_64::*;

pub use super::super::avx512::wide::*;
use crate::simd::{Longs, operations};

operations! { "avx2,bmi2,avx512f,avx512vl,avx512bw,avx512dq,avx512vpopcntdq,avx512bitalg"
    /// Counts the set bits of each byte.
    fn byte_counts(a: W) -> W { _mm512_popcnt_epi8(a) }

    /// Shifts elements of 64 bits left by the lanes' counts (64 and more give 0), and counts the bits that are set then.
    fn counted(longs: [__m512i; 2], by: W) -> W {
        let [even, odd] = shifted(longs, by).map(|long| _mm512_popcnt_epi64(long));
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
