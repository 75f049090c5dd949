//! Operations of x86-64. Each module re-exports the one before it and replaces what it does better.
#![allow(dead_code, reason = "the sets offer the same operations, whether or not every kernel needs them")]

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod icelake;
