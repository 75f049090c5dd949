//! Forwarding within the kernel, for devices of AF_XDP with `fast = true`.
//!
//! ```text
//! control thread ── Fast::publish, Fast::follow_neighbours ──> memory of maps <── program at each device
//! tables         ── fibula_bpf::Follower, within the call ──>
//! ```
//!
//! The program (`program.bpf.c`) forwards packets whose headers are plain, whose route leads to a neighbour that is known, and
//! that fit the way out. It drops for `blackhole`, `urpf-strict` and `urpf-loose`. The rest it gives to the sockets of the device,
//! or to the kernel, as the program of `redirect.rs` does; so whatever cannot be written into the memory here is slow, and never wrong.
//!
//! Nothing is pinned: maps and programs go with the links of programs, and those with the process.

mod features;
mod tables;
mod text;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fibula_bpf::kernel::{GracePeriod, Map, MapKind, Memory, Program, ProgramKind};
use fibula_bpf::{BpfError, BpfTable, Capability, Engine, FollowOptions, Follower, Grace, Options};

use crate::config::{FAST_PORTS as PORTS, FAST_VRFS as VRFS};
use crate::count::PortCounters;
use crate::drops::DropReason;
use crate::forward::fabric::{Fabric, Vrf};
use crate::neighbour::Neighbours;
use crate::packet::ethernet::Tags;
use tables::{Neighbourhood, Words};
use text::{CodeListing, Filling};

/// Entries of the map of known addresses: neighbours, and the router's own.
const KNOWN: u32 = 65_536;
/// Bytes of the counters of a port on one processor.
const COUNTS: usize = 128;
/// Words of a device: its VLANs, then whether its program is in the driver.
const VLAN_BYTES: u32 = 16_384;
const IN_DRIVER: usize = 8192;

/// The reasons that the program drops for, in the order of its counters.
const REASONS: [DropReason; 3] = [DropReason::Blackhole, DropReason::UrpfStrict, DropReason::UrpfLoose];

/// Maps that the programs of all devices share.
#[derive(Debug)]
pub struct Fast {
    text: CodeListing,
    words: Words,
    neighbourhood: Neighbourhood,
    devices: Map,
    counters: (Map, Memory),
    processors: usize,
    /// The maps of each VRF that has such devices: of IPv4, then of IPv6.
    tables: Vec<[BpfTable; 2]>,
    grace: GracePeriod,
    /// By port: the device, whether other drivers may give it frames, and the VLANs of a fast one.
    ports: BTreeMap<usize, FastPort>,
    /// The counters as they were added to those of the router.
    counted: Vec<[u64; COUNTS / 8]>,
    /// After everything that their threads use.
    followers: Vec<Follower>,
}

/// A port that frames may leave by.
#[derive(Debug, Default)]
struct FastPort {
    device: Option<u32>,
    takes_redirects: bool,
    vlans: Option<(Map, Arc<Memory>)>,
}

/// A program for a device, and the memory that says where it is attached.
#[derive(Debug)]
pub(super) struct FastProgram {
    pub(super) program: Program,
    place: Arc<Memory>,
}

impl FastProgram {
    /// Notes that the program is to be where another one is, whose device this is.
    pub(super) fn set_as_at(&self, device: u32) {
        // In a driver there is less that it may do.
        self.set_native(features::is_in_driver(device).unwrap_or(true));
    }

    /// Notes where the program is attached, or is about to be.
    pub(super) fn set_native(&self, native: bool) {
        self.place.word(IN_DRIVER).store(native.into(), Ordering::Relaxed);
    }
}

fn failed(error: BpfError) -> io::Error {
    match error {
        BpfError::System { error, .. } => error,
        other => io::Error::other(other.to_string()),
    }
}

/// Returns the processors that there may ever be.
fn possible_processors() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit([',', '-']).next().and_then(|number| number.parse::<usize>().ok());
    last.map_or(1024, |last| last + 1)
}

/// Starts to follow tables, on threads that keep these capabilities of the present ones.
fn followers(all: &[(&fibula::Table, &[BpfTable; 2])], capabilities: u64) -> io::Result<Vec<Follower>> {
    std::thread::scope(|scope| {
        let start = || -> io::Result<Vec<Follower>> {
            super::sys::keep_capabilities(capabilities)?;
            let follow = |&(table, maps): &(&fibula::Table, &[BpfTable; 2])| {
                Follower::start(maps.to_vec(), table, FollowOptions::default()).map_err(failed)
            };
            all.iter().map(follow).collect()
        };
        let ended = scope.spawn(start).join();
        ended.unwrap_or_else(|_| Err(io::Error::other("a thread has panicked: please report it")))
    })
}

