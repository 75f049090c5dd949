//! Searches in portable code, one key and batches, one body for both formats; and the view of a table that kernels
//! read.

use crate::net::{Key, NextHop};
use crate::simd::{Halves, Words};

use super::layout::{BLOCK, Compact, Dxr, Form, HALVES, LANES, SHORT, SHORT_CODE_BITS, Wide};
use super::options::Search;

/// A table as kernels read it, and how the parts of a key and of an entry lie in a lane of 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// Direct entries; in the wide format the low half of each, then the high one.
    pub(super) direct: Words<'a>,
    pub(super) halves: Halves<'a>,
    /// Next hop of each code; in the wide format, of each range.
    pub(super) next_hops: Words<'a>,
    /// Right shift of a lane that leaves the index of the direct entry.
    pub(super) index_shift: u32,
    /// Right shift of a lane that leaves the key.
    pub(super) key_shift: u32,
    /// Bits of the key after the index.
    pub(super) rest: u32,
    /// Trailing bits of these that short entries do not store.
    pub(super) dropped: u32,
    /// Bits of a direct entry for the position.
    pub(super) position_bits: u32,
    /// Binary logarithm of the entries in which sizes count.
    pub(super) shift: u32,
}

/// A chunk as searches read it: every `1 << stride`-th of the halves from `first` on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunk {
    pub(super) first: usize,
    pub(super) entries: usize,
    pub(super) stride: u32,
}

/// The access to a format: direct entries, and halves that sort by base.
pub(super) trait Entries {
    /// A direct entry.
    type Direct: Copy + Default;

    /// Returns the direct entry of this index.
    fn direct(&self, index: usize) -> Self::Direct;

    /// Returns whether the entry holds a next hop, and if so its word.
    fn in_place(&self, direct: Self::Direct) -> (bool, u32);

    /// Returns the chunk of an entry that holds no next hop.
    fn chunk(&self, direct: Self::Direct) -> Chunk;

    /// Returns the word to compare with the halves of the chunk: the greatest half of a range that starts at or before
    /// these trailing bits of the key.
    fn probe(&self, direct: Self::Direct, low: u32, dropped: u8) -> u16;

    /// Returns the halves.
    fn halves(&self) -> &[u16];

    /// Returns the word of the next hop of the range found at this half.
    fn answer(&self, chunk: Chunk, found: usize) -> u32;
}

impl Entries for Compact {
    type Direct = u32;

    #[inline]
    fn direct(&self, index: usize) -> u32 {
        self.direct[index]
    }

    #[inline]
    fn in_place(&self, direct: u32) -> (bool, u32) {
        let here = direct >> self.split.position_bits == 0;
        // A position is not a code. Reading code 0 instead needs no branch.
        let code = if here { direct as usize } else { 0 };
        (here, self.next_hops[code])
    }

    #[inline]
    fn chunk(&self, direct: u32) -> Chunk {
        let size = (direct & !SHORT) >> self.split.position_bits;
        let position = direct & ((1 << self.split.position_bits) - 1);
        Chunk {
            first: (position as usize) << (self.split.shift + 1),
            entries: self.split.entries(size),
            stride: u32::from(direct & SHORT == 0),
        }
    }

    #[inline]
    fn probe(&self, direct: u32, low: u32, dropped: u8) -> u16 {
        // Any code counts as "at" the base.
        let short = low >> dropped << SHORT_CODE_BITS | 0xff;
        (if direct & SHORT == 0 { low } else { short }) as u16
    }

    #[inline]
    fn halves(&self) -> &[u16] {
        &self.ranges
    }

    #[inline]
    fn answer(&self, chunk: Chunk, found: usize) -> u32 {
        let mask = if chunk.stride == 0 { 0xff } else { 0xffff };
        self.next_hops[usize::from(self.ranges[found + chunk.stride as usize] & mask)]
    }
}

impl Entries for Wide {
    type Direct = [u32; 2];

    #[inline]
    fn direct(&self, index: usize) -> [u32; 2] {
        self.direct[index]
    }

    #[inline]
    fn in_place(&self, direct: [u32; 2]) -> (bool, u32) {
        (direct[1] == 0, direct[0])
    }

