//! Samples of packets: the thread that takes them from workers, keeps the latest, and sends them to collectors.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use fibula::net::IpPrefix;

use super::answer::{refuse, send};
use super::filters::{Stamp, stamp};
use super::metrics::{head, quoted};
use super::{ControlError, Level, Router};
use crate::api::{self, TopBy};
use crate::config::{Config, SamplingPlan};
use crate::feed::{Place, Rib, lock as lock_rib};
use crate::forward::Shared;
use crate::forward::fabric::Fabric;
use crate::forward::sample::{Sample, Sampling};
use crate::kernel::sys;
use crate::sampling::collector::CollectorHealth;
use crate::sampling::exporter::{ExportSettings, Exporter, Moment};
use crate::sampling::observed::{Observed, Origin};
use crate::sampling::origins::{Origins, OriginsError};
use crate::sampling::top::{KEPT, Recent, top};

/// The time between two looks into the rings of workers.
const TURN: Duration = Duration::from_millis(20);
/// How often collectors and the file of origins are looked at.
const PERIOD_NS: u64 = 1_000_000_000;
/// How long the reader of an answer may stall.
const STALLED: Duration = Duration::from_secs(5);
/// Most seconds that a question may be about.
const MOST_S: u64 = 3600;
const FORM: &str = "top BY SECONDS COUNT";

/// The samples of a router.
#[derive(Debug, Default)]
pub(super) struct SamplesInUse {
    running: Option<Running>,
    next_ns: u64,
}

/// Samples that are taken.
#[derive(Debug)]
struct Running {
    sampling: Arc<Sampling>,
    view: Arc<Mutex<SamplesView>>,
    /// Has the thread change its settings; it ends when this is dropped.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    origins: OriginsFile,
    /// Whether each collector was well when the log last had a line about it.
    told: Vec<(std::net::SocketAddr, bool)>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It sends the samples that it has, and waits for nothing.
            let _ = thread.join();
        }
    }
}

/// The part of the thread's state that others see.
#[derive(Debug)]
struct SamplesView {
    recent: Recent,
    health: Vec<Arc<CollectorHealth>>,
}

/// A change of the thread's settings.
#[derive(Debug)]
enum Order {
    Export(ExportSettings, Vec<String>),
    Origins(Option<Arc<Origins>>),
}

/// The file of origins.
#[derive(Debug, Default)]
struct OriginsFile {
    path: Option<std::path::PathBuf>,
    line: usize,
    /// The file that is in use or was refused, and the one that was there at the last look.
    tried: Stamp,
    seen: Stamp,
    pending: Option<JoinHandle<Result<Origins, OriginsError>>>,
    is_known: bool,
}

fn lock(view: &Mutex<SamplesView>) -> MutexGuard<'_, SamplesView> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn names(config: &Config) -> Vec<String> {
    config.interfaces.iter().map(|line| line.name.clone()).collect()
}

impl SamplesInUse {
    /// Takes up the sampling of a configuration. Of one that goes on, samples, sessions and counts go on.
    pub(super) fn take_up(
        &mut self,
        config: &Config,
        shared: &Arc<Shared>,
        rib: &Arc<Mutex<Rib>>,
    ) -> io::Result<()> {
        let Some(plan) = &config.sampling else {
            if self.running.take().is_some() {
                shared.set_sampling(None);
            }
            return Ok(());
        };
        match &mut self.running {
            Some(running) => running.change(plan, names(config)),
            None => self.running = Some(Running::begin(plan, names(config), shared, rib)?),
        }
        if let Some(running) = &self.running {
            shared.set_sampling(Some(Arc::clone(&running.sampling)));
        }
        Ok(())
    }
}

