//! Sends packets: TTL, MTU, fragments, MAC addresses, and ICMP errors to senders.

use std::sync::Arc;

use crate::count::Made;
use crate::drops::DropReason;
use crate::io::{Io, Offload, complete_checksum};
use crate::neighbour::{Answer, Key, Sender};
use crate::packet::ethernet::{Header, IPV4, IPV6, Mac};
use crate::packet::icmp::{self, Problem};
use crate::packet::options::{Record, milliseconds_today};
use crate::packet::{fragment, hop, ipv4, ipv6, u32_at};

use super::fabric::{Fabric, Gateway, Hop, Interface, neighbour};
use super::item::Item;
use super::worker::{Refused, Worker};

impl Worker {
    /// Forwards a packet, or keeps it until its neighbour is known.
    #[inline]
    pub(super) fn forward(
        &mut self,
        io: &mut impl Io,
        fabric: &Fabric,
        item: &Item,
        out: u16,
        gateway: Option<Gateway>,
        now_ns: u64,
    ) -> Result<(), Refused> {
        let way = &fabric.interfaces[usize::from(out)];
        let port = fabric.interfaces[usize::from(item.interface)].port;
        let offload = io.frame(item.index).offload;
        let segments = offload.segment == 0 || io.segments(way.port);
        let split = leaves(item, way, out, &offload, segments)?;
        let key = neighbour(out, gateway, item.v6, item.destination);
        // The packet is kept unchanged, with its old TTL, because an ICMP error about it must quote it as received.
        let sender = || Sender::of(item.interface, item.v6, item.source);
        let Some(mac) = self.resolve(io, key, sender, now_ns)? else {
            self.make_room();
            let packet = &mut io.frame(item.index).bytes[item.range()];
            if !self.pending.push(key, Some(port), item.interface, packet, offload, now_ns) {
                return Err(DropReason::NeighbourQueue.into());
            }
            return Ok(());
        };
        let packet = &mut io.frame(item.index).bytes[item.range()];
        hop(packet, item.v6);
        if item.header > 20 && !item.v6 {
            record(fabric, way, key, &mut packet[..item.header]);
        }
        if split {
            let scratch = &mut self.scratch[..item.len];
            scratch.copy_from_slice(packet);
            // The device could no longer complete the checksum, because it spans all fragments.
            complete_checksum(scratch, &offload);
            return self.fragments(io, way, mac, item.len, port).map_err(Refused::from);
        }
        let header = Header::new(mac, way.mac, way.tags, if item.v6 { IPV6 } else { IPV4 });
        if !io.forward(item.index, way.port, &header, item.range(), &offload) {
            return Err(DropReason::TransmitFull.into());
        }
        self.counters[port].forwarded.add(1);
        self.sent(way.port, header.size() + item.len);
        Ok(())
    }

    #[inline]
    pub(super) fn sent(&self, port: usize, bytes: usize) {
        self.counters[port].sent.add(1);
        self.counters[port].sent_bytes.add(bytes as u64);
    }

    /// Returns the MAC address of a neighbour; `None` if it is being resolved.
    #[inline]
    fn resolve(
        &mut self,
        io: &mut impl Io,
        key: Key,
        sender: impl FnOnce() -> Sender,
        now_ns: u64,
    ) -> Result<Option<Mac>, Refused> {
        match self.shared.neighbours.get(&key) {
            Answer::Known(mac) => Ok(Some(mac)),
            Answer::Waiting => Ok(None),
            Answer::Failed => Err(Refused::telling(DropReason::NeighbourFailed, Problem::HostUnreachable)),
            Answer::Unknown => match self.shared.neighbours.request(key, sender(), now_ns) {
                Ok(probe) => {
                    if let Some(probe) = probe {
                        self.probe(io, probe);
                    }
                    Ok(None)
                }
                Err(_) => Err(DropReason::NeighbourLimit.into()),
            },
        }
    }

    /// If no packet more may wait, drops one whose neighbour is no longer looked for, because others had more right to its place.
    fn make_room(&mut self) {
        let neighbours = &self.shared.neighbours;
        let freed = self.pending.make_room(|key| neighbours.get(key) != Answer::Unknown);
        if let Some(Some(from)) = freed {
            self.counters[from].drop(DropReason::NeighbourLimit);
        }
    }

