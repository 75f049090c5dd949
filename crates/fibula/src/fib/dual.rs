//! The engines of both families as one.

use crate::memory::Memory;
use crate::net::{Dual, IntoIpAddr, NextHop, Routes};

use super::{BuildError, Fib, build};

/// An engine for IPv4 and one for IPv6. Lookups go to the one of their family.
pub type DualFib = Dual<Box<dyn Fib<u32>>, Box<dyn Fib<u128>>>;

impl DualFib {
    /// Builds, for each of the two tables, the engine that [`build`] chooses. A [`DualRib`](crate::rib::DualRib) is
    /// such a pair of tables.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn build(routes: &Dual<impl Routes<u32>, impl Routes<u128>>) -> Result<Self, BuildError> {
        Ok(Self::new(build(&routes.v4)?, build(&routes.v6)?))
    }

    /// Returns the next hop of the longest prefix that contains `address`; `None` if no route matches.
    ///
    /// Batches are looked up in the engine of their family.
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<NextHop> {
        address.by_family(|key| self.v4.lookup_key(key), |key| self.v6.lookup_key(key))
    }

    /// Returns the memory that both engines take.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.v4.memory() + self.v6.memory()
    }
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::*;
    use crate::net::IpPrefix;
    use crate::rib::DualRib;

    #[test]
    fn both_families_are_kept_apart() {
        let [one, two] = [1, 2].map(|id| NextHop::new(id).unwrap());
        let mut ribs = DualRib::default();
        for (text, next_hop) in [("192.0.2.0/24", one), ("2001:db8::/32", two)] {
            ribs.insert(text.parse::<IpPrefix>().unwrap(), next_hop).unwrap();
        }
        let fibs = DualFib::build(&ribs).unwrap();
        let lookup = |text: &str| fibs.lookup(text.parse::<IpAddr>().unwrap());
        assert_eq!((lookup("192.0.2.1"), lookup("2001:db8::1")), (Some(one), Some(two)));
        assert_eq!(lookup("::ffff:192.0.2.1"), None);
        assert_eq!(fibs.memory(), fibs.v4.memory() + fibs.v6.memory());
    }
}
