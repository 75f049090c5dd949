//! Feeds without a router: their routes in one table, with a number for each next hop.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fibula::Table;
use fibula::net::Dual;

use super::error::ControlError;
use super::feeds::Feeds;
use super::{Level, RunError, machine_error};
use crate::config::{Config, HopNumbers, NumberedConfig};
use crate::feed::lock;
use crate::feed::path::{Out, Path};
use crate::forward::fabric::Vrf;
use crate::kernel::netlink::{Event, Netlink};
use crate::kernel::sys;

/// Most prefixes that are taken in a turn.
const BATCH: usize = 1 << 13;
/// How often unused paths are freed and changes of feeds are logged.
const TICK_NS: u64 = 1_000_000_000;
/// Most next hops without a number that are named, so that a peer cannot fill the log.
const NAMED: usize = 16;

/// Feeds that fill a table with the numbers of next hops. [`turn`](Self::turn) installs the changes; the caller calls it again
/// and again.
#[derive(Debug)]
pub struct NumberedFeeds {
    feeds: Feeds,
    vrfs: [Vrf; 1],
    counts: [Dual<usize>; 1],
    /// The file, without the numbers.
    config: Config,
    numbers: HopNumbers,
    /// Whether the numbers have changed since the last turn.
    are_numbers_new: bool,
    devices: Option<Devices>,
    /// Next hops without a number that were named.
    unknown: BTreeSet<String>,
    /// The time of the last error of each feed that was logged.
    errors: Vec<u64>,
    patience_ns: u64,
    next_tick_ns: u64,
    is_refused: bool,
}

/// The names of the kernel's devices.
#[derive(Debug)]
struct Devices {
    netlink: Netlink,
    names: BTreeMap<u32, String>,
}

impl Devices {
    fn open() -> std::io::Result<Self> {
        let mut devices = Self { netlink: Netlink::open()?, names: BTreeMap::new() };
        devices.read_all()?;
        Ok(devices)
    }

    fn read_all(&mut self) -> std::io::Result<()> {
        let names = &mut self.names;
        names.clear();
        self.netlink.dump(|event| _ = take(names, event))
    }

    /// Takes the changes. Returns whether a name has changed.
    fn follow(&mut self) -> std::io::Result<bool> {
        let (names, mut is_lost) = (&mut self.names, false);
        let mut has_changed = false;
        self.netlink.read(|event| match event {
            Event::Lost => is_lost = true,
            event => has_changed |= take(names, event),
        })?;
        if is_lost {
            self.read_all()?;
        }
        Ok(has_changed || is_lost)
    }
}

/// Takes an event about devices. Returns whether it changes a name.
fn take(names: &mut BTreeMap<u32, String>, event: Event) -> bool {
    match event {
        Event::Link(link) => names.insert(link.index, link.name.clone()).is_none_or(|name| name != link.name),
        Event::LinkGone(index) => names.remove(&index).is_some(),
        _ => false,
    }
}

