//! The view of a table that lookups read, and lookups of one key in portable code.

use core::sync::atomic::AtomicU32;

use crate::fib::parts::overflow::{Overflow, SlotWindows, width_mask};
use crate::memory::Cell;
use crate::net::Key;
use crate::simd::Longs;

use super::layout::{Dir17Sparse, Entry, GROUP_BITS, half_bits, windows};

/// A table as kernels read it.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) words: Longs<'a>,
    pub(super) below: &'a [AtomicU32],
    pub(super) width: u32,
}

/// The entry of a key, and the byte of the first entry of its group.
struct Led {
    entry: Entry,
    base: u32,
}

impl Led {
    /// Returns the byte of the first stored byte of the unit, or the first entry where there is no unit.
    #[inline(always)]
    fn place(&self) -> u32 {
        self.base + if self.entry.mask() == 0 { 0 } else { self.entry.place() }
    }
}

impl View<'_> {
    /// Returns the next hop of a left-aligned key, 0 for no route. `ones` counts bits.
    #[inline(always)]
    pub(super) fn find(&self, windows: SlotWindows, key: u32, ones: impl Fn(u64) -> u32) -> u32 {
        let led = self.led(windows, key, &ones);
        let (mask, place) = (led.entry.mask(), led.place());
        let (slot, half_bits) = (windows.slot(key), half_bits(windows));
        let (half, slot) = (slot >> half_bits, slot & ((1 << half_bits) - 1));
        // All ones in the second half, so that sums need no branch.
        let second = 0u32.wrapping_sub(half);
        let own = mask >> (8 * half) & 0xff;
        let counts = byte_counts(mask | (own & ((1 << (slot / 8)) - 1)) << 16);
        let first_bytes = counts & 0xff;
        let within = (own >> (slot / 8) & 1) * (slot % 8 + 1);
        let rank = self.rank(place + (first_bytes & second), 8 * (counts >> 16) + within, ones);
        let after = place + first_bytes + (counts >> 8 & 0xff) + (rank << self.width);
        let ahead = place.wrapping_sub((rank + 1) << self.width);
        // Where there is no unit, the first entry is read in place of a value.
        let at = if half == 0 { ahead } else { after };
        let value = self.words.long_at(if mask == 0 { place } else { at }) as u32 & width_mask(self.width);
        let value = if mask == 0 { led.entry.place() } else { value };
        if value == width_mask(self.width) { self.find_deeper(windows, key) } else { value }
    }

    /// Returns the entry of a key.
    #[inline(always)]
    fn led(&self, windows: SlotWindows, key: u32, ones: impl Fn(u64) -> u32) -> Led {
        let direct = windows.direct(key);
        let group = self.words.slice()[direct >> GROUP_BITS].read();
        let number = direct & ((1 << GROUP_BITS) - 1);
        let (rank, base) = (ones(group << (63 - number)), (group >> 32) as u32);
        Led { entry: Entry(self.words.long_at(base + Entry::BYTES as u32 * rank) as u32), base }
    }

    /// Counts the set bits among the first `bits` from a byte on, at most 64.
    #[inline(always)]
    fn rank(&self, at: u32, bits: u32, ones: impl Fn(u64) -> u32) -> u32 {
        let beyond = 64 - bits;
        // A shift by 64 is not one, but two shifts by halves of it are.
        ones(self.words.long_at(at) << (beyond / 2) << (beyond - beyond / 2))
    }

    /// Returns the next hop of a key whose slot is deeper.
    #[cold]
    #[inline(never)]
    pub(super) fn find_deeper(&self, windows: SlotWindows, key: u32) -> u32 {
        let led = self.led(windows, key, u64::count_ones);
        // The place of the map follows the values of the second half.
        let [all, first] = [0xffff, 0xff].map(|bytes| (led.entry.mask() & bytes).count_ones());
        let rank = self.rank(led.place() + first, 8 * (all - first), u64::count_ones);
        let map = self.words.long_at(led.place() + all + ((rank + 1) << self.width)) as u32;
        Overflow { windows, area: self.below }.find(map, key)
    }
}

/// Counts the set bits of each byte, as three sums: few machines count bytes one by one, and some count nothing.
#[inline(always)]
const fn byte_counts(bits: u32) -> u32 {
    let twos = bits - (bits >> 1 & 0x5555_5555);
    let fours = (twos & 0x3333_3333) + (twos >> 2 & 0x3333_3333);
    (fours + (fours >> 4)) & 0x0f0f_0f0f
}

/// Looks up left-aligned keys one after the other.
pub(super) fn each<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32]) {
    for (&key, found) in keys.iter().zip(found) {
        *found = view.find(const { windows(K::BITS) }, key, u64::count_ones);
    }
}

impl<K: Key> Dir17Sparse<K> {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        View { words: Longs::new(&self.words), below: &self.below, width: self.width }
    }
}
