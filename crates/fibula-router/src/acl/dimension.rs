//! One dimension of compiled rules: for each value of a field, the rules that it does not exclude.
//!
//! Rules are bits of a row of words. Values that exclude the same rules share a row.

use std::collections::HashMap;

use fibula::fib::{self, Fib};
use fibula::net::{Key, NextHop, Prefix, Route};
use fibula::rib::Rib;

use super::RuleError;

/// Values of a page.
const PAGE: usize = 256;
/// The value of packets without the field: the first after those that a field can have. So are all from here on.
pub(super) const ABSENT: u32 = 1 << 16;
/// All values, and as many that are [`ABSENT`].
const VALUES: usize = 2 * ABSENT as usize;
/// The most bytes of the rows of a dimension.
const MOST_BYTES: usize = 256 << 20;

/// Rows of bits, each different.
#[derive(Debug)]
pub(super) struct Rows {
    words: usize,
    bits: Vec<u64>,
    known: HashMap<Vec<u64>, u32>,
}

impl Rows {
    pub(super) fn new(words: usize) -> Self {
        Self { words, bits: Vec::new(), known: HashMap::new() }
    }

    /// Returns the number of a row.
    pub(super) fn number(&mut self, row: Vec<u64>) -> Result<u32, RuleError> {
        let next = self.known.len();
        if let Some(&known) = self.known.get(&row) {
            return Ok(known);
        }
        if (next + 1) * self.words * 8 > MOST_BYTES || next > 65_535 {
            let reason = "the rules divide a field into too many different parts: use fewer rules or lists";
            return Err(RuleError(reason.into()));
        }
        self.bits.extend_from_slice(&row);
        self.known.insert(row, next as u32);
        Ok(next as u32)
    }

    pub(super) fn finish(self) -> (usize, Vec<u64>) {
        (self.words, self.bits)
    }
}

/// Returns a row with these bits.
pub(super) fn row(words: usize, bits: impl IntoIterator<Item = usize>) -> Vec<u64> {
    let mut row = vec![0; words];
    for bit in bits {
        row[bit / 64] |= 1 << (bit % 64);
    }
    row
}

/// The dimension of a field whose values are numbers. Its table has a page for each 256 values, and equal pages are one, so that a
/// few pages are in use at a time.
// Both arrays have their largest size, so that no index needs a check. Memory after the pages in use is never touched, and takes none.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Where the page of each 256 values begins.
    top: Box<[u32; VALUES / PAGE]>,
    pages: Box<[u16; VALUES]>,
    words: usize,
    bits: Box<[u64]>,
}

impl Numbers {
    /// Compiles a dimension. `starts` are values from which on other rules may pass, and `passes` says whether a rule that tests the
    /// field lets a value pass. Rules that do not test the field are the bits of `others`.
    pub(super) fn compile(
        words: usize,
        most: u16,
        starts: impl IntoIterator<Item = u16>,
        others: &[u64],
        tested: &[usize],
        passes: impl Fn(usize, u16) -> bool,
    ) -> Result<Self, RuleError> {
        let mut starts: Vec<u16> = starts.into_iter().filter(|&start| start <= most).chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        // First the row of packets without the field, which every table has.
        let mut rows = Rows::new(words);
        let absent = rows.number(others.to_vec())?;
        let values = usize::from(most) + 1;
        let mut table = Vec::with_capacity(values.next_multiple_of(PAGE));
        for (at, &start) in starts.iter().enumerate() {
            let mut bits = row(words, tested.iter().copied().filter(|&bit| passes(bit, start)));
            bits.iter_mut().zip(others).for_each(|(bits, others)| *bits |= others);
            let number = rows.number(bits)? as u16;
            let end = starts.get(at + 1).map_or(values, |&next| usize::from(next));
            table.resize(end, number);
        }
        table.resize(values.next_multiple_of(PAGE), absent as u16);
        // A page for `ABSENT`, and for values that the field cannot have.
        let absent_page = [absent as u16; PAGE];
        let mut top = Box::new([0; VALUES / PAGE]);
        // At first an empty vector of zeros, because an array of this size would be on the stack.
        let mut pages: Box<[u16; VALUES]> =
            vec![0; VALUES].try_into().map_err(|_| RuleError("a table of another size".into()))?;
        let mut known = HashMap::new();
        let all = table.as_chunks::<PAGE>().0.iter().chain(core::iter::repeat(&absent_page));
        for (start, page) in top.iter_mut().zip(all) {
            let next = known.len();
            *start = *known.entry(page).or_insert_with(|| {
                pages[next * PAGE..][..PAGE].copy_from_slice(page);
                (next * PAGE) as u32
            });
        }
        let (words, bits) = rows.finish();
        Ok(Self { top, pages, words, bits: bits.into() })
    }

