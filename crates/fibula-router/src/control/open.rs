//! Opens the sources and sinks of frames. Each thread that receives or sends gets its own end of every port.

use std::collections::BTreeMap;
use std::io;
use std::iter::repeat_with;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::change::Change;
use super::gate::PortGate;
use super::machine::{self, Identity, Machine};
#[cfg(feature = "dpdk")]
use super::plan;
use super::takeover::{Given, Predecessor};
use super::{ControlError, RunError, machine_error};
#[cfg(feature = "dpdk")]
use crate::config::Interface;
use crate::config::{Backend, Config, Shape, XdpMode};
use crate::forward::fabric::{Fabric, Vrf};
use crate::io::dpdk;
use crate::io::entrance::Entrances;
use crate::io::packet::{Receive, Socket, Transmit};
use crate::io::ports::{Common, End, Input, Mailbox, Output, Ports, Sink, Source};
use crate::io::tap::{Tap, TapQueue};
use crate::io::xdp;
use crate::kernel::device::{self, Promiscuous};
use crate::kernel::fast::Fast;
use crate::kernel::filter::{Attached, Filter, Redirect, Redirected};
use crate::kernel::gate::{Gate, GateState, WITHOUT_RETURNED};
use crate::kernel::hold::Hold;
use crate::kernel::netlink::Link;
use crate::neighbour::Neighbours;
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
    /// Of each receiving thread and of each sending thread. Threads that do both have that of the first list.
    mailboxes: [Vec<Arc<Mailbox>>; 2],
    /// The queues of taps, by device.
    taps: Vec<(String, TapQueue)>,
    /// The ends of taps of a router that is taken over. Each has the number of its port and the mailbox of its thread.
    later: Vec<(usize, Arc<Mailbox>, End)>,
    /// The ways of frames back to the kernel, of each thread that looks up.
    entrances: Vec<Entrances>,
    /// The rings beside AF_XDP sockets, by port, of the first thread that receives.
    beside: Vec<(usize, Receive)>,
}

impl Queues {
    /// Takes the ways of frames back to the kernel, of each thread that looks up.
    pub(super) fn take_entrances(&mut self) -> impl Iterator<Item = Entrances> + use<> {
        std::mem::take(&mut self.entrances).into_iter().chain(repeat_with(Entrances::default))
    }

    /// Returns the mailboxes of all threads, perhaps twice.
    pub(super) fn mailboxes(&self) -> impl Iterator<Item = &Arc<Mailbox>> {
        self.mailboxes.iter().flatten()
    }

    /// Returns the queues of taps, by device.
    pub(super) fn taps(&self) -> &[(String, TapQueue)] {
        &self.taps
    }

    /// Splits the ends into two lists: for threads that only receive, and for threads that only send.
    pub(super) fn apart(mut self) -> (Vec<Ports>, Vec<Ports>) {
        let beside = std::mem::take(&mut self.beside);
        let [receiving, sending] =
            self.common.map(|common| common.into_iter().map(Some).chain(repeat_with(|| None)));
        let [receivers, senders] = self.mailboxes;
        let receive =
            self.sources.into_iter().zip(receiving).zip(receivers).map(|((sources, common), mailbox)| {
                ports(sources.into_iter().map(|source| (source, Sink::None)), common, mailbox)
            });
        let send = self.sinks.into_iter().zip(sending).zip(senders).map(|((sinks, common), mailbox)| {
            ports(sinks.into_iter().map(|sink| (Source::None, sink)), common, mailbox)
        });
        let mut receive: Vec<Ports> = receive.collect();
        set_beside(&mut receive, beside);
        (receive, send.collect())
    }

    /// Combines the ends, for threads that both receive and send.
    pub(super) fn together(mut self) -> Vec<Ports> {
        let (beside, entrances) = (std::mem::take(&mut self.beside), self.take_entrances());
        let [both, _] = self.common.map(|common| common.into_iter().map(Some).chain(repeat_with(|| None)));
        let [mailboxes, _] = self.mailboxes;
        let ends = self.sources.into_iter().zip(self.sinks).zip(both).zip(mailboxes);
        let all = ends.map(|(((sources, sinks), common), mailbox)| {
            ports(sources.into_iter().zip(sinks), common, mailbox)
        });
        let mut all: Vec<Ports> = all.collect();
        all.iter_mut().zip(entrances).for_each(|(ports, entrances)| ports.set_entrances(entrances));
        set_beside(&mut all, beside);
        all
    }
}

/// Gives the first thread that receives the rings beside AF_XDP sockets.
fn set_beside(threads: &mut [Ports], rings: Vec<(usize, Receive)>) {
    let Some(first) = threads.first_mut() else { return };
    rings.into_iter().for_each(|(port, ring)| first.set_beside(port, Some(ring)));
}

fn ports(ends: impl Iterator<Item = (Source, Sink)>, common: Option<Common>, mailbox: Arc<Mailbox>) -> Ports {
    let mut ports = Ports::default();
    ports.set_mailbox(mailbox);
    ends.for_each(|(source, sink)| ports.push(source, sink));
    if let Some(common) = common {
        ports.set_common(common);
    }
    ports
}