impl Fast {
    /// Makes maps for VRFs, fills them, and keeps them up to date from here on. `slots` are the numbers of the VRFs.
    ///
    /// # Errors
    /// Without CAP_BPF and CAP_NET_ADMIN, on kernels that lack something, and when a table has another engine or no room.
    pub fn new(vrfs: &[Vrf], slots: &[usize]) -> io::Result<Self> {
        if !Capability::Perfmon.is_held() {
            return Err(io::Error::other(
                "CAP_PERFMON is missing: without it the kernel verifies no program that reads packets and maps at variable places",
            ));
        }
        let text = CodeListing::read()?;
        let processors = possible_processors();
        let counters =
            Map::create(MapKind::Array, "fibula_counts", (4, COUNTS as u32), (processors * PORTS) as u32)?;
        let memory = counters.map()?;
        let devices = Map::create(MapKind::Devices, "fibula_devices", (4, 4), PORTS as u32)?;
        let mut tables = Vec::new();
        for _ in slots {
            let make = |engine| BpfTable::create(&Options::of(engine)).map_err(failed);
            tables.push([make(Engine::Dir18Lines)?, make(Engine::DirBtree)?]);
        }
        let grace = GracePeriod::new(Grace::Auto).map_err(failed)?;
        let all: Vec<_> = slots.iter().zip(&tables).map(|(&slot, maps)| (&vrfs[slot].table, maps)).collect();
        // Threads of followers have the capabilities of the one that starts them. They need none, but to make a map of maps where
        // `membarrier` does not work.
        let followers = followers(&all, 0).or_else(|_| followers(&all, super::sys::BPF))?;
        Ok(Self {
            text,
            words: Words::new(slots)?,
            neighbourhood: Neighbourhood::new(Map::create(MapKind::Hash, "fibula_known", (24, 4), KNOWN)?)?,
            devices,
            counters: (counters, memory),
            processors,
            tables,
            grace,
            ports: BTreeMap::new(),
            counted: vec![[0; COUNTS / 8]; PORTS],
            followers,
        })
    }

    /// Loads the program of a port's device. `addresses` are the machine's, and `sockets` those of the device.
    pub(super) fn program(
        &mut self,
        port: usize,
        tagged: bool,
        addresses: &Map,
        sockets: &Map,
    ) -> io::Result<FastProgram> {
        let (vlans, place) = Map::memory("fibula_vlans", VLAN_BYTES)?;
        let place = Arc::new(place);
        let map = |map: &Map| Filling::Map(map.as_fd().as_raw_fd());
        let memory = |map: &Map| Filling::Memory(map.as_fd().as_raw_fd());
        let mut fillings: BTreeMap<String, Filling> = [
            ("addresses", map(addresses)),
            ("sockets", map(sockets)),
            ("known", map(&self.neighbourhood.known)),
            ("devices", map(&self.devices)),
            ("counters", map(&self.counters.0)),
            ("vlans", memory(&vlans)),
            ("neighbours", memory(&self.neighbourhood.map)),
            ("hops", memory(&self.words.hops.0)),
            ("members", memory(&self.words.members.0)),
            ("interfaces", memory(&self.words.interfaces.0)),
            ("settings", memory(&self.words.settings.0)),
            ("port_number", Filling::Number(port as u32)),
            ("tagged_frames", Filling::Number(tagged.into())),
        ]
        .map(|(name, filling)| (name.to_owned(), filling))
        .into();
        for slot in 0..VRFS {
            // The program has code for as many VRFs as there may be. Those that are not there have the first one's maps.
            let tables = self.tables.get(slot).or(self.tables.first()).ok_or(io::ErrorKind::InvalidInput)?;
            for (family, table) in ["v4", "v6"].into_iter().zip(tables) {
                for (name, fd) in ["h", "0", "1", "2", "3"].into_iter().zip(table.descriptors()) {
                    fillings.insert(format!("{family}_{slot}_{name}"), Filling::Map(fd.as_raw_fd()));
                }
            }
        }
        let (code, functions) = self.text.filled(&fillings)?;
        let program = Program::load(ProgramKind::Xdp, "fibula_fast", &code, functions)?;
        let loaded = FastProgram { program, place: Arc::clone(&place) };
        loaded.set_native(true);
        self.ports.entry(port).or_default().vlans = Some((vlans, place));
        Ok(loaded)
    }

