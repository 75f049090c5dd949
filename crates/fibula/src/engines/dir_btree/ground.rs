//! Arrays that grow and whose units are freed, for tables that change: takes units, counts words and gives units up.
//!
//! Before a change is published, it does not write to words of tables that lookups reach, but only to units that nothing
//! leads to. A tree counts the slots that lead to it, because other slots may keep it. A chain is the tables of two equal
//! words that lead to one value for every window. It counts the entries that lead to it from outside. Each other table
//! belongs to one region of addresses, and is given up with it.

use core::marker::PhantomData;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;

use crate::check::CheckError;
use crate::fib::in_place::{Publication, RetiredUnit, RoomExceeded, Rooms, StoredWords};
use crate::fib::parts::units::{Unit, Units};
use crate::memory::{self, Budget, Buffer, Memory, OutOfMemory, Shared};
use crate::net::{Key, KeyKind};
use crate::simd::{LINE_UNITS, LINE_WORDS};

use super::layout::{ALONE, DirBtree, OBJECT_WORDS, SHIFT, cut};
use super::storage::PlantError;

/// In a value that is not encoded yet: set for an object of the array. The lower bits are its first unit.
pub(super) const OLD: u64 = 1 << 33;

/// The arrays, by their number among retired units.
pub(super) const TABLES: usize = 0;
pub(super) const LINES: usize = 1;
pub(super) const OBJECTS: usize = 2;

/// Words of an element of each array.
const WORDS: [usize; 3] = [1, LINE_WORDS, OBJECT_WORDS];

/// Levels of words, from the first table to slots.
pub(super) const LEVELS: usize = 4;

/// Upper parts whose paths are walked in step.
pub(super) const AHEAD: usize = 64;

/// A word to store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    pub(super) at: u32,
    pub(super) word: u32,
}

/// A word of the lines to store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) word: u32,
}

/// The tables that lead to one value for every window, and its tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    pub(super) value: u64,
    pub(super) mid: u32,
    pub(super) slots: u32,
    /// The word of its slots.
    pub(super) tree: u32,
    /// The number of words that lead to it from outside.
    pub(super) uses: u32,
}

pub(super) struct Ground<K> {
    pub(super) first_shift: u32,
    pub(super) arrays: [Shared<u32>; 3],
    pub(super) units: [Units; 3],
    /// The most elements that may be in use: those that there is room for, unless a limit is lower.
    most: [u32; 3],
    /// Elements that the budget has counted.
    charged: [u32; 3],
    pub(super) budget: Budget,
    /// The number of slots that lead to a tree, by its first line; those of chains are not counted.
    pub(super) tree_uses: Vec<u32>,
    /// The chains, by the entry of the second level.
    pub(super) chains: HashMap<u32, Chain>,
    /// The entry of the second level, by that of the first one and by value.
    pub(super) mids: HashMap<u32, u32>,
    pub(super) by_value: HashMap<u64, u32>,
    pub(super) stores: Vec<Store>,
    /// Values to store in leaves.
    pub(super) edits: Vec<Edit>,
    /// Units that were taken for the prepared change, and units that it replaces.
    pub(super) made: Vec<RetiredUnit>,
    pub(super) gone: Vec<RetiredUnit>,
    /// Changes of the numbers of words that lead to trees and chains. Gains are counted at once, losses when the change is
    /// complete.
    pub(super) log: Vec<(u32, i32)>,
    pub(super) new_chains: Vec<u32>,
    /// Trees that were copied to another place, and whose objects therefore stay.
    pub(super) moved: Vec<u32>,
    pub(super) dead_chains: Vec<u32>,
    /// Entries of the log whose losses are counted.
    pub(super) sealed: usize,
    /// Words of the objects of a leaf: heads, and pieces.
    pub(super) heads: Buffer<u32>,
    pub(super) pieces: Buffer<u32>,
    keys: PhantomData<fn(K)>,
}

pub(super) fn room<A: Eq + core::hash::Hash, B>(map: &mut HashMap<A, B>) -> Result<(), OutOfMemory> {
    map.try_reserve(1).map_err(|_| OutOfMemory { wanted_bytes: 64, used_bytes: 0, limit_bytes: None })
}

