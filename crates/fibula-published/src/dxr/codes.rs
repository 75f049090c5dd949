//! The codes of next hops in a table that changes: given out one by one, counted, and free again when nothing has them.

use core::hash::{BuildHasherDefault, Hasher};
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;

use fibula::check::CheckError;
use fibula::unstable::memory::{self, Budget, Cell, Memory, OutOfMemory};
use fibula::unstable::parts::next_hop_dictionary::NO_ROUTE;
use fibula::unstable::parts::units::{Unit, Units};

/// Which next hops have codes. The next hops of codes are in an array of the table, where readers look them up.
#[derive(Debug, Default)]
pub(super) struct Codes {
    codes: HashMap<u32, u32, BuildHasherDefault<Mixer>>,
    /// For each code, the ranges and direct entries that have it.
    uses: Vec<u32>,
    allotted: Units,
    /// Codes given out since the last publication.
    fresh: Vec<u32>,
}

/// Mixes the bits of one number, by which next hops are spread.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

impl Codes {
    /// Takes over the codes of these next hops, of which "no route" is the first. They are not counted yet.
    pub(super) fn new(next_hops: &[u32], budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let mut codes = Self::default();
        for &next_hop in next_hops {
            codes.add(next_hop, next_hops.len(), budget)?;
        }
        codes.fresh.clear();
        Ok(codes)
    }

    /// Gives a code to a next hop, and returns it; `None` where so many codes are in use.
    fn add(&mut self, next_hop: u32, most: usize, budget: &mut Budget) -> Result<Option<u32>, OutOfMemory> {
        self.codes.try_reserve(1).map_err(|_| OutOfMemory {
            wanted_bytes: 64,
            used_bytes: budget.used_bytes(),
            limit_bytes: None,
        })?;
        budget.reserve(&mut self.fresh, 1)?;
        budget.reserve(&mut self.uses, 1)?;
        self.allotted.expect(1, budget)?;
        let is_full = self.allotted.end() as usize >= most;
        let free = self.allotted.take(1);
        let Some(code) = free.or_else(|| if is_full { None } else { self.allotted.append(1) }) else {
            self.allotted.expect_less(1);
            return Ok(None);
        };
        if code as usize == self.uses.len() {
            self.uses.push(0);
        }
        if next_hop != 0 {
            self.codes.insert(next_hop, code);
        }
        self.fresh.push(code);
        Ok(Some(code))
    }

    /// Returns the code of a next hop. A new one is written to the array; `None` if that is full.
    pub(super) fn code(
        &mut self,
        next_hop: u32,
        array: &[AtomicU32],
        budget: &mut Budget,
    ) -> Result<Option<u32>, OutOfMemory> {
        if next_hop == 0 {
            return Ok(Some(NO_ROUTE));
        }
        if let Some(&code) = self.codes.get(&next_hop) {
            return Ok(Some(code));
        }
        let code = self.add(next_hop, array.len(), budget)?;
        if let Some(code) = code {
            array[code as usize].store(next_hop, Ordering::Relaxed);
        }
        Ok(code)
    }

    /// Makes codes that came back free to be given out.
    pub(super) fn absorb(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        self.allotted.absorb(budget)
    }

    /// Counts a use.
    pub(super) fn count(&mut self, code: u32) {
        self.uses[code as usize] += 1;
    }

    /// Takes a use back. Returns the code as a unit if that was the last one: the next hop has no code any more.
    pub(super) fn take_back(&mut self, code: u32, array: &[AtomicU32]) -> Option<Unit> {
        let uses = &mut self.uses[code as usize];
        *uses -= 1;
        if *uses > 0 || code == NO_ROUTE {
            return None;
        }
        self.codes.remove(&array[code as usize].read());
        Some(Unit { place: code, size: 1 })
    }

    /// Takes back the codes that were given out since the last publication.
    pub(super) fn abandon(&mut self, array: &[AtomicU32]) {
        for code in self.fresh.drain(..) {
            self.codes.remove(&array[code as usize].read());
            self.allotted.give_expected(Unit { place: code, size: 1 });
        }
    }

    /// Returns the codes given out since the last publication.
    pub(super) fn fresh(&self) -> &[u32] {
        &self.fresh
    }

    /// Notes a publication.
    pub(super) fn published(&mut self) {
        self.fresh.clear();
    }

    /// Takes a code back that nothing has and no reader can see.
    pub(super) fn free(&mut self, code: Unit) {
        self.allotted.give_expected(code);
    }

    /// Returns the number of next hops that have codes.
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// Returns the number of codes up to the last one.
    pub(super) fn end(&self) -> u32 {
        self.allotted.end()
    }

    /// Returns the codes that are free.
    #[cfg(test)]
    pub(super) fn free_units(&self) -> Vec<Unit> {
        self.allotted.free_units()
    }

    /// Returns the memory of the lists.
    pub(super) fn memory(&self) -> Memory {
        let lists = memory::of(&self.uses) + memory::of(&self.fresh) + self.allotted.memory();
        // Two words and a byte of its own for each place of the map.
        let allocated_bytes = lists.allocated_bytes + self.codes.capacity() * 9;
        Memory { lookup_bytes: 0, allocated_bytes, ..lists }
    }

    /// Verifies the codes, given how often each is used, and which codes are retired.
    pub(super) fn check(
        &self,
        uses: &[u32],
        array: &[AtomicU32],
        retired: impl Iterator<Item = Unit>,
    ) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        // Counts of codes that were given up at the end stay.
        let all = uses.iter().copied().chain(core::iter::repeat(0));
        let counted =
            self.uses.len() >= uses.len() && self.uses.iter().copied().zip(all).all(|(a, b)| a == b);
        holds(counted, "the uses of codes are counted", uses.len())?;
        let mut known = vec![Unit { place: NO_ROUTE, size: 1 }];
        for (&next_hop, &code) in &self.codes {
            let found = array.get(code as usize).is_some_and(|word| word.read() == next_hop);
            holds(found && next_hop != 0, "the code of a next hop leads to it", code as usize)?;
            holds(uses[code as usize] > 0, "a code is of use", code as usize)?;
            known.push(Unit { place: code, size: 1 });
        }
        known.extend(retired);
        self.allotted.check(known)
    }
}
