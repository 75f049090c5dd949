//! Replays recorded changes into a live table, beside threads that look addresses up, and measures both.

#[cfg(test)]
mod tests;

use core::hint::black_box;
use core::time::Duration;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use fibula::live::{Outcome, Pinned, Table, TableError, TableKey};
use fibula::net::{Change, IpPrefix, Key, NextHop, Prefix, Route};
use fibula::rib::DualRib;

use crate::random::Random;

/// A change, and when it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Microseconds since the first one.
    pub micros: u64,
    /// The prefix.
    pub prefix: IpPrefix,
    /// Its next hop from now on; `None` if it is removed.
    pub next_hop: Option<NextHop>,
}

/// How fast changes come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// As fast as they are made.
    Max,
    /// So many changes a second.
    PerSecond(f64),
    /// So many times as fast as they were recorded.
    Recorded(f64),
}

/// What to replay, and how.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How fast.
    pub rate: Rate,
    /// Changes in one call.
    pub batch: usize,
    /// Threads that look addresses up.
    pub readers: usize,
    /// Times that the changes are replayed; before each but the first, and after the last if there are several, the table
    /// is put back to what it was.
    pub loops: usize,
    /// Answers are compared with the routes every so many batches, of which what waits is published for that; 0 for never.
    pub verify: usize,
    /// How long readers are measured alone, before the changes.
    pub idle: Duration,
}

impl Default for Plan {
    /// As fast as possible, batches of 64, one reader, once, without comparisons.
    fn default() -> Self {
        Self { rate: Rate::Max, batch: 64, readers: 1, loops: 1, verify: 0, idle: Duration::from_millis(500) }
    }
}

/// What was replayed and measured.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Changes, no-ops and rebuilds.
    pub totals: Outcome,
    /// Calls.
    pub calls: usize,
    /// Seconds from the first change to the last.
    pub seconds: f64,
    /// Seconds that the writer spent in calls.
    pub busy_seconds: f64,
    /// Microseconds from the begin of a call until all its changes were visible: in half of the calls, and 99 % and 99.9 %
    /// of them, and in all.
    pub visible_micros: [f64; 4],
    /// Million lookups a second of each reader, while nothing changed.
    pub idle_mlps: Vec<f64>,
    /// The same, during the changes.
    pub busy_mlps: Vec<f64>,
    /// Answers that were compared, and those that were wrong.
    pub verified: usize,
    /// See [`verified`](Self::verified).
    pub wrong: usize,
}

impl Report {
    /// Returns the route changes a second; what changed nothing does not count.
    #[must_use]
    pub fn changes_per_second(&self) -> f64 {
        self.totals.changed as f64 / self.seconds
    }

    /// Returns the route changes for each second of the writer's calls.
    #[must_use]
    pub fn changes_per_busy_second(&self) -> f64 {
        self.totals.changed as f64 / self.busy_seconds
    }

    /// Returns how much less readers made during the changes, from 0 to 1.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let [idle, busy] = [&self.idle_mlps, &self.busy_mlps].map(|rates| rates.iter().sum::<f64>());
        (idle > 0.0).then_some(1.0 - busy / idle)
    }
}

