//! The blocks of all VRFs in one family: equal ones are one, counted.

use core::hash::BuildHasher;
use core::marker::PhantomData;
use std::hash::RandomState;

use crate::check::CheckError;
use crate::fib::units::{Unit, Units};
use crate::memory::{self, Budget, Cell, Limits, Memory, OutOfMemory, Shared, Word};
use crate::net::Key;
use crate::simd::LINE_WORDS;

use super::block::{self, Block, BlockRefusal, BlockRoot};

/// Lines that an arena has addresses for: 256 MiB, or 32 MiB where addresses are of 32 bits.
pub(super) const LINES: u32 = if usize::BITS > 32 { 1 << 22 } else { 1 << 19 };

/// The number of the entry of a block.
pub(super) type Number = u32;

/// No entry.
const NONE: Number = u32::MAX;

/// A block, its count and its place in the hash table.
#[derive(Debug, Clone, Copy)]
struct BlockEntry {
    unit: Unit,
    root: BlockRoot,
    /// VRFs that have it; 0 if the entry is free.
    count: u32,
    hash: u64,
    /// The next entry whose hash has the same place, or the next free one.
    next: Number,
}

/// The blocks of a family, and a hash table that finds equal blocks.
#[derive(Debug)]
pub(super) struct BlockArena<K> {
    words: Shared<u32>,
    units: Units,
    entries: Vec<BlockEntry>,
    free: Number,
    /// The first entry of each hash bucket. The number of buckets is 0 or a power of two.
    heads: Vec<Number>,
    /// Number of entries that are in use.
    used: u32,
    /// Lines whose memory is charged.
    charged: u32,
    hasher: RandomState,
    keys: PhantomData<fn(K)>,
}

impl<K: Key> BlockArena<K> {
    /// Returns an arena with the first line, which has no next hop.
    ///
    /// # Errors
    /// When the system has no addresses for it.
    pub(super) fn new(limits: Limits) -> Result<Self, OutOfMemory> {
        // Addresses for all lines at once, because readers hold the array and it must not move.
        let words = Shared::zeros(LINES as usize * LINE_WORDS, limits.huge_pages)?;
        let mut units = Units::default();
        // The first line is never given back.
        let _ = units.append(1);
        let (entries, heads) = (Vec::new(), Vec::new());
        let hasher = RandomState::new();
        Ok(Self { words, units, entries, free: NONE, heads, used: 0, charged: 0, hasher, keys: PhantomData })
    }

    /// Returns another handle to the words.
    pub(super) fn reading(&mut self) -> Shared<u32> {
        self.words.another()
    }

    /// Returns the number of different blocks.
    pub(super) fn blocks(&self) -> usize {
        self.used as usize
    }

    /// Returns the number of entries, those that are free included.
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Returns the root of a block.
    pub(super) fn root(&self, number: Number) -> BlockRoot {
        self.entries[number as usize].root
    }

    /// Returns the number of the block, which is written if there is no equal one. Whoever takes it gives it back.
    ///
    /// # Errors
    /// When memory runs out, or lines do; the arena is as it was.
    pub(super) fn take(&mut self, block: &Block, budget: &mut Budget) -> Result<Number, BlockRefusal> {
        let hash = self.hasher.hash_one(&block.words);
        if let Some(number) = self.find(block, hash) {
            // An equal block is shared: the words of the new one are never written.
            self.entries[number as usize].count += 1;
            return Ok(number);
        }
        // Before a place is taken, so that a failure leaves nothing to give back.
        self.make_room(budget)?;
        let lines = block.lines() as u32;
        // It will be given back once.
        self.units.expect(1, budget)?;
        // The arena has addresses for so many lines and never moves. Without a place, the VRF gets an engine of its own.
        let Some(place) = self.allot(lines, budget) else {
            self.units.expect_less(1);
            return Err(BlockRefusal::TooLarge);
        };
        // After the place is taken, because only then is it known whether the lines are new.
        if let Err(error) = self.charge(budget) {
            self.units.give_expected(Unit { place, size: lines });
            return Err(error.into());
        }
        // No reader has a word that leads here yet, so the order of these stores does not matter.
        for (to, word) in self.words[place as usize * LINE_WORDS..].iter().zip(&block.words) {
            word.write(to);
        }
        let root = BlockRoot::tree(place + block.before, block.levels);
        let next = self.heads[self.slot(hash)];
        let entry = BlockEntry { unit: Unit { place, size: lines }, root, count: 1, hash, next };
        Ok(self.add(entry))
    }

    /// Returns a place for `lines` lines.
    fn allot(&mut self, lines: u32, budget: &mut Budget) -> Option<u32> {
        // If memory for the lists runs out, units that were given back stay unused until a later call.
        let _ = self.units.absorb(budget);
        self.units.take(lines).or_else(|| {
            let fits = self.units.end().checked_add(lines).is_some_and(|end| end <= LINES);
            if fits { self.units.append(lines) } else { None }
        })
    }

    /// Counts lines that are used for the first time.
    fn charge(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let end = self.units.end();
        if end > self.charged {
            budget.charge((end - self.charged) as usize * LINE_WORDS * size_of::<u32>())?;
            self.charged = end;
        }
        Ok(())
    }

