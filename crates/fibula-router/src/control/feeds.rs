//! Feeds of a router that runs: their threads, and the way of their routes into the tables.
//!
//! A path of the RIB has one number among the fabric's next hops for as long as a route has it. What the number means may change:
//! when a link goes down or a next-hop object changes, a new fabric is enough, and no route is touched.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fibula::live::TableError;
use fibula::net::{Change, Dual, IpPrefix, NextHop, Prefix, Route};
use fibula::rib::DualRib;

use super::plan::{self, Hops, near};
use super::{Level, RunError, machine_error};
use crate::config::{self, Config, FeedKind};
use crate::feed::enter::Entrance;
use crate::feed::kernel::Kernel;
use crate::feed::path::{Out, Path, Way};
use crate::feed::rib::shares;
use crate::feed::routes::Routes;
use crate::feed::state::Phase;
use crate::feed::{Choice, Place, Rib, fpm};
use crate::forward::fabric::{Fabric, Gateway, Hop, Interface, Vrf};
use crate::kernel::sys;

/// Most prefixes that are dealt with in a turn of the main thread.
const BATCH: usize = 1 << 13;
/// How often unused paths are freed and news of feeds are told.
const TICK_NS: u64 = 1_000_000_000;
/// How long a follower of the kernel waits before it opens its connection anew.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a quiet session of FPM says nothing.
const QUIET_NS: u64 = 2_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A prefix and the route that is to be used for it.
type News = (Place, Option<Choice>);

/// The feeds of a router.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    rib: Arc<Mutex<Rib>>,
    /// The number of each path's next hop.
    numbers: Vec<Option<NextHop>>,
    threads: Vec<JoinHandle<()>>,
    /// What was last told of each feed.
    told: Vec<(Phase, bool)>,
    next_tick_ns: u64,
}

impl Feeds {
    pub(super) fn new(config: &Config) -> Self {
        let feeds = config
            .feeds
            .iter()
            .map(|feed| Routes::new(feed.name.clone(), feed.distance, feed.routes, config.vrfs.len()));
        let told = config.feeds.iter().map(|_| (Phase::Waiting, false)).collect();
        Self { rib: Arc::new(Mutex::new(Rib::new(feeds.collect()))), told, ..Self::default() }
    }

