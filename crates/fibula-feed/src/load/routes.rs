//! Merges the routes of feeds into one table.
//!
//! Routes of table dumps go into one table of candidates, which keeps the [better](crate::select) of two for a prefix.
//! Announcements and withdrawals are kept by peer and path, because a withdrawal brings back the second best route;
//! they join the candidates when the feed has ended. Plain tables, which name no peers, are taken as they are; the last
//! of repeated lines counts, or the one with the lowest rank.

use std::io;

use fibula::file::ColumnType;
use fibula::memory::{Limits, OutOfMemory};
use fibula::net::{IpPrefix, NextHop, Prefix};
use fibula::rib::DualRib;

use super::TableOrder;
use super::report::Report;
use crate::event::{Action, Announcement, Event, Path};
use crate::ledger::{Held, Ledger, Map};
use crate::next_hops::{Label, NextHops, NextHopsError};
use crate::ribs::Ribs;
use crate::select::{Candidate, Candidates, Rule};
use crate::value::Value;

/// Why a route was not taken.
#[derive(Debug)]
pub(super) enum Refusal {
    Memory(OutOfMemory),
    NextHops(NextHopsError),
    /// A value does not fit its type.
    Type(Box<Misfit>),
    /// Updates follow a table dump with several paths for a prefix, but only the best of them was kept.
    Mixed,
    /// The event callback returned an error.
    Stopped(io::Error),
}

/// A value that does not fit its type.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) value: Value,
    pub(super) text: String,
    pub(super) kind: ColumnType,
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

/// All routes that were taken from the feeds so far.
#[derive(Debug)]
pub(super) struct Routes {
    limits: Limits,
    ledger: Ledger,
    /// The types of values, with their places among the fields of a label.
    types: Vec<(usize, Value, ColumnType)>,
    pub(super) next_hops: NextHops,
    /// The charge for the next hops.
    next_hops_held: Held,
    candidates: Candidates,
    /// By prefix, the best candidate of the feeds that ended.
    merged: Ribs,
    /// By prefix, the best candidate among the table dumps of the present feed.
    dumped: Ribs,
    /// Whether two of those had the same prefix.
    contested: bool,
    /// The routes of plain tables, with labels as next hops.
    plain: Ribs,
    /// Lines of plain tables that are not among those yet.
    pending: Pending,
    /// Prefixes of ranges that are not one prefix: they count where nothing else has the prefix.
    pieces: Pieces,
    /// The ranks of the routes of plain tables that have some.
    ranks: Map<IpPrefix, u64>,
    /// Paths announced and not withdrawn, by source.
    announced: Map<u32, Announced>,
    feed: u32,
    /// Which table counts where several have a prefix.
    order: TableOrder,
    /// In a replay, the time of the table dump, which includes all earlier updates.
    dumped_at: Option<u32>,
}

/// Lines of plain tables that wait to be entered together, each with its number, so that the last of repeated ones counts.
#[derive(Debug, Default)]
struct Pending {
    v4: Vec<(Prefix<u32>, u32, NextHop)>,
    v6: Vec<(Prefix<u128>, u32, NextHop)>,
}

impl Pending {
    /// Lines that wait at most: 16 MiB of IPv4 routes, 48 of IPv6.
    const MOST: usize = 1 << 20;

    fn has_room(&mut self) -> bool {
        self.v4.len() + self.v6.len() < Self::MOST
            && self.v4.try_reserve(1).is_ok()
            && self.v6.try_reserve(1).is_ok()
    }

    fn push(&mut self, prefix: IpPrefix, label: NextHop) {
        let number = (self.v4.len() + self.v6.len()) as u32;
        match prefix {
            IpPrefix::V4(prefix) => self.v4.push((prefix, number, label)),
            IpPrefix::V6(prefix) => self.v6.push((prefix, number, label)),
        }
    }
}

/// A prefix of a range that is not one prefix.
#[derive(Debug, Clone, Copy)]
struct Piece {
    prefix: IpPrefix,
    /// Addresses of the range, less one.
    size: u128,
    label: NextHop,
}

/// Prefixes of ranges, in the order of the file.
#[derive(Debug)]
struct Pieces {
    all: Vec<Piece>,
    held: Held,
}

impl Pieces {
    fn new(ledger: &Ledger) -> Self {
        Self { all: Vec::new(), held: Held::new(ledger) }
    }

