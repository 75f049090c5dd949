//! The routing tables of both families as one.

use core::net::IpAddr;

use crate::memory::{Limits, Memory};
use crate::net::{Dual, IntoIpAddr, IntoIpPrefix, IpPrefix, NextHop, Route};

use super::{Rib, RibError};

/// A routing table for IPv4 and one for IPv6. Changes and queries go to the one of their family.
pub type DualRib = Dual<Rib<u32>, Rib<u128>>;

impl DualRib {
    /// Returns two empty tables that each stay within `limits`.
    #[must_use]
    pub fn within(limits: Limits) -> Self {
        Self::new(Rib::new(limits), Rib::new(limits))
    }

    /// Adds the route, or changes the next hop of its prefix. Returns the next hop that it had before.
    ///
    /// # Errors
    /// When the memory limit or the allocator refuses; the table is unchanged.
    pub fn insert(
        &mut self,
        prefix: impl IntoIpPrefix,
        next_hop: NextHop,
    ) -> Result<Option<NextHop>, RibError> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.v4.insert(Route::new(prefix, next_hop)),
            IpPrefix::V6(prefix) => self.v6.insert(Route::new(prefix, next_hop)),
        }
    }

    /// Removes the prefix. Returns its next hop, if it was present.
    pub fn remove(&mut self, prefix: impl IntoIpPrefix) -> Option<NextHop> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.v4.remove(prefix),
            IpPrefix::V6(prefix) => self.v6.remove(prefix),
        }
    }

    /// Returns the next hop of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: impl IntoIpPrefix) -> Option<NextHop> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.v4.get(prefix),
            IpPrefix::V6(prefix) => self.v6.get(prefix),
        }
    }

    /// Returns the next hop of the longest prefix that contains `address`.
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<NextHop> {
        match address.into_ip_addr() {
            IpAddr::V4(address) => self.v4.lookup(address),
            IpAddr::V6(address) => self.v6.lookup(address),
        }
    }

    /// Returns the longest prefix that contains `address`, and its next hop.
    #[must_use]
    pub fn lookup_prefix(&self, address: impl IntoIpAddr) -> Option<(IpPrefix, NextHop)> {
        lookup_prefix(&self.v4, &self.v6, address.into_ip_addr())
    }

    /// Returns all routes in order, IPv4 first.
    pub fn iter(&self) -> impl Iterator<Item = (IpPrefix, NextHop)> {
        self.v4.iter().map(either).chain(self.v6.iter().map(either))
    }

    /// Returns the number of routes of both tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns whether neither table has a route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Returns the memory that both tables take.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.v4.memory() + self.v6.memory()
    }
}

/// Returns the longest prefix of either table that contains `address`, and its next hop.
pub(crate) fn lookup_prefix(v4: &Rib<u32>, v6: &Rib<u128>, address: IpAddr) -> Option<(IpPrefix, NextHop)> {
    match address {
        IpAddr::V4(address) => v4.lookup_prefix(address).map(either),
        IpAddr::V6(address) => v6.lookup_prefix(address).map(either),
    }
}

fn either<K>(route: Route<K>) -> (IpPrefix, NextHop)
where
    IpPrefix: From<crate::net::Prefix<K>>,
{
    (route.prefix.into(), route.next_hop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_are_kept_apart() {
        let [one, two] = [1, 2].map(|id| NextHop::new(id).unwrap());
        let mut ribs = DualRib::default();
        let prefixes: [IpPrefix; 2] = ["192.0.2.0/24", "2001:db8::/32"].map(|text| text.parse().unwrap());
        assert_eq!(ribs.insert(prefixes[0], one).unwrap(), None);
        assert!(!ribs.is_empty());
        assert_eq!(ribs.insert(prefixes[1], one).unwrap(), None);
        assert_eq!(ribs.insert(prefixes[1], two).unwrap(), Some(one));
        assert_eq!((ribs.len(), ribs.v4.len(), ribs.v6.len()), (2, 1, 1));
        assert!(ribs.iter().eq([(prefixes[0], one), (prefixes[1], two)]));
        let [v4, v6, mapped] =
            ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!([v4, v6, mapped].map(|address| ribs.lookup(address)), [Some(one), Some(two), None]);
        assert_eq!(ribs.lookup_prefix(v6), Some((prefixes[1], two)));
        assert_eq!((ribs.get(prefixes[0]), ribs.get(v4)), (Some(one), None));
        assert_eq!(ribs.memory(), ribs.v4.memory() + ribs.v6.memory());

        assert_eq!((ribs.remove(prefixes[0]), ribs.remove(prefixes[0])), (Some(one), None));
        assert!(!ribs.is_empty());
        assert_eq!(ribs.remove(prefixes[1]), Some(two));
        assert!(ribs.is_empty());
        assert!(DualRib::within(Limits::within(0)).insert(prefixes[0], one).is_err());
    }
}
