//! The program and the router in memory, side by side.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fibula_bpf::{Engine, live_table};
use fibula_router::count::{PortCounters, Totals};
use fibula_router::drops::DropReason;
use fibula_router::forward::fabric::{Fabric, Hop};
use fibula_router::io::memory::Frame;
use fibula_router::kernel::fast::Fast;
use fibula_router::kernel::filter::{Filter, Redirect};
use fibula_router::neighbour::Limits;
use fibula_router::packet::ethernet::Tags;

use crate::support::frames::Words;
use crate::support::network::{Network, fabric_of};

/// What the program does with a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Done {
    /// By which port.
    Forwarded(usize),
    Dropped(DropReason),
    /// Left to the router, or to the kernel.
    Slow,
}

/// A fault of what the program reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    Mtu,
    Seed,
    Mac,
    Vlan,
    Urpf,
    OwnAddresses,
    Blackhole,
    Vrf,
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::Mtu,
        Self::Seed,
        Self::Mac,
        Self::Vlan,
        Self::Urpf,
        Self::OwnAddresses,
        Self::Blackhole,
        Self::Vrf,
    ];

    /// Returns the fabric with the fault.
    fn plant(self, mut fabric: Fabric) -> Fabric {
        match self {
            Self::Mtu => fabric.interfaces[1].mtu += 1,
            Self::Seed => fabric.hash.seed ^= 1,
            Self::Mac => fabric.interfaces[1].mac.0[5] ^= 1,
            Self::Vlan => {
                let line = &mut fabric.interfaces[2];
                line.tags = Tags::one(line.tags.vlan() ^ 1);
            }
            Self::Urpf => fabric.interfaces.iter_mut().for_each(|line| line.urpf = Default::default()),
            Self::OwnAddresses => fabric.interfaces.iter_mut().for_each(|line| line.v4.clear()),
            Self::Blackhole => {
                let is = |hop: &&mut Option<Hop>| **hop == Some(Hop::Blackhole);
                fabric
                    .hops
                    .iter_mut()
                    .filter(is)
                    .for_each(|hop| *hop = Some(Hop::Connected { interface: 1 }));
            }
            Self::Vrf => fabric.interfaces.iter_mut().for_each(|line| line.vrf = 0),
        }
        fabric
    }
}

pub(crate) struct Bench {
    pub(crate) network: Network,
    pub(crate) fabric: Fabric,
    fast: Fast,
    programs: Vec<Redirect>,
    counters: Arc<[PortCounters]>,
    fault: Option<Fault>,
    _filter: Filter,
}

fn totals(counters: &[PortCounters]) -> Vec<Totals> {
    let of = |counters: &PortCounters| {
        let mut totals = Totals::default();
        counters.add_to(&mut totals);
        totals
    };
    counters.iter().map(of).collect()
}

/// Returns where the packet of a frame begins and ends, by its own length.
fn packet(frame: &[u8]) -> Option<core::ops::Range<usize>> {
    let at = if frame.get(12..14)? == [0x81, 0] { 18 } else { 14 };
    let word = |at: usize| Some(usize::from(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?])));
    let len = match frame.get(at)? >> 4 {
        4 => word(at + 2)?,
        6 => 40 + word(at + 4)?,
        _ => return None,
    };
    (at + len <= frame.len()).then_some(at..at + len)
}

/// Whether a packet has a plain header, for which the program is.
fn is_plain(frame: &[u8]) -> bool {
    let Some(range) = packet(frame) else { return false };
    let packet = &frame[range];
    match packet[0] {
        0x45 => true,
        first if first >> 4 == 6 => {
            let is_discovery = packet[6] == 58 && packet[7] == 255;
            let is_link_local = packet[8] == 0xfe && packet[9] & 0xc0 == 0x80;
            !matches!(packet[6], 0 | 43 | 44 | 51 | 60) && !is_discovery && !is_link_local
        }
        _ => false,
    }
}

impl Bench {
    pub(crate) fn new(fault: Option<Fault>) -> io::Result<Self> {
        let table = || live_table(Default::default(), &[Engine::Dir18Lines]).expect("a table");
        let fabric = fabric_of(table);
        let network = Network::with(fabric.clone(), Limits::default());
        let filter = Filter::load()?;
        let mut fast = Fast::new(&fabric.vrfs, &[0, 1])?;
        let ports = 0..fabric.ports.len();
        let programs = ports.map(|port| filter.redirect_fast(&mut fast, port, true));
        let programs = programs.collect::<io::Result<_>>()?;
        // The loopback device stands for all: what goes there is counted, not sent.
        let devices: BTreeMap<usize, u32> = (0..fabric.ports.len()).map(|port| (port, 1)).collect();
        fast.set_devices(&devices);
        let counters = fabric.ports.iter().map(|_| PortCounters::default()).collect();
        let mut bench = Self { network, fabric, fast, programs, counters, fault, _filter: filter };
        bench.publish();
        Ok(bench)
    }

    /// Begins anew, with the neighbours of the beginning.
    pub(crate) fn reset(&mut self) {
        self.network = Network::with(self.fabric.clone(), Limits::default());
        self.publish();
    }

    /// Gives both the fabric.
    pub(crate) fn publish(&mut self) {
        self.network.shared.replace(self.fabric.clone());
        let fabric = self.fabric.clone();
        let fabric = self.fault.map_or_else(|| fabric.clone(), |fault| fault.plant(fabric.clone()));
        self.fast.publish(&fabric, &self.network.shared.neighbours);
    }

    pub(crate) fn follow_neighbours(&mut self) {
        self.fast.follow_neighbours(&self.network.shared.neighbours);
    }

