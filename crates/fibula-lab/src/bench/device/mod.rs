//! Lookups shared with a coprocessor: `fibula-lab device`, and figures of the Bloomfwd paper.
//!
//! The laboratory knows no device: the caller supplies one ([`Coprocessor`]). All forms and sizes of buffers of an engine take turns
//! in each run, with the same addresses, and every answer is compared with the oracle's before, in the same form. Rates are by
//! wall-clock time from the addresses in the program's memory to the answers there, so that transfers always count; only the form
//! `resident`, which is named so, leaves both on the device.

mod row;

use std::time::Instant;

use fibula::fib::Fib;
use fibula::fib::registry::Engine;
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Routes};
use fibula::simd;
use fibula_workload::interval::Interval;

use super::key_sets::{Judges, Traffic, answers};
use super::lane::round;
use super::plan::PlanError;
use super::runner::{BenchError, Progress};

pub use row::{DeviceForm, DevicePlan, DeviceRecord, DeviceRow};

/// Properties of a coprocessor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Its name in options: `cuda:0`.
    pub id: String,
    /// Its driver's name for it.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// Whether it is the processor itself.
    pub is_processor: bool,
}

/// A coprocessor.
pub trait Coprocessor<K: Key> {
    /// Returns its properties.
    fn facts(&self) -> Facts;

    /// Sends it an engine.
    ///
    /// # Errors
    /// When it does not look up in such engines, has too little memory or fails.
    fn upload<'a>(&self, fib: &'a dyn Fib<K>, engine: &str) -> Result<Box<dyn OnDevice<K> + 'a>, String>;
}

/// An engine on a coprocessor and on the processor.
pub trait OnDevice<K: Key> {
    /// Looks up addresses, and returns the share of them that the device looked up.
    ///
    /// # Errors
    /// When the device fails.
    fn lookup(&mut self, way: DeviceMode, keys: &[K], results: &mut [Option<NextHop>])
    -> Result<f64, String>;

    /// Leaves addresses on the device, as many as a buffer has.
    ///
    /// # Errors
    /// When the device has too little memory or fails.
    fn leave(&mut self, keys: &[K]) -> Result<(), String>;

    /// Looks up so often the addresses that were left, and leaves the answers on the device.
    ///
    /// # Errors
    /// When the device fails.
    fn again(&mut self, times: usize) -> Result<(), String>;
}

/// How addresses are looked up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceMode {
    /// Who looks up. Not [`DeviceForm::Resident`].
    pub form: DeviceForm,
    /// Addresses of a buffer.
    pub buffer: usize,
    /// Threads of the processor.
    pub threads: usize,
    /// The share of the device where both look up; `None` for a share that is measured on the way.
    pub share: Option<f64>,
}

/// One form with one size of buffers.
struct DeviceLane {
    way: DeviceMode,
    /// Lookups a second, as far as is known.
    pace: f64,
    share: f64,
    wrong: usize,
    error: Option<String>,
    runs: Vec<f64>,
}

