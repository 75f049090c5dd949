//! Ways to divide lookups among threads: `fibula-lab schedule`.
//!
//! | form | which keys a thread looks up | threads |
//! |---|---|---|
//! | `static` | every thread its own share of the keys | started by hand |
//! | `dynamic` | whoever is free takes the next chunk, by adding to a counter | started by hand |
//! | `rayon` | chunks that a data-parallel run-time divides and steals | of a pool that is there before the clock starts |
//!
//! The Bloomfwd paper schedules dynamically, with chunks from one address up (section 4.3); a chunk as long as a vector or a batch
//! is one call. The multibit-trie router paper compares threads started by hand with a data-parallel run-time.
//!
//! Threads are pinned, one to a core, where the system allows it; a core can be left to the thread that manages them. All forms,
//! chunks and numbers of threads of all engines take turns in each run, with the same keys, and every answer is checked
//! before, in the same form. Rates are by wall-clock time. Where there are too few cores, a row says so.

mod crew;
mod row;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fibula::fib::Fib;
use fibula::net::{Key, NextHop, Routes};
use fibula::simd;
use fibula_workload::interval::Interval;

use super::contestant::{self, Contestant};
use super::key_sets::{Judges, Traffic, answers};
use super::lane::round;
use super::native::Structure;
use super::plan::PlanError;
use super::runner::{BenchError, Progress};
use crew::WorkerPool;

pub use row::{Division, SchedulePlan, ScheduleRecord, ScheduleRow};

/// The fewest lookups of a run.
const LOOKUPS_MIN: usize = 4096;

/// One engine in one form, with one size of chunks and one number of threads.
struct ScheduleLane {
    structure: usize,
    form: Division,
    chunk: usize,
    threads: usize,
    /// Lookups a second, as far as is known.
    pace: f64,
    wrong: usize,
    runs: Vec<f64>,
}