    #[inline]
    fn chunk(&self, [first, further]: [u32; 2]) -> Chunk {
        Chunk { first: first as usize, entries: further as usize + 1, stride: 0 }
    }

    #[inline]
    fn probe(&self, _: [u32; 2], low: u32, _: u8) -> u16 {
        low as u16
    }

    #[inline]
    fn halves(&self) -> &[u16] {
        &self.bases
    }

    #[inline]
    fn answer(&self, _: Chunk, found: usize) -> u32 {
        self.next_hops[found]
    }
}

/// Returns the last half of the chunk that is at most the probe, and the number of iterations.
#[inline]
fn stop_early(halves: &[u16], chunk: Chunk, probe: u16) -> (usize, u32) {
    let halves = &halves[chunk.first..];
    let (entry, steps) = match chunk.stride {
        0 => stop_early_strided::<1>(halves, chunk.entries, probe),
        _ => stop_early_strided::<2>(halves, chunk.entries, probe),
    };
    (chunk.first + (entry << chunk.stride), steps)
}

#[inline]
fn stop_early_strided<const STRIDE: usize>(halves: &[u16], entries: usize, probe: u16) -> (usize, u32) {
    let (mut low, mut high, mut steps) = (0, entries, 0);
    while high - low > 1 {
        steps += 1;
        let middle = (low + high) / 2;
        if probe < halves[middle * STRIDE] {
            high = middle;
        } else if middle + 1 < high && probe >= halves[(middle + 1) * STRIDE] {
            low = middle + 1;
        } else {
            low = middle;
            break;
        }
    }
    (low, steps)
}

/// Like [`stop_early`] for several chunks in step, without a branch on the keys. A chunk with one entry left waits for
/// the others.
#[inline]
fn halve<const COUNT: usize>(
    halves: &[u16],
    chunks: &[Chunk; COUNT],
    probes: &[u16; COUNT],
) -> ([usize; COUNT], u32) {
    let mut found = chunks.map(|chunk| chunk.first);
    let mut sizes = chunks.map(|chunk| chunk.entries);
    let mut longest = sizes.into_iter().max().unwrap_or(0);
    let mut steps = 0;
    while longest > 1 {
        steps += 1;
        for lane in 0..COUNT {
            let half = sizes[lane] / 2;
            let middle = found[lane] + (half << chunks[lane].stride);
            let beyond = halves[middle] > probes[lane];
            found[lane] = core::hint::select_unpredictable(beyond, found[lane], middle);
            sizes[lane] -= half;
        }
        longest -= longest / 2;
    }
    (found, steps)
}

impl<K: Key> Dxr<K> {
    /// Returns the index of the direct entry of a key, and the bits after it.
    #[inline]
    fn parts(&self, key: K) -> (usize, u32) {
        let (bits, rest) = (key.to_bits() as u32, self.geometry.rest);
        ((bits >> rest) as usize, bits & ((1 << rest) - 1))
    }

    /// Returns the next hop for a direct entry and the bits after its index, and the iterations of the search.
    #[inline]
    fn find<E: Entries>(&self, form: &E, direct: E::Direct, low: u32) -> (u32, u32) {
        let (here, word) = form.in_place(direct);
        if here {
            return (word, 0);
        }
        let (chunk, probe) = (form.chunk(direct), form.probe(direct, low, self.geometry.dropped));
        let (found, steps) = match self.search {
            Search::EarlyStop => stop_early(form.halves(), chunk, probe),
            Search::BranchFree => {
                let ([found], steps) = halve(form.halves(), &[chunk], &[probe]);
                (found, steps)
            }
        };
        (form.answer(chunk, found), steps)
    }

    /// Returns the next hop of a key, and the iterations of the search.
    #[inline]
    pub(super) fn find_key(&self, key: K) -> (u32, u32) {
        let (index, low) = self.parts(key);
        match &self.form {
            Form::Compact(form) => self.find(form, form.direct(index), low),
            Form::Wide(form) => self.find(form, form.direct(index), low),
        }
    }

