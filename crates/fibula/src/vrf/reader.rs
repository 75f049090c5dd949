//! Lookups in VRFs that change.

use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;

use crate::live::epoch::{Domain, Slot};
use crate::live::{Pin, TableError, TableKey, root};
use crate::net::{BatchError, IntoIpAddr, Keys, NextHop};
use crate::simd::{self, Present};

use super::block::{half_v4, half_v6};
use super::column::{self, root_of};
use super::roots::Roots;
use super::table::Shared;
use super::{Vrf, VrfError};

/// Looks up addresses in the VRFs of a [`Vrfs`](super::Vrfs), for one thread.
///
/// It may move to another thread, but two threads do not share it: each has its own, from [`Vrfs::reader`](super::Vrfs::reader)
/// or a clone. One reader serves all VRFs. A reader that threads share does not compile, as that of [a table](crate::Reader):
///
/// ```compile_fail,E0277
/// let reader = std::sync::Arc::new(fibula::Vrfs::new()?.reader()?);
/// std::thread::spawn(move || reader.number());
/// # Ok::<(), fibula::vrf::VrfError>(())
/// ```
pub struct Reader {
    shared: Arc<Shared>,
    slot: Slot,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, TableError> {
        let slot = Slot::register(&shared.domain)?;
        Ok(Self { shared, slot })
    }

    /// Returns the number by which errors name this reader.
    #[must_use]
    pub fn number(&self) -> usize {
        self.slot.number()
    }

    /// Pins all VRFs: memory that the pin can reach is not freed until the pin is dropped.
    ///
    /// A pin takes no lock, waits for nothing and writes only a word of this reader's. It costs a few nanoseconds, so once a
    /// batch is often enough.
    #[inline]
    #[allow(unsafe_code)]
    pub fn pin(&mut self) -> Pinned<'_> {
        let Self { shared, slot } = self;
        // SAFETY: the slot is of the domain of these VRFs, and their writer retires the old roots of each swap in that domain
        // before it ends the epoch, and drops them when they are collected.
        Pinned { roots: unsafe { shared.root.pin(slot) } }
    }

    /// Returns another reader, for another thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn try_clone(&self) -> Result<Self, VrfError> {
        Ok(Self::new(Arc::clone(&self.shared))?)
    }
}

impl Clone for Reader {
    /// # Panics
    /// When memory runs out, where [`try_clone`](Self::try_clone) returns an error.
    fn clone(&self) -> Self {
        self.try_clone().expect("memory for another reader")
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("number", &self.number()).finish_non_exhaustive()
    }
}

/// A reader that is pinned. It does not leave its thread.
///
/// A VRF that does not exist has no routes: lookups in it find nothing. [`try_lookup`](Self::try_lookup) tells the two apart.
pub struct Pinned<'r> {
    roots: root::Pinned<'r, Roots>,
}

