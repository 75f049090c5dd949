//! Sixteen lanes as two AVX2 registers.

crate::simd::pairs::sixteen_by_pairs! { "avx2,bmi2" }
