//! The passes with AVX2 and BMI, without branches on the bytes of a text: lengths of numbers are hard to predict.

use core::arch::x86_64::*;

use fibula::net::Family;

use crate::block::{BLOCK, FamilyKeys, KeyBlock};
use crate::rows::{Slot, Slots};

/// Bytes before a text and after its start that a pass loads.
const BEFORE: usize = 4;
const AFTER: usize = 48;
/// Most bytes of an IPv4 address.
const LONGEST_V4: usize = 15;
/// Most bytes of an IPv6 address without an IPv4 address at its end.
const LONGEST_V6: usize = 39;

/// Every row of a block, in order.
static ALL_ROWS: [u8; BLOCK] = {
    let (mut rows, mut row) = ([0; BLOCK], 0);
    while row < BLOCK {
        rows[row] = row as u8;
        row += 1;
    }
    rows
};

/// Reads texts, those of `family` in the first pass.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn read<S: Slots>(slots: &S, family: Family, first: usize, count: usize, block: &mut KeyBlock) {
    let (mut left, mut rest) = ([0; BLOCK], [0; BLOCK]);
    let rows = &ALL_ROWS[..count];
    let rest = if family == Family::Ipv4 {
        let count = v4_rows(slots, first, rows, &mut block.v4, &mut left);
        let count = v6_rows(slots, first, &left[..count], &mut block.v6, &mut rest);
        &rest[..count]
    } else {
        let count = v6_rows(slots, first, rows, &mut block.v6, &mut left);
        let count = v4_rows(slots, first, &left[..count], &mut block.v4, &mut rest);
        &rest[..count]
    };
    for &row in rest {
        block.left.note(usize::from(row), true);
    }
}

/// Reads rows as IPv4 addresses. Returns the number of those that are none, which `left` then begins with.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn v4_rows<S: Slots>(
    slots: &S,
    first: usize,
    rows: &[u8],
    keys: &mut FamilyKeys<u32>,
    left: &mut [u8; BLOCK],
) -> usize {
    keys.note_some(rows, left, |row| match slots.slot(first + row) {
        Some(slot) => ipv4(first_bytes(slot), slot.len),
        None => (0, false),
    })
}

