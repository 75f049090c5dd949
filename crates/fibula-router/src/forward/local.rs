//! Handles packets for the router itself: ARP, neighbour discovery, pings.

use std::sync::Arc;

use crate::count::Made;
use crate::drops::DropReason;
use crate::io::Io;
use crate::neighbour::{Answer, Duty, Key, Probe};
use crate::packet::ethernet::{self, ARP, IPV6, Mac};
use crate::packet::icmp::MAX_MESSAGE;
use crate::packet::nd::{self, Nd};
use crate::packet::{arp, icmp, ipv4, ipv6, mld};
use crate::police::PolicerClass;

use super::fabric::Fabric;
use super::filter::refusal;
use super::item::Item;
use super::worker::{Policing, Refused, Worker};

impl Worker {
    /// Handles an ARP packet of an interface whose neighbours the router resolves.
    pub(super) fn arp(
        &mut self,
        io: &mut impl Io,
        index: usize,
        interface: u16,
        start: usize,
        now_ns: u64,
    ) -> Result<(), DropReason> {
        let arp = arp::parse(&io.frame(index).bytes[start..])?;
        let own = &self.fabric.interfaces[usize::from(interface)];
        let (mac, for_us) = (own.mac, own.has_v4(arp.target));
        // A probe (RFC 5227) has no sender address yet.
        let probe = arp.request && arp.sender == 0;
        // A switch may send back our own probe or announcement. It must not count as a conflict.
        if arp.sender_mac == mac {
            return Err(DropReason::ArpForeign);
        }
        if own.has_v4(arp.sender) {
            self.shared.own.claim(Key::v4(interface, arp.sender), arp.sender_mac, now_ns);
            return Err(DropReason::ArpConflict);
        }
        // Otherwise, any station could fill the table of neighbours with addresses of other networks.
        if !probe && !own.is_near_v4(arp.sender) {
            return Err(DropReason::ArpForeign);
        }
        let target = Key::v4(interface, arp.target);
        let answers = for_us && self.shared.own.is_in_use(target);
        if probe && for_us && !answers {
            // We probe for this address, and another station wants it too.
            self.shared.own.claim(target, arp.sender_mac, now_ns);
            return Err(DropReason::ArpConflict);
        }
        if !probe {
            let key = Key::v4(interface, arp.sender);
            let confirmed = !arp.request && for_us;
            // RFC 826: a station that sends us a request will soon send us packets, so it is added. Others only update known
            // entries.
            self.shared.neighbours.learn(key, arp.sender_mac, confirmed, arp.request && for_us, now_ns);
        }
        if arp.request && answers {
            let reply = arp::write(false, (mac, arp.target), (arp.sender_mac, arp.sender));
            self.emit_control(io, interface, arp.sender_mac, ARP, &reply, Made::ArpReply);
        }
        Ok(())
    }

    /// Handles neighbour discovery of an interface whose neighbours the router resolves.
    pub(super) fn nd(&mut self, io: &mut impl Io, item: &Item, now_ns: u64) -> Result<(), DropReason> {
        let packet = &io.frame(item.index).bytes[item.range()];
        let parsed = ipv6::parse(packet)?;
        let Some(offset) = item.upper else { return Err(DropReason::NdMalformed) };
        if packet.get(offset) == Some(&mld::QUERY) {
            if !mld::is_query(packet, &parsed, offset) {
                return Err(DropReason::NdMalformed);
            }
            self.shared.own.query(item.interface);
            return Ok(());
        }
        let message = nd::parse(packet, &parsed, offset)?;
        let own = &self.fabric.interfaces[usize::from(item.interface)];
        let mac = own.mac;
        match message {
            Nd::Other => return Err(DropReason::NdIgnored),
            Nd::Solicitation { target, link } => {
                if !own.has_v6(target) {
                    return Ok(());
                }
                if !self.shared.own.is_in_use(Key::v6(item.interface, target)) {
                    // Another station probes for the same address. However, a switch may also send back our own probe.
                    let other = source_of(io.frame(item.index).bytes);
                    if parsed.source == 0 && other != mac {
                        self.shared.own.claim(Key::v6(item.interface, target), other, now_ns);
                    }
                    return Ok(());
                }
                if let Some(link) = link {
                    let key = Key::v6(item.interface, parsed.source);
                    self.shared.neighbours.learn(key, link, false, true, now_ns);
                }
                let reply = nd::advertisement(target, mac, parsed.source);
                let to = match (parsed.source, link) {
                    // A station without an address yet cannot be answered directly (RFC 4861, 7.2.4).
                    (0, _) => Mac::of_ipv6_group(nd::ALL_NODES),
                    (_, Some(link)) => link,
                    // Without the option, use the frame's source.
                    (_, None) => source_of(io.frame(item.index).bytes),
                };
                self.emit_control(io, item.interface, to, IPV6, &reply, Made::NdAdvertisement);
            }
            Nd::Advertisement { target, link, solicited, replaces } => {
                if own.has_v6(target) {
                    let other = link.unwrap_or(source_of(io.frame(item.index).bytes));
                    if other != mac {
                        self.shared.own.claim(Key::v6(item.interface, target), other, now_ns);
                    }
                    return Err(DropReason::NdIgnored);
                }
                let key = Key::v6(item.interface, target);
                let known = match self.shared.neighbours.get(&key) {
                    Answer::Known(mac) => Some(mac),
                    _ => None,
                };
                // An answer to a unicast solicitation may leave the MAC address out (RFC 4861, 4.4).
                let Some(link) = link.or(known) else { return Ok(()) };
                // Without the override flag, a known MAC address is not replaced (7.2.5).
                let other = known.is_some_and(|mac| mac != link);
                if replaces || !other {
                    self.shared.neighbours.learn(key, link, solicited, false, now_ns);
                }
            }
        }
        Ok(())
    }

