//! Columns of keys, each with its VRF.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::memory::Shared;
use crate::net::{Key, NextHop};
use crate::simd::Present;

use super::Vrf;
use super::block::{self, BlockRoot, BlocksView};
use super::roots::FamilyRoots;

/// The most rows that are looked up together. More rows find more that are of the same structure, whose batches are faster
/// the longer they are; the buffers of a block are in the first-level cache.
const ROWS: usize = 1024;

/// Places by which rows are sorted: structures whose numbers have the same lowest bits share one.
const PLACES: usize = 64;

/// Returns the root of a VRF for one family.
#[inline(always)]
pub(super) fn root_of(directory: &[AtomicU64], vrf: Vrf, half: impl Fn(u64) -> BlockRoot) -> BlockRoot {
    // Acquire, because the block or engine was written before the word that leads to it.
    directory.get(vrf.index()).map_or(BlockRoot::ABSENT, |word| half(word.load(Ordering::Acquire)))
}

/// Looks up one key.
#[inline]
pub(super) fn one<K: Key>(isa: Present, roots: &FamilyRoots<K>, root: BlockRoot, key: K) -> Option<NextHop> {
    match root.as_large() {
        None => NextHop::new(block::one(isa, &BlocksView::new(&roots.words), root, key)),
        Some(number) => roots.large.get(number as usize)?.as_ref()?.lookup_key(key),
    }
}

/// Looks up keys of one VRF.
pub(super) fn same<K: Key>(
    isa: Present,
    roots: &FamilyRoots<K>,
    root: BlockRoot,
    keys: &[K],
    results: &mut [Option<NextHop>],
) {
    if let Some(number) = root.as_large() {
        return structure(isa, roots, number, keys, results);
    }
    let view = BlocksView::new(&roots.words);
    // The kernel takes a root for each key, so the one root is repeated.
    let all = [root.0; 256];
    for (keys, results) in keys.chunks(all.len()).zip(results.chunks_mut(all.len())) {
        block::column(isa, &view, &all[..keys.len()], keys, NextHop::words(results));
    }
}

/// Looks up keys in a structure.
fn structure<K: Key>(
    isa: Present,
    roots: &FamilyRoots<K>,
    number: u32,
    keys: &[K],
    results: &mut [Option<NextHop>],
) {
    match roots.large.get(number as usize) {
        Some(Some(fib)) => fib.lookup_batch_on(isa, keys, results),
        // The roots have every engine that the words of their directory lead to, so this is not reached.
        _ => results.fill(None),
    }
}

/// Looks up a column of keys, each in its VRF. All three have the same length.
pub(super) fn mixed<K: Key, V: Copy + Into<Vrf>>(
    isa: Present,
    directory: &Shared<u64>,
    roots: &FamilyRoots<K>,
    half: impl Fn(u64) -> BlockRoot + Copy,
    vrfs: &[V],
    keys: &[K],
    results: &mut [Option<NextHop>],
) {
    // Arrays for fewer rows are made in less time.
    if keys.len() <= 64 {
        return rows::<K, V, 64>(isa, directory, roots, half, vrfs, keys, results);
    }
    if keys.len() <= 256 {
        return rows::<K, V, 256>(isa, directory, roots, half, vrfs, keys, results);
    }
    let chunks = vrfs.chunks(ROWS).zip(keys.chunks(ROWS)).zip(results.chunks_mut(ROWS));
    for ((vrfs, keys), results) in chunks {
        rows::<K, V, ROWS>(isa, directory, roots, half, vrfs, keys, results);
    }
}

/// Looks up at most `COUNT` rows.
fn rows<K: Key, V: Copy + Into<Vrf>, const COUNT: usize>(
    isa: Present,
    directory: &[AtomicU64],
    roots: &FamilyRoots<K>,
    half: impl Fn(u64) -> BlockRoot,
    vrfs: &[V],
    keys: &[K],
    results: &mut [Option<NextHop>],
) {
    // The directory is read once for each row, because a second read could find another word and the row would be looked up in
    // neither.
    let mut halves = [0; COUNT];
    let halves = &mut halves[..keys.len()];
    let mut of_structures = 0;
    for (half_of_row, &vrf) in halves.iter_mut().zip(vrfs) {
        let root = root_of(directory, vrf.into(), &half);
        *half_of_row = root.0;
        of_structures += usize::from(root.as_large().is_some());
    }
    if of_structures == 0 {
        return block::column(isa, &BlocksView::new(&roots.words), halves, keys, NextHop::words(results));
    }
    if of_structures == keys.len() && halves.iter().all(|&half| half == halves[0]) {
        return structure(isa, roots, BlockRoot(halves[0]).place(), keys, results);
    }
    with_structures::<K, COUNT>(isa, roots, halves, keys, results);
}

