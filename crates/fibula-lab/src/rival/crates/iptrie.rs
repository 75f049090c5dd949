//! `iptrie`: a Patricia trie that is filled, then compressed to a level-compressed trie, which its authors recommend
//! for lookups. Its root always matches: without a default route, the root's value means no route.

use core::error::Error;
use core::net::{Ipv4Addr, Ipv6Addr};

use iptrie::{Ipv4LCTrieMap, Ipv4Prefix, Ipv4RTrieMap, Ipv6LCTrieMap, Ipv6Prefix, Ipv6RTrieMap};

use super::table::Table;

pub(super) struct V4(Ipv4LCTrieMap<u32>);

impl Table for V4 {
    type Filling = Ipv4RTrieMap<u32>;
    type Key = Ipv4Addr;

    fn new() -> Self::Filling {
        Ipv4RTrieMap::with_root(0)
    }

    fn insert(table: &mut Self::Filling, bits: u128, len: u8, next_hop: u32) -> Result<(), Box<dyn Error>> {
        table.insert(Ipv4Prefix::new(Ipv4Addr::from_bits(bits as u32), len)?, next_hop);
        Ok(())
    }

    fn finish(table: Self::Filling) -> Self {
        Self(table.compress())
    }

    fn key(bits: u128) -> Ipv4Addr {
        Ipv4Addr::from_bits(bits as u32)
    }

    #[inline]
    fn longest(&self, key: &Ipv4Addr) -> u32 {
        *self.0.lookup(key).1
    }
}

pub(super) struct V6(Ipv6LCTrieMap<u32>);

impl Table for V6 {
    type Filling = Ipv6RTrieMap<u32>;
    type Key = Ipv6Addr;

    fn new() -> Self::Filling {
        Ipv6RTrieMap::with_root(0)
    }

    fn insert(table: &mut Self::Filling, bits: u128, len: u8, next_hop: u32) -> Result<(), Box<dyn Error>> {
        table.insert(Ipv6Prefix::new(Ipv6Addr::from_bits(bits), len)?, next_hop);
        Ok(())
    }

    fn finish(table: Self::Filling) -> Self {
        Self(table.compress())
    }

    fn key(bits: u128) -> Ipv6Addr {
        Ipv6Addr::from_bits(bits)
    }

    #[inline]
    fn longest(&self, key: &Ipv6Addr) -> u32 {
        *self.0.lookup(key).1
    }
}
