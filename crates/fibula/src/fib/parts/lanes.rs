//! Batches in the form that vector kernels take: keys left-aligned in lanes of 32 bits, results as words.
//!
//! IPv4 keys are read in place. The narrow keys of the tests are shifted up, so that the same kernels run with other shift
//! counts.

use crate::net::{Key, NextHop};
use crate::simd::{LANES, Present};

/// Number of vectors of a block: 256 keys, so that data between stages of a kernel stays in the first-level cache.
pub const BLOCK: usize = 32;

/// Returns whether a batch of `count` keys fills a vector of this set; if not, portable code handles it.
#[inline]
pub fn filled(isa: Present, count: usize) -> bool {
    isa != Present::SCALAR && count >= LANES
}

/// Returns the bits of the key, aligned to the left as in lanes.
#[inline]
pub fn aligned<K: Key>(key: K) -> u32 {
    key.window(0, K::BITS) << (32 - u32::from(K::BITS))
}

/// Calls `kernel` for the batch in blocks of at most [`BLOCK`] vectors, with keys and the words of their results. Keys
/// after the last whole vector are looked up as the last eight keys of the batch, some of them for the second time, so
/// that every lane has a key.
///
/// # Panics
/// When the lengths differ, or there are fewer keys than lanes.
#[inline]
pub fn in_blocks<K: Key>(
    keys: &[K],
    results: &mut [Option<NextHop>],
    mut kernel: impl FnMut(&[[K; LANES]], &mut [[u32; LANES]]),
) {
    assert!(keys.len() == results.len() && keys.len() >= LANES, "a vector of keys, and a result for each");
    let results = NextHop::words(results);
    let vectors = keys.as_chunks().0.chunks(BLOCK);
    for (keys, results) in vectors.zip(results.as_chunks_mut().0.chunks_mut(BLOCK)) {
        kernel(keys, results);
    }
    if !keys.len().is_multiple_of(LANES) {
        let last = keys.len() - LANES;
        kernel(keys[last..].as_chunks().0, results[last..].as_chunks_mut().0);
    }
}

/// Like [`in_blocks`], for keys of at most 32 bits, whose first bit is the highest of their lane.
///
/// # Panics
/// As for [`in_blocks`], and when keys have more than 32 bits.
#[inline]
pub fn for_each_block<K: Key>(
    keys: &[K],
    results: &mut [Option<NextHop>],
    mut kernel: impl FnMut(&[[u32; LANES]], &mut [[u32; LANES]]),
) {
    in_blocks(keys, results, |keys, results| {
        if let Some(keys) = K::as_ipv4(keys.as_flattened()) {
            return kernel(keys.as_chunks().0, results);
        }
        let mut lanes = [[0; LANES]; BLOCK];
        for (lanes, keys) in lanes.iter_mut().zip(keys) {
            *lanes = keys.map(|key| (key.to_bits() as u32) << (32 - K::BITS));
        }
        kernel(&lanes[..keys.len()], results);
    });
}

/// Lanes of a block that need a later stage, by number.
pub struct Deferred {
    lanes: [u8; BLOCK * LANES + LANES],
    count: usize,
}

impl Default for Deferred {
    fn default() -> Self {
        Self::new()
    }
}

impl Deferred {
    /// Returns an empty list of lanes.
    #[inline]
    pub fn new() -> Self {
        Self { lanes: [0; BLOCK * LANES + LANES], count: 0 }
    }

    /// Defers one lane.
    #[inline]
    pub fn lane(&mut self, lane: usize) {
        self.lanes[self.count] = lane as u8;
        self.count += 1;
    }

    /// Returns the deferred lanes.
    #[inline]
    pub fn lanes(&self) -> &[u8] {
        &self.lanes[..self.count]
    }

    /// Returns the deferred lanes, padded to full vectors with the first one; there must be at least one.
    #[inline]
    pub fn filled(&mut self) -> &[u8] {
        let count = self.count.next_multiple_of(LANES);
        let first = self.lanes[0];
        self.lanes[self.count..count].fill(first);
        &self.lanes[..count]
    }

    /// Defers the lanes of vector `at` whose bits are set.
    #[inline]
    pub fn vector(&mut self, at: usize, bits: u32) {
        let lanes: &mut [u8; LANES] = self.lanes[self.count..].first_chunk_mut().expect("room for a vector");
        *lanes = lanes_of(bits, at);
        self.count += bits.count_ones() as usize;
    }
}

/// Returns the numbers of the lanes of vector `at` whose bits are set, one after the other; the rest is unspecified.
#[inline]
fn lanes_of(bits: u32, at: usize) -> [u8; LANES] {
    let first = (at * LANES) as u64;
    // A carry between bytes cannot happen: lane numbers stay below 256.
    (u64::from_le_bytes(LANES_OF[bits as usize]) + first * 0x0101_0101_0101_0101).to_le_bytes()
}

static LANES_OF: [[u8; LANES]; 256] = {
    let mut table = [[0; LANES]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut lane, mut count) = (0, 0);
        while lane < LANES {
            if bits >> lane & 1 == 1 {
                table[bits][count] = lane as u8;
                count += 1;
            }
            lane += 1;
        }
        bits += 1;
    }
    table
};

