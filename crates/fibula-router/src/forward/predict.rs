//! Predictions: the steps of a packet, found without touching anything.
//!
//! A worker that watches a packet, for a trace or as a sample, predicts it before it handles it, and takes its fate from the counters
//! afterwards.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fibula::net::NextHop;

use crate::acl::{HeaderFields, RulePlace};
use crate::drops::DropReason;
use crate::io::{Io, Offload, Received};
use crate::neighbour::Answer;
use crate::packet::ethernet::{Header, IPV4, IPV6, Mac};
use crate::packet::icmp::{self, MAX_MESSAGE};
use crate::packet::{ipv4, ipv6};
use crate::police::PolicerClass;

use super::fabric::{Fabric, Hop, neighbour};
use super::filter::refusal;
use super::item::{Class, Item, classify};
use super::local::{has_machine, is_past, reply};
use super::sample::Extent;
use super::send::leaves;
use super::trace::{Decision, Fate, Sighting};
use super::watch::{Before, Sight};
use super::worker::{Refused, Shared, Worker, is_welcome, well_formed};

/// The facts that decide about a packet.
#[derive(Clone, Copy)]
pub(super) struct KnownPacket<'p> {
    pub(super) fabric: &'p Fabric,
    pub(super) shared: &'p Shared,
    pub(super) item: &'p Item,
    /// The packet, from its IP header on.
    pub(super) packet: &'p [u8],
    pub(super) offload: Offload,
    /// Whether a back end takes packets of several segments.
    pub(super) segments: bool,
}

