//! The ports of a worker, of any back ends side by side.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::kernel::sys;

use super::packet::{Receive, Transmit};
use super::tap::{Sender, Tap};
use super::{BURST, Io, Offload, Received, pcap};

/// Where the frames of a port come from.
#[derive(Debug)]
pub enum Source {
    /// A ring.
    Packet(Receive),
    /// A tap.
    Tap(Tap),
    /// A file.
    File(Input),
    /// Nowhere.
    None,
}

/// Where frames of a port go to.
#[derive(Debug)]
pub enum Sink {
    /// A ring.
    Packet(Transmit),
    /// A tap.
    Tap(Sender),
    /// A file, and the time of its next frame.
    File(Box<pcap::Writer<BufWriter<File>>>, u64),
    /// Nowhere.
    None,
}

/// A file of captured frames that is being received.
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

/// The ports of a worker.
#[derive(Debug, Default)]
pub struct Ports {
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    current: usize,
}

impl Ports {
    /// Adds a port; ports are numbered from 0.
    pub fn push(&mut self, source: Source, sink: Sink) {
        self.sources.push(source);
        self.sinks.push(sink);
    }

    /// Makes a port of a tap.
    #[must_use]
    pub fn tap(mut tap: Tap) -> (Source, Sink) {
        let sink = Sink::Tap(tap.sender());
        (Source::Tap(tap), sink)
    }

    /// Waits until a frame arrives, or for some milliseconds.
    pub fn wait(&self, milliseconds: i32) {
        let mut fds = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 64];
        for (entry, source) in fds.iter_mut().zip(&self.sources) {
            entry.fd = match source {
                Source::Packet(ring) => ring.as_raw_fd(),
                Source::Tap(tap) => tap.as_raw_fd(),
                Source::File(_) | Source::None => -1,
            };
        }
        let count = self.sources.len().min(fds.len());
        // A signal may end the wait early, which does no harm.
        let _ = sys::poll(&mut fds[..count], milliseconds);
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

    /// Returns why a file could not be read to its end, with the name of the file.
    pub fn take_error(&mut self) -> Option<(String, pcap::PcapError)> {
        self.sources.iter_mut().find_map(|source| match source {
            Source::File(input) => Some((input.name.clone(), input.error.take()?)),
            _ => None,
        })
    }

    /// Returns the frames that the kernel had no slot for since this was called last.
    pub fn take_lost(&self, port: usize) -> u64 {
        match &self.sources[port] {
            Source::Packet(ring) => ring.take_lost(),
            _ => 0,
        }
    }

    /// Writes what is held back.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sinks.iter_mut().try_for_each(|sink| match sink {
            Sink::File(writer, _) => writer.flush(),
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
            Self::None => Received { bytes: &mut [], tag: None, offload: Offload::default(), cut: true },
        }
    }
}

impl Sink {
    fn push(&mut self, parts: [&[u8]; 3], offload: &Offload) -> bool {
        match self {
            Self::Packet(ring) => ring.push(parts, offload),
            Self::Tap(tap) => tap.push(parts, offload),
            Self::File(writer, time_ns) => {
                *time_ns += 1;
                writer.write(*time_ns, &parts).is_ok()
            }
            Self::None => false,
        }
    }
}

impl Io for Ports {
    fn receive(&mut self, port: usize) -> usize {
        self.current = port;
        match &mut self.sources[port] {
            Source::Packet(ring) => ring.receive(),
            Source::Tap(tap) => tap.receive(),
            Source::File(input) => input.receive(),
            Source::None => 0,
        }
    }

    fn frame(&mut self, index: usize) -> Received<'_> {
        self.sources[self.current].frame(index)
    }

    fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &[u8],
        packet: core::ops::Range<usize>,
        offload: &Offload,
    ) -> bool {
        let frame = self.sources[self.current].frame(index);
        self.sinks[port].push([header, &frame.bytes[packet], &[]], offload)
    }

    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        self.sinks[port].push(parts, offload)
    }

    fn deliver(&mut self, _index: usize, _port: usize) -> bool {
        // The kernel has the original of each frame of a packet socket; ports of other kinds have no kernel.
        matches!(self.sources[self.current], Source::Packet(_))
    }

    fn segments(&self, port: usize) -> bool {
        matches!(self.sinks[port], Sink::Packet(_))
    }

    fn finish(&mut self) {
        match &mut self.sources[self.current] {
            Source::Packet(ring) => ring.finish(),
            Source::Tap(tap) => tap.finish(),
            Source::File(input) => input.burst.clear(),
            Source::None => {}
        }
        for sink in &mut self.sinks {
            if let Sink::Packet(ring) = sink {
                ring.finish();
            }
        }
    }
}
