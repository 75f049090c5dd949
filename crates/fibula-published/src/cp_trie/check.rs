//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::layout::{CpTrie, LEAF, Leaf, Level, WORD_BITS, up_to};

impl<K: Key, L: Leaf> CpTrie<K, L> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        holds(self.direct.len() == 1 << self.strides.direct, "(1) an entry for all leading bits", 0)?;
        let levels = self.strides.levels(K::BITS);
        holds(self.levels.len() == levels, "(1) levels for all other bits", self.levels.len())?;
        let mut nodes = 0;
        for &entry in self.direct.iter().filter(|&&entry| entry & LEAF == 0) {
            holds(entry as usize == nodes, "(2) nodes of the first level are numbered in order", nodes)?;
            nodes += 1;
        }
        for (at, level) in self.levels.iter().enumerate() {
            let words = self.strides.words(K::BITS, at);
            holds(level.words.len() == nodes * words, "(2) a level has the nodes that lead there", at)?;
            let (_, bits) = self.strides.of_level(K::BITS, at);
            let slots = up_to((1 << u32::from(bits).min(WORD_BITS)) - 1);
            nodes = level.walk(words, slots)?;
        }
        holds(nodes == 0, "(2) nothing is below the last level", nodes)
    }
}

impl<L: Leaf> Level<L> {
    /// Checks a level, whose nodes have so many words of these slots. Returns the nodes of the next level.
    fn walk(&self, words: usize, slots: u64) -> Result<usize, CheckError> {
        let holds = CheckError::unless;
        let (mut nodes, mut leaves) = (0usize, 0usize);
        for (number, node) in self.words.chunks(words).enumerate() {
            let first = leaves;
            for word in node {
                holds(word.nodes_before as usize == nodes, "(3) words count the nodes before them", number)?;
                holds(
                    word.leaves_before as usize == leaves,
                    "(3) words count the leaves before them",
                    number,
                )?;
                holds(word.nodes & word.leaves == 0, "(4) a slot is a node or a leaf", number)?;
                holds((word.nodes | word.leaves) & !slots == 0, "(4) a node has its slots", number)?;
                let leaf_slots = !word.nodes & slots;
                let least = leaf_slots & leaf_slots.wrapping_neg();
                let is_first = leaves == first;
                holds(!is_first || word.leaves & least == least, "(4) the first leaf has a bit", number)?;
                nodes += word.nodes.count_ones() as usize;
                leaves += word.leaves.count_ones() as usize;
            }
            let all = self.leaves.get(first..leaves);
            let all = all.ok_or(CheckError::new("(5) leaves are within the array", number))?;
            let differ = all.windows(2).all(|pair| pair[0] != pair[1]);
            holds(differ, "(5) neighbouring leaves of a node differ", number)?;
        }
        holds(self.leaves.len() == leaves, "(5) all leaves are counted", leaves)?;
        Ok(nodes)
    }
}