    fn push(&mut self, piece: Piece) -> Result<(), OutOfMemory> {
        if self.all.len() == self.all.capacity() {
            let more = self.all.len().max(64);
            let bytes = more * size_of::<Piece>();
            // The old block lives until all has been moved.
            let moved = self.all.len() * size_of::<Piece>();
            self.held.add(bytes + moved)?;
            self.all.reserve_exact(more);
            self.held.sub(moved);
        }
        self.all.push(piece);
        Ok(())
    }

    /// Returns one piece for each prefix: that of the smallest range, or the last of equals.
    fn finish(mut self, report: &mut Report) -> Vec<Piece> {
        // The sort is stable: of equal ranges the order of the file stays.
        self.all.reverse();
        self.all.sort_by_key(|piece| (piece.prefix, piece.size));
        let mut changed = 0;
        let before = self.all.len();
        self.all.dedup_by(|later, kept| {
            let same = later.prefix == kept.prefix;
            changed += u64::from(same && later.label != kept.label);
            same
        });
        report.repeated += (before - self.all.len()) as u64;
        report.repeated_changed += changed;
        self.all
    }
}

/// Candidates that a source has announced and not withdrawn, by path.
type Announced = Map<Path, u32>;

impl Routes {
    pub(super) fn new(limits: Limits, ledger: &Ledger) -> Self {
        Self {
            limits,
            ledger: ledger.clone(),
            types: Vec::new(),
            next_hops: NextHops::new(limits),
            next_hops_held: Held::new(ledger),
            candidates: Candidates::new(ledger),
            merged: Ribs::new(limits, ledger),
            dumped: Ribs::new(limits, ledger),
            contested: false,
            plain: Ribs::new(limits, ledger),
            pending: Pending::default(),
            pieces: Pieces::new(ledger),
            ranks: Map::new(ledger),
            announced: Map::new(ledger),
            feed: 0,
            order: TableOrder::default(),
            dumped_at: None,
        }
    }

    pub(super) fn set_order(&mut self, order: TableOrder) {
        self.order = order;
    }

    /// Sets the types that values must have.
    pub(super) fn set_types(&mut self, values: &[Value], types: &[Option<ColumnType>]) {
        let typed = values.iter().zip(types).enumerate();
        self.types = typed.filter_map(|(at, (value, kind))| Some((at, value.clone(), (*kind)?))).collect();
    }

    /// Refuses a label with a value that does not fit its type.
    fn fits(&self, label: &Label) -> Result<(), Refusal> {
        for (at, value, kind) in &self.types {
            let Some(field) = label.fields().get(*at).filter(|field| **field != Label::Absent) else {
                continue;
            };
            let text = field.to_string();
            if kind.parse(&text).is_none() {
                let (value, kind) = (value.clone(), *kind);
                return Err(Refusal::Type(Box::new(Misfit { value, text, kind })));
            }
        }
        Ok(())
    }

    /// Sets whether the next feed is a table dump and the updates after it.
    pub(super) fn set_replay(&mut self, replay: bool) {
        self.dumped_at = replay.then_some(0);
    }

    /// Takes a line of a plain table; the last one for a prefix counts.
    pub(super) fn plain(
        &mut self,
        prefix: IpPrefix,
        label: Label,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        let label = self.label(label)?;
        // Under a limit, lines that wait would take memory from routes.
        if self.ledger.limit_bytes().is_some() || !self.pending.has_room() {
            self.enter_pending(report)?;
            return self.enter(prefix, label, report);
        }
        self.pending.push(prefix, label);
        Ok(())
    }

    /// Takes a route of a plain table that has a rank: of several for a prefix the lowest counts, of equals the first.
    pub(super) fn ranked(
        &mut self,
        prefix: IpPrefix,
        rank: u64,
        label: Label,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        match self.ranks.get(&prefix) {
            Some(&before) if before <= rank => {
                report.repeated += 1;
                let other = self.next_hops.get(&label) != self.plain.get(prefix);
                report.repeated_changed += u64::from(other);
                return Ok(());
            }
            _ => self.ranks.insert(prefix, rank)?,
        };
        let label = self.label(label)?;
        self.enter_pending(report)?;
        self.enter(prefix, label, report)
    }

    /// Takes a prefix of a range of a plain table, which has this many addresses less one.
    pub(super) fn piece(&mut self, prefix: IpPrefix, size: u128, label: Label) -> Result<(), Refusal> {
        let label = self.label(label)?;
        Ok(self.pieces.push(Piece { prefix, size, label })?)
    }

