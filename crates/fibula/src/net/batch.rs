//! Batches of keys, in the layouts in which callers hold them.

use core::fmt;
use core::marker::PhantomData;

use super::key::Key;

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

/// The error for a batch whose number of results differs from its number of keys.
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
