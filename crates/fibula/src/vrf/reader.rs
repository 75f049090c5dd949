//! Lookups in VRFs that change.

use core::net::IpAddr;

use crate::live::{Pinned, TableKey};
use crate::net::{BatchError, IntoIpAddr, Keys, NextHop};
use crate::simd::{self, Present};

use super::block::{half_v4, half_v6};
use super::column::{self, root_of};
use super::roots::Roots;
use super::{Vrf, VrfError, Vrfs};

/// Lookups in [`Vrfs`]. A VRF that does not exist has no routes, so lookups in it find nothing: `try_lookup` tells the two apart.
impl Pinned<'_, Vrfs> {
    /// Returns whether there is such a VRF.
    #[must_use]
    pub fn contains(&self, vrf: impl Into<Vrf>) -> bool {
        root_of(&self.roots.directory, vrf.into(), half_v4).exists()
    }

    /// Returns the next hop of the longest prefix of a VRF that contains an address; `None` if no route matches.
    #[inline]
    #[must_use]
    pub fn lookup(&self, vrf: impl Into<Vrf>, address: impl IntoIpAddr) -> Option<NextHop> {
        self.roots.lookup(vrf.into(), address.into_ip_addr())
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
        self.roots.lookup_key(vrf.into(), key)
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
        self.roots.lookup_batch(isa, vrfs, keys, results);
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
        self.roots.lookup_keys(vrfs, keys, results);
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
}

impl Roots {
    #[inline]
    pub(crate) fn lookup(&self, vrf: Vrf, address: IpAddr) -> Option<NextHop> {
        match address {
            IpAddr::V4(address) => self.lookup_key(vrf, u32::from(address)),
            IpAddr::V6(address) => self.lookup_key(vrf, u128::from(address)),
        }
    }

    #[inline]
    pub(crate) fn lookup_key<K: TableKey>(&self, vrf: Vrf, key: K) -> Option<NextHop> {
        let (isa, Self { directory, v4, v6 }) = (simd::chosen(), self);
        if let Some(&[key]) = K::as_ipv4(&[key]) {
            column::one(isa, v4, root_of(directory, vrf, half_v4), key)
        } else if let Some(&[key]) = K::as_ipv6(&[key]) {
            column::one(isa, v6, root_of(directory, vrf, half_v6), key)
        } else {
            None
        }
    }

    pub(crate) fn lookup_batch<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        isa: Present,
        vrfs: &[V],
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) {
        assert_eq!(vrfs.len(), keys.len(), "a batch needs one VRF a key");
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let Self { directory, v4, v6 } = self;
        if let Some(keys) = K::as_ipv4(keys) {
            column::mixed(isa, directory, v4, half_v4, vrfs, keys, results);
        } else if let Some(keys) = K::as_ipv6(keys) {
            column::mixed(isa, directory, v6, half_v6, vrfs, keys, results);
        }
    }

    pub(crate) fn lookup_keys<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        vrfs: &[V],
        keys: Keys<'_, K>,
        results: &mut [Option<NextHop>],
    ) {
        assert_eq!(vrfs.len(), keys.len(), "a batch needs one VRF a key");
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let isa = simd::chosen();
        keys.for_each_block(|first, block| {
            let rows = first..first + block.len();
            self.lookup_batch(isa, &vrfs[rows.clone()], block, &mut results[rows]);
        });
    }
}
