//! Batches of keys, in the layouts in which callers hold them.

use core::fmt;
use core::marker::PhantomData;

use super::key::Key;
use crate::simd::{self, Present};

/// A batch of keys in one of the shapes that callers hold them in.
///
/// Kernels know one shape only, contiguous host-order integers. The other shapes are converted in blocks of
/// [`Keys::BLOCK`], in the first-level cache; `docs/adr/0002-batches.md` gives the reasons.
#[derive(Debug, Clone, Copy)]
pub enum Keys<'a, K: Key> {
    /// Integers in host order, the shape that kernels take: no conversion.
    Host(&'a [K]),
    /// An array of addresses in network byte order (NumPy, Arrow and columnar files).
    Network(&'a [K::Bytes]),
    /// Addresses in network byte order inside larger records (packet headers, flow records).
    Strided(Strided<'a, K>),
}

/// Addresses of one family at a fixed distance from each other in a buffer of records.
#[derive(Debug, Clone, Copy)]
pub struct Strided<'a, K> {
    bytes: &'a [u8],
    stride: usize,
    count: usize,
    keys: PhantomData<K>,
}

impl<'a, K: Key> Strided<'a, K> {
    /// Describes `count` addresses, the first at `offset`, each `stride` bytes after the one before. With a stride
    /// smaller than an address, the addresses overlap.
    ///
    /// Returns `None` when the last address would end past the buffer.
    #[must_use]
    pub fn new(bytes: &'a [u8], offset: usize, stride: usize, count: usize) -> Option<Self> {
        let bytes = bytes.get(offset..)?;
        if count > 0 {
            let end = (count - 1).checked_mul(stride)?.checked_add(size_of::<K::Bytes>())?;
            if end > bytes.len() {
                return None;
            }
        }
        Some(Self { bytes, stride, count, keys: PhantomData })
    }
}

impl<'a, K: Key> Keys<'a, K> {
    /// Number of keys converted at a time: 1 KiB of IPv4 or 4 KiB of IPv6 on the stack, and enough for full vectors.
    pub const BLOCK: usize = 256;

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Host(keys) => keys.len(),
            Self::Network(keys) => keys.len(),
            Self::Strided(keys) => keys.count,
        }
    }

    /// Returns whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `each` for each block with the index of its first key and its keys in host order.
    pub fn for_each_block(&self, mut each: impl FnMut(usize, &[K])) {
        match *self {
            Self::Host(keys) => each(0, keys),
            Self::Network(keys) => {
                let mut block = [K::ZERO; 256];
                for (index, chunk) in keys.chunks(Self::BLOCK).enumerate() {
                    let block = &mut block[..chunk.len()];
                    for (key, &bytes) in block.iter_mut().zip(chunk) {
                        *key = K::from_network(bytes);
                    }
                    each(index * Self::BLOCK, block);
                }
            }
            Self::Strided(Strided { bytes, stride, count, .. }) => {
                let mut block = [K::ZERO; 256];
                let mut at = 0;
                let mut first = 0;
                while first < count {
                    let block = &mut block[..Self::BLOCK.min(count - first)];
                    for key in block.iter_mut() {
                        let mut address = K::Bytes::default();
                        let width = address.as_ref().len();
                        address.as_mut().copy_from_slice(&bytes[at..at + width]);
                        *key = K::from_network(address);
                        at += stride;
                    }
                    each(first, block);
                    first += block.len();
                }
            }
        }
    }
}

impl<'a, K: Key> From<&'a [K]> for Keys<'a, K> {
    fn from(keys: &'a [K]) -> Self {
        Self::Host(keys)
    }
}

impl<'a> From<&'a [[u8; 4]]> for Keys<'a, u32> {
    fn from(keys: &'a [[u8; 4]]) -> Self {
        Self::Network(keys)
    }
}

impl<'a> From<&'a [[u8; 16]]> for Keys<'a, u128> {
    fn from(keys: &'a [[u8; 16]]) -> Self {
        Self::Network(keys)
    }
}

