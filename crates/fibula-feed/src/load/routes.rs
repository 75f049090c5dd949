//! From what feeds say to one table.
//!
//! Routes of table dumps meet in one table of candidates, where the better of two for a prefix stays. Announcements and
//! withdrawals are kept by peer and path, as a withdrawal brings back the second best, and join the candidates when the
//! feed has ended. Plain tables, which name no peers, are taken as they are, the last of repeated lines counting.

use core::cmp::Reverse;
use std::io;

use fibula::memory::{Limits, OutOfMemory};
use fibula::net::{IpPrefix, Key, NextHop, Route};
use fibula::rib::{DualRib, Rib};

use super::report::Report;
use crate::event::{Action, Announcement, Event, Path, Peer};
use crate::ledger::{Held, Ledger, Map, Set};
use crate::next_hops::{Label, NextHops, NextHopsError};

/// Why a route was not taken.
#[derive(Debug)]
pub(super) enum Refusal {
    Memory(OutOfMemory),
    NextHops(NextHopsError),
    /// Updates to a table dump of several paths a prefix, of which only the best is known.
    Mixed,
    /// The callback that was told of events stopped.
    Stopped(io::Error),
}

impl From<OutOfMemory> for Refusal {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl From<NextHopsError> for Refusal {
    fn from(error: NextHopsError) -> Self {
        Self::NextHops(error)
    }
}

/// The tables of both families, charged to one ledger.
#[derive(Debug)]
pub(super) struct Ribs {
    ribs: DualRib,
    limits: Limits,
    held: Held,
}

impl Ribs {
    fn new(limits: Limits, ledger: &Ledger) -> Self {
        Self { ribs: DualRib::within(limits), limits, held: Held::new(ledger) }
    }

    fn insert(&mut self, prefix: IpPrefix, next_hop: NextHop) -> Result<Option<NextHop>, OutOfMemory> {
        match prefix {
            IpPrefix::V4(prefix) => {
                insert(&mut self.ribs.v4, Route::new(prefix, next_hop), self.limits, &mut self.held)
            }
            IpPrefix::V6(prefix) => {
                insert(&mut self.ribs.v6, Route::new(prefix, next_hop), self.limits, &mut self.held)
            }
        }
    }

    /// Replaces all next hops, in place.
    fn relabel(&mut self, label: impl Fn(NextHop) -> NextHop) {
        self.ribs.v4.map_next_hops(|route| label(route.next_hop));
        self.ribs.v6.map_next_hops(|route| label(route.next_hop));
    }

    /// As tables with the user's limits.
    fn finish(mut self) -> DualRib {
        self.ribs.v4.set_limits(self.limits);
        self.ribs.v6.set_limits(self.limits);
        self.ribs
    }

    fn is_empty(&self) -> bool {
        self.ribs.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = (IpPrefix, NextHop)> {
        self.ribs.iter()
    }
}

/// Inserts the route; the table may grow into what the ledger has left.
fn insert<K: Key>(
    rib: &mut Rib<K>,
    route: Route<K>,
    limits: Limits,
    held: &mut Held,
) -> Result<Option<NextHop>, OutOfMemory> {
    let Some(free_bytes) = held.ledger().free_bytes() else {
        return rib.insert(route).map_err(|error| error.out_of_memory());
    };
    let before = rib.memory().held_bytes();
    rib.set_limits(Limits { memory_bytes: Some(before + free_bytes), ..limits });
    let inserted = rib.insert(route).map_err(|error| {
        let used_bytes = held.ledger().used_bytes();
        OutOfMemory { used_bytes, limit_bytes: limits.memory_bytes, ..error.out_of_memory() }
    })?;
    let after = rib.memory().held_bytes();
    if after != before {
        held.set(held.bytes() + after - before)?;
    }
    Ok(inserted)
}

/// A route as it competes for its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Candidate {
    label: NextHop,
    /// None comes after all lengths.
    path_len: Option<u32>,
    source: u32,
    /// The number of the feed.
    feed: u32,
    path_id: Option<u32>,
}

/// All that was taken from the feeds so far.
#[derive(Debug)]
pub(super) struct Routes {
    limits: Limits,
    ledger: Ledger,
    pub(super) next_hops: NextHops,
    /// The charge for the next hops.
    next_hops_held: Held,
    /// The peers that announce; none for tables that name no peers.
    sources: Set<Option<Peer>>,
    candidates: Set<Candidate>,
    /// By prefix, the best candidate of the feeds that ended.
    merged: Ribs,
    /// By prefix, the best candidate among the table dumps of the present feed.
    dumped: Ribs,
    /// Whether two of those met for a prefix.
    contested: bool,
    /// Plain tables: labels.
    plain: Ribs,
    /// Announced and not withdrawn, by source.
    announced: Map<u32, Announced>,
    feed: u32,
}

/// What a source has announced and not withdrawn: candidates by path.
type Announced = Map<Path, u32>;

impl Routes {
    pub(super) fn new(limits: Limits, ledger: &Ledger) -> Self {
        Self {
            limits,
            ledger: ledger.clone(),
            next_hops: NextHops::new(limits),
            next_hops_held: Held::new(ledger),
            sources: Set::new(ledger),
            candidates: Set::new(ledger),
            merged: Ribs::new(limits, ledger),
            dumped: Ribs::new(limits, ledger),
            contested: false,
            plain: Ribs::new(limits, ledger),
            announced: Map::new(ledger),
            feed: 0,
        }
    }

