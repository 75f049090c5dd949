//! Creates, pins and runs the threads that forward packets.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::open::Queues;
use super::{RunError, machine_error};
use crate::config::{Config, RunTime, Shape};
use crate::count::PortCounters;
use crate::forward::Worker;
use crate::io::Io;
use crate::io::ports::{Mailbox, Ports};
use crate::kernel::sys;
use crate::place::{Places, Topology};
use crate::stage::{self, Receive, Sleeper, Staged, Transmit};

/// How long a thread sleeps at most while something is to be tried again.
const BUSY: Duration = Duration::from_millis(1);
/// How long a thread sleeps at most if nothing is there. A frame ends the sleep, and so does the main thread.
const IDLE: Duration = Duration::from_millis(100);
const TICK_NS: u64 = 100_000_000;
/// Turns without a frame before a thread sleeps, if it has no descriptor to wait on.
const PATIENCE: u32 = 256;
const NAP: Duration = Duration::from_micros(50);
/// How long a thread tries to send the remaining frames when the router stops, and how long it goes on receiving at most.
const END_NS: u64 = 100_000_000;

type Outcome = Result<(), RunError>;

/// State shared by all threads.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) stop: Arc<AtomicBool>,
    /// Frames lost because the kernel had no free slot, by port.
    pub(super) lost: Arc<[AtomicU64]>,
}