impl Running {
    fn begin(
        plan: &SamplingPlan,
        names: Vec<String>,
        shared: &Arc<Shared>,
        rib: &Arc<Mutex<Rib>>,
    ) -> io::Result<Self> {
        let sampling = Sampling::new(plan.interval);
        let exporter = Exporter::new(plan.export.clone(), plan.interval, names);
        let view = SamplesView { recent: Recent::new(unix_ms()), health: exporter.health() };
        let view = Arc::new(Mutex::new(view));
        let (orders, from_main) = channel();
        let taker = Taker {
            sampling: Arc::clone(&sampling),
            shared: Arc::clone(shared),
            rib: Arc::clone(rib),
            view: Arc::clone(&view),
            exporter,
            origins: None,
            begin: Instant::now(),
            taken: Vec::new(),
            places: Vec::new(),
        };
        let run = move || {
            // Drop capabilities, because sending datagrams needs none.
            if sys::keep_capabilities(0).is_ok() {
                taker.run(&from_main);
            }
        };
        let thread = std::thread::Builder::new().name("samples".into()).spawn(run)?;
        let mut running = Self {
            sampling,
            view,
            orders: Some(orders),
            thread: Some(thread),
            origins: OriginsFile::default(),
            told: Vec::new(),
        };
        running.origins.name(plan);
        Ok(running)
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The thread ends with this only.
            let _ = orders.send(order);
        }
    }

    fn change(&mut self, plan: &SamplingPlan, names: Vec<String>) {
        self.sampling.set_interval(plan.interval);
        self.order(Order::Export(plan.export.clone(), names));
        if self.origins.name(plan) {
            self.order(Order::Origins(None));
        }
    }
}

impl OriginsFile {
    /// Takes the file of a plan. Returns whether it is another one.
    fn name(&mut self, plan: &SamplingPlan) -> bool {
        let is_other = self.path != plan.origins;
        if is_other {
            *self = Self { path: plan.origins.clone(), ..Self::default() };
        }
        self.line = plan.origins_line;
        is_other
    }
}

/// The thread that takes samples.
struct Taker {
    sampling: Arc<Sampling>,
    shared: Arc<Shared>,
    rib: Arc<Mutex<Rib>>,
    view: Arc<Mutex<SamplesView>>,
    exporter: Exporter,
    origins: Option<Arc<Origins>>,
    begin: Instant,
    taken: Vec<Observed>,
    /// The prefixes of the routes of each taken sample: of its source, and of its destination.
    places: Vec<[Option<Place>; 2]>,
}

impl Taker {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = orders.recv_timeout(TURN);
            let now = Moment { monotonic: self.begin.elapsed(), unix_ms: unix_ms() };
            let is_over = matches!(order, Err(RecvTimeoutError::Disconnected));
            match order {
                Ok(Order::Export(settings, names)) => {
                    self.exporter.change(settings, names, now);
                    lock(&self.view).health = self.exporter.health();
                }
                Ok(Order::Origins(origins)) => self.origins = origins,
                Err(_) => {}
            }
            // The last time too, because workers may have put samples there since.
            self.turn(now);
            if is_over {
                self.exporter.flush(now);
                return;
            }
        }
    }

    fn turn(&mut self, now: Moment) {
        let Self { sampling, shared, origins, taken, places, .. } = self;
        let fabric = shared.fabric();
        taken.clear();
        places.clear();
        sampling.take(|sample| {
            let (observed, of) = observe(&fabric, origins.as_deref(), sample, now.unix_ms);
            taken.push(observed);
            places.push(of);
        });
        self.ask_feeds();
        if !self.taken.is_empty() {
            // Not while addresses are looked up, because those who ask would wait for the tables too.
            let mut view = lock(&self.view);
            self.taken.iter().for_each(|observed| view.recent.push(*observed));
        }
        for observed in &self.taken {
            self.exporter.put(*observed, now);
        }
        // Without samples too, because templates are due by time.
        self.exporter.turn(now);
    }
}

/// Samples whose origins are looked up under one lock of the RIB, for which feeds wait.
const TOGETHER: usize = 256;

impl Taker {
    /// Has feeds say which AS announces an address, where no table does.
    fn ask_feeds(&mut self) {
        let Self { rib, taken, places, .. } = self;
        for (taken, places) in taken.chunks_mut(TOGETHER).zip(places.chunks(TOGETHER)) {
            let rib = lock_rib(rib);
            if !rib.has_origins() {
                return;
            }
            for (observed, places) in taken.iter_mut().zip(places) {
                for (origin, place) in
                    [&mut observed.source, &mut observed.destination].into_iter().zip(places)
                {
                    if let (0, Some(place)) = (origin.origin, place) {
                        origin.origin = rib.origin_of(*place);
                    }
                }
            }
        }
    }
}

