//! Routes to a block.

use core::hash::BuildHasher;
use std::hash::RandomState;

use crate::fib::ranges::{self, Merge};
use crate::memory::{Budget, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};
use crate::simd::{LEAF_KEYS, LINE_WORDS};

use super::layout::{
    BELOW, CHILDREN, LEAF_VALUES, LEVELS, LINES, NEVER, OBJECT_WORDS, OBJECTS, Object, SIGN, is_tree,
    last_window, window, windows,
};

/// A block: its words, whole lines, and where the root is. Equal tables have equal blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vrf) struct Block {
    pub(in crate::vrf) words: Vec<u32>,
    /// Lines before the root, of objects.
    pub(in crate::vrf) before: u32,
    /// Inner levels of the tree.
    pub(in crate::vrf) levels: u32,
}

impl Block {
    /// Returns the number of lines.
    pub(in crate::vrf) fn lines(&self) -> usize {
        self.words.len() / LINE_WORDS
    }
}

/// Why there is no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vrf) enum BlockRefusal {
    /// Memory ran out.
    Memory(OutOfMemory),
    /// The routes need more objects than values can number.
    TooLarge,
}

impl From<OutOfMemory> for BlockRefusal {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

type Line = [u32; LINE_WORDS];

/// A window from which on the value is this one.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u32,
    value: u32,
}

/// A block under construction. Its memory is counted in `budget`, and released by whoever made that.
struct Builder<'a, K> {
    budget: &'a mut Budget,
    /// First addresses of ranges after the first range, with their next hops.
    starts: Vec<(K, u32)>,
    /// The pieces of the trees under construction, those of the innermost one last.
    pieces: Vec<Piece>,
    objects: Vec<Object>,
    /// One more than the number of an object, at the place of its hash or after it; 0 elsewhere. None, or a power of two of
    /// which half at most are used.
    places: Vec<u32>,
    hasher: RandomState,
    /// Lines of the trees below the first one.
    lines: Vec<Line>,
}

/// Builds the block of these routes.
///
/// # Errors
/// When memory runs out, or there are too many objects.
pub(in crate::vrf) fn build<K: Key>(
    routes: &dyn Routes<K>,
    budget: &mut Budget,
) -> Result<Block, BlockRefusal> {
    let mut starts = Vec::new();
    let mut first = 0;
    ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
        let word = NextHop::word(range.next_hop);
        // The first range has no start in the list: every search begins in it.
        if range.start == K::ZERO {
            first = word;
            return Ok(());
        }
        budget.push(&mut starts, (range.start, word))
    })?;
    let all = starts.len();
    let mut builder = Builder {
        budget,
        starts,
        pieces: Vec::new(),
        objects: Vec::new(),
        places: Vec::new(),
        hasher: RandomState::new(),
        lines: Vec::new(),
    };
    builder.pieces(0, 0, all, first)?;
    // The first tree is built last, because objects of its values must have their numbers, and trees below it their lines.
    let pieces = core::mem::take(&mut builder.pieces);
    let mut top = Vec::new();
    let levels = tree(&pieces, &mut top, builder.budget)?;
    builder.finish(&top, levels)
}

