//! Changes in place: append, overwrite, swap out.

use fibula::fib::{Applied, BuildError, Updatable};
use fibula::net::{Change, Key, Routes};

use super::{Linear, NAME};

impl<K: Key> Updatable<K> for Linear<K> {
    fn apply(&mut self, changes: &[Change<K>], _after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        // Room for all inserts first: a batch that does not fit changes nothing.
        let present = |prefix| self.routes.iter().any(|route| route.prefix == prefix);
        let adds = |change: &&Change<K>| matches!(change, Change::Insert(route) if !present(route.prefix));
        let inserts = changes.iter().filter(adds).count();
        self.budget.reserve(&mut self.routes, inserts).map_err(|error| BuildError::memory(NAME, error))?;
        for change in changes {
            let at = self.routes.iter().position(|route| route.prefix == change.prefix());
            match (*change, at) {
                (Change::Insert(route), Some(at)) => self.routes[at] = route,
                (Change::Insert(route), None) => self.routes.push(route),
                (Change::Remove(_), Some(at)) => {
                    self.routes.swap_remove(at);
                }
                (Change::Remove(_), None) => {}
            }
        }
        Ok(Applied::InPlace)
    }
}
