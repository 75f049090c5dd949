//! Storage for tables, lines and objects: arrays to which everything is appended, for a structure that never changes.

use crate::fib::BuildError;
use crate::fib::parts::intervals::Blocks;
use crate::fib::parts::units::{Unit, Units};
use crate::memory::{Budget, Buffer, OutOfMemory};
use crate::simd::{LEAF_KEYS, LINE_WORDS};

use super::layout::{ALONE, BASE_BITS, BELOW, LEAF_INTERVALS, OBJECT_UNITS, OBJECT_WORDS, SHIFT};
use super::object::{ObjectRecord, PART_UNITS, block_head, push_pieces};

/// The most words of tables that gathers can index.
pub(super) const TABLE_WORDS: u64 = 1 << 29;

/// Most lines of trees.
pub(super) const LINES: u64 = 1 << 29;

/// The object of a next hop is shared while it is among this many last units, which are then within reach of a base.
const SHARED_UNITS: u32 = 1 << 13;

/// In a value that is not encoded yet: set for a block. The lower bits are its number.
pub(in crate::engines) const BLOCK: u64 = 1 << 32;

/// Why there is no table.
pub(in crate::engines) enum PlantError {
    Memory(OutOfMemory),
    Limit(&'static str, u64),
}

impl PlantError {
    /// Returns the error of a build of the engine of this name.
    pub(in crate::engines) fn of(self, name: &'static str) -> BuildError {
        match self {
            Self::Memory(error) => BuildError::memory(name, error),
            Self::Limit(what, most) => BuildError::limit(name, what, most, most + 1),
        }
    }
}

impl From<OutOfMemory> for PlantError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

/// A leaf's values as it stores them, and the base of its objects.
pub(super) type Encoded = ([u32; LEAF_INTERVALS], u32);

/// The storage in which tables and trees are planted.
pub(super) trait TreeStorage {
    /// Most intervals of a leaf.
    const LEAF_INTERVALS: usize;

    /// Whether slots that are not neighbours may share a tree.
    const PACKS: bool;

    /// The budget of everything.
    fn budget(&mut self) -> &mut Budget;

    /// Takes words for a table whose place has this remainder by 32.
    fn table(&mut self, words: u32, remainder: u32) -> Result<u32, PlantError>;

    /// Writes an entry into words of a table.
    fn fill(&mut self, first: u32, words: u32, entry: u32) -> Result<(), PlantError>;

    /// Writes a tree into a slot.
    fn fill_slot(&mut self, slot: u32, tree: u32) -> Result<(), PlantError>;

    /// Takes lines for a tree. All of them are then written.
    fn lines(&mut self, count: u32) -> Result<u32, PlantError>;

    fn write_line(&mut self, line: u32, words: &[u32; LINE_WORDS]);

    /// Writes the values of a leaf after its keys, and makes the objects that they need.
    fn put_values(
        &mut self,
        line: &mut [u32; LINE_WORDS],
        values: &[u64],
        blocks: &Blocks<u128>,
    ) -> Result<(), PlantError>;

    /// Returns the entry that leads to one value for every window, if this level has one.
    fn known_alone(&mut self, value: u64, from_first: bool) -> Result<Option<u32>, PlantError>;

    /// Makes the entry that leads to the tree of one value for every window.
    fn alone(&mut self, value: u64, tree: u32, from_first: bool) -> Result<u32, PlantError>;
}

/// How the leaves of a structure that never changes store values.
pub(in crate::engines) trait LeafValues: Sized {
    /// Most intervals of a leaf.
    const INTERVALS: usize;

    /// Whether slots that are not neighbours may share a tree.
    const PACKS: bool;

    /// Returns words for whole lines before those of trees.
    fn head(&self) -> &[u32] {
        &[]
    }

    /// Writes the values of a leaf after its keys, and makes the objects that they need.
    fn put(
        arrays: &mut Arrays<'_, Self>,
        line: &mut [u32; LINE_WORDS],
        values: &[u64],
        blocks: &Blocks<u128>,
    ) -> Result<(), PlantError>;
}

/// Writes encoded values of `count` intervals, and the base of their objects.
pub(super) fn put_halves(line: &mut [u32; LINE_WORDS], (mut values, base): Encoded, count: usize) {
    // Slots after the last interval repeat its value, so that a lookup past the last key still finds it.
    let (used, rest) = values.split_at_mut(count);
    rest.fill(used[count - 1]);
    // Eleven values and the base are twelve halves, which fill the six words after the keys.
    let all = values.iter().copied().chain([base]);
    for (at, value) in all.enumerate() {
        let word = &mut line[LEAF_KEYS + at / 2];
        *word = if at % 2 == 0 { value } else { *word | value << 16 };
    }
}

/// Makes a table of two equal entries, and returns the entry that leads to it.
fn equal_words<V: LeafValues>(storage: &mut Arrays<'_, V>, word: u32) -> Result<u32, PlantError> {
    let place = storage.table(2, ALONE)?;
    storage.fill(place, 2, word)?;
    Ok(place)
}

/// Entries that lead to one value for every window.
#[derive(Debug, Clone, Copy)]
struct Alone {
    value: u64,
    sub: u32,
    mid: Option<u32>,
}

/// The arrays of a structure that is built and never changed.
pub(in crate::engines) struct Arrays<'a, V> {
    budget: &'a mut Budget,
    pub(in crate::engines) values: V,
    pub(super) tables: Buffer<u32>,
    pub(super) lines: Buffer<u32>,
    pub(super) objects: Buffer<u32>,
    pub(super) table_units: Units,
    pub(super) line_units: Units,
    pub(in crate::engines) object_units: Units,
    /// Entries, by hash of their value.
    alone: [Option<Alone>; CACHED],
    /// Objects of next hops, by hash of the next hop.
    wide: [Option<(u32, u32)>; CACHED],
}