impl NumberedFeeds {
    /// Opens the feeds and starts their threads, which end when `stop` is set. Paths of files are relative to `folder`. The routes
    /// come into `table`, which has no others.
    ///
    /// # Errors
    /// When the system refuses a socket, a file or a thread. The feeds that were opened are closed then.
    pub fn start(
        config: &NumberedConfig,
        folder: &FilePath,
        table: Table,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, RunError> {
        let NumberedConfig { config, numbers } = config;
        let devices = match numbers.name_devices() {
            true => Some(Devices::open().map_err(machine_error("asking the kernel for links"))?),
            false => None,
        };
        let mut feeds = Feeds::new(config);
        feeds.start(config, folder, stop, None)?;
        Ok(Self {
            feeds,
            vrfs: [Vrf { name: config.vrfs[0].clone(), table }],
            counts: [Dual::default()],
            config: config.clone(),
            numbers: numbers.clone(),
            are_numbers_new: false,
            devices,
            unknown: BTreeSet::new(),
            errors: vec![0; config.feeds.len()],
            patience_ns: sys::now_ns() + u64::from(config.start_after_s) * 1_000_000_000,
            next_tick_ns: 0,
            is_refused: false,
        })
    }

    /// Takes the numbers of a file that was read again. The next turns install the routes whose numbers have changed.
    ///
    /// # Errors
    /// When its feeds differ, which cannot change while they run, or the kernel does not tell the names of devices. Then nothing changes.
    pub fn reload(&mut self, file: &NumberedConfig) -> Result<(), RunError> {
        let NumberedConfig { config, numbers } = file;
        if (&config.feeds, config.path_bytes) != (&self.config.feeds, self.config.path_bytes) {
            return Err(RunError::Control(ControlError::Restart("[[feed]], or 'path_bytes' of [feeds],")));
        }
        if numbers.name_devices() && self.devices.is_none() {
            let opened = Devices::open().map_err(machine_error("asking the kernel for links"))?;
            self.devices = Some(opened);
        }
        self.numbers = numbers.clone();
        self.are_numbers_new = true;
        // What still has no number is named again.
        self.unknown.clear();
        Ok(())
    }

    /// Returns the names of the feeds without a full table so far, for as long as they have time for it.
    #[must_use]
    pub fn awaited(&self) -> Vec<String> {
        if sys::now_ns() >= self.patience_ns {
            return Vec::new();
        }
        self.without_table()
    }

    /// Returns the names of the feeds that never had a full table.
    #[must_use]
    pub fn without_table(&self) -> Vec<String> {
        self.feeds.rib().awaited(&self.feeds.inherited).map(|feed| feed.name.clone()).collect()
    }

    /// Installs the routes that feeds have changed, and calls `log` with what there is to tell. Returns whether there is more to do
    /// at once.
    pub fn turn(&mut self, log: &mut dyn FnMut(Level, &str)) -> bool {
        let now_ns = sys::now_ns();
        self.feeds.rib().set_time(now_ns);
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            self.is_refused = false;
            self.news().into_iter().for_each(|(level, text)| log(level, &text));
            self.feeds.install.collect(&self.feeds.rib);
        }
        let is_renamed = match self.devices.as_mut().map(Devices::follow) {
            Some(Ok(has_changed)) => has_changed,
            Some(Err(error)) => {
                log(Level::Warning, &format!("names of devices: {error}"));
                false
            }
            None => false,
        };
        let is_other = std::mem::take(&mut self.are_numbers_new) || is_renamed;
        let (numbers, devices) = (&self.numbers, &self.devices);
        let mut unknown = BTreeSet::new();
        let seen = std::cell::RefCell::new(&mut unknown);
        let number = |path: &Path| {
            let name = |device: u32| devices.as_ref()?.names.get(&device).cloned();
            let found = numbers.of(path, name);
            if found.is_none() {
                seen.borrow_mut().insert(named(path));
            }
            found
        };
        let taken = self.feeds.install.take_numbered(&self.feeds.rib, number, is_other, BATCH);
        for hop in unknown {
            if self.unknown.len() < NAMED && self.unknown.insert(hop.clone()) {
                log(
                    Level::Warning,
                    &format!(
                        "next hop {hop} has no number, so its routes are left out: name it in [numbers], or set 'others'"
                    ),
                );
            }
        }
        let Feeds { install, rib, .. } = &self.feeds;
        if taken.is_empty() {
            return install.answer(rib, &taken, &self.vrfs);
        }
        match install.enter(rib, &taken, &self.vrfs, &mut self.counts) {
            Ok(()) => taken.more,
            Err(error) => {
                if !std::mem::replace(&mut self.is_refused, true) {
                    log(Level::Warning, &format!("cannot install routes (will retry): {error}"));
                }
                false
            }
        }
    }

    /// Returns the lines of the log: phases of feeds, and their last errors, which no socket shows here.
    fn news(&mut self) -> Vec<(Level, String)> {
        let mut news = self.feeds.news();
        let rib = lock(&self.feeds.rib);
        for (feed, told) in rib.feeds().iter().zip(&mut self.errors) {
            if let Some((at_ns, error)) = feed.state.last_error.as_ref().filter(|error| error.0 > *told) {
                *told = *at_ns;
                news.push((Level::Warning, format!("feed {}: {error}", feed.name)));
            }
        }
        news
    }

    /// Waits for the threads of the feeds, which end when the stop flag is set.
    pub fn join(mut self) {
        self.feeds.join();
    }
}

/// Returns a next hop as people write it.
fn named(path: &Path) -> String {
    let Path::Ways(ways) = path else {
        return match path {
            Path::Blackhole => "blackhole",
            Path::Unreachable => "unreachable",
            _ => "prohibit",
        }
        .to_owned();
    };
    let way = |way: &crate::feed::Way| match (way.gateway, way.out) {
        (Some(gateway), _) => gateway.to_string(),
        (None, Out::Device(number)) => format!("device {number}"),
        (None, Out::Near(_)) => "without a gateway".to_owned(),
    };
    ways.iter().map(way).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
