//! Lookups in VRFs that change.

use crate::live::{Pinned, TableError, TableKey};
use crate::net::{Batch, BatchLookup, IntoIpAddr, Keys, NextHop};
use crate::simd::{self, Present};

use super::block::{half_v4, half_v6};
use super::column::{self, root_of};
use super::roots::VrfRoots;
use super::{Vrf, Vrfs};

/// Lookups in [`Vrfs`]. A VRF that does not exist has no routes, so lookups in it find nothing: `try_lookup` tells the two apart.
impl Pinned<'_, Vrfs> {
    /// Returns whether there is such a VRF.
    #[must_use]
    pub fn contains(&self, vrf: impl Into<Vrf>) -> bool {
        // Either half would do: a VRF exists for both families or for neither.
        root_of(&self.roots.directory, vrf.into(), half_v4).exists()
    }

    /// Returns the next hop of the longest prefix of a VRF that contains an address; `None` if no route matches.
    #[inline]
    #[must_use]
    pub fn lookup(&self, vrf: impl Into<Vrf>, address: impl IntoIpAddr) -> Option<NextHop> {
        self.roots.lookup(vrf.into(), address)
    }

    /// Like [`lookup`](Self::lookup), but returns an error where there is no such VRF.
    ///
    /// # Errors
    /// [`TableError::UnknownVrf`].
    pub fn try_lookup(
        &self,
        vrf: impl Into<Vrf>,
        address: impl IntoIpAddr,
    ) -> Result<Option<NextHop>, TableError> {
        let vrf = vrf.into();
        if self.contains(vrf) { Ok(self.lookup(vrf, address)) } else { Err(TableError::UnknownVrf(vrf)) }
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
        self.batch(vrfs, keys).run(results);
    }

    /// Returns a batch of lookups of columns of VRFs and of keys in any of the shapes of [`Keys`], to be run: see [`Batch`].
    pub fn batch<'k, K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        vrfs: &[V],
        keys: impl Into<Keys<'k, K>>,
    ) -> Batch<'k, K, impl BatchLookup<K, Option<NextHop>>> {
        let lookup = move |isa, at, keys: Keys<'_, K>, results: &mut [Option<NextHop>]| {
            self.roots.lookup_keys(isa, &vrfs[at..at + keys.len()], keys, results);
        };
        // `run` compares the lengths, because the lookup cuts `vrfs` where the keys are cut.
        Batch::new(keys.into(), lookup).beside(vrfs.len())
    }

    /// Returns a batch of lookups in one VRF, to be run: see [`Batch`].
    pub fn batch_in<'k, K: TableKey>(
        &self,
        vrf: impl Into<Vrf>,
        keys: impl Into<Keys<'k, K>>,
    ) -> Batch<'k, K, impl BatchLookup<K, Option<NextHop>>> {
        let vrf = vrf.into();
        let lookup = move |isa, _: usize, keys: Keys<'_, K>, results: &mut [Option<NextHop>]| {
            let VrfRoots { directory, v4, v6 } = &*self.roots;
            keys.for_each_block(|first, block| {
                let results = &mut results[first..first + block.len()];
                if let Some(keys) = K::as_ipv4(block) {
                    column::same(isa, v4, root_of(directory, vrf, half_v4), keys, results);
                } else if let Some(keys) = K::as_ipv6(block) {
                    column::same(isa, v6, root_of(directory, vrf, half_v6), keys, results);
                }
            });
        };
        Batch::new(keys.into(), lookup)
    }
}

impl VrfRoots {
    #[inline]
    pub(crate) fn lookup(&self, vrf: Vrf, address: impl IntoIpAddr) -> Option<NextHop> {
        let (isa, Self { directory, v4, v6 }) = (simd::chosen(), self);
        address.by_family(
            |key| column::one(isa, v4, root_of(directory, vrf, half_v4), key),
            |key| column::one(isa, v6, root_of(directory, vrf, half_v6), key),
        )
    }

    /// Looks up columns of equal lengths.
    pub(crate) fn lookup_keys<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        isa: Present,
        vrfs: &[V],
        keys: Keys<'_, K>,
        results: &mut [Option<NextHop>],
    ) {
        let Self { directory, v4, v6 } = self;
        keys.for_each_block(|first, block| {
            let rows = first..first + block.len();
            let (vrfs, results) = (&vrfs[rows.clone()], &mut results[rows]);
            if let Some(keys) = K::as_ipv4(block) {
                column::mixed(isa, directory, v4, half_v4, vrfs, keys, results);
            } else if let Some(keys) = K::as_ipv6(block) {
                column::mixed(isa, directory, v6, half_v6, vrfs, keys, results);
            }
        });
    }
}
