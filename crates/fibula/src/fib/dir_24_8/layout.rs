//! What lookups touch.

use core::marker::PhantomData;

use crate::net::Key;

/// The two tables and the dictionary.
#[derive(Debug, Clone)]
pub struct Dir248<K> {
    /// By the leading bits of the key: a code, or [`SEGMENT`] and a segment's number.
    pub(super) first: Vec<u16>,
    /// Codes, a segment behind the other.
    pub(super) segments: Vec<u16>,
    /// Next hop of each code, 0 for no route.
    pub(super) next_hops: Vec<u32>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// The bit that tells a segment from a code.
pub(super) const SEGMENT: u16 = 1 << 15;

/// Most segments that 15 bits can name.
pub(super) const SEGMENTS_MAX: u64 = 1 << 15;

/// Most next hops beside "no route" that 15 bits can name.
pub(super) const NEXT_HOPS_MAX: u64 = (1 << 15) - 1;

impl<K: Key> Dir248<K> {
    /// Bits of the key that select an entry of a segment: 8 of 32.
    pub(super) const REST: u8 = if K::BITS < 4 { 1 } else { K::BITS / 4 };
    /// Bits of the key that select an entry of the first table: 24 of 32.
    pub(super) const LEADING: u8 = K::BITS - Self::REST;
}

const _: () = assert!(Dir248::<u32>::LEADING == 24 && Dir248::<u32>::REST == 8);