impl Common {
    /// Returns whether the router has stopped. From then on, no frame comes that is not for it any more.
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// Parameters of the rings between stages.
pub(super) struct StageRings {
    pub(super) ports: Vec<stage::End>,
    pub(super) symmetric: bool,
}

/// A thread to start: its name and its main function.
pub(super) struct ThreadJob {
    name: String,
    run: Box<dyn FnOnce() -> Outcome + Send>,
}

impl ThreadJob {
    fn new(name: String, run: impl FnOnce() -> Outcome + Send + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// Ends the sleep of a thread.
#[derive(Debug)]
pub(super) enum Alarm {
    /// Of a thread that waits for descriptors.
    Mailbox(Arc<Mailbox>),
    /// Of a thread that waits for rings.
    Sleeper(Arc<Sleeper>),
}

impl Alarm {
    pub(super) fn ring(&self) {
        match self {
            Self::Mailbox(mailbox) => mailbox.ring(),
            Self::Sleeper(sleeper) => sleeper.wake(),
        }
    }
}

/// Makes a job for each thread: first the receivers, then the workers, then the senders. Appends the means to end their sleep to `alarms`.
///
/// # Errors
/// When there is no memory for the rings between them.
pub(super) fn jobs(
    shape: Shape,
    workers: Vec<Worker>,
    queues: Queues,
    rings: &StageRings,
    common: &Common,
    counters: &mut dyn FnMut() -> Arc<[PortCounters]>,
    alarms: &mut Vec<Alarm>,
) -> std::io::Result<Vec<ThreadJob>> {
    let mut queues = queues;
    alarms.extend(queues.mailboxes().cloned().map(Alarm::Mailbox));
    let (count, ports) = (workers.len(), rings.ports.len());
    let workers = workers.into_iter().enumerate();
    let mut jobs = Vec::new();
    match shape {
        Shape::Complete => {
            for ((number, worker), io) in workers.zip(queues.together()) {
                let common = common.clone();
                jobs.push(ThreadJob::new(format!("worker {number}"), move || {
                    complete(worker, io, &common, number == 0)
                }));
            }
        }
        Shape::Two { receive } => {
            let entrances = queues.take_entrances();
            let stages = stage::two(&rings.ports, [receive, count], rings.symmetric, counters)?;
            let (sources, sinks) = queues.apart();
            receivers(&mut jobs, stages.receive, sources, common);
            let workers = workers.zip(stages.workers).zip(sinks).zip(entrances);
            for ((((number, worker), mut ends), sinks), entrances) in workers {
                ends.set_entrances(entrances);
                alarms.push(Alarm::Sleeper(Arc::clone(ends.sleeper())));
                let common = common.clone();
                jobs.push(ThreadJob::new(format!("worker {number}"), move || {
                    let mut io = ends.direct(sinks);
                    let ready = |io: &mut Staged<stage::Direct<Ports>>| {
                        io.out().0.take_up();
                        true
                    };
                    let is_behind = |io: &mut Staged<stage::Direct<Ports>>| io.out().0.has_unsent();
                    look_up(worker, &mut io, (ready, is_behind), &common, (ports, number == 0));
                    send_rest(&mut io.out().0)
                }));
            }
        }
        Shape::Three { receive, send } => {
            let entrances = queues.take_entrances();
            let threads = [receive, count, send];
            let stages = stage::three(&rings.ports, threads, rings.symmetric, counters)?;
            let (sources, sinks) = queues.apart();
            // Frames from files wait until there is room, because a file loses nothing by waiting. Other frames are dropped
            // instead.
            let files = sources.iter().any(Ports::has_files);
            receivers(&mut jobs, stages.receive, sources, common);
            for (((number, worker), mut io), entrances) in workers.zip(stages.workers).zip(entrances) {
                io.set_entrances(entrances);
                alarms.push(Alarm::Sleeper(Arc::clone(io.sleeper())));
                let common = common.clone();
                jobs.push(ThreadJob::new(format!("worker {number}"), move || {
                    let ready = |io: &mut Staged<stage::Rings>| !files || io.out().has_room();
                    look_up(worker, &mut io, (ready, |_: &mut _| false), &common, (ports, number == 0));
                    Ok(())
                }));
            }
            for (number, (stage, io)) in stages.transmit.into_iter().zip(sinks).enumerate() {
                alarms.push(Alarm::Sleeper(Arc::clone(stage.sleeper())));
                let common = common.clone();
                jobs.push(ThreadJob::new(format!("sender {number}"), move || transmit(stage, io, &common)));
            }
        }
    }
    Ok(jobs)
}

fn receivers(jobs: &mut Vec<ThreadJob>, stages: Vec<Receive>, sources: Vec<Ports>, common: &Common) {
    for (number, (stage, io)) in stages.into_iter().zip(sources).enumerate() {
        let common = common.clone();
        jobs.push(ThreadJob::new(format!("receiver {number}"), move || receive(stage, io, &common)));
    }
}

/// Returns the processor of each thread, in the order of [`jobs`]. The list is empty if threads are not pinned.
pub(super) fn places(config: &Config) -> Vec<usize> {
    if !config.pin {
        return Vec::new();
    }
    let topology = Topology::read(Path::new("/sys/devices/system/cpu"), &sys::allowed_processors());
    let (receive, send) = match config.shape {
        Shape::Complete => (0, 0),
        Shape::Two { receive } => (receive, 0),
        Shape::Three { receive, send } => (receive, send),
    };
    let Places { receive, workers, transmit } = topology.assign(receive, config.threads, send);
    [receive, workers, transmit].concat()
}

/// Running threads.
#[derive(Debug, Default)]
pub(super) struct Threads(Vec<JoinHandle<Outcome>>);

impl Threads {
    /// Returns whether all have ended.
    pub(super) fn ended(&self) -> bool {
        self.0.iter().all(JoinHandle::is_finished)
    }

    /// Returns whether one has ended.
    pub(super) fn any_ended(&self) -> bool {
        self.0.iter().any(JoinHandle::is_finished)
    }

    /// Waits until all have ended.
    pub(super) fn join(self) -> Outcome {
        let mut outcome = Ok(());
        for thread in self.0 {
            let ended = thread.join().unwrap_or_else(|_| {
                Err(RunError::Config("a thread that forwards has panicked: please report it".into()))
            });
            outcome = outcome.and(ended);
        }
        outcome
    }
}

/// Starts a thread for each job.
pub(super) fn start(jobs: Vec<ThreadJob>, places: &[usize], run_time: RunTime) -> std::io::Result<Threads> {
    match run_time {
        RunTime::Threads => {
            let start = |(number, job): (usize, ThreadJob)| {
                let place = places.get(number).copied();
                std::thread::Builder::new().name(job.name).spawn(move || prepared(job.run, place))
            };
            jobs.into_iter().enumerate().map(start).collect::<std::io::Result<_>>().map(Threads)
        }
        RunTime::Rayon => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.len()).build();
            let pool = pool.map_err(std::io::Error::other)?;
            let places = places.to_vec();
            let jobs: Vec<_> = jobs.into_iter().map(|job| Mutex::new(Some(job.run))).collect();
            // `broadcast` returns when all jobs have ended, so it needs a thread of its own.
            let waits = std::thread::Builder::new().name("broadcast".into()).spawn(move || {
                sys::keep_capabilities(0).map_err(machine_error("dropping capabilities"))?;
                let outcomes = pool.broadcast(|context| {
                    let number = context.index();
                    let job = jobs[number].lock().unwrap_or_else(PoisonError::into_inner).take();
                    job.map_or(Ok(()), |job| prepared(job, places.get(number).copied()))
                });
                outcomes.into_iter().collect::<Outcome>()
            });
            Ok(Threads(vec![waits?]))
        }
    }
}

/// Runs a job on its processor and without capabilities, because everything that needs one is open.
fn prepared(job: Box<dyn FnOnce() -> Outcome + Send>, place: Option<usize>) -> Outcome {
    if let Some(processor) = place {
        // The processor may have been taken away since. Then the system chooses one.
        let _ = sys::run_on(processor);
    }
    sys::keep_capabilities(0).map_err(machine_error("dropping capabilities"))?;
    job()
}

/// Runs all stages in one thread: receives, looks up and sends.
fn complete(mut worker: Worker, mut io: Ports, common: &Common, first: bool) -> Outcome {
    let (mut next_tick, mut idle, mut stopped_ns) = (0, Idle::default(), None);
    loop {
        io.take_up();
        let (now_ns, is_stopped) = (sys::now_ns(), common.is_stopped());
        let mut received = 0;
        for port in 0..io.count() {
            received += worker.burst(&mut io, port, now_ns);
        }
        if now_ns >= next_tick {
            next_tick = now_ns + TICK_NS;
            // One worker keeps time for all, because neighbours are shared. Two of them would send requests twice.
            if first {
                worker.tick(&mut io, now_ns);
            }
            count_lost(&mut io, common);
        }
        let ended = received == 0 && io.ended() && worker.waiting() == 0;
        if ended || is_stopped && has_drained(&mut stopped_ns, received, now_ns) {
            break;
        }
        if io.is_polled() {
            // Some back ends have no descriptor to wait on.
            idle.turn_and_nap(received);
        } else if received == 0 {
            let is_busy = worker.waiting() > 0 || io.has_unsent();
            io.wait(if is_busy { BUSY } else { IDLE }.as_millis() as i32);
        }
    }
    count_lost(&mut io, common);
    send_rest(&mut io)?;
    read_to_end(&mut io)
}

/// Returns whether a thread of a router that has stopped has received all that came before, which is so after a pass over all ports without
/// a frame. A port that goes on bringing frames does not keep the router from stopping.
fn has_drained(stopped_ns: &mut Option<u64>, received: usize, now_ns: u64) -> bool {
    received == 0 || now_ns - *stopped_ns.get_or_insert(now_ns) > END_NS
}

/// Sends the frames for which a device or a port had no room yet, as long as it takes some, and writes what is buffered.
fn send_rest(io: &mut Ports) -> Outcome {
    let end_ns = sys::now_ns() + END_NS;
    while io.has_unsent() && sys::now_ns() < end_ns {
        io.finish();
        std::thread::sleep(NAP);
    }
    io.flush().map_err(machine_error("writing frames"))
}

fn count_lost(io: &mut Ports, common: &Common) {
    for (port, lost) in common.lost.iter().enumerate().take(io.count()) {
        lost.fetch_add(io.take_lost(port), Ordering::Relaxed);
    }
}

fn read_to_end(io: &mut Ports) -> Outcome {
    match io.take_error() {
        Some((file, error)) => Err(RunError::Pcap(file, error)),
        None => Ok(()),
    }
}

/// Runs the first stage. When it ends, it drops its rings, which ends the next stage.
fn receive(mut stage: Receive, mut io: Ports, common: &Common) -> Outcome {
    let files = io.has_files();
    let (mut next_tick, mut idle, mut stopped_ns) = (0, Idle::default(), None);
    loop {
        io.take_up();
        let is_stopped = common.is_stopped();
        let mut received = 0;
        for port in 0..io.count() {
            // A file waits until there is room. Other frames are dropped instead.
            if !files || stage.has_room(port) {
                received += stage.turn(&mut io, port);
            }
        }
        let now_ns = sys::now_ns();
        if now_ns >= next_tick {
            next_tick = now_ns + TICK_NS;
            count_lost(&mut io, common);
        }
        let ended = received == 0 && io.ended();
        if ended || is_stopped && has_drained(&mut stopped_ns, received, now_ns) {
            count_lost(&mut io, common);
            return read_to_end(&mut io);
        }
        if io.is_polled() {
            idle.turn_and_nap(received);
        } else if received == 0 {
            // A file that waits for room has no descriptor that says when there is some.
            io.wait(if files { BUSY } else { IDLE }.as_millis() as i32);
        }
    }
}

/// Runs the stage that looks up, until the first stage has ended and no packet waits for a neighbour. `ready` says whether there is room
/// for a burst behind it, and `is_behind` whether frames that it has sent wait for room.
fn look_up<O>(
    mut worker: Worker,
    io: &mut Staged<O>,
    (ready, is_behind): (impl Fn(&mut Staged<O>) -> bool, impl Fn(&mut Staged<O>) -> bool),
    common: &Common,
    (ports, first): (usize, bool),
) where
    Staged<O>: Io,
{
    let sleeper = Arc::clone(io.sleeper());
    let (mut next_tick, mut idle) = (0, Idle::default());
    loop {
        // Check before the burst. If the first stage has ended by now, all of its frames are in the rings, so the burst below
        // sees the last ones.
        let end = io.ended() && (worker.waiting() == 0 || common.is_stopped());
        let now_ns = sys::now_ns();
        let mut received = 0;
        for port in 0..ports {
            if ready(io) {
                received += worker.burst(io, port, now_ns);
            }
        }
        if first && now_ns >= next_tick {
            next_tick = now_ns + TICK_NS;
            worker.tick(io, now_ns);
        }
        if end && received == 0 {
            return;
        }
        if !idle.turn(received) {
            continue;
        }
        // Frames that are there while nothing is received wait for room behind this stage, which nobody reports.
        if !io.is_empty() {
            std::thread::sleep(NAP);
            continue;
        }
        let most = if worker.waiting() > 0 || is_behind(io) { BUSY } else { IDLE };
        sleeper.sleep(most, || !io.is_empty());
    }
}

/// Runs the last stage, until the stage before has ended and all frames are sent.
fn transmit(mut stage: Transmit, mut io: Ports, common: &Common) -> Outcome {
    let (mut idle, mut since_ns) = (Idle::default(), None);
    loop {
        io.take_up();
        let sent = stage.turn(&mut io);
        if sent == 0 {
            // A write error ends the thread, because otherwise its full rings would hold up the workers.
            if stage.ended() || io.is_broken() {
                break;
            }
            // A device that no longer takes frames must not keep the router from stopping.
            let now_ns = sys::now_ns();
            let stopped = common.is_stopped();
            if stopped && now_ns - *since_ns.get_or_insert(now_ns) > END_NS {
                break;
            }
        } else {
            since_ns = None;
        }
        if !idle.turn(sent) {
            continue;
        }
        // Frames that are there while nothing is sent wait for room in the ring of a device, which nobody reports.
        if !stage.is_empty() {
            std::thread::sleep(NAP);
            continue;
        }
        let most = if io.has_unsent() { BUSY } else { IDLE };
        stage.sleeper().sleep(most, || !stage.is_empty());
    }
    send_rest(&mut io)
}

/// Waits longer the longer nothing arrives: it spins, then yields, then says that the thread may sleep.
#[derive(Debug, Default)]
struct Idle {
    turns: u32,
}

impl Idle {
    /// Returns whether the thread may sleep.
    fn turn(&mut self, frames: usize) -> bool {
        if frames > 0 {
            self.turns = 0;
            return false;
        }
        self.turns = self.turns.saturating_add(1);
        match self.turns {
            ..16 => std::hint::spin_loop(),
            16..PATIENCE => std::thread::yield_now(),
            _ => return true,
        }
        false
    }

    /// Like [`turn`](Self::turn), for a back end that nothing can be waited for.
    fn turn_and_nap(&mut self, frames: usize) {
        if self.turn(frames) {
            std::thread::sleep(NAP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_stops_receives_what_has_come_but_not_for_ever() {
        let mut stopped_ns = None;
        assert!(!has_drained(&mut stopped_ns, 3, 5));
        assert!(!has_drained(&mut stopped_ns, 3, 5 + END_NS));
        assert!(has_drained(&mut stopped_ns, 3, 6 + END_NS));
        assert!(has_drained(&mut None, 0, 5));
    }
}