/// Values whose entries or objects are remembered.
const CACHED: usize = 1 << 6;

pub(super) fn hash(value: u64) -> usize {
    (value as u32).wrapping_mul(0x9e37_79b1) as usize >> 26
}

impl<'a, V> Arrays<'a, V> {
    pub(super) fn new(values: V, budget: &'a mut Budget) -> Self {
        Self {
            budget,
            values,
            tables: Buffer::new(),
            lines: Buffer::new(),
            objects: Buffer::new(),
            table_units: Units::default(),
            line_units: Units::default(),
            object_units: Units::default(),
            alone: [None; CACHED],
            wide: [None; CACHED],
        }
    }

    /// Writes the lines before those of trees.
    pub(super) fn begin(&mut self) -> Result<(), PlantError>
    where
        V: LeafValues,
    {
        if !self.values.head().is_empty() {
            self.lines((self.values.head().len() / LINE_WORDS) as u32)?;
            self.lines.copy_from_slice(self.values.head());
        }
        Ok(())
    }

    fn append_table(&mut self, words: u32) -> Result<u32, PlantError> {
        let limit = ("words of tables", TABLE_WORDS);
        append(&mut self.table_units, &mut self.tables, [words, 1], limit, self.budget)
    }

    fn append_object(&mut self, units: u32) -> Result<u32, PlantError> {
        let size = [units, OBJECT_WORDS as u32];
        let limit = ("units of objects", OBJECT_UNITS);
        append(&mut self.object_units, &mut self.objects, size, limit, self.budget)
    }

    /// Returns an object for a next hop: a near one if there is one, or a new one.
    fn next_hop(&mut self, next_hop: u32, base: Option<u32>) -> Result<u32, PlantError> {
        // An object is shared only if the leaf's base reaches it, and values count forwards from the base.
        let near = self
            .object_units
            .end()
            .saturating_sub(SHARED_UNITS)
            .max(base.map_or(0, |base| base << BASE_BITS));
        let known =
            self.wide[hash(next_hop.into())].filter(|&(known, unit)| known == next_hop && unit >= near);
        if let Some((_, unit)) = known {
            return Ok(unit);
        }
        let unit = self.alone_object(next_hop)?;
        self.wide[hash(next_hop.into())] = Some((next_hop, unit));
        Ok(unit)
    }

    /// Makes an object of a next hop alone, and returns its unit.
    pub(in crate::engines) fn alone_object(&mut self, next_hop: u32) -> Result<u32, PlantError> {
        self.object(ObjectRecord::whole(next_hop).words())
    }

    /// Returns the object of a block, and whether its pieces are still to be appended.
    pub(in crate::engines) fn block(
        &mut self,
        blocks: &Blocks<u128>,
        block: usize,
    ) -> Result<(u32, bool), PlantError> {
        match ObjectRecord::of(blocks, block) {
            Some(record) => Ok((self.object(record.words())?, false)),
            None => Ok((self.object(&block_head(blocks.pieces(block).len() as u32, 0))?, true)),
        }
    }

    /// Appends the pieces of a block, to which its head leads.
    pub(in crate::engines) fn pieces(
        &mut self,
        head: u32,
        blocks: &Blocks<u128>,
        block: usize,
    ) -> Result<(), PlantError> {
        let pieces = self.append_object((PART_UNITS * blocks.pieces(block).len()) as u32)?;
        // The pieces take the place of the zeros that were appended.
        self.objects.truncate(pieces as usize * OBJECT_WORDS);
        push_pieces(blocks, block, &mut self.objects, self.budget)?;
        self.objects[head as usize * OBJECT_WORDS + 1] = pieces;
        Ok(())
    }

    /// Appends an object of these words, and returns its first unit.
    fn object(&mut self, words: &[u32]) -> Result<u32, PlantError> {
        let unit = self.append_object((words.len() / OBJECT_WORDS) as u32)?;
        self.objects[unit as usize * OBJECT_WORDS..].copy_from_slice(words);
        Ok(unit)
    }
}

