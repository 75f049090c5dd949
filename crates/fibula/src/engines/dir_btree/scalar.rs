//! The view of a table that lookups read, and the walk of one key or of a group in stages, with the searches of lines as
//! parameters.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::fib::parts::intervals;
use crate::net::Key;
use crate::simd::{LINE_UNITS, SharedLine, SharedLines, anew, each_lane, fetch_after, fetch_at, put};

use super::layout::{DirBtree, HalfLeaves, LeafForm, OBJECT_WORDS, cut, head, window};
use super::object;

/// Keys of a group.
const GROUP: usize = 16;

/// The distance in bytes between a key and the one that is prefetched when it is looked up.
const AHEAD: usize = 4096;

/// A table as kernels read it. They take it by reference, because a copy would be written in parts and then read as a whole,
/// which delays the first load.
#[derive(Debug)]
pub(in crate::engines) struct View<'a, F = HalfLeaves<'a>> {
    /// Removes the bits of a head that do not index the first table.
    pub(super) first_shift: u32,
    pub(super) tables: &'a [AtomicU32],
    pub(in crate::engines) lines: F,
    pub(super) objects: &'a [AtomicU32],
}

/// Returns the upper part of a key.
#[inline(always)]
fn upper_of<K: Key>(key: K) -> u64 {
    intervals::upper(key, const { cut::<K>().upper as u8 })
}

/// Returns the place of the word to which an entry leads.
#[inline(always)]
pub(super) fn place(entry: u32, bits: u32) -> u32 {
    // The shift uses only the lowest bits of the entry.
    entry.wrapping_add(bits.wrapping_shr(entry))
}

