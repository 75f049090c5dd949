//! Verifies the invariants of a block.

use core::ops::Range;
use core::sync::atomic::AtomicU32;

use crate::check::CheckError;
use crate::memory::Cell;
use crate::net::Key;
use crate::simd::{LEAF_KEYS, LINE_WORDS};

use super::layout::{
    BELOW, LEAF_VALUES, LINES, NEVER, OBJECT_WORDS, Object, SIGN, is_tree, last_window, windows,
};

/// The state of a verification: the block, and the counts of its parts that were visited.
struct BlockCheck<'a> {
    words: &'a [AtomicU32],
    /// The line of the root.
    root: usize,
    /// How often each line and each object was met.
    lines: Vec<u32>,
    objects: Vec<bool>,
}

/// The last windows of a tree's values, and the values.
type Values = Vec<(u32, u32)>;

/// Verifies a block whose root is at a line of these words, which are its own.
///
/// # Errors
/// The first invariant that does not hold.
pub(in crate::vrf) fn check<K: Key>(words: &[AtomicU32], before: u32, levels: u32) -> Result<(), CheckError> {
    let root = before as usize;
    let lines = vec![0; words.len() / LINE_WORDS];
    let mut walk = BlockCheck { words, root, lines, objects: vec![false; root * LINE_WORDS / OBJECT_WORDS] };
    walk.tree::<K>(root, levels as usize, 0)?;
    let is_met = |line: usize| line < root || walk.lines[line] == 1;
    CheckError::unless((0..walk.lines.len()).all(is_met), "(1) every line is in one tree", walk.lines.len())?;
    let used = walk.objects.iter().filter(|&&met| met).count();
    let dense = walk.objects[..used].iter().all(|&met| met);
    CheckError::unless(dense && used.div_ceil(4) == root, "(1) objects fill the lines before the root", used)
}

impl BlockCheck<'_> {
    fn tree<K: Key>(&mut self, line: usize, levels: usize, depth: u8) -> Result<(), CheckError> {
        CheckError::unless(depth < windows::<K>(), "(5) trees are of windows that keys have", line)?;
        let mut values = Vec::new();
        let size = self.node(line, levels, last_window::<K>(depth), &mut values)?;
        CheckError::unless(size >= 1, "(2) a tree has lines", line)?;
        let ascends = values.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1);
        CheckError::unless(ascends, "(3) last windows ascend, and neighbouring values differ", line)?;
        for (at, &(last, value)) in values.iter().enumerate() {
            let first = if at == 0 { 0 } else { values[at - 1].0 + 1 };
            if value & BELOW != 0 {
                self.object::<K>((value & (BELOW - 1)) as usize, depth, first..last)?;
            }
        }
        Ok(())
    }

    /// Appends the values below a node, which end with the window `last`. Returns the number of lines.
    fn node(
        &mut self,
        line: usize,
        levels: usize,
        last: u32,
        values: &mut Values,
    ) -> Result<usize, CheckError> {
        let in_block = line >= self.root && line < self.lines.len() && levels < LINES.len();
        CheckError::unless(in_block, "(2) children are lines of the block", line)?;
        self.lines[line] += 1;
        let words: Vec<u32> = self.words[line * LINE_WORDS..][..LINE_WORDS].iter().map(Cell::read).collect();
        let keys = if levels == 0 { &words[..LEAF_KEYS] } else { &words[..] };
        let count = keys.iter().take_while(|&&key| key != NEVER).count();
        CheckError::unless(keys[count..].iter().all(|&key| key == NEVER), "(3) padding follows keys", line)?;
        let lasts = keys[..count].iter().map(|key| key ^ SIGN).chain([last]);
        if levels == 0 {
            let value = |at: usize| words[LEAF_KEYS + at / 2] >> (16 * (at % 2)) & 0xffff;
            let repeats = (count..LEAF_VALUES).all(|at| value(at) == value(count));
            CheckError::unless(repeats, "(4) the last value is repeated", line)?;
            values.extend(lasts.enumerate().map(|(at, last)| (last, value(at))));
            return Ok(1);
        }
        let mut lines = 1;
        for (at, last) in lasts.enumerate() {
            let size = self.node(line + lines, levels - 1, last, values)?;
            let is_full = size == LINES[levels - 1] as usize;
            CheckError::unless(at == count || is_full, "(2) children are full, but the last", line)?;
            lines += size;
        }
        Ok(lines)
    }

    /// Verifies an object that the windows of a range have.
    fn object<K: Key>(&mut self, number: usize, depth: u8, range: Range<u32>) -> Result<(), CheckError> {
        let Some(met) = self.objects.get_mut(number) else {
            return Err(CheckError::new("(5) objects are before the root", number));
        };
        let is_new = !core::mem::replace(met, true);
        let at = self.root * LINE_WORDS - (number + 1) * OBJECT_WORDS;
        let words = &self.words[at..at + OBJECT_WORDS];
        let object: Object = core::array::from_fn(|at| words[at].read());
        let [outside, inside, ..] = object;
        // A next hop that is too large for a value is that of any windows; all else differs within each.
        if !is_tree(&object) && outside == inside {
            return CheckError::unless(outside >= BELOW, "(5) a next hop is too large for a value", number);
        }
        CheckError::unless(depth + 1 < windows::<K>(), "(5) keys have another window", number)?;
        if !is_tree(&object) {
            return Ok(());
        }
        CheckError::unless(is_new && range.is_empty(), "(5) a tree belongs to one window", number)?;
        self.tree::<K>(self.root + outside as usize, inside as usize, depth + 1)
    }
}