impl KnownPacket<'_> {
    fn fields(&self, output: Option<u16>) -> HeaderFields {
        self.item.fields(self.packet, &self.offload, output)
    }

    fn sighting(&self, fate: Fate) -> Sighting {
        Sighting {
            packet: self.fields(None),
            ttl: self.item.ttl,
            route: None,
            hop: None,
            decision: None,
            class: None,
            neighbour: None,
            fate,
        }
    }

    /// Predicts the end of a frame that is not looked up.
    fn unrouted(&self, class: Class) -> Sighting {
        let has_host = self.fabric.has_host(self.item.interface);
        let given = |otherwise| if has_host { Fate::Delivered } else { Fate::Dropped(otherwise) };
        match class {
            Class::Host(otherwise) => self.sighting(given(otherwise)),
            Class::HostIp(otherwise) => {
                let mut sighting = self.sighting(given(otherwise));
                if let Err(refused) = self.local_rules(&mut sighting) {
                    sighting.fate = Fate::Dropped(refused.reason);
                }
                sighting
            }
            Class::Local => self.local(self.sighting(Fate::Consumed)),
            Class::Nd => {
                let mut sighting = self.sighting(Fate::Consumed);
                sighting.class = self.policed(self.item.neighbour_class());
                sighting
            }
            Class::Arp(..) | Class::Route => self.sighting(Fate::Consumed),
        }
    }

    fn local_rules(&self, sighting: &mut Sighting) -> Result<(), Refused> {
        let is_nd = self.item.is_nd(self.packet);
        if let Some(rules) = self.fabric.local_rules.as_ref().filter(|_| !is_nd) {
            let ruling = rules.explain(&sighting.packet, |_| {});
            sighting.decision =
                Some(Decision { place: RulePlace::Local, action: ruling.action, rule: ruling.rule });
            refusal(ruling.action)?;
        }
        // Only the class, because a question must not take a token.
        let class = if is_nd { PolicerClass::Neighbour } else { PolicerClass::of(&sighting.packet) };
        sighting.class = self.policed(class);
        Ok(())
    }

    fn policed(&self, class: PolicerClass) -> Option<PolicerClass> {
        (self.fabric.policers.is_some() && !is_past(self.fabric, self.item)).then_some(class)
    }

    fn local(&self, mut sighting: Sighting) -> Sighting {
        let mut message = [0; MAX_MESSAGE];
        sighting.fate = match self.local_rules(&mut sighting) {
            Err(refused) => Fate::Dropped(refused.reason),
            Ok(()) if has_machine(self.fabric, self.item.interface) => Fate::Delivered,
            Ok(()) => match reply(self.fabric, self.item, self.packet, &mut message) {
                Some(_) => Fate::Consumed,
                None => Fate::Dropped(DropReason::NoHost),
            },
        };
        sighting
    }

    /// Predicts the end of a packet whose destination and source were looked up.
    pub(super) fn routed(&self, route: Option<NextHop>, source: Option<NextHop>) -> Sighting {
        let mut sighting = self.sighting(Fate::Forwarded);
        sighting.route = Some(route);
        match self.decide(&mut sighting, route, source) {
            Ok(fate) => sighting.fate = fate,
            Err(refused) => sighting.fate = Fate::Dropped(refused.reason),
        }
        sighting
    }

    /// The steps of `Worker::route` and `Worker::forward`, in their order.
    fn decide(
        &self,
        sighting: &mut Sighting,
        route: Option<NextHop>,
        source: Option<NextHop>,
    ) -> Result<Fate, Refused> {
        let Self { fabric, shared, item, packet, offload, segments } = *self;
        let may_leave = || {
            is_welcome(fabric, item, source)?;
            if item.header > 20 && !item.v6 { well_formed(&packet[..item.header]) } else { Ok(()) }
        };
        let Some(route) = route else {
            may_leave()?;
            return Err(DropReason::NoRoute.into());
        };
        // In the order of the pipeline, because the first check that fails gives the reason.
        let hash = || fabric.hash.hash(&item.flow(packet));
        let hop = fabric.hop(route.id(), hash).ok_or(DropReason::NextHopUnknown)?;
        sighting.hop = Some(hop.clone());
        // Before the source is checked, because its rules are for packets that are forwarded.
        if *hop == Hop::Local {
            let local = self.local(sighting.clone());
            *sighting = local;
            return Ok(sighting.fate);
        }
        may_leave()?;
        if let (Some(rules), Some(out)) = (&fabric.forward_rules, hop.interface()) {
            let ruling = rules.explain(&self.fields(Some(out)), |_| {});
            let (action, rule) = (ruling.action, ruling.rule);
            sighting.decision = Some(Decision { place: RulePlace::Forward, action, rule });
            sighting.packet.output = Some(out);
            refusal(action)?;
        }
        let (out, gateway) = match hop {
            Hop::Via { interface, gateway } => (*interface, Some(*gateway)),
            Hop::Connected { interface } => (*interface, None),
            Hop::Blackhole => return Err(DropReason::Blackhole.into()),
            Hop::Unreachable => return Err(DropReason::Unreachable.into()),
            Hop::Prohibit => return Err(DropReason::Prohibit.into()),
            Hop::Local | Hop::Group(_) => return Err(DropReason::NextHopUnknown.into()),
        };
        sighting.packet.output = Some(out);
        let way = &fabric.interfaces[usize::from(out)];
        leaves(item, way, out, &offload, segments)?;
        let key = neighbour(out, gateway, item.v6, item.destination);
        // Only read: a request would let the packet of a question change the network.
        let answer = shared.neighbours.get(&key);
        sighting.neighbour = Some((key, answer));
        match answer {
            Answer::Known(_) => Ok(Fate::Forwarded),
            Answer::Waiting | Answer::Unknown => Ok(Fate::Waiting),
            Answer::Failed => Err(DropReason::NeighbourFailed.into()),
        }
    }
}

