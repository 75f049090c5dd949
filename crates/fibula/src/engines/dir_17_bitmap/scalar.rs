//! The view of a table that lookups read, and lookups in portable code: one key, and a batch of keys in stages.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::memory::Cell;
use crate::net::Key;

use super::layout::{Dir17Bitmap, Entry, Windows, deeper};
use super::record::{List, Record};

/// A table as kernels read it. They take it by reference, because a copy would be written in parts and then read as a whole,
/// which delays the first load.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) direct: &'a [AtomicU32],
    pub(super) units: &'a [AtomicU64],
    pub(super) step: u32,
}

/// Keys that a stage handles at once.
const BLOCK: usize = 64;

impl View<'_> {
    /// Returns the next hop of a left-aligned key, 0 for no route. `ones` counts bits.
    #[inline(always)]
    pub(super) fn find(&self, windows: Windows, key: u32, ones: impl Fn(u64) -> u32) -> u32 {
        // The entry publishes its unit, so everything else is read through this one entry.
        let entry = Entry(self.direct[windows.direct(key)].load(Ordering::Acquire));
        let word = self.word(windows, entry, key);
        let rank = ones(self.changes(windows, entry, key, word)) as usize;
        let value = self.value(entry.width(), 8 * (word + 1) + (rank << entry.width()));
        if value == deeper(entry.width()) { self.find_deeper(windows, entry, key) } else { value }
    }

    /// Returns a word of the units.
    #[inline(always)]
    pub(super) fn word_at(&self, at: usize) -> u64 {
        self.units[at].read()
    }

    /// Returns the word of the bitmap for a key.
    #[inline(always)]
    fn word(&self, windows: Windows, entry: Entry, key: u32) -> usize {
        // All ones in the second half, else 0, so that the sum below needs no branch.
        let second = 0usize.wrapping_sub(usize::from(key & windows.half_bit() != 0));
        entry.word(self.step) + (entry.offset() & second)
    }

    /// Returns the changes up to the slot of a key, in the uppermost bits.
    #[inline(always)]
    fn changes(&self, windows: Windows, entry: Entry, key: u32, word: usize) -> u64 {
        let uniform = entry.is_uniform(usize::from(key & windows.half_bit() != 0));
        let changes = self.units[word].read() << (63 - windows.slot(key));
        // A uniform half has its value first, so its rank is 0 whatever the bitmap holds.
        changes & u64::from(uniform).wrapping_sub(1)
    }

    /// Returns the value of 2^`width` bytes at a byte, which is a multiple of them.
    #[inline(always)]
    pub(super) fn value(&self, width: u32, byte: usize) -> u32 {
        (self.units[byte / 8].read() >> (8 * (byte % 8))) as u32 & deeper(width)
    }

    /// Returns the next hop of a key whose slot is deeper.
    #[cold]
    #[inline(never)]
    pub(super) fn find_deeper(&self, windows: Windows, entry: Entry, key: u32) -> u32 {
        let place = entry.word(self.step);
        let slot = windows.slot(key);
        let through = |map: usize, slot: u32| (self.units[map].read() << (63 - slot)).count_ones() as usize;
        // The records of the second half come after all those of the first half.
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
            let words = windows.map_words();
            let ranks = (0..=rest as usize / 64).map(|word| {
                let through = if word == rest as usize / 64 { rest % 64 } else { 63 };
                (self.units[begin + word].read() << (63 - through)).count_ones() as usize
            });
            (ranks.sum(), words)
        };
        self.value(list.width, 8 * (begin + words) + (rank << list.width))
    }
}

/// Looks up a batch in stages: all entries of a block, then the bitmaps, their counts, and the values. Only the branch to
/// deeper slots depends on a key.
#[inline(never)]
pub(super) fn batch<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32]) {
    let windows = const { Windows::new(K::BITS) };
    let mut changes = [0; BLOCK];
    let mut places = [0; BLOCK];
    for (keys, found) in keys.chunks(BLOCK).zip(found.chunks_mut(BLOCK)) {
        let (changes, places) = (&mut changes[..keys.len()], &mut places[..keys.len()]);
        for (&key, found) in keys.iter().zip(&mut *found) {
            *found = view.direct[windows.direct(key)].read();
        }
        // One fence for the block: the words of units must not be read before the entries that publish them.
        fence(Ordering::Acquire);
        for (((&key, &entry), changes), place) in
            keys.iter().zip(&*found).zip(&mut *changes).zip(&mut *places)
        {
            let word = view.word(windows, Entry(entry), key);
            *changes = view.changes(windows, Entry(entry), key, word);
            *place = 8 * (word + 1);
        }
        // A separate loop, because the compiler turns it into vectors where there is no instruction that counts bits.
        for changes in &mut *changes {
            *changes = u64::from(changes.count_ones());
        }
        for (((&key, found), &place), &rank) in keys.iter().zip(found).zip(&*places).zip(&*changes) {
            let entry = Entry(*found);
            let value = view.value(entry.width(), place + ((rank as usize) << entry.width()));
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