impl<'a, K: Key, const N: usize> From<&'a [K; N]> for Keys<'a, K> {
    fn from(keys: &'a [K; N]) -> Self {
        Self::Host(keys)
    }
}

impl<'a, K: Key> From<&'a Vec<K>> for Keys<'a, K> {
    fn from(keys: &'a Vec<K>) -> Self {
        Self::Host(keys)
    }
}

impl<'a, K: Key> From<Strided<'a, K>> for Keys<'a, K> {
    fn from(keys: Strided<'a, K>) -> Self {
        Self::Strided(keys)
    }
}

/// A lookup of a batch: a function of the instruction set, the index of the first key, keys, and as many results.
pub trait BatchLookup<K: Key, R, S = ()>: Fn(Present, usize, Keys<'_, K>, &mut [R]) -> S {}

impl<K: Key, R, S, F: Fn(Present, usize, Keys<'_, K>, &mut [R]) -> S> BatchLookup<K, R, S> for F {}

/// A batch of lookups that is described before it runs. All that look up return one from `batch`, which takes keys in any of the
/// shapes of [`Keys`]; `lookup_batch` is short for a slice into a slice. A batch is of one family: integers in host order (`u32` or
/// `u128`), or bytes in network order (`[u8; 4]` or `[u8; 16]`), from which the family follows.
///
/// ```
/// use fibula::fib;
/// use fibula::net::{NextHop, Prefix, Route};
/// use fibula::rib::Rib;
///
/// let mut rib = Rib::default();
/// rib.insert(Route::new("10.0.0.0/8".parse::<Prefix<u32>>()?, NextHop::try_from(1)?))?;
/// let fib = fib::build(&rib)?;
///
/// // Addresses in network byte order, as a packet or a column of a file has them.
/// let sources = [[10, 0, 0, 1], [192, 0, 2, 1]];
/// let mut next_hops = [None; 2];
/// fib.batch(&sources).run(&mut next_hops);
/// assert_eq!(next_hops.map(|next_hop| next_hop.map_or(0, NextHop::id)), [1, 0]);
///
/// // A caller that does not know the lengths gets an error.
/// assert!(fib.batch(&sources).try_run(&mut [None]).is_err());
///
/// // Results go to a closure, without an array of them.
/// let mut found = 0;
/// fib.batch(&sources).for_each(|_at, next_hop| found += usize::from(next_hop.is_some()));
/// assert_eq!(found, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "`run` looks the batch up"]
pub struct Batch<'k, K: Key, F> {
    keys: Keys<'k, K>,
    /// The length of another column, if it differs from that of the keys.
    column: usize,
    isa: Present,
    lookup: F,
}

impl<'k, K: Key, F> Batch<'k, K, F> {
    /// Returns a batch that `lookup` looks up. Spelled out, the bound gives closures their types.
    pub(crate) fn new<R, S>(keys: Keys<'k, K>, lookup: F) -> Self
    where
        F: Fn(Present, usize, Keys<'_, K>, &mut [R]) -> S,
    {
        Self { column: keys.len(), keys, isa: simd::chosen(), lookup }
    }

    /// Adds a column that has to be as long as the keys.
    pub(crate) fn beside(self, len: usize) -> Self {
        if len == self.keys.len() { self } else { Self { column: len, ..self } }
    }

    /// Looks up with the best kernel that `isa` can run, instead of the [chosen](simd::chosen) instruction set.
    pub fn isa(self, isa: Present) -> Self {
        Self { isa, ..self }
    }

    /// Writes the result of key `i` to `results[i]`.
    ///
    /// # Panics
    /// When the columns or the results differ in length from the keys.
    pub fn run<R, S>(self, results: &mut [R]) -> S
    where
        F: BatchLookup<K, R, S>,
    {
        self.try_run(results).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`run`](Self::run), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When the columns or the results differ in length from the keys; `results` is then unchanged.
    pub fn try_run<R, S>(self, results: &mut [R]) -> Result<S, BatchError>
    where
        F: BatchLookup<K, R, S>,
    {
        BatchError::check(self.keys.len(), self.column)?;
        BatchError::check(self.keys.len(), results.len())?;
        Ok((self.lookup)(self.isa, 0, self.keys, results))
    }

    /// Calls `each` with the index of each key and its result, in order.
    ///
    /// # Panics
    /// When a column differs in length from the keys.
    pub fn for_each<R: Copy + Default, S>(self, mut each: impl FnMut(usize, R))
    where
        F: BatchLookup<K, R, S>,
    {
        assert_eq!(self.keys.len(), self.column, "a batch needs columns of the same length");
        let mut results = [R::default(); 256];
        self.keys.for_each_block(|mut first, block| {
            for keys in block.chunks(results.len()) {
                let results = &mut results[..keys.len()];
                (self.lookup)(self.isa, first, Keys::Host(keys), results);
                for &mut result in results {
                    each(first, result);
                    first += 1;
                }
            }
        });
    }
}

impl<K: Key, F> fmt::Debug for Batch<'_, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("keys", &self.keys).field("isa", &self.isa).finish_non_exhaustive()
    }
}

macro_rules! network_order {
    ($key:ty, $bytes:ty) => {
        impl<'a, const N: usize> From<&'a [$bytes; N]> for Keys<'a, $key> {
            fn from(keys: &'a [$bytes; N]) -> Self {
                Self::Network(keys)
            }
        }

        impl<'a> From<&'a Vec<$bytes>> for Keys<'a, $key> {
            fn from(keys: &'a Vec<$bytes>) -> Self {
                Self::Network(keys)
            }
        }
    };
}
network_order!(u32, [u8; 4]);
network_order!(u128, [u8; 16]);