/// Measures engines on a device, on the processor and on both.
///
/// # Errors
/// When the plan cannot be carried out, or the judge cannot be built.
pub fn run<K: Key>(
    plan: &DevicePlan,
    routes: &dyn Routes<K>,
    engines: &[Engine<K>],
    device: &dyn Coprocessor<K>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<DeviceRow>, BenchError> {
    check(plan)?;
    let judges = Judges::new(routes)?;
    let (begin, mut done) = (Instant::now(), 0);
    let total = engines.len() * plan.traffic.len();
    let mut rows = Vec::new();
    for traffic in &plan.traffic {
        let traffic = Traffic::new(traffic, plan.keys, plan.seed, routes)?;
        let expected = answers(judges.first.1.as_ref(), &traffic.keys);
        for engine in engines {
            let left = begin.elapsed().mul_f64((total - done) as f64 / done.max(1) as f64);
            progress(Progress { done, total, step: engine.name, left });
            done += 1;
            let seconds = plan.seconds / total as f64;
            rows.extend(measure(plan, routes, engine, device, &traffic, &expected, seconds));
        }
    }
    Ok(rows)
}

fn check(plan: &DevicePlan) -> Result<(), BenchError> {
    let wrong = |text| Err(BenchError::Plan(PlanError(text)));
    match plan {
        _ if plan.buffers.is_empty() || plan.buffers.contains(&0) => {
            wrong("a buffer must hold at least one key")
        }
        _ if plan.threads == 0 => wrong("the processor needs at least one thread"),
        _ if plan.forms.is_empty() || plan.traffic.is_empty() => {
            wrong("at least one form and one kind of traffic is needed")
        }
        _ if plan.runs == 0 || plan.keys == 0 => wrong("at least one run and one key is needed"),
        _ => Ok(()),
    }
}

/// Measures one engine with one kind of traffic.
fn measure<K: Key>(
    plan: &DevicePlan,
    routes: &dyn Routes<K>,
    engine: &Engine<K>,
    device: &dyn Coprocessor<K>,
    traffic: &Traffic<K>,
    expected: &[Option<NextHop>],
    seconds: f64,
) -> Vec<DeviceRow> {
    let blank =
        |error: Option<String>| DeviceRow { error, ..blank(plan, routes, engine.name, device, traffic) };
    let fib = match engine.build(routes, Limits::default()) {
        Ok(fib) => fib,
        Err(error) => return vec![blank(Some(error.to_string()))],
    };
    let sent = Instant::now();
    let mut table = match device.upload(&*fib, engine.name) {
        Ok(table) => table,
        Err(error) => return vec![blank(Some(error))],
    };
    let upload_ms = round(sent.elapsed().as_secs_f64() * 1e3, 5);
    let mut lanes = lanes(plan);
    let mut results = vec![None; traffic.keys.len()];
    for lane in &mut lanes {
        check_lane(lane, &mut *table, &traffic.keys, expected, &mut results);
    }
    let slot = seconds / (lanes.len() * plan.runs).max(1) as f64;
    for run in 0..plan.runs {
        for number in 0..lanes.len() {
            // Every run begins with another one.
            let at = (number + run * lanes.len() / plan.runs) % lanes.len();
            time_lane(&mut lanes[at], &mut *table, &traffic.keys, &mut results, slot);
        }
    }
    let alone =
        lanes.iter().find(|lane| lane.way.form == DeviceForm::Processor).map(|lane| lane.runs.clone());
    let memory = fib.memory();
    lanes
        .into_iter()
        .map(|lane| {
            let on_device = lane.way.form != DeviceForm::Processor;
            let mut row = DeviceRow {
                form: lane.way.form,
                batch: if on_device { lane.way.buffer } else { BATCH },
                threads: lane.way.threads,
                share: lane.error.is_none().then(|| round(lane.share, 4)),
                lookup_bytes: Some(memory.lookup_bytes),
                bytes_per_prefix: Some(round(memory.lookup_bytes as f64 / routes.len().max(1) as f64, 4)),
                upload_ms: on_device.then_some(upload_ms),
                wrong: lane.wrong,
                ..blank(lane.error.clone())
            };
            row.fill(&lane.runs);
            row.compare(alone.as_ref().and_then(|alone| Interval::of_ratios(&lane.runs, alone)));
            row
        })
        .collect()
}

/// Addresses of a call on the processor.
pub const BATCH: usize = 256;

fn lanes(plan: &DevicePlan) -> Vec<DeviceLane> {
    let mut lanes = Vec::new();
    for &form in &plan.forms {
        let buffers = if form.has_buffers() { &plan.buffers[..] } else { &plan.buffers[..1] };
        for &buffer in buffers {
            let both = matches!(
                form,
                DeviceForm::Processor | DeviceForm::BothSynchronous | DeviceForm::BothAsynchronous
            );
            let way = DeviceMode { form, buffer, threads: if both { plan.threads } else { 0 }, share: None };
            let share = if form == DeviceForm::Processor { 0.0 } else { 1.0 };
            lanes.push(DeviceLane { way, pace: 1.0, share, wrong: 0, error: None, runs: Vec::new() });
        }
    }
    lanes
}

/// Looks all keys up as the timed runs will, and compares the answers.
fn check_lane<K: Key>(
    lane: &mut DeviceLane,
    table: &mut dyn OnDevice<K>,
    keys: &[K],
    expected: &[Option<NextHop>],
    results: &mut [Option<NextHop>],
) {
    let begin = Instant::now();
    results.fill(NextHop::new(u32::MAX));
    // Answers that stay on the device cannot be compared: those of the same kernel that come back are.
    let way = match lane.way.form {
        DeviceForm::Resident => DeviceMode { form: DeviceForm::Synchronous, ..lane.way },
        _ => lane.way,
    };
    match table.lookup(way, keys, results) {
        Ok(share) => lane.share = share,
        Err(error) => lane.error = Some(error),
    }
    lane.wrong = results.iter().zip(expected).filter(|(found, right)| found != right).count();
    if lane.error.is_some() {
        lane.wrong = 0;
    }
    lane.pace = keys.len() as f64 / begin.elapsed().as_secs_f64().max(1e-9);
}

fn time_lane<K: Key>(
    lane: &mut DeviceLane,
    table: &mut dyn OnDevice<K>,
    keys: &[K],
    results: &mut [Option<NextHop>],
    slot: f64,
) {
    if lane.error.is_some() {
        return;
    }
    let resident = lane.way.form == DeviceForm::Resident;
    let of_buffer = &keys[..keys.len().min(lane.way.buffer)];
    let keys = if resident { of_buffer } else { keys };
    let passes = ((lane.pace * slot / keys.len() as f64) as usize).max(1);
    let timed = || -> Result<f64, String> {
        if resident {
            table.leave(keys)?;
            table.again(1)?;
            let begin = Instant::now();
            table.again(passes)?;
            return Ok(begin.elapsed().as_secs_f64());
        }
        let begin = Instant::now();
        for _ in 0..passes {
            table.lookup(lane.way, core::hint::black_box(keys), results)?;
            core::hint::black_box(&mut *results);
        }
        Ok(begin.elapsed().as_secs_f64())
    };
    let mut timed = timed;
    match timed() {
        Ok(spent) => {
            lane.pace = (keys.len() * passes) as f64 / spent.max(1e-9);
            lane.runs.push(round(lane.pace / 1e6, 5));
        }
        Err(error) => lane.error = Some(error),
    }
}

fn blank<K: Key>(
    plan: &DevicePlan,
    routes: &dyn Routes<K>,
    engine: &str,
    device: &dyn Coprocessor<K>,
    traffic: &Traffic<K>,
) -> DeviceRow {
    let Facts { id, name, driver, is_processor } = device.facts();
    DeviceRow {
        engine: engine.to_owned(),
        rival: false,
        family: K::FAMILY.name().to_owned(),
        traffic: traffic.name.clone(),
        batch: plan.buffers[0],
        threads: 0,
        isa: simd::chosen().isa().name().to_owned(),
        device: id,
        device_name: name,
        driver,
        device_is_processor: is_processor,
        form: DeviceForm::Synchronous,
        share: None,
        mlps_median: None,
        mlps_min: None,
        mlps_max: None,
        over_processor: None,
        lookup_bytes: None,
        bytes_per_prefix: None,
        upload_ms: None,
        wrong: 0,
        error: None,
        routes: routes.len(),
        keys: traffic.keys.len(),
        mlps_runs: Vec::new(),
    }
}