    /// Sets which device each port has now. Returns whether something has changed, so that the fabric must be published again.
    pub fn set_devices(&mut self, devices: &BTreeMap<usize, u32>) -> bool {
        let mut changed = false;
        let known: Vec<usize> = self.ports.keys().chain(devices.keys()).copied().collect();
        for port in known.into_iter().filter(|&port| port < PORTS) {
            let (state, device) = (self.ports.entry(port).or_default(), devices.get(&port).copied());
            if state.device == device {
                continue;
            }
            let key = (port as u32).to_ne_bytes();
            // The kernel has taken out a device that is gone. Until a new one is in, nothing leaves by it.
            state.device = None;
            let _ = self.devices.delete(&key);
            if let Some(device) = device
                && self.devices.update(&key, &device.to_ne_bytes()).is_ok()
            {
                state.device = Some(device);
                state.takes_redirects = features::takes_redirects(device);
            }
            changed = true;
        }
        changed
    }

    /// Asks again which devices take frames from other drivers: that of a veth changes with its other end. Returns whether something has
    /// changed, so that the fabric must be published again.
    pub fn follow_features(&mut self) -> bool {
        let mut changed = false;
        for port in self.ports.values_mut() {
            let Some(device) = port.device else { continue };
            let takes = features::takes_redirects(device);
            changed |= std::mem::replace(&mut port.takes_redirects, takes) != takes;
        }
        changed
    }

    /// Writes a fabric. Programs see each word of it when it is written.
    pub fn publish(&mut self, fabric: &Fabric, neighbours: &Neighbours) {
        for (&number, port) in &self.ports {
            let Some((_, vlans)) = &port.vlans else { continue };
            let line = fabric.ports.get(number);
            for pair in 0..2048u16 {
                let interface = |vlan: u16| {
                    line.and_then(|line| line.interface(Tags::one(vlan)))
                        .map_or(0, |interface| u32::from(interface) + 1)
                };
                let word = interface(2 * pair) | interface(2 * pair + 1) << 16;
                let place = vlans.word(4 * usize::from(pair));
                if place.load(Ordering::Relaxed) != word.to_le() {
                    place.store(word.to_le(), Ordering::Release);
                }
            }
        }
        let ways = |port: usize| {
            let state = self.ports.get(&port).filter(|state| state.device.is_some());
            let is_fast = self.ports.get(&port).is_some_and(|state| state.vlans.is_some());
            (is_fast, state.is_some(), state.is_some_and(|state| state.takes_redirects))
        };
        self.words.set_interfaces(fabric, ways);
        self.neighbourhood.set_own(fabric, &self.words);
        self.words.set_settings(fabric);
        let grace = &self.grace;
        // If the kernel does not let it wait, nothing is used again.
        let wait = || grace.wait().is_ok();
        self.words.set_hops(fabric, &mut self.neighbourhood, &wait);
        self.neighbourhood.follow(neighbours, &wait);
    }

    /// Takes over neighbours that have changed, and tells the router which ones packets have used.
    pub fn follow_neighbours(&mut self, neighbours: &Neighbours) {
        let grace = &self.grace;
        self.neighbourhood.follow_if_changed(neighbours, &|| grace.wait().is_ok());
        self.neighbourhood.tell_used(neighbours);
    }

    /// Waits until no program reads words that were replaced before.
    pub fn wait(&self) -> bool {
        self.grace.wait().is_ok()
    }

    /// Returns why tables in maps do not follow any more, once: the programs then have the routes of before.
    pub fn take_error(&mut self) -> Option<String> {
        self.followers.iter().find_map(|follower| follower.health().err()).map(|error| error.to_string())
    }

    /// Adds the programs' counts since the last call to the counters of ports.
    pub fn count(&mut self, counters: &[PortCounters]) {
        for (port, (before, counters)) in self.counted.iter_mut().zip(counters).enumerate() {
            let mut now = [0u64; COUNTS / 8];
            for processor in 0..self.processors {
                let at = (processor * PORTS + port) * COUNTS;
                for (place, sum) in now.iter_mut().enumerate().take(5 + REASONS.len()) {
                    *sum = sum.wrapping_add(self.counters.1.long(at + 8 * place).load(Ordering::Relaxed));
                }
            }
            let more = |place: usize| now[place].wrapping_sub(before[place]);
            counters.received.add(more(0));
            counters.received_bytes.add(more(1));
            counters.forwarded.add(more(2));
            counters.sent.add(more(3));
            counters.sent_bytes.add(more(4));
            for (place, reason) in REASONS.into_iter().enumerate() {
                counters.drop_many(reason, more(5 + place));
            }
            *before = now;
        }
    }
}

impl Drop for Fast {
    fn drop(&mut self) {
        // Before the maps that they write.
        self.followers.clear();
    }
}