impl<K: Key> Builder<'_, K> {
    /// Appends the pieces of the windows at a depth, for the ranges that begin at `starts[from..end]`, which differ in
    /// these and later windows only; the space begins with the next hop `first`.
    fn pieces(&mut self, depth: u8, from: usize, end: usize, first: u32) -> Result<(), BlockRefusal> {
        let base = self.pieces.len();
        let is_next =
            |starts: &[(K, u32)], at: usize, here: u32| at < end && window(starts[at].0, depth) == here;
        // A value is made only for a piece that there will be: it may take an object.
        if !is_next(&self.starts, from, 0) {
            let value = self.value(first)?;
            self.piece(base, 0, value)?;
        }
        let (mut at, mut before) = (from, first);
        while at < end {
            let here = window(self.starts[at].0, depth);
            let is_here = |&&(start, _): &&(K, u32)| window(start, depth) == here;
            let next = at + self.starts[at..end].iter().take_while(is_here).count();
            // A range that begins with the window gives its first address the next hop.
            let (head, inner) =
                if self.begins_window(at, depth) { (self.starts[at].1, at + 1) } else { (before, at) };
            before = self.starts[next - 1].1;
            let is_whole = inner == next;
            let value = if is_whole { self.value(head)? } else { self.object(depth + 1, inner, next, head)? };
            self.piece(base, here, value)?;
            // After a divided window the next hop goes on, unless another range begins at the next window.
            let continues = here < last_window::<K>(depth) && !is_next(&self.starts, next, here + 1);
            if !is_whole && continues {
                let value = self.value(before)?;
                self.piece(base, here + 1, value)?;
            }
            at = next;
        }
        Ok(())
    }

    /// Returns whether a range begins at the first address of its window.
    fn begins_window(&self, at: usize, depth: u8) -> bool {
        (depth + 1..windows::<K>()).all(|depth| window(self.starts[at].0, depth) == 0)
    }

    /// Appends a piece after those from `base` on, unless it continues the one before.
    fn piece(&mut self, base: usize, start: u32, value: u32) -> Result<(), OutOfMemory> {
        debug_assert!(self.pieces[base..].last().is_none_or(|last| last.start < start));
        // Equal neighbours are one piece, so that equal answers make equal blocks whatever routes they come from.
        if self.pieces.len() > base && self.pieces.last().is_some_and(|last| last.value == value) {
            return Ok(());
        }
        self.budget.push(&mut self.pieces, Piece { start, value })
    }

    /// Returns the value that leads to a next hop, 0 for none.
    fn value(&mut self, word: u32) -> Result<u32, BlockRefusal> {
        if word < BELOW { Ok(word) } else { self.number([word, word, 0, u32::MAX]) }
    }

    /// Returns the value of a window within which the answer changes.
    fn object(&mut self, depth: u8, from: usize, end: usize, first: u32) -> Result<u32, BlockRefusal> {
        if let Some(record) = self.record(depth, from, end, first) {
            return self.number(record);
        }
        let base = self.pieces.len();
        self.pieces(depth, from, end, first)?;
        // The line is counted from the first tree below; `finish` adds the lines of the first tree, which is not built yet.
        let place = self.lines.len() as u32;
        let levels = tree(&self.pieces[base..], &mut self.lines, self.budget)?;
        // The pieces of this tree are lines now. The list goes back to those of the tree around it.
        self.pieces.truncate(base);
        self.number([place, levels, 1, 0])
    }

    /// Returns the record of these ranges, if they are one stretch of whole windows.
    fn record(&self, depth: u8, from: usize, end: usize, first: u32) -> Option<Object> {
        let starts = &self.starts[from..end];
        let is_whole = (from..end).all(|at| self.begins_window(at, depth));
        match *starts {
            [(start, inside)] if is_whole => Some([first, inside, window(start, depth), u32::MAX]),
            [(start, inside), (after, outside)] if is_whole && outside == first => {
                Some([first, inside, window(start, depth), window(after, depth) - 1])
            }
            _ => None,
        }
    }

    /// Returns the value that leads to an object. Equal objects are one.
    fn number(&mut self, object: Object) -> Result<u32, BlockRefusal> {
        if 2 * self.objects.len() >= self.places.len() {
            self.make_places()?;
        }
        let place = self.place(&object);
        if let Some(number) = self.places[place].checked_sub(1) {
            return Ok(BELOW | number);
        }
        let number = self.objects.len();
        if number == OBJECTS {
            return Err(BlockRefusal::TooLarge);
        }
        self.budget.push(&mut self.objects, object)?;
        self.places[place] = number as u32 + 1;
        Ok(BELOW | number as u32)
    }

    /// Returns the place of an object's number, or that where it would be.
    fn place(&self, object: &Object) -> usize {
        let last = self.places.len() - 1;
        let mut place = self.hasher.hash_one(object) as usize & last;
        while let Some(number) = self.places[place].checked_sub(1) {
            if self.objects[number as usize] == *object {
                break;
            }
            place = (place + 1) & last;
        }
        place
    }

    /// Makes twice as many places.
    fn make_places(&mut self) -> Result<(), OutOfMemory> {
        let count = (2 * self.places.len()).max(32);
        let mut places = self.budget.vec(count)?;
        places.resize(count, 0);
        self.budget.free(core::mem::replace(&mut self.places, places));
        for number in 0..self.objects.len() {
            let place = self.place(&self.objects[number]);
            self.places[place] = number as u32 + 1;
        }
        Ok(())
    }

    /// Returns the block: objects, the first tree, the others.
    fn finish(self, top: &[Line], levels: u32) -> Result<Block, BlockRefusal> {
        let before = (self.objects.len() * OBJECT_WORDS).div_ceil(LINE_WORDS);
        let lines = before + top.len() + self.lines.len();
        let mut words = self.budget.vec(lines * LINE_WORDS)?;
        // Padding before the objects, not after, because they are found by their distance before the first line.
        words.resize(before * LINE_WORDS - self.objects.len() * OBJECT_WORDS, 0);
        // Backwards: object 0 is next to the first line, so that its place does not depend on how many there are.
        for object in self.objects.iter().rev() {
            let distance = if is_tree(object) { top.len() as u32 } else { 0 };
            words.extend([object[0] + distance, object[1], object[2], object[3]]);
        }
        words.extend(top.iter().chain(&self.lines).flatten());
        Ok(Block { words, before: before as u32, levels })
    }
}

