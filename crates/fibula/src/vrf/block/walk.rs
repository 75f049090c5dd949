//! Lookups in blocks: one key, or columns of keys that have a root each.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::net::Key;
use crate::simd::{
    LINE_UNITS, LINE_WORDS, SharedLine, SharedLines, each_lane, fetch_past, kernel, leaf_by_thirds, put,
    rank_by_thirds,
};

use super::layout::{BELOW, LEVELS, LINES, OBJECT_WORDS, Object, Root, SIGN, is_tree, window, windows};

/// Keys of a group.
const GROUP: usize = 16;

/// Groups between one and that whose roots are prefetched meanwhile.
const AHEAD: usize = 2;

/// The blocks of a family as lookups read them.
#[derive(Debug, Clone, Copy)]
pub(in crate::vrf) struct View<'a> {
    words: &'a [AtomicU32],
    lines: SharedLines<'a>,
}

impl<'a> View<'a> {
    #[inline]
    pub(in crate::vrf) fn new(words: &'a [AtomicU32]) -> Self {
        Self { words, lines: SharedLines::new(words) }
    }

    /// Prefetches the roots of the trees of a group.
    #[inline(always)]
    fn fetch(&self, roots: &[u32; GROUP]) {
        each_lane::<GROUP>(|lane| fetch_past(self.words, Root(roots[lane]).place() as usize * LINE_WORDS));
    }

    #[inline(always)]
    fn line(&self, line: u32) -> &'a SharedLine {
        self.lines.at(line.wrapping_mul(LINE_UNITS))
    }

    /// Returns the value of a window in a tree.
    #[inline(always)]
    fn tree(
        &self,
        root: u32,
        levels: u32,
        window: u32,
        rank: &impl Fn(&SharedLine, u32) -> u32,
        leaf: &impl Fn(&SharedLine, u32) -> u32,
    ) -> u32 {
        let mut at = root;
        for below in (0..levels as usize).rev() {
            at += 1 + rank(self.line(at), window ^ SIGN) * LINES[below % LEVELS];
        }
        leaf(self.line(at), window ^ SIGN)
    }

    /// Returns an object of the block with a root.
    #[inline(always)]
    fn object(&self, root: Root, value: u32) -> Object {
        let end = root.place() as usize * LINE_WORDS - (value & (BELOW - 1)) as usize * OBJECT_WORDS;
        let words = &self.words[end - OBJECT_WORDS..end];
        core::array::from_fn(|at| words[at].load(Ordering::Relaxed))
    }

    /// Looks up one key in a tree.
    #[inline(always)]
    fn one<K: Key>(
        &self,
        root: Root,
        key: K,
        rank: &impl Fn(&SharedLine, u32) -> u32,
        leaf: &impl Fn(&SharedLine, u32) -> u32,
    ) -> u32 {
        let value = self.tree(root.place(), root.levels(), window(key, 0), rank, leaf);
        if value & BELOW == 0 { value } else { self.below(root, value, key, rank, leaf) }
    }

    /// Returns the next hop of a key whose first value is an object.
    #[inline(never)]
    fn below<K: Key>(
        &self,
        root: Root,
        mut value: u32,
        key: K,
        rank: &impl Fn(&SharedLine, u32) -> u32,
        leaf: &impl Fn(&SharedLine, u32) -> u32,
    ) -> u32 {
        let mut depth = 0;
        while value & BELOW != 0 {
            depth += 1;
            // A next hop that is too large for a value needs no further window.
            let window = if depth < windows::<K>() { window(key, depth) } else { 0 };
            let object = self.object(root, value);
            if !is_tree(&object) {
                return inside(&object, window);
            }
            let [distance, levels, ..] = object;
            value = self.tree(root.place() + distance, levels, window, rank, leaf);
        }
        value
    }

    /// Looks up a group: all keys take a step before any takes the next. A tree with fewer levels than another of the group
    /// stays where it is meanwhile, since a branch for it would be mispredicted.
    #[inline(always)]
    fn group<K: Key>(
        &self,
        roots: &[u32; GROUP],
        keys: &[K; GROUP],
        found: &mut [u32; GROUP],
        rank: &impl Fn(&SharedLine, u32) -> u32,
        leaf: &impl Fn(&SharedLine, u32) -> u32,
    ) {
        let mut at = roots.map(|root| Root(root).place());
        let key = |lane: usize| window(keys[lane], 0) ^ SIGN;
        let most = roots.iter().fold(0, |most, &root| most.max(root)) >> Root::LEVELS_AT;
        for below in (0..most).rev() {
            let lines = LINES[below as usize % LEVELS];
            each_lane::<GROUP>(|lane| {
                let next = at[lane] + 1 + rank(self.line(at[lane]), key(lane)) * lines;
                let is_inner = Root(roots[lane]).levels() > below;
                let next = if is_inner { next } else { at[lane] };
                put(&mut at[lane], next);
            });
        }
        each_lane::<GROUP>(|lane| put(&mut found[lane], leaf(self.line(at[lane]), key(lane))));
    }

    /// Replaces values of a group that are objects.
    #[inline(always)]
    fn finish<K: Key>(
        &self,
        roots: &[u32; GROUP],
        keys: &[K; GROUP],
        found: &mut [u32; GROUP],
        rank: &impl Fn(&SharedLine, u32) -> u32,
        leaf: &impl Fn(&SharedLine, u32) -> u32,
    ) {
        if windows::<K>() == 1 {
            for ((&root, &key), found) in roots.iter().zip(keys).zip(found) {
                if *found & BELOW != 0 {
                    *found = self.below(Root(root), *found, key, rank, leaf);
                }
            }
            return;
        }
        // Most values are objects, and most objects records. No branch tells them apart: a value that is a next hop reads
        // what is before the first line of its block, or the first words there are, and stays.
        let mut trees = 0;
        for lane in 0..GROUP {
            let (root, value) = (Root(roots[lane]), found[lane]);
            let is_below = value & BELOW != 0;
            let number = (value & (BELOW - 1)) as usize + 1;
            let at = root.place() as usize * LINE_WORDS - if is_below { number * OBJECT_WORDS } else { 0 };
            let words: &[AtomicU32; OBJECT_WORDS] =
                self.words[at..].first_chunk().expect("objects precede lines");
            let object: Object = core::array::from_fn(|at| words[at].load(Ordering::Relaxed));
            trees |= u32::from(is_below && is_tree(&object)) << lane;
            let answer = inside(&object, window(keys[lane], 1));
            let keep = is_below && !is_tree(&object);
            found[lane] = if keep { answer } else { value };
        }
        while trees != 0 {
            let lane = trees.trailing_zeros() as usize;
            trees &= trees - 1;
            found[lane] = self.below(Root(roots[lane]), found[lane], keys[lane], rank, leaf);
        }
    }

    /// Looks up a group, to the end. Not a closure in [`column`](Self::column), which would be a function of its own, compiled
    /// without the instruction set.
    #[inline(always)]
    fn answer<K: Key>(
        &self,
        roots: &[u32; GROUP],
        keys: &[K; GROUP],
        found: &mut [u32; GROUP],
        rank: &impl Fn(&SharedLine, u32) -> u32,
        leaf: &impl Fn(&SharedLine, u32) -> u32,
        any_has: &impl Fn(&[u32], u32) -> bool,
    ) {
        let mut values = [0; GROUP];
        self.group(roots, keys, &mut values, rank, leaf);
        if any_has(&values, BELOW) {
            self.finish(roots, keys, &mut values, rank, leaf);
        }
        *found = values;
    }

    /// Looks up a column: groups, then the last ones once more with those before them, or one by one.
    #[inline(always)]
    fn column<K: Key>(
        &self,
        roots: &[u32],
        keys: &[K],
        found: &mut [u32],
        rank: impl Fn(&SharedLine, u32) -> u32,
        leaf: impl Fn(&SharedLine, u32) -> u32,
        any_has: impl Fn(&[u32], u32) -> bool,
    ) {
        let of_groups = roots.as_chunks().0;
        let groups = of_groups.iter().zip(keys.as_chunks().0).zip(found.as_chunks_mut().0);
        for (number, ((roots, keys), found)) in groups.enumerate() {
            if let Some(ahead) = of_groups.get(number + AHEAD) {
                self.fetch(ahead);
            }
            self.answer(roots, keys, found, &rank, &leaf, &any_has);
        }
        if keys.len().is_multiple_of(GROUP) {
            return;
        }
        if let (Some(roots), Some(keys), Some(found)) =
            (roots.last_chunk(), keys.last_chunk(), found.last_chunk_mut())
        {
            self.answer(roots, keys, found, &rank, &leaf, &any_has);
        } else {
            for ((&root, &key), found) in roots.iter().zip(keys).zip(found) {
                *found = self.one(Root(root), key, &rank, &leaf);
            }
        }
    }
}

