//! The numbering of next hops by dense codes inside a structure.
//!
//! Structures that store next hops in a few bits number them; the dictionary that turns codes back into next hops is
//! part of the structure. "No route" is code 0 of every dictionary, so that it needs no bit of its own.

use crate::memory::{self, Budget, Memory, OutOfMemory};
use crate::net::NextHop;

/// Code of "no route".
pub const NO_ROUTE: u32 = 0;

/// A next hop that has a code.
#[derive(Debug, Clone, Copy)]
struct Coded {
    /// The id, 0 for no route.
    id: u32,
    /// How often it was used.
    uses: u32,
}

/// Next hops numbered in the order of their first use, and how often each was used.
#[derive(Debug)]
pub struct NextHopDictionary {
    /// Next hops by code; 0 is no route.
    coded: Vec<Coded>,
    /// A hash table with open addressing: codes, 0 for a free slot; its length is a power of two.
    slots: Vec<u32>,
}

impl NextHopDictionary {
    /// Returns a dictionary with nothing but "no route".
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new(budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let mut coded = budget.vec(8)?;
        coded.push(Coded { id: 0, uses: 0 });
        Ok(Self { coded, slots: free_slots(budget, 16)? })
    }

    /// Returns the number of codes, including that of "no route".
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.coded.len()
    }

    /// Returns the code of a next hop, which is added at its first use.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn code(&mut self, next_hop: Option<NextHop>, budget: &mut Budget) -> Result<u32, OutOfMemory> {
        let Some(next_hop) = next_hop else { return Ok(NO_ROUTE) };
        let at = self.slot(next_hop.id());
        let code = self.slots[at];
        if code != NO_ROUTE {
            let uses = &mut self.coded[code as usize].uses;
            *uses = uses.saturating_add(1);
            return Ok(code);
        }
        let code = self.coded.len() as u32;
        budget.push(&mut self.coded, Coded { id: next_hop.id(), uses: 1 })?;
        self.slots[at] = code;
        if self.coded.len() * 2 > self.slots.len() {
            self.grow(budget)?;
        }
        Ok(code)
    }

    /// Returns the code of a next hop that has one.
    #[must_use]
    pub fn known(&self, next_hop: Option<NextHop>) -> Option<u32> {
        let Some(next_hop) = next_hop else { return Some(NO_ROUTE) };
        Some(self.slots[self.slot(next_hop.id())]).filter(|&code| code != NO_ROUTE)
    }

    /// Returns the id of each code, 0 first.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.coded.iter().map(|coded| coded.id)
    }

    /// Forgets all codes but the first so many, which include "no route". Must not follow
    /// [`by_popularity`](Self::by_popularity).
    pub fn truncate(&mut self, len: usize) {
        // The last code that was added is in no other's way, as codes enter the slots in their order.
        while self.coded.len() > len
            && let Some(&Coded { id, .. }) = self.coded.last()
        {
            let at = self.slot(id);
            self.slots[at] = NO_ROUTE;
            self.coded.pop();
        }
    }

    /// Returns the memory, which lookups do not read.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory { lookup_bytes: 0, ..memory::of(&self.coded) + memory::of(&self.slots) }
    }

    /// Returns the slot with the code of this id, or the free slot for it.
    fn slot(&self, id: u32) -> usize {
        let mask = self.slots.len() - 1;
        // Knuth's multiplicative hash; the high half is the one that is mixed.
        let mut at = (u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[at] != NO_ROUTE && self.coded[self.slots[at] as usize].id != id {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let larger = free_slots(budget, self.slots.len() * 2)?;
        budget.free(core::mem::replace(&mut self.slots, larger));
        for code in 1..self.coded.len() {
            let at = self.slot(self.coded[code].id);
            self.slots[at] = code as u32;
        }
        Ok(())
    }

    /// Renumbers by descending number of uses, equal ones by first use; "no route" stays 0. Returns the new code of
    /// each old one. [`code`](Self::code) must not be called afterwards.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn by_popularity(&mut self, budget: &mut Budget) -> Result<Vec<u32>, OutOfMemory> {
        let mut order = budget.vec::<u32>(self.coded.len())?;
        order.extend(0..self.coded.len() as u32);
        order[1..].sort_unstable_by_key(|&code| (u32::MAX - self.coded[code as usize].uses, code));
        let mut renumbered = budget.vec(order.len())?;
        renumbered.resize(order.len(), NO_ROUTE);
        for (new, &old) in order.iter().enumerate() {
            renumbered[old as usize] = new as u32;
        }
        let mut coded = budget.vec(order.len())?;
        coded.extend(order.iter().map(|&old| self.coded[old as usize]));
        budget.free(core::mem::replace(&mut self.coded, coded));
        budget.free(order);
        Ok(renumbered)
    }

    /// Returns the id of each code, 0 first, and frees the rest.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn into_next_hops(self, budget: &mut Budget) -> Result<Vec<u32>, OutOfMemory> {
        budget.free(self.slots);
        let mut next_hops = budget.vec(self.coded.len())?;
        next_hops.extend(self.coded.iter().map(|coded| coded.id));
        budget.free(self.coded);
        Ok(next_hops)
    }
}

