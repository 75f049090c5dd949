//! The scan.

use fibula::fib::{CheckError, Fib, Updatable};
use fibula::net::{Key, NextHop, Route};
use fibula::unstable::memory::{self, Memory};

use super::Linear;

impl<K: Key> Fib<K> for Linear<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        let mut best: Option<&Route<K>> = None;
        for route in &self.routes {
            if route.prefix.contains(key) && best.is_none_or(|best| route.prefix.len() > best.prefix.len()) {
                best = Some(route);
            }
        }
        best.map(|route| route.next_hop)
    }

    fn memory(&self) -> Memory {
        memory::of(&self.routes)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}