/// Looks up rows, some of whose VRFs have engines of their own. `halves` has the root of each row.
#[inline(never)]
fn with_structures<K: Key, const COUNT: usize>(
    isa: Present,
    roots: &FamilyRoots<K>,
    halves: &mut [u32],
    keys: &[K],
    results: &mut [Option<NextHop>],
) {
    let mut of_structures = Rows::<COUNT> { rows: [0; COUNT], numbers: [0; COUNT], count: 0 };
    for (row, half) in halves.iter_mut().enumerate() {
        let root = BlockRoot(*half);
        let is_large = root.as_large().is_some();
        // Rows of structures find nothing in the blocks, in the time that a branch for them would take.
        *half = if is_large { BlockRoot::ABSENT.0 } else { root.0 };
        of_structures.note(row, root.place(), is_large);
    }
    if of_structures.count < keys.len() {
        block::column(isa, &BlocksView::new(&roots.words), halves, keys, NextHop::words(results));
    }
    of_structures.look_up(isa, roots, keys, results);
}

/// Rows whose VRFs have structures, and the numbers of these.
struct Rows<const COUNT: usize> {
    rows: [u16; COUNT],
    numbers: [u32; COUNT],
    count: usize,
}

impl<const COUNT: usize> Rows<COUNT> {
    /// Notes a row, if it is one of these, without a branch.
    #[inline(always)]
    fn note(&mut self, row: usize, number: u32, is_one: bool) {
        // There are at most `COUNT` rows, so the remainder changes nothing. It spares a check of bounds and its branch.
        let at = self.count % COUNT;
        self.rows[at] = row as u16;
        self.numbers[at] = number;
        self.count += usize::from(is_one);
    }

    /// Looks up the rows, those of each structure as one batch.
    fn look_up<K: Key>(
        &self,
        isa: Present,
        roots: &FamilyRoots<K>,
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) {
        let (rows, numbers) = (&self.rows[..self.count], &self.numbers[..self.count]);
        // A counting sort, in two passes over the rows: counts, then starts, then each row to its place.
        let mut ends = [0_u16; PLACES + 1];
        for &number in numbers {
            ends[number as usize % PLACES + 1] += 1;
        }
        for place in 0..PLACES {
            ends[place + 1] += ends[place];
        }
        let starts = ends;
        let mut sorted = Sorted { rows: [0; COUNT], numbers: [0; COUNT], keys: [K::ZERO; COUNT] };
        for (&row, &number) in rows.iter().zip(numbers) {
            let end = &mut ends[number as usize % PLACES];
            sorted.put(usize::from(*end), row, number, keys[usize::from(row)]);
            *end += 1;
        }
        let mut found = [None; COUNT];
        for place in 0..PLACES {
            let (mut start, end) = (usize::from(starts[place]), usize::from(starts[place + 1]));
            while start < end {
                // A place may have rows of several engines, whose numbers have the same lowest bits.
                let next = sorted.gather(start, end);
                let number = sorted.numbers[start];
                structure(isa, roots, number, &sorted.keys[start..next], &mut found[start..next]);
                start = next;
            }
        }
        for (&row, &found) in sorted.rows[..self.count].iter().zip(&found) {
            results[usize::from(row)] = found;
        }
    }
}

/// Rows in the order of their structures.
struct Sorted<K, const COUNT: usize> {
    rows: [u16; COUNT],
    numbers: [u32; COUNT],
    keys: [K; COUNT],
}

impl<K: Key, const COUNT: usize> Sorted<K, COUNT> {
    #[inline(always)]
    fn put(&mut self, at: usize, row: u16, number: u32, key: K) {
        self.rows[at] = row;
        self.numbers[at] = number;
        self.keys[at] = key;
    }

    /// Moves all rows up to `end` that are of the same structure as the one at `start` next to it. Returns where they end.
    fn gather(&mut self, start: usize, end: usize) -> usize {
        let number = self.numbers[start];
        let mut next = start;
        for at in start..end {
            if self.numbers[at] == number {
                self.rows.swap(at, next);
                self.numbers.swap(at, next);
                self.keys.swap(at, next);
                next += 1;
            }
        }
        next
    }
}
