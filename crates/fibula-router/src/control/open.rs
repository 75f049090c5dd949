//! Opens what frames come from and go to: for each thread that receives and each that sends, its end of every port.

use std::path::Path;

use super::machine::Machine;
use super::{RunError, machine_error};
use crate::config::{Backend, Config, Shape, XdpMode};
use crate::io::packet::{Receive, Transmit};
use crate::io::ports::{Input, Output, Ports, Sink, Source};
use crate::io::tap::Tap;
use crate::io::xdp::{self, Queue, Xdp};
use crate::kernel::device::{self, Promiscuous};
use crate::kernel::filter::{Attached, Filter};
use crate::stage;

/// The ends of all ports.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// By thread that receives, then by port.
    sources: Vec<Vec<Source>>,
    /// By thread that sends, then by port.
    sinks: Vec<Vec<Sink>>,
    /// By thread; for the shape whose threads do both.
    xdp: Vec<Option<Xdp>>,
}

impl Queues {
    /// Takes the ends apart for threads of their own: those that receive, and those that send.
    pub(super) fn apart(self) -> (Vec<Ports>, Vec<Ports>) {
        let receive = self.sources.into_iter().map(|sources| {
            let mut ports = Ports::default();
            sources.into_iter().for_each(|source| ports.push(source, Sink::None));
            ports
        });
        let send = self.sinks.into_iter().map(|sinks| {
            let mut ports = Ports::default();
            sinks.into_iter().for_each(|sink| ports.push(Source::None, sink));
            ports
        });
        (receive.collect(), send.collect())
    }

    /// Puts the ends together for threads that receive and send.
    pub(super) fn together(self) -> Vec<Ports> {
        let sockets = self.xdp.into_iter().chain(std::iter::repeat_with(|| None));
        let threads = self.sources.into_iter().zip(self.sinks).zip(sockets).map(|((sources, sinks), xdp)| {
            let mut ports = Ports::default();
            sources.into_iter().zip(sinks).for_each(|(source, sink)| ports.push(source, sink));
            if let Some(xdp) = xdp {
                ports.set_xdp(xdp);
            }
            ports
        });
        threads.collect()
    }
}

/// What the kernel does for the devices as long as the router runs.
#[derive(Debug, Default)]
pub(super) struct Kept {
    attached: Vec<Attached>,
    promiscuous: Vec<Promiscuous>,
}

/// Returns whether a thread sends for a port.
fn sends(shape: Shape, port: usize, thread: usize) -> bool {
    match shape {
        Shape::Three { send, .. } => stage::sends(port, send) == thread,
        _ => true,
    }
}

/// Opens what is no ring.
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
        xdp: Vec::new(),
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
                Backend::Xdp { .. } => Source::Xdp,
                _ => Source::None,
            });
        }
        let mut taps = taps.iter().cycle();
        for (thread, sinks) in queues.sinks.iter_mut().enumerate() {
            let sender = taps.next();
            sinks.push(match (backend, sender) {
                _ if !sends(config.shape, number, thread) => Sink::None,
                (Backend::Tap { .. }, Some(sender)) => Sink::Tap(sender.again()),
                (Backend::Pcap { output: Some(path), .. }, _) => create(&folder.join(path))?,
                (Backend::Xdp { .. }, _) => Sink::Xdp,
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

/// Opens the rings, in the places that [`files_and_taps`] has left for them, and keeps the kernel from forwarding what comes in
/// through the devices of the router. The machine's addresses are `locals`.
pub(super) fn rings(
    ports: &[Backend],
    machine: &Machine,
    config: &Config,
    locals: &[(u32, std::net::IpAddr)],
    queues: &mut Queues,
) -> Result<(Option<Filter>, Kept), RunError> {
    if !ports.iter().any(Backend::is_device) {
        return Ok((None, Kept::default()));
    }
    let filter = if config.bridge { Filter::load_everything() } else { Filter::load() };
    let mut filter = filter.map_err(machine_error("loading the filter"))?;
    filter.set_addresses(locals.iter().copied()).map_err(machine_error("addresses of the filter"))?;
    let mut kept = Kept::default();
    for device in ports.iter().filter(|port| config.bridge && port.is_device()).map(Backend::device) {
        let promiscuous = device::promiscuous(link(machine, &device)?);
        kept.promiscuous.push(promiscuous.map_err(machine_error(device))?);
    }
    for (number, backend) in ports.iter().enumerate() {
        let Backend::Packet { device, frames } = backend else { continue };
        let link = link(machine, device)?;
        kept.attached.push(filter.attach(link).map_err(machine_error(format!("filter of {device}")))?);
        let fanout = (queues.sources.len() > 1).then_some((std::process::id() as u16) ^ (number as u16) << 8);
        let ring = |error| RunError::Machine(format!("rings of {device}"), error);
        for sources in &mut queues.sources {
            sources[number] = Source::Packet(Receive::open(link, *frames, fanout).map_err(ring)?);
        }
        for (thread, sinks) in queues.sinks.iter_mut().enumerate() {
            if sends(config.shape, number, thread) {
                sinks[number] = Sink::Packet(Transmit::open(link, *frames).map_err(ring)?);
            }
        }
    }
    sockets(ports, machine, config, &filter, queues, &mut kept.attached)?;
    Ok((Some(filter), kept))
}

/// Opens the sockets of AF_XDP, and has the kernel give them frames.
fn sockets(
    ports: &[Backend],
    machine: &Machine,
    config: &Config,
    filter: &Filter,
    queues: &mut Queues,
    attached: &mut Vec<Attached>,
) -> Result<(), RunError> {
    let threads = config.threads;
    let mut wanted: Vec<Vec<Queue>> = vec![Vec::new(); threads];
    for (port, backend) in ports.iter().enumerate() {
        let Backend::Xdp { device, frames, .. } = backend else { continue };
        let (link, count) = (link(machine, device)?, xdp::queues(device));
        if count < threads {
            return Err(RunError::Config(format!(
                "{device} has {count} receive queues: with back end af-xdp, at most as many threads; or 'ethtool -L {device} rx {threads}'"
            )));
        }
        for queue in 0..count {
            let queue = Queue { port, device: link, queue: queue as u32, frames: *frames };
            wanted[queue.queue as usize % threads].push(queue);
        }
    }
    if wanted.iter().all(Vec::is_empty) {
        return Ok(());
    }
    for wanted in &wanted {
        let sockets = Xdp::open(wanted, ports.len()).map_err(machine_error("sockets of AF_XDP"))?;
        queues.xdp.push(Some(sockets));
    }
    for (port, backend) in ports.iter().enumerate() {
        let Backend::Xdp { device, mode, .. } = backend else { continue };
        let mut sockets = Vec::new();
        for (thread, wanted) in wanted.iter().enumerate() {
            let numbers = wanted.iter().filter(|queue| queue.port == port).map(|queue| queue.queue);
            sockets.extend(numbers.zip(queues.xdp[thread].iter().flat_map(|xdp| xdp.descriptors(port))));
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
    Ok(())
}

fn link(machine: &Machine, device: &str) -> Result<u32, RunError> {
    let link =
        machine.link(device).ok_or_else(|| RunError::Config(format!("there is no device '{device}'")))?;
    Ok(link.index)
}