    pub(super) fn rib(&self) -> MutexGuard<'_, Rib> {
        lock(&self.rib)
    }

    /// Opens what the feeds need, and starts their threads.
    pub(super) fn start(&mut self, config: &Config, stop: &Arc<AtomicBool>) -> Result<(), RunError> {
        let mut runs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        for (number, feed) in config.feeds.iter().enumerate() {
            let (rib, stop) = (Arc::clone(&self.rib), Arc::clone(stop));
            let refused = || machine_error(format!("feed {}", feed.name));
            let has_metrics = matches!(feed.kind, FeedKind::Kernel);
            let entrance = Entrance { feed: number, tables: feed.tables.clone(), has_metrics };
            match feed.kind {
                FeedKind::Fpm { .. } => {
                    let mut server = fpm::Server::open(options(feed), entrance).map_err(refused())?;
                    runs.push(Box::new(move || {
                        while !stop.load(Ordering::Relaxed) {
                            server.turn(&rib);
                        }
                    }));
                }
                FeedKind::Kernel => {
                    let kernel = Kernel::open(entrance.clone()).map_err(refused())?;
                    runs.push(Box::new(move || follow(kernel, &entrance, &rib, &stop)));
                }
            }
        }
        for (run, feed) in runs.into_iter().zip(&config.feeds) {
            let run = move || {
                // What needed a right is open.
                if sys::keep_capabilities(0).is_ok() {
                    run();
                }
            };
            let thread = std::thread::Builder::new().name(format!("feed {}", feed.name)).spawn(run);
            self.threads.push(thread.map_err(machine_error("starting a thread"))?);
        }
        Ok(())
    }

    /// Waits for the threads, which end when the router is told to stop.
    pub(super) fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }

    /// Takes what has changed: gives paths their numbers, finds out what these mean with the interfaces as they are, and returns at
    /// most `most` prefixes with their routes, and whether next hops have changed. With `own`, these are the routes of the
    /// configuration from here on, and all paths are looked at again.
    pub(super) fn take(
        &mut self,
        interfaces: &[Interface],
        devices: &BTreeMap<u32, u16>,
        hops: &mut Hops,
        own: Option<Vec<DualRib>>,
        most: usize,
    ) -> Taken {
        let mut rib = lock(&self.rib);
        let mut taken = Taken::default();
        let fresh = rib.take_fresh();
        let objects_changed = rib.take_objects_changed();
        for &path in &fresh {
            let content = rib.expand(path).and_then(|path| content(&path, interfaces, devices, hops));
            let number = hops.reserve();
            let at = path as usize;
            self.numbers.resize(self.numbers.len().max(at + 1), None);
            self.numbers[at] = Some(number);
            rib.set_fresh(path, content.is_some());
            taken.hops |= hops.set(number, content);
        }
        if own.is_some() || objects_changed {
            let paths = rib.paths(own.is_none());
            let mut active = Vec::with_capacity(paths.len());
            for path in paths {
                let content = rib.expand(path).and_then(|path| content(&path, interfaces, devices, hops));
                active.push((path, content.is_some()));
                // One that leads nowhere keeps its meaning until its routes have gone.
                if let (Some(number), Some(content)) = (self.number(path), content) {
                    taken.hops |= hops.set(number, Some(content));
                }
            }
            rib.set_active(active);
        }
        if let Some(own) = own {
            rib.set_own(own);
        }
        if rib.take_everything() {
            taken.everything = true;
            while !rib.take(BATCH).is_empty() {}
        }
        while taken.news.len() < most {
            let news = rib.take(most - taken.news.len());
            if news.is_empty() {
                break;
            }
            taken.news.extend(news);
        }
        taken.more = rib.is_dirty();
        taken
    }

    fn number(&self, path: u32) -> Option<NextHop> {
        self.numbers.get(path as usize).copied().flatten()
    }

    fn chosen(&self, choice: Choice) -> Option<NextHop> {
        match choice {
            Choice::Own(number) => Some(number),
            Choice::Path(path) => self.number(path),
        }
    }

    /// Enters what was taken into the tables, new routes first. What a table refuses is given back.
    pub(super) fn enter(
        &self,
        taken: &Taken,
        vrfs: &[Vrf],
        counts: &mut [Dual<usize>],
    ) -> Result<(), TableError> {
        let mut outcome = Ok(());
        for (number, (vrf, counts)) in vrfs.iter().zip(counts).enumerate() {
            let mine = |news: &&News| usize::from(news.0.0) == number;
            let done = if taken.everything {
                self.enter_all(number, vrf, counts)
            } else {
                self.enter_news(taken.news.iter().filter(mine), vrf, counts)
            };
            if done.is_err() {
                let places: Vec<Place> = taken.news.iter().filter(mine).map(|news| news.0).collect();
                lock(&self.rib).put_back(places, taken.everything);
                outcome = done;
            }
        }
        outcome
    }

    fn enter_news<'n>(
        &self,
        news: impl Iterator<Item = &'n News>,
        vrf: &Vrf,
        counts: &mut Dual<usize>,
    ) -> Result<(), TableError> {
        let mut changes = Dual::new(Vec::new(), Vec::new());
        let mut gone = Dual::new(Vec::new(), Vec::new());
        for &((_, prefix), choice) in news {
            let (before, after) = (vrf.table.get(prefix)?, choice.and_then(|choice| self.chosen(choice)));
            if before == after {
                continue;
            }
            match (prefix, after) {
                (IpPrefix::V4(prefix), Some(after)) => changes.v4.push(insert(prefix, after)),
                (IpPrefix::V6(prefix), Some(after)) => changes.v6.push(insert(prefix, after)),
                (IpPrefix::V4(prefix), None) => gone.v4.push(Change::Remove(prefix)),
                (IpPrefix::V6(prefix), None) => gone.v6.push(Change::Remove(prefix)),
            }
            let count = if matches!(prefix, IpPrefix::V4(_)) { &mut counts.v4 } else { &mut counts.v6 };
            *count = *count + usize::from(after.is_some()) - usize::from(before.is_some());
        }
        changes.v4.append(&mut gone.v4);
        changes.v6.append(&mut gone.v6);
        let done = vrf.table.apply(&changes.v4).and_then(|_| vrf.table.apply(&changes.v6));
        if done.is_err() {
            self.recount(vrf, counts);
        }
        done.map(drop)
    }

    fn recount(&self, vrf: &Vrf, counts: &mut Dual<usize>) {
        if let Ok(routes) = vrf.table.routes() {
            *counts = Dual::new(routes.v4.len(), routes.v6.len());
        }
    }

    fn enter_all(&self, number: usize, vrf: &Vrf, counts: &mut Dual<usize>) -> Result<(), TableError> {
        let wanted = lock(&self.rib).all(number, |path| self.number(path));
        let wanted = wanted.map_err(|error| error.out_of_memory())?;
        plan::apply(&vrf.table, &wanted)?;
        *counts = Dual::new(wanted.v4.len(), wanted.v6.len());
        Ok(())
    }

    /// Frees paths that no route has. Returns the numbers of their next hops, which may be used again when no worker can have
    /// found them in a table any more.
    fn collect(&mut self) -> Vec<NextHop> {
        let paths = lock(&self.rib).collect();
        paths.into_iter().filter_map(|path| self.numbers.get_mut(path as usize)?.take()).collect()
    }
}

