//! Lookups in VRFs that end at a next hop.

use crate::live::{Pinned, TableKey};
use crate::net::{Batch, BatchLookup, IntoIpAddr, Keys, NextHop};
use crate::vrf::{Vrf, Vrfs};

use super::NextHops;
use super::reader::{Counts, Resolved};

/// Lookups in [`Vrfs`] with [`NextHops`], down to their values.
impl<T> Pinned<'_, NextHops<T, Vrfs>> {
    /// Returns the next hop of a flow to `address` in a VRF; [`NoRoute`](Resolved::NoRoute) if there is no such VRF. Flows
    /// with equal hashes take the same path.
    #[inline]
    #[must_use]
    pub fn lookup(&self, vrf: impl Into<Vrf>, address: impl IntoIpAddr, flow_hash: u32) -> Resolved<'_, T> {
        self.resolve(self.roots.lookup(vrf.into(), address), flow_hash)
    }

    /// Looks up `keys[i]` in `vrfs[i]` and writes to `members[i]` the next hop of a flow with `flow_hashes[i]`; `None` if it
    /// goes nowhere. [`get`](Self::get) has the value of each. Returns the number of flows with each result.
    ///
    /// # Panics
    /// When the four slices differ in length.
    pub fn lookup_batch<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        vrfs: &[V],
        keys: &[K],
        flow_hashes: &[u32],
        members: &mut [Option<NextHop>],
    ) -> Counts {
        self.batch(vrfs, keys, flow_hashes).run(members)
    }

    /// Returns a batch of lookups of columns of VRFs and of keys in any of the shapes of [`Keys`], to be run: see [`Batch`]. A run
    /// returns the number of flows with each result.
    pub fn batch<'k, K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        vrfs: &[V],
        keys: impl Into<Keys<'k, K>>,
        flow_hashes: &[u32],
    ) -> Batch<'k, K, impl BatchLookup<K, Option<NextHop>, Counts>> {
        let lookup = move |isa, at, keys: Keys<'_, K>, members: &mut [Option<NextHop>]| {
            let vrfs = &vrfs[at..];
            self.resolve_blocks(keys, &flow_hashes[at..], members, |first, keys, members| {
                self.roots.lookup_keys(isa, &vrfs[first..first + keys.len()], Keys::Host(keys), members);
            })
        };
        Batch::new(keys.into(), lookup).beside(vrfs.len()).beside(flow_hashes.len())
    }
}
