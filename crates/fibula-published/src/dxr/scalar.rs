//! Searches in portable code, one key and batches, one body for all formats.

use core::sync::atomic::{Ordering, fence};

use fibula::net::{Key, NextHop};

use super::entries::{Chunk, Entries, Sorted};
use super::layout::{BLOCK, Dxr, Form, LANES, Shape};
use super::options::Search;

/// Returns the last half of the chunk that is at most the probe, and the number of iterations.
#[inline]
fn stop_early(halves: impl Sorted, chunk: Chunk, probe: u16) -> (usize, u32) {
    let halves = halves.from(chunk.first);
    let (entry, steps) = match chunk.stride {
        0 => stop_early_strided::<_, 1>(halves, chunk.entries, probe),
        _ => stop_early_strided::<_, 2>(halves, chunk.entries, probe),
    };
    (chunk.first + (entry << chunk.stride), steps)
}

#[inline]
fn stop_early_strided<H: Sorted, const STRIDE: usize>(halves: H, entries: usize, probe: u16) -> (usize, u32) {
    let (mut low, mut high, mut steps) = (0, entries, 0);
    while high - low > 1 {
        steps += 1;
        let middle = (low + high) / 2;
        if probe < halves.at(middle * STRIDE) {
            high = middle;
        } else if middle + 1 < high && probe >= halves.at((middle + 1) * STRIDE) {
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
fn halve<H: Sorted, const COUNT: usize>(
    halves: H,
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
            let beyond = halves.at(middle) > probes[lane];
            found[lane] = core::hint::select_unpredictable(beyond, found[lane], middle);
            sizes[lane] -= half;
        }
        longest -= longest / 2;
    }
    (found, steps)
}

/// Orders what is read through direct entries after their relaxed loads. Free on x86.
#[inline(always)]
fn after_direct<E: Entries>() {
    if E::LIVE {
        fence(Ordering::Acquire);
    }
}

impl<K: Key> Dxr<K> {
    /// Returns the next hop of a key, and the iterations of the search.
    #[inline]
    pub(super) fn find_key(&self, key: K) -> (u32, u32) {
        match &self.form {
            Form::Compact(form) => self.shape.find_key(form, key),
            Form::Wide(form) => self.shape.find_key(form, key),
        }
    }

    /// Returns the iterations of the search for `key`, 0 where the direct table answers: the figures of Table 3 of the
    /// paper.
    #[must_use]
    pub fn search_steps(&self, key: K) -> u32 {
        self.find_key(key).1
    }
}

impl Shape {
    /// Returns the index of the direct entry of a key, and the bits after it.
    #[inline]
    fn parts<K: Key>(self, key: K) -> (usize, u32) {
        let (bits, rest) = (key.to_bits() as u32, self.geometry.rest);
        ((bits >> rest) as usize, bits & ((1 << rest) - 1))
    }

    /// Returns the next hop for a direct entry and the bits after its index, and the iterations of the search.
    #[inline]
    fn find<E: Entries>(self, form: &E, direct: E::Direct, low: u32) -> (u32, u32) {
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
    pub(super) fn find_key<K: Key, E: Entries>(self, form: &E, key: K) -> (u32, u32) {
        let (index, low) = self.parts(key);
        let direct = form.direct(index);
        after_direct::<E>();
        self.find(form, direct, low)
    }

    /// Looks up a batch.
    pub(super) fn batch<K: Key, E: Entries>(self, form: &E, keys: &[K], results: &mut [Option<NextHop>]) {
        match self.search {
            Search::EarlyStop => self.batch_one_by_one(form, keys, results),
            Search::BranchFree => {
                for (keys, results) in keys.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
                    self.batch_in_stages(form, keys, results);
                }
            }
        }
    }

    /// Looks up a batch by the early stop: reads the direct entries of several keys, then searches for one after the
    /// other. A search mostly ends in a mispredicted branch, and by then those loads are done.
    fn batch_one_by_one<K: Key, E: Entries>(self, form: &E, keys: &[K], results: &mut [Option<NextHop>]) {
        for (keys, results) in keys.chunks(LANES).zip(results.chunks_mut(LANES)) {
            let mut direct = [E::Direct::default(); LANES];
            for (direct, &key) in direct.iter_mut().zip(keys) {
                *direct = form.direct(self.parts(key).0);
            }
            after_direct::<E>();
            for ((&direct, &key), result) in direct.iter().zip(keys).zip(results) {
                *result = NextHop::new(self.find(form, direct, self.parts(key).1).0);
            }
        }
    }

    /// Looks up a block of keys without branches: answers the keys that the direct table answers and lists the others,
    /// then searches for these, [`LANES`] at a time.
    fn batch_in_stages<K: Key, E: Entries>(self, form: &E, keys: &[K], results: &mut [Option<NextHop>]) {
        let mut waiting = [(0u16, E::Direct::default()); BLOCK];
        let mut count = 0;
        // Read in a loop of their own where a fence has to follow.
        let mut entries = [E::Direct::default(); BLOCK];
        if E::LIVE {
            for (entry, &key) in entries.iter_mut().zip(keys) {
                *entry = form.direct(self.parts(key).0);
            }
            after_direct::<E>();
        }
        for (at, (&key, result)) in keys.iter().zip(&mut *results).enumerate() {
            let direct = if E::LIVE { entries[at % BLOCK] } else { form.direct(self.parts(key).0) };
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
    fn search_lanes<K: Key, E: Entries, const COUNT: usize>(
        self,
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
