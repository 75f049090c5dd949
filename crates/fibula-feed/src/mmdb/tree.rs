//! The tree of a database: a bit of the address at each node, and a record for each of its two values.

use fibula::net::NextHop;

use super::MmdbError;

/// Zero bits in front of an address of IPv4.
pub(super) const FAMILY_BITS: u8 = 96;

/// Where a bit leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Nothing,
    Node(u32),
    Leaf(NextHop),
}

pub(super) struct Tree {
    bits: u8,
    nodes: Vec<[Record; 2]>,
}

fn bit(address: u128, at: u8) -> usize {
    (address >> (127 - at) & 1) as usize
}

impl Tree {
    /// Creates a tree of addresses of so many bits without records.
    pub(super) fn new(bits: u8) -> Self {
        Self { bits, nodes: vec![[Record::Nothing; 2]] }
    }

    pub(super) fn bits(&self) -> u8 {
        self.bits
    }

    pub(super) fn nodes(&self) -> &[[Record; 2]] {
        &self.nodes
    }

    /// Returns the next hops of all leaves.
    pub(super) fn ids(&self) -> impl Iterator<Item = NextHop> {
        let leaf = |record: &Record| match record {
            Record::Leaf(id) => Some(*id),
            _ => None,
        };
        self.nodes.as_flattened().iter().filter_map(leaf)
    }

    /// Puts a record in the place of a prefix, whose bits are the highest ones. Returns whether it did: not where the tree goes on
    /// below.
    pub(super) fn set(&mut self, address: u128, len: u8, record: Record) -> Result<bool, MmdbError> {
        let Some(last) = len.checked_sub(1) else {
            let is_free =
                self.nodes.len() == 1 && !self.nodes[0].iter().any(|r| matches!(r, Record::Node(_)));
            if is_free {
                self.nodes[0] = [record; 2];
            }
            return Ok(is_free);
        };
        let mut node = 0;
        for at in 0..last {
            node = match self.nodes[node][bit(address, at)] {
                Record::Node(next) => next as usize,
                above => {
                    let next = self.nodes.len();
                    let number = u32::try_from(next).ok().filter(|&next| next < u32::MAX);
                    self.nodes[node][bit(address, at)] = Record::Node(number.ok_or(MmdbError::TooLarge)?);
                    self.nodes.push([above; 2]);
                    next
                }
            };
        }
        let place = &mut self.nodes[node][bit(address, last)];
        let is_free = !matches!(place, Record::Node(_));
        if is_free {
            *place = record;
        }
        Ok(is_free)
    }

    /// Returns the record of a prefix that was set.
    pub(super) fn get(&self, address: u128, len: u8) -> Record {
        let mut record = Record::Node(0);
        for at in 0..len {
            let Record::Node(node) = record else { break };
            record = self.nodes[node as usize][bit(address, at)];
        }
        record
    }
}