/// Looks the addresses of a sample up. Returns the prefixes of their routes too.
fn observe(
    fabric: &Fabric,
    origins: Option<&Origins>,
    sample: Sample,
    at_ms: u64,
) -> (Observed, [Option<Place>; 2]) {
    let packet = &sample.packet;
    let known = |address: u128| {
        let ip = match packet.v6 {
            true => IpAddr::V6(address.into()),
            false => IpAddr::V4((address as u32).into()),
        };
        let vrf = fabric.vrfs.get(usize::from(packet.vrf));
        let route = vrf.and_then(|vrf| vrf.table.lookup_prefix(ip).ok().flatten());
        let len = route.map(|(prefix, _)| match prefix {
            IpPrefix::V4(prefix) => prefix.len(),
            IpPrefix::V6(prefix) => prefix.len(),
        });
        let origin = origins.map_or(0, |origins| origins.of(ip));
        let place = route.map(|(prefix, _)| (packet.vrf, prefix));
        (Origin { len: len.unwrap_or(0), has_route: len.is_some(), origin }, place)
    };
    let ((source, from), (destination, to)) = (known(packet.source), known(packet.destination));
    (Observed { sample, at_ms, source, destination }, [from, to])
}

impl Router<'_> {
    /// Takes up the sampling of the configuration, or logs why not.
    pub(super) fn take_up_samples(&mut self) {
        if let Err(error) = self.samples.take_up(&self.config, &self.shared, &self.feeds.rib) {
            (self.log)(Level::Warning, &format!("packets are not sampled: {error}"));
        }
    }

    /// Logs collectors that are not well any more, and follows the file of origins.
    pub(super) fn follow_samples(&mut self) {
        let Some(running) = &mut self.samples.running else { return };
        let file = &mut running.origins;
        if let Some(done) = file.pending.take_if(|pending| pending.is_finished()) {
            match done.join() {
                Ok(Ok(origins)) => {
                    file.is_known = true;
                    running.order(Order::Origins(Some(Arc::new(origins))));
                }
                Ok(Err(error)) => {
                    let path = file.path.as_deref().unwrap_or(std::path::Path::new("")).display();
                    let line = file.line;
                    let text = format!("the origins of addresses in use stay: line {line}: {path}: {error}");
                    (self.log)(Level::Warning, &text);
                }
                Err(_) => (self.log)(
                    Level::Warning,
                    "the origins of addresses in use stay: loading others has failed",
                ),
            }
        }
        let now_ns = sys::now_ns();
        if now_ns < self.samples.next_ns {
            return;
        }
        self.samples.next_ns = now_ns + PERIOD_NS;
        let health = lock(&running.view).health.clone();
        for collector in &health {
            let (address, is_well) = (collector.address, collector.is_well.load(Ordering::Relaxed));
            let before = running.told.iter().find(|told| told.0 == address).is_none_or(|told| told.1);
            match (before, is_well) {
                (true, false) => {
                    let fault = collector.last_fault().unwrap_or_default();
                    let text = format!(
                        "collector {address}: {fault}; it is tried again after a pause of at most a minute, and samples of that time are left out"
                    );
                    (self.log)(Level::Warning, &text);
                }
                (false, true) => {
                    (self.log)(Level::Note, &format!("collector {address}: takes messages again"));
                }
                _ => {}
            }
        }
        let state = |health: &Arc<CollectorHealth>| (health.address, health.is_well.load(Ordering::Relaxed));
        running.told = health.iter().map(state).collect();
        let file = &mut running.origins;
        if let (Some(path), None) = (&file.path, &file.pending) {
            let path = self.folder.join(path);
            let now = stamp(&path);
            // Not while the file still changes, because somebody is writing it. The first time at once.
            if now != file.tried && (now == file.seen || file.tried.is_none()) {
                file.tried = now;
                let load = move || {
                    // Drop capabilities, because reading files needs none.
                    let _ = sys::keep_capabilities(0);
                    Origins::load(&path)
                };
                match std::thread::Builder::new().name("origins".into()).spawn(load) {
                    Ok(pending) => file.pending = Some(pending),
                    Err(error) => {
                        (self.log)(Level::Warning, &format!("origins of addresses are not read: {error}"));
                    }
                }
            }
            file.seen = now;
        }
    }

    /// Answers `top`, on a thread of its own, because thousands of samples are added up.
    pub(super) fn answer_top(&self, stream: UnixStream, words: &[&str], held: Arc<()>) -> io::Result<()> {
        let mut stream = stream;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(STALLED))?;
        let (by, seconds, count) = match self.top_question(words) {
            Ok(question) => question,
            Err(error) => return refuse(&mut stream, error.to_string()),
        };
        let Some(Running { sampling, view, .. }) = &self.samples.running else { return Ok(()) };
        let (sampling, view) = (Arc::clone(sampling), Arc::clone(view));
        let names = names(&self.config);
        let write = move || {
            let _held = held;
            // Drop capabilities, because writing needs none.
            let _ = sys::keep_capabilities(0);
            let (samples, seconds, health) = {
                // Copied, because the thread that takes samples must not wait until they are added up.
                let view = lock(&view);
                let (samples, seconds) = view.recent.last(seconds, unix_ms());
                (samples, seconds, view.health.clone())
            };
            let (all, rows) = top(&samples, by, count, &names);
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let answer = api::Top {
                by,
                seconds,
                interval: sampling.interval().into(),
                all,
                rows,
                drawn: load(&sampling.drawn),
                lost: load(&sampling.lost),
                unreadable: load(&sampling.unreadable),
                collectors: health.iter().map(|health| listed(health)).collect(),
            };
            // A reader that goes away early gets no answer, which is not an error.
            let _ = send(&mut stream, &answer);
        };
        std::thread::Builder::new().name("top".into()).spawn(write).map(drop)
    }

    fn top_question(&self, words: &[&str]) -> Result<(TopBy, u64, usize), ControlError> {
        let question = |text: &str| ControlError::Question(text.to_owned());
        let (by, seconds, count) = question_of(words)?;
        let Some(running) = &self.samples.running else {
            return Err(question("packets are not sampled: set 'rate' in [sampling] of the configuration"));
        };
        let is_known = || running.origins.is_known || self.feeds.rib().has_origins();
        if matches!(by, TopBy::As | TopBy::SourceAs) && !is_known() {
            return Err(question(match running.origins.path {
                Some(_) => "the table of 'sampling.origins' is not loaded yet, or the log says why not",
                None => {
                    "no feed says which AS announces a route, as those of kind 'bmp' and 'mrt' do: set 'sampling.origins', or use --table"
                }
            }));
        }
        Ok((by, seconds, count))
    }
}