    /// Enters the prefixes of ranges where nothing else has them: of nested ranges the smaller one answers.
    fn enter_pieces(&mut self, report: &mut Report) -> Result<(), Refusal> {
        let pieces = core::mem::replace(&mut self.pieces, Pieces::new(&self.ledger));
        for Piece { prefix, label, .. } in pieces.finish(report) {
            if let Some(before) = self.plain.get(prefix) {
                report.repeated += 1;
                report.repeated_changed += u64::from(before != label);
            } else {
                self.plain.insert(prefix, label)?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, prefix: IpPrefix, label: NextHop, report: &mut Report) -> Result<(), Refusal> {
        if let Some(before) = self.plain.insert(prefix, label)? {
            report.repeated += 1;
            report.repeated_changed += u64::from(before != label);
        }
        Ok(())
    }

    /// Enters the lines that wait, in the order of prefixes, because neighbours in a tree of millions of routes are
    /// then found in the caches.
    fn enter_pending(&mut self, report: &mut Report) -> Result<(), Refusal> {
        let mut pending = core::mem::take(&mut self.pending);
        pending.v4.sort_unstable();
        pending.v6.sort_unstable();
        for (prefix, _, label) in pending.v4.drain(..) {
            self.enter(prefix.into(), label, report)?;
        }
        for (prefix, _, label) in pending.v6.drain(..) {
            self.enter(prefix.into(), label, report)?;
        }
        self.pending = pending;
        Ok(())
    }

    /// Takes an event of a peer.
    pub(super) fn event(&mut self, event: Event, report: &mut Report) -> Result<(), Refusal> {
        let source = self.candidates.source(event.peer)?;
        if let Some(dumped_at) = &mut self.dumped_at {
            if matches!(&event.action, Action::Announce(route) if route.dumped) {
                *dumped_at = event.time.seconds.max(*dumped_at);
            } else if event.time.seconds < *dumped_at {
                report.left_out += 1;
                return Ok(());
            }
        }
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

    /// Records a candidate that the source announces for the path; returns the one before.
    fn hold(&mut self, source: u32, path: Path, candidate: u32) -> Result<Option<u32>, OutOfMemory> {
        let ledger = &self.ledger;
        let announced = self.announced.get_or_insert_with(source, || Announced::new(ledger))?;
        announced.insert(path, candidate)
    }

    fn candidate(&mut self, source: u32, route: &Announcement) -> Result<u32, Refusal> {
        let label = match self.next_hops.get(&route.next_hop) {
            Some(label) => label,
            None => self.label(route.next_hop.clone())?,
        };
        let Announcement { path_len, path, .. } = *route;
        let feed = self.feed;
        Ok(self.candidates.insert(Candidate { label, path_len, source, feed, path_id: path.id })?)
    }

    /// Returns the number of the label, which may take all memory that is left in the ledger.
    fn label(&mut self, label: Label) -> Result<NextHop, Refusal> {
        if !self.types.is_empty() && self.next_hops.get(&label).is_none() {
            self.fits(&label)?;
        }
        let used_bytes = self.next_hops.used_bytes();
        self.next_hops.set_limit(self.ledger.free_bytes().map(|free| used_bytes + free));
        let limit_bytes = self.ledger.limit_bytes();
        let number = self.next_hops.intern(label).map_err(|error| error.with_limit(limit_bytes))?;
        self.next_hops_held.set(self.next_hops.used_bytes())?;
        Ok(number)
    }

    fn label_of(&self, candidate: u32) -> NextHop {
        self.candidates.get(candidate).label
    }

    /// Enters the candidate for the prefix, unless a better one is present. A candidate of the same peer and path
    /// replaces the old one.
    fn compete(&mut self, prefix: IpPrefix, candidate: u32, report: &mut Report) -> Result<(), Refusal> {
        let Some(before) = self.dumped.insert(prefix, id(candidate))? else { return Ok(()) };
        let [old, new] = [index(before), candidate].map(|number| *self.candidates.get(number));
        if (old.source, old.path_id) == (new.source, new.path_id) {
            report.repeated += 1;
            report.repeated_changed += u64::from(old.label != new.label);
            return Ok(());
        }
        self.contested = true;
        report.outrivalled += 1;
        if self.candidates.stays(index(before), candidate).0 {
            self.dumped.insert(prefix, before)?;
        }
        Ok(())
    }

    /// Called before the first update: treats the routes of a preceding table dump as announced.
    fn seed(&mut self) -> Result<(), Refusal> {
        if self.dumped.is_empty() {
            return Ok(());
        }
        if self.contested {
            return Err(Refusal::Mixed);
        }
        for (prefix, before) in self.take(|routes| &mut routes.dumped).iter() {
            let candidate = index(before);
            let Candidate { source, path_id, .. } = *self.candidates.get(candidate);
            self.hold(source, Path { prefix, id: path_id }, candidate)?;
        }
        Ok(())
    }

    /// Ends the feed: the routes still announced join the candidates.
    pub(super) fn end_feed(&mut self, more: bool, report: &mut Report) -> Result<(), Refusal> {
        self.enter_pending(report)?;
        self.pending = Pending::default();
        self.enter_pieces(report)?;
        self.ranks = Map::new(&self.ledger);
        let announced = core::mem::replace(&mut self.announced, Map::new(&self.ledger));
        let (sources, _held) = announced.into_entries();
        for (_, announced) in sources {
            let (paths, _held) = announced.into_entries();
            for (path, candidate) in paths {
                self.compete(path.prefix, candidate, report)?;
            }
        }
        if (more || self.feed > 0) && !self.plain.is_empty() {
            let source = self.candidates.source(None)?;
            for (prefix, label) in self.take(|routes| &mut routes.plain).iter() {
                let feed = self.feed;
                let candidate = self.candidates.insert(Candidate {
                    label,
                    path_len: None,
                    source,
                    feed,
                    path_id: None,
                })?;
                self.compete(prefix, candidate, report)?;
            }
        }
        report.prefixes = if self.dumped.is_empty() { self.plain.lens() } else { self.dumped.lens() };
        self.join(report)?;
        self.contested = false;
        self.feed += 1;
        Ok(())
    }

    /// Takes the content of one of the tables, and leaves it empty.
    fn take(&mut self, of: impl Fn(&mut Self) -> &mut Ribs) -> Ribs {
        let empty = Ribs::new(self.limits, &self.ledger);
        core::mem::replace(of(self), empty)
    }

    /// Merges the candidates of the current feed with those of the feeds before it.
    fn join(&mut self, report: &mut Report) -> Result<(), Refusal> {
        let dumped = self.take(|routes| &mut routes.dumped);
        if self.merged.is_empty() {
            self.merged = dumped;
            return Ok(());
        }
        for (prefix, new) in dumped.iter() {
            let Some(old) = self.merged.insert(prefix, new)? else { continue };
            report.outrivalled += 1;
            let (stays, rule) = self.precedence(index(old), index(new));
            if self.label_of(index(old)) != self.label_of(index(new)) {
                *report.differing.entry(rule).or_default() += 1;
            }
            if stays {
                self.merged.insert(prefix, old)?;
            }
        }
        Ok(())
    }

    /// Returns whether the route of an earlier table stays, and the rule that decides.
    fn precedence(&self, old: u32, new: u32) -> (bool, Rule) {
        let has_peer = [old, new].map(|candidate| self.candidates.has_peer(candidate));
        match (self.order, has_peer) {
            (TableOrder::LaterWins, _) => (false, Rule::LaterFeed),
            (TableOrder::FirstWins | TableOrder::MoreSpecific, _) => (true, Rule::Feed),
            (TableOrder::BestPath, [true, false]) => (false, Rule::OwnTable),
            (TableOrder::BestPath, [false, true]) => (true, Rule::OwnTable),
            (TableOrder::BestPath, _) => self.candidates.stays(old, new),
        }
    }

    /// Returns the tables, with labels in place of candidates.
    pub(super) fn finish(self) -> (DualRib, NextHops) {
        let Self { plain, mut merged, candidates, limits, mut next_hops, .. } = self;
        next_hops.set_limit(limits.memory_bytes);
        let ribs = if merged.is_empty() {
            plain
        } else {
            merged.relabel(|before| candidates.get(index(before)).label);
            merged
        };
        (ribs.finish(), next_hops)
    }
}

/// Returns the next hop that represents a candidate in the tables; ids count from 1.
fn id(candidate: u32) -> NextHop {
    NextHop::new(candidate + 1).expect("not the last of 32 bits")
}

fn index(id: NextHop) -> u32 {
    id.id() - 1
}
