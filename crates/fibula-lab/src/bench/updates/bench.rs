//! Measures changes: each figure in several runs, in which all engines take turns.

use core::error::Error;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use fibula::fib::registry::Update;
use fibula::live::{Table, TableKey};
use fibula::net::{Change, IpPrefix, NextHop, Prefix, Route, RouteSlice};
use fibula::rib::{DualRib, Rib, RibError};
use fibula_workload::random::Random;
use fibula_workload::replay;
use fibula_workload::table::{Profile, TableSpec, generate};

use super::row::{RowSubject, UpdatePlan, UpdateRow};
use super::subject::{ChangeTimes, Subject};
use crate::bench::contestant::{self, Contestant};
use crate::bench::runner::Progress;

/// The fewest prefixes that are removed before they are added again, so that the clock is read rarely.
const TOGETHER: usize = 512;

/// The most prefixes at whose ends answers are compared.
const COMPARED: usize = 256;

/// The most runs with readers: each takes a copy of the routes.
const READER_RUNS: usize = 3;

/// How long readers look up in a run, at most.
const DWELL: Duration = Duration::from_millis(300);

/// The length of spare routes.
const SPARE_LEN: u8 = 56;

/// The engines, with their results so far.
pub(super) struct Bench<'a, K: TableKey> {
    plan: &'a UpdatePlan,
    contestants: &'a [Contestant<K>],
    base: DualRib,
    /// All routes that there ever are.
    more: Vec<Route<K>>,
    /// The changes that remove those of them that the table does not have.
    excess: Vec<Change<K>>,
    /// Those that it has.
    routes: Vec<Route<K>>,
    /// The routes as they must be.
    oracle: Rib<K>,
    /// The changes of the trace that change a route.
    trace: Vec<Change<K>>,
    /// The next hops that the prefixes of the trace had before it.
    before: BTreeMap<Prefix<K>, Option<NextHop>>,
    subjects: Vec<Subject<K>>,
    rows: Vec<UpdateRow>,
    /// The row that is being measured.
    current: usize,
}

/// A cell of measurements that are made together.
#[derive(Debug, Clone, Copy)]
enum UpdateCell {
    Length(u8),
    Batch(usize),
    Trace,
    /// So many readers, beside the writer or without it.
    Readers(usize, bool),
}

impl UpdateCell {
    /// Returns its name in the progress.
    fn name(self) -> String {
        match self {
            Self::Length(len) => format!("changes of /{len}"),
            Self::Batch(batch) => format!("changes, {batch} a call"),
            Self::Trace => "the trace".to_owned(),
            Self::Readers(readers, true) => format!("readers beside the writer: {readers}"),
            Self::Readers(readers, false) => format!("readers: {readers}"),
        }
    }
}