/// Replays `steps` into the table. `told` hears how many calls are done, of how many.
///
/// # Errors
/// When the table refuses a change, or a step's batch is empty.
pub fn replay(
    table: &Table,
    steps: &[Step],
    plan: &Plan,
    mut told: impl FnMut(usize, usize),
) -> Result<Report, Box<dyn Error>> {
    if plan.batch == 0 || plan.loops == 0 {
        return Err("a batch has at least one change, and a replay one loop".into());
    }
    let before = table.routes()?;
    let restore = if plan.loops > 1 { restore(&before, steps) } else { Vec::new() };
    let passes = if plan.loops == 1 { 1 } else { 2 * plan.loops };
    let calls_of = |steps: &[Step]| steps.len().div_ceil(plan.batch);
    let all_calls = plan.loops * calls_of(steps) + (passes - plan.loops) * calls_of(&restore);
    let keys = keys(&before, steps);
    let mut verifier = (plan.verify > 0).then(|| Verifier { ribs: before.clone(), random: Random::new(1) });
    let (stop, counts) = (AtomicBool::new(false), counters(plan.readers));
    let mut report = Report::default();
    let mut outcome = Ok(());
    thread::scope(|scope| {
        for (number, count) in counts.iter().enumerate() {
            let (stop, keys) = (&stop, &keys);
            scope.spawn(move || read(table, keys, (number, plan.readers), stop, count));
        }
        if plan.readers > 0 {
            thread::sleep(Duration::from_millis(20));
            let (rates, ()) = measured(&counts, || thread::sleep(plan.idle));
            report.idle_mlps = rates;
        }
        let mut writer = Writer::new(table, plan, &mut report);
        let work = || -> Result<(), Box<dyn Error>> {
            for pass in 0..passes {
                let (steps, rate) =
                    if pass % 2 == 0 { (steps, plan.rate) } else { (&restore[..], back(plan.rate)) };
                writer.pass(steps, rate, verifier.as_mut(), &mut |calls| told(calls, all_calls))?;
            }
            Ok(writer.finish()?)
        };
        let start = Instant::now();
        let (rates, worked) = measured(&counts, work);
        report.seconds = start.elapsed().as_secs_f64();
        if plan.readers > 0 {
            report.busy_mlps = rates;
        }
        outcome = worked;
        stop.store(true, Ordering::Relaxed);
    });
    outcome.map(|()| report)
}

/// Returns the rate at which the table is put back.
fn back(rate: Rate) -> Rate {
    match rate {
        Rate::Recorded(_) => Rate::Max,
        rate => rate,
    }
}

/// Returns batches of so many random routes, each batch removed and then added again, of so many changes in all or a few
/// more.
#[must_use]
pub fn removed_and_added(
    routes: &[(IpPrefix, NextHop)],
    changes: usize,
    batch: usize,
    seed: u64,
) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut steps = Vec::with_capacity(changes + 2 * batch);
    while steps.len() < changes && !routes.is_empty() {
        let some: Vec<_> = (0..batch).map(|_| routes[random.below(routes.len() as u64) as usize]).collect();
        let step = |prefix, next_hop| Step { micros: 0, prefix, next_hop };
        steps.extend(some.iter().map(|&(prefix, _)| step(prefix, None)));
        steps.extend(some.iter().map(|&(prefix, next_hop)| step(prefix, Some(next_hop))));
    }
    steps
}

/// Returns the steps that put the table back to what it was.
fn restore(before: &DualRib, steps: &[Step]) -> Vec<Step> {
    let touched: BTreeMap<IpPrefix, ()> = steps.iter().map(|step| (step.prefix, ())).collect();
    touched.into_keys().map(|prefix| Step { micros: 0, prefix, next_hop: before.get(prefix) }).collect()
}

/// A counter on a cache line of its own.
#[repr(align(128))]
struct CounterLine(AtomicU64);

fn counters(readers: usize) -> Vec<CounterLine> {
    (0..readers).map(|_| CounterLine(AtomicU64::new(0))).collect()
}

