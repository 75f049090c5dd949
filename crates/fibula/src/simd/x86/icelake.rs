//! [`avx512`](super::avx512) with population counts as one instruction.

use core::arch::x86_64::*;

pub mod lines;
pub mod wide;

pub use super::avx512::*;
use crate::simd::operations;

operations! { "avx2,bmi2,avx512f,avx512vl,avx512vpopcntdq"
    /// Counts the set bits of each lane.
    fn popcount(a: V) -> V { _mm256_popcnt_epi32(a) }
}