impl Worker {
    /// Begins a burst that may be watched. Returns whether it is.
    #[cold]
    pub(super) fn begin_watch(&mut self, received: usize, now_ns: u64) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        watch.drawn = watch.sampler.as_mut().map_or(0, |sampler| sampler.of_burst(received));
        // The main thread takes it away later, because it is not in a hurry.
        if watch.trace.as_ref().is_some_and(|trace| trace.is_over()) {
            watch.trace = None;
        }
        watch.traces = false;
        if let Some(trace) = &watch.trace {
            // While too many packets are traced, the others are not even compared.
            watch.traces = self.trace_rate.clone().take(now_ns);
            if !watch.traces {
                trace.skipped.fetch_add(received as u64, Ordering::Relaxed);
            }
        } else if watch.sampler.is_none() {
            self.watch = None;
            return false;
        }
        watch.traces || watch.drawn != 0
    }

    /// Returns whether the trace is about a packet.
    fn is_traced(&mut self, packet: &HeaderFields, now_ns: u64) -> bool {
        let Some(watch) = &self.watch else { return false };
        let Some(trace) = watch.trace.as_ref().filter(|_| watch.traces) else { return false };
        // Before the budget, because packets that do not match must not use it up.
        if !trace.matches(packet) {
            return false;
        }
        let has_room = self.trace_rate.take(now_ns);
        if !has_room {
            trace.left_out.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }

    /// Returns whether a frame of this burst may be watched.
    fn may_watch(&self, index: usize) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.traces || watch.is_drawn(index))
    }

    /// Returns the facts of a packet, if it is watched.
    fn sight(
        &mut self,
        (index, packet): (usize, &HeaderFields),
        extent: Extent,
        now_ns: u64,
        facts: impl FnOnce(&Self) -> Sighting,
    ) -> Option<Sight> {
        let traced = self.is_traced(packet, now_ns);
        let drawn = self.watch.as_ref().is_some_and(|watch| watch.is_drawn(index)).then_some(extent);
        if !traced && drawn.is_none() {
            return None;
        }
        // Before the packet is handled, because that may change the neighbour.
        let sighting = facts(self);
        let port = self.fabric.interfaces[usize::from(packet.input)].port;
        Some(Sight { sighting, before: Before::of(&self.counters[port]), traced, drawn })
    }

    /// Notes the facts of a packet that is about to be routed.
    #[cold]
    pub(super) fn sight_routed(
        &mut self,
        io: &mut impl Io,
        item: &Item,
        (route, source): (Option<NextHop>, Option<NextHop>),
        now_ns: u64,
    ) -> Option<Sight> {
        if !self.may_watch(item.index) {
            return None;
        }
        let fabric = Arc::clone(&self.fabric);
        let offload = io.frame(item.index).offload;
        let hash = |packet: &[u8]| fabric.hash.hash(&item.flow(packet));
        // The filter may ask for the interface by which the packet leaves.
        let out = route
            .and_then(|route| fabric.hop(route.id(), || hash(&io.frame(item.index).bytes[item.range()])));
        let out = out.and_then(Hop::interface);
        // Packets that do not leave have no port that could refuse them.
        let segments = out.is_none_or(|out| io.segments(fabric.interfaces[usize::from(out)].port));
        let frame = io.frame(item.index);
        let packet = &frame.bytes[item.range()];
        let fields = item.fields(packet, &offload, out);
        let extent = Extent::of(item, packet, &offload);
        self.sight((item.index, &fields), extent, now_ns, |worker| {
            let known =
                KnownPacket { fabric: &fabric, shared: &worker.shared, item, packet, offload, segments };
            known.routed(route, source)
        })
    }

    /// Notes the facts of a frame that is not routed.
    #[cold]
    pub(super) fn sight_unrouted(
        &mut self,
        io: &mut impl Io,
        item: &Item,
        (index, class): (usize, Result<Class, DropReason>),
        now_ns: u64,
    ) -> Option<Sight> {
        if !self.may_watch(index) {
            return None;
        }
        let class = match class {
            Ok(class @ (Class::Route | Class::Nd | Class::HostIp(_) | Class::Local)) => class,
            // Neither a trace nor a sample is about frames without an IP header, because their fields are unknown.
            other => {
                self.unreadable(index, other.is_err());
                return None;
            }
        };
        let fabric = Arc::clone(&self.fabric);
        let frame = io.frame(item.index);
        let (packet, offload) = (&frame.bytes[item.range()], frame.offload);
        let fields = item.fields(packet, &offload, None);
        self.sight((index, &fields), Extent::of(item, packet, &offload), now_ns, |worker| {
            let known = KnownPacket {
                fabric: &fabric,
                shared: &worker.shared,
                item,
                packet,
                offload,
                segments: true,
            };
            known.unrouted(class)
        })
    }

    /// Counts a frame without a readable IP header.
    fn unreadable(&self, index: usize, is_dropped: bool) {
        let Some(watch) = &self.watch else { return };
        // Other protocols than IP are none of a trace's business.
        if let Some(trace) = watch.trace.as_ref().filter(|_| watch.traces && is_dropped) {
            trace.unreadable.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(sampler) = watch.sampler.as_ref().filter(|_| watch.is_drawn(index)) {
            sampler.unreadable();
        }
    }

    /// Reports the end of a packet.
    #[cold]
    pub(super) fn report(&mut self, port: usize, sight: Sight) {
        let Sight { mut sighting, before, traced, drawn } = sight;
        // The counters decide, because they see full rings and limits too, which no prediction can.
        sighting.fate = before.fate(&self.counters[port]);
        let Some(watch) = &mut self.watch else { return };
        if let (Some(extent), Some(sampler)) = (drawn, &mut watch.sampler) {
            sampler.put(&sighting, extent);
        }
        if let Some(trace) = watch.trace.as_ref().filter(|_| traced) {
            trace.report(sighting);
        }
    }
}

