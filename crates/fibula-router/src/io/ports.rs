//! The ports of a worker, with any mix of back ends.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernel::bell::Bell;
use crate::kernel::sys;

use super::entrance::{Entrances, WayBack};
use super::packet::{Receive, Transmit};
use super::tap::{Tap, TapSender};
use super::xdp::{self, Xdp};
use super::{BURST, Io, Offload, Received, dpdk, pcap};
use crate::packet::ethernet::Header;

/// How long a thread waits if something may come that does not end its wait.
const SHORT_MS: i32 = 1;

/// The source of a port's frames.
#[derive(Debug)]
pub enum Source {
    /// A ring.
    Packet(Receive),
    /// A back end whose ports have their frames together.
    Common,
    /// A tap.
    Tap(Tap),
    /// A file.
    File(Input),
    /// Nowhere.
    None,
}

/// The sink of a port's frames.
#[derive(Debug)]
pub enum Sink {
    /// A ring.
    Packet(Transmit),
    /// A back end whose ports have their frames together.
    Common,
    /// A tap.
    Tap(TapSender),
    /// A file.
    File(Box<Output>),
    /// Nowhere.
    None,
}

/// A back end whose ports share the memory of their frames, so that a packet leaves in the frame in which it was received.
#[derive(Debug)]
pub enum Common {
    /// Sockets of AF_XDP.
    Xdp(Xdp),
    /// Ports of DPDK.
    #[cfg(feature = "dpdk")]
    Dpdk(dpdk::Dpdk),
}

/// Calls the same method of any back end.
macro_rules! each {
    ($common:expr, $one:ident => $call:expr) => {
        match $common {
            Common::Xdp($one) => $call,
            #[cfg(feature = "dpdk")]
            Common::Dpdk($one) => $call,
        }
    };
}

impl Common {
    fn is_polled(&self) -> bool {
        !matches!(self, Self::Xdp(_))
    }

    /// Returns the descriptors of a port that can be waited for.
    pub fn descriptors(&self, port: usize) -> impl Iterator<Item = RawFd> {
        let xdp = match self {
            Self::Xdp(xdp) => Some(xdp),
            #[cfg(feature = "dpdk")]
            Self::Dpdk(_) => None,
        };
        xdp.into_iter().flat_map(move |xdp| xdp.descriptors(port))
    }

    fn receive(&mut self, port: usize) -> usize {
        each!(self, one => one.receive(port))
    }

    fn frame(&mut self, index: usize) -> Received<'_> {
        each!(self, one => one.frame(index))
    }

    fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &Header,
        packet: core::ops::Range<usize>,
    ) -> bool {
        each!(self, one => one.forward(index, port, header, packet))
    }

    fn push(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        each!(self, one => one.push(port, parts, offload))
    }

    /// Gives a frame to the kernel. With AF_XDP, the kernel has already got its frames.
    fn deliver(&mut self, index: usize, port: usize) -> bool {
        match self {
            Self::Xdp(_) => {
                let _ = (index, port);
                false
            }
            #[cfg(feature = "dpdk")]
            Self::Dpdk(dpdk) => dpdk.deliver(index, port),
        }
    }

    fn take(&mut self, index: usize) -> Option<dpdk::Packet> {
        match self {
            Self::Xdp(_) => {
                let _ = index;
                None
            }
            #[cfg(feature = "dpdk")]
            Self::Dpdk(dpdk) => dpdk.take(index),
        }
    }

    fn put(&mut self, port: usize, packet: dpdk::Packet) -> Result<(), dpdk::Packet> {
        match self {
            Self::Xdp(_) => {
                let _ = port;
                Err(packet)
            }
            #[cfg(feature = "dpdk")]
            Self::Dpdk(dpdk) => dpdk.put(port, packet),
        }
    }

    fn has_unsent(&self) -> bool {
        each!(self, one => one.has_unsent())
    }

    fn finish(&mut self) {
        each!(self, one => one.finish());
    }

    fn take_lost(&mut self, port: usize) -> u64 {
        each!(self, one => one.take_lost(port))
    }
}

