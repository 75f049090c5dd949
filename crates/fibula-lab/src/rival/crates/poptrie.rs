//! `poptrie`: a Poptrie whose nodes stay contiguous while routes come and go, by `lookup`.

use core::error::Error;

use poptrie::{Address, Poptrie};

use super::table::Table;

pub(super) struct Of<A: Address>(Poptrie<(A, u8), u32>);

macro_rules! tables {
    ($($address:ty),*) => {
        $(
            impl Table for Of<$address> {
                type Filling = Poptrie<($address, u8), u32>;
                type Key = $address;

                fn new() -> Self::Filling {
                    Poptrie::new()
                }

                fn insert(table: &mut Self::Filling, bits: u128, len: u8, next_hop: u32) -> Result<(), Box<dyn Error>> {
                    table.insert((bits as $address, len), next_hop);
                    Ok(())
                }

                fn finish(table: Self::Filling) -> Self {
                    Self(table)
                }

                fn change(&mut self, bits: u128, len: u8, next_hop: Option<u32>) -> Result<(), Box<dyn Error>> {
                    let prefix = (bits as $address, len);
                    match next_hop {
                        Some(next_hop) => self.0.insert(prefix, next_hop),
                        None => self.0.remove(prefix),
                    };
                    Ok(())
                }

                fn key(bits: u128) -> $address {
                    bits as $address
                }

                #[inline]
                fn longest(&self, key: &$address) -> u32 {
                    self.0.lookup(*key).copied().unwrap_or(0)
                }
            }
        )*
    };
}

tables!(u32, u128);

pub(super) type V4 = Of<u32>;
pub(super) type V6 = Of<u128>;
