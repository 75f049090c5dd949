//! Opens the sources and sinks of frames. Each thread that receives or sends gets its own end of every port.

use std::io;
use std::iter::repeat_with;
use std::net::IpAddr;
use std::path::Path;

use super::machine::{self, Machine};
#[cfg(feature = "dpdk")]
use super::plan;
use super::{RunError, machine_error};
use crate::config::{Backend, Config, Shape, XdpMode};
#[cfg(feature = "dpdk")]
use crate::io::dpdk;
use crate::io::packet::{Receive, Socket, Transmit};
use crate::io::ports::{Common, Input, Output, Ports, Sink, Source};
use crate::io::tap::Tap;
use crate::io::xdp::{self, Queue};
use crate::kernel::device::{self, Promiscuous};
use crate::kernel::filter::{Attached, Filter};
use crate::packet::ethernet::Mac;
use crate::stage;

/// The ends of all ports.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Indexed by receiving thread, then by port.
    sources: Vec<Vec<Source>>,
    /// Indexed by sending thread, then by port.
    sinks: Vec<Vec<Sink>>,
    /// Resources that ports share, indexed by receiving thread and by sending thread. If threads do both, their resources are in
    /// the first list.
    common: [Vec<Common>; 2],
}

impl Queues {
    /// Splits the ends into two lists: for threads that only receive, and for threads that only send.
    pub(super) fn apart(self) -> (Vec<Ports>, Vec<Ports>) {
        let [receiving, sending] =
            self.common.map(|common| common.into_iter().map(Some).chain(repeat_with(|| None)));
        let receive =
            self.sources.into_iter().zip(receiving).map(|(sources, common)| {
                ports(sources.into_iter().map(|source| (source, Sink::None)), common)
            });
        let send = self
            .sinks
            .into_iter()
            .zip(sending)
            .map(|(sinks, common)| ports(sinks.into_iter().map(|sink| (Source::None, sink)), common));
        (receive.collect(), send.collect())
    }

    /// Combines the ends, for threads that both receive and send.
    pub(super) fn together(self) -> Vec<Ports> {
        let [both, _] = self.common.map(|common| common.into_iter().map(Some).chain(repeat_with(|| None)));
        let ends = self.sources.into_iter().zip(self.sinks).zip(both);
        ends.map(|((sources, sinks), common)| ports(sources.into_iter().zip(sinks), common)).collect()
    }
}

fn ports(ends: impl Iterator<Item = (Source, Sink)>, common: Option<Common>) -> Ports {
    let mut ports = Ports::default();
    ends.for_each(|(source, sink)| ports.push(source, sink));
    if let Some(common) = common {
        ports.set_common(common);
    }
    ports
}

/// State that must live as long as the router runs: attached filters, promiscuous mode, and ports of DPDK.
#[derive(Debug, Default)]
pub(super) struct Kept {
    attached: Vec<Attached>,
    packet: Vec<PacketPort>,
    promiscuous: Vec<Promiscuous>,
    #[cfg(feature = "dpdk")]
    ports: std::collections::HashMap<String, std::sync::Arc<dpdk::Port>>,
}

/// A port of packet sockets.
#[derive(Debug)]
struct PacketPort {
    device: String,
    /// The number of the device that it is at.
    index: u32,
    sockets: Vec<Socket>,
    /// The filter, once the router forwards.
    attached: Option<Attached>,
}

impl Kept {
    /// Moves ports to devices that have their names and other numbers, because they were deleted and made again. Returns the
    /// names of the devices, each with the number or why it failed.
    pub(super) fn follow(&mut self, machine: &Machine, filter: &Filter) -> Vec<(String, io::Result<u32>)> {
        let mut moved = Vec::new();
        for port in self.packet.iter_mut().filter(|port| port.attached.is_some()) {
            let Some(link) = machine.link(&port.device).filter(|link| link.index != port.index) else {
                continue;
            };
            // The filter first, so that the kernel forwards nothing that the router forwards too.
            let done = filter.attach(link.index).and_then(|attached| {
                port.sockets.iter().try_for_each(|socket| socket.move_to(link.index))?;
                port.attached = Some(attached);
                Ok(link.index)
            });
            // Not tried again at every event if it fails.
            port.index = link.index;
            moved.push((port.device.clone(), done));
        }
        moved
    }

