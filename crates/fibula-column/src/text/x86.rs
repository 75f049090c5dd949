//! The passes with AVX2 and BMI, without branches on the bytes of a text: lengths of numbers are hard to predict.

use core::arch::x86_64::*;

use fibula::net::Family;

use crate::block::KeyBlock;
use crate::rows::{Slot, Slots};

/// Bytes before a text and after its start that a pass loads.
const BEFORE: usize = 4;
const AFTER: usize = 48;
/// Most bytes of an IPv4 address.
const LONGEST_V4: usize = 15;
/// Most bytes of an IPv6 address without an IPv4 address at its end.
const LONGEST_V6: usize = 39;

/// Reads texts, those of `family` in the first pass.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn read<S: Slots>(slots: &S, family: Family, first: usize, count: usize, block: &mut KeyBlock) {
    if family == Family::Ipv4 {
        for row in 0..count {
            v4_row(slots, first, row, block);
        }
        for &row in block.left.take().as_slice() {
            v6_row(slots, first, usize::from(row), block);
        }
    } else {
        for row in 0..count {
            v6_row(slots, first, row, block);
        }
        for &row in block.left.take().as_slice() {
            v4_row(slots, first, usize::from(row), block);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn v4_row<S: Slots>(slots: &S, first: usize, row: usize, block: &mut KeyBlock) {
    let (key, is_v4) = match slots.slot(first + row) {
        Some(slot) => ipv4(first_bytes(slot), slot.len),
        None => (0, false),
    };
    block.v4.note(row, key, is_v4);
    block.left.note(row, !is_v4);
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn v6_row<S: Slots>(slots: &S, first: usize, row: usize, block: &mut KeyBlock) {
    let (key, is_v6) = match slots.slot(first + row) {
        Some(slot) => match around(slot) {
            Some(bytes) => ipv6(bytes, slot.len),
            None => ipv6(&copied(slot), slot.len),
        },
        None => (0, false),
    };
    block.v6.note(row, key, is_v6);
    block.left.note(row, !is_v6);
}

/// Returns the first bytes of a text, followed by others.
#[inline(always)]
fn first_bytes(Slot { buffer, start, len }: Slot<'_>) -> [u8; 16] {
    match buffer[start..].first_chunk() {
        Some(&bytes) => bytes,
        None => {
            let mut bytes = [0; 16];
            let len = len.min(bytes.len());
            bytes[..len].copy_from_slice(&buffer[start..start + len]);
            bytes
        }
    }
}

/// Returns the bytes of a text from [`BEFORE`] it on, if the buffer has them all.
#[inline(always)]
fn around(Slot { buffer, start, .. }: Slot<'_>) -> Option<&[u8; BEFORE + AFTER]> {
    buffer.get(start.checked_sub(BEFORE)?..)?.first_chunk()
}

/// Returns a copy of a text, [`BEFORE`] bytes after the start.
#[cold]
fn copied(Slot { buffer, start, len }: Slot<'_>) -> [u8; BEFORE + AFTER] {
    let mut bytes = [0; BEFORE + AFTER];
    let len = len.min(AFTER);
    bytes[BEFORE..BEFORE + len].copy_from_slice(&buffer[start..start + len]);
    bytes
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 16]) -> __m128i {
    let [low, high] = [0, 8].map(|at| i64::from_le_bytes(*bytes[at..].first_chunk().expect("eight of them")));
    _mm_set_epi64x(high, low)
}

/// The shapes of IPv4 addresses: where dots are and where the text ends is one of 81 sets of bits, which a multiplication hashes
/// without a collision.
struct Shapes {
    /// For each hash, the set of bits; 0 where there is none.
    ends: [u16; 256],
    /// For each hash, the lowest octets that need no leading zero.
    least: [u32; 256],
    /// For each hash, the byte of the text that each byte of four groups of hundreds, tens, ones and nothing comes from.
    digits: [[u8; 16]; 256],
}

const fn hash(ends: u32) -> usize {
    (ends.wrapping_mul(0xbd40_98f5) >> 24) as usize
}

static SHAPES: Shapes = shapes();

const fn shapes() -> Shapes {
    let mut shapes = Shapes { ends: [0; 256], least: [0; 256], digits: [[0x80; 16]; 256] };
    let mut shape = 0;
    while shape < 81 {
        let lengths = [1 + shape / 27, 1 + shape / 9 % 3, 1 + shape / 3 % 3, 1 + shape % 3];
        let (mut ends, mut least, mut digits) = (0, 0, [0x80; 16]);
        let (mut start, mut part) = (0, 0);
        while part < 4 {
            let len = lengths[part];
            let mut at = 0;
            while at < len {
                digits[4 * part + 3 - len + at] = (start + at) as u8;
                at += 1;
            }
            least |= [0, 10, 100][len - 1] << (8 * part);
            ends |= 1 << (start + len);
            start += len + 1;
            part += 1;
        }
        let at = hash(ends as u32);
        assert!(shapes.ends[at] == 0, "two shapes have the same hash");
        shapes.ends[at] = ends;
        shapes.least[at] = least;
        shapes.digits[at] = digits;
        shape += 1;
    }
    shapes
}

/// Reads an IPv4 address of `len` bytes. Returns its key, and whether it is one.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn ipv4(bytes: [u8; 16], len: usize) -> (u32, bool) {
    let text = load(&bytes);
    let digits = _mm_sub_epi8(text, _mm_set1_epi8(b'0' as i8));
    let is_digit = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits)) as u32;
    let is_dot = _mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(b'.' as i8))) as u32;
    let end = 1_u32 << len.min(LONGEST_V4 + 1);
    let ends = is_dot & (end - 1) | end;
    let at = hash(ends);
    let is_of_shape = u32::from(SHAPES.ends[at]) == ends && (is_digit | is_dot) & (end - 1) == end - 1;

    let digits = _mm_shuffle_epi8(digits, load(&SHAPES.digits[at]));
    // Hundreds and tens, ones and nothing.
    let weights = _mm_set1_epi32(i32::from_le_bytes([100, 10, 1, 0]));
    let octets = _mm_madd_epi16(_mm_maddubs_epi16(digits, weights), _mm_set1_epi16(1));
    let least = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(SHAPES.least[at] as i32));
    let within = _mm_min_epi32(_mm_max_epi32(octets, least), _mm_set1_epi32(255));
    let are_octets = _mm_movemask_epi8(_mm_cmpeq_epi32(within, octets)) == 0xffff;

    let key = _mm_shuffle_epi8(octets, _mm_cvtsi32_si128(i32::from_le_bytes([12, 8, 4, 0])));
    (_mm_cvtsi128_si32(key) as u32, is_of_shape & are_octets)
}

