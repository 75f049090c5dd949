//! As [`avx2::lines`](super::super::avx2::lines).

pub use super::super::avx2::lines::*;
