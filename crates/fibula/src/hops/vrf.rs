//! Lookups in VRFs that end at a next hop.

use crate::live::{Pinned, TableKey};
use crate::net::{IntoIpAddr, Keys, NextHop};
use crate::simd;
use crate::vrf::{Vrf, Vrfs};

use super::NextHops;
use super::reader::{BLOCK, Counts, Resolved};

/// Lookups in [`Vrfs`] with [`NextHops`], down to their values.
impl<T> Pinned<'_, NextHops<T, Vrfs>> {
    /// Returns the next hop of a flow to `address` in a VRF; [`NoRoute`](Resolved::NoRoute) if there is no such VRF. Flows
    /// with equal hashes take the same path.
    #[inline]
    #[must_use]
    pub fn lookup(&self, vrf: impl Into<Vrf>, address: impl IntoIpAddr, flow_hash: u32) -> Resolved<'_, T> {
        self.resolve(self.roots.lookup(vrf.into(), address.into_ip_addr()), flow_hash)
    }

    /// Like [`lookup`](Self::lookup), for an address of one family as an integer in host order.
    #[inline]
    #[must_use]
    pub fn lookup_key<K: TableKey>(&self, vrf: impl Into<Vrf>, key: K, flow_hash: u32) -> Resolved<'_, T> {
        self.resolve(self.roots.lookup_key(vrf.into(), key), flow_hash)
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
        assert_eq!(vrfs.len(), keys.len(), "a batch needs one VRF a key");
        assert_eq!(keys.len(), members.len(), "a batch needs one result a key");
        assert_eq!(keys.len(), flow_hashes.len(), "a batch needs one flow hash a key");
        let mut counts = Counts::default();
        let columns = vrfs.chunks(BLOCK).zip(keys.chunks(BLOCK));
        let flows = flow_hashes.chunks(BLOCK).zip(members.chunks_mut(BLOCK));
        for ((vrfs, keys), (hashes, members)) in columns.zip(flows) {
            self.roots.lookup_batch(simd::chosen(), vrfs, keys, members);
            counts.add(self.resolve_block(members, hashes));
        }
        self.own.tally.count(counts.withdrawn as u64, counts.unknown as u64);
        counts
    }

    /// Like [`lookup_batch`](Self::lookup_batch), for keys in any of the shapes of [`Keys`].
    ///
    /// # Panics
    /// When the four slices differ in length.
    pub fn lookup_keys<K: TableKey, V: Copy + Into<Vrf>>(
        &self,
        vrfs: &[V],
        keys: Keys<'_, K>,
        flow_hashes: &[u32],
        members: &mut [Option<NextHop>],
    ) -> Counts {
        assert_eq!(keys.len(), flow_hashes.len(), "a batch needs one flow hash a key");
        self.roots.lookup_keys(vrfs, keys, members);
        self.resolve_in_place(members, flow_hashes)
    }
}