    pub(crate) fn wait(&mut self, milliseconds: u64) {
        self.network.wait(milliseconds);
        self.follow_neighbours();
    }

    /// Gives a frame to the router alone.
    pub(crate) fn only_router(&mut self, port: usize, frame: Words) {
        let frame = Frame { bytes: frame.bytes, tag: frame.tag.map(Into::into), ..Frame::default() };
        self.network.io.ports[port].input.push_back(frame);
        self.network.run();
        self.follow_neighbours();
    }

    /// Numbers of next hops that lead to a neighbour.
    pub(crate) fn ways(&self) -> Vec<u32> {
        let is_way = |(number, hop): (usize, &Option<Hop>)| match hop {
            Some(Hop::Via { interface: 1 | 2, .. }) => Some(number as u32),
            _ => None,
        };
        // Without the one that does not answer.
        self.fabric.hops.iter().enumerate().filter_map(is_way).take(3).collect()
    }

    /// The number of the group.
    pub(crate) fn group(&self) -> usize {
        self.fabric.hops.iter().position(|hop| matches!(hop, Some(Hop::Group(_)))).expect("a group")
    }

    /// Gives a frame to the program alone.
    pub(crate) fn frame_of_program(&mut self, port: usize, frame: &[u8]) -> Result<Done, String> {
        self.program(port, frame).map(|(done, _)| done)
    }

    fn program(&mut self, port: usize, frame: &[u8]) -> Result<(Done, Vec<u8>), String> {
        let before = totals(&self.counters);
        let ran = self.programs[port].run(frame, frame.len() + 64);
        let (verdict, out) = ran.map_err(|error| format!("the program does not run: {error}"))?;
        self.fast.count(&self.counters);
        let after = totals(&self.counters);
        let more = |port: usize| -> (u64, u64, u64) {
            let (a, b) = (&after[port], &before[port]);
            (a.received - b.received, a.forwarded - b.forwarded, a.all_dropped() - b.all_dropped())
        };
        let by: Vec<usize> = (0..after.len()).filter(|&port| after[port].sent != before[port].sent).collect();
        let others = (0..after.len()).filter(|&other| other != port).any(|other| more(other) != (0, 0, 0));
        let done = match (verdict, more(port), &by[..]) {
            _ if others => return Err("counted at another port".into()),
            (4, (1, 1, 0), &[by]) => {
                if after[by].sent_bytes - before[by].sent_bytes > out.len() as u64 {
                    return Err("counts more bytes than it sends".into());
                }
                Done::Forwarded(by)
            }
            (1, (1, 0, 1), []) => {
                let is = |reason: &&DropReason| {
                    after[port].dropped[reason.index()] != before[port].dropped[reason.index()]
                };
                Done::Dropped(*DropReason::ALL.iter().find(is).ok_or("dropped for no reason")?)
            }
            (2, (0, 0, 0), []) if out == frame => Done::Slow,
            (2, (0, 0, 0), []) => return Err("left to the router with changes".into()),
            other => return Err(format!("verdict, (received, forwarded, dropped) and ways: {other:?}")),
        };
        if done != Done::Slow
            && after[port].received_bytes - before[port].received_bytes != frame.len() as u64
        {
            return Err("counts other bytes than it received".into());
        }
        Ok((done, out))
    }

    /// Gives a frame to both, and compares.
    pub(crate) fn frame(&mut self, port: usize, frame: &[u8]) -> Result<Done, String> {
        let dump = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (done, out) = self.program(port, frame).map_err(|error| format!("{error}\n{}", dump(frame)))?;
        let before = totals(&self.network.counters);
        let given = Frame { bytes: frame.to_vec(), ..Frame::default() };
        self.network.io.ports[port].input.push_back(given);
        self.network.run();
        let after = totals(&self.network.counters);
        let mut sent: Vec<(usize, Vec<u8>)> = Vec::new();
        for (number, port) in self.network.io.ports.iter_mut().enumerate() {
            sent.extend(std::mem::take(&mut port.output).into_iter().map(|frame| (number, frame.bytes)));
            port.delivered.clear();
        }
        let forwarded = after[port].forwarded - before[port].forwarded;
        let reason = DropReason::ALL
            .iter()
            .find(|reason| after[port].dropped[reason.index()] != before[port].dropped[reason.index()]);
        let whole = matches!(&sent[..], [(_, bytes)] if forwarded == 1 && packet(bytes).is_some());
        let wrong = match (done, &sent[..]) {
            (Done::Forwarded(by), [(way, bytes)]) if forwarded == 1 => {
                let (is, should) = (packet(&out).map(|range| &out[..range.end]), &bytes[..]);
                (by != *way || is != Some(should))
                    .then(|| format!("sent by {by}, the router by {way}:\n{}\n{}", dump(&out), dump(bytes)))
            }
            (Done::Forwarded(by), _) => Some(format!("forwarded by {by}, the router does not: {reason:?}")),
            (Done::Dropped(is), _) => {
                (reason != Some(&is)).then(|| format!("dropped as {is:?}, by the router as {reason:?}"))
            }
            (Done::Slow, _) if whole && is_plain(frame) => {
                Some("left to the router though it is plain".into())
            }
            (Done::Slow, _) if reason == Some(&DropReason::Blackhole) && is_plain(frame) => {
                Some("left to the router though it is for a blackhole".into())
            }
            (Done::Slow, _) => None,
        };
        // The router may have learned from the frame.
        self.follow_neighbours();
        match wrong {
            Some(wrong) => Err(format!("port {port}: {wrong}\nframe {}", dump(frame))),
            None => Ok(done),
        }
    }
}
