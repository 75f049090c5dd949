//! Lookups in blocks: one key, or columns of keys that have a root each.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::net::Key;
use crate::simd::{
    LINE_UNITS, LINE_WORDS, SharedLine, SharedLines, WIDE, any_has, double_ranks_by_thirds, each_lane,
    fetch_past, kernel, leaf_by_thirds, leaves_by_thirds, rank_by_thirds,
};

use super::layout::{BELOW, BlockRoot, LEVELS, LINES, OBJECT_WORDS, Object, SIGN, is_tree, window, windows};

/// Keys of a group.
const GROUP: usize = WIDE;

/// A number for each key of a group.
type Lanes = [u32; GROUP];

/// Groups that take each step one after the other, so that the lines of all are on their way together.
const ABREAST: usize = 4;

/// The searches of lines that an instruction set has, as closures, which are compiled for it.
struct Searches<R, L, Rs, Ls, H> {
    /// Counts the words of a line that are below a key.
    rank: R,
    /// Returns the value of a leaf for a key.
    leaf: L,
    /// Both for each lane, twice for the first: the line at its place, in units, and its key.
    double_ranks: Rs,
    leaves: Ls,
    /// Returns whether any of the values has any of these bits.
    any_has: H,
}

/// The searches within a line, implemented by [`Searches`].
trait Search {
    fn rank(&self, line: &SharedLine, key: u32) -> u32;
    fn leaf(&self, line: &SharedLine, key: u32) -> u32;
    fn double_ranks(&self, lines: SharedLines<'_>, places: &Lanes, keys: &Lanes, to: &mut Lanes);
    fn leaves(&self, lines: SharedLines<'_>, places: &Lanes, keys: &Lanes, to: &mut Lanes);
    fn any_has(&self, values: &[u32], bits: u32) -> bool;
}

impl<R, L, Rs, Ls, H> Search for Searches<R, L, Rs, Ls, H>
where
    R: Fn(&SharedLine, u32) -> u32,
    L: Fn(&SharedLine, u32) -> u32,
    Rs: Fn(SharedLines<'_>, &Lanes, &Lanes, &mut Lanes),
    Ls: Fn(SharedLines<'_>, &Lanes, &Lanes, &mut Lanes),
    H: Fn(&[u32], u32) -> bool,
{
    #[inline(always)]
    fn rank(&self, line: &SharedLine, key: u32) -> u32 {
        (self.rank)(line, key)
    }

    #[inline(always)]
    fn leaf(&self, line: &SharedLine, key: u32) -> u32 {
        (self.leaf)(line, key)
    }

    #[inline(always)]
    fn double_ranks(&self, lines: SharedLines<'_>, places: &Lanes, keys: &Lanes, to: &mut Lanes) {
        (self.double_ranks)(lines, places, keys, to);
    }

    #[inline(always)]
    fn leaves(&self, lines: SharedLines<'_>, places: &Lanes, keys: &Lanes, to: &mut Lanes) {
        (self.leaves)(lines, places, keys, to);
    }

    #[inline(always)]
    fn any_has(&self, values: &[u32], bits: u32) -> bool {
        (self.any_has)(values, bits)
    }
}

/// The searches of a module of operations. Functions that are compiled for a set cannot be passed themselves.
macro_rules! searches {
    ($lines:path) => {{
        use $lines as lines;
        Searches {
            rank: |line: &SharedLine, key| lines::rank(line, key),
            leaf: |line: &SharedLine, key| lines::leaf(line, key),
            double_ranks: |from: SharedLines<'_>, places: &Lanes, keys: &Lanes, to: &mut Lanes| {
                lines::double_ranks(from, places, keys, to);
            },
            leaves: |from: SharedLines<'_>, places: &Lanes, keys: &Lanes, to: &mut Lanes| {
                lines::leaves(from, places, keys, to);
            },
            any_has: |values: &[u32], bits| lines::any_has(values, bits),
        }
    }};
}

/// The searches of portable code.
macro_rules! portable {
    () => {
        Searches {
            rank: rank_by_thirds,
            leaf: leaf_by_thirds,
            double_ranks: double_ranks_by_thirds,
            leaves: leaves_by_thirds,
            any_has,
        }
    };
}

/// The blocks of a family as lookups read them.
#[derive(Debug, Clone, Copy)]
pub(in crate::vrf) struct BlocksView<'a> {
    words: &'a [AtomicU32],
    lines: SharedLines<'a>,
}

impl<'a> BlocksView<'a> {
    #[inline]
    pub(in crate::vrf) fn new(words: &'a [AtomicU32]) -> Self {
        Self { words, lines: SharedLines::new(words) }
    }

    /// Prefetches the line at a distance of this number of units.
    #[inline(always)]
    fn fetch(&self, place: u32) {
        fetch_past(self.words, place as usize * (LINE_WORDS / LINE_UNITS as usize));
    }

