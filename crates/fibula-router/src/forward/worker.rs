//! A worker: the state of one thread that forwards, and its two passes over a burst.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fibula::Reader;
use fibula::live::{Pinned, TableError, TableKey};
use fibula::net::NextHop;

use crate::count::PortCounters;
use crate::drops::DropReason;
use crate::io::{BURST, Io};
use crate::neighbour::{Limits, Neighbours, Own, Probe};
use crate::packet::ethernet;
use crate::packet::hop;
use crate::packet::icmp::{MAX_MESSAGE, Problem};
use crate::packet::limit::Bucket;
use crate::packet::options;
use crate::police::{PolicerCounts, Policers};

use super::columns::Columns;
use super::exits::Exits;
use super::fabric::{Fabric, Hop, Urpf};
use super::filter::{Rules, filter};
use super::item::{Class, Entry, Item, Plain, classify, read_plain};
use super::pending::Pending;
pub(super) use super::refused::Refused;
use super::sample::Sampling;
use super::trace::{self, Trace};
use super::watch::Watch;

/// State shared by all workers.
#[derive(Debug)]
pub struct Shared {
    fabric: Mutex<Arc<Fabric>>,
    version: AtomicU64,
    trace: Mutex<Option<Arc<Trace>>>,
    sampling: Mutex<Option<Arc<Sampling>>>,
    /// The neighbours of all interfaces.
    pub neighbours: Neighbours,
    /// The router's own addresses on interfaces unknown to the kernel.
    pub own: Own,
}