impl Pinned<'_> {
    /// Returns whether there is such a VRF.
    #[must_use]
    pub fn contains(&self, vrf: impl Into<Vrf>) -> bool {
        root_of(&self.roots.directory, vrf.into(), half_v4).exists()
    }

    /// Returns the next hop of the longest prefix of a VRF that contains an address; `None` if no route matches.
    #[inline]
    #[must_use]
    pub fn lookup(&self, vrf: impl Into<Vrf>, address: impl IntoIpAddr) -> Option<NextHop> {
        match address.into_ip_addr() {
            IpAddr::V4(address) => self.lookup_key(vrf, u32::from(address)),
            IpAddr::V6(address) => self.lookup_key(vrf, u128::from(address)),
        }
    }

    /// Like [`lookup`](Self::lookup), but returns an error where there is no such VRF.
    ///
    /// # Errors
    /// [`VrfError::Unknown`].
    pub fn try_lookup(
        &self,
        vrf: impl Into<Vrf>,
        address: impl IntoIpAddr,
    ) -> Result<Option<NextHop>, VrfError> {
        let vrf = vrf.into();
        if self.contains(vrf) { Ok(self.lookup(vrf, address)) } else { Err(VrfError::Unknown(vrf)) }
    }

    /// Like [`lookup`](Self::lookup), for an address of one family as an integer in host order.
    #[inline]
    #[must_use]
    pub fn lookup_key<K: TableKey>(&self, vrf: impl Into<Vrf>, key: K) -> Option<NextHop> {
        let (isa, vrf) = (simd::chosen(), vrf.into());
        let Roots { directory, v4, v6 } = &*self.roots;
        if let Some(&[key]) = K::as_ipv4(&[key]) {
            column::one(isa, v4, root_of(directory, vrf, half_v4), key)
        } else if let Some(&[key]) = K::as_ipv6(&[key]) {
            column::one(isa, v6, root_of(directory, vrf, half_v6), key)
        } else {
            None
        }
    }

    /// Looks up columns of VRFs and keys in any mix, writing the next hop of `keys[i]` in `vrfs[i]` to `results[i]`. VRFs may
    /// be given as numbers. Takes no memory; batches of 256 and more are fastest, and of 1,024 where VRFs are large.
    ///
    /// # Panics
    /// When the three differ in length.
    #[inline]
    pub fn lookup_batch<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        vrfs: &[V],
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) {
        self.lookup_batch_on(simd::chosen(), vrfs, keys, results);
    }

    /// Like [`lookup_batch`](Self::lookup_batch), with an instruction set of the caller's choice.
    ///
    /// # Panics
    /// When the three differ in length.
    pub fn lookup_batch_on<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        isa: Present,
        vrfs: &[V],
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) {
        assert_eq!(vrfs.len(), keys.len(), "a batch needs one VRF a key");
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let Roots { directory, v4, v6 } = &*self.roots;
        if let Some(keys) = K::as_ipv4(keys) {
            column::mixed(isa, directory, v4, half_v4, vrfs, keys, results);
        } else if let Some(keys) = K::as_ipv6(keys) {
            column::mixed(isa, directory, v6, half_v6, vrfs, keys, results);
        }
    }

    /// Like [`lookup_batch`](Self::lookup_batch), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When the three differ in length; `results` is then unchanged.
    pub fn try_lookup_batch<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        vrfs: &[V],
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) -> Result<(), BatchError> {
        BatchError::check(keys.len(), vrfs.len())?;
        BatchError::check(keys.len(), results.len())?;
        self.lookup_batch(vrfs, keys, results);
        Ok(())
    }

    /// Like [`lookup_batch`](Self::lookup_batch), for keys in any of the shapes of [`Keys`].
    ///
    /// # Panics
    /// When the three differ in length.
    pub fn lookup_keys<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        vrfs: &[V],
        keys: Keys<'_, K>,
        results: &mut [Option<NextHop>],
    ) {
        assert_eq!(vrfs.len(), keys.len(), "a batch needs one VRF a key");
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        keys.for_each_block(|first, block| {
            let rows = first..first + block.len();
            self.lookup_batch(&vrfs[rows.clone()], block, &mut results[rows]);
        });
    }

    /// Looks up `keys` in one VRF, writing the next hop of `keys[i]` to `results[i]`.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_batch_in<K: TableKey>(
        &self,
        vrf: impl Into<Vrf>,
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let (isa, vrf) = (simd::chosen(), vrf.into());
        let Roots { directory, v4, v6 } = &*self.roots;
        if let Some(keys) = K::as_ipv4(keys) {
            column::same(isa, v4, root_of(directory, vrf, half_v4), keys, results);
        } else if let Some(keys) = K::as_ipv6(keys) {
            column::same(isa, v6, root_of(directory, vrf, half_v6), keys, results);
        }
    }

    /// Moves the pin to the present state, which is cheaper than ending the pin and beginning another. Call it once a round in
    /// loops that never end: otherwise the writer cannot free memory. Later lookups see all changes up to now.
    #[inline]
    pub fn refresh(&mut self) {
        self.roots.refresh();
    }

    /// Returns the version that lookups see at least: changes whose [`Outcome::version`](crate::live::Outcome::version) is no
    /// larger are all visible.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.roots.epoch()
    }
}

impl Pin for Pinned<'_> {
    #[inline]
    fn domain(&self) -> &Domain {
        self.roots.domain()
    }
}

impl fmt::Debug for Pinned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("version", &self.version()).finish_non_exhaustive()
    }
}