    /// A line of a plain table; the last of a prefix counts.
    pub(super) fn plain(
        &mut self,
        prefix: IpPrefix,
        label: Label,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        let label = self.label(label)?;
        if let Some(before) = self.plain.insert(prefix, label)? {
            report.repeated += 1;
            report.repeated_changed += u64::from(before != label);
        }
        Ok(())
    }

    /// What a peer said.
    pub(super) fn event(&mut self, event: Event, report: &mut Report) -> Result<(), Refusal> {
        let source = self.source(event.peer)?;
        match event.action {
            Action::Announce(route) if route.dumped => {
                let candidate = self.candidate(source, &route)?;
                self.compete(route.path.prefix, candidate, report)
            }
            Action::Announce(route) => self.announce(source, route, report),
            Action::Withdraw(path) => self.withdraw(source, path, report),
            Action::SessionEnd => {
                self.seed()?;
                report.sessions_ended += 1;
                self.announced.remove(&source);
                Ok(())
            }
            Action::Nothing => Ok(()),
        }
    }

    fn announce(&mut self, source: u32, route: Announcement, report: &mut Report) -> Result<(), Refusal> {
        self.seed()?;
        let candidate = self.candidate(source, &route)?;
        if let Some(before) = self.hold(source, route.path, candidate)? {
            report.repeated += 1;
            report.repeated_changed += u64::from(self.label_of(before) != self.label_of(candidate));
        }
        Ok(())
    }

    fn withdraw(&mut self, source: u32, path: Path, report: &mut Report) -> Result<(), Refusal> {
        self.seed()?;
        let announced = self.announced.get_mut(&source);
        let removed = announced.and_then(|announced| announced.remove(&path));
        report.withdrawn_absent += u64::from(removed.is_none());
        Ok(())
    }

    /// Notes what the source has announced; what it had announced of the path before.
    fn hold(&mut self, source: u32, path: Path, candidate: u32) -> Result<Option<u32>, OutOfMemory> {
        let ledger = &self.ledger;
        let announced = self.announced.get_or_insert_with(source, || Announced::new(ledger))?;
        announced.insert(path, candidate)
    }

    fn source(&mut self, peer: Option<Peer>) -> Result<u32, OutOfMemory> {
        // A feed of 2^32 peers does not end in a lifetime.
        Ok(self.sources.insert(peer)? as u32)
    }

    fn candidate(&mut self, source: u32, route: &Announcement) -> Result<u32, Refusal> {
        let label = match self.next_hops.get(&route.next_hop) {
            Some(label) => label,
            None => self.label(route.next_hop.clone())?,
        };
        let Announcement { path_len, path, .. } = *route;
        self.intern(Candidate { label, path_len, source, feed: self.feed, path_id: path.id })
    }

    /// The number of the label, which may take what the ledger has left.
    fn label(&mut self, label: Label) -> Result<NextHop, Refusal> {
        let used_bytes = self.next_hops.used_bytes();
        self.next_hops.set_limit(self.ledger.free_bytes().map(|free| used_bytes + free));
        let limit_bytes = self.ledger.limit_bytes();
        let number = self.next_hops.intern(label).map_err(|error| error.with_limit(limit_bytes))?;
        self.next_hops_held.set(self.next_hops.used_bytes())?;
        Ok(number)
    }

    fn intern(&mut self, candidate: Candidate) -> Result<u32, Refusal> {
        let index = self.candidates.insert(candidate)?;
        // Ids of next hops count from 1, and the last of 32 bits has no successor.
        match u32::try_from(index + 1) {
            Ok(_) => Ok(index as u32),
            Err(_) => {
                let used_bytes = self.ledger.used_bytes();
                let limit_bytes = self.limits.memory_bytes;
                Err(OutOfMemory { wanted_bytes: usize::MAX, used_bytes, limit_bytes }.into())
            }
        }
    }