impl Arrays<'_, HalfValues> {
    /// Encodes the values of a leaf, and makes the objects that they need.
    fn encode(&mut self, values: &[u64], blocks: &Blocks<u128>) -> Result<Encoded, PlantError> {
        let mut encoded = [0; LEAF_INTERVALS];
        let mut base = None;
        // Pieces come after all objects to which values lead, because a block may have more of them than a value reaches.
        let (mut heads, mut count) = ([(0, 0); LEAF_INTERVALS], 0);
        for (encoded, &value) in encoded.iter_mut().zip(values) {
            let number = value as u32;
            *encoded = if value < BELOW.into() {
                number
            } else {
                let unit = if value & BLOCK != 0 {
                    let (unit, has_pieces) = self.block(blocks, number as usize)?;
                    if has_pieces {
                        heads[count] = (unit, number as usize);
                        count += 1;
                    }
                    unit
                } else {
                    self.next_hop(number, base)?
                };
                // The first object sets the base, because later ones are not before it.
                let base = *base.get_or_insert(unit >> BASE_BITS);
                let from_base = unit - (base << BASE_BITS);
                if from_base >= BELOW {
                    return Err(PlantError::Limit("units of objects within reach of a leaf", BELOW.into()));
                }
                BELOW | from_base
            };
        }
        for &(head, block) in &heads[..count] {
            self.pieces(head, blocks, block)?;
        }
        Ok((encoded, base.unwrap_or(0)))
    }
}

/// Values of 16 bits.
pub(super) struct HalfValues;

impl LeafValues for HalfValues {
    const INTERVALS: usize = LEAF_INTERVALS;
    const PACKS: bool = false;

    fn put(
        arrays: &mut Arrays<'_, Self>,
        line: &mut [u32; LINE_WORDS],
        values: &[u64],
        blocks: &Blocks<u128>,
    ) -> Result<(), PlantError> {
        put_halves(line, arrays.encode(values, blocks)?, values.len());
        Ok(())
    }
}

impl<V: LeafValues> TreeStorage for Arrays<'_, V> {
    const LEAF_INTERVALS: usize = V::INTERVALS;
    const PACKS: bool = V::PACKS;

    fn budget(&mut self) -> &mut Budget {
        self.budget
    }

    fn table(&mut self, words: u32, remainder: u32) -> Result<u32, PlantError> {
        if let Some(place) = self.table_units.take_at(words, remainder, SHIFT + 1) {
            return Ok(place);
        }
        // Words before the next place with this remainder become free units of one word.
        for _ in 0..remainder.wrapping_sub(self.table_units.end()) & SHIFT {
            let place = self.append_table(1)?;
            self.table_units.give(Unit { place, size: 1 }, self.budget)?;
        }
        self.append_table(words)
    }

    fn fill(&mut self, first: u32, words: u32, entry: u32) -> Result<(), PlantError> {
        self.tables[first as usize..][..words as usize].fill(entry);
        Ok(())
    }

    fn fill_slot(&mut self, slot: u32, tree: u32) -> Result<(), PlantError> {
        self.tables[slot as usize] = tree;
        Ok(())
    }

    fn lines(&mut self, count: u32) -> Result<u32, PlantError> {
        let size = [count, LINE_WORDS as u32];
        append(&mut self.line_units, &mut self.lines, size, ("lines", LINES), self.budget)
    }

    fn write_line(&mut self, line: u32, words: &[u32; LINE_WORDS]) {
        self.lines[line as usize * LINE_WORDS..][..LINE_WORDS].copy_from_slice(words);
    }

    fn put_values(
        &mut self,
        line: &mut [u32; LINE_WORDS],
        values: &[u64],
        blocks: &Blocks<u128>,
    ) -> Result<(), PlantError> {
        V::put(self, line, values, blocks)
    }

    fn known_alone(&mut self, value: u64, from_first: bool) -> Result<Option<u32>, PlantError> {
        let known = self.alone[hash(value)].filter(|alone| alone.value == value);
        let Some(mut alone) = known else { return Ok(None) };
        if !from_first {
            return Ok(Some(alone.sub));
        }
        let mid = match alone.mid {
            Some(mid) => mid,
            None => equal_words(self, alone.sub)?,
        };
        alone.mid = Some(mid);
        self.alone[hash(value)] = Some(alone);
        Ok(Some(mid))
    }

    fn alone(&mut self, value: u64, tree: u32, from_first: bool) -> Result<u32, PlantError> {
        let slots = equal_words(self, tree)?;
        let sub = equal_words(self, slots)?;
        self.alone[hash(value)] = Some(Alone { value, sub, mid: None });
        Ok(self.known_alone(value, from_first)?.unwrap_or(sub))
    }
}

/// Appends a unit of `elements` elements of `words_each` words, and returns its first element.
fn append(
    units: &mut Units,
    words: &mut Buffer<u32>,
    [elements, words_each]: [u32; 2],
    (what, most): (&'static str, u64),
    budget: &mut Budget,
) -> Result<u32, PlantError> {
    let place = units.append(elements).filter(|_| u64::from(units.end()) <= most);
    let place = place.ok_or(PlantError::Limit(what, most))?;
    let additional = elements as usize * words_each as usize;
    budget.reserve(words, additional)?;
    words.resize(words.len() + additional, 0);
    Ok(place)
}
