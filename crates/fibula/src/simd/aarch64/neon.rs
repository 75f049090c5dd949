//! Eight lanes of 32 bits in two NEON registers; a mask is a vector of all ones or all zeros a lane. There are no gathers:
//! lanes are loaded one by one.
#![allow(unsafe_code)]

use core::arch::aarch64::*;

use crate::memory::Cell;
use crate::simd::table::Cell32;
use crate::simd::{Bounded, Bytes, Halves, LANES, Leading, Longs, Words, operations};

pub mod lines;
pub mod wide;

/// A vector of eight 32-bit lanes.
pub type V = uint32x4x2_t;
/// A mask: true or false for each lane.
pub type M = uint32x4x2_t;
/// Byte offsets.
#[derive(Clone, Copy)]
pub struct Places8(V);
/// A shift count for all lanes.
pub type Count = int32x4_t;

operations! { "neon"
    /// Returns the value in every lane.
    fn splat(value: u32) -> V { uint32x4x2_t(vdupq_n_u32(value), vdupq_n_u32(value)) }

    /// Loads the lanes from an array.
    fn load(from: &[u32; LANES]) -> V {
        let [low, high]: [&[u32; 4]; 2] = halves(from);
        // SAFETY: the reference covers the 16 bytes read.
        let low = unsafe { vld1q_u32(low.as_ptr()) };
        // SAFETY: the reference covers the 16 bytes read.
        let high = unsafe { vld1q_u32(high.as_ptr()) };
        uint32x4x2_t(low, high)
    }

    /// Stores the lanes to an array.
    fn store(to: &mut [u32; LANES], v: V) -> () {
        let (low, high) = to.split_at_mut(4);
        // SAFETY: the slice is of 4 lanes, which are the 16 bytes written.
        unsafe { vst1q_u32(low.as_mut_ptr(), v.0) };
        // SAFETY: as above.
        unsafe { vst1q_u32(high.as_mut_ptr(), v.1) };
    }

    /// Returns the lanes as an array.
    fn array(v: V) -> [u32; LANES] {
        let mut lanes = [0; LANES];
        store(&mut lanes, v);
        lanes
    }

    /// Returns a shift count below 32.
    fn count(bits: u32) -> Count { vdupq_n_s32(bits as i32) }

    /// Adds, wrapping.
    fn add(a: V, b: V) -> V { uint32x4x2_t(vaddq_u32(a.0, b.0), vaddq_u32(a.1, b.1)) }
    /// Subtracts, wrapping.
    fn sub(a: V, b: V) -> V { uint32x4x2_t(vsubq_u32(a.0, b.0), vsubq_u32(a.1, b.1)) }
    /// Returns the bits set in both.
    fn and(a: V, b: V) -> V { uint32x4x2_t(vandq_u32(a.0, b.0), vandq_u32(a.1, b.1)) }
    /// Returns the bits set in either.
    fn or(a: V, b: V) -> V { uint32x4x2_t(vorrq_u32(a.0, b.0), vorrq_u32(a.1, b.1)) }
    /// Returns the bits set in the second alone.
    fn only(a: V, b: V) -> V { but(a, b) }
    /// Returns the bits in which the two differ.
    fn xor(a: V, b: V) -> V { uint32x4x2_t(veorq_u32(a.0, b.0), veorq_u32(a.1, b.1)) }
    /// Returns the smaller of two unsigned lanes.
    fn min(a: V, b: V) -> V { uint32x4x2_t(vminq_u32(a.0, b.0), vminq_u32(a.1, b.1)) }
    /// Returns the bits that are set in any lane.
    fn union(a: V) -> u32 {
        let both = vreinterpretq_u64_u32(vorrq_u32(a.0, a.1));
        let half = vgetq_lane_u64::<0>(both) | vgetq_lane_u64::<1>(both);
        half as u32 | (half >> 32) as u32
    }
    /// Multiplies the lower and the upper 16 bits of each lane separately. The plain product if factors and products
    /// are below 2^16.
    fn mul16(a: V, b: V) -> V {
        let product = |a, b| {
            vreinterpretq_u32_u16(vmulq_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)))
        };
        uint32x4x2_t(product(a.0, b.0), product(a.1, b.1))
    }
    /// Multiplies, wrapping.
    fn mul(a: V, b: V) -> V { uint32x4x2_t(vmulq_u32(a.0, b.0), vmulq_u32(a.1, b.1)) }
    /// Returns the upper halves of the products of unsigned lanes.
    fn mul_high(a: V, b: V) -> V {
        let product = |a, b| {
            let low = vmull_u32(vget_low_u32(a), vget_low_u32(b));
            let high = vmull_high_u32(a, b);
            vuzp2q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high))
        };
        uint32x4x2_t(product(a.0, b.0), product(a.1, b.1))
    }
    /// Shifts left by a constant.
    fn shl[const BITS: i32](a: V) -> V { shl_by(a, vdupq_n_s32(BITS)) }
    /// Shifts right by a constant, filling with zeros.
    fn shr[const BITS: i32](a: V) -> V { shl_by(a, vdupq_n_s32(-BITS)) }
    /// Shifts all lanes left by one count.
    fn shl_by(a: V, by: Count) -> V { uint32x4x2_t(vshlq_u32(a.0, by), vshlq_u32(a.1, by)) }
    /// Shifts all lanes right by one count.
    fn shr_by(a: V, by: Count) -> V { shl_by(a, vnegq_s32(by)) }
    /// Shifts each lane left by its own count; 32 and more give 0.
    fn shlv(a: V, by: V) -> V {
        // Only the lowest byte of a count matters, with its sign.
        let by = min(by, splat(32));
        let shifted = |a, by| vshlq_u32(a, vreinterpretq_s32_u32(by));
        uint32x4x2_t(shifted(a.0, by.0), shifted(a.1, by.1))
    }
    /// Shifts each lane right by its own count; 32 and more give 0.
    fn shrv(a: V, by: V) -> V {
        let by = min(by, splat(32));
        let shifted = |a, by| vshlq_u32(a, vnegq_s32(vreinterpretq_s32_u32(by)));
        uint32x4x2_t(shifted(a.0, by.0), shifted(a.1, by.1))
    }
    /// Returns `table[index % 8]` of eight entries in a register.
    fn pick(table: V, index: V) -> V {
        let table = uint8x16x2_t(vreinterpretq_u8_u32(table.0), vreinterpretq_u8_u32(table.1));
        let picked = |index| {
            let first = vmulq_n_u32(vandq_u32(index, vdupq_n_u32(7)), 0x0404_0404);
            let bytes = vaddq_u32(first, vdupq_n_u32(0x0302_0100));
            vreinterpretq_u32_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(bytes)))
        };
        uint32x4x2_t(picked(index.0), picked(index.1))
    }
    /// Returns `table[index % 16]` of sixteen entries in two registers.
    fn pick_of_two(low: V, high: V, index: V) -> V {
        let bytes = |half| vreinterpretq_u8_u32(half);
        let table = uint8x16x4_t(bytes(low.0), bytes(low.1), bytes(high.0), bytes(high.1));
        let picked = |index| {
            let first = vmulq_n_u32(vandq_u32(index, vdupq_n_u32(15)), 0x0404_0404);
            let bytes = vaddq_u32(first, vdupq_n_u32(0x0302_0100));
            vreinterpretq_u32_u8(vqtbl4q_u8(table, vreinterpretq_u8_u32(bytes)))
        };
        uint32x4x2_t(picked(index.0), picked(index.1))
    }
    /// Transposes eight rows of eight words: vector `c` has word `c` of every row.
    fn columns(rows: [&[u32; LANES]; LANES]) -> [V; LANES] {
        core::array::from_fn(|column| load(&rows.map(|row| row[column])))
    }

    /// Compares for equality.
    fn eq(a: V, b: V) -> M { uint32x4x2_t(vceqq_u32(a.0, b.0), vceqq_u32(a.1, b.1)) }
    /// Returns whether the first is less than or equal to the second, unsigned.
    fn up_to(a: V, b: V) -> M { uint32x4x2_t(vcleq_u32(a.0, b.0), vcleq_u32(a.1, b.1)) }
    /// Returns whether the highest bit is set.
    fn sign(a: V) -> M {
        let sign = |a| vreinterpretq_u32_s32(vshrq_n_s32::<31>(vreinterpretq_s32_u32(a)));
        uint32x4x2_t(sign(a.0), sign(a.1))
    }
    /// Returns whether the lane has the one bit that `bits` has there.
    fn test(a: V, bits: V) -> M { uint32x4x2_t(vtstq_u32(a.0, bits.0), vtstq_u32(a.1, bits.1)) }
    /// True where both are.
    fn both(a: M, b: M) -> M { and(a, b) }
    /// True where only the second is.
    fn but(a: M, b: M) -> M { uint32x4x2_t(vbicq_u32(b.0, a.0), vbicq_u32(b.1, a.1)) }
    /// Returns one bit for each lane, lane 0 lowest.
    fn bits(m: M) -> u32 {
        let lanes = load(&[1, 2, 4, 8, 16, 32, 64, 128]);
        vaddvq_u32(vorrq_u32(vandq_u32(m.0, lanes.0), vandq_u32(m.1, lanes.1)))
    }
    /// Returns `a` where the mask is true, else `b`.
    fn select(m: M, a: V, b: V) -> V { uint32x4x2_t(vbslq_u32(m.0, a.0, b.0), vbslq_u32(m.1, a.1, b.1)) }
    /// Returns `a` where the mask is true, else 0.
    fn keep(m: M, a: V) -> V { and(m, a) }

    /// Moves the lanes where the mask is true to the front; the lanes after them are unspecified.
    fn compress(m: M, a: V) -> V {
        let (bits, lanes) = (bits(m), array(a));
        let (mut kept, mut count) = ([0; LANES], 0);
        for (lane, word) in lanes.into_iter().enumerate() {
            // Always written, kept only if the count advances: a lane number is never below the count.
            kept[count.min(lane)] = word;
            count += (bits >> lane & 1) as usize;
        }
        load(&kept)
    }

    /// Adds one where the mask is true.
    fn increment(m: M, a: V) -> V { sub(a, m) }

    /// Counts the bytes of each lane that are below `limit`, which is at most 255.
    fn bytes_below(bytes: V, limit: V) -> V {
        let below = |bytes, limit| {
            let limit = vreinterpretq_u8_u32(vmulq_n_u32(limit, 0x0101_0101));
            let below = vandq_u8(vcltq_u8(vreinterpretq_u8_u32(bytes), limit), vdupq_n_u8(1));
            vreinterpretq_u32_u8(below)
        };
        sum_bytes(uint32x4x2_t(below(bytes.0, limit.0), below(bytes.1, limit.1)))
    }

    /// Adds the four bytes of each lane.
    fn sum_bytes(a: V) -> V {
        let sum = |a| vpaddlq_u16(vpaddlq_u8(vreinterpretq_u8_u32(a)));
        uint32x4x2_t(sum(a.0), sum(a.1))
    }

    /// Counts the set bits of each lane.
    fn popcount(a: V) -> V {
        sum_bytes(byte_counts(a))
    }

    /// Reads the elements at the lanes' indices; an index past the end reads the last element.
    fn gather(table: Words<'_>, index: V) -> V {
        let places = array(min(index, splat(table.last())));
        let start = table.slice().as_ptr();
        load(&places.map(|place| {
            // SAFETY: every index is at most that of the last element.
            let place = unsafe { start.add(place as usize) };
            // SAFETY: as above.
            unsafe { place.read() }
        }))
    }

    /// Like [`gather`] where the mask is true, else 0.
    fn gather_where(m: M, table: Words<'_>, index: V) -> V { and(gather(table, index), m) }

    /// Reads the 16-bit elements at the lanes' indices, clamped as in [`gather`], and the next element into the upper
    /// half of each lane.
    fn gather_pairs(table: Halves<'_>, index: V) -> V {
        let places = array(min(index, splat(table.last())));
        let start = table.slice().as_ptr();
        load(&places.map(|place| {
            // SAFETY: every index is at most that of the last but one element.
            let place = unsafe { start.add(place as usize) };
            // SAFETY: the 32 bits read end with the last element, which needs no alignment.
            unsafe { place.cast::<u32>().read_unaligned() }
        }))
    }

    /// Reads the 16-bit elements at the lanes' indices, clamped as in [`gather_pairs`].
    fn gather_halves(table: Halves<'_>, index: V) -> V { and(gather_pairs(table, index), splat(0xffff)) }

    /// Like [`gather_halves`] where the mask is true, else 0.
    fn gather_halves_where(m: M, table: Halves<'_>, index: V) -> V { and(gather_halves(table, index), m) }

    /// Reads the 32 bits at the lanes' byte offsets where the mask is true, else 0; an offset past the last word
    /// reads the last word.
    fn gather_bytes_where(m: M, table: Bytes<'_>, offset: V) -> V {
        let places = array(min(offset, splat(table.last())));
        let start = table.slice().as_ptr();
        let words = load(&places.map(|place| {
            // SAFETY: every offset is at most that of the last word.
            let place = unsafe { start.byte_add(place as usize) };
            // SAFETY: as above, which needs no alignment.
            unsafe { place.read_unaligned() }
        }));
        and(words, m)
    }

    /// Like [`gather`], from elements that a writer may change.
    fn gather_cells[C: Cell32](table: Words<'_, C>, index: V) -> V {
        let places = array(min(index, splat(table.last())));
        load(&places.map(|place| table.slice()[place as usize].read()))
    }

    /// Reads the elements of the keys in the lanes.
    fn gather_leading(table: Leading<'_>, key: V) -> V {
        let places = array(key).map(|key| key >> table.behind());
        load(&places.map(|place| table.slice()[place as usize].read()))
    }

    /// Returns the places of values of 2^`width` bytes that follow the elements at the lanes' indices, by their [`ranks`]
    /// where the mask is true and else rank 0; of a width only the lower two bits count.
    fn ranked(table: Longs<'_>, index: V, by: V, counts: M, width: V) -> Places8 {
        let first = add(shl::<3>(min(index, splat(table.last()))), splat(8));
        Places8(add(first, shlv(keep(counts, ranks(table, index, by)), and(width, splat(3)))))
    }

    /// Reads the 32 bits at places of this table.
    fn at_places(table: Longs<'_>, places: Places8) -> V { at_bytes(table, places.0) }

    /// Reads the 32 bits at the lanes' byte offsets; one past the last reads the last.
    fn at_bytes(table: Longs<'_>, offset: V) -> V {
        let places = array(min(offset, splat(table.last_byte())));
        load(&places.map(|place| table.at_byte(place)))
    }

    /// Reads the elements at the lanes' indices, clamped, shifts each left by its count (64 and more give 0), and
    /// counts the bits that are set then.
    fn ranks(table: Longs<'_>, index: V, by: V) -> V {
        let (places, by) = (array(min(index, splat(table.last()))), array(by));
        let mut ranks = [0; LANES];
        for ((rank, place), by) in ranks.iter_mut().zip(places).zip(by) {
            *rank = table.slice()[place as usize].read().checked_shl(by).unwrap_or(0).count_ones();
        }
        load(&ranks)
    }

    /// Like [`ranks`], with the upper halves of the elements.
    fn ranks_and_upper(table: Longs<'_>, index: V, by: V) -> [V; 2] {
        let places = array(min(index, splat(table.last())));
        let upper = load(&places.map(|place| (table.slice()[place as usize].read() >> 32) as u32));
        [ranks(table, index, by), upper]
    }

    /// Like [`ranks`], of the 64 bits at byte offsets.
    fn ranks_at(table: Longs<'_>, offset: V, by: V) -> V {
        let (places, by) = (array(min(offset, splat(table.last_long()))), array(by));
        let mut ranks = [0; LANES];
        for ((rank, place), by) in ranks.iter_mut().zip(places).zip(by) {
            *rank = table.long_at(place).checked_shl(by).unwrap_or(0).count_ones();
        }
        load(&ranks)
    }

    /// Counts the set bits of each byte.
    fn byte_counts(a: V) -> V {
        let count = |a| vreinterpretq_u32_u8(vcntq_u8(vreinterpretq_u8_u32(a)));
        uint32x4x2_t(count(a.0), count(a.1))
    }

    /// Appends a vector of places; one past the last becomes the last.
    fn place(places: &mut Bounded<'_>, offset: V) -> () {
        let offset = min(offset, splat(places.last()));
        store(places.next(), offset);
    }

    /// Counts the `keys`, in ascending order, that are below `key`.
    fn rank64(keys: &[u64], key: u64) -> usize {
        let (pairs, rest) = keys.as_chunks::<2>();
        let splat = vdupq_n_u64(key);
        let mut below = vdupq_n_u64(0);
        for pair in pairs {
            // SAFETY: the reference covers the 16 bytes read.
            let node = unsafe { vld1q_u64(pair.as_ptr()) };
            // True is all ones, -1: subtracting it adds one.
            below = vsubq_u64(below, vcltq_u64(node, splat));
        }
        vaddvq_u64(below) as usize + rank_few(rest, key)
    }

    /// Counts the `keys`, in ascending order, that are below `key`.
    fn rank32(keys: &[u32], key: u32) -> usize {
        let (fours, rest) = keys.as_chunks::<4>();
        let splat = vdupq_n_u32(key);
        let mut below = vdupq_n_u32(0);
        for four in fours {
            // SAFETY: the reference covers the 16 bytes read.
            let node = unsafe { vld1q_u32(four.as_ptr()) };
            below = vsubq_u32(below, vcltq_u32(node, splat));
        }
        vaddvq_u32(below) as usize + rank_few(rest, key)
    }

    /// Counts those of the first `COUNT` words of a line, in ascending order, that are below `key`.
    fn rank_first[const COUNT: u32](line: &[u32; 16], key: u32) -> u32 {
        const EVERY: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let splat = vdupq_n_u32(key);
        let count = vdupq_n_u32(COUNT);
        let mut below = vdupq_n_u32(0);
        for (four, every) in line.as_chunks::<4>().0.iter().zip(EVERY.as_chunks::<4>().0) {
            // SAFETY: the reference covers the 16 bytes read.
            let words = unsafe { vld1q_u32(four.as_ptr()) };
            // SAFETY: as above.
            let every = unsafe { vld1q_u32(every.as_ptr()) };
            // True is all ones, -1: subtracting it adds one.
            below = vsubq_u32(below, vandq_u32(vcltq_u32(words, splat), vcltq_u32(every, count)));
        }
        vaddvq_u32(below)
    }
}

/// The lower and the upper four lanes.
fn halves(lanes: &[u32; LANES]) -> [&[u32; 4]; 2] {
    [0, 4].map(|at| lanes[at..].first_chunk().expect("eight are two fours"))
}

fn rank_few<T: PartialOrd>(keys: &[T], key: T) -> usize {
    keys.iter().filter(|&at| *at < key).count()
}