impl<K: Key> Ground<K> {
    /// Returns arrays without elements. For later elements only addresses are reserved.
    pub(super) fn new(budget: Budget, routes: usize, huge_pages: bool) -> Result<Self, OutOfMemory> {
        let most = match K::KIND {
            KeyKind::Toy => {
                let uppers = 1usize << cut::<K>().upper;
                [16 * uppers + 256, 2 * uppers + 64, 16 * uppers + 256]
            }
            // A route has at most two intervals, eight tables of two words, or twenty units of objects.
            _ => [
                (1 << 25).max(routes * 32),
                (1 << 23).max(routes * 8),
                (1 << 26).max(routes.saturating_mul(64)),
            ],
        };
        let most = most.map(|most: usize| most.min(1 << 29));
        let array = |at: usize| Shared::zeros(most[at] * WORDS[at], huge_pages);
        Ok(Self {
            first_shift: 0,
            arrays: [array(TABLES)?, array(LINES)?, array(OBJECTS)?],
            units: Default::default(),
            most: most.map(|most| most as u32),
            charged: [0; 3],
            budget,
            tree_uses: Vec::new(),
            chains: HashMap::new(),
            mids: HashMap::new(),
            by_value: HashMap::new(),
            stores: Vec::new(),
            edits: Vec::new(),
            made: Vec::new(),
            gone: Vec::new(),
            log: Vec::new(),
            new_chains: Vec::new(),
            moved: Vec::new(),
            dead_chains: Vec::new(),
            sealed: 0,
            heads: Buffer::new(),
            pieces: Buffer::new(),
            keys: PhantomData,
        })
    }

    /// Limits the words of each array.
    ///
    /// # Errors
    /// When one has more already. Nothing is limited then.
    pub(super) fn limit(&mut self, rooms: &Rooms) -> Result<(), RoomExceeded> {
        let words = [0, 1, 2].map(|at| self.units[at].end() as usize * WORDS[at]);
        if let Some(exceeded) = rooms.exceeded_by(&words) {
            return Err(exceeded);
        }
        for (at, most) in self.most.iter_mut().enumerate() {
            let all = self.arrays[at].len() / WORDS[at];
            *most = all.min(rooms.0[at] / WORDS[at]) as u32;
        }
        Ok(())
    }

    /// Returns the number of slots that lead to a tree, 0 for the tree of a chain.
    pub(super) fn uses(&self, tree: u32) -> u32 {
        self.tree_uses.get((tree / LINE_UNITS) as usize).copied().unwrap_or(0)
    }

    /// Returns the form that lookups read.
    pub(super) fn reading(&mut self) -> DirBtree<K> {
        let [tables, lines, objects] = &mut self.arrays;
        DirBtree {
            first_bits: 32 - self.first_shift,
            tables: tables.another(),
            lines: lines.another(),
            objects: objects.another(),
            table_units: Units::default(),
            line_units: Units::default(),
            object_units: Units::default(),
            ends: Some([0, 1, 2].map(|at| AtomicU32::new(self.units[at].end()))),
            keys: PhantomData,
        }
    }

