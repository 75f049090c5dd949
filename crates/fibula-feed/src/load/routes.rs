//! From what feeds say to one table.
//!
//! Routes of table dumps meet in one table of candidates, where the better of two for a prefix stays. Announcements and
//! withdrawals are kept by peer and path, as a withdrawal brings back the second best, and join the candidates when the
//! feed has ended. Plain tables, which name no peers, are taken as they stand, the last of repeated lines counting.

use core::cmp::Reverse;
use std::collections::HashMap;
use std::io;

use fibula::memory::{Limits, OutOfMemory};
use fibula::net::{IpPrefix, Key, NextHop, Prefix, Route};
use fibula::rib::{Rib, RibError};
use indexmap::IndexSet;

use super::report::Report;
use crate::event::{Action, Announcement, Event, Path, Peer};
use crate::next_hops::{Label, NextHops, NextHopsError};

/// Why a route was not taken.
#[derive(Debug)]
pub(super) enum Refusal {
    Memory(OutOfMemory),
    NextHops(NextHopsError),
    /// Updates to a table dump of several paths a prefix, of which only the best is known.
    Mixed,
    /// Who was told does not want to hear more.
    Stopped(io::Error),
}

impl From<RibError> for Refusal {
    fn from(error: RibError) -> Self {
        Self::Memory(error.out_of_memory())
    }
}

impl From<NextHopsError> for Refusal {
    fn from(error: NextHopsError) -> Self {
        Self::NextHops(error)
    }
}

/// The tables of both families.
#[derive(Debug, Clone)]
pub(super) struct Ribs {
    pub(super) v4: Rib<u32>,
    pub(super) v6: Rib<u128>,
}

impl Ribs {
    fn new(limits: Limits) -> Self {
        Self { v4: Rib::new(limits), v6: Rib::new(limits) }
    }

    fn insert(&mut self, prefix: IpPrefix, next_hop: NextHop) -> Result<Option<NextHop>, RibError> {
        match prefix {
            IpPrefix::V4(prefix) => self.v4.insert(Route::new(prefix, next_hop)),
            IpPrefix::V6(prefix) => self.v6.insert(Route::new(prefix, next_hop)),
        }
    }

    fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = (IpPrefix, NextHop)> {
        let v4 = self.v4.iter().map(|route| (IpPrefix::V4(route.prefix), route.next_hop));
        let v6 = self.v6.iter().map(|route| (IpPrefix::V6(route.prefix), route.next_hop));
        v4.chain(v6)
    }
}

/// A route as it competes for its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Candidate {
    label: NextHop,
    /// None is behind all lengths.
    path_len: Option<u32>,
    source: u32,
    /// The number of the feed.
    feed: u32,
    path_id: Option<u32>,
}

impl Candidate {
    /// Bytes of one that is held: itself and its hash in a vector that may be half empty, its place in a hash table.
    const HELD_BYTES: usize = 2 * (size_of::<Self>() + size_of::<u64>()) + 24;
}

/// All that was taken from the feeds so far.
#[derive(Debug)]
pub(super) struct Routes {
    limits: Limits,
    pub(super) next_hops: NextHops,
    /// Who announces; none for tables that name nobody.
    sources: IndexSet<Option<Peer>>,
    candidates: IndexSet<Candidate>,
    /// By prefix, the best candidate of the feeds that ended.
    merged: Ribs,
    /// By prefix, the best candidate among the table dumps of the present feed.
    dumped: Ribs,
    /// Whether two of those met for a prefix.
    contested: bool,
    /// Plain tables: labels.
    plain: Ribs,
    /// Announced and not withdrawn, by source.
    announced: HashMap<u32, Announced>,
    announced_bytes: usize,
    feed: u32,
}

/// What a source has announced and not withdrawn: candidates by path.
type Announced = HashMap<Path, u32>;

/// A path in a hash table that may be half empty.
const PATH_BYTES: usize = 2 * (size_of::<Path>() + size_of::<u32>() + 1);