/// Reads the words of a question.
fn question_of(words: &[&str]) -> Result<(TopBy, u64, usize), ControlError> {
    let [by, seconds, count] = *words else { return Err(ControlError::Form(FORM)) };
    let Some(&by) = TopBy::ALL.iter().find(|known| known.name() == by) else {
        let names: Vec<&str> = TopBy::ALL.iter().map(|by| by.name()).collect();
        return Err(ControlError::Question(format!("'{by}' is not one of {}", names.join(", "))));
    };
    if by == TopBy::Rule {
        let reason = "rules count their packets: ask for 'filters' twice, as 'fibula router top' does";
        return Err(ControlError::Question(reason.to_owned()));
    }
    let number = |text: &str, most: u64, what: &str| match text.parse::<u64>() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(ControlError::Question(format!("{what}: '{text}' is not a number from 1 to {most}"))),
    };
    Ok((by, number(seconds, MOST_S, "seconds")?, number(count, KEPT as u64, "count")? as usize))
}

fn listed(health: &CollectorHealth) -> api::ListedCollector {
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    api::ListedCollector {
        address: health.address,
        well: health.is_well.load(Ordering::Relaxed),
        messages: load(&health.messages),
        records: load(&health.records),
        left_out: load(&health.left_out),
        faults: load(&health.faults),
        last_fault: health.last_fault(),
    }
}

