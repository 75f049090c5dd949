//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::Linear;

impl<K: Key> Linear<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let mut order: Vec<usize> = (0..self.routes.len()).collect();
        order.sort_unstable_by_key(|&at| self.routes[at].prefix);
        let twice = order.windows(2).find(|pair| self.routes[pair[0]].prefix == self.routes[pair[1]].prefix);
        CheckError::unless(
            twice.is_none(),
            "(1) no two routes have the same prefix",
            twice.map_or(0, |pair| pair[1]),
        )
    }
}
