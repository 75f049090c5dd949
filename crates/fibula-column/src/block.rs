//! Blocks of rows: the keys of both families apart, each with its row.

use core::net::IpAddr;

use fibula::net::{Keys, NextHop};

use crate::engines::{Engines, RowsOf};
use crate::options::V4MappedRule;

/// Number of rows of a block, so that a row of a block is a byte: full batches for the engines, and keys that stay in the first-level
/// cache.
pub(crate) const BLOCK: usize = 256;

/// The keys of a block of rows, by family.
pub(crate) struct KeyBlock {
    pub(crate) v4: FamilyKeys<u32>,
    pub(crate) v6: FamilyKeys<u128>,
    /// Rows that are not yet of a family.
    pub(crate) left: RowList,
    mapped: V4MappedRule,
}

/// Keys of one family, and the row of each.
pub(crate) struct FamilyKeys<K> {
    keys: [K; BLOCK],
    rows: RowList,
    /// Whether the rows are in order.
    is_in_order: bool,
}

/// Rows of a block, in order.
pub(crate) struct RowList {
    rows: [u8; BLOCK],
    count: usize,
}

impl RowList {
    const EMPTY: Self = Self { rows: [0; BLOCK], count: 0 };

    /// Adds a row if `is_one`, without a branch.
    #[inline(always)]
    pub(crate) fn note(&mut self, row: usize, is_one: bool) {
        // Each row is noted once, so the remainder changes nothing. It spares a check of bounds.
        self.rows[self.count % BLOCK] = row as u8;
        self.count += usize::from(is_one);
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.rows[..self.count]
    }

    /// Returns the rows, and empties the list.
    pub(crate) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::EMPTY)
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }
}

impl<K: Copy> FamilyKeys<K> {
    /// Adds a key if `is_one`, without a branch.
    #[inline(always)]
    pub(crate) fn note(&mut self, row: usize, key: K, is_one: bool) {
        self.keys[self.rows.count % BLOCK] = key;
        self.rows.note(row, is_one);
    }

    /// Reads rows, which are in order, and adds the keys of those that have one; the others are written to `left`. Returns the number of
    /// the latter. A branch would be mispredicted, where families are mixed.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn note_some(
        &mut self,
        rows: &[u8],
        left: &mut [u8; BLOCK],
        mut read: impl FnMut(usize) -> (K, bool),
    ) -> usize {
        let Self { keys, rows: RowList { rows: noted, count }, .. } = self;
        // Counted in registers: the compiler would store the counts after each row.
        let (mut some, mut others) = (*count, 0);
        for &row in rows {
            let (key, is_one) = read(usize::from(row));
            // Each row is noted once, so the remainders change nothing. They spare checks of bounds.
            keys[some % BLOCK] = key;
            noted[some % BLOCK] = row;
            left[others % BLOCK] = row;
            some += usize::from(is_one);
            others += usize::from(!is_one);
        }
        *count = some;
        others
    }

    /// Adds the key of a row that may be before others.
    pub(crate) fn note_late(&mut self, row: usize, key: K) {
        self.note(row, key, true);
        self.is_in_order = false;
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.count
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.is_in_order = true;
    }

    pub(crate) fn keys(&self) -> &[K] {
        &self.keys[..self.rows.count]
    }
}

impl KeyBlock {
    pub(crate) fn new(mapped: V4MappedRule) -> Self {
        Self {
            v4: FamilyKeys { keys: [0; BLOCK], rows: RowList::EMPTY, is_in_order: true },
            v6: FamilyKeys { keys: [0; BLOCK], rows: RowList::EMPTY, is_in_order: true },
            left: RowList::EMPTY,
            mapped,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
        self.left.clear();
    }

    /// Adds the key of a row that may be before others.
    pub(crate) fn note_late(&mut self, row: usize, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.v4.note_late(row, address.to_bits()),
            IpAddr::V6(address) => self.v6.note_late(row, address.to_bits()),
        }
    }

    /// Moves IPv4-mapped keys to the IPv4 keys, if they are to be looked up there.
    fn map(&mut self) {
        if self.mapped == V4MappedRule::Ipv6 {
            return;
        }
        let count = self.v6.len();
        self.v6.rows.clear();
        for at in 0..count {
            let (key, row) = (self.v6.keys[at], usize::from(self.v6.rows.rows[at]));
            let is_mapped = key >> 32 == 0xffff;
            self.v4.note(row, key as u32, is_mapped);
            self.v4.is_in_order &= !is_mapped;
            self.v6.note(row, key, !is_mapped);
        }
    }

    /// Looks up all keys. `ids` has one id for each row of the block, whose first row is `first` of the column. Rows that are of no
    /// family get none.
    pub(crate) fn look_up(&mut self, engines: &impl Engines, first: usize, ids: &mut [Option<NextHop>]) {
        self.map();
        let rows = ids.len();
        // A block of one family needs no places.
        if self.v4.len() == rows && self.v4.is_in_order {
            return engines.v4(RowsOf::From(first), Keys::Host(self.v4.keys()), ids);
        }
        if self.v6.len() == rows && self.v6.is_in_order {
            return engines.v6(RowsOf::From(first), Keys::Host(self.v6.keys()), ids);
        }
        ids.fill(None);
        let mut found = [None; BLOCK];
        for is_v4 in [true, false] {
            let rows = if is_v4 { self.v4.rows.as_slice() } else { self.v6.rows.as_slice() };
            if rows.is_empty() {
                continue;
            }
            let found = &mut found[..rows.len()];
            let of = RowsOf::Listed(first, rows);
            if is_v4 {
                engines.v4(of, Keys::Host(self.v4.keys()), found);
            } else {
                engines.v6(of, Keys::Host(self.v6.keys()), found);
            }
            for (&row, &id) in rows.iter().zip(&*found) {
                ids[usize::from(row)] = id;
            }
        }
    }
}
