//! `ip_network_table`: a tree bitmap, by `longest_match_ipv4` and `longest_match_ipv6`, which know the family.

use core::error::Error;
use core::net::{Ipv4Addr, Ipv6Addr};

use ip_network::{Ipv4Network, Ipv6Network};
use ip_network_table::IpNetworkTable;

use super::table::Table;

pub(super) struct V4(IpNetworkTable<u32>);

impl Table for V4 {
    type Filling = IpNetworkTable<u32>;
    type Key = Ipv4Addr;

    fn new() -> Self::Filling {
        IpNetworkTable::new()
    }

    fn insert(table: &mut Self::Filling, bits: u128, len: u8, next_hop: u32) -> Result<(), Box<dyn Error>> {
        table.insert(Ipv4Network::new(Ipv4Addr::from_bits(bits as u32), len)?, next_hop);
        Ok(())
    }

    fn finish(table: Self::Filling) -> Self {
        Self(table)
    }

    fn change(&mut self, bits: u128, len: u8, next_hop: Option<u32>) -> Result<(), Box<dyn Error>> {
        let prefix = Ipv4Network::new(Ipv4Addr::from_bits(bits as u32), len)?;
        match next_hop {
            Some(next_hop) => self.0.insert(prefix, next_hop),
            None => self.0.remove(prefix),
        };
        Ok(())
    }

    fn key(bits: u128) -> Ipv4Addr {
        Ipv4Addr::from_bits(bits as u32)
    }

    #[inline]
    fn longest(&self, key: &Ipv4Addr) -> u32 {
        self.0.longest_match_ipv4(*key).map_or(0, |(_, &next_hop)| next_hop)
    }
}

pub(super) struct V6(IpNetworkTable<u32>);

impl Table for V6 {
    type Filling = IpNetworkTable<u32>;
    type Key = Ipv6Addr;

    fn new() -> Self::Filling {
        IpNetworkTable::new()
    }

    fn insert(table: &mut Self::Filling, bits: u128, len: u8, next_hop: u32) -> Result<(), Box<dyn Error>> {
        table.insert(Ipv6Network::new(Ipv6Addr::from_bits(bits), len)?, next_hop);
        Ok(())
    }

    fn finish(table: Self::Filling) -> Self {
        Self(table)
    }

    fn change(&mut self, bits: u128, len: u8, next_hop: Option<u32>) -> Result<(), Box<dyn Error>> {
        let prefix = Ipv6Network::new(Ipv6Addr::from_bits(bits), len)?;
        match next_hop {
            Some(next_hop) => self.0.insert(prefix, next_hop),
            None => self.0.remove(prefix),
        };
        Ok(())
    }

    fn key(bits: u128) -> Ipv6Addr {
        Ipv6Addr::from_bits(bits)
    }

    #[inline]
    fn longest(&self, key: &Ipv6Addr) -> u32 {
        self.0.longest_match_ipv6(*key).map_or(0, |(_, &next_hop)| next_hop)
    }
}