    /// Sends the first `len` bytes of `scratch`, which are a packet, as fragments.
    fn fragments(
        &mut self,
        io: &mut impl Io,
        way: &Interface,
        mac: Mac,
        len: usize,
        from: usize,
    ) -> Result<(), DropReason> {
        let packet = &self.scratch[..len];
        let parsed = ipv4::parse(packet)?;
        let parts = fragment::split(packet, &parsed, way.mtu).ok_or(DropReason::TooBig)?;
        let header = Header::new(mac, way.mac, way.tags, IPV4);
        for part in parts {
            let bytes = [header.as_bytes(), part.header(), part.payload];
            if !io.emit(way.port, bytes, &Offload::default()) {
                return Err(DropReason::TransmitFull);
            }
            self.counters[from].make(Made::Fragment);
            self.sent(way.port, bytes.iter().map(|part| part.len()).sum());
        }
        // Once for the whole packet, because every received frame ends in exactly one counter.
        self.counters[from].forwarded.add(1);
        Ok(())
    }

    /// Drops a packet, and sends an ICMP error to its sender if the reason calls for one.
    pub(super) fn refuse(
        &mut self,
        io: &mut impl Io,
        port: usize,
        item: &Item,
        refused: Refused,
        now_ns: u64,
    ) {
        self.counters[port].drop(refused.reason);
        let Some(problem) = refused.problem else { return };
        // No error about frames sent to a group (RFC 1122, section 3.2.2), because one packet would cause many errors.
        if item.group {
            return;
        }
        let packet = &io.frame(item.index).bytes[item.range()];
        if let Some(len) = self.complain(port, item.interface, item.v6, problem, packet, now_ns) {
            self.tell(io, port, item.interface, item.v6, len, now_ns);
        }
    }

    /// Sends the first `len` bytes of `message`, an ICMP error about a packet of an interface.
    fn tell(&mut self, io: &mut impl Io, port: usize, interface: u16, v6: bool, len: usize, now_ns: u64) {
        let to =
            if v6 { ipv6::parse(&self.message[..len]).map_or(0, |parsed| parsed.destination) } else { 0 };
        let own = &self.fabric.interfaces[usize::from(interface)];
        let (vrf, may_send) = (own.vrf, own.up && own.link_local().is_some());
        // An error to a link-local sender leaves by the interface of the packet, because no route leads to the sender.
        let made = if ipv6::is_link_local(to) {
            may_send && self.originate_to(io, interface, Key::v6(interface, to), true, len, now_ns)
        } else {
            self.originate(io, vrf, v6, len, now_ns)
        };
        self.counters[port].make(if made { Made::IcmpError } else { Made::IcmpUnsent });
    }

    /// Makes an ICMP error about a packet in `message`. Returns its length, or `None` if no error may be sent about the packet.
    /// If the VRF has no address, the source is 0, and [`originate`](Self::originate) sends nothing.
    fn complain(
        &mut self,
        port: usize,
        interface: u16,
        v6: bool,
        problem: Problem,
        packet: &[u8],
        now_ns: u64,
    ) -> Option<usize> {
        let vrf = self.fabric.interfaces[usize::from(interface)].vrf;
        if v6 {
            let parsed = ipv6::parse(packet).ok()?;
            let upper = ipv6::upper(packet, parsed.next_header);
            if !icmp::may_answer_v6(packet, &parsed, &upper, problem) || !self.limit(port, now_ns) {
                return None;
            }
            let source = self.source_v6(vrf, interface, parsed.source).unwrap_or(0);
            return Some(icmp::error_v6(&mut self.message, problem, source, packet));
        }
        let parsed = ipv4::parse(packet).ok()?;
        if !icmp::may_answer_v4(packet, &parsed, self.fabric.martians) || !self.limit(port, now_ns) {
            return None;
        }
        let source = self.source_v4(vrf, interface, parsed.source).unwrap_or(0);
        Some(icmp::error_v4(&mut self.message, problem, source, packet))
    }

    fn limit(&mut self, port: usize, now_ns: u64) -> bool {
        let may = self.icmp[port].take(now_ns);
        if !may {
            self.counters[port].make(Made::IcmpLimited);
        }
        may
    }

    /// Returns the source address towards `to`: an address of the interface that the packet leaves through (RFC 1812, section
    /// 4.3.2.4), otherwise of the interface on which its cause was received, otherwise any of the VRF.
    fn source_v4(&mut self, vrf: usize, interface: u16, to: u32) -> Option<u32> {
        let route = self.readers[vrf].pin().lookup(to);
        let fabric = &self.fabric;
        let out = route.and_then(|route| fabric.hop(route.id(), || 0)).and_then(Hop::interface);
        let near = |number: u16| fabric.interfaces[usize::from(number)].v4_towards(to);
        out.and_then(near).or_else(|| near(interface)).or_else(|| fabric.any_v4(vrf))
    }

    fn source_v6(&mut self, vrf: usize, interface: u16, to: u128) -> Option<u128> {
        let route = self.readers[vrf].pin().lookup(to);
        let fabric = &self.fabric;
        let out = route.and_then(|route| fabric.hop(route.id(), || 0)).and_then(Hop::interface);
        let near = |number: u16| fabric.interfaces[usize::from(number)].v6_towards(to);
        out.and_then(near).or_else(|| near(interface)).or_else(|| fabric.any_v6(vrf))
    }