impl Shared {
    /// Creates the shared state with a first fabric.
    #[must_use]
    pub fn new(fabric: Fabric, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            fabric: Mutex::new(Arc::new(fabric)),
            version: AtomicU64::new(0),
            trace: Mutex::default(),
            sampling: Mutex::default(),
            neighbours: Neighbours::new(limits),
            own: Own::default(),
        })
    }

    /// Returns the present fabric.
    #[must_use]
    pub fn fabric(&self) -> Arc<Fabric> {
        Arc::clone(&self.fabric.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the fabric. Workers take it up before their next burst. Ports must keep their numbers, and new ports come after
    /// them. Returns the version of the new fabric, see [`Worker::taken`].
    pub fn replace(&self, fabric: Fabric) -> u64 {
        *self.fabric.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(fabric);
        // Count after the fabric is in place, because a worker that sees the new version must find the new fabric.
        self.version.fetch_add(1, Ordering::Release) + 1
    }

    /// Begins a trace, or ends the one that runs. Workers notice before their next burst.
    pub fn set_trace(&self, trace: Option<Arc<Trace>>) {
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = trace;
        self.version.fetch_add(1, Ordering::Release);
    }

    fn trace(&self) -> Option<Arc<Trace>> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins to draw samples, ends it, or has workers take up another interval. They notice before their next burst.
    pub fn set_sampling(&self, sampling: Option<Arc<Sampling>>) {
        *self.sampling.lock().unwrap_or_else(PoisonError::into_inner) = sampling;
        self.version.fetch_add(1, Ordering::Release);
    }

    fn sampling(&self) -> Option<Arc<Sampling>> {
        self.sampling.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

/// The state of one thread that forwards.
#[derive(Debug)]
pub struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) fabric: Arc<Fabric>,
    version: u64,
    taken: Arc<AtomicU64>,
    pub(super) readers: Vec<Reader>,
    pub(super) counters: Arc<[PortCounters]>,
    pub(super) icmp: Vec<Bucket>,
    pub(super) pending: Pending,
    /// Generation of the neighbours when waiting packets were last checked.
    pub(super) generation: u64,
    /// Buffer for a packet of the router's own.
    pub(super) message: Box<[u8; MAX_MESSAGE]>,
    /// Buffer for a packet that is being split or resumed.
    pub(super) scratch: Box<[u8]>,
    pub(super) probes: Vec<Probe>,
    /// One item for each frame of a burst.
    items: Vec<Item>,
    routes: Box<[Option<NextHop>; BURST]>,
    sources: Box<[Option<NextHop>; BURST]>,
    plain: Columns,
    exits: Exits,
    /// The rules of the fabric, with this worker's counters.
    forward_rules: Option<Rules>,
    pub(super) local_rules: Option<Rules>,
    pub(super) policing: Option<Policing>,
    /// A trace, samples, or both; `None` while there is neither, so that packets then cost nothing more.
    pub(super) watch: Option<Box<Watch>>,
    pub(super) trace_rate: Bucket,
}

/// Frames that were sent by one port after another: counters are added to once for all of them.
#[derive(Debug, Default)]
struct Tally {
    port: usize,
    frames: u64,
    bytes: u64,
    forwarded: u64,
}

impl Tally {
    #[inline]
    fn add(&mut self, counters: &[PortCounters], port: usize, bytes: usize) {
        if port != self.port {
            self.flush(counters);
            self.port = port;
        }
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    #[inline]
    fn flush(&mut self, counters: &[PortCounters]) {
        counters[self.port].sent.add(self.frames);
        counters[self.port].sent_bytes.add(self.bytes);
        self.forwarded += self.frames;
        (self.frames, self.bytes) = (0, 0);
    }
}

/// Policers, and a worker's counters of them.
#[derive(Debug)]
pub(super) struct Policing {
    pub(super) policers: Arc<Policers>,
    pub(super) counts: Arc<PolicerCounts>,
}

impl Policing {
    /// Takes up the policers of a fabric. Counters go on while they are the same.
    fn take_up(place: &mut Option<Self>, policers: Option<&Arc<Policers>>) {
        let is_same = match (&place, policers) {
            (Some(own), Some(policers)) => Arc::ptr_eq(&own.policers, policers),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            *place =
                policers.map(|policers| Self { policers: Arc::clone(policers), counts: policers.join() });
        }
    }
}

/// `look_up` keeps the remaining frames of a burst as the bits of a `u64`.
const _: () = assert!(BURST == 64);

/// Largest packet of IPv4, and of IPv6 without jumbograms.
const LARGEST: usize = 65_575;

impl Worker {
    /// Creates a worker that counts frames in `counters`. There must be one set for each port, and for each port that may be
    /// added.
    ///
    /// # Errors
    /// When a table has no room for another reader.
    ///
    /// # Panics
    /// When there are fewer counters than ports.
    pub fn new(shared: Arc<Shared>, counters: Arc<[PortCounters]>) -> Result<Self, TableError> {
        let version = shared.version();
        let fabric = shared.fabric();
        assert!(counters.len() >= fabric.ports.len(), "counters for every port");
        let largest = fabric.interfaces.iter().map(|interface| interface.mtu).max().unwrap_or(0).max(1500);
        let icmp = counters.iter().map(|_| Bucket::new(fabric.icmp_rate.0, fabric.icmp_rate.1)).collect();
        let mut worker = Self {
            readers: readers(&fabric)?,
            version,
            taken: Arc::new(AtomicU64::new(version)),
            fabric,
            generation: shared.neighbours.generation(),
            shared,
            counters,
            icmp,
            pending: Pending::new(largest),
            message: Box::new([0; MAX_MESSAGE]),
            scratch: vec![0; LARGEST].into_boxed_slice(),
            probes: Vec::new(),
            items: vec![Item::default(); BURST],
            routes: Box::new([None; BURST]),
            sources: Box::new([None; BURST]),
            plain: Columns::new(),
            exits: Exits::new(),
            forward_rules: None,
            local_rules: None,
            policing: None,
            watch: None,
            trace_rate: Bucket::new(trace::RATE.0, trace::RATE.1),
        };
        worker.take_up_rules();
        worker.take_up_watch();
        Ok(worker)
    }

    /// Returns the cell in which the worker notes the version of the fabric that it has taken up.
    #[must_use]
    pub fn taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// Returns the number of packets that wait for a neighbour.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Takes up a new fabric, if there is one. If that fails, for example without room for a reader, the next burst tries again.
    fn refresh(&mut self) {
        // Read the version before the fabric. A fabric newer than the version only means that the next burst takes it up again.
        let version = self.shared.version();
        if version == self.version {
            return;
        }
        self.take_up_watch();
        let fabric = self.shared.fabric();
        // Only the trace or the sampling is new. New readers would cost time, so that a trace would be felt by every packet.
        if Arc::ptr_eq(&fabric, &self.fabric) {
            self.version = version;
            self.taken.store(version, Ordering::Release);
            return;
        }
        if let Ok(readers) = readers(&fabric)
            && fabric.ports.len() <= self.counters.len()
        {
            self.readers = readers;
            self.fabric = fabric;
            self.exits.clear();
            self.version = version;
            self.taken.store(version, Ordering::Release);
            let (rate, burst) = self.fabric.icmp_rate;
            self.icmp.iter_mut().for_each(|bucket| *bucket = Bucket::new(rate, burst));
            self.take_up_rules();
        }
    }

    fn take_up_watch(&mut self) {
        Watch::take_up(&mut self.watch, self.shared.trace(), self.shared.sampling());
    }

    fn take_up_rules(&mut self) {
        Rules::take_up(&mut self.forward_rules, self.fabric.forward_rules.as_ref());
        Rules::take_up(&mut self.local_rules, self.fabric.local_rules.as_ref());
        Policing::take_up(&mut self.policing, self.fabric.policers.as_ref());
    }

    /// Receives a burst from a port and handles it. Returns the number of frames. `now_ns` must come from a clock that never goes
    /// back.
    ///
    /// Also sends packets whose neighbours have been found meanwhile. Call it for some port every few milliseconds, even if
    /// nothing arrives.
    pub fn burst(&mut self, io: &mut impl Io, port: usize, now_ns: u64) -> usize {
        self.refresh();
        if port >= self.fabric.ports.len() {
            // The port is newer than the fabric that could be taken up.
            return 0;
        }
        let received = io.receive(port);
        if self.fabric.bridge {
            self.bridge(io, port, received);
        } else if let Some(interface) = self.fabric.ports[port].machine_of {
            self.take_from_machine(io, port, interface, received);
        } else if received > 0 {
            // Taken out for both passes, because packets borrow them while the rest of the worker changes.
            let (fabric, mut items) = (Arc::clone(&self.fabric), std::mem::take(&mut self.items));
            let watched = self.watch.is_some() && self.begin_watch(received, now_ns);
            // Two copies of both passes, because rules would cost packets registers even where there are none.
            let frames = (port, received, watched);
            match self.forward_rules {
                None => self.pass_burst::<false>(io, &fabric, &mut items, frames, now_ns),
                Some(_) => self.pass_burst::<true>(io, &fabric, &mut items, frames, now_ns),
            }
            self.items = items;
        }
        if self.pending.len() > 0
            && (self.pending.next_ns <= now_ns || self.generation != self.shared.neighbours.generation())
        {
            self.resume(io, now_ns);
        }
        io.finish();
        received
    }

    /// Runs both passes. Without `RULES`, they have no code for rules of forwarding, so that these cost nothing.
    #[inline]
    fn pass_burst<const RULES: bool>(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        items: &mut [Item],
        (port, received, watched): (usize, usize, bool),
        now_ns: u64,
    ) {
        let count = self.sort::<RULES>(io, fabric, items, port, (received, watched), now_ns);
        self.look_up(&items[..count]);
        // The whole burst at once, because a lookup then hides the memory latency of another.
        if let Some(rules) = &mut self.forward_rules {
            rules.pass(io, &items[..count], &self.plain);
        }
        self.exits.refresh(&self.shared.neighbours);
        self.route_all::<RULES>(io, fabric, port, &items[..count], watched, now_ns);
    }

    /// Passes frames to the other port of a pair, without rules and lookups.
    fn bridge(&mut self, io: &mut impl Io, port: usize, received: usize) {
        let counters = &self.counters[port];
        let (mut received_bytes, mut forwarded, mut sent_bytes) = (0, 0, 0);
        for index in 0..received {
            let frame = io.frame(index);
            let (len, offload) = (frame.bytes.len(), frame.offload);
            received_bytes += len as u64;
            let header = ethernet::whole_header(frame.bytes, frame.tag).filter(|_| !frame.cut);
            let Some((header, payload)) = header else {
                counters.drop(DropReason::FrameTruncated);
                continue;
            };
            // Ports are paired by number: 0 with 1, 2 with 3.
            let to = port ^ 1;
            if offload.segment != 0 && !io.segments(to) {
                counters.drop(DropReason::OffloadUnsupported);
            } else if io.forward(index, to, &header, payload..len, &offload) {
                forwarded += 1;
                sent_bytes += (header.size() + len - payload) as u64;
            } else {
                counters.drop(DropReason::TransmitFull);
            }
        }
        counters.received.add(received as u64);
        counters.received_bytes.add(received_bytes);
        if forwarded > 0 {
            counters.forwarded.add(forwarded);
            self.counters[port ^ 1].sent.add(forwarded);
            self.counters[port ^ 1].sent_bytes.add(sent_bytes);
        }
    }

    /// Runs the first pass. Returns the number of items to look up. Fields that rules alone test are read with `RULES`.
    // A function of its own, like the second pass, because both need all registers.
    #[inline(never)]
    fn sort<const RULES: bool>(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        items: &mut [Item],
        port: usize,
        (received, watched): (usize, bool),
        now_ns: u64,
    ) -> usize {
        let entry = Entry::of(fabric, port);
        // Taken out, because the compiler would read and write them in memory for every packet.
        let mut plain = std::mem::take(&mut self.plain);
        let (mut is_v4, mut is_v6) = (0, 0);
        let (mut count, mut bytes) = (0, 0);
        for index in 0..received {
            let frame = io.frame(index);
            bytes += frame.bytes.len() as u64;
            // An item that is not routed is overwritten by the next frame.
            let item = &mut items[count];
            match read_plain::<RULES>(&entry, fabric, index, &frame, item) {
                Some(Plain::V4) => {
                    plain.put::<RULES>(count, item, Plain::V4);
                    is_v4 |= 1 << count;
                }
                Some(Plain::V6) => {
                    plain.put::<RULES>(count, item, Plain::V6);
                    is_v6 |= 1 << count;
                }
                None if self.sort_other(io, fabric, item, (port, index), watched, now_ns) => {}
                None => continue,
            }
            count += 1;
        }
        self.plain = Columns { is_v4, is_v6, vrf: entry.vrf, urpf: entry.urpf, ..plain };
        self.counters[port].received.add(received as u64);
        self.counters[port].received_bytes.add(bytes);
        count
    }

    /// Runs the first pass for a frame that is not plain at first sight. Returns whether it is to be routed.
    #[inline(never)]
    fn sort_other(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        item: &mut Item,
        (port, index): (usize, usize),
        watched: bool,
        now_ns: u64,
    ) -> bool {
        let frame = io.frame(index);
        let class = classify(fabric, port, index, &frame, item);
        // First, because most packets are routed, and are watched when their route is known.
        if let Ok(Class::Route) = class {
            item.plain = item.is_plain(fabric, &frame.offload);
            item.read_word(frame.bytes);
            return true;
        }
        let sight = if watched { self.sight_unrouted(io, item, (index, class), now_ns) } else { None };
        match class {
            Ok(Class::Route) => {}
            Ok(Class::Host(otherwise)) => match self.police_frame(io, item, index, now_ns) {
                Ok(()) => self.deliver(io, port, item, otherwise),
                Err(reason) => self.counters[port].drop(reason),
            },
            Ok(Class::HostIp(otherwise)) => match self.judge_local(io, item, now_ns) {
                Ok(()) => self.deliver(io, port, item, otherwise),
                Err(refused) => self.refuse(io, port, item, refused, now_ns),
            },
            Ok(Class::Arp(interface, start)) => {
                let done = self.police_frame(io, item, index, now_ns);
                match done.and_then(|()| self.arp(io, index, interface, start, now_ns)) {
                    Ok(()) => self.counters[port].consumed.add(1),
                    Err(reason) => self.counters[port].drop(reason),
                }
            }
            Ok(Class::Nd) => {
                // Before it is read, because checksums are the cost of a flood.
                let done = self.police(item, item.neighbour_class(), now_ns);
                match done.and_then(|()| self.nd(io, item, now_ns)) {
                    Ok(()) => self.counters[port].consumed.add(1),
                    Err(reason) => self.counters[port].drop(reason),
                }
            }
            Ok(Class::Local) => self.local(io, port, item, now_ns),
            Err(reason) => self.counters[port].drop(reason),
        }
        if let Some(sight) = sight {
            self.report(port, sight);
        }
        false
    }

    /// Looks up the destinations of items, and their sources if uRPF needs them. Items of the same VRF and family are looked up
    /// together, wherever they are in the burst, because a batch hides the latency of memory.
    fn look_up(&mut self, items: &[Item]) {
        let Self { readers, routes, sources, plain, .. } = self;
        // One bit for each item. An empty burst is a case of its own, because a shift by all 64 bits would overflow.
        let mut left = if items.is_empty() { 0 } else { u64::MAX >> (BURST - items.len()) };
        // With uRPF, sources are looked up beside them.
        if !plain.urpf {
            if plain.is_v4 != 0 {
                plain_column(
                    &readers[plain.vrf].pin(),
                    &plain.v4[..items.len()],
                    (plain.is_v4, left),
                    routes,
                );
            }
            if plain.is_v6 != 0 {
                plain_column(
                    &readers[plain.vrf].pin(),
                    &plain.v6[..items.len()],
                    (plain.is_v6, left),
                    routes,
                );
            }
            left &= !(plain.is_v4 | plain.is_v6);
        }
        while left != 0 {
            let first = &items[left.trailing_zeros() as usize];
            let (mut places, mut number, mut checked) = ([0u8; BURST], 0, false);
            let mut rest = left;
            while rest != 0 {
                let index = rest.trailing_zeros();
                let item = &items[index as usize];
                if item.vrf == first.vrf && item.v6 == first.v6 {
                    places[number] = index as u8;
                    number += 1;
                    // `left` loses the items of this group; `rest` goes through all of them.
                    left &= !(1 << index);
                    checked |= item.urpf;
                }
                rest &= rest - 1;
            }
            let (pin, places) = (readers[first.vrf].pin(), &places[..number]);
            if first.v6 {
                column(&pin, items, places, |item| item.destination, routes);
                if checked {
                    column(&pin, items, places, |item| item.source, sources);
                }
            } else {
                column(&pin, items, places, |item| item.destination as u32, routes);
                if checked {
                    column(&pin, items, places, |item| item.source as u32, sources);
                }
            }
        }
    }

    /// Runs the second pass.
    #[inline(never)]
    fn route_all<const RULES: bool>(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        port: usize,
        items: &[Item],
        watched: bool,
        now_ns: u64,
    ) {
        let mut tally = Tally::default();
        for (number, item) in items.iter().enumerate() {
            if watched
                || !item.plain
                || !self.pass_on::<RULES>(io, fabric, port, (number, item), &mut tally, now_ns)
            {
                self.route_other(io, fabric, port, (number, item), watched, now_ns);
            }
        }
        tally.flush(&self.counters);
        self.counters[port].forwarded.add(tally.forwarded);
    }

    /// Forwards a plain packet by an exit that is known. Returns `false`, with nothing done, if none is: [`route`](Self::route) has all
    /// the rules.
    #[inline(always)]
    fn pass_on<const RULES: bool>(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        port: usize,
        (number, item): (usize, &Item),
        tally: &mut Tally,
        now_ns: u64,
    ) -> bool {
        let Some(route) = self.routes[number] else { return false };
        let neighbours = &self.shared.neighbours;
        let exit = match self.exits.get(fabric, neighbours, route.id(), item.v6) {
            Some(exit) => exit,
            None => {
                let Some(member) = member(fabric, io, item, route) else { return false };
                let Some(exit) = self.exits.get(fabric, neighbours, member, item.v6) else { return false };
                exit
            }
        };
        if item.len > exit.mtu {
            return false;
        }
        if item.urpf
            && let Err(refused) = may_leave(fabric, io, item, self.sources[number])
        {
            self.refuse(io, port, item, refused, now_ns);
            return true;
        }
        if RULES
            && let Some(rules) = &self.forward_rules
            && let Err(refused) = filter(rules, io, (number, item), exit.interface, now_ns)
        {
            self.refuse(io, port, item, refused, now_ns);
            return true;
        }
        let frame = io.frame(item.index);
        let offload = frame.offload;
        hop(&mut frame.bytes[item.start..], item.v6);
        if io.forward(item.index, exit.port, &exit.header, item.range(), &offload) {
            tally.add(&self.counters, exit.port, exit.header.size() + item.len);
        } else {
            self.refuse(io, port, item, DropReason::TransmitFull.into(), now_ns);
        }
        true
    }

    /// Runs the second pass for one packet of any kind.
    #[inline(never)]
    fn route_other(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        port: usize,
        (number, item): (usize, &Item),
        watched: bool,
        now_ns: u64,
    ) {
        let (route, source) = (self.routes[number], self.sources[number]);
        let sight = if watched { self.sight_routed(io, item, (route, source), now_ns) } else { None };
        if let Err(refused) = self.route(io, fabric, (number, item), route, source, now_ns) {
            self.refuse(io, port, item, refused, now_ns);
        }
        if let Some(sight) = sight {
            self.report(port, sight);
        }
    }

    /// Decides about a packet by its route, and forwards it or says why not. It has all rules of forwarding.
    #[inline]
    fn route(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        (number, item): (usize, &Item),
        route: Option<NextHop>,
        source: Option<NextHop>,
        now_ns: u64,
    ) -> Result<(), Refused> {
        // Check the source first, because a forged source must not be sent an error.
        let Some(route) = route else {
            may_leave(fabric, io, item, source)?;
            return Err(Refused::telling(DropReason::NoRoute, Problem::NoRoute));
        };
        let hash = || fabric.hash.hash(&item.flow(&io.frame(item.index).bytes[item.range()]));
        let hop = fabric.hop(route.id(), hash).ok_or(DropReason::NextHopUnknown)?;
        // Before `may_leave`, because its rules are for packets that are forwarded.
        if *hop == Hop::Local {
            let port = fabric.interfaces[usize::from(item.interface)].port;
            self.local(io, port, item, now_ns);
            return Ok(());
        }
        may_leave(fabric, io, item, source)?;
        // After the source is checked, because a forged source must not be told by ICMP.
        if let (Some(rules), Some(out)) = (&self.forward_rules, hop.interface()) {
            filter(rules, io, (number, item), out, now_ns)?;
        }
        match hop {
            Hop::Via { interface, gateway } => {
                self.forward(io, fabric, item, *interface, Some(*gateway), now_ns)
            }
            Hop::Connected { interface } => self.forward(io, fabric, item, *interface, None, now_ns),
            Hop::Blackhole => Err(DropReason::Blackhole.into()),
            Hop::Unreachable => Err(Refused::telling(DropReason::Unreachable, Problem::HostUnreachable)),
            Hop::Prohibit => Err(Refused::telling(DropReason::Prohibit, Problem::Prohibited)),
            Hop::Local | Hop::Group(_) => Err(DropReason::NextHopUnknown.into()),
        }
    }

    /// Gives a frame to the machine's kernel, or drops it if the port has none.
    pub(super) fn deliver(&mut self, io: &mut impl Io, port: usize, item: &Item, otherwise: DropReason) {
        let counters = &self.counters[port];
        if let Some(side) = self.fabric.interfaces[usize::from(item.interface)].machine {
            self.give_to_machine(io, (port, side), item.index);
        } else if !self.fabric.has_host(item.interface) {
            counters.drop(otherwise);
        } else if io.deliver(item.index, port) {
            counters.delivered.add(1);
        } else {
            counters.drop(DropReason::HostFull);
        }
    }
}

/// Returns the next hop that a packet takes of a group.
#[inline(never)]
fn member(fabric: &Fabric, io: &mut impl Io, item: &Item, route: NextHop) -> Option<u32> {
    fabric.member(route.id(), || fabric.hash.hash(&item.flow(&io.frame(item.index).bytes[item.range()])))
}

/// Checks whether a packet may be forwarded, by its source address, by the interface on which it was received, and by its options.
#[inline]
fn may_leave(fabric: &Fabric, io: &mut impl Io, item: &Item, source: Option<NextHop>) -> Result<(), Refused> {
    if item.plain && !item.urpf {
        return Ok(());
    }
    is_welcome(fabric, item, source)?;
    if item.header > 20 && !item.v6 {
        well_formed(&io.frame(item.index).bytes[item.start..item.start + item.header])?;
    }
    Ok(())
}

/// Checks the options of an IPv4 header.
pub(super) fn well_formed(header: &[u8]) -> Result<(), Refused> {
    options::check(header).map_err(|fault| {
        let malformed = fault.reason == DropReason::Ipv4Options;
        let problem = malformed.then_some(Problem::Parameter(fault.pointer));
        Refused { reason: fault.reason, problem }
    })
}

/// Checks a packet's source address.
#[inline]
pub(super) fn is_welcome(fabric: &Fabric, item: &Item, source: Option<NextHop>) -> Result<(), Refused> {
    if item.group {
        return Err(DropReason::LinkBroadcast.into());
    }
    let interface = &fabric.interfaces[usize::from(item.interface)];
    // An address of this machine is forged.
    if item.is_martian_source(fabric.martians) || fabric.own.contains(interface.vrf, item.v6, item.source) {
        return Err(DropReason::MartianSource.into());
    }
    let urpf = interface.urpf;
    // A link-local source passes, because it is a station of this link and no route leads to it.
    if urpf == Urpf::Off || item.is_link_local_source() {
        return Ok(());
    }
    let reason = if urpf == Urpf::Strict { DropReason::UrpfStrict } else { DropReason::UrpfLoose };
    let number = source.ok_or(reason)?.id();
    match fabric.hops.get(number as usize).and_then(Option::as_ref) {
        Some(Hop::Via { .. } | Hop::Connected { .. } | Hop::Group(_))
            if urpf == Urpf::Loose || fabric.leads_through(number, item.interface) =>
        {
            Ok(())
        }
        _ => Err(reason.into()),
    }
}

/// Looks up the plain packets of a family, which have a bit in `wanted`. If they are all of the burst, their column is the batch.
#[inline]
fn plain_column<K: TableKey + Default>(
    pin: &Pinned<'_>,
    keys: &[K],
    (wanted, all): (u64, u64),
    results: &mut [Option<NextHop>; BURST],
) {
    if wanted == all {
        pin.lookup_batch(keys, &mut results[..keys.len()]);
        return;
    }
    let (mut places, mut number, mut rest) = ([0u8; BURST], 0, wanted);
    let (mut dense, mut found) = ([K::default(); BURST], [None; BURST]);
    while rest != 0 {
        let place = rest.trailing_zeros() as u8;
        (places[number], dense[number]) = (place, keys[usize::from(place)]);
        number += 1;
        rest &= rest - 1;
    }
    pin.lookup_batch(&dense[..number], &mut found[..number]);
    for (&found, &place) in found.iter().zip(&places[..number]) {
        results[usize::from(place)] = found;
    }
}

/// Looks up an address of each item in `places`.
#[inline]
fn column<K: TableKey + Default>(
    pin: &Pinned<'_>,
    items: &[Item],
    places: &[u8],
    address: impl Fn(&Item) -> K,
    results: &mut [Option<NextHop>; BURST],
) {
    let mut keys = [K::default(); BURST];
    let mut found = [None; BURST];
    for (key, &place) in keys.iter_mut().zip(places) {
        *key = address(&items[usize::from(place)]);
    }
    pin.lookup_batch(&keys[..places.len()], &mut found[..places.len()]);
    for (&found, &place) in found.iter().zip(places) {
        results[usize::from(place)] = found;
    }
}

fn readers(fabric: &Fabric) -> Result<Vec<Reader>, TableError> {
    fabric.vrfs.iter().map(|vrf| vrf.table.reader()).collect()
}
