//! The contents of a table file for one family.

use core::fmt;

use crate::fib::Fib;
use crate::memory::Memory;
use crate::net::{IntoKey, Key, NextHop};

use super::routes::StoredRoutes;

/// The contents of a table file for one family.
#[non_exhaustive]
pub struct Part<K: Key> {
    /// The name of the engine in the registry.
    pub engine: Option<&'static str>,
    /// The engine. It does not change in place; to have one that does, build it from the routes.
    pub fib: Option<Box<dyn Fib<K>>>,
    /// The name of the file's engine if that is one which this program lacks. `fib` was then built from the routes.
    pub replaced: Option<String>,
    /// Whether the engine looks up where the file lies. Of a mapped file too, an engine whose words must not change is a verified copy.
    pub is_mapped: bool,
    /// The routes.
    pub routes: Option<StoredRoutes<K>>,
}

impl<K: Key> Default for Part<K> {
    fn default() -> Self {
        Self { engine: None, fib: None, replaced: None, is_mapped: false, routes: None }
    }
}

impl<K: Key> Part<K> {
    /// Returns whether the file has nothing for this family.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fib.is_none() && self.routes.is_none()
    }

    /// Returns the next hop of the longest prefix that contains `key`, from the engine if there is one, or else from the routes.
    #[must_use]
    pub fn lookup(&self, key: impl IntoKey<K>) -> Option<NextHop> {
        let key = key.into_key();
        match (&self.fib, &self.routes) {
            (Some(fib), _) => fib.lookup_key(key),
            (None, Some(routes)) => Some(routes.lookup_prefix(key)?.next_hop),
            (None, None) => None,
        }
    }

    pub(super) fn memory(&self) -> Memory {
        let fib = self.fib.as_ref().map(|fib| fib.memory()).unwrap_or_default();
        fib + self.routes.as_ref().map(StoredRoutes::memory).unwrap_or_default()
    }
}

impl<K: Key> fmt::Debug for Part<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes = self.routes.as_ref().map(StoredRoutes::len);
        f.debug_struct("Part").field("engine", &self.engine).field("routes", &routes).finish_non_exhaustive()
    }
}