    /// Returns the iterations of the search for `key`, 0 where the direct table answers: the figures of Table 3 of the
    /// paper.
    #[must_use]
    pub fn search_steps(&self, key: K) -> u32 {
        self.find_key(key).1
    }

    /// Looks up a batch.
    pub(super) fn batch<E: Entries>(&self, form: &E, keys: &[K], results: &mut [Option<NextHop>]) {
        match self.search {
            Search::EarlyStop => self.batch_one_by_one(form, keys, results),
            Search::BranchFree => {
                for (keys, results) in keys.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
                    self.batch_in_stages(form, keys, results);
                }
            }
        }
    }

    /// Returns the table as kernels read it, or `None` where it is too large for the index of a lane.
    pub(super) fn view(&self) -> Option<View<'_>> {
        let geometry = self.geometry;
        let (direct, halves, next_hops, split) = match &self.form {
            Form::Compact(form) => (&*form.direct, form.halves(), &*form.next_hops, Some(form.split)),
            Form::Wide(form) => (form.direct.as_flattened(), form.halves(), &*form.next_hops, None),
        };
        Some(View {
            direct: Words::fitting(direct)?,
            halves: Halves::fitting(if halves.is_empty() { &[0; HALVES] } else { halves })?,
            next_hops: Words::fitting(if next_hops.is_empty() { &[0] } else { next_hops })?,
            index_shift: u32::from(32 - geometry.k),
            key_shift: u32::from(32 - K::BITS),
            rest: geometry.rest.into(),
            dropped: geometry.dropped.into(),
            position_bits: split.map_or(0, |split| split.position_bits.into()),
            shift: split.map_or(0, |split| split.shift.into()),
        })
    }

    /// Looks up a batch by the early stop: reads the direct entries of several keys, then searches for one after the
    /// other. A search mostly ends in a mispredicted branch, and by then those loads are done.
    fn batch_one_by_one<E: Entries>(&self, form: &E, keys: &[K], results: &mut [Option<NextHop>]) {
        for (keys, results) in keys.chunks(LANES).zip(results.chunks_mut(LANES)) {
            let mut direct = [E::Direct::default(); LANES];
            for (direct, &key) in direct.iter_mut().zip(keys) {
                *direct = form.direct(self.parts(key).0);
            }
            for ((&direct, &key), result) in direct.iter().zip(keys).zip(results) {
                *result = NextHop::new(self.find(form, direct, self.parts(key).1).0);
            }
        }
    }

    /// Looks up a block of keys without branches: answers the keys that the direct table answers and lists the others,
    /// then searches for these, [`LANES`] at a time.
    fn batch_in_stages<E: Entries>(&self, form: &E, keys: &[K], results: &mut [Option<NextHop>]) {
        let mut waiting = [(0u16, E::Direct::default()); BLOCK];
        let mut count = 0;
        for (at, (&key, result)) in keys.iter().zip(&mut *results).enumerate() {
            let direct = form.direct(self.parts(key).0);
            let (here, word) = form.in_place(direct);
            *result = NextHop::new(word);
            waiting[count % BLOCK] = (at as u16, direct);
            count += usize::from(!here);
        }
        let (full, rest) = waiting[..count].as_chunks::<LANES>();
        for lanes in full {
            self.search_lanes(form, lanes, keys, results);
        }
        for &lane in rest {
            self.search_lanes(form, &[lane], keys, results);
        }
    }

    /// Searches for the keys of `lanes`, given by their numbers and direct entries, and writes their results.
    #[inline]
    fn search_lanes<E: Entries, const COUNT: usize>(
        &self,
        form: &E,
        lanes: &[(u16, E::Direct); COUNT],
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) {
        let chunks = lanes.map(|(_, direct)| form.chunk(direct));
        let probes = lanes.map(|(at, direct)| {
            form.probe(direct, self.parts(keys[usize::from(at)]).1, self.geometry.dropped)
        });
        let (found, _) = halve(form.halves(), &chunks, &probes);
        for ((&(at, _), chunk), found) in lanes.iter().zip(chunks).zip(found) {
            results[usize::from(at)] = NextHop::new(form.answer(chunk, found));
        }
    }
}
