//! The data that lookups read.

use core::marker::PhantomData;

use fibula::net::Key;
use fibula::unstable::memory::Buffer;

/// The three levels and the dictionary.
#[derive(Debug, Clone)]
pub(crate) struct Sail<K> {
    /// The entries of each level, one chunk after the other; then [`PAD`] entries. The first level is one chunk.
    pub(super) levels: [Buffer<u16>; LEVELS],
    /// Next hop of each code, 0 for no route; `None` where codes are the ids of the next hops.
    pub(super) next_hops: Option<Vec<u32>>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Levels that prefixes are pushed to: 16, 24 and 32 bits.
pub(super) const LEVELS: usize = 3;

/// The bit that is set in the number of a chunk and clear in a code.
pub(super) const CHUNK: u16 = 1 << 15;

/// Entries of padding at the end of each level: a gather of an entry also reads the 16 bits that follow it.
pub(super) const PAD: usize = 1;

/// Most chunks that 15 bits can number.
pub(super) const CHUNKS_MAX: u64 = 1 << 15;

/// Most next hops that 15 bits can number in addition to "no route".
pub(super) const NEXT_HOPS_MAX: u64 = (1 << 15) - 1;

/// Most entries of a chunk below the first level.
pub(super) const SPAN_MAX: usize = 256;

impl<K: Key> Sail<K> {
    /// Bits of the key that select an entry of the first level, and of a chunk of each other one: 16, 8 and 8.
    pub(super) const BITS: [u8; LEVELS] = {
        let last = if K::BITS < 4 { 1 } else { K::BITS / 4 };
        [K::BITS / 2, K::BITS - K::BITS / 2 - last, last]
    };

    /// Bits of the key after those that lead to an entry of a level: 16, 8 and none.
    pub(super) const REST: [u8; LEVELS] = [K::BITS - Self::BITS[0], Self::BITS[2], 0];

    /// Largest id that entries hold directly: any of 15 bits. In the tests' small spaces it is so small that tables of
    /// both forms occur.
    pub(super) const ID_MAX: u32 = if K::BITS == 32 { NEXT_HOPS_MAX as u32 } else { 2 };
}

const _: () = {
    let [first, second, third] = Sail::<u32>::BITS;
    assert!(first == 16 && second == 8 && third == 8);
    assert!(1 << second == SPAN_MAX && 1 << third == SPAN_MAX);
};
