//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::RangeSearch;

impl<K: Key> RangeSearch<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let (starts, next_hops) = (&self.starts, &self.next_hops);
        CheckError::unless(starts.len() == next_hops.len(), "(4) one next hop a range", next_hops.len())?;
        CheckError::unless(starts.first() == Some(&K::ZERO), "(1) the first range starts the space", 0)?;
        for at in 1..starts.len() {
            CheckError::unless(starts[at - 1] < starts[at], "(2) starts ascend strictly", at)?;
            CheckError::unless(
                next_hops[at - 1] != next_hops[at],
                "(3) neighbours lead to different places",
                at,
            )?;
        }
        Ok(())
    }
}