/// A file of captured frames, as a source.
#[derive(Debug)]
pub struct Input {
    reader: pcap::Reader<BufReader<File>>,
    burst: Vec<pcap::Captured>,
    /// Why reading ended early.
    error: Option<pcap::PcapError>,
    ended: bool,
    name: String,
}

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not a pcap file.
    pub fn open(path: &Path) -> Result<Self, pcap::PcapError> {
        let reader = pcap::Reader::new(BufReader::new(File::open(path)?))?;
        Ok(Self { reader, burst: Vec::new(), error: None, ended: false, name: path.display().to_string() })
    }

    fn receive(&mut self) -> usize {
        while !self.ended && self.burst.len() < BURST {
            match self.reader.next_frame() {
                Ok(Some(frame)) => self.burst.push(frame),
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.error = Some(error);
                    self.ended = true;
                }
            }
        }
        self.burst.len()
    }
}

/// A file of sent frames, as a sink.
#[derive(Debug)]
pub struct Output {
    writer: pcap::Writer<BufWriter<File>>,
    /// Time of the last frame written. The times are consecutive numbers.
    time_ns: u64,
    /// Why writing has ended.
    error: Option<io::Error>,
}

impl Output {
    /// Makes a file.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let writer = pcap::Writer::new(BufWriter::new(File::create(path)?))?;
        Ok(Self { writer, time_ns: 0, error: None })
    }

    fn push(&mut self, parts: [&[u8]; 3]) -> bool {
        self.time_ns += 1;
        if self.error.is_none() {
            self.error = self.writer.write(self.time_ns, &parts).err();
        }
        self.error.is_none()
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.writer.flush(),
        }
    }
}

/// An end of a port that takes the place of another.
#[derive(Debug)]
pub enum End {
    /// Where frames come from.
    Source(Source),
    /// Where frames go.
    Sink(Sink),
    /// Sockets of AF_XDP.
    Sockets(xdp::Ends),
    /// A further source, of the frames that a gate keeps from the kernel.
    Beside(Option<Receive>),
    /// The way of such frames back to the kernel.
    Entrance(Option<WayBack>),
}

/// New ends of ports, on their way to a thread that runs.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// Ends that the thread has not taken up.
    waiting: AtomicUsize,
    ends: Mutex<Vec<(usize, End)>>,
    /// Ends the thread's wait. Without it, the thread waits for a short time only.
    bell: Option<Bell>,
}

impl Mailbox {
    /// Makes a mailbox of a thread that waits for descriptors.
    #[must_use]
    pub fn new() -> Self {
        Self { bell: Bell::new().ok(), ..Self::default() }
    }

    /// Ends the wait of the thread, so that it looks for new work.
    pub fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// Sends the new end of a port.
    pub fn put(&self, port: usize, end: End) {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).push((port, end));
        self.waiting.fetch_add(1, Ordering::Release);
        self.ring();
    }

    /// Returns whether the thread has taken up every end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }
}

/// The ports of a worker.
#[derive(Debug, Default)]
pub struct Ports {
    mailbox: Arc<Mailbox>,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    common: Option<Box<Common>>,
    current: usize,
    /// Further sources of ports. The source of a port and that beside it change places from burst to burst.
    beside: Vec<(usize, Source)>,
    entrances: Entrances,
}

impl Ports {
    /// Adds a port; ports are numbered from 0.
    pub fn push(&mut self, source: Source, sink: Sink) {
        self.sources.push(source);
        self.sinks.push(sink);
    }