    /// Sends the first `len` bytes of `message`, a packet of the router's own, by the routes of a VRF. Returns whether the packet
    /// was sent or waits for its neighbour.
    pub(super) fn originate(
        &mut self,
        io: &mut impl Io,
        vrf: usize,
        v6: bool,
        len: usize,
        now_ns: u64,
    ) -> bool {
        let packet = &self.message[..len];
        let (source, destination, route) = if v6 {
            let Ok(parsed) = ipv6::parse(packet) else { return false };
            let route = self.readers[vrf].pin().lookup(parsed.destination);
            (parsed.source, parsed.destination, route)
        } else {
            let Ok(parsed) = ipv4::parse(packet) else { return false };
            let route = self.readers[vrf].pin().lookup(parsed.destination);
            (u128::from(parsed.source), u128::from(parsed.destination), route)
        };
        let fabric = Arc::clone(&self.fabric);
        let hop = route.and_then(|route| fabric.hop(route.id(), || 0));
        let (out, gateway) = match hop {
            Some(Hop::Via { interface, gateway }) => (*interface, Some(*gateway)),
            Some(Hop::Connected { interface }) => (*interface, None),
            _ => return false,
        };
        let way = &fabric.interfaces[usize::from(out)];
        if source == 0 || !way.up || len > way.mtu {
            return false;
        }
        self.originate_to(io, out, neighbour(out, gateway, v6, destination), v6, len, now_ns)
    }

    /// Like [`originate`](Self::originate), to a known neighbour of an interface, without a lookup.
    pub(super) fn originate_to(
        &mut self,
        io: &mut impl Io,
        out: u16,
        key: Key,
        v6: bool,
        len: usize,
        now_ns: u64,
    ) -> bool {
        match self.resolve(io, key, || Sender::OWN, now_ns) {
            Ok(Some(mac)) => self.emit(io, out, mac, v6, len),
            Ok(None) => self.pending.push(key, None, out, &self.message[..len], Offload::default(), now_ns),
            Err(_) => false,
        }
    }

    fn emit(&mut self, io: &mut impl Io, out: u16, mac: Mac, v6: bool, len: usize) -> bool {
        let way = &self.fabric.interfaces[usize::from(out)];
        let header = Header::new(mac, way.mac, way.tags, if v6 { IPV6 } else { IPV4 });
        let sent = io.emit(way.port, [header.as_bytes(), &self.message[..len], &[]], &Offload::default());
        if sent {
            self.sent(way.port, header.size() + len);
        }
        sent
    }

    /// Sends a frame of ARP, neighbour discovery or MLD. Returns whether there was room.
    pub(super) fn emit_control(
        &mut self,
        io: &mut impl Io,
        interface: u16,
        to: Mac,
        ether_type: u16,
        packet: &[u8],
        made: Made,
    ) -> bool {
        let way = &self.fabric.interfaces[usize::from(interface)];
        let header = Header::new(to, way.mac, way.tags, ether_type);
        let sent = io.emit(way.port, [header.as_bytes(), packet, &[]], &Offload::default());
        if sent {
            self.counters[way.port].make(made);
            self.sent(way.port, header.size() + packet.len());
        }
        sent
    }

    /// Checks the packets that wait for neighbours. Sends a packet if its neighbour is known now; drops it if its neighbour has
    /// failed or it has waited too long.
    pub(super) fn resume(&mut self, io: &mut impl Io, now_ns: u64) {
        // Read the generation first: a neighbour found during the loop then causes another pass.
        self.generation = self.shared.neighbours.generation();
        for index in 0..self.pending.slots() {
            let Some(waiting) = self.pending.get(index) else { continue };
            match self.shared.neighbours.get(&waiting.key) {
                Answer::Known(mac) => self.resume_one(io, index, mac),
                Answer::Failed => self.give_up(io, index, DropReason::NeighbourFailed, now_ns),
                _ if waiting.until_ns <= now_ns => {
                    self.give_up(io, index, DropReason::NeighbourTimeout, now_ns);
                }
                _ => {}
            }
        }
        self.pending.reckon();
    }

