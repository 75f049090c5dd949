//! The addresses of a call and their answers, taken from both ends.

use core::iter::Zip;
use core::slice::{Chunks, ChunksMut};

use fibula::net::NextHop;

/// The addresses that are left, in chunks.
pub(super) struct Stream<'a, K> {
    chunks: Zip<Chunks<'a, K>, ChunksMut<'a, Option<NextHop>>>,
    chunk_keys: usize,
    /// Addresses that are left.
    left: usize,
    /// The number of the first of them.
    first: usize,
    /// Chunks that are left to the front alone; `None` where both ends take as many as they can.
    reserved: Option<usize>,
    /// Whether the front takes no more.
    is_closed: bool,
}

/// A chunk: addresses and where their answers go.
pub(super) type Chunk<'a, K> = (&'a [K], &'a mut [Option<NextHop>]);

/// Chunks that were taken from the front.
pub(super) struct Claim<'a, K> {
    pub(super) chunks: Vec<Chunk<'a, K>>,
    /// The number of the first address.
    pub(super) first: usize,
    /// Number of addresses.
    pub(super) keys: usize,
}

impl<'a, K> Stream<'a, K> {
    /// Returns all addresses. There are as many places for answers.
    pub(super) fn new(keys: &'a [K], results: &'a mut [Option<NextHop>], chunk_keys: usize) -> Self {
        let left = keys.len();
        let chunks = keys.chunks(chunk_keys).zip(results.chunks_mut(chunk_keys));
        Self { chunks, chunk_keys, left, first: 0, reserved: None, is_closed: false }
    }

    /// Leaves this share to the front, and the rest to the back.
    pub(super) fn divide(&mut self, share: f64) {
        self.reserved = Some((self.chunks.len() as f64 * share).round() as usize);
    }

    /// Returns how many addresses are left.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Leaves all to the back.
    pub(super) fn close_front(&mut self) {
        (self.reserved, self.is_closed) = (None, true);
    }

    /// Takes chunks from the front, with as many of these addresses as make whole chunks, but one at least. `None` for no
    /// addresses, and if none is left to the front.
    pub(super) fn claim_front(&mut self, keys: usize) -> Option<Claim<'a, K>> {
        if keys == 0 || self.is_closed {
            return None;
        }
        let wanted =
            (keys / self.chunk_keys).max(1).min(self.reserved.unwrap_or(usize::MAX)).min(self.chunks.len());
        let first = self.first;
        let mut chunks = Vec::with_capacity(wanted);
        chunks.extend(self.chunks.by_ref().take(wanted));
        let keys: usize = chunks.iter().map(|(keys, _)| keys.len()).sum();
        if let Some(reserved) = &mut self.reserved {
            *reserved -= chunks.len();
        }
        self.first += keys;
        self.left -= keys;
        (keys > 0).then_some(Claim { chunks, first, keys })
    }

    /// Takes a chunk from the back, if one is left to it.
    pub(super) fn claim_back(&mut self) -> Option<Chunk<'a, K>> {
        if self.reserved.is_some_and(|reserved| self.chunks.len() <= reserved) {
            return None;
        }
        let chunk = self.chunks.next_back()?;
        self.left -= chunk.0.len();
        Some(chunk)
    }
}