/// Appends the metrics of samples.
pub(super) fn metrics(out: &mut String, samples: &SamplesInUse) {
    let running = samples.running.as_ref();
    head(out, ("sampling_interval", "gauge", "One of so many frames is drawn as a sample; 0: none."));
    let interval = running.map_or(0, |running| running.sampling.interval());
    let _ = writeln!(out, "fibula_router_sampling_interval {interval}");
    let Some(Running { sampling, view, .. }) = running else { return };
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    head(out, ("drawn_frames_total", "counter", "Frames that were drawn, by what came of that."));
    let (lost, unreadable) = (load(&sampling.lost), load(&sampling.unreadable));
    let taken = load(&sampling.drawn).saturating_sub(lost + unreadable);
    for (result, count) in [("sample", taken), ("lost", lost), ("unreadable", unreadable)] {
        let _ = writeln!(out, "fibula_router_drawn_frames_total{{result=\"{result}\"}} {count}");
    }
    let health = lock(view).health.clone();
    collectors(out, &health.iter().map(|health| listed(health)).collect::<Vec<_>>());
}

fn collectors(out: &mut String, list: &[api::ListedCollector]) {
    let name = |collector: &api::ListedCollector| quoted(&collector.address.to_string());
    head(out, ("collector_well", "gauge", "Whether no message to a collector was refused for some seconds."));
    for collector in list {
        let well = u8::from(collector.well);
        let _ = writeln!(out, "fibula_router_collector_well{{collector=\"{}\"}} {well}", name(collector));
    }
    head(
        out,
        ("collector_messages_total", "counter", "Messages to a collector: sent, or refused by the network."),
    );
    for collector in list {
        for (result, count) in [("sent", collector.messages), ("refused", collector.faults)] {
            let name = name(collector);
            let _ = writeln!(
                out,
                "fibula_router_collector_messages_total{{collector=\"{name}\",result=\"{result}\"}} {count}"
            );
        }
    }
    head(out, ("collector_records_total", "counter", "Records for a collector: sent, or left out."));
    for collector in list {
        for (result, count) in [("sent", collector.records), ("left-out", collector.left_out)] {
            let name = name(collector);
            let _ = writeln!(
                out,
                "fibula_router_collector_records_total{{collector=\"{name}\",result=\"{result}\"}} {count}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_or_refused() {
        assert_eq!(question_of(&["source-as", "10", "20"]).unwrap(), (TopBy::SourceAs, 10, 20));
        for (words, part) in [
            (&[][..], "top BY SECONDS COUNT"),
            (&["as"], "top BY SECONDS COUNT"),
            (&["as", "10", "20", "30"], "top BY SECONDS COUNT"),
            (&["colour", "10", "20"], "'colour' is not one of as, source-as, prefix"),
            (&["rule", "10", "20"], "rules count their packets"),
            (&["as", "0", "20"], "seconds: '0' is not a number from 1 to 3600"),
            (&["as", "99999999999999999999", "20"], "is not a number from 1 to 3600"),
            (&["as", "10", "-1"], "count: '-1' is not a number from 1 to 65536"),
            (&["as", "10", "65537"], "count: '65537' is not"),
        ] {
            let error = question_of(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }

    #[test]
    fn metrics_have_lines_for_each_collector() {
        let collector = api::ListedCollector {
            address: "[2001:db8::5]:4739".parse().unwrap(),
            well: false,
            messages: 3,
            records: 40,
            left_out: 5,
            faults: 1,
            last_fault: None,
        };
        let mut out = String::new();
        collectors(&mut out, &[collector]);
        for line in [
            "fibula_router_collector_well{collector=\"[2001:db8::5]:4739\"} 0\n",
            "fibula_router_collector_messages_total{collector=\"[2001:db8::5]:4739\",result=\"refused\"} 1\n",
            "fibula_router_collector_records_total{collector=\"[2001:db8::5]:4739\",result=\"left-out\"} 5\n",
        ] {
            assert!(out.contains(line), "{out}");
        }
        let mut off = String::new();
        metrics(&mut off, &SamplesInUse::default());
        assert!(off.ends_with("fibula_router_sampling_interval 0\n"), "{off}");
    }
}
