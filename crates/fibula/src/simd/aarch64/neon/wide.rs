//! Sixteen lanes as four NEON registers.

crate::simd::pairs::sixteen_by_pairs! { "neon" }
