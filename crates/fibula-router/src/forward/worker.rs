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
use crate::packet::icmp::{MAX_MESSAGE, Problem};
use crate::packet::limit::Bucket;

use super::fabric::{Fabric, Hop, Urpf};
use super::item::{Class, Item, classify};
use super::pending::Pending;

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    fabric: Mutex<Arc<Fabric>>,
    version: AtomicU64,
    /// The neighbours of all interfaces.
    pub neighbours: Neighbours,
    /// The router's own addresses on interfaces that no kernel has.
    pub own: Own,
}

impl Shared {
    /// Begins with a fabric.
    #[must_use]
    pub fn new(fabric: Fabric, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            fabric: Mutex::new(Arc::new(fabric)),
            version: AtomicU64::new(0),
            neighbours: Neighbours::new(limits),
            own: Own::default(),
        })
    }

    /// Returns the fabric of now.
    #[must_use]
    pub fn fabric(&self) -> Arc<Fabric> {
        Arc::clone(&self.fabric.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another fabric in its place. Workers take it up before their next burst. Ports keep their numbers; new ones come
    /// after them. Returns its version, see [`Worker::taken`].
    pub fn replace(&self, fabric: Fabric) -> u64 {
        *self.fabric.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(fabric);
        self.version.fetch_add(1, Ordering::Release) + 1
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

/// A packet that goes no further: the counter, and what its sender is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    pub(super) reason: DropReason,
    pub(super) problem: Option<Problem>,
}

impl From<DropReason> for Refused {
    fn from(reason: DropReason) -> Self {
        Self { reason, problem: None }
    }
}

impl Refused {
    pub(super) const fn telling(reason: DropReason, problem: Problem) -> Self {
        Self { reason, problem: Some(problem) }
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
    /// Generation of the neighbours when waiting packets were looked at last.
    pub(super) generation: u64,
    /// A message that is being made.
    pub(super) message: Box<[u8; MAX_MESSAGE]>,
    /// A packet that is being split.
    pub(super) scratch: Box<[u8]>,
    pub(super) probes: Vec<Probe>,
    /// As many as a burst has frames.
    items: Vec<Item>,
    routes: Box<[Option<NextHop>; BURST]>,
    sources: Box<[Option<NextHop>; BURST]>,
}

/// The lookups of a burst note which frames are left in a word.
const _: () = assert!(BURST == 64);

/// Largest packet of IPv4, and of IPv6 without jumbograms.
const LARGEST: usize = 65_575;

impl Worker {
    /// Makes a worker, whose frames are counted in `counters`: one set for each port, and for ports that may be added.
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
        Ok(Self {
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
        })
    }

    /// Returns where the worker notes the version of the fabric that it has taken up.
    #[must_use]
    pub fn taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// Returns how many packets wait for a neighbour.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Takes up a new fabric, if there is one. One that cannot be (no room for a reader) is tried again later.
    fn refresh(&mut self) {
        let version = self.shared.version();
        if version == self.version {
            return;
        }
        let fabric = self.shared.fabric();
        if let Ok(readers) = readers(&fabric)
            && fabric.ports.len() <= self.counters.len()
        {
            self.readers = readers;
            self.fabric = fabric;
            self.version = version;
            self.taken.store(version, Ordering::Release);
            let (rate, burst) = self.fabric.icmp_rate;
            self.icmp.iter_mut().for_each(|bucket| *bucket = Bucket::new(rate, burst));
        }
    }

    /// Receives a burst from a port and handles it; returns the number of frames. `now_ns` is a time that never goes back.
    ///
    /// Also sends packets whose neighbours have been found meanwhile, so it is to be called for some port every few
    /// milliseconds even where nothing arrives.
    pub fn burst(&mut self, io: &mut impl Io, port: usize, now_ns: u64) -> usize {
        self.refresh();
        let received = io.receive(port);
        if self.fabric.bridge {
            self.bridge(io, port, received);
        } else if received > 0 {
            // Taken out for both passes, so that packets borrow them while the rest of the worker changes.
            let (fabric, mut items) = (Arc::clone(&self.fabric), std::mem::take(&mut self.items));
            let count = self.sort(io, &mut items, port, received, now_ns);
            self.look_up(&items[..count]);
            for (number, item) in items[..count].iter().enumerate() {
                let (route, source) = (self.routes[number], self.sources[number]);
                if let Err(refused) = self.route(io, &fabric, item, route, source, now_ns) {
                    self.refuse(io, port, item, refused, now_ns);
                }
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

    /// Passes frames on to the other port of a pair: what a forwarder without rules and lookups does.
    fn bridge(&mut self, io: &mut impl Io, port: usize, received: usize) {
        let counters = &self.counters[port];
        for index in 0..received {
            let frame = io.frame(index);
            let (len, offload) = (frame.bytes.len(), frame.offload);
            counters.received_bytes.add(len as u64);
            let header = ethernet::whole_header(frame.bytes, frame.tag).filter(|_| !frame.cut);
            let Some((header, payload)) = header else {
                counters.drop(DropReason::FrameTruncated);
                continue;
            };
            let to = port ^ 1;
            if offload.segment != 0 && !io.segments(to) {
                counters.drop(DropReason::OffloadUnsupported);
            } else if io.forward(index, to, header.as_bytes(), payload..len, &offload) {
                counters.forwarded.add(1);
                self.counters[to].sent.add(1);
                self.counters[to].sent_bytes.add((header.as_bytes().len() + len - payload) as u64);
            } else {
                counters.drop(DropReason::TransmitFull);
            }
        }
        counters.received.add(received as u64);
    }

    /// The first pass: returns how many items are to be looked up.
    fn sort(
        &mut self,
        io: &mut impl Io,
        items: &mut [Item],
        port: usize,
        received: usize,
        now_ns: u64,
    ) -> usize {
        let counters = Arc::clone(&self.counters);
        let counters = &counters[port];
        let (mut count, mut bytes) = (0, 0);
        for index in 0..received {
            let frame = io.frame(index);
            bytes += frame.bytes.len() as u64;
            let item = &mut items[count];
            match classify(&self.fabric, port, index, &frame, item) {
                Ok(Class::Route) => count += 1,
                Ok(Class::Host(otherwise)) => self.deliver(io, port, index, otherwise),
                Ok(Class::Arp(interface, start)) => match self.arp(io, index, interface, start, now_ns) {
                    Ok(()) => counters.consumed.add(1),
                    Err(reason) => counters.drop(reason),
                },
                Ok(Class::Nd) => match self.nd(io, item, now_ns) {
                    Ok(()) => counters.consumed.add(1),
                    Err(reason) => counters.drop(reason),
                },
                Ok(Class::Local) => self.local(io, port, item, now_ns),
                Err(reason) => counters.drop(reason),
            }
        }
        counters.received.add(received as u64);
        counters.received_bytes.add(bytes);
        count
    }

    /// Looks up the destinations of items, and sources where uRPF wants them: all of one VRF and family at once, wherever in the
    /// burst they are.
    fn look_up(&mut self, items: &[Item]) {
        let Self { readers, routes, sources, fabric, .. } = self;
        let mut left = if items.is_empty() { 0 } else { u64::MAX >> (BURST - items.len()) };
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
                    left &= !(1 << index);
                    checked |= fabric.interfaces[usize::from(item.interface)].urpf != Urpf::Off;
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

    /// The second pass, for one packet.
    #[inline]
    fn route(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        item: &Item,
        route: Option<NextHop>,
        source: Option<NextHop>,
        now_ns: u64,
    ) -> Result<(), Refused> {
        let Some(route) = route else {
            may_leave(fabric, item, source)?;
            return Err(Refused::telling(DropReason::NoRoute, Problem::NoRoute));
        };
        let hash = || fabric.hash.hash(&item.flow(&io.frame(item.index).bytes[item.range()]));
        let hop = fabric.hop(route.id(), hash).ok_or(DropReason::NextHopUnknown)?;
        if *hop == Hop::Local {
            let port = fabric.interfaces[usize::from(item.interface)].port;
            self.local(io, port, item, now_ns);
            return Ok(());
        }
        may_leave(fabric, item, source)?;
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

    /// Gives a frame to the kernel of the machine, or drops it if the port has none.
    pub(super) fn deliver(&mut self, io: &mut impl Io, port: usize, index: usize, otherwise: DropReason) {
        let counters = &self.counters[port];
        if !self.fabric.ports[port].host {
            counters.drop(otherwise);
        } else if io.deliver(index, port) {
            counters.delivered.add(1);
        } else {
            counters.drop(DropReason::HostFull);
        }
    }
}

/// Checks whether a packet may be forwarded at all, by its source and by how it came here.
#[inline]
fn may_leave(fabric: &Fabric, item: &Item, source: Option<NextHop>) -> Result<(), Refused> {
    if item.group {
        return Err(DropReason::LinkBroadcast.into());
    }
    if item.is_martian_source() {
        return Err(DropReason::MartianSource.into());
    }
    let urpf = fabric.interfaces[usize::from(item.interface)].urpf;
    if urpf == Urpf::Off {
        return Ok(());
    }
    let reason = if urpf == Urpf::Strict { DropReason::UrpfStrict } else { DropReason::UrpfLoose };
    let number = source.ok_or(reason)?.id();
    match fabric.hops.get(number as usize).and_then(Option::as_ref) {
        Some(Hop::Local) => Err(DropReason::MartianSource.into()),
        Some(Hop::Via { .. } | Hop::Connected { .. } | Hop::Group(_))
            if urpf == Urpf::Loose || fabric.leads_through(number, item.interface) =>
        {
            Ok(())
        }
        _ => Err(reason.into()),
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