/// Appends the tree of these pieces (at least one). Returns the number of its inner levels.
fn tree(pieces: &[Piece], lines: &mut Vec<Line>, budget: &mut Budget) -> Result<u32, BlockRefusal> {
    let levels =
        (0..LEVELS).find(|&levels| pieces.len() <= capacity(levels)).ok_or(BlockRefusal::TooLarge)?;
    node(pieces, levels, lines, budget)?;
    Ok(levels as u32)
}

/// Returns the maximum number of pieces of a tree with `levels` inner levels.
fn capacity(levels: usize) -> usize {
    LEAF_VALUES * CHILDREN.pow(levels as u32)
}

/// Appends a line and all lines below it.
fn node(
    pieces: &[Piece],
    levels: usize,
    lines: &mut Vec<Line>,
    budget: &mut Budget,
) -> Result<(), OutOfMemory> {
    if levels == 0 {
        return budget.push(lines, leaf(pieces));
    }
    let below = capacity(levels - 1);
    let mut line = [NEVER; LINE_WORDS];
    // A key separates a child from the one before it, so the first child has none.
    for (key, child) in line.iter_mut().zip(pieces.chunks(below).skip(1)) {
        *key = last_before(child[0]);
    }
    budget.push(lines, line)?;
    let first = lines.len();
    for (number, child) in pieces.chunks(below).enumerate() {
        // All children but the last one are full, so that each is found by its number.
        debug_assert_eq!(lines.len(), first + number * LINES[levels - 1] as usize);
        node(child, levels - 1, lines, budget)?;
    }
    Ok(())
}

/// Returns the last window before a piece, as keys are compared.
fn last_before(piece: Piece) -> u32 {
    (piece.start - 1) ^ SIGN
}

/// Returns the leaf of these pieces. The last value is repeated.
fn leaf(pieces: &[Piece]) -> Line {
    let mut line = [0; LINE_WORDS];
    for (at, key) in line[..LEAF_KEYS].iter_mut().enumerate() {
        *key = pieces.get(at + 1).map_or(NEVER, |&piece| last_before(piece));
    }
    for at in 0..LEAF_VALUES {
        let value = pieces[at.min(pieces.len() - 1)].value;
        line[LEAF_KEYS + at / 2] |= value << (16 * (at % 2));
    }
    line
}