/// Returns the next hop that a record has for a window.
#[inline(always)]
fn inside(record: &Object, window: u32) -> u32 {
    let [other, inside, first, last] = *record;
    if first <= window && window <= last { inside } else { other }
}

fn column_portable<K: Key>(view: &View<'_>, roots: &[u32], keys: &[K], found: &mut [u32]) {
    view.column(roots, keys, found, rank_by_thirds, leaf_by_thirds, crate::simd::any_has);
}

fn one_portable<K: Key>(view: &View<'_>, root: Root, key: K) -> u32 {
    view.one(root, key, &rank_by_thirds, &leaf_by_thirds)
}

kernel! {
    /// Looks up a column of keys, each in the tree of its root, all of the same length: [`View::column`].
    #[allow(clippy::redundant_closure, reason = "functions compiled for an instruction set cannot be passed as closures")]
    pub(in crate::vrf) fn column<K: Key>(view: &View<'_>, roots: &[u32], keys: &[K], found: &mut [u32])
    scalar column_portable;
    vector op {
        view.column(
            roots,
            keys,
            found,
            |line, key| op::lines::rank(line, key),
            |line, key| op::lines::leaf(line, key),
            |values, bits| op::lines::any_has(values, bits),
        );
    }
}

kernel! {
    /// Looks up one key: [`View::one`].
    #[allow(clippy::redundant_closure, reason = "functions compiled for an instruction set cannot be passed as closures")]
    pub(in crate::vrf) fn one<K: Key>(view: &View<'_>, root: Root, key: K) -> u32;
    scalar one_portable;
    vector op {
        view.one(root, key, &|line: &SharedLine, key| op::lines::rank(line, key), &|line: &SharedLine, key| op::lines::leaf(line, key))
    }
}