/// Asserts the structure's invariants and the next hop (0 for none) of every key, alone and in batches of every set, rotated
/// so that every lane gets it.
#[cfg(any(test, feature = "testing"))]
pub fn answers(fib: &dyn crate::fib::Fib<u32>, expected: &[(u32, u32)]) {
    fib.check().unwrap();
    let keys: Vec<u32> = expected.iter().map(|&(key, _)| key).collect();
    let next_hops: Vec<_> = expected.iter().map(|&(_, id)| NextHop::new(id)).collect();
    for (&key, &next_hop) in keys.iter().zip(&next_hops) {
        assert_eq!(fib.lookup_key(key), next_hop, "{key:x}");
    }
    for present in Present::all() {
        for turn in 0..keys.len() {
            let of = |at: usize| (at + turn) % keys.len();
            let batch: Vec<u32> = (0..300).map(|at| keys[of(at)]).collect();
            let mut results = vec![None; batch.len()];
            fib.lookup_batch_on(present, &batch, &mut results);
            for (at, result) in results.iter().enumerate() {
                assert_eq!(*result, next_hops[of(at)], "{} at {at}: {:x}", present.isa(), batch[at]);
            }
        }
    }
}

/// Asserts that batches of every length up to 70 and of 512, 513 and 519 keys, anywhere in `keys`, get the answers of
/// single lookups from every set that this machine has, and that nothing after their results is written.
#[cfg(any(test, feature = "testing"))]
pub fn agree<K: Key>(fib: &dyn crate::fib::Fib<K>, keys: &[K]) {
    let untouched = NextHop::new(u32::MAX);
    let expected: Vec<_> = keys.iter().map(|&key| fib.lookup(key)).collect();
    for isa in Present::all() {
        for count in (0..71).chain([512, 513, 519]).filter(|&count| count <= keys.len()) {
            for start in [0, (count * 7) % (keys.len() - count + 1), keys.len() - count] {
                let mut results = vec![untouched; count + 1];
                fib.lookup_batch_on(isa, &keys[start..start + count], &mut results[..count]);
                assert_eq!(results[..count], expected[start..start + count], "{} {count} {start}", isa.isa());
                assert_eq!(results[count], untouched);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Toy;

    /// Every key is passed with its own result, and every result is written.
    fn every_key_is_done<K: Key>() {
        for count in (LANES..80).chain([255, 256, 257, 511, 512, 520, 700]) {
            let keys: Vec<K> = (0..count).map(|at| K::from_bits((at as u128 + 1) * 0x9e37_79b9)).collect();
            let mut results = vec![None; count];
            let mut blocks = 0;
            for_each_block(&keys, &mut results, |keys, results| {
                assert!(!keys.is_empty() && keys.len() <= BLOCK);
                blocks += 1;
                results.copy_from_slice(keys);
            });
            assert!(blocks <= count.div_ceil(256) + 1);
            let words = keys.iter().map(|key| (key.to_bits() as u32) << (32 - K::BITS));
            assert!(words.eq(results.into_iter().map(NextHop::word)), "{count}");
        }
    }

    #[test]
    fn batches_shorter_than_a_vector_are_for_portable_code() {
        for isa in Present::all() {
            assert!(!filled(isa, 0) && !filled(isa, LANES - 1));
            assert_eq!(filled(isa, LANES), isa != Present::SCALAR);
        }
    }

    #[test]
    fn deferred_lanes_are_those_whose_bits_are_set() {
        let set = |bits: u32, at: usize| {
            (0..LANES).filter(move |lane| bits >> lane & 1 == 1).map(move |lane| at * LANES + lane)
        };
        for at in [0, 1, BLOCK - 1] {
            for bits in 0..256 {
                let mut deferred = Deferred::new();
                deferred.lane(3);
                deferred.vector(at, bits);
                deferred.vector(0, 0b101);
                let expected: Vec<u8> =
                    [3].into_iter().chain(set(bits, at)).chain([0, 2]).map(|lane| lane as u8).collect();
                assert_eq!(deferred.lanes(), expected);
                // Padded to whole vectors with the first lane.
                let padded = deferred.filled();
                assert!(padded.len().is_multiple_of(LANES) && padded.len() - expected.len() < LANES);
                assert_eq!(padded[..expected.len()], expected);
                assert!(padded[expected.len()..].iter().all(|&lane| lane == 3));
            }
        }
    }

    #[test]
    fn keys_are_left_aligned() {
        assert_eq!(aligned(0xc000_0201_u32), 0xc000_0201);
        assert_eq!(aligned(Toy::<3>::MAX), 0xe000_0000);
        assert_eq!(aligned(Toy::<16>::from_bits(0x1234)), 0x1234_0000);
    }

    #[test]
    fn every_key_is_done_at_every_width() {
        every_key_is_done::<u32>();
        every_key_is_done::<Toy<16>>();
        every_key_is_done::<Toy<3>>();
    }
}
