//! Verifies the invariants, which the module's text states.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::layout::SortedRanges;

impl<K: Key> SortedRanges<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let first = self.ranges.first().map(|range| range.start);
        CheckError::unless(first == Some(K::ZERO), "(1) the first range starts at the first address", 0)?;
        for (at, pair) in self.ranges.windows(2).enumerate() {
            let [one, next] = [pair[0], pair[1]];
            CheckError::unless(one.start < next.start, "(2) starts ascend strictly", at)?;
            CheckError::unless(
                one.next_hop != next.next_hop,
                "(3) neighbours lead to different next hops",
                at,
            )?;
        }
        Ok(())
    }
}
