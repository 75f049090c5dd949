//! The view of a table that lookups read, and lookups in portable code: one key, and a batch of keys in stages.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::memory::Cell;
use crate::net::Key;

use super::layout::{Dir17Bitmap, Entry, Windows, deeper};
use super::record::{List, Record};

/// A table as kernels read it. They take it by reference: a copy would be written in parts and read as a whole before the
/// first load.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) direct: &'a [AtomicU32],
    pub(super) units: &'a [AtomicU64],
    pub(super) step: u32,
}

/// Keys that a stage handles at once.
const BLOCK: usize = 64;

impl View<'_> {
    /// Returns the next hop of a left-aligned key, 0 for no route.
    #[inline(always)]
    pub(super) fn find(&self, windows: Windows, key: u32) -> u32 {
        // Everything else is read through this one entry, which publishes its unit.
        let entry = Entry(self.direct[windows.direct(key)].load(Ordering::Acquire));
        let value = self.value(entry, self.place(windows, entry, key));
        if value == deeper(entry.width()) { self.find_deeper(windows, entry, key) } else { value }
    }

    /// Returns the byte of the value of a key.
    #[inline(always)]
    fn place(&self, windows: Windows, entry: Entry, key: u32) -> usize {
        let half = u32::from(key & windows.half_bit() != 0);
        let word = entry.word(self.step) + if half == 1 { entry.offset() } else { 0 };
        let mask = if entry.is_uniform(half) { 0 } else { u64::MAX };
        let changes = (self.units[word].read() & mask) << (63 - windows.slot(key));
        8 * (word + 1) + ((changes.count_ones() as usize) << entry.width())
    }

    /// Returns the value at a byte.
    #[inline(always)]
    fn value(&self, entry: Entry, byte: usize) -> u32 {
        self.cut(entry.width(), byte)
    }

    /// Returns the value of 2^`width` bytes at a byte, which it divides.
    #[inline(always)]
    fn cut(&self, width: u32, byte: usize) -> u32 {
        (self.units[byte / 8].read() >> (8 * (byte % 8))) as u32 & deeper(width)
    }

    /// Returns the next hop of a key whose slot is deeper.
    #[cold]
    #[inline(never)]
    pub(super) fn find_deeper(&self, windows: Windows, entry: Entry, key: u32) -> u32 {
        let place = entry.word(self.step);
        let slot = windows.slot(key);
        let through = |map: usize, slot: u32| (self.units[map].read() << (63 - slot)).count_ones() as usize;
        let rank = if key & windows.half_bit() == 0 {
            through(place - 1, slot)
        } else {
            through(place - 1, 63) + through(place - 2, slot)
        };
        let record = Record(self.units[place - 2 - rank].read());
        let rest = windows.rest(key);
        record
            .as_list()
            .map_or_else(|| record.answer(rest), |list| self.find_listed(windows, place, list, rest))
    }

    fn find_listed(&self, windows: Windows, place: usize, list: List, rest: u32) -> u32 {
        let begin = place - list.distance;
        let (rank, words) = if list.sparse {
            let before = self.units[begin].read().to_le_bytes().into_iter();
            (before.filter(|&last| u32::from(last) < rest).count(), 1)
        } else {
            let words = (windows.rests() / 64).max(1);
            let ranks = (0..=rest as usize / 64).map(|word| {
                let through = if word == rest as usize / 64 { rest % 64 } else { 63 };
                (self.units[begin + word].read() << (63 - through)).count_ones() as usize
            });
            (ranks.sum(), words)
        };
        self.cut(list.width, 8 * (begin + words) + (rank << list.width))
    }
}

/// Looks up a batch in stages: all entries of a block, then the places of the values, then the values. No branch depends on
/// a key but the one to deeper slots.
#[inline(always)]
pub(super) fn batch<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32]) {
    let windows = const { Windows::new(K::BITS) };
    for (keys, found) in keys.chunks(BLOCK).zip(found.chunks_mut(BLOCK)) {
        for (&key, found) in keys.iter().zip(&mut *found) {
            *found = view.direct[windows.direct(key)].read();
        }
        fence(Ordering::Acquire);
        let mut places = [0u32; BLOCK];
        for ((&key, &entry), place) in keys.iter().zip(&*found).zip(&mut places) {
            *place = view.place(windows, Entry(entry), key) as u32;
        }
        for ((&key, found), &place) in keys.iter().zip(found).zip(&places) {
            let entry = Entry(*found);
            let value = view.value(entry, place as usize);
            *found =
                if value == deeper(entry.width()) { view.find_deeper(windows, entry, key) } else { value };
        }
    }
}

impl<K: Key> Dir17Bitmap<K> {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        View { direct: &self.direct, units: &self.units, step: self.step }
    }
}
