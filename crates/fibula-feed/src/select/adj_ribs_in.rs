//! The routes of all peers, and the best of each prefix as they change.

use fibula::memory::{Limits, Memory, OutOfMemory};
use fibula::net::{IpPrefix, NextHop};

use super::{Candidate, Candidates};
use crate::event::{Action, Announcement, Event};
use crate::ledger::{Held, Ledger};
use crate::next_hops::{NextHops, NextHopsError};
use crate::ribs::Ribs;

/// All routes that peers have announced and not withdrawn (the Adj-RIBs-In of RFC 4271 section 3.2), and the best route
/// of each prefix by the [rules](super) of this crate.
///
/// You apply events and get changes of the best routes, which a table with one route for each prefix can follow. A
/// withdrawal falls back to the next best route. Takes 4 bytes a route, with up to a quarter of spare room, and about
/// 80 bytes a prefix. For example, 63 peers with a full IPv4 table of 0.9 million prefixes each take 274 MB (`cargo run
/// --release --example adj_ribs_in TABLE`). An event costs a search for the prefix and a walk over its routes: 0.4 us
/// in order, 2 us in random order (Zen 4).
///
/// ```
/// use fibula_feed::select::AdjRibsIn;
/// use fibula_feed::{LoadOptions, Loader, NextHops, Selection, Source};
///
/// // Two peers announce a prefix. The first, with the lower address, then withdraws it.
/// let text = b"\
/// 1546300800 a 10.0.0.0/8 192.0.2.1 192.0.2.1 64501 64501
/// 1546300801 a 10.0.0.0/8 192.0.2.2 192.0.2.2 64502 64502
/// 1546300802 w 10.0.0.0/8 - 192.0.2.1 64501 -
/// ";
/// let (mut routes, mut next_hops) = (AdjRibsIn::default(), NextHops::default());
/// let mut options = LoadOptions::default();
/// options.selection = Selection::Best;
/// let mut best = Vec::new();
/// Loader::new(options).events(Source::reader("updates.txt", &text[..]), |event| {
///     let each = |_prefix, next_hop| best.push(next_hop);
///     routes.apply(event, &mut next_hops, each).map_err(std::io::Error::other)
/// })?;
/// let best: Vec<_> = best.into_iter().map(|best| next_hops.label(best.unwrap()).unwrap().to_string()).collect();
/// assert_eq!(best, ["192.0.2.1", "192.0.2.2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AdjRibsIn {
    ledger: Ledger,
    candidates: Candidates,
    /// By prefix, one more than the number of its list.
    prefixes: Ribs,
    /// Candidates for a prefix, the best first.
    lists: Vec<Vec<u32>>,
    /// Lists without a prefix.
    free: Vec<u32>,
    held: Held,
    routes: usize,
}

/// Why an event was not taken. Nothing has changed then.
#[derive(Debug)]
#[non_exhaustive]
pub enum AdjRibsInError {
    /// Memory for routes ran out.
    Memory(OutOfMemory),
    /// Memory or numbers for next hops ran out.
    NextHops(NextHopsError),
}

impl Default for AdjRibsIn {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl AdjRibsIn {
    /// Returns an empty set of routes that stays within the memory limit.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let ledger = Ledger::new(limits.memory_bytes);
        Self {
            candidates: Candidates::new(&ledger),
            prefixes: Ribs::new(limits, &ledger),
            lists: Vec::new(),
            free: Vec::new(),
            held: Held::new(&ledger),
            routes: 0,
            ledger,
        }
    }

    /// Takes an event of a peer, and calls `each` for every prefix whose best route has another next hop than before:
    /// `None` if no route is left. The next hops are numbered in `next_hops`.
    ///
    /// The end of a session withdraws all routes of the peer. This is slow, because it walks over the routes of all
    /// peers.
    ///
    /// # Errors
    /// When memory runs out; nothing has changed then.
    pub fn apply(
        &mut self,
        event: Event,
        next_hops: &mut NextHops,
        mut each: impl FnMut(IpPrefix, Option<NextHop>),
    ) -> Result<(), AdjRibsInError> {
        let source = self.candidates.source(event.peer)?;
        match event.action {
            Action::Announce(route) => {
                let Announcement { path, next_hop, path_len, .. } = route;
                let label = next_hops.intern(next_hop)?;
                let candidate = Candidate { label, path_len, source, feed: 0, path_id: path.id };
                let candidate = self.candidates.insert(candidate)?;
                let (before, after) = self.announce(path.prefix, candidate)?;
                if before != Some(after) {
                    each(path.prefix, Some(after));
                }
            }
            Action::Withdraw(path) => {
                let Some(list) = self.list_of(path.prefix) else { return Ok(()) };
                let is = |it: &Candidate| (it.source, it.path_id) == (source, path.id);
                self.withdraw(path.prefix, list, &is, &mut each);
            }
            Action::SessionEnd => {
                let all: Vec<(IpPrefix, usize)> = self.prefixes_with(source)?;
                for (prefix, list) in all {
                    self.withdraw(prefix, list, &|it: &Candidate| it.source == source, &mut each);
                }
            }
            Action::Nothing => {}
        }
        Ok(())
    }

    /// Returns the number of routes.
    #[must_use]
    pub fn routes(&self) -> usize {
        self.routes
    }

    /// Returns the number of prefixes with a route.
    #[must_use]
    pub fn prefixes(&self) -> usize {
        self.prefixes.lens().iter().sum::<u64>() as usize
    }

    /// Returns the best route's next hop for exactly this prefix.
    #[must_use]
    pub fn best(&self, prefix: IpPrefix) -> Option<NextHop> {
        self.label_of_best(self.list_of(prefix)?)
    }