    /// Gives a block back. Returns its unit if no VRF has it any more: it comes back by [`free`](Self::free) when no reader
    /// can be in it.
    pub(super) fn give(&mut self, number: Number) -> Option<Unit> {
        let entry = &mut self.entries[number as usize];
        entry.count -= 1;
        if entry.count > 0 {
            return None;
        }
        // Out of the hash table at once, so that no later block is found equal to one whose lines are being retired.
        let BlockEntry { unit, hash, next, .. } = *entry;
        let slot = self.slot(hash);
        if self.heads[slot] == number {
            self.heads[slot] = next;
        } else {
            // Chains are short, because there are at least as many buckets as blocks.
            let mut before = self.heads[slot];
            while self.entries[before as usize].next != number {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.entries[number as usize].next = self.free;
        self.free = number;
        self.used -= 1;
        Some(unit)
    }

    /// Takes lines back that no reader can reach.
    pub(super) fn free(&mut self, unit: Unit) {
        self.units.give_expected(unit);
    }

    /// Returns the bytes of a unit.
    pub(super) fn bytes(unit: Unit) -> usize {
        unit.size as usize * LINE_WORDS * size_of::<u32>()
    }

    fn slot(&self, hash: u64) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    fn find(&self, block: &Block, hash: u64) -> Option<Number> {
        if self.heads.is_empty() {
            return None;
        }
        let mut at = self.heads[self.slot(hash)];
        while at != NONE {
            let entry = &self.entries[at as usize];
            // The hash first: it is in the entry, and the words of the block are in lines that are seldom in the cache.
            if entry.hash == hash && self.holds(entry, block) {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    /// Returns whether an entry is of this block.
    fn holds(&self, entry: &BlockEntry, block: &Block) -> bool {
        let words = &self.words[entry.unit.place as usize * LINE_WORDS..];
        entry.unit.size as usize == block.lines()
            && entry.root.levels() == block.levels
            && entry.root.place() == entry.unit.place + block.before
            && block.words.iter().zip(words).all(|(&word, held)| held.read() == word)
    }

    /// Makes room for one more entry.
    fn make_room(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if self.free == NONE {
            budget.reserve(&mut self.entries, 1)?;
        }
        if self.used as usize >= self.heads.len() {
            let places = (2 * self.heads.len()).max(64);
            let mut heads: Vec<Number> = budget.vec(places)?;
            heads.resize(places, NONE);
            // All chains are made again below, because an entry's bucket depends on the number of buckets.
            budget.free(core::mem::replace(&mut self.heads, heads));
            for number in 0..self.entries.len() {
                if self.entries[number].count > 0 {
                    let slot = self.slot(self.entries[number].hash);
                    self.entries[number].next = self.heads[slot];
                    self.heads[slot] = number as Number;
                }
            }
        }
        Ok(())
    }

    /// Adds an entry, for which there is room.
    fn add(&mut self, entry: BlockEntry) -> Number {
        let number = if self.free == NONE {
            self.entries.push(entry);
            self.entries.len() as Number - 1
        } else {
            let number = self.free;
            self.free = self.entries[number as usize].next;
            self.entries[number as usize] = entry;
            number
        };
        let slot = self.slot(entry.hash);
        self.heads[slot] = number;
        self.used += 1;
        number
    }

    /// Returns the memory of the blocks.
    pub(super) fn memory(&self) -> Memory {
        let used = self.units.end() as usize * LINE_WORDS;
        let free = self.units.free_elements() as usize * LINE_WORDS * size_of::<u32>();
        let memory = self.words.memory_of(used);
        Memory { lookup_bytes: memory.lookup_bytes - free, ..memory }
    }

    /// Returns the memory of the hash table of blocks.
    pub(super) fn bookkeeping(&self) -> Memory {
        let lists = memory::of(&self.entries) + memory::of(&self.heads) + self.units.memory();
        Memory { lookup_bytes: 0, ..lists }
    }

    /// Verifies that blocks and counts are right, and that all lines are in a block, in a retired unit, or free.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub(super) fn check(&self, counts: &[u32], retired: &[Unit]) -> Result<(), CheckError> {
        let mut used = vec![Unit { place: 0, size: 1 }];
        used.extend_from_slice(retired);
        for (number, entry) in self.entries.iter().enumerate() {
            let count = counts.get(number).copied().unwrap_or(0);
            CheckError::unless(entry.count == count, "blocks count the VRFs that have them", number)?;
            if count == 0 {
                continue;
            }
            used.push(entry.unit);
            let first = entry.unit.place as usize * LINE_WORDS;
            let words = &self.words[first..first + entry.unit.size as usize * LINE_WORDS];
            block::check::<K>(words, entry.root.place() - entry.unit.place, entry.root.levels())?;
            let mut at = self.heads[self.slot(entry.hash)];
            while at != NONE && at as usize != number {
                at = self.entries[at as usize].next;
            }
            CheckError::unless(at as usize == number, "blocks are found by their hashes", number)?;
        }
        self.units.check(used)
    }

    /// Returns whether a number is that of this block.
    pub(super) fn is(&self, number: Number, block: &Block) -> bool {
        self.holds(&self.entries[number as usize], block)
    }
}
