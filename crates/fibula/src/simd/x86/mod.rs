//! Operations of x86-64. Each module re-exports the one before it and replaces the operations that its instructions do faster.
#![allow(dead_code, reason = "the sets offer the same operations, whether or not every kernel needs them")]

pub mod avx2;
pub mod avx512;
pub mod icelake;

use core::arch::asm;

use super::Present;

/// Counts the bits that are set: by the instruction if the set has it, and without a call.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn count_ones(set: Present, bits: u64) -> u32 {
    if set == Present::SCALAR {
        return bits.count_ones();
    }
    let count: u64;
    // SAFETY: every other set of x86-64 has POPCNT, and a value is the proof that this machine has the set.
    unsafe { asm!("popcnt {}, {}", out(reg) count, in(reg) bits, options(pure, nomem, nostack)) };
    count as u32
}