    /// Returns the bytes that the routes and their prefixes take.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory { allocated_bytes: self.ledger.used_bytes(), ..Memory::default() }
    }

    fn list_of(&self, prefix: IpPrefix) -> Option<usize> {
        self.prefixes.get(prefix).map(|number| number.id() as usize - 1)
    }

    fn label_of_best(&self, list: usize) -> Option<NextHop> {
        self.lists[list].first().map(|&best| self.candidates.get(best).label)
    }

    /// Adds a route; returns the next hop before and after.
    fn announce(
        &mut self,
        prefix: IpPrefix,
        candidate: u32,
    ) -> Result<(Option<NextHop>, NextHop), OutOfMemory> {
        let (list, is_new) = match self.list_of(prefix) {
            Some(list) => (list, false),
            None => (self.empty_list()?, true),
        };
        self.reserve(list)?;
        if is_new {
            // The list is used from here on.
            let number = NextHop::new(list as u32 + 1).ok_or_else(|| self.refused(0))?;
            self.prefixes.insert(prefix, number)?;
            self.free.pop();
        }
        let before = self.label_of_best(list);
        let Self { candidates, lists, .. } = self;
        let routes = &mut lists[list];
        let new = *candidates.get(candidate);
        let is_same = |&old: &u32| {
            let old = candidates.get(old);
            (old.source, old.path_id) == (new.source, new.path_id)
        };
        match routes.iter().position(is_same) {
            Some(at) => drop(routes.remove(at)),
            None => self.routes += 1,
        }
        // No two routes are equal in rank, because peer and path identifier differ.
        let at = routes.partition_point(|&old| candidates.stays(old, candidate).0);
        routes.insert(at, candidate);
        Ok((before, self.label_of_best(list).unwrap_or(new.label)))
    }

    /// Removes the routes of a list for which `is` returns true.
    fn withdraw(
        &mut self,
        prefix: IpPrefix,
        list: usize,
        is: &dyn Fn(&Candidate) -> bool,
        each: &mut dyn FnMut(IpPrefix, Option<NextHop>),
    ) {
        let before = self.label_of_best(list);
        let Self { candidates, lists, .. } = self;
        let len = lists[list].len();
        lists[list].retain(|&route| !is(candidates.get(route)));
        self.routes -= len - lists[list].len();
        let after = self.label_of_best(list);
        if after.is_none() {
            self.prefixes.remove(prefix);
            self.held.sub(bytes_of(self.lists[list].capacity()));
            self.lists[list] = Vec::new();
            // This cannot fail: each list's place here was reserved before the list was used.
            self.free.push(list as u32);
        }
        if after != before {
            each(prefix, after);
        }
    }

    /// Returns the prefixes with routes of a source, and their lists.
    fn prefixes_with(&self, source: u32) -> Result<Vec<(IpPrefix, usize)>, OutOfMemory> {
        let mut all = Vec::new();
        for (prefix, number) in self.prefixes.iter() {
            let list = number.id() as usize - 1;
            if self.lists[list].iter().any(|&route| self.candidates.get(route).source == source) {
                all.try_reserve(1).map_err(|_| self.refused(size_of::<(IpPrefix, usize)>()))?;
                all.push((prefix, list));
            }
        }
        Ok(all)
    }

    /// Returns the list that is used next, the last of the free ones.
    fn empty_list(&mut self) -> Result<usize, OutOfMemory> {
        if self.free.is_empty() {
            // Room for all lists, because each of them may become free one day.
            let new = (self.lists.len() / 8).max(64);
            let bytes = new * (size_of::<Vec<u32>>() + size_of::<u32>());
            self.held.add(bytes)?;
            let refused = self.refused(bytes);
            let lists = self.lists.len();
            let room = self.lists.try_reserve_exact(new).is_ok()
                && self.free.try_reserve_exact(lists + new - self.free.len()).is_ok();
            if !room {
                self.held.sub(bytes);
                return Err(refused);
            }
            self.lists.resize_with(lists + new, Vec::new);
            self.free.extend((lists as u32..(lists + new) as u32).rev());
        }
        Ok(self.free[self.free.len() - 1] as usize)
    }

    /// Makes room for another route in a list.
    fn reserve(&mut self, list: usize) -> Result<(), OutOfMemory> {
        let (len, capacity) = (self.lists[list].len(), self.lists[list].capacity());
        if len < capacity {
            return Ok(());
        }
        let more = (len / 4).max(1);
        // The old block and the new one exist at the same time.
        self.held.add(bytes_of(len + more))?;
        if self.lists[list].try_reserve_exact(more).is_err() {
            self.held.sub(bytes_of(len + more));
            return Err(self.refused(bytes_of(len + more)));
        }
        self.held.sub(bytes_of(capacity));
        Ok(())
    }

    fn refused(&self, wanted_bytes: usize) -> OutOfMemory {
        let (used_bytes, limit_bytes) = (self.ledger.used_bytes(), self.ledger.limit_bytes());
        OutOfMemory { wanted_bytes, used_bytes, limit_bytes }
    }
}

/// Returns the bytes of a list with this room, the allocator's own included.
fn bytes_of(capacity: usize) -> usize {
    if capacity == 0 { 0 } else { capacity * size_of::<u32>() + 16 }
}

impl core::fmt::Display for AdjRibsInError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::NextHops(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AdjRibsInError {}

impl From<OutOfMemory> for AdjRibsInError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl From<NextHopsError> for AdjRibsInError {
    fn from(error: NextHopsError) -> Self {
        Self::NextHops(error)
    }
}