    #[inline(always)]
    fn line(&self, line: u32) -> &'a SharedLine {
        self.lines.at(line.wrapping_mul(LINE_UNITS))
    }

    /// Returns the value of a window in a tree.
    #[inline(always)]
    fn tree(&self, root: u32, levels: u32, window: u32, search: &impl Search) -> u32 {
        let mut at = root;
        for below in (0..levels as usize).rev() {
            // There are fewer levels, so the remainder only saves the check of the bounds.
            at += 1 + search.rank(self.line(at), window ^ SIGN) * LINES[below % LEVELS];
        }
        search.leaf(self.line(at), window ^ SIGN)
    }

    /// Returns an object of the block with a root.
    #[inline(always)]
    fn object(&self, root: BlockRoot, value: u32) -> Object {
        // Objects are before the root, and number 0 is next to it.
        let end = root.place() as usize * LINE_WORDS - (value & (BELOW - 1)) as usize * OBJECT_WORDS;
        let words = &self.words[end - OBJECT_WORDS..end];
        core::array::from_fn(|at| words[at].load(Ordering::Relaxed))
    }

    /// Looks up one key in a tree.
    #[inline(always)]
    fn one<K: Key>(&self, root: BlockRoot, key: K, search: &impl Search) -> u32 {
        let value = self.tree(root.place(), root.levels(), window(key, 0), search);
        if value & BELOW == 0 { value } else { self.below(root, value, key, search) }
    }

    /// Returns the next hop of a key whose first value is an object.
    #[inline(never)]
    fn below<K: Key>(&self, root: BlockRoot, mut value: u32, key: K, search: &impl Search) -> u32 {
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
            value = self.tree(root.place() + distance, levels, window, search);
        }
        value
    }

    /// Finds the values of groups: all keys take a step before any takes the next. A tree with fewer levels than another
    /// stays where it is meanwhile, since a branch for it would be mispredicted.
    #[inline(always)]
    fn values<K: Key, const COUNT: usize>(
        &self,
        roots: &[[u32; GROUP]; COUNT],
        keys: &[[K; GROUP]; COUNT],
        search: &impl Search,
    ) -> [[u32; GROUP]; COUNT] {
        let (mut windows, mut places) = ([[0; GROUP]; COUNT], [[0; GROUP]; COUNT]);
        // Loops, because closures passed to `map` or `for_each` of an array would be compiled without the instruction set. Over all
        // groups, one array at a time: of a loop over groups around one over lanes the compiler makes vectors of groups, whose
        // lanes it gathers and scatters.
        for (window_of_key, &key) in windows.as_flattened_mut().iter_mut().zip(keys.as_flattened()) {
            // Lines are compared as signed numbers.
            *window_of_key = window(key, 0) ^ SIGN;
        }
        for (place, &root) in places.as_flattened_mut().iter_mut().zip(roots.as_flattened()) {
            *place = BlockRoot(root).place() * LINE_UNITS;
        }
        let mut most = 0;
        for &root in roots.as_flattened() {
            // Levels are the highest bits of a root, so the greatest root has the most of them.
            most = most.max(root);
        }
        let most = most >> BlockRoot::LEVELS_AT;
        for below in (0..most).rev() {
            let half_units = LINES[below as usize % LEVELS] * LINE_UNITS / 2;
            let mut ranks = [[0; GROUP]; COUNT];
            for ((ranks, places), windows) in ranks.iter_mut().zip(&places).zip(&windows) {
                search.double_ranks(self.lines, places, windows, ranks);
            }
            for ((places, ranks), roots) in places.iter_mut().zip(&ranks).zip(roots) {
                for ((place, &rank), &root) in places.iter_mut().zip(ranks).zip(roots) {
                    let next = place.wrapping_add(LINE_UNITS).wrapping_add(rank.wrapping_mul(half_units));
                    let is_inner = BlockRoot(root).levels() > below;
                    *place = if is_inner { next } else { *place };
                }
                // A single group reads its lines at once, so it would gain nothing.
                if COUNT > 1 {
                    each_lane::<GROUP>(|lane| self.fetch(places[lane]));
                }
            }
        }
        let mut values = [[0; GROUP]; COUNT];
        for ((values, places), windows) in values.iter_mut().zip(&places).zip(&windows) {
            search.leaves(self.lines, places, windows, values);
        }
        values
    }

    /// Replaces values of a group that are objects.
    #[inline(always)]
    fn finish<K: Key>(
        &self,
        roots: &[u32; GROUP],
        keys: &[K; GROUP],
        found: &mut [u32; GROUP],
        search: &impl Search,
    ) {
        if windows::<K>() == 1 {
            for ((&root, &key), found) in roots.iter().zip(keys).zip(found) {
                if *found & BELOW != 0 {
                    *found = self.below(BlockRoot(root), *found, key, search);
                }
            }
            return;
        }
        // Most values are objects, and most objects records. No branch tells them apart: a value that is a next hop reads
        // what is before the first line of its block, or the first words there are, and stays.
        let mut trees = 0;
        for lane in 0..GROUP {
            let (root, value) = (BlockRoot(roots[lane]), found[lane]);
            let is_below = value & BELOW != 0;
            let at = object_at(root, value);
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
            found[lane] = self.below(BlockRoot(roots[lane]), found[lane], keys[lane], search);
        }
    }

    /// Looks up groups, to the end. Not a closure in [`column`](Self::column), which would be a function of its own, compiled
    /// without the instruction set.
    #[inline(always)]
    fn answer<K: Key, const COUNT: usize>(
        &self,
        roots: &[[u32; GROUP]; COUNT],
        keys: &[[K; GROUP]; COUNT],
        found: &mut [[u32; GROUP]; COUNT],
        search: &impl Search,
    ) {
        let mut values = self.values(roots, keys, search);
        if COUNT > 1 && windows::<K>() > 1 {
            for (roots, values) in roots.iter().zip(&values) {
                each_lane::<GROUP>(|lane| {
                    fetch_past(self.words, object_at(BlockRoot(roots[lane]), values[lane]));
                });
            }
        }
        for group in 0..COUNT {
            if search.any_has(&values[group], BELOW) {
                self.finish(&roots[group], &keys[group], &mut values[group], search);
            }
        }
        *found = values;
    }

    /// Looks up a column: groups, several at once while there are, then the last keys once more with those before them, or one
    /// by one.
    #[inline(always)]
    fn column<K: Key>(&self, roots: &[u32], keys: &[K], found: &mut [u32], search: &impl Search) {
        let (some, rest) = roots.as_chunks().0.as_chunks::<ABREAST>();
        let (some_keys, rest_keys) = keys.as_chunks().0.as_chunks();
        let (some_found, rest_found) = found.as_chunks_mut().0.as_chunks_mut();
        for (number, ((roots, keys), found)) in some.iter().zip(some_keys).zip(some_found).enumerate() {
            // The roots of the next groups are on their way while these groups are answered.
            if let Some(next) = some.get(number + 1) {
                for group in next {
                    each_lane::<GROUP>(|lane| self.fetch(BlockRoot(group[lane]).place() * LINE_UNITS));
                }
            }
            self.answer(roots, keys, found, search);
        }
        for ((roots, keys), found) in rest.iter().zip(rest_keys).zip(rest_found) {
            let found = core::array::from_mut(found);
            self.answer(core::array::from_ref(roots), core::array::from_ref(keys), found, search);
        }
        if keys.len().is_multiple_of(GROUP) {
            return;
        }
        if let (Some(roots), Some(keys), Some(found)) =
            (roots.last_chunk(), keys.last_chunk(), found.last_chunk_mut())
        {
            let found = core::array::from_mut(found);
            self.answer(core::array::from_ref(roots), core::array::from_ref(keys), found, search);
        } else {
            for ((&root, &key), found) in roots.iter().zip(keys).zip(found) {
                *found = self.one(BlockRoot(root), key, search);
            }
        }
    }
}