    /// Handles a packet addressed to the router. It goes to the kernel, if the interface has one. Otherwise, the router answers
    /// pings.
    pub(super) fn local(&mut self, io: &mut impl Io, port: usize, item: &Item, now_ns: u64) {
        if let Err(refused) = self.judge_local(io, item, now_ns) {
            return self.refuse(io, port, item, refused, now_ns);
        }
        if has_machine(&self.fabric, item.interface) {
            return self.deliver(io, port, item, DropReason::NoHost);
        }
        let packet = &io.frame(item.index).bytes[item.range()];
        let Some(len) = reply(&self.fabric, item, packet, &mut self.message) else {
            self.counters[port].drop(DropReason::NoHost);
            return;
        };
        self.counters[port].consumed.add(1);
        // No route leads to a link-local source. The answer leaves through the interface of the request.
        let sent = if item.v6 && ipv6::is_link_local(item.source) {
            let key = Key::v6(item.interface, item.source);
            self.originate_to(io, item.interface, key, true, len, now_ns)
        } else {
            self.originate(io, item.vrf, item.v6, len, now_ns)
        };
        if sent {
            self.counters[port].make(Made::EchoReply);
        }
    }

    /// Applies the rules for packets to the router, and then the policers.
    #[cold]
    pub(super) fn judge_local(&self, io: &mut impl Io, item: &Item, now_ns: u64) -> Result<(), Refused> {
        if self.local_rules.is_none() && self.policing.is_none() {
            return Ok(());
        }
        let frame = io.frame(item.index);
        let packet = &frame.bytes[item.range()];
        let is_nd = item.is_nd(packet);
        let packet = item.fields(packet, &frame.offload, None);
        if let Some(rules) = self.local_rules.as_ref().filter(|_| !is_nd) {
            refusal(rules.set.judge_one(&packet, &rules.counts, now_ns))?;
        }
        // After the rules, because packets that a rule refuses must not use up the rate of others.
        let class = if is_nd { PolicerClass::Neighbour } else { PolicerClass::of(&packet) };
        Ok(self.police(item, class, now_ns)?)
    }

    /// Applies the policers to a packet of an interface.
    pub(super) fn police(&self, item: &Item, class: PolicerClass, now_ns: u64) -> Result<(), DropReason> {
        match &self.policing {
            Some(Policing { policers, counts }) if !is_past(&self.fabric, item) => {
                policers.police(class, counts, now_ns)
            }
            _ => Ok(()),
        }
    }

    /// Applies the policers to a frame that is not IP.
    pub(super) fn police_frame(
        &self,
        io: &mut impl Io,
        item: &Item,
        index: usize,
        now_ns: u64,
    ) -> Result<(), DropReason> {
        if self.policing.is_none() {
            return Ok(());
        }
        let frame = io.frame(index);
        let own = &self.fabric.interfaces[usize::from(item.interface)];
        let is_arp = ethernet::parse(frame.bytes, frame.tag).is_ok_and(|header| header.ether_type == ARP);
        let arp = arp::parse(frame.bytes.get(item.start..).unwrap_or_default()).ok().filter(|_| is_arp);
        // The address of a probe is not in use yet, so it has no network to be near to.
        let is_near = arp.is_some_and(|arp| arp.sender == 0 || own.is_near_v4(arp.sender));
        self.police(item, if is_near { PolicerClass::Neighbour } else { PolicerClass::Rest }, now_ns)
    }

    /// Sends a request for a neighbour, or passes it to the kernel if the kernel resolves the neighbours of the interface.
    pub(super) fn probe(&mut self, io: &mut impl Io, probe: Probe) {
        let fabric = Arc::clone(&self.fabric);
        let Some(own) = fabric.interfaces.get(usize::from(probe.key.interface)) else { return };
        if own.kernel {
            self.shared.neighbours.ask_kernel(probe);
            return;
        }
        let target = probe.key.address;
        if probe.key.v6 {
            let Some(source) = own.link_local().or_else(|| own.v6_towards(target)) else { return };
            // Do not send from an address that another station may have. The request is tried again a second later.
            if !self.shared.own.is_in_use(Key::v6(probe.key.interface, source)) {
                return;
            }
            let (packet, len) = nd::solicitation(target, source, own.mac, probe.mac.is_some());
            let to = probe.mac.unwrap_or(Mac::of_ipv6_group(nd::solicited_node(target)));
            self.emit_control(io, probe.key.interface, to, IPV6, &packet[..len], Made::NdSolicitation);
        } else {
            // Without an address of ours, the neighbour has nothing to answer to.
            let Some(source) = own.v4_towards(target as u32) else { return };
            if !self.shared.own.is_in_use(Key::v4(probe.key.interface, source)) {
                return;
            }
            let packet = arp::write(true, (own.mac, source), (Mac::default(), target as u32));
            let to = probe.mac.unwrap_or(Mac::BROADCAST);
            self.emit_control(io, probe.key.interface, to, ARP, &packet, Made::ArpRequest);
        }
    }