const fn insert<K>(prefix: Prefix<K>, next_hop: NextHop) -> Change<K>
where
    K: Copy,
{
    Change::Insert(Route { prefix, next_hop })
}

/// What has changed.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) news: Vec<News>,
    /// All routes are to be compared instead.
    everything: bool,
    /// Next hops mean something else, or are new.
    pub(super) hops: bool,
    /// There is more.
    more: bool,
}

impl Taken {
    fn is_empty(&self) -> bool {
        self.news.is_empty() && !self.everything && !self.hops
    }
}

impl super::Router<'_> {
    /// Takes in what feeds have told. Returns whether there is more to do at once.
    pub(super) fn take_feeds(&mut self) -> bool {
        if self.config.feeds.is_empty() {
            return false;
        }
        let now_ns = sys::now_ns();
        if now_ns >= self.feeds.next_tick_ns {
            self.feeds.next_tick_ns = now_ns + TICK_NS;
            self.tell_feeds();
            self.collect_paths();
        }
        let fabric = self.shared.fabric();
        let taken = self.feeds.take(&fabric.interfaces, &self.devices, &mut self.hops, None, BATCH);
        if taken.is_empty() {
            return false;
        }
        if taken.hops {
            self.publish(Fabric { hops: self.hops.all().to_vec(), ..(*fabric).clone() });
        }
        if let Err(error) = self.feeds.enter(&taken, &self.vrfs, &mut self.counts) {
            (self.log)(
                Level::Warning,
                &format!("a table refuses routes of feeds, which are tried again: {error}"),
            );
            return false;
        }
        taken.more
    }

    /// Says what has become of feeds.
    fn tell_feeds(&mut self) {
        let rib = self.feeds.rib();
        let states: Vec<_> = rib
            .feeds()
            .iter()
            .map(|feed| (feed.name.clone(), (feed.state.phase, feed.state.is_overrun), feed.len()))
            .collect();
        drop(rib);
        for ((name, state, count), told) in states.into_iter().zip(&mut self.feeds.told) {
            if state.0 != told.0 {
                (self.log)(Level::Note, &format!("feed {name}: {}, {count} routes", state.0.name()));
            }
            if state.1 && !told.1 {
                let text = format!(
                    "feed {name}: more routes than its limit; the rest is refused until there is room"
                );
                (self.log)(Level::Warning, &text);
            }
            *told = state;
        }
    }

    fn collect_paths(&mut self) {
        let numbers = self.feeds.collect();
        if numbers.is_empty() {
            return;
        }
        for &number in &numbers {
            self.hops.set(number, None);
        }
        let fabric = Fabric { hops: self.hops.all().to_vec(), ..(*self.shared.fabric()).clone() };
        // A worker that does not take the fabric up may still have found one in a table: then they are not used again.
        if self.publish(fabric) {
            self.hops.give_back(&numbers);
        }
    }
}

