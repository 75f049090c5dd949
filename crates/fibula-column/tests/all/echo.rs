//! Engines whose answers are the addresses, so that an id says which address was looked up.

use core::net::IpAddr;

use fibula::fib::Fib;
use fibula::memory::Memory;
use fibula::net::NextHop;
use fibula_column::{Column, LookupCounts, LookupOptions, TableView};

/// Answers every address by a number that is made of it.
#[derive(Debug)]
pub(crate) struct Echo;

/// Returns the number of an IPv4 address. It is even, and those of IPv6 are odd.
fn of_v4(key: u32) -> u32 {
    (key.wrapping_mul(0x9e37_79b1).rotate_left(11) << 1) | 1 << 31
}

/// Returns the number of an IPv6 address.
fn of_v6(key: u128) -> u32 {
    let mixed = (key ^ key >> 61).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    (mixed >> 96) as u32 | 1
}

/// Returns the id that [`Echo`] has for an address; 0 for none.
pub(crate) fn id_of(address: Option<IpAddr>) -> u32 {
    match address {
        None => 0,
        Some(IpAddr::V4(address)) => of_v4(address.to_bits()),
        Some(IpAddr::V6(address)) => of_v6(address.to_bits()),
    }
}

impl Fib<u32> for Echo {
    fn lookup_key(&self, key: u32) -> Option<NextHop> {
        NextHop::new(of_v4(key))
    }

    fn memory(&self) -> Memory {
        Memory::default()
    }

    fn check(&self) -> Result<(), fibula::check::CheckError> {
        Ok(())
    }
}

impl Fib<u128> for Echo {
    fn lookup_key(&self, key: u128) -> Option<NextHop> {
        NextHop::new(of_v6(key))
    }

    fn memory(&self) -> Memory {
        Memory::default()
    }

    fn check(&self) -> Result<(), fibula::check::CheckError> {
        Ok(())
    }
}

/// The view of [`Echo`].
pub(crate) fn echo() -> TableView<'static> {
    TableView::new(Some(&Echo), Some(&Echo))
}

/// Looks a column up whole.
pub(crate) fn whole(column: &Column<'_>, options: &LookupOptions) -> (Vec<u32>, LookupCounts) {
    let mut ids = vec![0xdead_beef; column.len()];
    let counts = echo().lookup(column, &mut ids, options).expect("a column of this length");
    (ids, counts)
}
