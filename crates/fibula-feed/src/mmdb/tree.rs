//! The tree of a database: a bit of the address at each node, and a record for each of its two values.

use fibula::net::NextHop;

use super::MmdbError;

/// Zero bits in front of an address of IPv4.
pub(super) const FAMILY_BITS: u8 = 96;

/// Where a bit leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Branch {
    Nothing,
    Node(u32),
    Leaf(NextHop),
}

pub(super) struct Tree {
    bits: u8,
    nodes: Vec<[Branch; 2]>,
}

fn bit(address: u128, at: u8) -> usize {
    (address >> (127 - at) & 1) as usize
}

impl Tree {
    /// Creates a tree of addresses of so many bits without records.
    pub(super) fn new(bits: u8) -> Self {
        Self { bits, nodes: vec![[Branch::Nothing; 2]] }
    }

    pub(super) fn bits(&self) -> u8 {
        self.bits
    }

    pub(super) fn nodes(&self) -> &[[Branch; 2]] {
        &self.nodes
    }

    /// Returns the next hops of all leaves.
    pub(super) fn ids(&self) -> impl Iterator<Item = NextHop> {
        let leaf = |record: &Branch| match record {
            Branch::Leaf(id) => Some(*id),
            _ => None,
        };
        self.nodes.as_flattened().iter().filter_map(leaf)
    }

    /// Puts a record in the place of a prefix, whose bits are the highest ones. Returns whether it did: not where the tree goes on
    /// below.
    pub(super) fn set(&mut self, address: u128, len: u8, record: Branch) -> Result<bool, MmdbError> {
        let Some(last) = len.checked_sub(1) else {
            let is_free =
                self.nodes.len() == 1 && !self.nodes[0].iter().any(|r| matches!(r, Branch::Node(_)));
            if is_free {
                self.nodes[0] = [record; 2];
            }
            return Ok(is_free);
        };
        let mut node = 0;
        for at in 0..last {
            node = match self.nodes[node][bit(address, at)] {
                Branch::Node(next) => next as usize,
                above => {
                    let next = self.nodes.len();
                    let number = u32::try_from(next).ok().filter(|&next| next < u32::MAX);
                    self.nodes[node][bit(address, at)] = Branch::Node(number.ok_or(MmdbError::TooLarge)?);
                    self.nodes.push([above; 2]);
                    next
                }
            };
        }
        let place = &mut self.nodes[node][bit(address, last)];
        let is_free = !matches!(place, Branch::Node(_));
        if is_free {
            *place = record;
        }
        Ok(is_free)
    }

    /// Returns the record of a prefix that was set.
    pub(super) fn get(&self, address: u128, len: u8) -> Branch {
        let mut record = Branch::Node(0);
        for at in 0..len {
            let Branch::Node(node) = record else { break };
            record = self.nodes[node as usize][bit(address, at)];
        }
        record
    }
}
