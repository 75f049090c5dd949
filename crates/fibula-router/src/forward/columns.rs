//! The addresses of the plain packets of a burst, as lookups take them.

use crate::io::BURST;

use super::item::{Item, Plain};

/// The addresses of plain packets, each at the number of its item. Sources are there where rules look them up.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) v4: Vec<u32>,
    pub(super) v6: Vec<u128>,
    pub(super) v4_sources: Vec<u32>,
    pub(super) v6_sources: Vec<u128>,
    /// A bit for each plain packet of IPv4, and of IPv6.
    pub(super) is_v4: u64,
    pub(super) is_v6: u64,
    /// VRF of all of them, and whether their interface has uRPF.
    pub(super) vrf: usize,
    pub(super) urpf: bool,
}

impl Columns {
    pub(super) fn new() -> Self {
        let (v4, v6) = (vec![0; BURST], vec![0; BURST]);
        Self { v4_sources: v4.clone(), v6_sources: v6.clone(), v4, v6, ..Self::default() }
    }

    /// Writes the addresses of an item, but for its bit, which the caller has in a register.
    #[inline(always)]
    pub(super) fn put<const RULES: bool>(&mut self, number: usize, item: &Item, kind: Plain) {
        match kind {
            Plain::V4 => {
                // In the low bits, because items have room for IPv6.
                self.v4[number] = item.destination as u32;
                if RULES {
                    self.v4_sources[number] = item.source as u32;
                }
            }
            Plain::V6 => {
                self.v6[number] = item.destination;
                if RULES {
                    self.v6_sources[number] = item.source;
                }
            }
        }
    }
}