/// Reads rows as IPv6 addresses. Returns the number of those that are none, which `left` then begins with.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn v6_rows<S: Slots>(
    slots: &S,
    first: usize,
    rows: &[u8],
    keys: &mut FamilyKeys<u128>,
    left: &mut [u8; BLOCK],
) -> usize {
    keys.note_some(rows, left, |row| {
        let Some(slot) = slots.slot(first + row) else { return (0, false) };
        let copy;
        let bytes = match around(slot) {
            Some(bytes) => bytes,
            None => {
                copy = copied(slot);
                &copy
            }
        };
        ipv6(bytes, slot.len)
    })
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

#[inline]
#[target_feature(enable = "avx2")]
fn load_wide(bytes: &[u8; 32]) -> __m256i {
    let [low, high] = [0, 16].map(|at| load(bytes[at..].first_chunk().expect("sixteen of them")));
    _mm256_set_m128i(high, low)
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

/// For each number of groups before a gap and of groups that it stands for but one, the byte of eight groups from the left that each
/// byte of the address, lowest first, comes from. The last is for no gap.
static SPREADS: [[u8; 16]; 65] = spreads();

const fn spreads() -> [[u8; 16]; 65] {
    let mut spreads = [[0x80; 16]; 65];
    let mut at = 0;
    while at < 65 {
        let (before, moved) = if at == 64 { (8, 0) } else { (at / 8, at % 8) };
        let mut byte = 0;
        while byte < 16 {
            let group = byte / 2;
            // Where the group is among those that were read; the gap is one of them, and empty.
            let from = if group < before {
                Some(byte)
            } else if group > before + moved {
                Some(byte - 2 * moved)
            } else {
                None
            };
            if let Some(from) = from {
                spreads[at][15 - byte] = from as u8;
            }
            byte += 1;
        }
        at += 1;
    }
    spreads
}

/// Eight lanes of all bits, and as many of none: those from 8 - n on are all bits in the first n.
static FIRST_LANES: [[u8; 4]; 16] = {
    let (mut lanes, mut at) = ([[0; 4]; 16], 0);
    while at < 8 {
        lanes[at] = [0xff; 4];
        at += 1;
    }
    lanes
};

/// Reads an IPv6 address of `len` bytes, which follow [`BEFORE`] others. Returns its key, and whether it is one. Those that end in an
/// IPv4 address are refused.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn ipv6(bytes: &[u8; BEFORE + AFTER], len: usize) -> (u128, bool) {
    let is_short = len.wrapping_sub(2) <= LONGEST_V6 - 2;
    let len = len.min(LONGEST_V6) as u32;
    let colon = _mm_set1_epi8(b':' as i8);
    let mut colons = 0;
    for part in 0..AFTER / 16 {
        let text = load(bytes[BEFORE + 16 * part..].first_chunk().expect("sixteen of them"));
        colons |= u64::from(_mm_movemask_epi8(_mm_cmpeq_epi8(text, colon)) as u32) << (16 * part);
    }
    colons = _bzhi_u64(colons, len);

    // A group of five digits.
    let digits = _bzhi_u64(!colons, len);
    let is_long = (digits & digits >> 1) & (digits & digits >> 1) >> 2 & digits >> 4 != 0;
    // Groups are as they are, or with one gap ('::'), which is an empty group. A colon at an end is part of it.
    let gaps = colons & colons >> 1;
    let gap = gaps.trailing_zeros();
    let has_gap = gaps != 0;
    let is_first = u64::from(gap == 0);
    let is_last = u64::from(gap + 2 == len);
    let has_one_gap = gaps & gaps.wrapping_sub(1) == 0;
    let is_whole = colons & 1 == is_first && colons >> (len.wrapping_sub(1) & 63) & 1 == is_last;
    let parts = colons.count_ones();
    let groups = parts.wrapping_sub((is_first + is_last) as u32);
    let before = _bzhi_u64(colons, gap).count_ones() + 1 - is_first as u32;
    let moved = 7_u32.wrapping_sub(groups);
    let is_of_eight = if has_gap { moved <= 7 } else { parts == 7 };

    // All groups from the left, each in four bytes: its digits, after the bytes that precede them. A gap at the start is one empty group, not two.
    let mut ends = (colons | u64::MAX << len) & !is_first;
    let mut words = [0_u32; 8];
    for (group, word) in words.iter_mut().enumerate() {
        let end = ends.trailing_zeros();
        ends = _blsr_u64(ends);
        let at = end.min(AFTER as u32) as usize;
        *word = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if group == 0 {
            // No colon is before the first group, unless it is the gap.
            *word |= _bzhi_u32(0x3a3a_3a3a, 32_u32.saturating_sub(8 * end));
            *word &= !_bzhi_u32(0xc5c5_c5c5, 32_u32.saturating_sub(8 * end));
        }
    }
    let text = _mm256_set_epi32(
        words[7] as i32,
        words[6] as i32,
        words[5] as i32,
        words[4] as i32,
        words[3] as i32,
        words[2] as i32,
        words[1] as i32,
        words[0] as i32,
    );
    // The digits of a group are after the last colon of its bytes.
    let is_colon = _mm256_cmpeq_epi8(text, _mm256_set1_epi8(b':' as i8));
    let is_colon = _mm256_or_si256(is_colon, _mm256_srli_epi32::<8>(is_colon));
    let is_before = _mm256_or_si256(is_colon, _mm256_srli_epi32::<16>(is_colon));
    let used = if has_gap { groups + 1 } else { 8 }.min(8) as usize;
    let lanes = load_wide(FIRST_LANES[8 - used..].as_flattened().first_chunk().expect("eight lanes"));
    let zeros = _mm256_set1_epi8(b'0' as i8);
    let text = _mm256_blendv_epi8(zeros, text, _mm256_andnot_si256(is_before, lanes));

    let digits = _mm256_sub_epi8(text, zeros);
    let is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(digits, _mm256_set1_epi8(9)), digits);
    let letters =
        _mm256_sub_epi8(_mm256_or_si256(text, _mm256_set1_epi8(0x20)), _mm256_set1_epi8(b'a' as i8));
    let is_letter = _mm256_cmpeq_epi8(_mm256_min_epu8(letters, _mm256_set1_epi8(5)), letters);
    let are_digits = _mm256_movemask_epi8(_mm256_or_si256(is_digit, is_letter)) == -1;
    let nibbles = _mm256_blendv_epi8(_mm256_add_epi8(letters, _mm256_set1_epi8(10)), digits, is_digit);
    let pairs = _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(i16::from_le_bytes([16, 1])));
    let packed = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));

    // The groups after the gap belong at the right end.
    let spread = if has_gap { before.wrapping_mul(8).wrapping_add(moved) } else { 64 };
    let key = _mm_shuffle_epi8(packed, load(&SPREADS[spread.min(64) as usize]));
    let (low, high) = (_mm_cvtsi128_si64(key) as u64, _mm_extract_epi64::<1>(key) as u64);
    let is_address = is_short & !is_long & has_one_gap & is_whole & is_of_eight & are_digits;
    (u128::from(high) << 64 | u128::from(low), is_address)
}