    fn resume_one(&mut self, io: &mut impl Io, index: usize, mac: Mac) {
        let Some(waiting) = self.pending.get(index) else { return };
        let (from, key, offload) = (waiting.from, waiting.key, waiting.offload);
        let packet = waiting.packet();
        let len = packet.len();
        let v6 = packet.first().is_some_and(|&byte| byte >> 4 == 6);
        self.scratch[..len].copy_from_slice(packet);
        self.pending.release(index);
        let fabric = Arc::clone(&self.fabric);
        let Some(way) = fabric.interfaces.get(usize::from(key.interface)) else {
            if let Some(from) = from {
                self.counters[from].drop(DropReason::InterfaceDown);
            }
            return;
        };
        if let Some(from) = from {
            // Only a received packet has a hop to count. Packets of the router's own leave with their full TTL.
            hop(&mut self.scratch[..len], v6);
            let header = usize::from(self.scratch[0] & 15) * 4;
            if !v6 && header > 20 && header <= len {
                record(&fabric, way, key, &mut self.scratch[..header]);
            }
            if !v6 && len > way.mtu && offload.segment == 0 {
                complete_checksum(&mut self.scratch[..len], &offload);
                if let Err(reason) = self.fragments(io, way, mac, len, from) {
                    self.counters[from].drop(reason);
                }
                return;
            }
        }
        let header = Header::new(mac, way.mac, way.tags, if v6 { IPV6 } else { IPV4 });
        let sent = io.emit(way.port, [header.as_bytes(), &self.scratch[..len], &[]], &offload);
        if sent {
            self.sent(way.port, header.size() + len);
        }
        match from {
            Some(from) if sent => self.counters[from].forwarded.add(1),
            Some(from) => self.counters[from].drop(DropReason::TransmitFull),
            None => {}
        }
    }

    /// Drops a waiting packet, and sends an ICMP error to its sender.
    fn give_up(&mut self, io: &mut impl Io, index: usize, reason: DropReason, now_ns: u64) {
        let Some(waiting) = self.pending.get(index) else { return };
        let (from, interface) = (waiting.from, waiting.interface);
        let packet = waiting.packet();
        let len = packet.len();
        let v6 = packet.first().is_some_and(|&byte| byte >> 4 == 6);
        self.scratch[..len].copy_from_slice(packet);
        self.pending.release(index);
        // Packets of the router's own are not counted and cause no error.
        let Some(from) = from else { return };
        self.counters[from].drop(reason);
        // Taken out so that `complain` can borrow the worker; put back below.
        let scratch = std::mem::take(&mut self.scratch);
        let problem = Problem::HostUnreachable;
        if let Some(len) = self.complain(from, interface, v6, problem, &scratch[..len], now_ns) {
            self.tell(io, from, interface, v6, len, now_ns);
        }
        self.scratch = scratch;
    }
}

/// Returns why packets cannot leave by an interface that is not up.
fn away(way: &Interface) -> DropReason {
    if way.missing { DropReason::InterfaceMissing } else { DropReason::InterfaceDown }
}

/// Checks whether a packet can leave by an interface, and returns whether it must be split for that. `segments` says whether the back end
/// takes packets of several segments.
#[inline]
pub(super) fn leaves(
    item: &Item,
    way: &Interface,
    out: u16,
    offload: &Offload,
    segments: bool,
) -> Result<bool, Refused> {
    // Test the TTL before it is decremented: a packet with TTL 1 ends here (RFC 1812, section 5.3.1).
    if item.ttl <= 1 {
        return Err(Refused::telling(DropReason::TtlExpired, Problem::Expired));
    }
    if item.is_link_local_source() && out != item.interface {
        return Err(Refused::telling(DropReason::SourceScope, Problem::BeyondScope));
    }
    if !way.up {
        return Err(Refused::telling(away(way), Problem::HostUnreachable));
    }
    if offload.segment != 0 && !segments {
        return Err(DropReason::OffloadUnsupported.into());
    }
    does_not_fit(item, way.mtu, offload)
}

/// Writes the route and the time into the options of an IPv4 header that ask for them, when the packet leaves for a neighbour.
#[cold]
fn record(fabric: &Fabric, way: &Interface, neighbour: Key, header: &mut [u8]) {
    let to = if neighbour.v6 { u32_at(header, 16) } else { neighbour.address as u32 };
    // Another address of the router, because the interface may have none (RFC 1812, section 4.2.2.2).
    let address = way.v4_towards(to).or_else(|| fabric.any_v4(way.vrf)).unwrap_or(0);
    let is_own = |ip: u32| fabric.own.contains(way.vrf, false, ip.into());
    Record { address, is_own, time: milliseconds_today }.write(header);
}

/// Returns whether a packet must be split for this MTU.
#[inline]
fn does_not_fit(item: &Item, mtu: usize, offload: &Offload) -> Result<bool, Refused> {
    // A packet with segmentation offload leaves as segments, so the MTU applies to each of them.
    let largest = match offload.segment {
        0 => item.len,
        segment => usize::from(segment) + usize::from(offload.headers),
    };
    if largest <= mtu {
        return Ok(false);
    }
    if item.dont_fragment {
        return Err(Refused::telling(DropReason::TooBig, Problem::TooBig(mtu)));
    }
    if offload.segment != 0 {
        return Err(DropReason::OffloadTooBig.into());
    }
    Ok(true)
}