    fn label_of(&self, candidate: u32) -> NextHop {
        self.candidates.get(candidate as usize).label
    }

    /// Puts the candidate in for the prefix, unless a better one is there. One of the same peer and path takes the
    /// place of the other.
    fn compete(&mut self, prefix: IpPrefix, candidate: u32, report: &mut Report) -> Result<(), Refusal> {
        let Some(before) = self.dumped.insert(prefix, id(candidate))? else { return Ok(()) };
        let [old, new] = [index(before), candidate].map(|index| *self.candidates.get(index as usize));
        if (old.source, old.path_id) == (new.source, new.path_id) {
            report.repeated += 1;
            report.repeated_changed += u64::from(old.label != new.label);
            return Ok(());
        }
        self.contested = true;
        report.outrivalled += 1;
        if self.rank(&old) <= self.rank(&new) {
            self.dumped.insert(prefix, before)?;
        }
        Ok(())
    }

    /// What is smaller is better: the shortest AS path, unknown ones last; the lowest peer address, unnamed ones last;
    /// the earliest feed; the lowest path identifier.
    fn rank(&self, candidate: &Candidate) -> impl Ord + use<> {
        let peer = *self.sources.get(candidate.source as usize);
        (
            Reverse(candidate.path_len.map(Reverse)),
            Reverse(peer.map(Reverse)),
            candidate.feed,
            candidate.path_id,
        )
    }

    /// Before the first update: what a table dump before it has is as good as announced.
    fn seed(&mut self) -> Result<(), Refusal> {
        if self.dumped.is_empty() {
            return Ok(());
        }
        if self.contested {
            return Err(Refusal::Mixed);
        }
        for (prefix, before) in self.take(|routes| &mut routes.dumped).iter() {
            let candidate = index(before);
            let Candidate { source, path_id, .. } = *self.candidates.get(candidate as usize);
            self.hold(source, Path { prefix, id: path_id }, candidate)?;
        }
        Ok(())
    }

    /// The feed has ended: what is still announced joins the candidates.
    pub(super) fn end_feed(&mut self, more: bool, report: &mut Report) -> Result<(), Refusal> {
        let announced = core::mem::replace(&mut self.announced, Map::new(&self.ledger));
        let (sources, _held) = announced.into_entries();
        for (_, announced) in sources {
            let (paths, _held) = announced.into_entries();
            for (path, candidate) in paths {
                self.compete(path.prefix, candidate, report)?;
            }
        }
        if (more || self.feed > 0) && !self.plain.is_empty() {
            let source = self.source(None)?;
            for (prefix, label) in self.take(|routes| &mut routes.plain).iter() {
                let feed = self.feed;
                let candidate =
                    self.intern(Candidate { label, path_len: None, source, feed, path_id: None })?;
                self.compete(prefix, candidate, report)?;
            }
        }
        self.join(report)?;
        self.contested = false;
        self.feed += 1;
        Ok(())
    }

    /// What was in one of the tables, which is empty then.
    fn take(&mut self, of: impl Fn(&mut Self) -> &mut Ribs) -> Ribs {
        let empty = Ribs::new(self.limits, &self.ledger);
        core::mem::replace(of(self), empty)
    }

    /// The candidates of the present feed meet those of the feeds before it.
    fn join(&mut self, report: &mut Report) -> Result<(), Refusal> {
        let dumped = self.take(|routes| &mut routes.dumped);
        if self.merged.is_empty() {
            self.merged = dumped;
            return Ok(());
        }
        for (prefix, new) in dumped.iter() {
            let Some(old) = self.merged.insert(prefix, new)? else { continue };
            report.outrivalled += 1;
            let [old_rank, new_rank] =
                [old, new].map(|at| self.rank(self.candidates.get(index(at) as usize)));
            if old_rank <= new_rank {
                self.merged.insert(prefix, old)?;
            }
        }
        Ok(())
    }

    /// The tables, with labels in place of candidates.
    pub(super) fn finish(self) -> (DualRib, NextHops) {
        let Self { plain, mut merged, candidates, limits, mut next_hops, .. } = self;
        next_hops.set_limit(limits.memory_bytes);
        let ribs = if merged.is_empty() {
            plain
        } else {
            merged.relabel(|before| candidates.get(index(before) as usize).label);
            merged
        };
        (ribs.finish(), next_hops)
    }
}

/// Tables hold candidates in place of next hops, whose ids count from 1.
fn id(candidate: u32) -> NextHop {
    NextHop::new(candidate + 1).expect("not the last of 32 bits")
}

fn index(id: NextHop) -> u32 {
    id.id() - 1
}
