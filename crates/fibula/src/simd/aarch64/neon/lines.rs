//! Searches of a cache line that a writer may change, in four registers of four words.
#![allow(unsafe_code)]

use core::arch::aarch64::*;
use core::arch::asm;

pub(crate) use crate::simd::any_has;
use crate::simd::{LEAF_KEYS, SharedLine, SharedLines, WIDE, half_of_shared, operations};

operations! { "neon"
    /// Four words of a line from `at` on, which is at most 12.
    fn four[const AT: usize](line: &SharedLine) -> int32x4_t {
        let words: &[_; 4] = line[AT..].first_chunk().expect("a line is four fours");
        let four: int32x4_t;
        // SAFETY: the reference covers the 16 bytes read. A load of elements reads each aligned word at once, as a relaxed
        // load does, so that a writer's atomic stores do not race with it.
        unsafe {
            asm!(
                "ld1 {{{four:v}.4s}}, [{words}]",
                words = in(reg) words.as_ptr(),
                four = out(vreg) four,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        four
    }

    /// Counts the words of a line, in ascending order, that are below `key`.
    fn rank(line: &SharedLine, key: u32) -> u32 {
        let key = vdupq_n_s32(key as i32);
        // True is all ones, -1.
        let below = |four| vcltq_s32(four, key);
        let low = vaddq_u32(below(four::<0>(line)), below(four::<4>(line)));
        let high = vaddq_u32(below(four::<8>(line)), below(four::<12>(line)));
        vaddvq_u32(vaddq_u32(low, high)).wrapping_neg()
    }

    /// Returns the value of a leaf that follows those of its keys that are below `key`.
    fn leaf(line: &SharedLine, key: u32) -> u32 {
        const TWO: [u32; 4] = [u32::MAX, u32::MAX, 0, 0];
        let key = vdupq_n_s32(key as i32);
        let below = |four| vcltq_s32(four, key);
        // SAFETY: the reference covers the 16 bytes read.
        let two = unsafe { vld1q_u32(TWO.as_ptr()) };
        let last = vandq_u32(below(four::<8>(line)), two);
        let all = vaddq_u32(vaddq_u32(below(four::<0>(line)), below(four::<4>(line))), last);
        half_of_shared(line, 2 * LEAF_KEYS + vaddvq_u32(all).wrapping_neg() as usize)
    }

    /// Stores, for each lane, twice the count of the words of the line at its place that are below its key.
    fn double_ranks(lines: SharedLines<'_>, places: &[u32; WIDE], keys: &[u32; WIDE], to: &mut [u32; WIDE]) -> () {
        for lane in 0..WIDE {
            to[lane] = 2 * rank(lines.at(places[lane]), keys[lane]);
        }
    }

    /// Stores, for each lane, the value of the leaf at its place that follows those of its keys that are below the lane's.
    fn leaves(lines: SharedLines<'_>, places: &[u32; WIDE], keys: &[u32; WIDE], to: &mut [u32; WIDE]) -> () {
        for lane in 0..WIDE {
            to[lane] = leaf(lines.at(places[lane]), keys[lane]);
        }
    }
}