/// Measures all forms with these engines and this table, on the cores there are.
///
/// # Errors
/// When the plan cannot be carried out, or the judge cannot be built.
pub fn run<K: Key>(
    plan: &SchedulePlan,
    routes: &dyn Routes<K>,
    contestants: &[Contestant<K>],
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<ScheduleRow>, BenchError> {
    plan.check()?;
    let cores = crew::cores(plan.reserve);
    let traffic = Traffic::new(&plan.traffic, plan.keys, plan.seed, routes)?;
    let judges = Judges::new(routes)?;
    let begin = std::time::Instant::now();
    let (mut done, mut total) = (0, contestants.len());
    let mut step = |total: usize, text: &str| {
        let share = (total - done.min(total)) as f64 / done.max(1) as f64;
        let left = begin.elapsed().mul_f64(share.min(1e6));
        progress(Progress { done, total, step: text, left });
        done += 1;
    };
    let mut built = Vec::new();
    for contestant in contestants {
        step(total, &contestant.name);
        let of_ours = |built: contestant::Built<K>| match built.structure {
            Structure::Fib(fib) => Ok(fib),
            Structure::Native(_) => Err("rivals are not scheduled".to_owned()),
        };
        built.push(contestant::build(contestant, routes).and_then(of_ours));
    }

    let mut lanes = lanes(plan, &built, cores.len());
    total += lanes.len() * (plan.runs + 1);
    let crews = crews(plan, &cores);
    let expected = answers(judges.first.1.as_ref(), &traffic.keys);
    let keys_of = |lane: &ScheduleLane| {
        let limit = contestants[lane.structure].keys_limit(routes.len());
        &traffic.keys[..traffic.keys.len().min(limit)]
    };
    for lane in &mut lanes {
        let Ok(fib) = &built[lane.structure] else { continue };
        step(total, &contestants[lane.structure].name);
        let keys = keys_of(lane);
        let crew = &crews[&lane.threads];
        let (wrong, spent) = check(crew, lane, plan.batch, fib.as_ref(), keys, &expected[..keys.len()]);
        (lane.wrong, lane.pace) = (wrong, keys.len() as f64 / spent.as_secs_f64().max(1e-9));
    }
    let slot = plan.seconds / (lanes.len() * plan.runs).max(1) as f64;
    for run in 0..plan.runs {
        for number in 0..lanes.len() {
            // Every run begins with another one.
            let at = (number + run * lanes.len() / plan.runs) % lanes.len();
            let lane = &mut lanes[at];
            let Ok(fib) = &built[lane.structure] else { continue };
            step(total, &contestants[lane.structure].name);
            let keys = keys_of(lane);
            let wanted = ((lane.pace * slot) as usize).max(LOOKUPS_MIN.min(keys.len()));
            let (keys, passes) = match wanted.checked_div(keys.len()) {
                None | Some(0) => (&keys[..wanted.min(keys.len())], 1),
                Some(passes) => (keys, passes),
            };
            let crew = &crews[&lane.threads];
            // An untimed pass fills the caches.
            time(crew, lane, plan.batch, fib.as_ref(), keys, 1);
            let spent = time(crew, lane, plan.batch, fib.as_ref(), keys, passes).as_secs_f64();
            lane.pace = (keys.len() * passes) as f64 / spent.max(1e-9);
            lane.runs.push(round(lane.pace / 1e6, 5));
        }
    }
    Ok(rows(plan, routes, contestants, &built, &lanes, cores.len()))
}

/// Returns the lanes: one for each engine, form, chunk and number of threads for which there are cores.
fn lanes<K: Key>(
    plan: &SchedulePlan,
    built: &[Result<Box<dyn Fib<K>>, String>],
    cores: usize,
) -> Vec<ScheduleLane> {
    let mut lanes = Vec::new();
    for structure in (0..built.len()).filter(|&at| built[at].is_ok()) {
        for &threads in plan.threads.iter().filter(|&&threads| threads <= cores) {
            for (form, chunk) in plan.ways() {
                let (pace, wrong, runs) = (1.0, 0, Vec::new());
                lanes.push(ScheduleLane { structure, form, chunk, threads, pace, wrong, runs });
            }
        }
    }
    lanes
}

fn crews(plan: &SchedulePlan, cores: &[usize]) -> std::collections::BTreeMap<usize, WorkerPool> {
    let there = plan.threads.iter().filter(|&&threads| threads <= cores.len());
    there.map(|&threads| (threads, WorkerPool::new(&cores[..threads]))).collect()
}

/// Looks up a piece of the keys as one call, or several if it is longer than a batch.
#[inline]
fn look_up<K: Key>(fib: &dyn Fib<K>, batch: usize, keys: &[K], results: &mut [Option<NextHop>]) {
    if let ([key], [result]) = (keys, &mut *results) {
        *result = fib.lookup_key(*key);
        return;
    }
    let isa = simd::chosen();
    for (keys, results) in keys.chunks(batch).zip(results.chunks_mut(batch)) {
        fib.lookup_batch_on(isa, keys, results);
    }
}

fn time<K: Key>(
    crew: &WorkerPool,
    lane: &ScheduleLane,
    batch: usize,
    fib: &dyn Fib<K>,
    keys: &[K],
    passes: usize,
) -> Duration {
    let room = piece(lane, batch);
    crew.run(
        lane.form,
        lane.chunk,
        (keys.len(), passes),
        &|| vec![None; room],
        &|results: &mut Vec<Option<NextHop>>, range| {
            for keys in core::hint::black_box(&keys[range]).chunks(room) {
                let results = &mut results[..keys.len()];
                look_up(fib, batch, keys, results);
                core::hint::black_box(results);
            }
        },
    )
}

/// Returns the most keys whose answers are kept at once.
fn piece(lane: &ScheduleLane, batch: usize) -> usize {
    if lane.form == Division::Static { batch } else { lane.chunk }
}

/// Looks all keys up as the timed runs will, and compares the answers.
fn check<K: Key>(
    crew: &WorkerPool,
    lane: &ScheduleLane,
    batch: usize,
    fib: &dyn Fib<K>,
    keys: &[K],
    expected: &[Option<NextHop>],
) -> (usize, Duration) {
    let (compared, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let spent = crew.run(
        lane.form,
        lane.chunk,
        (keys.len(), 1),
        &|| vec![None; piece(lane, batch)],
        &|results: &mut Vec<Option<NextHop>>, range| {
            let room = results.len();
            for (keys, expected) in keys[range.clone()].chunks(room).zip(expected[range].chunks(room)) {
                let results = &mut results[..keys.len()];
                // An answer left from the piece before must not count.
                results.fill(NextHop::new(u32::MAX));
                look_up(fib, batch, keys, results);
                let bad = results.iter().zip(expected).filter(|(found, expected)| found != expected).count();
                wrong.fetch_add(bad, Ordering::Relaxed);
                compared.fetch_add(keys.len(), Ordering::Relaxed);
            }
        },
    );
    // Keys that nobody looked up are wrong too.
    let (compared, wrong) = (compared.into_inner(), wrong.into_inner());
    (wrong + compared.abs_diff(keys.len()), spent)
}

fn rows<K: Key>(
    plan: &SchedulePlan,
    routes: &dyn Routes<K>,
    contestants: &[Contestant<K>],
    built: &[Result<Box<dyn Fib<K>>, String>],
    lanes: &[ScheduleLane],
    cores: usize,
) -> Vec<ScheduleRow> {
    let mut rows = Vec::new();
    for (structure, contestant) in contestants.iter().enumerate() {
        for &threads in &plan.threads {
            for (form, chunk) in plan.ways() {
                let mut row = ScheduleRow {
                    engine: contestant.name.clone(),
                    family: K::FAMILY.name().to_owned(),
                    traffic: plan.traffic.clone(),
                    form,
                    chunk,
                    batch: plan.batch,
                    threads,
                    pinned: crew::pins(),
                    reserved: plan.reserve,
                    isa: simd::chosen().isa().name().to_owned(),
                    mlps_median: None,
                    mlps_low: None,
                    mlps_high: None,
                    speedup: None,
                    speedup_low: None,
                    speedup_high: None,
                    wrong: 0,
                    error: built[structure].as_ref().err().cloned(),
                    routes: routes.len(),
                    mlps_runs: Vec::new(),
                };
                if row.error.is_none() && threads > cores {
                    row.error = Some(missing(threads, cores, plan.reserve));
                }
                let same = |lane: &&ScheduleLane, threads: usize| {
                    (lane.structure, lane.form, lane.chunk, lane.threads) == (structure, form, chunk, threads)
                };
                if let Some(lane) = lanes.iter().find(|lane| same(lane, threads)) {
                    row.fill(&lane.runs, lane.wrong);
                    let fewest = plan.threads.iter().copied().min().unwrap_or(threads);
                    let alone = lanes.iter().find(|lane| same(lane, fewest));
                    row.scale(alone.and_then(|alone| Interval::of_ratios(&lane.runs, &alone.runs)));
                }
                rows.push(row);
            }
        }
    }
    rows
}

/// Says why there is no figure.
fn missing(threads: usize, cores: usize, reserve: bool) -> String {
    let left = if reserve { " beside the one for the manager" } else { "" };
    let plural = if cores == 1 { "core" } else { "cores" };
    format!("takes {threads} cores, and this machine has {cores} {plural}{left}")
}

impl SchedulePlan {
    /// Returns the forms with their chunks; shares have no chunks.
    fn ways(&self) -> impl Iterator<Item = (Division, usize)> + '_ {
        self.forms.iter().flat_map(|&form| {
            let chunks = if form == Division::Static { &[0][..] } else { &self.chunks };
            chunks.iter().map(move |&chunk| (form, chunk))
        })
    }

    fn check(&self) -> Result<(), BenchError> {
        let wrong = |text| Err(BenchError::Plan(PlanError(text)));
        match self {
            _ if self.batch == 0 || self.chunks.contains(&0) => wrong("a batch must hold at least one key"),
            _ if self.threads.is_empty() || self.threads.contains(&0) => {
                wrong("the number of threads must be 1 to 4096")
            }
            _ if self.forms.is_empty() || self.chunks.is_empty() => {
                wrong("at least one schedule and one size of chunks is needed")
            }
            _ if self.runs == 0 || self.keys == 0 => wrong("at least one run and one key is needed"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use fibula::memory::Limits;
    use fibula::net::RouteSlice;

    use super::*;
    use fibula_workload::table::{Profile, TableSpec, generate};

    #[test]
    fn every_structure_answers_in_every_form_and_missing_cores_are_named() {
        let routes =
            generate::<u32>(&TableSpec { routes: 300, ..TableSpec::ipv4() }, &Profile::ipv4()).unwrap();
        let routes = RouteSlice::new(&routes).unwrap();
        let plan = SchedulePlan {
            chunks: vec![1, 7, 64],
            threads: vec![1, 4096],
            keys: 1000,
            runs: 2,
            seconds: 0.0,
            ..SchedulePlan::default()
        };
        let contestants = Contestant::all(Limits::default());
        let rows = run(&plan, &routes, &contestants, &mut |_| ()).unwrap();
        assert_eq!(rows.len(), contestants.len() * 2 * (1 + 2 * 3));
        assert!(rows.iter().all(|row| row.wrong == 0));
        let (there, missing): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.threads == 1);
        assert!(there.iter().all(|row| row.mlps_runs.len() == 2 && row.speedup == Some(1.0)));
        let says = |row: &&ScheduleRow| row.error.as_ref().unwrap().starts_with("takes 4096 cores, and this");
        assert!(missing.iter().all(says));
    }

    #[test]
    fn plans_that_cannot_be_carried_out_are_errors() {
        let routes = RouteSlice::<u32>::new(&[]).unwrap();
        let good = SchedulePlan::default();
        for plan in [
            SchedulePlan { batch: 0, ..good.clone() },
            SchedulePlan { chunks: vec![0], ..good.clone() },
            SchedulePlan { chunks: Vec::new(), ..good.clone() },
            SchedulePlan { threads: vec![0], ..good.clone() },
            SchedulePlan { forms: Vec::new(), ..good.clone() },
            SchedulePlan { keys: 0, ..good.clone() },
        ] {
            assert!(matches!(run(&plan, &routes, &[], &mut |_| ()), Err(BenchError::Plan(_))), "{plan:?}");
        }
    }
}
