//! The consistency check: that of `dir-btree` over leaves of codes, and the next hops of codes.

use crate::fib::CheckError;
use crate::memory::Cell;
use crate::net::Key;
use crate::simd::CODED_VALUES;

use super::layout::{BELOW, DirBtreeByte, OBJECT};

impl<K: Key> DirBtreeByte<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let unless = CheckError::unless;
        let words = self.trees.lines.get(..CODED_VALUES);
        let words = words.ok_or(CheckError::new("each code has a word", self.trees.lines.len()))?;
        // Codes are numbered without gaps, so the words of next hops come first.
        let known = words.iter().take_while(|word| word.read() & BELOW == 0).count();
        unless(known <= OBJECT as usize, "the last code is that of objects", known)?;
        let rest = words[known..].iter().all(|word| word.read() == BELOW);
        unless(rest, "words of codes that are not next hops have one bit", known)?;
        self.trees.check_of(self.codes())
    }
}
