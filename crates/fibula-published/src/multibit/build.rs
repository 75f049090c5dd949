//! Routes to layout: one insert after another. Routes in order share the beginning of their ways.

use core::marker::PhantomData;

use fibula::fib::BuildError;
use fibula::net::{Key, Prefix, Route, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits};

use super::NAME;
use super::layout::{MOST_STRIDE, Multibit, ROOT, Slot};
use super::update::{Place, place};

/// Most levels: an IPv6 key, one bit a level.
const LEVELS: usize = 128;

impl<K: Key> Multibit<K> {
    /// Builds the trie of the routes, with so many bits a level.
    ///
    /// # Errors
    /// When memory runs out or there are more nodes than 32 bits can number, and for a stride of 0 or of more than 16 bits.
    pub fn build(routes: &dyn Routes<K>, stride: u32, limits: Limits) -> Result<Self, BuildError> {
        if stride == 0 || stride > MOST_STRIDE {
            return Err(BuildError::limit(
                NAME,
                "bits a level, and not 0",
                MOST_STRIDE.into(),
                stride.into(),
            ));
        }
        let mut trie = Self {
            slots: Buffer::new(),
            lens: Vec::new(),
            stride,
            free: ROOT,
            free_len: 0,
            budget: Budget::new(limits),
            keys: PhantomData,
        };
        trie.reserve(1)?;
        trie.add();
        let mut way = [ROOT; LEVELS];
        let mut last: Option<(K, usize)> = None;
        routes.try_for_each(Prefix::ALL, |route| trie.append(route, &mut way, &mut last))?;
        trie.budget.shrink(&mut trie.slots);
        trie.budget.shrink(&mut trie.lens);
        Ok(trie)
    }

    /// Inserts a route that follows all others. `way` has the nodes from the root to that of the route before, which begins at
    /// `last` and ends on that level.
    fn append(
        &mut self,
        route: Route<K>,
        way: &mut [u32; LEVELS],
        last: &mut Option<(K, usize)>,
    ) -> Result<(), BuildError> {
        let prefix = route.prefix;
        let place = place(prefix, self.stride);
        let Place { level, .. } = place;
        let shared = last.map_or(0, |(addr, last)| {
            let common = u32::from(addr.common_len(prefix.addr()));
            ((common / self.stride) as usize).min(last).min(level)
        });
        for (above, offset) in (shared..level).zip((0..).step_by(self.stride as usize).skip(shared)) {
            let at = self.at(way[above], prefix.addr(), offset);
            let mut node = self.slots[at].node;
            if node == ROOT {
                self.reserve(1)?;
                node = self.add();
                self.slots[at] = Slot { node, ..self.slots[at] };
            }
            way[above + 1] = node;
        }
        *last = Some((prefix.addr(), level));
        self.expand(way[level], prefix, place, place.reach, route.next_hop.id());
        Ok(())
    }
}
