//! Changes in place.

use fibula::fib::{Applied, BuildError, Updatable};
use fibula::net::{Change, Key, Prefix, Route, Routes};
use fibula::unstable::memory::OutOfMemory;

use super::NAME;
use super::layout::{Miht, NONE, Word, key_of};
use super::tries::Link;

impl<K: Key, W: Word, const M: usize> Updatable<K> for Miht<K, W, M> {
    fn apply(&mut self, changes: &[Change<K>], _after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        self.reserve_for(changes)?;
        for change in changes {
            match *change {
                Change::Insert(route) => self.insert(route),
                Change::Remove(prefix) => self.remove(prefix),
            }
        }
        Ok(Applied::InPlace)
    }
}

impl<K: Key, W: Word, const M: usize> Miht<K, W, M> {
    /// Returns the trie of a prefix, and the depth of its root; the trie is `None` if the tree does not have the key.
    fn trie(&self, prefix: Prefix<K>) -> (Option<Link>, u8) {
        if prefix.len() < self.key_bits {
            return (Some(Link::Keyless), 0);
        }
        let key = key_of(prefix.addr(), self.key_bits);
        (self.tree.find(key).map(Link::Root), self.key_bits)
    }

    /// Makes room for all changes, or returns an error and changes nothing. What a change of the batch frees and another needs
    /// again is not counted: there are never more routes and keys than the present ones and those that are counted.
    fn reserve_for(&mut self, changes: &[Change<K>]) -> Result<(), BuildError> {
        let (mut inserts, mut routes, mut keys) = (0, 0, 0);
        for change in changes {
            let Change::Insert(Route { prefix, .. }) = *change else { continue };
            inserts += usize::from(prefix.len() >= self.key_bits);
            let (trie, depth) = self.trie(prefix);
            keys += usize::from(trie.is_none());
            routes += usize::from(trie.is_none_or(|trie| self.get_below(trie, depth, prefix).is_none()));
        }
        self.reserve(inserts, keys, routes)
    }

    /// Makes room for so many inserts of keys, so many keys that there are not, and so many routes.
    pub(super) fn reserve(&mut self, inserts: usize, keys: usize, routes: usize) -> Result<(), BuildError> {
        let routes = routes.saturating_sub(self.free_len);
        let nodes = self.data.len() + routes;
        if nodes > NONE as usize {
            return Err(BuildError::limit(NAME, "routes", NONE.into(), nodes as u64));
        }
        let refused = |error: OutOfMemory| BuildError::memory(NAME, error);
        self.budget.reserve_an_eighth(&mut self.data, routes).map_err(refused)?;
        let roots = keys.saturating_sub(self.free_roots);
        self.budget.reserve_an_eighth(&mut self.roots, roots).map_err(refused)?;
        self.tree.reserve(inserts, keys, &mut self.budget).map_err(refused)
    }

    /// Inserts a route or changes its next hop, for which there is room.
    pub(super) fn insert(&mut self, route: Route<K>) {
        let (trie, depth) = self.trie(route.prefix);
        let trie = trie.unwrap_or_else(|| {
            let trie = self.add_root();
            self.tree.insert(key_of(route.prefix.addr(), self.key_bits), trie);
            Link::Root(trie)
        });
        self.insert_below(trie, depth, route);
    }

    /// Removes the route of a prefix, if there is one, and the key if it was the last one of its trie.
    fn remove(&mut self, prefix: Prefix<K>) {
        let (Some(trie), depth) = self.trie(prefix) else { return };
        let Some((link, depth)) = self.find_node(trie, depth, prefix) else { return };
        self.remove_node(link, depth);
        if let Link::Root(number) = trie
            && self.roots[number] == NONE
        {
            self.give_up_root(number);
            self.tree.remove(key_of(prefix.addr(), self.key_bits));
        }
    }
}