/// Reads an IPv6 address of `len` bytes, which follow [`BEFORE`] others. Returns its key, and whether it is one. Those that end in an
/// IPv4 address are refused.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn ipv6(bytes: &[u8; BEFORE + AFTER], len: usize) -> (u128, bool) {
    let mut is_bad = len > LONGEST_V6;
    let len = len.min(LONGEST_V6) as u32;
    let colon = _mm_set1_epi8(b':' as i8);
    let mut colons = 0;
    for part in 0..AFTER / 16 {
        let text = load(bytes[BEFORE + 16 * part..].first_chunk().expect("sixteen of them"));
        colons |= u64::from(_mm_movemask_epi8(_mm_cmpeq_epi8(text, colon)) as u32) << (16 * part);
    }
    colons = _bzhi_u64(colons, len);

    // Groups are as they are, or with one gap ('::'), which is an empty group.
    let gaps = colons & colons >> 1;
    let gap = gaps.trailing_zeros();
    let has_gap = gaps != 0;
    is_bad |= gaps & gaps.wrapping_sub(1) != 0;
    // One colon alone at the start or at the end.
    is_bad |= colons & 1 != 0 && gap != 0;
    is_bad |= len > 0 && colons >> (len - 1) & 1 != 0 && gap + 2 != len;
    let before = _bzhi_u64(colons, gap.min(63)).count_ones() + u32::from(gap != 0);
    let after = (colons >> (gap + 2).min(63)).count_ones() + u32::from(gap + 2 != len);
    is_bad |= if has_gap { before + after > 7 } else { colons.count_ones() != 7 };

    // All groups from the left, the digits of each at the right end of four bytes, zeros in front of them. After the last one they are
    // empty. A gap at the start is one empty group, not two.
    let skip = u64::from(gap == 0);
    let mut ends = (colons | u64::MAX << len) & !skip;
    let mut start = skip as u32;
    let mut groups = [0_u32; 8];
    for group in &mut groups {
        let end = ends.trailing_zeros();
        ends = _blsr_u64(ends);
        let digits = end.wrapping_sub(start);
        is_bad |= digits > 4;
        start = end + 1;
        let at = end.min(AFTER as u32) as usize;
        let word = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let has = (0xffff_ffff_u64 << (32 - 8 * digits.min(4))) as u32;
        *group = word & has | 0x3030_3030 & !has;
    }
    let [a, b, c, d, e, f, g, h] = groups.map(|group| group as i32);
    let text = _mm256_set_epi32(h, g, f, e, d, c, b, a);

    let digits = _mm256_sub_epi8(text, _mm256_set1_epi8(b'0' as i8));
    let is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(digits, _mm256_set1_epi8(9)), digits);
    let letters =
        _mm256_sub_epi8(_mm256_or_si256(text, _mm256_set1_epi8(0x20)), _mm256_set1_epi8(b'a' as i8));
    let is_letter = _mm256_cmpeq_epi8(_mm256_min_epu8(letters, _mm256_set1_epi8(5)), letters);
    is_bad |= _mm256_movemask_epi8(_mm256_or_si256(is_digit, is_letter)) != -1;
    let nibbles = _mm256_blendv_epi8(_mm256_add_epi8(letters, _mm256_set1_epi8(10)), digits, is_digit);
    let pairs = _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(i16::from_le_bytes([16, 1])));
    let packed = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
    let high = (_mm_cvtsi128_si64(packed) as u64).swap_bytes();
    let low = (_mm_extract_epi64::<1>(packed) as u64).swap_bytes();
    let key = u128::from(high) << 64 | u128::from(low);

    // The groups after the gap belong at the right end.
    let (before, moved) = if has_gap { (before, 7_u32.wrapping_sub(before + after)) } else { (0, 0) };
    let behind = u128::MAX >> (16 * before.min(7));
    (key & !behind | (key & behind) >> (16 * moved.min(7)), !is_bad)
}
