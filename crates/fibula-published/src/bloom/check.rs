//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::divisor::Divisor;
use super::filter::{Filter, SATURATED, WORD};
use super::hash::{Hashes, Sequence, Stored, short_bits};
use super::level::{END, Level};
use super::sizes::Ratio;
use super::table::Table;

impl<K: Key, S: Stored, H: Hashes<S> + Hashes<u128>> Table<K, S, H> {
    /// Verifies the invariants of the levels, which the chapters of the structures number.
    pub(crate) fn walk(&self) -> Result<(), CheckError> {
        let short = short_bits::<K, S>();
        CheckError::unless(
            self.direct.len() == 1 << self.direct_bits,
            "(1) an element of the direct array for all leading bits",
            self.direct.len(),
        )?;
        let mut above = short + 1;
        for (at, level) in self.levels.iter().enumerate() {
            let lengths =
                level.shortest > self.direct_bits && level.shortest <= level.len && level.len < above;
            CheckError::unless(lengths, "(2) levels descend, and their lengths do not overlap", at)?;
            CheckError::unless(
                level.shortest == level.len || self.expands(),
                "(2) only expansion gives a level several lengths",
                at,
            )?;
            above = level.shortest;
            walk_level(level, self.parameters.ratio, self.parameters.hashes, K::BITS)?;
        }
        let mut above = K::BITS + 1;
        for (at, level) in self.long.iter().enumerate() {
            let descends = level.len < above && level.len > short && level.shortest == level.len;
            CheckError::unless(descends, "(2) long levels descend and have one length", at)?;
            above = level.len;
            walk_level(level, self.parameters.ratio, self.parameters.hashes, K::BITS)?;
        }
        Ok(())
    }
}

fn walk_level<S: Stored, H: Hashes<S>>(
    level: &Level<S>,
    ratio: Ratio,
    hashes: H,
    key_bits: u8,
) -> Result<(), CheckError> {
    let len = usize::from(level.len);
    CheckError::unless(level.count <= 2 * level.capacity, "(3) at most twice the entries sized for", len)?;
    CheckError::unless(level.heads.len() == level.capacity, "(3) a bucket an expected entry", len)?;
    if level.capacity == 0 {
        let none = level.count == 0 && level.filter.bits.is_empty();
        return CheckError::unless(none, "(3) a level without entries may have no filter", len);
    }
    let size = ratio.bits(level.capacity as u64).min(u32::MAX.into()) as u32;
    let divisors = level.filter.size == Divisor::new(size)
        && level.buckets == Divisor::new(level.capacity as u32)
        && level.filter.bits.len() == size.div_ceil(WORD) as usize
        && level.filter.hashes == ratio.hashes();
    CheckError::unless(divisors, "(3) sizes are those of the equations", len)?;
    let mut expected = vec![0u32; size as usize];
    let mut reached = 0;
    for (bucket, &head) in level.heads.iter().enumerate() {
        let mut at = head;
        while at != END {
            let index = at as usize;
            let entry = level.entries.get(index).ok_or(CheckError::new("(4) an entry exists", index))?;
            reached += 1;
            CheckError::unless(reached <= level.count, "(4) an entry is in one chain, once", index)?;
            CheckError::unless(entry.next_hop != 0, "(4) an entry in a chain has a next hop", index)?;
            let key = entry.key;
            let masked = key.masked(level.len.min(key_bits)) == key;
            CheckError::unless(masked, "(5) an entry is masked to the length of its level", index)?;
            CheckError::unless(
                level.bucket_of(key, hashes) == bucket,
                "(5) an entry is in its bucket",
                index,
            )?;
            let twice = chain_has(level, entry.next, key);
            CheckError::unless(!twice, "(5) a prefix has one entry", index)?;
            let mut sequence = hashes.sequence(key);
            for _ in 0..level.filter.hashes {
                expected[level.filter.size.remainder(sequence.next()) as usize] += 1;
            }
            at = entry.next;
        }
    }
    CheckError::unless(reached == level.count, "(4) every entry is in a chain or free", reached)?;
    let (mut free, mut at) = (0, level.free);
    while at != END && free <= level.entries.len() {
        let entry = level.entries.get(at as usize);
        let entry = entry.ok_or(CheckError::new("(4) a free entry exists", at as usize))?;
        CheckError::unless(entry.next_hop == 0, "(4) a free entry has no next hop", at as usize)?;
        free += 1;
        at = entry.next;
    }
    CheckError::unless(free + reached == level.entries.len(), "(4) every entry is in a chain or free", free)?;
    counters(&level.filter, &expected)
}

/// Returns whether the rest of a chain has a key. Ends where the chain is longer than there are entries.
fn chain_has<S: Stored>(level: &Level<S>, mut at: u32, key: S) -> bool {
    for _ in 0..level.entries.len() {
        match level.entries.get(at as usize) {
            Some(entry) if entry.key == key => return true,
            Some(entry) => at = entry.next,
            None => return false,
        }
    }
    false
}

/// Checks the counters and bits against the numbers of hashes that lead to them.
fn counters(filter: &Filter, expected: &[u32]) -> Result<(), CheckError> {
    for (at, &expected) in expected.iter().enumerate() {
        let count = filter.count(at as u32);
        let right = count == SATURATED || u32::from(count) == expected;
        CheckError::unless(right, "(6) a counter counts the hashes that lead to it, or is saturated", at)?;
        let bit = filter.bits[at / WORD as usize] >> (at % WORD as usize) & 1 != 0;
        CheckError::unless(bit == (count > 0), "(6) a bit is set where its counter is not zero", at)?;
    }
    Ok(())
}