impl<'a, K: TableKey> Bench<'a, K>
where
    IpPrefix: From<Prefix<K>>,
{
    pub(super) fn new(
        plan: &'a UpdatePlan,
        routes: &Rib<K>,
        trace: &[Change<K>],
        contestants: &'a [Contestant<K>],
    ) -> Result<Self, Box<dyn Error>> {
        let mut oracle = routes.clone();
        let (mut changing, mut before) = (Vec::new(), BTreeMap::new());
        // Every route that there ever is.
        let mut more = routes.clone();
        for &change in trace {
            let (prefix, next_hop) = parts(change);
            let old = oracle.get(prefix);
            if old == next_hop {
                continue;
            }
            oracle.apply(&[change])?;
            changing.push(change);
            before.entry(prefix).or_insert(old);
            if let (Change::Insert(route), None) = (change, more.get(prefix)) {
                more.insert(route)?;
            }
        }
        spare(&mut more, plan.seed)?;
        let removed = |prefix| routes.get(prefix).is_none().then_some(Change::Remove(prefix));
        let excess: Vec<Change<K>> = more.iter().filter_map(|route| removed(route.prefix)).collect();
        let more: Vec<Route<K>> = more.iter().collect();
        let mut base = DualRib::default();
        for Route { prefix, next_hop } in routes.iter() {
            base.insert(prefix, next_hop)?;
        }
        let subjects = contestants.iter().map(|one| Subject::new(one, &base, &more, &excess)).collect();
        Ok(Self {
            plan,
            contestants,
            base,
            more,
            excess,
            routes: routes.iter().collect(),
            oracle: routes.clone(),
            trace: changing,
            before,
            subjects,
            rows: Vec::new(),
            current: 0,
        })
    }

    pub(super) fn everything(
        mut self,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<UpdateRow>, Box<dyn Error>> {
        let cells = self.cells();
        let per_cell = self.plan.runs * self.subjects.len().max(1);
        let share = Duration::from_secs_f64(self.plan.seconds) / (cells.len() * per_cell) as u32;
        let (begin, steps) = (Instant::now(), cells.len() + self.contestants.len());
        let mut tell = |done: usize, step: &str| {
            let left = begin.elapsed().mul_f64((steps - done) as f64 / done.max(1) as f64);
            let left = if done == 0 { Duration::from_secs_f64(2.0 * self.plan.seconds) } else { left };
            progress(Progress { done, total: steps, step, left });
        };
        for (done, &cell) in cells.iter().enumerate() {
            tell(done, &cell.name());
            for run in 0..self.plan.runs {
                for turn in 0..self.subjects.len() {
                    // Each run begins with another one.
                    let number = (run + turn) % self.subjects.len();
                    self.measure(cell, run, number, share)?;
                }
            }
        }
        self.build_all(|number, name| tell(cells.len() + number, name))?;
        for subject in &self.subjects {
            if let Some(table) = subject.table() {
                table.check()?;
            }
        }
        Ok(self.rows)
    }

    fn cells(&self) -> Vec<UpdateCell> {
        let mut lengths: Vec<u8> = self.routes.iter().map(|route| route.prefix.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut cells: Vec<UpdateCell> = lengths.into_iter().map(UpdateCell::Length).collect();
        cells.extend(self.plan.batches.iter().map(|&batch| UpdateCell::Batch(batch)));
        if !self.trace.is_empty() {
            cells.push(UpdateCell::Trace);
        }
        let cores = cores();
        // One reader without the writer is measured with the one beside it.
        cells.extend([
            UpdateCell::Readers(1, true),
            UpdateCell::Readers(2, false),
            UpdateCell::Readers(2, true),
        ]);
        if cores > 3 {
            cells.extend([UpdateCell::Readers(cores - 1, true), UpdateCell::Readers(cores, false)]);
        }
        cells
    }

    fn measure(
        &mut self,
        cell: UpdateCell,
        run: usize,
        number: usize,
        share: Duration,
    ) -> Result<(), Box<dyn Error>> {
        let subject = &self.subjects[number];
        let in_place = subject.update == Update::InPlace;
        if subject.failure.is_some() {
            // Said once.
            if run == 0 && self.rows.iter().all(|row| row.engine != subject.name) {
                let row = self.row(number, RowSubject::Batch, self.plan.batch, self.plan.batch);
                self.rows[row].error.clone_from(&self.subjects[number].failure);
            }
            return Ok(());
        }
        let measured = match cell {
            // An engine that is rebuilt takes the same time for every length.
            UpdateCell::Length(len) if in_place => {
                let row = self.row(number, RowSubject::Length, len.into(), self.plan.batch);
                let some = self.some(run, |route| route.prefix.len() == len);
                self.toggle(number, row, &some, share)
            }
            // Rivals take one change after the other.
            UpdateCell::Batch(batch) if batch == 1 || !subject.rival => {
                let row = self.row(number, RowSubject::Batch, batch, batch);
                let some = self.some(run, |_| true);
                self.toggle(number, row, &some, share)
            }
            // An engine that is rebuilt for each call follows the trace in the first run alone, because that takes long.
            UpdateCell::Trace if in_place || run == 0 => self.follow(number),
            UpdateCell::Readers(readers, beside) if run < READER_RUNS => {
                self.read(number, run, (readers, beside))?;
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = measured {
            self.replace(number, error)?;
        }
        Ok(())
    }

    /// Replaces an engine that has refused a change by a new one: the counters of `rte_fib` and `rte_fib6` drift, until they
    /// refuse routes for which there is room.
    fn replace(&mut self, number: usize, error: String) -> Result<(), Box<dyn Error>> {
        self.rows[self.current].error = Some(error);
        let Self { contestants, base, more, excess, .. } = self;
        self.subjects[number] = Subject::new(&contestants[number], base, more, excess);
        self.oracle = Rib::default();
        for &route in &self.routes {
            self.oracle.insert(route)?;
        }
        Ok(())
    }

    /// Returns the number of the row, which is added if it is not there yet.
    fn row(&mut self, number: usize, part: RowSubject, at: usize, batch: usize) -> usize {
        let Subject { name, rival, update, .. } = &self.subjects[number];
        let is = |row: &UpdateRow| row.engine == *name && row.part == part && row.at == at;
        if let Some(row) = self.rows.iter().position(is) {
            self.current = row;
            return row;
        }
        self.current = self.rows.len();
        self.rows.push(UpdateRow {
            engine: name.clone(),
            rival: *rival,
            family: K::FAMILY.name().to_owned(),
            update: update.name().to_owned(),
            part,
            at,
            batch: if *rival { 1 } else { batch },
            unit: part.unit().to_owned(),
            median: None,
            low: None,
            high: None,
            changes: 0,
            rebuilt: 0,
            checked: 0,
            wrong: 0,
            error: None,
            runs: Vec::new(),
        });
        self.current
    }

    /// Returns some of these routes, in random order.
    fn some(&self, run: usize, is: impl Fn(&Route<K>) -> bool) -> Vec<Route<K>> {
        let mut some: Vec<Route<K>> = self.routes.iter().copied().filter(is).collect();
        Random::new(self.plan.seed + run as u64).shuffle(&mut some);
        some.truncate(self.plan.batches.iter().copied().fold(self.plan.prefixes, usize::max));
        some
    }

    /// Removes these routes and adds them again, as many as the time allows.
    fn toggle(
        &mut self,
        number: usize,
        row: usize,
        routes: &[Route<K>],
        share: Duration,
    ) -> Result<(), String> {
        let batch = self.rows[row].batch;
        let together = match self.subjects[number].update {
            Update::InPlace => batch.max(TOGETHER),
            Update::Rebuild => batch,
        };
        let mut total = ChangeTimes::default();
        let mut groups = routes.chunks(together).peekable();
        while let Some(group) = groups.next() {
            let removals: Vec<_> = group.iter().map(|route| Change::Remove(route.prefix)).collect();
            let additions: Vec<_> = group.iter().copied().map(Change::Insert).collect();
            total.add(self.subjects[number].apply(&removals, batch)?);
            let last = groups.peek().is_none() || total.time * 2 >= share;
            if last {
                self.compare(number, row, &removals)?;
            }
            total.add(self.subjects[number].apply(&additions, batch)?);
            if last {
                self.compare(number, row, &additions)?;
                break;
            }
        }
        self.rows[row].take(total);
        Ok(())
    }

    /// Makes these changes in the oracle too, and compares answers at the ends of their prefixes.
    fn compare(&mut self, number: usize, row: usize, changes: &[Change<K>]) -> Result<(), String> {
        self.oracle.apply(changes).map_err(|error| error.to_string())?;
        let step = changes.len().div_ceil(COMPARED).max(1);
        let prefixes = changes.iter().step_by(step).map(|&change| parts(change).0);
        let keys: Vec<K> = prefixes.flat_map(|prefix| [prefix.addr(), prefix.last()]).collect();
        let answers = self.subjects[number].answers(&keys)?;
        let wrong =
            keys.iter().zip(answers).filter(|&(&key, found)| self.oracle.lookup(key) != found).count();
        self.rows[row].checked += keys.len();
        self.rows[row].wrong += wrong;
        Ok(())
    }

    /// Follows the trace, then goes back.
    fn follow(&mut self, number: usize) -> Result<(), String> {
        let (trace, batch) = (core::mem::take(&mut self.trace), self.plan.batch);
        let stretch = trace.len().div_ceil(self.plan.stretches.max(1)).max(1);
        let most = Duration::from_secs_f64(self.plan.seconds / 20.0);
        let followed = (|| {
            let (mut end, mut spent, mut last) = (0, Duration::ZERO, None);
            for changes in trace.chunks(stretch) {
                end += changes.len();
                let row = self.row(number, RowSubject::Trace, end, batch);
                let done = self.subjects[number].apply(changes, batch)?;
                self.rows[row].take(done);
                self.compare(number, row, changes)?;
                spent += done.time;
                last = Some(row);
                if self.subjects[number].update == Update::Rebuild && spent > most {
                    break;
                }
            }
            let back: Vec<Change<K>> = self
                .before
                .iter()
                .filter(|&(&prefix, &old)| self.oracle.get(prefix) != old)
                .map(|(&prefix, &old)| replay::change(prefix, old))
                .collect();
            self.subjects[number].apply(&back, back.len().max(1))?;
            last.map_or(Ok(()), |row| self.compare(number, row, &back))
        })();
        self.trace = trace;
        followed
    }

    /// Measures readers, beside the writer or without it.
    fn read(
        &mut self,
        number: usize,
        run: usize,
        (readers, beside): (usize, bool),
    ) -> Result<(), Box<dyn Error>> {
        let Some(table) = self.subjects[number].table().cloned() else { return Ok(()) };
        let batch = self.plan.batch;
        let part = if beside { RowSubject::ReadersBeside } else { RowSubject::ReadersIdle };
        let threads = readers + usize::from(beside);
        let row = self.row(number, part, readers, batch);
        if threads > cores() {
            self.rows[row].error =
                Some(format!("SKIPPED: {threads} threads need a core each; this machine has {}", cores()));
            return Ok(());
        }
        let dwell = DWELL.min(Duration::from_secs_f64(self.plan.seconds / 60.0));
        let report = self.replayed(&table, number, run, (readers, beside), dwell)?;
        if !beside {
            self.rows[row].add(report.idle_mlps.iter().sum());
            return Ok(());
        }
        self.rows[row].add(report.busy_mlps.iter().sum());
        self.rows[row].changes += report.totals.changed;
        self.rows[row].rebuilt += report.totals.rebuilt;
        let idle = self.row(number, RowSubject::ReadersIdle, readers, batch);
        self.rows[idle].add(report.idle_mlps.iter().sum());
        let writer = self.row(number, RowSubject::WriterBeside, readers, batch);
        self.rows[writer].add(report.changes_per_busy_second() / 1e6);
        Ok(())
    }

    fn replayed(
        &self,
        table: &Table,
        number: usize,
        run: usize,
        (readers, beside): (usize, bool),
        dwell: Duration,
    ) -> Result<replay::Report, Box<dyn Error>> {
        let name = &self.subjects[number].name;
        let known = self.rows.iter().find(|row| row.engine == *name && row.part == RowSubject::Batch);
        let micros = known.and_then(|row| row.median).unwrap_or(1.0).max(0.01);
        let changes = (dwell.as_secs_f64() * 1e6 / micros) as usize;
        let routes: Vec<_> = self.routes.iter().map(|route| (route.prefix.into(), route.next_hop)).collect();
        let steps = match (beside, routes.first()) {
            // One that changes nothing: it says which family is looked up.
            (false, Some(&(prefix, next_hop))) => {
                vec![replay::Step { micros: 0, prefix, next_hop: Some(next_hop) }]
            }
            _ => replay::removed_and_added(&routes, changes.max(1), self.plan.batch, run as u64),
        };
        let plan = replay::Plan { batch: self.plan.batch, readers, idle: dwell, ..replay::Plan::default() };
        replay::replay(table, &steps, &plan, |_, _| {})
    }

    /// Builds every contestant from a generated table.
    fn build_all(&mut self, mut tell: impl FnMut(usize, &str)) -> Result<(), Box<dyn Error>> {
        let routes = self.plan.build_routes;
        if routes == 0 {
            return Ok(());
        }
        let spec = if K::BITS == 32 { TableSpec::ipv4() } else { TableSpec::ipv6() };
        let generated = generate::<K>(&TableSpec { routes, ..spec }, &Profile::of::<K>())?;
        let generated = RouteSlice::new(&generated)?;
        for (number, one) in self.contestants.iter().enumerate() {
            tell(number, &one.name);
            let row = self.row(number, RowSubject::Build, routes, routes);
            match contestant::build(one, &generated) {
                Ok(built) => built.times.iter().for_each(|time| self.rows[row].add(time.as_secs_f64() * 1e3)),
                Err(error) => self.rows[row].error = Some(error),
            }
        }
        Ok(())
    }
}

/// Adds long IPv6 routes below others, for room: `rte_fib6` counts more groups as reserved otherwise than it has, when routes
/// are removed and added in random order.
fn spare<K: TableKey>(routes: &mut Rib<K>, seed: u64) -> Result<(), RibError> {
    if K::BITS < SPARE_LEN {
        return Ok(());
    }
    let prefixes: Vec<Prefix<K>> = routes.iter().map(|route| route.prefix).collect();
    // One that nothing else has: a route that changes no answer is counted in another way.
    let most = routes.iter().map(|route| route.next_hop.id()).max().unwrap_or(0);
    let Some(next_hop) = NextHop::new(most + 1) else { return Ok(()) };
    let mut random = Random::new(seed);
    for _ in 0..prefixes.len() / 4 {
        let below = prefixes[random.below(prefixes.len() as u64) as usize];
        let host = K::from_bits(random.wide() >> (128 - u32::from(K::BITS)));
        let inside = below.addr().xor(host.and(below.last().xor(below.addr())));
        let prefix = Prefix::masked(inside, SPARE_LEN).expect("a length of the family");
        if routes.get(prefix).is_none() {
            routes.insert(Route::new(prefix, next_hop))?;
        }
    }
    Ok(())
}

impl ChangeTimes {
    fn add(&mut self, other: Self) {
        self.time += other.time;
        self.changes += other.changes;
        self.rebuilt += other.rebuilt;
    }
}

impl UpdateRow {
    /// Adds a run of changes.
    fn take(&mut self, done: ChangeTimes) {
        self.changes += done.changes;
        self.rebuilt += done.rebuilt;
        if done.changes > 0 {
            self.add(done.time.as_secs_f64() * 1e6 / done.changes as f64);
        }
    }
}

fn parts<K: TableKey>(change: Change<K>) -> (Prefix<K>, Option<NextHop>) {
    match change {
        Change::Insert(route) => (route.prefix, Some(route.next_hop)),
        Change::Remove(prefix) => (prefix, None),
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
