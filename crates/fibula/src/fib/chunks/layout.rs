//! The data that lookups read: the direct table, the area of the chunks, and the overflow.

use core::marker::PhantomData;

use crate::fib::parts::bitmap;
use crate::fib::parts::overflow::{Entry, Windows};
use crate::memory::Buffer;
use crate::net::Key;

/// A direct table and chunks of ranks.
#[derive(Debug, Clone)]
pub(crate) struct Chunks<K> {
    /// The [`Entry`] of each value of the leading bits.
    pub(super) direct: Buffer<u32>,
    /// The chunks, then padding. A chunk with deeper slots is preceded by the place of its map in `below`.
    pub(super) area: Buffer<u32>,
    pub(super) below: Buffer<u32>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Returns the windows: 16, 8 and 8 bits for IPv4.
pub(super) const fn windows(key_bits: u8) -> Windows {
    Windows::new(key_bits, 8)
}

/// Returns the number of words before the values of a chunk, by [`Entry::shift`].
pub(super) fn head_words(windows: Windows) -> [u32; 8] {
    core::array::from_fn(|shift| {
        bitmap::words(windows.slots() as u32 >> shift.min(Entry::SPARSE as usize - 1))
    })
}

impl<K: Key> Chunks<K> {
    pub(super) const WINDOWS: Windows = windows(K::BITS);
}

const _: () = {
    let windows = windows(32);
    assert!(windows.direct_bits == 16 && windows.slot_bits == 8 && windows.rest_bits == 8);
};