impl Routes {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            next_hops: NextHops::new(limits),
            sources: IndexSet::new(),
            candidates: IndexSet::new(),
            merged: Ribs::new(limits),
            dumped: Ribs::new(limits),
            contested: false,
            plain: Ribs::new(limits),
            announced: HashMap::new(),
            announced_bytes: 0,
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
        let label = self.next_hops.intern(label)?;
        if let Some(before) = self.plain.insert(prefix, label)? {
            report.repeated += 1;
            report.repeated_changed += u64::from(before != label);
        }
        Ok(())
    }

    /// What a peer said.
    pub(super) fn event(&mut self, event: Event, report: &mut Report) -> Result<(), Refusal> {
        let source = self.source(event.peer);
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
                let ended = self.announced.remove(&source);
                self.announced_bytes -= ended.map_or(0, |ended| ended.len() * PATH_BYTES);
                Ok(())
            }
            Action::Nothing => Ok(()),
        }
    }

    fn announce(&mut self, source: u32, route: Announcement, report: &mut Report) -> Result<(), Refusal> {
        self.seed()?;
        let candidate = self.candidate(source, &route)?;
        self.hold(PATH_BYTES)?;
        if let Some(before) = self.announced.entry(source).or_default().insert(route.path, candidate) {
            self.announced_bytes -= PATH_BYTES;
            report.repeated += 1;
            report.repeated_changed += u64::from(self.label(before) != self.label(candidate));
        }
        Ok(())
    }

    fn withdraw(&mut self, source: u32, path: Path, report: &mut Report) -> Result<(), Refusal> {
        self.seed()?;
        let removed = self.announced.get_mut(&source).and_then(|announced| announced.remove(&path));
        self.announced_bytes -= if removed.is_some() { PATH_BYTES } else { 0 };
        report.withdrawn_absent += u64::from(removed.is_none());
        Ok(())
    }

    fn source(&mut self, peer: Option<Peer>) -> u32 {
        // A feed of 2^32 peers does not end in a lifetime.
        self.sources.insert_full(peer).0 as u32
    }

    fn candidate(&mut self, source: u32, route: &Announcement) -> Result<u32, Refusal> {
        let label = match self.next_hops.get(&route.next_hop) {
            Some(label) => label,
            None => self.next_hops.intern(route.next_hop.clone())?,
        };
        let Announcement { path_len, path, .. } = *route;
        self.intern(Candidate { label, path_len, source, feed: self.feed, path_id: path.id })
    }

    fn intern(&mut self, candidate: Candidate) -> Result<u32, Refusal> {
        if let Some(index) = self.candidates.get_index_of(&candidate) {
            return Ok(index as u32);
        }
        let used_bytes = self.candidates.len() * Candidate::HELD_BYTES;
        self.within(used_bytes, Candidate::HELD_BYTES)?;
        // Ids of next hops count from 1, and the last of 32 bits has no successor.
        let index = self.candidates.insert_full(candidate).0;
        match u32::try_from(index + 1) {
            Ok(_) => Ok(index as u32),
            Err(_) => Err(self.out_of_memory(used_bytes, usize::MAX)),
        }
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.within(self.announced_bytes, bytes)?;
        self.announced_bytes += bytes;
        Ok(())
    }

    fn within(&self, used_bytes: usize, wanted_bytes: usize) -> Result<(), Refusal> {
        match self.limits.memory_bytes {
            Some(limit) if used_bytes + wanted_bytes > limit => {
                Err(self.out_of_memory(used_bytes, wanted_bytes))
            }
            _ => Ok(()),
        }
    }

    fn out_of_memory(&self, used_bytes: usize, wanted_bytes: usize) -> Refusal {
        let limit_bytes = self.limits.memory_bytes;
        Refusal::Memory(OutOfMemory { wanted_bytes, used_bytes, limit_bytes })
    }

    fn label(&self, candidate: u32) -> NextHop {
        self.candidates[candidate as usize].label
    }

    /// Puts the candidate in for the prefix, unless a better one is there. One of the same peer and path takes the
    /// place of the other.
    fn compete(&mut self, prefix: IpPrefix, candidate: u32, report: &mut Report) -> Result<(), Refusal> {
        let Some(before) = self.dumped.insert(prefix, id(candidate))? else { return Ok(()) };
        let [old, new] = [index(before), candidate].map(|index| self.candidates[index as usize]);
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
        let peer = self.sources[candidate.source as usize];
        (
            Reverse(candidate.path_len.map(Reverse)),
            Reverse(peer.map(Reverse)),
            candidate.feed,
            candidate.path_id,
        )
    }

    /// Before the first update: what a table dump in front of it has is as good as announced.
    fn seed(&mut self) -> Result<(), Refusal> {
        if self.dumped.is_empty() {
            return Ok(());
        }
        if self.contested {
            return Err(Refusal::Mixed);
        }
        for (prefix, before) in self.take(|routes| &mut routes.dumped).iter() {
            let candidate = index(before);
            let Candidate { source, path_id, .. } = self.candidates[candidate as usize];
            self.hold(PATH_BYTES)?;
            self.announced.entry(source).or_default().insert(Path { prefix, id: path_id }, candidate);
        }
        Ok(())
    }

    /// The feed has ended: what stands announced joins the candidates.
    pub(super) fn end_feed(&mut self, more: bool, report: &mut Report) -> Result<(), Refusal> {
        for (_, announced) in core::mem::take(&mut self.announced) {
            for (path, candidate) in announced {
                self.compete(path.prefix, candidate, report)?;
            }
        }
        self.announced_bytes = 0;
        if (more || self.feed > 0) && !self.plain.is_empty() {
            let source = self.source(None);
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

    /// What stood in one of the tables, which is empty then.
    fn take(&mut self, of: impl Fn(&mut Self) -> &mut Ribs) -> Ribs {
        let empty = Ribs::new(self.limits);
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
            let [old_rank, new_rank] = [old, new].map(|at| self.rank(&self.candidates[index(at) as usize]));
            if old_rank <= new_rank {
                self.merged.insert(prefix, old)?;
            }
        }
        Ok(())
    }

    /// The table, with labels in place of candidates.
    pub(super) fn finish(self) -> Result<(Ribs, NextHops), Refusal> {
        let Self { plain, merged, candidates, limits, next_hops, .. } = self;
        if merged.is_empty() {
            return Ok((plain, next_hops));
        }
        let label = |before: NextHop| candidates[index(before) as usize].label;
        let v4 = relabel(merged.v4, limits, label)?;
        let v6 = relabel(merged.v6, limits, label)?;
        Ok((Ribs { v4, v6 }, next_hops))
    }
}

fn relabel<K: Key>(
    rib: Rib<K>,
    limits: Limits,
    label: impl Fn(NextHop) -> NextHop,
) -> Result<Rib<K>, RibError> {
    let mut labelled = Rib::new(limits);
    for route in rib.iter() {
        let prefix: Prefix<K> = route.prefix;
        labelled.insert(Route::new(prefix, label(route.next_hop)))?;
    }
    Ok(labelled)
}

/// Candidates stand in tables of next hops, whose ids count from 1.
fn id(candidate: u32) -> NextHop {
    NextHop::new(candidate + 1).expect("not the last of 32 bits")
}

fn index(id: NextHop) -> u32 {
    id.id() - 1
}