/// Returns what a path means with the interfaces as they are; `None` if it leads nowhere. Of several ways, those whose link is down
/// are left out as long as there are others.
fn content(
    path: &Path,
    interfaces: &[Interface],
    devices: &BTreeMap<u32, u16>,
    hops: &mut Hops,
) -> Option<Hop> {
    let ways = match path {
        Path::Blackhole => return Some(Hop::Blackhole),
        Path::Unreachable => return Some(Hop::Unreachable),
        Path::Prohibit => return Some(Hop::Prohibit),
        Path::Object { .. } => return None,
        Path::Ways(ways) => ways,
    };
    let mut found: Vec<(Hop, bool, Way)> = Vec::new();
    for way in ways {
        let interface = match (way.out, way.gateway) {
            (Out::Device(device), _) => devices.get(&device).copied(),
            (Out::Near(vrf), Some(gateway)) => {
                near(interfaces, gateway, vrf.into()).map(|number| number as u16)
            }
            (Out::Near(_), None) => None,
        };
        let Some(interface) = interface else { continue };
        let hop = match way.gateway {
            None => Hop::Connected { interface },
            Some(IpAddr::V4(ip)) => Hop::Via { interface, gateway: Gateway::V4(ip.into()) },
            Some(IpAddr::V6(ip)) => Hop::Via { interface, gateway: Gateway::V6(ip.into()) },
        };
        let up = interfaces.get(usize::from(interface)).is_some_and(|interface| interface.up);
        found.push((hop, up, way.clone()));
    }
    if found.iter().any(|way| way.1) {
        found.retain(|way| way.1);
    }
    if let [(hop, ..)] = &found[..] {
        return Some(hop.clone());
    }
    let ways: Vec<Way> = found.iter().map(|way| way.2.clone()).collect();
    let mut members = Vec::new();
    for ((hop, ..), share) in found.into_iter().zip(shares(&ways)) {
        members.extend(std::iter::repeat_n(hops.number(hop).id(), share));
    }
    (!members.is_empty()).then(|| Hop::Group(members.into()))
}

fn options(feed: &config::Feed) -> fpm::Options {
    let FeedKind::Fpm { listen, keep, sweep, sessions, frame_bytes } = feed.kind else {
        unreachable!("a feed of this kind")
    };
    let times = fpm::Times { keep_ns: keep * SECOND_NS, sweep_ns: sweep * SECOND_NS, quiet_ns: QUIET_NS };
    fpm::Options { listen, frame_bytes, sessions, times }
}

/// Follows the kernel until the router is to stop. A connection that is of no use is opened anew.
fn follow(kernel: Kernel, entrance: &Entrance, rib: &Mutex<Rib>, stop: &AtomicBool) {
    let mut kernel = Some(kernel);
    while !stop.load(Ordering::Relaxed) {
        let done = match &mut kernel {
            Some(kernel) => kernel.turn(rib),
            None => Kernel::open(entrance.clone()).map(|opened| kernel = Some(opened)),
        };
        if let Err(error) = done {
            kernel = None;
            let now_ns = sys::now_ns();
            let mut rib = lock(rib);
            let state = &mut rib.feed(entrance.feed).state;
            state.error(error.to_string(), now_ns);
            state.enter(Phase::Kept, now_ns);
            drop(rib);
            std::thread::sleep(PAUSE);
        }
    }
}

fn lock(rib: &Mutex<Rib>) -> MutexGuard<'_, Rib> {
    // Every change leaves the RIB whole, so a panic elsewhere is no reason to stop.
    rib.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
