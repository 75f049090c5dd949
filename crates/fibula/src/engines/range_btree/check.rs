//! The consistency check.

use crate::fib::CheckError;
use crate::simd::LANES;

use super::layout::{FEW, LASTS, NEVER, RangeBtree, RangeEncoding, TreeLayout, value};

impl<K> RangeBtree<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        match &self.form {
            RangeEncoding::Few { nodes } => {
                let sized = [2, 4].contains(nodes) && self.nodes.len() == 2 * nodes;
                CheckError::unless(sized, "(1) as many registers of next hops as of addresses", *nodes)?;
                let words = self.nodes.as_flattened();
                let (lasts, values) = words.split_at(nodes * LANES);
                let ranges = ascending(lasts.iter().copied())?;
                CheckError::unless(
                    ranges > FEW / 2 || *nodes == 2,
                    "(1) no more registers than ranges need",
                    ranges,
                )?;
                differ(values, ranges)
            }
            RangeEncoding::Tree(tree) => self.walk_tree(tree),
        }
    }

    fn walk_tree(&self, tree: &TreeLayout) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let lasts = *LASTS.get(tree.width as usize).ok_or(CheckError::new("(5) a width of values", 0))?;
        let leaves = self.nodes.len().saturating_sub(tree.leaves() + 1);
        let (shape, nodes) = TreeLayout::of(leaves * (lasts + 1), tree.width);
        holds(shape == *tree && nodes + 1 == self.nodes.len(), "(2) levels follow one another", nodes)?;
        holds(self.nodes[nodes] == [NEVER; LANES], "(2) the padding is empty", nodes)?;

        // The address that separates each leaf from the next, in the highest node that has both below it.
        let words = self.nodes.as_flattened();
        let between: Vec<u32> = (1..=leaves)
            .map(|leaf| {
                if leaf.is_multiple_of(tree.leaves_below(0)) {
                    return words[leaf / tree.leaves_below(0) - 1];
                }
                let below = |level: &usize| leaf.is_multiple_of(tree.leaves_below(level + 1));
                let level = (0..tree.levels).find(below).expect("a leaf is one leaf");
                let node = tree.starts[level] as usize + leaf / tree.leaves_below(level);
                let child = leaf % tree.leaves_below(level) / tree.leaves_below(level + 1);
                self.nodes[node][child - 1]
            })
            .collect();
        let count = |words: &[u32]| words.iter().filter(|&&last| last != NEVER).count();
        let inner = count(&words[..tree.leaves() * LANES]);
        holds(inner == count(&between), "(3) inner nodes separate leaves, and have nothing else", inner)?;

        let mut all = Vec::with_capacity(leaves * (lasts + 1));
        let mut values = Vec::with_capacity(leaves * (lasts + 1));
        for (node, last) in self.nodes[tree.leaves()..nodes].iter().zip(&between) {
            all.extend_from_slice(&node[..lasts]);
            all.push(*last);
            values.extend((0..=lasts).map(|at| value(node, tree.width, at)));
        }
        let ranges = ascending(all.iter().copied())?;
        holds(ranges.div_ceil(lasts + 1) == leaves, "(4) no leaf is empty", ranges)?;
        holds(ranges > FEW, "(1) few ranges have no tree", ranges)?;
        differ(&values, ranges)
    }
}

/// Returns the number of ranges that these addresses end. Only padding may follow them.
fn ascending(lasts: impl Iterator<Item = u32>) -> Result<usize, CheckError> {
    let (mut before, mut ranges, mut padded) = (None, 1, false);
    for (at, last) in lasts.enumerate() {
        if last == NEVER {
            padded = true;
            continue;
        }
        CheckError::unless(!padded && before < Some(last), "(4) last addresses ascend, then padding", at)?;
        before = Some(last);
        ranges += 1;
    }
    Ok(ranges)
}

/// Checks that neighbouring ranges have different values, and that the last value is repeated.
fn differ(values: &[u32], ranges: usize) -> Result<(), CheckError> {
    for at in 1..values.len() {
        let same = values[at - 1] == values[at];
        CheckError::unless(
            same == (at >= ranges),
            "(5) neighbours differ, and padding repeats the last",
            at,
        )?;
    }
    Ok(())
}