    /// Returns the number of the row of a value, or of [`ABSENT`].
    #[inline]
    pub(super) fn number(&self, value: u32) -> usize {
        let start = self.top[value as usize / PAGE % (VALUES / PAGE)];
        usize::from(self.pages[(start as usize | (value as usize % PAGE)) % VALUES])
    }

    /// Returns all rows.
    #[inline]
    pub(super) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Returns the rules that a value does not exclude.
    #[inline]
    pub(super) fn row(&self, value: Option<u16>) -> &[u64] {
        let start = self.number(value.map_or(ABSENT, u32::from)) * self.words;
        &self.bits[start..start + self.words]
    }
}

/// The dimension of addresses of a family: a table leads from each address to the number of its row.
pub(super) struct Prefixes<K> {
    fib: Option<Box<dyn Fib<K>>>,
    words: usize,
    bits: Box<[u64]>,
}

impl<K> core::fmt::Debug for Prefixes<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Prefixes").field("bits", &self.bits).finish_non_exhaustive()
    }
}

impl<K: Key> Prefixes<K> {
    /// Compiles a dimension. `sets` are sets of prefixes, and `passing` returns the row of rules that an address in exactly these sets
    /// (by number, in order) does not exclude.
    pub(super) fn compile<'s>(
        words: usize,
        sets: impl IntoIterator<Item = &'s fibula::map::PrefixSet<K>>,
        passing: impl Fn(&[u32]) -> Vec<u64>,
    ) -> Result<Self, RuleError>
    where
        K: 's,
    {
        let mut all: Vec<(Prefix<K>, u32)> = Vec::new();
        for (number, set) in sets.into_iter().enumerate() {
            all.extend(set.iter().map(|prefix| (prefix, number as u32)));
        }
        // In the order of addresses; shorter prefixes come before those that they contain.
        all.sort_unstable_by_key(|&(prefix, number)| (prefix.addr(), prefix.len(), number));
        // The sets that contain an address, each combination with its number. That of no set is 0.
        let mut combinations: Vec<Vec<u32>> = vec![Vec::new()];
        let mut known: HashMap<Vec<u32>, u32> = HashMap::from([(Vec::new(), 0)]);
        let mut open: Vec<(Prefix<K>, u32)> = Vec::new();
        // Each prefix with its combination, and that of the prefix around it.
        let mut nested: Vec<(Prefix<K>, u32, u32)> = Vec::new();
        let mut at = 0;
        while at < all.len() {
            let prefix = all[at].0;
            while open.last().is_some_and(|outer| !outer.0.covers(prefix)) {
                open.pop();
            }
            let outside = open.last().map_or(0, |outer| outer.1);
            let mut inside = combinations[outside as usize].clone();
            while at < all.len() && all[at].0 == prefix {
                inside.push(all[at].1);
                at += 1;
            }
            inside.sort_unstable();
            inside.dedup();
            let next = combinations.len() as u32;
            let number = *known.entry(inside).or_insert_with_key(|inside| {
                combinations.push(inside.clone());
                next
            });
            open.push((prefix, number));
            nested.push((prefix, number, outside));
        }
        let mut rows = Rows::new(words);
        let numbers = combinations.iter().map(|sets| rows.number(passing(sets)));
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        let mut rib = Rib::new(Default::default());
        for (prefix, inside, outside) in nested {
            let (inside, outside) = (numbers[inside as usize], numbers[outside as usize]);
            // A prefix that changes nothing is left out, because a smaller table is faster. The row of no set, whose number is no next hop,
            // is always left out: an address is in all sets of the prefixes around it, so within a prefix that has changed the row of a
            // rule, no other changes it back.
            if inside != outside {
                let wrong = |error: &dyn core::fmt::Display| RuleError(error.to_string());
                let next_hop = NextHop::try_from(inside).map_err(|error| wrong(&error))?;
                rib.insert(Route { prefix, next_hop }).map_err(|error| wrong(&error))?;
            }
        }
        let (words, bits) = rows.finish();
        let fib = match rib.is_empty() {
            true => None,
            false => Some(fib::build(&rib).map_err(|error| RuleError(error.to_string()))?),
        };
        Ok(Self { fib, words, bits: bits.into() })
    }

    /// Looks addresses up. `found` has the number of each, for [`row`](Self::row).
    #[inline]
    pub(super) fn look_up(&self, keys: &[K], found: &mut [Option<NextHop>]) {
        match &self.fib {
            Some(fib) => fib.lookup_batch(keys, found),
            None => found.fill(None),
        }
    }

    /// Returns all rows.
    #[inline]
    pub(super) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Returns the rules that an address with this number does not exclude.
    #[inline]
    pub(super) fn row(&self, found: Option<NextHop>) -> &[u64] {
        let start = row_of(found) * self.words;
        &self.bits[start..start + self.words]
    }
}

/// Returns the number of the row of an address that was looked up.
#[inline]
pub(super) fn row_of(found: Option<NextHop>) -> usize {
    found.map_or(0, |found| found.id() as usize)
}