    /// Returns the number of ports.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sources.len()
    }

    /// Sets where new ends come from.
    pub fn set_mailbox(&mut self, mailbox: Arc<Mailbox>) {
        self.mailbox = mailbox;
    }

    /// Takes up new ends of ports. Call it between two bursts.
    #[inline]
    pub fn take_up(&mut self) {
        if self.mailbox.waiting.load(Ordering::Relaxed) > 0 {
            self.take_up_all();
        }
    }

    #[cold]
    fn take_up_all(&mut self) {
        let ends = std::mem::take(&mut *self.mailbox.ends.lock().unwrap_or_else(PoisonError::into_inner));
        let count = ends.len();
        for (port, end) in ends {
            if self.sources.len() <= port {
                self.sources.resize_with(port + 1, || Source::None);
                self.sinks.resize_with(port + 1, || Sink::None);
            }
            match (end, self.common.as_deref_mut()) {
                (End::Source(source), _) => self.sources[port] = source,
                (End::Sink(sink), _) => self.sinks[port] = sink,
                (End::Sockets(ends), Some(Common::Xdp(xdp))) => xdp.replace(port, ends),
                (End::Sockets(_), _) => {}
                (End::Beside(ring), _) => self.set_beside(port, ring),
                (End::Entrance(entrance), _) => self.entrances.set(port, entrance),
            }
        }
        // An end that is put meanwhile may be counted after it was taken; the count is right again then.
        self.mailbox.waiting.fetch_sub(count, Ordering::Release);
    }

    /// Sets the back end that the ports share.
    pub fn set_common(&mut self, common: Common) {
        self.common = Some(Box::new(common));
    }

    /// Sets the further source of a port, or takes it away.
    pub fn set_beside(&mut self, port: usize, ring: Option<Receive>) {
        // The source of before may be the further one.
        if let Some(at) = self.beside.iter().position(|beside| beside.0 == port) {
            let (_, other) = self.beside.remove(at);
            if let (Source::Packet(_), Source::Common) = (&self.sources[port], &other) {
                self.sources[port] = other;
            }
        }
        self.beside.extend(ring.map(|ring| (port, Source::Packet(ring))));
    }

    /// Sets the ways of frames back to the kernel.
    pub fn set_entrances(&mut self, entrances: Entrances) {
        self.entrances = entrances;
    }

    /// Receives from the sources of a port that has two, in turn.
    #[cold]
    fn receive_in_turn(&mut self, port: usize) -> usize {
        let Some(at) = self.beside.iter().position(|beside| beside.0 == port) else {
            return self.receive_from(port);
        };
        for _ in 0..2 {
            std::mem::swap(&mut self.sources[port], &mut self.beside[at].1);
            let received = self.receive_from(port);
            if received > 0 {
                return received;
            }
        }
        0
    }

    fn receive_from(&mut self, port: usize) -> usize {
        match &mut self.sources[port] {
            Source::Packet(ring) => ring.receive(),
            Source::Tap(tap) => tap.receive(),
            Source::File(input) => input.receive(),
            Source::Common => self.common.as_mut().map_or(0, |common| common.receive(port)),
            Source::None => 0,
        }
    }

    /// Returns whether some ports can only be polled, because there is no descriptor to wait on.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.common.as_ref().is_some_and(|common| common.is_polled())
    }

    /// Waits until a frame arrives or the [`Mailbox`] rings, or for some milliseconds.
    pub fn wait(&self, milliseconds: i32) {
        let mut fds = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 64];
        let mut entries = fds.iter_mut();
        let mut is_cut = false;
        let mut put = |fd| match entries.next() {
            Some(entry) => entry.fd = fd,
            None => is_cut = true,
        };
        let bell = self.mailbox.bell.as_ref();
        put(bell.map_or(-1, AsRawFd::as_raw_fd));
        let beside = self.beside.iter().map(|(port, source)| (*port, source));
        for (port, source) in self.sources.iter().enumerate().chain(beside) {
            match source {
                Source::Packet(ring) => put(ring.as_raw_fd()),
                Source::Tap(tap) => put(tap.as_raw_fd()),
                Source::Common => {
                    self.common.iter().flat_map(|common| common.descriptors(port)).for_each(&mut put);
                }
                Source::File(_) | Source::None => {}
            }
        }
        let count = 1 + fds[1..].iter().take_while(|entry| entry.fd >= 0).count();
        // Work that rings no bell must be looked for before long.
        let most = if is_cut || bell.is_none() { SHORT_MS } else { milliseconds };
        // A signal may end the wait early, which does no harm.
        let _ = sys::poll(&mut fds[..count], milliseconds.min(most));
        if let Some(bell) = bell.filter(|_| fds[0].revents != 0) {
            bell.quiet();
        }
        for entry in fds[1..count].iter().filter(|entry| entry.revents & libc::POLLERR != 0) {
            // The device is down or gone. Unless it is taken, the error ends every further wait at once.
            sys::take_error(entry.fd);
        }
    }

    /// Returns whether frames wait in the rings of devices that had no room for them, or anything else that is to be tried again.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        let packet = |sink: &Sink| matches!(sink, Sink::Packet(ring) if ring.has_unsent());
        self.sinks.iter().any(packet) || self.common.as_deref().is_some_and(Common::has_unsent)
    }

    /// Returns whether all sources are files, and all have been read.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.sources.iter().all(|source| match source {
            Source::File(input) => input.ended && input.burst.is_empty(),
            Source::None => true,
            _ => false,
        })
    }

    /// Returns whether frames of some port come from a file, which can wait.
    #[must_use]
    pub fn has_files(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, Source::File(_)))
    }

    /// Returns whether a file could not be written, so that nothing more will be.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.sinks.iter().any(|sink| matches!(sink, Sink::File(file) if file.error.is_some()))
    }

    /// Returns why a file could not be read to its end, with the name of the file.
    pub fn take_error(&mut self) -> Option<(String, pcap::PcapError)> {
        self.sources.iter_mut().find_map(|source| match source {
            Source::File(input) => Some((input.name.clone(), input.error.take()?)),
            _ => None,
        })
    }

    /// Returns the number of frames lost since the last call because the kernel had no free slot.
    pub fn take_lost(&mut self, port: usize) -> u64 {
        let beside = self.beside.iter().filter(|beside| beside.0 == port).map(|beside| &beside.1);
        let mut lost = 0;
        for source in [&self.sources[port]].into_iter().chain(beside) {
            lost += match (source, &mut self.common) {
                (Source::Packet(ring), _) => ring.take_lost(),
                (Source::Common, Some(common)) => common.take_lost(port),
                _ => 0,
            };
        }
        lost
    }

    /// Writes buffered bytes.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sinks.iter_mut().try_for_each(|sink| match sink {
            Sink::File(file) => file.flush(),
            _ => Ok(()),
        })
    }
}

