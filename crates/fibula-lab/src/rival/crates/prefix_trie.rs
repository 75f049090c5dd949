//! `prefix-trie`: a tree bitmap of five bits a node, by `PrefixMap::get_lpm` on types of `ipnet`.

use core::error::Error;
use core::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

use super::table::Table;

pub(super) struct V4(PrefixMap<Ipv4Net, u32>);

impl Table for V4 {
    type Filling = PrefixMap<Ipv4Net, u32>;
    type Key = Ipv4Net;

    fn new() -> Self::Filling {
        PrefixMap::new()
    }

    fn insert(table: &mut Self::Filling, bits: u128, len: u8, next_hop: u32) -> Result<(), Box<dyn Error>> {
        table.insert(Ipv4Net::new(Ipv4Addr::from_bits(bits as u32), len)?, next_hop);
        Ok(())
    }

    fn finish(table: Self::Filling) -> Self {
        Self(table)
    }

    fn change(&mut self, bits: u128, len: u8, next_hop: Option<u32>) -> Result<(), Box<dyn Error>> {
        let prefix = Ipv4Net::new(Ipv4Addr::from_bits(bits as u32), len)?;
        match next_hop {
            Some(next_hop) => self.0.insert(prefix, next_hop),
            None => self.0.remove(&prefix),
        };
        Ok(())
    }

    fn key(bits: u128) -> Ipv4Net {
        Ipv4Addr::from_bits(bits as u32).into()
    }

    #[inline]
    fn longest(&self, key: &Ipv4Net) -> u32 {
        self.0.get_lpm(key).map_or(0, |(_, &next_hop)| next_hop)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.0.mem_size())
    }
}

pub(super) struct V6(PrefixMap<Ipv6Net, u32>);

impl Table for V6 {
    type Filling = PrefixMap<Ipv6Net, u32>;
    type Key = Ipv6Net;

    fn new() -> Self::Filling {
        PrefixMap::new()
    }

    fn insert(table: &mut Self::Filling, bits: u128, len: u8, next_hop: u32) -> Result<(), Box<dyn Error>> {
        table.insert(Ipv6Net::new(Ipv6Addr::from_bits(bits), len)?, next_hop);
        Ok(())
    }

    fn finish(table: Self::Filling) -> Self {
        Self(table)
    }

    fn change(&mut self, bits: u128, len: u8, next_hop: Option<u32>) -> Result<(), Box<dyn Error>> {
        let prefix = Ipv6Net::new(Ipv6Addr::from_bits(bits), len)?;
        match next_hop {
            Some(next_hop) => self.0.insert(prefix, next_hop),
            None => self.0.remove(&prefix),
        };
        Ok(())
    }

    fn key(bits: u128) -> Ipv6Net {
        Ipv6Addr::from_bits(bits).into()
    }

    #[inline]
    fn longest(&self, key: &Ipv6Net) -> u32 {
        self.0.get_lpm(key).map_or(0, |(_, &next_hop)| next_hop)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.0.mem_size())
    }
}