/// Returns what each reader makes while `work` lasts.
fn measured<R>(counts: &[CounterLine], work: impl FnOnce() -> R) -> (Vec<f64>, R) {
    let now = || counts.iter().map(|count| count.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let (start, before) = (Instant::now(), now());
    let result = work();
    let (seconds, after) = (start.elapsed().as_secs_f64(), now());
    let rates = before.iter().zip(&after).map(|(before, after)| (after - before) as f64 / seconds / 1e6);
    (rates.collect(), result)
}

/// Keys that readers look up.
struct LookedUp {
    v4: Vec<u32>,
    v6: Vec<u128>,
}

/// Number of keys of a family.
const KEYS: usize = 1 << 18;

/// Keys in one call of a reader.
const READ: usize = 256;

/// Returns random addresses of random routes, of the families that change.
fn keys(ribs: &DualRib, steps: &[Step]) -> LookedUp {
    let mut random = Random::new(7);
    let has = |v4: bool| steps.iter().any(|step| matches!(step.prefix, IpPrefix::V4(_)) == v4);
    let mut v4: Vec<Prefix<u32>> = ribs.v4.iter().map(|route| route.prefix).filter(|_| has(true)).collect();
    let mut v6: Vec<Prefix<u128>> = ribs.v6.iter().map(|route| route.prefix).filter(|_| has(false)).collect();
    for step in steps {
        match step.prefix {
            IpPrefix::V4(prefix) => v4.push(prefix),
            IpPrefix::V6(prefix) => v6.push(prefix),
        }
    }
    LookedUp { v4: inside(&v4, &mut random), v6: inside(&v6, &mut random) }
}

fn inside<K: TableKey>(prefixes: &[Prefix<K>], random: &mut Random) -> Vec<K> {
    if prefixes.is_empty() {
        return Vec::new();
    }
    let key = |_| {
        let prefix = prefixes[random.below(prefixes.len() as u64) as usize];
        let bits = random.wide() >> (128 - u32::from(K::BITS));
        prefix.addr().xor(K::from_bits(bits).and(prefix.last().xor(prefix.addr())))
    };
    (0..KEYS).map(key).collect()
}

/// Looks up until it is told to stop, from a part of the keys on that is this reader's.
fn read(table: &Table, keys: &LookedUp, part: (usize, usize), stop: &AtomicBool, count: &CounterLine) {
    // Without memory for a reader, its rate is 0.
    let Ok(mut reader) = table.reader() else { return };
    if keys.v4.is_empty() && keys.v6.is_empty() {
        return;
    }
    let mut pin = reader.pin();
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        read_once(&mut pin, &keys.v4, part, count, &mut done);
        read_once(&mut pin, &keys.v6, part, count, &mut done);
    }
}

/// Looks each key up once.
fn read_once<K: TableKey>(
    pin: &mut Pinned<'_>,
    keys: &[K],
    (part, parts): (usize, usize),
    count: &CounterLine,
    done: &mut u64,
) {
    let mut found = [None::<NextHop>; READ];
    let (later, first) = keys.split_at(keys.len() / parts * part);
    for keys in first.chunks(READ).chain(later.chunks(READ)) {
        pin.lookup_batch(keys, &mut found[..keys.len()]);
        black_box(&mut found);
        pin.refresh();
        *done += keys.len() as u64;
        count.0.store(*done, Ordering::Relaxed);
    }
}

/// The thread that changes the table.
struct Writer<'a> {
    table: &'a Table,
    plan: &'a Plan,
    /// Batches that were applied.
    batches: usize,
    /// When the calls began whose changes wait.
    waiting: Vec<Instant>,
    /// Microseconds until the changes of each call were visible.
    visible: Vec<f32>,
    report: &'a mut Report,
}

impl<'a> Writer<'a> {
    fn new(table: &'a Table, plan: &'a Plan, report: &'a mut Report) -> Self {
        Self { table, plan, batches: 0, waiting: Vec::new(), visible: Vec::new(), report }
    }

