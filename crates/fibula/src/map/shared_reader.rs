//! Lookups in a map that changes.

use core::fmt;
use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use crate::live::{Pinned, Reader, TableError, TableKey};
use crate::net::{BatchError, IntoIpAddr, Keys, NextHop};

use super::compiled::BLOCK;
use super::shared::Shared;
use super::slab::index;

/// What one thread looks addresses up with in a [`SharedPrefixMap`](super::SharedPrefixMap).
///
/// It may move to another thread, but two threads do not share it: each has its own, from
/// [`SharedPrefixMap::reader`](super::SharedPrefixMap::reader) or [`try_clone`](Self::try_clone). A reader that threads share does
/// not compile, as that of [a table](crate::Reader):
///
/// ```compile_fail,E0277
/// let map = fibula::map::SharedPrefixMap::<String>::new()?;
/// let reader = std::sync::Arc::new(map.reader()?);
/// std::thread::spawn(move || reader.try_clone().is_ok());
/// # Ok::<(), fibula::live::TableError>(())
/// ```
pub struct MapReader<V> {
    reader: Reader,
    shared: Arc<Shared<V>>,
}

impl<V> MapReader<V> {
    pub(super) fn new(shared: Arc<Shared<V>>) -> Result<Self, TableError> {
        Ok(Self { reader: shared.table.reader()?, shared })
    }

    /// Pins the map, as [`Reader::pin`]: the values that the pin finds stay where they are until it ends. Costs a few
    /// nanoseconds, so once a batch is often enough.
    #[inline]
    pub fn pin(&mut self) -> PinnedMap<'_, V> {
        PinnedMap { pin: self.reader.pin(), shared: &self.shared }
    }

    /// Returns another reader of the map, for another thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn try_clone(&self) -> Result<Self, TableError> {
        Self::new(Arc::clone(&self.shared))
    }
}

impl<V> fmt::Debug for MapReader<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapReader").field("reader", &self.reader).finish_non_exhaustive()
    }
}

/// A reader that is pinned. It does not leave its thread.
pub struct PinnedMap<'r, V> {
    pin: Pinned<'r>,
    shared: &'r Shared<V>,
}

impl<V> PinnedMap<'_, V> {
    /// Returns the value of the longest prefix that contains an address.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<&V> {
        self.value(self.pin.lookup(address))
    }

    /// Like [`lookup`](Self::lookup), for an address of one family as an integer in host order.
    #[inline]
    #[must_use]
    pub fn lookup_key<K: TableKey>(&self, key: K) -> Option<&V> {
        self.value(self.pin.lookup_key(key))
    }

    #[inline]
    fn value(&self, at: Option<NextHop>) -> Option<&V> {
        // What was stored before the prefix was, for which the lookup may have no fence.
        fence(Ordering::Acquire);
        self.shared.values.read(&self.pin).get(index(at?) as u32)
    }

    /// Looks up `keys`, writing the value of the longest prefix around `keys[i]` to `results[i]`.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_batch<'p, K: TableKey>(&'p self, keys: &[K], results: &mut [Option<&'p V>]) {
        self.lookup_keys(Keys::from(keys), results);
    }

    /// Like [`lookup_batch`](Self::lookup_batch), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When the two differ in length; `results` is then unchanged.
    pub fn try_lookup_batch<'p, K: TableKey>(
        &'p self,
        keys: &[K],
        results: &mut [Option<&'p V>],
    ) -> Result<(), BatchError> {
        BatchError::check(keys.len(), results.len())?;
        self.lookup_batch(keys, results);
        Ok(())
    }

    /// Like [`lookup_batch`](Self::lookup_batch), for keys in any of the shapes of [`Keys`].
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    pub fn lookup_keys<'p, K: TableKey>(&'p self, keys: Keys<'_, K>, results: &mut [Option<&'p V>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let values = self.shared.values.read(&self.pin);
        let mut found = [None; BLOCK];
        keys.for_each_block(|first, block| {
            let results = &mut results[first..first + block.len()];
            for (keys, results) in block.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
                let found = &mut found[..keys.len()];
                self.pin.lookup_batch(keys, found);
                fence(Ordering::Acquire);
                for (result, at) in results.iter_mut().zip(found) {
                    *result = at.and_then(|at| values.get(index(at) as u32));
                }
            }
        });
    }

    /// Like [`lookup_batch`](Self::lookup_batch), but calls `each` with the index of each key and its value instead of writing
    /// to an array. References in an array would end with the pin's next [`refresh`](Self::refresh), so the array could not be
    /// used again; arrays of the caller's own results can.
    ///
    /// ```
    /// # use fibula::{ipnet::IpNet, map::SharedPrefixMap};
    /// let rules = SharedPrefixMap::new()?;
    /// rules.insert("192.0.2.0/24".parse::<IpNet>()?, true)?;
    /// let mut reader = rules.reader()?;
    /// let mut pin = reader.pin();
    /// // Made once, for all bursts.
    /// let (mut sources, mut is_permitted) = ([0_u32; 32], [false; 32]);
    /// let mut burst = 0;
    /// while burst < 1000 {
    ///     sources.fill(0xc000_0200 + burst);
    ///     // Rules that changed since the last burst count from here on.
    ///     pin.refresh();
    ///     pin.lookup_batch_with(&sources, |at, rule| is_permitted[at] = rule.copied().unwrap_or(false));
    ///     assert_eq!(is_permitted, [burst < 256; 32]);
    ///     burst += 1;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lookup_batch_with<'p, K: TableKey>(&'p self, keys: &[K], each: impl FnMut(usize, Option<&'p V>)) {
        self.lookup_keys_with(Keys::from(keys), each);
    }

    /// Like [`lookup_batch_with`](Self::lookup_batch_with), for keys in any of the shapes of [`Keys`].
    pub fn lookup_keys_with<'p, K: TableKey>(
        &'p self,
        keys: Keys<'_, K>,
        mut each: impl FnMut(usize, Option<&'p V>),
    ) {
        let values = self.shared.values.read(&self.pin);
        let mut found = [None; BLOCK];
        keys.for_each_block(|mut first, block| {
            for keys in block.chunks(BLOCK) {
                let found = &mut found[..keys.len()];
                self.pin.lookup_batch(keys, found);
                fence(Ordering::Acquire);
                for (at, found) in found.iter().enumerate() {
                    each(first + at, found.and_then(|at| values.get(index(at) as u32)));
                }
                first += keys.len();
            }
        });
    }

    /// Pins anew, as [`Pinned::refresh`].
    #[inline]
    pub fn refresh(&mut self) {
        self.pin.refresh();
    }

    /// Returns the version that lookups see at least, as [`Pinned::version`].
    #[must_use]
    pub fn version(&self) -> u64 {
        self.pin.version()
    }
}

impl<V> fmt::Debug for PinnedMap<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedMap").field("pin", &self.pin).finish_non_exhaustive()
    }
}