impl<F: LeafForm> View<'_, F> {
    /// Returns the entry or slot to which an entry leads. Its target was written before it.
    #[inline(always)]
    fn follow(&self, entry: u32, bits: u32) -> u32 {
        self.load(place(entry, bits))
    }

    #[inline(always)]
    pub(super) fn load(&self, word: u32) -> u32 {
        self.tables[word as usize].load(Ordering::Acquire)
    }

    /// Returns the entry of the slots of an upper part, and the place of its slot, which is a word that leads to a tree.
    #[inline(always)]
    pub(super) fn slot<K: Key>(&self, upper: u64) -> (u32, u32) {
        let (head, window) = (head::<K>(upper), window(upper));
        let mid = self.load(head >> self.first_shift);
        let sub = self.follow(mid, head);
        let slots = self.follow(sub, window);
        (slots, place(slots, window))
    }

    /// Returns the leaf of a window in a tree.
    #[inline(always)]
    fn leaf(&self, tree: u32, window: u32, rank: impl Fn(&SharedLine, u32) -> u32) -> u32 {
        tree + LINE_UNITS + LINE_UNITS * rank(self.lines.at(tree), window)
    }

    /// Looks up one key.
    #[inline(always)]
    pub(in crate::engines) fn one<K: Key>(
        &self,
        key: K,
        rank: impl Fn(&SharedLine, u32) -> u32,
        value: impl Fn(u32, u32) -> u32,
    ) -> u32 {
        let upper = upper_of(key);
        let leaf = self.leaf(self.load(self.slot::<K>(upper).1), window(upper), rank);
        let value = value(leaf, window(upper));
        if value & F::BELOW == 0 { value } else { self.below(leaf, value, key) }
    }

    /// Finds the leaves and values of a group of keys. In each stage, no key waits for another. Keys and lines are hidden from
    /// the compiler between the stages. Both are then read from memory, because there are not enough registers for them.
    #[inline(always)]
    fn group<K: Key, const COUNT: usize>(
        &self,
        keys: &[K; COUNT],
        found: &mut [u32; COUNT],
        lines: &mut [u32; GROUP],
        rank: impl Fn(&SharedLine, u32) -> u32,
        value: impl Fn(u32, u32) -> u32,
    ) {
        each_lane::<COUNT>(|lane| {
            put(&mut lines[lane], self.load(self.slot::<K>(upper_of(keys[lane])).1));
        });
        let keys = anew(keys, lines);
        each_lane::<COUNT>(|lane| {
            let leaf = self.leaf(lines[lane], window(upper_of(keys[lane])), &rank);
            put(&mut lines[lane], leaf);
        });
        let keys = anew(keys, lines);
        each_lane::<COUNT>(|lane| {
            // Four keys share a cache line, so one fetch is enough for them.
            if lane % (64 / size_of::<u128>()) == 0 {
                fetch_after(&keys[lane], AHEAD);
            }
            put(&mut found[lane], value(lines[lane], window(upper_of(keys[lane]))));
        });
    }

    /// Replaces the values of a group that are not next hops, if there are any.
    #[inline(always)]
    fn finish<K: Key>(
        &self,
        keys: &[K],
        lines: &[u32],
        found: &mut [u32],
        any_has: impl Fn(&[u32], u32) -> bool,
    ) {
        if any_has(found, F::BELOW) {
            self.group_below(keys, lines, found);
        }
    }

    /// Replaces the values of a group that are not next hops.
    #[inline(never)]
    fn group_below<K: Key>(&self, keys: &[K], lines: &[u32], found: &mut [u32]) {
        // All objects are on their way before the first is read.
        for (&line, found) in lines.iter().zip(&mut *found) {
            if *found & F::BELOW != 0 {
                fetch_at(self.objects, self.lines.near(self.lines.at(line), *found) * OBJECT_WORDS);
            }
        }
        for ((&key, &line), found) in keys.iter().zip(lines).zip(found) {
            if *found & F::BELOW != 0 {
                *found = self.below(line, *found, key);
            }
        }
    }

    /// Returns the next hop of a key whose value in the leaf is an object.
    #[inline(never)]
    fn below<K: Key>(&self, leaf: u32, value: u32, key: K) -> u32 {
        let window = window(upper_of(key));
        let unit = self.lines.object(self.objects, self.lines.at(leaf), value, window);
        let lower = intervals::lower(key, const { cut::<K>().upper as u8 });
        object::find(self.objects, unit, lower)
    }

    /// Looks up a batch: in groups, then in a smaller group. The last keys are looked up again with those before, or one by one.
    #[inline(always)]
    pub(in crate::engines) fn batch<K: Key>(
        &self,
        keys: &[K],
        found: &mut [u32],
        rank: impl Fn(&SharedLine, u32) -> u32,
        value: impl Fn(u32, u32) -> u32,
        any_has: impl Fn(&[u32], u32) -> bool,
    ) {
        const FEW: usize = GROUP / 2;
        let [mut lines, mut lines_before] = [&mut [0; GROUP], &mut [0; GROUP]];
        let (groups, rest) = keys.as_chunks::<GROUP>();
        let (of_groups, of_rest) = found.as_chunks_mut::<GROUP>();
        // A group is finished after the next one. Its values were stored one by one, and can by then be loaded as one vector.
        let mut before: Option<(&[K; GROUP], &mut [u32; GROUP])> = None;
        for group in groups.iter().zip(of_groups) {
            self.group(group.0, group.1, lines, &rank, &value);
            if let Some((keys, found)) = before.replace(group) {
                self.finish(keys, lines_before, found, &any_has);
            }
            core::mem::swap(&mut lines, &mut lines_before);
        }
        if let Some((keys, found)) = before {
            self.finish(keys, lines_before, found, &any_has);
        }
        let mut few = |keys: &[K; FEW], found: &mut [u32; FEW]| {
            self.group(keys, found, lines, &rank, &value);
            self.finish(keys, &lines[..], found, &any_has);
        };
        if let (Some(keys), Some(found)) = (rest.first_chunk::<FEW>(), of_rest.first_chunk_mut::<FEW>()) {
            few(keys, found);
        }
        let last = rest.len() % FEW;
        if last == 0 {
            return;
        }
        if let (Some(keys), Some(found)) = (keys.last_chunk::<FEW>(), found.last_chunk_mut::<FEW>()) {
            few(keys, found);
        } else {
            for (&key, found) in keys.iter().zip(found) {
                *found = self.one(key, &rank, &value);
            }
        }
    }
}

/// Looks up a batch in portable code.
pub(super) fn batch<K: Key>(view: &View<'_>, keys: &[K], found: &mut [u32]) {
    let value = |leaf, key| crate::simd::leaf_by_thirds(view.lines.at(leaf), key);
    view.batch(keys, found, crate::simd::rank_by_thirds, value, crate::simd::any_has);
}

/// Looks up one key in portable code.
pub(super) fn one<K: Key>(view: &View<'_>, key: K) -> u32 {
    view.one(key, crate::simd::rank_by_thirds, |leaf, key| {
        crate::simd::leaf_by_thirds(view.lines.at(leaf), key)
    })
}

impl<K: Key> DirBtree<K> {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        self.view_of(self.halves())
    }

    /// Returns the lines, with leaves of halves.
    #[inline]
    pub(super) fn halves(&self) -> HalfLeaves<'_> {
        HalfLeaves(SharedLines::new(&self.lines))
    }

    /// Returns the view of lines whose leaves have this form.
    #[inline]
    pub(in crate::engines) fn view_of<F: LeafForm>(&self, lines: F) -> View<'_, F> {
        View { first_shift: 32 - self.first_bits, tables: &self.tables, lines, objects: &self.objects }
    }
}