    /// Sends a packet for the detection of duplicates or for MLD. Returns whether it was sent.
    fn perform(&mut self, io: &mut impl Io, duty: Duty<'_>) -> bool {
        let fabric = Arc::clone(&self.fabric);
        let number = match duty {
            Duty::Probe(key) | Duty::Announce(key) => key.interface,
            Duty::Report(number, ..) => number,
        };
        let Some(own) = fabric.interfaces.get(usize::from(number)) else { return false };
        match duty {
            Duty::Probe(key) | Duty::Announce(key) if !key.v6 => {
                let (target, announce) = (key.address as u32, matches!(duty, Duty::Announce(_)));
                let sender = if announce { target } else { 0 };
                let packet = arp::write(true, (own.mac, sender), (Mac::default(), target));
                let made = if announce { Made::ArpAnnouncement } else { Made::ArpProbe };
                self.emit_control(io, number, Mac::BROADCAST, ARP, &packet, made)
            }
            Duty::Probe(Key { address: target, .. }) => {
                let (packet, len) = nd::solicitation(target, 0, own.mac, false);
                let to = Mac::of_ipv6_group(nd::solicited_node(target));
                self.emit_control(io, number, to, IPV6, &packet[..len], Made::NdSolicitation)
            }
            Duty::Announce(Key { address: target, .. }) => {
                let packet = nd::advertisement(target, own.mac, 0);
                let to = Mac::of_ipv6_group(nd::ALL_NODES);
                self.emit_control(io, number, to, IPV6, &packet, Made::NdAdvertisement)
            }
            Duty::Report(_, groups, reason, source) => {
                let (packet, len) = mld::report(groups, reason, source);
                let to = Mac::of_ipv6_group(mld::ALL_MLD_ROUTERS);
                self.emit_control(io, number, to, IPV6, &packet[..len], Made::MldReport)
            }
        }
    }

    /// Runs the timers of neighbours: sends the requests that are due. One worker must call this a few times a second.
    pub fn tick(&mut self, io: &mut impl Io, now_ns: u64) {
        // Taken out so that `probe` can borrow the worker; put back below to keep its memory.
        let mut probes = std::mem::take(&mut self.probes);
        self.shared.neighbours.tick(now_ns, &mut probes);
        for probe in probes.drain(..) {
            self.probe(io, probe);
        }
        self.probes = probes;
        let shared = Arc::clone(&self.shared);
        shared.own.tick(now_ns, &mut |duty| self.perform(io, duty));
        io.finish();
    }
}

/// Writes the answer to a ping of the router into `message`, and returns its length; `None` for anything else.
pub(super) fn reply(
    fabric: &Fabric,
    item: &Item,
    packet: &[u8],
    message: &mut [u8; MAX_MESSAGE],
) -> Option<usize> {
    // Never answer frames sent to a group, because one packet would cause an answer of every router on the link. Nor a ping of a
    // network's broadcast address, because it is nobody's to answer from (RFC 1122, section 3.2.1.3).
    let is_own = || fabric.own.contains(item.vrf, false, item.destination);
    if item.group || (!item.v6 && (item.is_martian_source(fabric.martians) || !is_own())) {
        None
    } else if item.v6 {
        let own = &fabric.interfaces[usize::from(item.interface)];
        let ours = !ipv6::is_link_local(item.destination) || own.has_v6(item.destination);
        let parsed = ipv6::parse(packet).ok().filter(|_| ours);
        parsed.and_then(|parsed| icmp::echo_reply_v6(message, packet, &parsed))
    } else {
        let parsed = ipv4::parse(packet).ok();
        parsed.and_then(|parsed| icmp::echo_reply_v4(message, packet, &parsed))
    }
}

/// Returns whether the kernel takes a packet of this interface past the router.
pub(super) fn is_past(fabric: &Fabric, item: &Item) -> bool {
    let interface = &fabric.interfaces[usize::from(item.interface)];
    interface.kernel && interface.machine.is_none() && fabric.ports[interface.port].past
}

/// Returns whether the kernel can be given packets of this interface.
pub(super) fn has_machine(fabric: &Fabric, interface: u16) -> bool {
    fabric.interfaces[usize::from(interface)].kernel && fabric.has_host(interface)
}

pub(super) fn source_of(frame: &[u8]) -> Mac {
    let mut mac = [0; 6];
    mac.copy_from_slice(&frame[6..12]);
    Mac(mac)
}