/// Returns the place of the object that a value is the number of, or where the block's lines begin.
#[inline(always)]
fn object_at(root: BlockRoot, value: u32) -> usize {
    let number = (value & (BELOW - 1)) as usize + 1;
    root.place() as usize * LINE_WORDS - if value & BELOW != 0 { number * OBJECT_WORDS } else { 0 }
}

/// Returns the next hop that a record has for a window.
#[inline(always)]
fn inside(record: &Object, window: u32) -> u32 {
    let [other, inside, first, last] = *record;
    if first <= window && window <= last { inside } else { other }
}

fn column_portable<K: Key>(view: &BlocksView<'_>, roots: &[u32], keys: &[K], found: &mut [u32]) {
    view.column(roots, keys, found, &portable!());
}

fn one_portable<K: Key>(view: &BlocksView<'_>, root: BlockRoot, key: K) -> u32 {
    view.one(root, key, &portable!())
}

kernel! {
    /// Looks up a column of keys, each in the tree of its root, all of the same length: [`BlocksView::column`].
    pub(in crate::vrf) fn column<K: Key>(view: &BlocksView<'_>, roots: &[u32], keys: &[K], found: &mut [u32])
    scalar column_portable;
    vector op {
        view.column(roots, keys, found, &searches!(op::lines));
    }
}

kernel! {
    /// Looks up one key: [`BlocksView::one`].
    pub(in crate::vrf) fn one<K: Key>(view: &BlocksView<'_>, root: BlockRoot, key: K) -> u32;
    scalar one_portable;
    vector op {
        view.one(root, key, &searches!(op::lines))
    }
}