/// The error for a batch whose number of results, or of another column, differs from its number of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchError {
    keys: usize,
    results: usize,
}

impl BatchError {
    /// Returns an error unless there is one result for every key.
    pub(crate) fn check(keys: usize, results: usize) -> Result<(), Self> {
        if keys == results { Ok(()) } else { Err(Self { keys, results }) }
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Returns the number of results.
    #[must_use]
    pub fn results(&self) -> usize {
        self.results
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a batch needs one result for each key: {} keys, {} results", self.keys, self.results)
    }
}

impl core::error::Error for BatchError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect<K: Key>(keys: Keys<'_, K>) -> Vec<K> {
        let mut all = Vec::new();
        keys.for_each_block(|first, block| {
            assert_eq!(first, all.len());
            all.extend_from_slice(block);
        });
        assert_eq!(all.len(), keys.len());
        all
    }

    #[test]
    fn every_shape_gives_the_same_keys() {
        for count in [0, 1, 2, 255, 256, 257, 600] {
            let keys: Vec<u32> = (0..count).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
            let network: Vec<[u8; 4]> = keys.iter().map(|key| key.to_be_bytes()).collect();
            assert_eq!(collect::<u32>(Keys::Host(&keys)), keys);
            assert_eq!(collect::<u32>(Keys::from(&network[..])), keys);
            for (offset, stride) in [(0, 4), (30, 60), (3, 4), (16, 5)] {
                let mut bytes = vec![0xee; offset + 4 + stride * keys.len()];
                for (index, address) in network.iter().enumerate() {
                    bytes[offset + index * stride..][..4].copy_from_slice(address);
                }
                let strided = Strided::<u32>::new(&bytes, offset, stride, keys.len()).unwrap();
                assert_eq!(collect::<u32>(Keys::Strided(strided)), keys);
            }
        }
    }

    #[test]
    fn strides_that_leave_the_buffer_are_refused() {
        let bytes = [0; 64];
        assert!(Strided::<u128>::new(&bytes, 0, 16, 4).is_some());
        assert!(Strided::<u128>::new(&bytes, 1, 16, 4).is_none());
        assert!(Strided::<u128>::new(&bytes, 0, 17, 4).is_none());
        assert!(Strided::<u128>::new(&bytes, 0, usize::MAX, 3).is_none());
        assert!(Strided::<u32>::new(&bytes, 65, 1, 0).is_none());
        assert!(Strided::<u32>::new(&bytes, 64, 1, 0).is_some());
        assert!(Strided::<u32>::new(&bytes, 60, 0, 100).is_some());
    }
}