fn free_slots(budget: &mut Budget, count: usize) -> Result<Vec<u32>, OutOfMemory> {
    let mut slots = budget.vec(count)?;
    slots.resize(count, NO_ROUTE);
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_slots_stay_free() {
        let mut budget = Budget::default();
        let mut codes = NextHopDictionary::new(&mut budget).unwrap();
        for id in 1..500 {
            assert_eq!(codes.code(NextHop::new(id), &mut budget).unwrap(), id);
            assert_eq!(codes.len(), id as usize + 1);
            assert!(codes.slots.len().is_power_of_two() && codes.slots.len() >= 2 * codes.len());
            assert!(codes.slots.len() <= (4 * codes.len()).max(16));
        }
    }

    /// Codes that are forgotten, over several sizes of the slots, leave the others as they were.
    #[test]
    fn the_last_codes_can_be_forgotten() {
        let mut budget = Budget::default();
        let mut codes = NextHopDictionary::new(&mut budget).unwrap();
        let mut ids: Vec<u32> = vec![0];
        for round in 1..400u32 {
            for number in 0..round % 23 {
                let id = (round * 64 + number).wrapping_mul(0x9e37_79b9) | 1;
                if codes.known(NextHop::new(id)).is_none() {
                    ids.push(id);
                }
                let code = codes.code(NextHop::new(id), &mut budget).unwrap();
                assert_eq!(ids[code as usize], id);
            }
            ids.truncate(ids.len().saturating_sub(round as usize % 19).max(1));
            codes.truncate(ids.len());
            assert_eq!(codes.len(), ids.len());
        }
        assert!(ids.len() > 500, "{}", ids.len());
        for (code, &id) in ids.iter().enumerate() {
            assert_eq!(codes.known(NextHop::new(id)), Some(code as u32));
        }
        assert_eq!(codes.slots.iter().filter(|&&code| code != NO_ROUTE).count(), ids.len() - 1);
        assert!(codes.ids().eq(ids) && codes.known(NextHop::new(2)).is_none());
    }

    #[test]
    fn codes_follow_first_use_and_then_popularity() {
        let mut budget = Budget::default();
        let mut codes = NextHopDictionary::new(&mut budget).unwrap();
        let mut code = |id: u32| codes.code(NextHop::new(id), &mut budget).unwrap();
        assert_eq!([7, 9, 0, 7, 9, u32::MAX, 9].map(&mut code), [1, 2, 0, 1, 2, 3, 2]);
        for id in 1_000..3_000 {
            let first = code(id);
            assert_eq!((code(id), code(id)), (first, first), "{id}");
        }
        let renumbered = codes.by_popularity(&mut budget).unwrap();
        // 9 and the 2,000 were used three times, 7 twice.
        assert_eq!((renumbered[0], renumbered[2], renumbered[4]), (0, 1, 2));
        assert_eq!((renumbered[1], renumbered[3]), (2_002, 2_003));
        let next_hops = codes.into_next_hops(&mut budget).unwrap();
        assert_eq!((next_hops[..3].to_vec(), next_hops.len()), (vec![0, 9, 1_000], 2_004));
        assert_eq!((next_hops[2_002], next_hops[2_003]), (7, u32::MAX));
        budget.free(renumbered);
        assert_eq!(budget.used_bytes(), memory::allocated(&next_hops));
    }
}
