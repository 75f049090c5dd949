//! Tables of routes, charged to a ledger.

use fibula::memory::{Limits, OutOfMemory};
use fibula::net::{IpPrefix, Key, NextHop, Route};
use fibula::rib::{DualRib, Rib};

use crate::ledger::{Held, Ledger};

/// The tables of both families, charged to one ledger.
#[derive(Debug)]
pub(crate) struct Ribs {
    ribs: DualRib,
    limits: Limits,
    held: Held,
}

impl Ribs {
    pub(crate) fn new(limits: Limits, ledger: &Ledger) -> Self {
        Self { ribs: DualRib::within(limits), limits, held: Held::new(ledger) }
    }

    pub(crate) fn insert(
        &mut self,
        prefix: IpPrefix,
        next_hop: NextHop,
    ) -> Result<Option<NextHop>, OutOfMemory> {
        match prefix {
            IpPrefix::V4(prefix) => {
                insert(&mut self.ribs.v4, Route::new(prefix, next_hop), self.limits, &mut self.held)
            }
            IpPrefix::V6(prefix) => {
                insert(&mut self.ribs.v6, Route::new(prefix, next_hop), self.limits, &mut self.held)
            }
        }
    }

    /// Removes a prefix; returns its next hop, if it was there.
    pub(crate) fn remove(&mut self, prefix: IpPrefix) -> Option<NextHop> {
        self.ribs.remove(prefix)
    }

    /// Returns the next hop of exactly this prefix.
    pub(crate) fn get(&self, prefix: IpPrefix) -> Option<NextHop> {
        self.ribs.get(prefix)
    }

    /// Replaces all next hops, in place.
    pub(crate) fn relabel(&mut self, label: impl Fn(NextHop) -> NextHop) {
        self.ribs.v4.map_next_hops(|route| label(route.next_hop));
        self.ribs.v6.map_next_hops(|route| label(route.next_hop));
    }

    /// Returns the tables with the user's limits.
    pub(crate) fn finish(mut self) -> DualRib {
        self.ribs.v4.set_limits(self.limits);
        self.ribs.v6.set_limits(self.limits);
        self.ribs
    }

    /// Returns the number of IPv4 and of IPv6 prefixes.
    pub(crate) fn lens(&self) -> [u64; 2] {
        [self.ribs.v4.len() as u64, self.ribs.v6.len() as u64]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ribs.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (IpPrefix, NextHop)> {
        self.ribs.iter()
    }
}

/// Inserts the route; the table may take all memory that is left in the ledger.
fn insert<K: Key>(
    rib: &mut Rib<K>,
    route: Route<K>,
    limits: Limits,
    held: &mut Held,
) -> Result<Option<NextHop>, OutOfMemory> {
    let Some(free_bytes) = held.ledger().free_bytes() else {
        return rib.insert(route).map_err(|error| error.out_of_memory());
    };
    let before = rib.memory().held_bytes();
    rib.set_limits(Limits { memory_bytes: Some(before + free_bytes), ..limits });
    let inserted = rib.insert(route).map_err(|error| {
        let used_bytes = held.ledger().used_bytes();
        OutOfMemory { used_bytes, limit_bytes: limits.memory_bytes, ..error.out_of_memory() }
    })?;
    let after = rib.memory().held_bytes();
    if after != before {
        held.set(held.bytes() + after - before)?;
    }
    Ok(inserted)
}
