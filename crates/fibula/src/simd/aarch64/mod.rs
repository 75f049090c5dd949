//! Operations of AArch64.
#![allow(dead_code, reason = "the sets offer the same operations, whether or not every kernel needs them")]

pub mod neon;
