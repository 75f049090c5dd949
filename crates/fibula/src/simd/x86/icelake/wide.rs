//! [`avx512::wide`](super::super::avx512::wide) with population counts as one instruction.

use core::arch::x86_64::*;

pub use super::super::avx512::wide::*;
use crate::simd::{Longs, operations};

operations! { "avx2,bmi2,avx512f,avx512vl,avx512bw,avx512dq,avx512vpopcntdq"
    /// Reads the elements at the lanes' indices, clamped, shifts each left by its count (64 and more give 0), and
    /// counts the bits that are set then.
    fn ranks(table: Longs<'_>, index: W, by: W) -> W {
        let [even, odd] = shifted(table, index, by).map(|long| _mm512_popcnt_epi64(long));
        _mm512_or_si512(even, _mm512_slli_epi64::<32>(odd))
    }

    /// The places of [`placed`] by [`ranks`].
    fn ranked(table: Longs<'_>, index: W, by: W, counts: M, width: W) -> Places {
        placed(table, index, ranks(table, index, by), counts, width)
    }
}
