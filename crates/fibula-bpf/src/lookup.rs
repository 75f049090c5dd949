//! Lookups in the words of the maps, as `include/fibula_bpf.h` makes them: for `get` and `check`.

use crate::layout::Engine;
use crate::table::Words;

/// Returns the value of all ones of a width: 8, 16 or 32 bits.
const fn width_mask(width: u32) -> u32 {
    (u32::MAX as u64 >> (32u32.wrapping_sub(8 << (width & 3)) & 63)) as u32
}

impl Words<'_> {
    /// Returns the next hop of an IPv4 address, 0 for no route.
    pub(crate) fn lookup_v4(&self, key: u32) -> u32 {
        match self.engine {
            Engine::Dir17Bitmap => self.bitmap(key),
            _ => self.lines(key),
        }
    }

    fn lines(&self, key: u32) -> u32 {
        let width = self.number & 3;
        let entry = self.word(0, key >> (14 - width));
        let slot = key >> 8 & (63 >> width);
        let place = entry.wrapping_add(slot << width);
        let found = self.value(1, place.into(), width);
        if found != width_mask(width) {
            return found;
        }
        let (map, rest) = (self.word(2, place >> 6), key & 0xff);
        let rank = |word: u32, bit: u32| {
            (word >> 24)
                .wrapping_add((word & (0xff_ffffu32.wrapping_shr(23u32.wrapping_sub(bit)))).count_ones())
        };
        let at =
            map.wrapping_sub(2u32.wrapping_mul(rank(self.word(3, map.wrapping_add(slot / 24)), slot % 24)));
        let (most, other) = (self.word(3, at), self.word(3, at.wrapping_add(1)));
        if most >> 31 == 0 {
            return record(most, other, rest);
        }
        let (shift, width, offset) = (most >> 28 & 7, most >> 26 & 3, most & 0x3ff_ffff);
        let (rank, values) = if shift == 7 {
            let head = self.word(3, offset).to_le_bytes();
            (head.iter().filter(|&&byte| u32::from(byte) < rest).count() as u32, offset + 1)
        } else {
            let slot = rest >> shift;
            (rank(self.word(3, offset + slot / 24), slot % 24), offset + (256u32 >> shift).div_ceil(24))
        };
        self.value(3, 4 * u64::from(values) + (u64::from(rank) << width), width)
    }

    fn bitmap(&self, key: u32) -> u32 {
        let entry = self.word(0, key >> 15);
        let (second, slot, rest) = (key >> 14 & 1, key >> 8 & 63, key & 0xff);
        let (width, place) = (entry & 3, u64::from((entry >> 4 & 0x3f_ffff) << (self.number & 7)));
        let ones = |map: u64, bit: u32| map.wrapping_shl(63 - bit).count_ones();
        let at = place + if second == 1 { u64::from(entry >> 26) } else { 0 };
        let is_uniform = entry >> (2 + second) & 1 == 1;
        let rank = if is_uniform { 0 } else { ones(self.long(1, at), slot) };
        let found = self.value(1, 8 * (at + 1) + (u64::from(rank) << width), width);
        if found != width_mask(width) {
            return found;
        }
        let mut before = ones(self.long(1, place.wrapping_sub(1)), if second == 1 { 63 } else { slot });
        if second == 1 {
            before += ones(self.long(1, place.wrapping_sub(2)), slot);
        }
        let pair = self.long(1, place.wrapping_sub(2 + u64::from(before)));
        let (most, other) = (pair as u32, (pair >> 32) as u32);
        if most >> 31 == 0 {
            return record(most, other, rest);
        }
        let begin = u64::from((place as u32).wrapping_sub(most & 0x7fff_ffff));
        let width = other & 3;
        let (rank, words) = if other & 4 != 0 {
            let list = self.long(1, begin).to_le_bytes();
            (list.iter().filter(|&&byte| u32::from(byte) < rest).count() as u32, 1)
        } else {
            let map = |at: u32| self.long(1, begin + u64::from(at));
            let whole: u32 = (0..rest / 64).map(|at| map(at).count_ones()).sum();
            (whole + ones(map(rest / 64), rest % 64), 4)
        };
        self.value(1, 8 * (begin + words) + (u64::from(rank) << width), width)
    }

    /// Returns the next hop of an IPv6 address, 0 for no route.
    pub(crate) fn lookup_v6(&self, key: u128) -> u32 {
        let (head, window) = ((key >> 96) as u32, (key >> 80) as u32);
        let follow = |entry: u32, bits: u32| self.word(0, entry.wrapping_add(bits.wrapping_shr(entry)));
        let first = u64::from(head) >> (32u32.wrapping_sub(self.number & 31) & 63);
        let tree = follow(follow(follow(self.word(0, first as u32), head), window), window).wrapping_mul(2);
        let below = |line: u32, count: u32| {
            (0..count).filter(|&at| (self.word(1, line.wrapping_add(at)) as i32) < window as i32).count()
                as u32
        };
        let leaf = tree.wrapping_add(16 + 16 * below(tree, 16));
        let half = |half: u32| self.word(1, leaf.wrapping_add(half / 2)) >> (16 * (half % 2)) & 0xffff;
        let value = half(20 + below(leaf, 10));
        if value >> 15 == 0 {
            return value;
        }
        let object = 2 * ((half(31) << 14) + (value & 0x7fff));
        let (kind, second) = (self.word(2, object), self.word(2, object + 1));
        let (count, rest) = (kind >> 2, key & (u128::MAX >> 48));
        let low = |at: u32| u64::from(self.word(2, at.wrapping_add(1))) << 32 | u64::from(self.word(2, at));
        if kind & 3 == 0 {
            return (0..count.min(8)).fold(second, |found, number| {
                let at = object + 2 + 4 * number;
                let lengths = self.word(2, at + 2);
                let differs = (rest as u64 ^ low(at)) >> (lengths >> 16 & 63) >> (lengths >> 22 & 63);
                let before = ((rest >> 64) as u32 ^ (lengths & 0xffff)) >> (lengths >> 28);
                if differs == 0 && before == 0 { self.word(2, at + 3) } else { found }
            });
        }
        let piece = |number: u32| second.wrapping_mul(2).wrapping_add(number.wrapping_mul(4));
        let (mut from, mut to) = (0, count.saturating_sub(1));
        while from < to {
            let middle = from + (to - from) / 2;
            let at = piece(middle);
            let last = u128::from(self.word(2, at.wrapping_add(2))) << 64 | u128::from(low(at));
            if last < rest { from = middle + 1 } else { to = middle }
        }
        self.word(2, piece(from).wrapping_add(3))
    }

    /// Returns the value of 8, 16 or 32 bits at a byte of an array.
    fn value(&self, array: usize, byte: u64, width: u32) -> u32 {
        let bytes = self.engine.word_bytes()[array] as u64;
        let word =
            if bytes == 8 { self.long(array, byte / 8) } else { self.word(array, (byte / 4) as u32).into() };
        (word >> (8 * (byte % bytes))) as u32 & width_mask(width)
    }
}

/// Returns the answer of a record: one range of a slot has another one.
fn record(most: u32, other: u32, rest: u32) -> u32 {
    let is_in = (most & 0xff) <= rest && rest <= (other & 0xff);
    (if is_in { other } else { most }) >> 8
}