/// How long threads may take to close the sockets of a device.
const RELEASE: Duration = Duration::from_secs(2);

/// State that must live as long as the router runs: the ports of devices, promiscuous mode, and ports of DPDK.
#[derive(Debug, Default)]
pub(super) struct Kept {
    devices: Vec<DevicePort>,
    opener: Option<xdp::Opener>,
    mailboxes: [Vec<Arc<Mailbox>>; 2],
    /// Whether devices are put into promiscuous mode.
    bridge: bool,
    /// Whether the router has taken over from the kernel.
    has_begun: bool,
    /// The queues of taps, by device, for a router that takes over.
    taps: Vec<(String, TapQueue)>,
    /// The ends of taps that threads get once this router has taken over.
    later: Vec<(usize, Arc<Mailbox>, End)>,
    #[cfg(feature = "dpdk")]
    ports: std::collections::HashMap<String, Arc<dpdk::Port>>,
    /// The buffers of ports of DPDK.
    pool: Option<dpdk::Pool>,
    /// Maps that the programs that forward share.
    pub(super) fast: Option<Fast>,
    /// The gate, which keeps packets for the machine from the kernel until they are judged.
    gate: Option<Arc<Gate>>,
}

/// A port of a device of the kernel.
#[derive(Debug)]
struct DevicePort {
    port: usize,
    device: String,
    /// The device that it is at, if there is one.
    at: Option<Identity>,
    /// The link of the device was down, so that the port could not be taken up. It is tried again when the link is up.
    waits: bool,
    means: Means,
    /// The filter or the program, once the router forwards.
    guard: Guard,
    gate: Option<PortGate>,
    promiscuous: Option<Promiscuous>,
    held: Option<Hold>,
}

/// The sockets of a port, by back end.
#[derive(Debug)]
enum Means {
    Packet {
        frames: usize,
        /// By receiving thread.
        receive: Vec<Socket>,
        transmit: Vec<Socket>,
        /// Whether the sockets that receive are in a fanout group, which binds them to their device for good.
        joined: bool,
    },
    Xdp {
        wanted: xdp::Wanted,
        mode: XdpMode,
        /// The device is a bond, where the program cannot be in the driver.
        is_bond: bool,
        redirect: Redirect,
        threads: usize,
    },
}

/// Why an interface on a bond is refused whose program is to be in the driver.
pub(super) const NATIVE_BOND: &str = "a program in the driver of a bond sees frames as those of its members, which AF_XDP sockets of the bond do not take: set 'xdp = \"generic\"'";

/// What keeps the kernel from forwarding the frames of a device.
#[derive(Debug, Default)]
enum Guard {
    /// Nothing: the kernel forwards.
    #[default]
    Open,
    Filter(Attached),
    Program(Redirected),
}

/// The state of the device of a port.
#[derive(Debug)]
pub(super) enum Followed {
    /// It is gone.
    Gone,
    /// It has come, or another one with its name.
    TakenUp(u32),
    /// It cannot be taken up.
    Failed(io::Error),
}

impl DevicePort {
    fn new(port: usize, backend: &Backend, (means, gate): (Means, Option<PortGate>)) -> Self {
        let device = backend.device();
        Self {
            port,
            device,
            at: None,
            waits: false,
            means,
            guard: Guard::Open,
            gate,
            promiscuous: None,
            held: None,
        }
    }

    /// Gives the sockets a device.
    fn bind(
        &mut self,
        link: &Link,
        opener: Option<&mut xdp::Opener>,
        mailboxes: &[Vec<Arc<Mailbox>>; 2],
    ) -> io::Result<()> {
        match &mut self.means {
            Means::Packet { frames, receive, transmit, joined } => {
                transmit.iter().try_for_each(|socket| socket.move_to(link.index))?;
                if std::mem::take(joined) {
                    let rings: Vec<Receive> =
                        receive.iter().map(|_| Receive::open(*frames)).collect::<io::Result<_>>()?;
                    let sieve = receive.first().map_or(&[][..], Socket::sieve);
                    let sockets = rings.iter().map(|ring| Ok(ring.socket()?.through(sieve)));
                    *receive = sockets.collect::<io::Result<_>>()?;
                    for (ring, mailbox) in rings.into_iter().zip(&mailboxes[0]) {
                        mailbox.put(self.port, End::Source(Source::Packet(ring)));
                    }
                }
            }
            Means::Xdp { wanted, is_bond, redirect, threads, .. } => {
                *is_bond = link.has_frames_of_members();
                let Some(opener) = opener else { return Ok(()) };
                wanted.queues = queues(&link.name, *threads)?;
                let sockets = opener.open(wanted, link.index)?;
                redirect.set_sockets(&sockets.descriptors)?;
                for (ends, mailboxes) in [sockets.receivers, sockets.senders].into_iter().zip(mailboxes) {
                    for (ends, mailbox) in ends.into_iter().zip(mailboxes) {
                        mailbox.put(self.port, End::Sockets(ends));
                    }
                }
            }
        }
        Ok(())
    }