    pub(super) fn write(&self, array: usize, element: u32, words: &[u32]) {
        let to = &self.arrays[array][element as usize * WORDS[array]..][..words.len()];
        // Relaxed, because the word that leads here is stored later, with release.
        for (to, &word) in to.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Takes a unit of an array: a free one, or one at the end.
    pub(super) fn take(&mut self, array: usize, size: u32) -> Result<u32, PlantError> {
        self.room(array)?;
        let place = match self.units[array].take(size) {
            Some(place) => Ok(place),
            None => self.append(array, size),
        };
        self.note(array, size, place)
    }

    /// Makes room to note a unit, and for its return later.
    pub(super) fn room(&mut self, array: usize) -> Result<(), OutOfMemory> {
        self.budget.reserve(&mut self.made, 1)?;
        self.units[array].expect(1, &mut self.budget)
    }

    /// Notes a unit unless it was refused. There must be room for it.
    pub(super) fn note(
        &mut self,
        array: usize,
        size: u32,
        place: Result<u32, PlantError>,
    ) -> Result<u32, PlantError> {
        match place {
            Ok(place) => self.made.push(RetiredUnit { array: array as u8, unit: Unit { place, size } }),
            Err(_) => self.units[array].expect_less(1),
        }
        place
    }

    fn append(&mut self, array: usize, size: u32) -> Result<u32, PlantError> {
        const FULL: [&str; 3] = ["words of tables", "lines", "units of objects"];
        let end = u64::from(self.units[array].end()) + u64::from(size);
        if end > self.most[array].into() {
            return Err(PlantError::Limit(FULL[array], self.most[array].into()));
        }
        // The array has its room from the start, but the budget counts only elements up to the end.
        if let Some(more) = (end as u32).checked_sub(self.charged[array]) {
            self.budget.charge(more as usize * WORDS[array] * size_of::<u32>())?;
            self.charged[array] = end as u32;
        }
        Ok(self.units[array].append(size).unwrap_or_default())
    }

    /// Takes words at a place with this remainder by 32.
    pub(super) fn place(&mut self, words: u32, remainder: u32) -> Result<u32, PlantError> {
        let Self { units: [units, ..], budget, .. } = self;
        if let Some(place) = units.take_at_within(words, remainder, SHIFT + 1, budget)? {
            return Ok(place);
        }
        // Words up to the next place with this remainder become a free unit.
        let skipped = remainder.wrapping_sub(units.end()) & SHIFT;
        if skipped > 0 {
            units.expect(1, budget)?;
            let place = self.append(TABLES, skipped);
            let Self { units: [units, ..], budget, .. } = self;
            match place {
                Ok(place) => units.give_or_expect(Unit { place, size: skipped }, budget),
                Err(refused) => {
                    units.expect_less(1);
                    return Err(refused);
                }
            }
        }
        self.append(TABLES, words)
    }

    pub(super) fn gone(&mut self, array: usize, unit: Unit) -> Result<(), OutOfMemory> {
        self.budget.reserve(&mut self.gone, 1)?;
        self.units[array].expect(1, &mut self.budget)?;
        self.gone.push(RetiredUnit { array: array as u8, unit });
        Ok(())
    }

    /// Counts more words that lead to a tree, or to a chain if it is one.
    pub(super) fn gain(&mut self, word: u32, count: u32) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.log, (word, count as i32))?;
        self.count(word, count as i32);
        Ok(())
    }

    pub(super) fn lose(&mut self, word: u32, count: u32) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.log, (word, -(count as i32)))
    }

    /// Adds to the number of words that lead to a tree or a chain. Returns the new number.
    pub(super) fn count(&mut self, word: u32, more: i32) -> u32 {
        let uses = if word & SHIFT == ALONE {
            let sub = self.mids.get(&word).copied().unwrap_or(word);
            self.chains.get_mut(&sub).map(|chain| &mut chain.uses)
        } else {
            self.tree_uses.get_mut((word / LINE_UNITS) as usize)
        };
        // A word without a count is never given up, so it counts as used.
        uses.map_or(1, |uses| {
            *uses = uses.wrapping_add_signed(more);
            *uses
        })
    }

    /// Returns the words of a unit.
    pub(super) fn words(RetiredUnit { array, unit }: RetiredUnit) -> Range<usize> {
        let words = WORDS[usize::from(array)];
        unit.place as usize * words..(unit.place + unit.size) as usize * words
    }

    /// Notifies the publication of the words of an array up to the last unit.
    pub(super) fn emit(&self, array: usize, publication: &mut dyn Publication) {
        let used = self.units[array].end() as usize * WORDS[array];
        publication.stored(StoredWords::whole(array as u8, &self.arrays[array][..], used));
    }

    /// Returns the bytes of a unit.
    pub(super) fn bytes(retired: RetiredUnit) -> usize {
        Self::words(retired).len() * size_of::<u32>()
    }

    /// Returns the memory that lookups do not read, without lists of units.
    pub(super) fn memory(&self) -> Memory {
        let lists = [memory::of(&self.tree_uses), memory::of(&self.stores), memory::of(&self.made)];
        let more = [memory::of(&self.gone), memory::of(&self.log), memory::of(&self.heads)];
        let all = lists.into_iter().chain(more).fold(Memory::default(), |all, list| all + list);
        let chains = self.chains.capacity() * (size_of::<Chain>() + 5)
            + self.mids.capacity() * 9
            + self.by_value.capacity() * 17;
        Memory { lookup_bytes: 0, allocated_bytes: all.allocated_bytes + chains, ..all }
    }

    /// Verifies the counts, given the number of words that lead to each tree and chain. Adds the units of chains that no lookup
    /// reaches.
    pub(super) fn check_uses(
        &self,
        mut uses: HashMap<u32, u32>,
        used: &mut [Vec<Unit>; 3],
    ) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        for (&sub, chain) in &self.chains {
            let mid = uses.remove(&chain.mid).unwrap_or(0);
            // The two words of the middle table lead to the chain from inside.
            let through = if mid > 0 { 2 } else { 0 };
            let all = mid + uses.remove(&sub).unwrap_or(0) - through;
            holds(all == chain.uses && all > 0, "(9) words that lead to chains are counted", sub as usize)?;
            let inside = [chain.slots, chain.tree].map(|word| uses.remove(&word));
            holds(inside == [Some(2); 2], "(9) chains are tables of two words", sub as usize)?;
            // The chain keeps its middle table even if nothing leads there, so the words are in use.
            if mid == 0 {
                used[TABLES].push(Unit { place: chain.mid, size: 2 });
            }
        }
        for (at, &count) in self.tree_uses.iter().enumerate() {
            let is = uses.remove(&(at as u32 * LINE_UNITS)).unwrap_or(0);
            holds(is == count, "(9) slots that lead to trees are counted", at)?;
        }
        holds(uses.is_empty(), "(9) what words lead to is counted", uses.len())
    }
}
