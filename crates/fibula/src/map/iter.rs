//! Iterators over maps.

use core::fmt;

use crate::net::{Key, Prefix};
use crate::radix::{self, Subtree};

use super::slab::{Slab, index};

/// Iterator over prefixes and values in order: by address, then by length. Does not allocate.
pub struct Iter<'a, K, V> {
    pub(super) routes: Subtree<'a, K>,
    pub(super) values: &'a Slab<V>,
}

/// Iterator over the prefixes that contain a prefix, with their values, shortest first. Does not allocate.
pub struct Covers<'a, K, V> {
    pub(super) routes: radix::CoveringRoutes<'a, K>,
    pub(super) values: &'a Slab<V>,
}

/// Iterator over prefixes and values in order, to change the values.
pub struct IterMut<'a, K, V> {
    pub(super) routes: Subtree<'a, K>,
    /// By slot; each is taken once.
    pub(super) values: Vec<Option<&'a mut V>>,
}

/// Iterator over the prefixes and values of a map that is taken apart, in order.
#[derive(Debug)]
pub struct IntoIter<K, V> {
    pub(super) items: std::vec::IntoIter<(Prefix<K>, V)>,
}

macro_rules! shared {
    ($name:ident) => {
        impl<'a, K: Key, V> Iterator for $name<'a, K, V> {
            type Item = (Prefix<K>, &'a V);

            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                let route = self.routes.next()?;
                Some((route.prefix, self.values.get(route.next_hop)))
            }
        }

        impl<K: Clone, V> Clone for $name<'_, K, V> {
            fn clone(&self) -> Self {
                Self { routes: self.routes.clone(), values: self.values }
            }
        }

        impl<K: Key, V: fmt::Debug> fmt::Debug for $name<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                super::traits::debug_map(f, self.clone())
            }
        }
    };
}

shared!(Iter);
shared!(Covers);

impl<'a, K: Key, V> Iterator for IterMut<'a, K, V> {
    type Item = (Prefix<K>, &'a mut V);

    fn next(&mut self) -> Option<Self::Item> {
        let route = self.routes.next()?;
        // Taken out of the list, so that no value can be lent twice.
        let value = self.values.get_mut(index(route.next_hop)).and_then(Option::take);
        Some((route.prefix, value.expect("every prefix has a value of its own")))
    }
}

impl<K: Key, V> fmt::Debug for IterMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.routes.clone().map(|route| route.prefix)).finish()
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (Prefix<K>, V);

    fn next(&mut self) -> Option<Self::Item> {
        self.items.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}