    /// Prepares to take over from the kernel. To bind sockets and to attach a filter takes the kernel milliseconds, in which frames
    /// would be lost. So the sockets refuse frames at first, and the filter passes them.
    fn prepare(&mut self, index: u32, filter: &Filter) -> io::Result<()> {
        if let Some(gate) = &mut self.gate {
            gate.prepare(index)?;
        }
        let Means::Packet { receive, joined, .. } = &mut self.means else { return Ok(()) };
        receive.iter().try_for_each(Socket::refuse_frames)?;
        receive.iter().try_for_each(|socket| socket.move_to(index))?;
        if let [first, others @ ..] = &receive[..]
            && !others.is_empty()
            && !*joined
        {
            let group = first.join(None)?;
            *joined = true;
            others.iter().try_for_each(|socket| socket.join(Some(group)).map(drop))?;
        }
        match filter.attach(index) {
            Ok(attached) => self.guard = Guard::Filter(attached),
            // The device has it still: it was only believed to be another one, because events were lost.
            Err(error)
                if matches!(self.guard, Guard::Filter(_)) && error.kind() == io::ErrorKind::AlreadyExists => {
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes over from the kernel. The sockets take frames before the filter drops them, so a frame that comes in between, which is
    /// a matter of microseconds, is forwarded twice, and none is lost.
    fn switch(&mut self, index: u32) -> io::Result<()> {
        match (&self.means, &self.guard) {
            (Means::Packet { receive, .. }, Guard::Filter(attached)) => {
                receive.iter().try_for_each(Socket::take_frames)?;
                attached.switch(true)?;
            }
            (Means::Xdp { mode, is_bond, redirect, .. }, _) => {
                let attached = match mode {
                    XdpMode::Native if *is_bond => Err(io::Error::other(NATIVE_BOND)),
                    XdpMode::Auto if *is_bond => redirect.attach(index, false),
                    XdpMode::Native => redirect.attach(index, true),
                    XdpMode::Generic => redirect.attach(index, false),
                    XdpMode::Auto => redirect.attach(index, true).or_else(|_| redirect.attach(index, false)),
                };
                match attached {
                    Ok(redirected) => self.guard = Guard::Program(redirected),
                    // See above.
                    Err(error)
                        if matches!(self.guard, Guard::Program(_))
                            && error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
            }
            (Means::Packet { .. }, _) => {}
        }
        self.gate.as_ref().map_or(Ok(()), PortGate::close)
    }

    /// Takes no more frames of a device that is there and that another device of the kernel has now.
    fn give_up(&self, mailboxes: &[Vec<Arc<Mailbox>>; 2]) {
        match &self.means {
            // A socket that cannot refuse them receives frames that the bridge forwards anyway, and nothing leaves by the interface.
            Means::Packet { receive, .. } => receive.iter().for_each(|socket| _ = socket.refuse_frames()),
            Means::Xdp { .. } => {
                for mailbox in mailboxes.iter().flatten() {
                    mailbox.put(self.port, End::Sockets(xdp::Ends::default()));
                }
            }
        }
    }

    /// Waits until threads have the sockets of AF_XDP, because frames for a socket without memory are lost.
    fn wait(&self, mailboxes: &[Vec<Arc<Mailbox>>; 2]) {
        let until = Instant::now() + RELEASE;
        let has_all = || mailboxes.iter().flatten().all(|mailbox| mailbox.is_empty());
        while matches!(self.means, Means::Xdp { .. }) && !has_all() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Puts the program in the place of that of a router that is taken over.
    fn replace(&mut self, link: OwnedFd, device: u32) -> io::Result<()> {
        if let Means::Xdp { redirect, .. } = &self.means {
            self.guard = Guard::Program(redirect.replace(link, device)?);
        }
        self.gate.as_ref().map_or(Ok(()), PortGate::close)
    }

    /// Takes up a device, as far as the router has begun to forward.
    fn take_up(
        &mut self,
        (link, identity): (&Link, Identity),
        filter: &Filter,
        kept: (Option<&mut xdp::Opener>, &[Vec<Arc<Mailbox>>; 2], bool, bool),
        predecessor: Option<&mut Predecessor>,
    ) -> io::Result<()> {
        let (opener, mailboxes, bridge, has_begun) = kept;
        self.at = Some(identity);
        // A router that is taken over has the queues of AF_XDP until this one begins.
        let mut opener = opener;
        let mut inherited = None;
        if let Some(predecessor) = predecessor {
            inherited = predecessor.take(&Given::Hold { device: link.index });
            if predecessor.has(&Given::Program { device: link.index }) {
                opener = None;
            }
        }
        if let Some(listener) = inherited {
            self.held = Some(Hold::inherited(link.index, listener));
        } else if !self.held.as_ref().is_some_and(|held| held.is_of(link.index)) {
            self.held = None;
            self.held = Some(Hold::take(link.index)?);
        }
        let mut done = self.bind(link, opener, mailboxes);
        if let Some(gate) = &mut self.gate {
            done = done.and_then(|()| gate.move_to(link.index));
        }
        if bridge {
            done = done.and_then(|()| {
                self.promiscuous = Some(device::promiscuous(link.index)?);
                Ok(())
            });
        }
        if has_begun {
            self.wait(mailboxes);
            done =
                done.and_then(|()| self.prepare(link.index, filter)).and_then(|()| self.switch(link.index));
        }
        // A socket of AF_XDP and a fanout group need a device that is up. It will be, or its link has other reasons to be down.
        self.waits = done.is_err() && !link.is_enabled;
        if self.waits { Ok(()) } else { done }
    }
}

/// Returns how many queues a device has, if they are enough for the threads.
fn queues(device: &str, threads: usize) -> io::Result<usize> {
    let count = xdp::queues(device);
    if count < threads {
        return Err(io::Error::other(format!(
            "{device} has {count} receive queues: with back end af-xdp, at most as many threads; or 'ethtool -L {device} rx {threads}'"
        )));
    }
    Ok(count)
}

impl Kept {
    /// Returns the queues of taps, by device.
    pub(super) fn taps(&self) -> &[(String, TapQueue)] {
        &self.taps
    }

    /// Moves ports to the devices that their names lead to now. A device may have come, have been deleted and made again, or have
    /// been moved to this network namespace. Returns the names of the devices that have changed.
    pub(super) fn follow(&mut self, machine: &Machine, filter: &Filter) -> Vec<(String, Followed)> {
        let mut followed = Vec::new();
        for port in &mut self.devices {
            let link = machine.link(&port.device);
            let is_there = link.is_some();
            let link = link.filter(|link| link.refusal().is_none());
            let Some((link, identity)) = link.zip(machine.identity(&port.device)) else {
                if port.at.take().is_some() {
                    port.waits = false;
                    (port.guard, port.promiscuous, port.held) = (Guard::Open, None, None);
                    port.gate.iter_mut().for_each(PortGate::detach);
                    if let (Means::Xdp { .. }, Some(opener)) = (&port.means, &mut self.opener) {
                        opener.forget(port.port);
                    }
                    if is_there {
                        port.give_up(&self.mailboxes);
                    }
                    followed.push((port.device.clone(), Followed::Gone));
                }
                continue;
            };
            if port.at == Some(identity) && !(port.waits && link.is_enabled) {
                continue;
            }
            let is_new = port.at != Some(identity);
            let kept = (self.opener.as_mut(), &self.mailboxes, self.bridge, self.has_begun);
            match port.take_up((link, identity), filter, kept, None) {
                Ok(()) if is_new => followed.push((port.device.clone(), Followed::TakenUp(link.index))),
                Ok(()) => {}
                // Not tried again at every event if it fails.
                Err(error) => followed.push((port.device.clone(), Followed::Failed(error))),
            }
        }
        followed
    }

    /// Gives the programs that forward a fabric, and the devices that are there now.
    pub(super) fn publish_fast(&mut self, fabric: &Fabric, neighbours: &Neighbours) {
        let devices = self.numbers();
        if let Some(fast) = &mut self.fast {
            fast.set_devices(&devices);
            fast.publish(fabric, neighbours);
        }
    }

    /// Returns the numbers of the devices that are there, by port.
    fn numbers(&self) -> BTreeMap<usize, u32> {
        self.devices.iter().filter_map(|port| Some((port.port, port.at?.index))).collect()
    }

    /// Gives the programs that forward all changes since the last call. `with_features` asks the kernel for features of devices.
    pub(super) fn follow_fast(&mut self, fabric: &Fabric, neighbours: &Neighbours, with_features: bool) {
        if self.fast.is_none() {
            return;
        }
        let devices = self.numbers();
        let Some(fast) = &mut self.fast else { return };
        let mut changed = fast.set_devices(&devices);
        changed |= with_features && fast.follow_features();
        if changed {
            fast.publish(fabric, neighbours);
        }
        fast.follow_neighbours(neighbours);
    }

    /// Takes over from the kernel: attaches filters and programs, which keep it from forwarding, and lets the rings take frames.
    /// Ports whose devices are missing or down follow when these are there.
    pub(super) fn begin(&mut self, machine: &Machine, filter: &Filter) -> Result<(), RunError> {
        self.has_begun = true;
        self.devices.iter().for_each(|port| port.wait(&self.mailboxes));
        for step in [DevicePort::prepare, |port: &mut DevicePort, index, _: &Filter| port.switch(index)] {
            for port in self.devices.iter_mut().filter(|port| !port.waits) {
                let Some(link) = machine.link(&port.device).filter(|_| port.at.is_some()) else { continue };
                match step(port, link.index, filter) {
                    Err(_) if !link.is_enabled => port.waits = true,
                    done => done.map_err(machine_error(format!("taking up {}", port.device)))?,
                }
            }
        }
        Ok(())
    }

    /// Opens the ports that a reload adds. Nothing else changes yet.
    pub(super) fn open(
        &self,
        change: &Change,
        config: &Config,
        filter: Option<&Filter>,
        folder: &Path,
    ) -> Result<Vec<Added>, ControlError> {
        let open = |(number, backend): &(usize, Backend)| -> Result<Added, RunError> {
            let mut queues = files_and_taps(std::slice::from_ref(backend), config, folder, None)?;
            let means = match filter {
                Some(filter) => means(0, backend, config, (filter, None, self.gate.as_ref()), &mut queues)?,
                None => None,
            };
            let device = means.map(|means| DevicePort::new(*number, backend, means));
            Ok(Added { port: *number, queues, device })
        };
        let added = change.added.iter().map(open).collect::<Result<_, _>>();
        added.map_err(|error| ControlError::Port(error.to_string()))
    }

    /// Gives the threads the ends of new ports. The threads must know the ports already. [`follow`](Self::follow) then gives the
    /// ports their devices.
    pub(super) fn add(&mut self, added: Vec<Added>) {
        for Added { port, queues, device } in added {
            for (source, mailbox) in queues.sources.into_iter().flatten().zip(&self.mailboxes[0]) {
                mailbox.put(port, End::Source(source));
            }
            for (sink, mailbox) in queues.sinks.into_iter().flatten().zip(&self.mailboxes[1]) {
                mailbox.put(port, End::Sink(sink));
            }
            let entrances = queues.entrances.into_iter().flat_map(Entrances::into_iter);
            for (entrance, mailbox) in entrances.zip(&self.mailboxes[1]) {
                mailbox.put(port, End::Entrance(Some(entrance)));
            }
            self.taps.extend(queues.taps);
            self.devices.extend(device);
        }
    }

    /// Closes the ports that a reload removes. The kernel forwards what arrives there from now on.
    pub(super) fn remove(&mut self, change: &Change) {
        for &(port, ref backend) in &change.removed {
            let has_gate = self.devices.iter().any(|device| device.port == port && device.gate.is_some());
            self.devices.retain(|device| device.port != port);
            if has_gate {
                let thread = |number: usize| self.mailboxes[number].iter();
                thread(0).for_each(|mailbox| mailbox.put(port, End::Beside(None)));
                thread(1).for_each(|mailbox| mailbox.put(port, End::Entrance(None)));
            }
            self.taps.retain(|tap| tap.0 != backend.device());
            if let (Backend::Xdp { .. }, Some(opener)) = (backend, &mut self.opener) {
                opener.forget(port);
            }
            let is_xdp = matches!(backend, Backend::Xdp { .. });
            let ends: [fn() -> End; 2] = match is_xdp {
                true => [|| End::Sockets(xdp::Ends::default()), || End::Sockets(xdp::Ends::default())],
                false => [|| End::Source(Source::None), || End::Sink(Sink::None)],
            };
            for (end, mailboxes) in ends.into_iter().zip(&self.mailboxes) {
                mailboxes.iter().for_each(|mailbox| mailbox.put(port, end()));
            }
        }
    }

    /// Hands back to the kernel. Frames that are in the rings are forwarded still. A frame that comes between the two steps of its
    /// device is forwarded twice, and none is lost.
    pub(super) fn hand_back(&mut self) {
        for port in &mut self.devices {
            if let Guard::Filter(attached) = &port.guard {
                // If it cannot be switched off, it goes below.
                let _ = attached.switch(false);
            }
            if let (Means::Packet { receive, .. }, Some(at)) = (&port.means, port.at) {
                receive.iter().for_each(|socket| socket.end(at.index));
            }
            if let Some(gate) = &port.gate {
                let _ = gate.set(GateState::Open);
                let beside = gate.beside().zip(port.at);
                beside.into_iter().for_each(|(socket, at)| socket.end(at.index));
            }
        }
        // Detaching takes the kernel milliseconds.
        for port in &mut self.devices {
            port.guard = Guard::Open;
            port.gate.iter_mut().for_each(PortGate::detach);
        }
    }

    /// Offers descriptors of devices to a router that takes over.
    pub(super) fn offer(
        &self,
        offer: &mut dyn FnMut(Given, BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        for (device, queue) in &self.taps {
            offer(Given::Tap { device: device.clone() }, queue.as_fd())?;
        }
        for port in &self.devices {
            let Some((device, held)) = port.held.as_ref().and_then(Hold::descriptor) else { continue };
            offer(Given::Hold { device }, held)?;
            match (&port.means, &port.guard) {
                (Means::Packet { receive, .. }, _) => {
                    receive.iter().try_for_each(|socket| offer(Given::Packets { device }, socket.as_fd()))?;
                }
                (Means::Xdp { .. }, Guard::Program(link)) => offer(Given::Program { device }, link.as_fd())?,
                (Means::Xdp { .. }, _) => {}
            }
            if let Some(socket) = port.gate.as_ref().and_then(PortGate::beside) {
                offer(Given::Packets { device }, socket.as_fd())?;
            }
        }
        Ok(())
    }

    /// Closes the AF_XDP sockets of all devices. The kernel forwards until another router has sockets there. One device alone could not
    /// be closed, because packets of the others leave by it.
    pub(super) fn release(&mut self) {
        let Some(opener) = &mut self.opener else { return };
        for port in self.devices.iter().filter(|port| matches!(port.means, Means::Xdp { .. })) {
            let _ = port.gate.as_ref().map(|gate| gate.set(GateState::ClosedToMachine));
        }
        let ports = self.devices.iter().filter_map(|port| match &port.means {
            Means::Xdp { redirect, .. } => Some((port.port, redirect)),
            Means::Packet { .. } => None,
        });
        let ports: Vec<_> = ports.collect();
        ports.iter().for_each(|(_, redirect)| redirect.clear());
        // The time in which threads empty the rings.
        std::thread::sleep(super::DRAIN);
        for &(port, _) in &ports {
            for mailbox in self.mailboxes.iter().flatten() {
                mailbox.put(port, End::Sockets(xdp::Ends::default()));
            }
        }
        let until = Instant::now() + RELEASE;
        while ports.iter().any(|port| opener.is_open(port.0)) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(100));
        }
        ports.iter().for_each(|port| opener.forget(port.0));
    }

    /// Goes on after a router that has not taken over, whatever it has done.
    pub(super) fn resume(&mut self) {
        for port in &mut self.devices {
            match &port.means {
                Means::Packet { receive, .. } => {
                    receive.iter().for_each(|socket| _ = socket.take_frames());
                    let _ = port.gate.as_ref().map(PortGate::close);
                }
                // Its sockets may be closed: the device is taken up as if it were new.
                Means::Xdp { .. } => {
                    port.guard = Guard::Open;
                    port.gate.iter_mut().for_each(PortGate::detach);
                    port.at = None;
                }
            }
        }
    }

    /// Takes over from a router that runs. It forwards with the frames that it has had until then. A frame that comes between the two
    /// steps of its device is forwarded by both, and none is lost; with AF_XDP the kernel forwards for some milliseconds.
    pub(super) fn take_over(
        &mut self,
        machine: &Machine,
        filter: &Filter,
        predecessor: &mut Predecessor,
    ) -> Result<(), RunError> {
        self.has_begun = true;
        let mut ready = Vec::new();
        for port in self.devices.iter_mut().filter(|port| !port.waits) {
            let Some(link) = machine.link(&port.device).filter(|_| port.at.is_some()) else { continue };
            port.prepare(link.index, filter).map_err(machine_error(format!("taking up {}", port.device)))?;
            ready.push((port, link));
        }
        let mut programs = Vec::new();
        for (at, (port, link)) in ready.iter().enumerate() {
            let program = predecessor.take(&Given::Program { device: link.index });
            if let (Some(program), Means::Xdp { .. }) = (program, &port.means) {
                programs.push((at, program));
            }
        }
        if !programs.is_empty() {
            predecessor.release()?;
        }
        let refused = |link: &Link| machine_error(format!("taking up {}", link.name));
        for &(at, _) in &programs {
            let (port, link) = &mut ready[at];
            port.bind(link, self.opener.as_mut(), &self.mailboxes).map_err(refused(link))?;
        }
        // Sockets of all ports first, because a packet may leave by any of them.
        ready.iter().for_each(|(port, _)| port.wait(&self.mailboxes));
        let mut programs: BTreeMap<usize, OwnedFd> = programs.into_iter().collect();
        for (at, (port, link)) in ready.into_iter().enumerate() {
            let done = match programs.remove(&at) {
                Some(program) => port.replace(program, link.index),
                None => port.switch(link.index),
            };
            done.map_err(refused(link))?;
            predecessor.refuse_packets(link.index).map_err(refused(link))?;
        }
        Ok(())
    }

    /// Gives threads the taps of a router that is taken over. Each frame is read by one of the two routers.
    pub(super) fn take_taps(&mut self) {
        for (port, mailbox, end) in self.later.drain(..) {
            mailbox.put(port, end);
        }
    }

    /// Returns the buffers of ports of DPDK.
    pub(super) fn pool(&self) -> Option<dpdk::Pool> {
        self.pool
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

/// A port that a reload adds.
#[derive(Debug)]
pub(super) struct Added {
    port: usize,
    queues: Queues,
    device: Option<DevicePort>,
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
        // Devices leave room for one tag.
        let second = |line: &Interface| if line.tags.outer().is_some() { 4 } else { 0 };
        let mtu = lines().map(|line| line.mtu.unwrap_or(plan::MTU) + second(line)).max().unwrap_or(plan::MTU);
        let mac = lines().find_map(|line| line.mac);
        let (name, frames) = (device.clone(), *frames);
        let (otherwise, promiscuous) = (plan::made_up(device), config.bridge);
        wanted.push(dpdk::Wanted { name, port, frames, mtu, mac, otherwise, promiscuous });
        if let Some(tap) = host {
            let addresses =
                lines().filter(|line| line.tags.is_none()).flat_map(|line| line.addresses.clone());
            hosts.push((port, device, tap, mtu, addresses.collect()));
        }
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    dpdk::start(&config.dpdk).map_err(machine_error("starting DPDK"))?;
    let threads = [config.shape.receiving(config.threads), config.shape.sending(config.threads)];
    let together = config.shape == Shape::Complete;
    let opened = dpdk::open(&wanted, ports.len(), threads, together, between(config, wanted.len()));
    let dpdk::Opened { ports: opened, receivers: mut receiving, senders, pool } =
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
    (kept.ports, kept.pool) = (opened, Some(pool));
    queues.common = [receiving, senders].map(|ends| ends.into_iter().map(Common::Dpdk).collect());
    Ok(beside)
}

/// Returns how many packets of so many ports the rings between stages hold.
#[cfg(feature = "dpdk")]
fn between(config: &Config, ports: usize) -> usize {
    let rings = match config.shape {
        Shape::Complete => 0,
        Shape::Two { receive } => receive * config.threads,
        Shape::Three { receive, .. } => (receive + 1) * config.threads,
    };
    rings * ports * stage::CAPACITY
}

/// Returns whether a thread sends frames of a port.
fn sends(shape: Shape, port: usize, thread: usize) -> bool {
    match shape {
        Shape::Three { send, .. } => stage::sends(port, send) == thread,
        _ => true,
    }
}

/// Makes a mailbox for each thread that receives or sends.
fn mailboxes(config: &Config) -> [Vec<Arc<Mailbox>>; 2] {
    let make = |count: usize| -> Vec<Arc<Mailbox>> { (0..count).map(|_| Arc::new(Mailbox::new())).collect() };
    let receivers = make(config.shape.receiving(config.threads));
    let senders = match config.shape {
        Shape::Complete => receivers.clone(),
        shape => make(shape.sending(config.threads)),
    };
    [receivers, senders]
}

/// Opens files and taps, and leaves places for the rings. The queues of taps of a router that is taken over are for later.
pub(super) fn files_and_taps(
    ports: &[Backend],
    config: &Config,
    folder: &Path,
    mut predecessor: Option<&mut Predecessor>,
) -> Result<Queues, RunError> {
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
        mailboxes: mailboxes(config),
        taps: Vec::new(),
        later: Vec::new(),
        entrances: Vec::new(),
        beside: Vec::new(),
    };
    for (number, backend) in ports.iter().enumerate() {
        let mut taps = Vec::new();
        let (mut is_later, mut is_elsewhere) = (false, false);
        for (thread, sources) in queues.sources.iter_mut().enumerate() {
            let source = match backend {
                Backend::Tap { device, is_side } => {
                    let open = if *is_side { Tap::open_side } else { Tap::open };
                    let item = Given::Tap { device: device.clone() };
                    let inherited = predecessor.as_mut().and_then(|predecessor| predecessor.take(&item));
                    is_later |= inherited.is_some();
                    let tap = match inherited {
                        Some(queue) => Tap::inherited(queue),
                        // In another namespace no further queue can join it, and the name would make another tap here.
                        None if is_elsewhere => {
                            sources.push(Source::None);
                            continue;
                        }
                        None => open(device),
                    };
                    let tap = tap.map_err(machine_error(format!("tap {device}")))?;
                    is_elsewhere = is_later && !tap.is_here();
                    taps.push(tap.sender());
                    queues.taps.push((device.clone(), tap.queue()));
                    // Further queues of a tap of another router are for later too, because they share its frames.
                    if is_later {
                        let end = End::Source(Source::Tap(tap));
                        queues.later.push((number, Arc::clone(&queues.mailboxes[0][thread]), end));
                        Source::None
                    } else {
                        Source::Tap(tap)
                    }
                }
                Backend::Pcap { input: Some(path), .. } => Source::File(open_input(&folder.join(path))?),
                Backend::Xdp { .. } | Backend::Dpdk { .. } => Source::Common,
                _ => Source::None,
            };
            sources.push(source);
        }
        // There may be more sending threads than queues. Then several of them share a queue of the tap.
        let mut taps = taps.iter().cycle();
        for (thread, sinks) in queues.sinks.iter_mut().enumerate() {
            let sender = taps.next();
            sinks.push(match (backend, sender) {
                _ if !sends(config.shape, number, thread) => Sink::None,
                (Backend::Tap { .. }, Some(sender)) if is_later => {
                    let end = End::Sink(Sink::Tap(sender.again()));
                    queues.later.push((number, Arc::clone(&queues.mailboxes[1][thread]), end));
                    Sink::None
                }
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

/// Opens the rings in the places that [`files_and_taps`] has left for them, and takes up the devices that are there. Also loads
/// what keeps the kernel from forwarding frames that arrive at the router's devices. `locals` are the machine's addresses.
pub(super) fn rings(
    ports: &[Backend],
    machine: &Machine,
    config: &Config,
    locals: &[(u32, IpAddr)],
    (queues, kept, mut predecessor): (&mut Queues, &mut Kept, Option<&mut Predecessor>),
) -> Result<Option<Filter>, RunError> {
    kept.mailboxes.clone_from(&queues.mailboxes);
    kept.taps.append(&mut queues.taps);
    kept.later.append(&mut queues.later);
    if !ports.iter().any(Backend::is_device) {
        return Ok(None);
    }
    let filter = if config.bridge { Filter::load_everything() } else { Filter::load() };
    let mut filter = filter.map_err(machine_error("loading the filter"))?;
    filter.set_addresses(locals.iter().copied()).map_err(machine_error("addresses of the filter"))?;
    kept.bridge = config.bridge;
    kept.gate = match config.gate {
        true => Some(Arc::new(filter.gate().map_err(machine_error("gate of filter.local and policers"))?)),
        false => None,
    };
    memory(ports, machine, config, queues, kept)?;
    for (number, backend) in ports.iter().enumerate() {
        let loading = (&filter, kept.fast.as_mut(), kept.gate.as_ref());
        let Some(means) = means(number, backend, config, loading, queues)? else { continue };
        let device = backend.device();
        let mut port = DevicePort::new(number, backend, means);
        if let Some(there) = machine.link(&device).zip(machine.identity(&device)) {
            let kept = (kept.opener.as_mut(), &kept.mailboxes, config.bridge, false);
            port.take_up(there, &filter, kept, predecessor.as_deref_mut())
                .map_err(machine_error(format!("taking up {device}")))?;
        } else if config.require_devices {
            return Err(RunError::Config(format!("there is no device '{device}'")));
        }
        kept.devices.push(port);
    }
    Ok(Some(filter))
}

/// Makes the maps of the programs that forward, if an interface is fast.
pub(super) fn fast(config: &Config, vrfs: &[Vrf]) -> Result<Option<Fast>, RunError> {
    let mut slots: Vec<usize> =
        config.interfaces.iter().filter(|line| line.backend.is_fast()).map(|line| line.vrf).collect();
    slots.sort_unstable();
    slots.dedup();
    match slots[..] {
        [] => Ok(None),
        _ => Fast::new(vrfs, &slots).map(Some).map_err(machine_error("fast = true")),
    }
}

/// Opens the socket and the rings of a port, before it has its device. Returns `None` for other ports.
fn means(
    number: usize,
    backend: &Backend,
    config: &Config,
    (filter, fast, gate): (&Filter, Option<&mut Fast>, Option<&Arc<Gate>>),
    queues: &mut Queues,
) -> Result<Option<(Means, Option<PortGate>)>, RunError> {
    let gate = match gate.filter(|_| config.has_gate(backend)) {
        Some(gate) => {
            let opened = PortGate::open(gate, backend, config.threads);
            let opened = opened.map_err(machine_error(format!("gate of {}", backend.device())));
            let (gate, entrances, ring) = opened?;
            queues.entrances.resize_with(config.threads, Entrances::default);
            queues.entrances.iter_mut().zip(entrances).for_each(|(all, one)| all.set(number, Some(one)));
            queues.beside.extend(ring.map(|ring| (number, ring)));
            Some(gate)
        }
        None => None,
    };
    match backend {
        Backend::Packet { device, frames } => {
            let ring = |error| RunError::Machine(format!("rings of {device}"), error);
            let (mut receive, mut transmit) = (Vec::new(), Vec::new());
            for sources in &mut queues.sources {
                let opened = Receive::open(*frames).map_err(ring)?;
                let sieve = if gate.is_some() { WITHOUT_RETURNED } else { &[] };
                receive.push(opened.socket().map_err(ring)?.through(sieve));
                sources[number] = Source::Packet(opened);
            }
            for (thread, sinks) in queues.sinks.iter_mut().enumerate() {
                if sends(config.shape, number, thread) {
                    let opened = Transmit::open(*frames).map_err(ring)?;
                    transmit.push(opened.socket().map_err(ring)?);
                    sinks[number] = Sink::Packet(opened);
                }
            }
            Ok(Some((Means::Packet { frames: *frames, receive, transmit, joined: false }, gate)))
        }
        Backend::Xdp { device, frames, mode, fast: is_fast } => {
            let tagged =
                config.interfaces.iter().any(|line| line.backend == *backend && !line.tags.is_none());
            let redirect = match fast.filter(|_| *is_fast) {
                Some(fast) => filter.redirect_fast(fast, number, tagged),
                None => filter.redirect(tagged),
            };
            let redirect = redirect.map_err(machine_error(format!("program of AF_XDP for {device}")))?;
            let wanted = wanted(number, *frames, config);
            let threads = wanted.queues;
            Ok(Some((Means::Xdp { wanted, mode: *mode, is_bond: false, redirect, threads }, gate)))
        }
        _ => Ok(None),
    }
}

/// Describes a port of AF_XDP with as many queues as its threads need.
fn wanted(port: usize, frames: usize, config: &Config) -> xdp::Wanted {
    let (receiving, sending) = (config.shape.receiving(config.threads), config.shape.sending(config.threads));
    let senders: Vec<usize> = (0..sending).filter(|&thread| sends(config.shape, port, thread)).collect();
    xdp::Wanted { port, frames, queues: receiving.max(senders.len()), senders }
}

/// Takes memory for the frames of AF_XDP: for the queues that the devices have now, or that the threads need at least.
fn memory(
    ports: &[Backend],
    machine: &Machine,
    config: &Config,
    queues: &mut Queues,
    kept: &mut Kept,
) -> Result<(), RunError> {
    let (receiving, sending) = (config.shape.receiving(config.threads), config.shape.sending(config.threads));
    let mut all = Vec::new();
    for (number, backend) in ports.iter().enumerate() {
        let Backend::Xdp { device, frames, .. } = backend else { continue };
        let mut wanted = wanted(number, *frames, config);
        if machine.link(device).is_some() {
            wanted.queues = wanted.queues.max(xdp::queues(device));
        }
        all.push(wanted);
    }
    if all.is_empty() {
        return Ok(());
    }
    let apart = (config.shape != Shape::Complete).then_some(sending);
    let opened = xdp::Opener::new(&all, receiving, apart).map_err(machine_error("memory of AF_XDP"));
    let (opener, receivers, senders) = opened?;
    kept.opener = Some(opener);
    queues.common = [receivers, senders].map(|ends| ends.into_iter().map(Common::Xdp).collect());
    Ok(())
}
