//! As [`avx2::lines`](super::super::avx2::lines).

pub(crate) use super::super::avx2::lines::*;