    fn pass(
        &mut self,
        steps: &[Step],
        rate: Rate,
        mut verifier: Option<&mut Verifier>,
        told: &mut dyn FnMut(usize),
    ) -> Result<(), Box<dyn Error>> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        let (start, mut done) = (Instant::now(), 0);
        let mut rest = steps;
        while !rest.is_empty() {
            let due = match rate {
                Rate::Max => 0.0,
                Rate::PerSecond(rate) => done as f64 / rate,
                Rate::Recorded(speed) => rest[0].micros as f64 / 1e6 / speed,
            };
            wait_until(start, due);
            // Of a recorded feed, what is due by now.
            let now = start.elapsed().as_secs_f64();
            let is_due = |step: &&Step| match rate {
                Rate::Recorded(speed) => step.micros as f64 / 1e6 / speed <= now,
                _ => true,
            };
            let some;
            (some, rest) = rest.split_at(rest.iter().take(self.plan.batch).take_while(is_due).count().max(1));
            v4.clear();
            v6.clear();
            for step in some {
                match step.prefix {
                    IpPrefix::V4(prefix) => v4.push(change(prefix, step.next_hop)),
                    IpPrefix::V6(prefix) => v6.push(change(prefix, step.next_hop)),
                }
            }
            self.apply(&v4)?;
            self.apply(&v6)?;
            done += some.len();
            if let Some(verifier) = verifier.as_deref_mut() {
                verifier.ribs.v4.apply(&v4)?;
                verifier.ribs.v6.apply(&v6)?;
                self.batches += 1;
                if self.batches.is_multiple_of(self.plan.verify) {
                    self.flush()?;
                    let (compared, wrong) = verifier.compare(self.table, some)?;
                    self.report.verified += compared;
                    self.report.wrong += wrong;
                }
            }
            told(self.report.calls);
        }
        Ok(())
    }

    fn apply<K: TableKey>(&mut self, changes: &[Change<K>]) -> Result<(), TableError> {
        if changes.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let outcome = self.table.apply(changes)?;
        self.report.calls += 1;
        self.waiting.push(start);
        self.done(start, outcome);
        Ok(())
    }

    /// Publishes what waits.
    fn flush(&mut self) -> Result<(), TableError> {
        if !self.waiting.is_empty() {
            let start = Instant::now();
            let outcome = self.table.flush()?;
            self.done(start, outcome);
        }
        Ok(())
    }

    /// Counts what a call has done.
    fn done(&mut self, start: Instant, outcome: Outcome) {
        let now = Instant::now();
        self.report.busy_seconds += (now - start).as_secs_f64();
        if outcome.waiting == 0 {
            let micros = |start: Instant| ((now - start).as_secs_f64() * 1e6) as f32;
            self.visible.extend(self.waiting.drain(..).map(micros));
        }
        let totals = &mut self.report.totals;
        totals.changed += outcome.changed;
        totals.unchanged += outcome.unchanged;
        totals.absent += outcome.absent;
        totals.rebuilt += outcome.rebuilt;
        totals.version = outcome.version;
        totals.retired_bytes = outcome.retired_bytes;
    }

    fn finish(&mut self) -> Result<(), TableError> {
        self.flush()?;
        self.visible.sort_by(f32::total_cmp);
        let last = self.visible.len().saturating_sub(1);
        let at = |share: f64| self.visible.get((last as f64 * share) as usize).copied().unwrap_or(0.0).into();
        self.report.visible_micros = [0.5, 0.99, 0.999, 1.0].map(at);
        Ok(())
    }
}

/// Returns the change that gives a prefix this next hop, or removes it.
pub fn change<K: Key>(prefix: Prefix<K>, next_hop: Option<NextHop>) -> Change<K> {
    next_hop.map_or(Change::Remove(prefix), |next_hop| Change::Insert(Route::new(prefix, next_hop)))
}

/// Waits until so many seconds after the start: asleep while there is time, then spinning.
fn wait_until(start: Instant, seconds: f64) {
    loop {
        let left = seconds - start.elapsed().as_secs_f64();
        if left <= 0.0 {
            return;
        }
        if left > 2e-3 {
            thread::sleep(Duration::from_secs_f64(left - 1e-3));
        } else {
            core::hint::spin_loop();
        }
    }
}

/// The routes as they must be.
struct Verifier {
    ribs: DualRib,
    random: Random,
}

/// Addresses that are compared beside those of the changes.
const COMPARED: usize = 64;

impl Verifier {
    /// Compares answers at the ends of the prefixes of these steps and at random addresses. Returns how many were compared,
    /// and how many were wrong.
    fn compare(&mut self, table: &Table, steps: &[Step]) -> Result<(usize, usize), TableError> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for step in steps {
            match step.prefix {
                IpPrefix::V4(prefix) => v4.extend([prefix.addr(), prefix.last()]),
                IpPrefix::V6(prefix) => v6.extend([prefix.addr(), prefix.last()]),
            }
        }
        v4.extend((0..COMPARED).map(|_| self.random.word() as u32));
        v6.extend((0..COMPARED).map(|_| u128::from(self.random.word()) << 64 | 1 << 125));
        let mut reader = table.reader()?;
        let pin = reader.pin();
        let mut found = vec![None; v4.len().max(v6.len())];
        pin.lookup_batch(&v4, &mut found[..v4.len()]);
        let wrong4 =
            v4.iter().zip(&found).filter(|&(&key, &found)| self.ribs.v4.lookup(key) != found).count();
        pin.lookup_batch(&v6, &mut found[..v6.len()]);
        let wrong6 =
            v6.iter().zip(&found).filter(|&(&key, &found)| self.ribs.v6.lookup(key) != found).count();
        Ok((v4.len() + v6.len(), wrong4 + wrong6))
    }
}