impl Source {
    fn frame(&mut self, index: usize) -> Received<'_> {
        match self {
            Self::Packet(ring) => ring.frame(index),
            Self::Tap(tap) => tap.frame(index),
            Self::File(input) => {
                let frame = &mut input.burst[index];
                let cut = frame.cut;
                Received { bytes: &mut frame.bytes, tag: None, offload: Offload::default(), cut }
            }
            // The ports hold these frames.
            Self::Common | Self::None => {
                Received { bytes: &mut [], tag: None, offload: Offload::default(), cut: true }
            }
        }
    }
}

impl Sink {
    fn push(&mut self, parts: [&[u8]; 3], offload: &Offload) -> bool {
        match self {
            Self::Packet(ring) => ring.push(parts, offload),
            Self::Tap(tap) => tap.push(parts, offload),
            Self::File(file) => file.push(parts),
            Self::Common | Self::None => false,
        }
    }
}

impl Ports {
    fn push_to(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        // A port that a reload adds is known to the worker before its ends are here.
        match (self.sinks.get_mut(port), &mut self.common) {
            (Some(Sink::Common), Some(common)) => common.push(port, parts, offload),
            (Some(sink), _) => sink.push(parts, offload),
            (None, _) => false,
        }
    }
}

impl Io for Ports {
    fn receive(&mut self, port: usize) -> usize {
        self.current = port;
        if self.beside.is_empty() { self.receive_from(port) } else { self.receive_in_turn(port) }
    }