    /// Takes over from the kernel: attaches the filter, which keeps it from forwarding, and lets the rings take frames.
    pub(super) fn begin(&mut self, machine: &Machine, filter: &Filter) -> Result<(), RunError> {
        for port in &mut self.packet {
            if let Some(link) = machine.link(&port.device) {
                port.index = link.index;
            }
            let attached = filter.attach(port.index);
            port.attached = Some(attached.map_err(machine_error(format!("filter of {}", port.device)))?);
            let begun = port.sockets.iter().try_for_each(|socket| socket.begin(port.index));
            begun.map_err(machine_error(format!("rings of {}", port.device)))?;
        }
        Ok(())
    }

    /// Hands back to the kernel. Frames that are in the rings are forwarded still. No frame is forwarded twice; one that comes
    /// between the two steps of its device is lost.
    pub(super) fn hand_back(&mut self) {
        for port in &mut self.packet {
            port.sockets.iter().for_each(|socket| socket.end(port.index));
            port.attached = None;
        }
    }

    /// Returns the ports unknown to the kernel, with their names.
    #[cfg(feature = "dpdk")]
    pub(super) fn ports(&self) -> Vec<(&str, machine::Port)> {
        let state = |port: &dpdk::Port| machine::Port { mac: port.mac(), up: port.is_up() };
        self.ports.iter().map(|(name, port)| (name.as_str(), state(port))).collect()
    }

    /// Returns the ports unknown to the kernel: none in this build.
    #[cfg(not(feature = "dpdk"))]
    pub(super) fn ports(&self) -> Vec<(&str, machine::Port)> {
        Vec::new()
    }
}

/// A tap that represents a port in the kernel.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) tap: String,
    pub(super) mac: Mac,
    pub(super) mtu: usize,
    pub(super) addresses: Vec<(IpAddr, u8)>,
}

/// Opens the ports of DPDK: none in this build.
#[cfg(not(feature = "dpdk"))]
pub(super) fn dpdk(_: &[Backend], _: &Config, _: &mut Queues, _: &mut Kept) -> Result<Vec<Beside>, RunError> {
    Ok(Vec::new())
}