/// A packet that nobody sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsentPacket {
    /// Whether it is IPv6.
    pub v6: bool,
    /// Source address; an IPv4 address in the low bits.
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Number of the interface on which it comes.
    pub input: u16,
    /// Protocol. TCP begins a connection, and ICMP is a ping.
    pub protocol: u8,
    /// Source and destination port, where the protocol has ports.
    pub ports: (u16, u16),
    /// Code point of differentiated services.
    pub dscp: u8,
}

/// TTL and hop limit of packets that nobody sent.
const TTL: u8 = 64;

impl UnsentPacket {
    /// Returns the frame of the packet, as a station would send it to the router.
    #[must_use]
    pub fn frame(&self, fabric: &Fabric) -> Vec<u8> {
        let ports = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        let upper: Vec<u8> = match self.protocol {
            // A header with the flag SYN.
            6 => [&ports[..], &[0; 8], &[0x50, 2], &[0; 6]].concat(),
            17 | 33 | 132 | 136 => [&ports[..], &[0, 8, 0, 0]].concat(),
            1 => vec![8, 0, 0xf7, 0xff, 0, 0, 0, 0],
            58 => vec![128, 0, 0, 0, 0, 0, 0, 0],
            _ => Vec::new(),
        };
        let interface = &fabric.interfaces[usize::from(self.input)];
        let kind = if self.v6 { IPV6 } else { IPV4 };
        let header = Header::new(interface.mac, Mac([2, 0, 0, 0, 0, 1]), interface.tags, kind);
        let mut packet = vec![0; if self.v6 { ipv6::HEADER } else { 20 }];
        if self.v6 {
            ipv6::write(&mut packet, upper.len(), TTL, self.protocol, self.source, self.destination);
            packet[0] |= self.dscp >> 2;
            packet[1] |= self.dscp << 6;
            packet.extend(upper);
            if self.protocol == 58 {
                icmp::finish_v6(&mut packet, self.source, self.destination);
            }
        } else {
            let (source, destination) = (self.source as u32, self.destination as u32);
            let len = packet.len() + upper.len();
            ipv4::write(&mut packet, len, TTL, self.protocol, source, destination);
            // The checksum covers the code point, so it is computed again.
            packet[1] = self.dscp << 2;
            packet[10..12].fill(0);
            let sum = crate::packet::checksum::checksum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet.extend(upper);
        }
        [header.as_bytes(), &packet].concat()
    }
}

/// Predicts the end of a packet, without sending it. `look_up` finds the route of an address in a VRF.
pub fn predict(
    shared: &Shared,
    unsent: &UnsentPacket,
    look_up: impl Fn(usize, bool, u128) -> Option<NextHop>,
) -> Sighting {
    let fabric = shared.fabric();
    let mut frame = unsent.frame(&fabric);
    let port = fabric.interfaces[usize::from(unsent.input)].port;
    let received = Received { bytes: &mut frame, tag: None, offload: Offload::default(), cut: false };
    let mut item = Item::default();
    let class = classify(&fabric, port, 0, &received, &mut item);
    let packet = received.bytes.get(item.range()).unwrap_or_default();
    let offload = Offload::default();
    let known = KnownPacket { fabric: &fabric, shared, item: &item, packet, offload, segments: true };
    match class {
        Ok(Class::Route) => {
            let look_up = |address| look_up(item.vrf, item.v6, address);
            known.routed(look_up(item.destination), look_up(item.source))
        }
        Ok(class) => known.unrouted(class),
        Err(reason) => known.sighting(Fate::Dropped(reason)),
    }
}