    fn frame(&mut self, index: usize) -> Received<'_> {
        match (&mut self.sources[self.current], &mut self.common) {
            (Source::Common, Some(common)) => common.frame(index),
            (source, _) => source.frame(index),
        }
    }

    fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &Header,
        packet: core::ops::Range<usize>,
        offload: &Offload,
    ) -> bool {
        // See `push_to`.
        let Some(sink) = self.sinks.get_mut(port) else { return false };
        match (&mut self.sources[self.current], sink, &mut self.common) {
            (Source::Common, Sink::Common, Some(common)) => common.forward(index, port, header, packet),
            (Source::Common, sink, Some(common)) => {
                sink.push([header.as_bytes(), &common.frame(index).bytes[packet], &[]], offload)
            }
            (source, Sink::Common, Some(common)) => {
                common.push(port, [header.as_bytes(), &source.frame(index).bytes[packet], &[]], offload)
            }
            (source, sink, _) => {
                sink.push([header.as_bytes(), &source.frame(index).bytes[packet], &[]], offload)
            }
        }
    }

    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        self.push_to(port, parts, offload)
    }

    fn take(&mut self, index: usize) -> Option<dpdk::Packet> {
        match (&self.sources[self.current], &mut self.common) {
            (Source::Common, Some(common)) => common.take(index),
            _ => None,
        }
    }

    fn put(&mut self, port: usize, packet: dpdk::Packet) -> Result<(), dpdk::Packet> {
        match (self.sinks.get(port), &mut self.common) {
            (Some(Sink::Common), Some(common)) => common.put(port, packet),
            _ => Err(packet),
        }
    }

    fn deliver(&mut self, index: usize, port: usize) -> bool {
        let frame = match (&mut self.sources[self.current], &mut self.common) {
            (Source::Common, Some(common)) => common.frame(index),
            (source, _) => source.frame(index),
        };
        if let Some(given) = self.entrances.give(port, &frame) {
            return given;
        }
        match (&self.sources[self.current], &mut self.common) {
            // The kernel has the original of each frame of a packet socket.
            (Source::Packet(_), _) => true,
            (Source::Common, Some(common)) => common.deliver(index, port),
            _ => false,
        }
    }

    fn segments(&self, port: usize) -> bool {
        match self.sinks.get(port) {
            Some(Sink::Packet(_)) => true,
            Some(Sink::Tap(tap)) => tap.takes_segments(),
            _ => false,
        }
    }

    fn finish(&mut self) {
        match &mut self.sources[self.current] {
            Source::Packet(ring) => ring.finish(),
            Source::Tap(tap) => tap.finish(),
            Source::File(input) => input.burst.clear(),
            Source::Common | Source::None => {}
        }
        if let Some(common) = &mut self.common {
            common.finish();
        }
        for sink in &mut self.sinks {
            if let Sink::Packet(ring) = sink {
                ring.finish();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_whose_ends_are_still_on_their_way_takes_nothing() {
        let mailbox = Arc::new(Mailbox::new());
        let mut ports = Ports::default();
        ports.set_mailbox(Arc::clone(&mailbox));
        ports.push(Source::None, Sink::None);
        assert!(!ports.emit(1, [&[1], &[], &[]], &Offload::default()));
        assert!(!ports.segments(1) && ports.count() == 1);
        mailbox.put(2, End::Source(Source::None));
        ports.take_up();
        assert_eq!(ports.count(), 3);
        assert!(!ports.emit(2, [&[1], &[], &[]], &Offload::default()));
    }
}