/// Opens the ports of DPDK and their taps. The caller must then set up the taps.
#[cfg(feature = "dpdk")]
pub(super) fn dpdk(
    ports: &[Backend],
    config: &Config,
    queues: &mut Queues,
    kept: &mut Kept,
) -> Result<Vec<Beside>, RunError> {
    let mut wanted = Vec::new();
    let mut hosts = Vec::new();
    for (port, backend) in ports.iter().enumerate() {
        let Backend::Dpdk { device, host, frames } = backend else { continue };
        let lines = || config.interfaces.iter().filter(|line| line.backend == *backend);
        let mtu = lines().map(|line| line.mtu.unwrap_or(plan::MTU)).max().unwrap_or(plan::MTU);
        let mac = lines().find_map(|line| line.mac);
        let (name, frames) = (device.clone(), *frames);
        let (otherwise, promiscuous) = (plan::made_up(device), config.bridge);
        wanted.push(dpdk::Wanted { name, port, frames, mtu, mac, otherwise, promiscuous });
        if let Some(tap) = host {
            let addresses = lines().filter(|line| line.vlan == 0).flat_map(|line| line.addresses.clone());
            hosts.push((port, device, tap, mtu, addresses.collect()));
        }
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    dpdk::start(&config.dpdk).map_err(machine_error("starting DPDK"))?;
    let threads = [config.shape.receiving(config.threads), config.shape.sending(config.threads)];
    let together = config.shape == Shape::Complete;
    let opened = dpdk::open(&wanted, ports.len(), threads, together);
    let dpdk::Opened { ports: opened, receivers: mut receiving, senders } =
        opened.map_err(machine_error("ports of DPDK"))?;
    let mut beside = Vec::new();
    for (port, device, tap, mtu, addresses) in hosts {
        let end = Tap::open(tap).map_err(machine_error(format!("tap {tap}")))?;
        let senders: Vec<_> = receiving.iter().map(|_| end.sender()).collect();
        let mut end = Some(end);
        // Every thread may send to the tap, but only the first one receives from it.
        for (thread, sender) in receiving.iter_mut().zip(senders) {
            thread.set_host(port, sender, end.take());
        }
        beside.push(Beside { tap: tap.clone(), mac: opened[device].mac(), mtu, addresses });
    }
    kept.ports = opened;
    queues.common = [receiving, senders].map(|ends| ends.into_iter().map(Common::Dpdk).collect());
    Ok(beside)
}

/// Returns whether a thread sends frames of a port.
fn sends(shape: Shape, port: usize, thread: usize) -> bool {
    match shape {
        Shape::Three { send, .. } => stage::sends(port, send) == thread,
        _ => true,
    }
}

/// Opens files and taps, and leaves places for the rings.
pub(super) fn files_and_taps(ports: &[Backend], config: &Config, folder: &Path) -> Result<Queues, RunError> {
    let (receiving, sending) = (config.shape.receiving(config.threads), config.shape.sending(config.threads));
    let files = ports.iter().any(|port| matches!(port, Backend::Pcap { .. }));
    let several = receiving > 1 || (sending > 1 && !matches!(config.shape, Shape::Three { .. }));
    if files && several {
        return Err(RunError::Config(
            "files are received by one thread and sent by one: set 'threads = 1', or 'receive_threads = 1'"
                .into(),
        ));
    }
    let mut queues = Queues {
        sources: (0..receiving).map(|_| Vec::new()).collect(),
        sinks: (0..sending).map(|_| Vec::new()).collect(),
        common: Default::default(),
    };
    for (number, backend) in ports.iter().enumerate() {
        let mut taps = Vec::new();
        for sources in &mut queues.sources {
            sources.push(match backend {
                Backend::Tap { device } => {
                    let tap = Tap::open(device).map_err(machine_error(format!("tap {device}")))?;
                    taps.push(tap.sender());
                    Source::Tap(tap)
                }
                Backend::Pcap { input: Some(path), .. } => Source::File(open_input(&folder.join(path))?),
                Backend::Xdp { .. } | Backend::Dpdk { .. } => Source::Common,
                _ => Source::None,
            });
        }
        // There may be more sending than receiving threads. Then several of them share a queue of the tap.
        let mut taps = taps.iter().cycle();
        for (thread, sinks) in queues.sinks.iter_mut().enumerate() {
            let sender = taps.next();
            sinks.push(match (backend, sender) {
                _ if !sends(config.shape, number, thread) => Sink::None,
                (Backend::Tap { .. }, Some(sender)) => Sink::Tap(sender.again()),
                (Backend::Pcap { output: Some(path), .. }, _) => create(&folder.join(path))?,
                (Backend::Xdp { .. } | Backend::Dpdk { .. }, _) => Sink::Common,
                _ => Sink::None,
            });
        }
    }
    Ok(queues)
}

fn open_input(path: &Path) -> Result<Input, RunError> {
    Input::open(path).map_err(|error| RunError::Pcap(path.display().to_string(), error))
}

fn create(path: &Path) -> Result<Sink, RunError> {
    let file = Output::create(path).map_err(machine_error(path.display().to_string()))?;
    Ok(Sink::File(Box::new(file)))
}

/// Opens the rings in the places that [`files_and_taps`] has left for them. Also keeps the kernel from forwarding frames that
/// arrive at the router's devices. `locals` are the machine's addresses.
pub(super) fn rings(
    ports: &[Backend],
    machine: &Machine,
    config: &Config,
    locals: &[(u32, IpAddr)],
    queues: &mut Queues,
    kept: &mut Kept,
) -> Result<Option<Filter>, RunError> {
    if !ports.iter().any(Backend::is_device) {
        return Ok(None);
    }
    let filter = if config.bridge { Filter::load_everything() } else { Filter::load() };
    let mut filter = filter.map_err(machine_error("loading the filter"))?;
    filter.set_addresses(locals.iter().copied()).map_err(machine_error("addresses of the filter"))?;
    for device in ports.iter().filter(|port| config.bridge && port.is_device()).map(Backend::device) {
        let promiscuous = device::promiscuous(link(machine, &device)?);
        kept.promiscuous.push(promiscuous.map_err(machine_error(device))?);
    }
    for (number, backend) in ports.iter().enumerate() {
        let Backend::Packet { device, frames } = backend else { continue };
        let link = link(machine, device)?;
        let mut moving = Vec::new();
        // Groups are shared by the whole network namespace, so the number must differ between ports and between routers.
        let fanout = (queues.sources.len() > 1).then_some((std::process::id() as u16) ^ (number as u16) << 8);
        let ring = |error| RunError::Machine(format!("rings of {device}"), error);
        for sources in &mut queues.sources {
            let receive = Receive::open(*frames, fanout).map_err(ring)?;
            moving.push(receive.socket().map_err(ring)?);
            sources[number] = Source::Packet(receive);
        }
        for (thread, sinks) in queues.sinks.iter_mut().enumerate() {
            if sends(config.shape, number, thread) {
                let transmit = Transmit::open(link, *frames).map_err(ring)?;
                moving.push(transmit.socket().map_err(ring)?);
                sinks[number] = Sink::Packet(transmit);
            }
        }
        let device = device.clone();
        kept.packet.push(PacketPort { device, index: link, sockets: moving, attached: None });
    }
    sockets(ports, machine, config, &filter, queues, &mut kept.attached)?;
    Ok(Some(filter))
}

/// Opens the sockets of AF_XDP, and attaches the programs that give them frames.
fn sockets(
    ports: &[Backend],
    machine: &Machine,
    config: &Config,
    filter: &Filter,
    queues: &mut Queues,
    attached: &mut Vec<Attached>,
) -> Result<(), RunError> {
    let (receiving, sending) = (config.shape.receiving(config.threads), config.shape.sending(config.threads));
    let mut wanted: Vec<Vec<Queue>> = vec![Vec::new(); receiving];
    let mut sent: Vec<Vec<Queue>> = vec![Vec::new(); sending];
    for (port, backend) in ports.iter().enumerate() {
        let Backend::Xdp { device, frames, .. } = backend else { continue };
        let (link, count) = (link(machine, device)?, xdp::queues(device));
        let senders: Vec<usize> = (0..sending).filter(|&thread| sends(config.shape, port, thread)).collect();
        let threads = receiving.max(senders.len());
        if count < threads {
            return Err(RunError::Config(format!(
                "{device} has {count} receive queues: with back end af-xdp, at most as many threads; or 'ethtool -L {device} rx {threads}'"
            )));
        }
        let queue = |queue: usize| Queue { port, device: link, queue: queue as u32, frames: *frames };
        // Every queue of the device needs a socket, because the device may receive frames in any of them.
        for number in 0..count {
            wanted[number % receiving].push(queue(number));
        }
        for (number, thread) in senders.into_iter().enumerate() {
            sent[thread].push(queue(number));
        }
    }
    if wanted.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let opened = match config.shape {
        Shape::Complete => xdp::together(&wanted, ports.len()),
        _ => xdp::apart(&wanted, &sent, ports.len()),
    };
    let xdp::Opened { receivers, senders } = opened.map_err(machine_error("sockets of AF_XDP"))?;
    for (port, backend) in ports.iter().enumerate() {
        let Backend::Xdp { device, mode, .. } = backend else { continue };
        let mut sockets = Vec::new();
        for (thread, wanted) in wanted.iter().enumerate() {
            let numbers = wanted.iter().filter(|queue| queue.port == port).map(|queue| queue.queue);
            sockets.extend(numbers.zip(receivers[thread].descriptors(port)));
        }
        let tagged = config.interfaces.iter().any(|line| line.backend == *backend && line.vlan != 0);
        let link = link(machine, device)?;
        let attach = |native| filter.attach_xdp(link, native, tagged, &sockets);
        let done = match mode {
            XdpMode::Native => attach(true),
            XdpMode::Generic => attach(false),
            XdpMode::Auto => attach(true).or_else(|_| attach(false)),
        };
        attached.push(done.map_err(machine_error(format!("program of AF_XDP for {device}")))?);
    }
    queues.common = [receivers, senders].map(|ends| ends.into_iter().map(Common::Xdp).collect());
    Ok(())
}

fn link(machine: &Machine, device: &str) -> Result<u32, RunError> {
    let link =
        machine.link(device).ok_or_else(|| RunError::Config(format!("there is no device '{device}'")))?;
    Ok(link.index)
}
