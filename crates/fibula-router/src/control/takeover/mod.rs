//! The take-over of a running router by another process, for example of a newer version, without a gap.
//!
//! ```text
//! successor                                        the router that runs
//! "takeover" ──────────────────────────────────>
//!            <────────────────────────────────── Offer, with a descriptor for each item
//! starts beside it, and reads its own feeds
//! lists the routes of sessions, and neighbours ─> (as any client does)
//! "release" ───────────────────────────────────>   closes its AF_XDP sockets; the kernel forwards meanwhile
//!            <────────────────────────────────── "released"
//! takes frames, switches its filters on, and lets the sockets of the other refuse frames
//! "done" ──────────────────────────────────────>   ends
//! ```
//!
//! Until "done" the router that runs forwards as before. It does so again if the successor ends without it, whatever the successor has
//! done to its sockets.

mod give;
mod take;

use core::fmt;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::Level;
use super::client::AskError;
use crate::api::{self, AnswerError};
use crate::config::{Backend, Config};
use crate::io::packet::Socket;

/// The question that begins a take-over.
pub(super) const QUESTION: &str = "takeover";
/// Version of this exchange.
const PROTOCOL: u32 = 1;
const RELEASE: &str = "release";
const RELEASED: &str = "released";
const DONE: &str = "done";
/// How long each side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most descriptors of a message.
const DESCRIPTORS: usize = 64;
/// Longest offer.
const LONGEST: usize = 1 << 20;

/// A thing that a successor is given, with a descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Given {
    /// The listener of the control socket.
    Control,
    /// The listener of the metrics.
    Metrics { address: SocketAddr },
    /// The listener of a feed.
    Feed { name: String, address: SocketAddr },
    /// A queue of a tap.
    Tap { device: String },
    /// The right to a device, given by its number.
    Hold { device: u32 },
    /// A socket that receives packets of a device, given by its number.
    Packets { device: u32 },
    /// The link of the program that gives the frames of a device to AF_XDP sockets.
    Program { device: u32 },
}

/// What the router that runs offers. Each item has a descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Offer {
    protocol: u32,
    process: u32,
    items: Vec<Given>,
}

/// Why a router cannot be taken over. It forwards as before.
#[derive(Debug)]
#[non_exhaustive]
pub enum TakeoverError {
    /// The router at this socket refuses, for this reason.
    Refused(PathBuf, String),
    /// The router at this socket is of a version with another exchange.
    Version(PathBuf),
    /// The router at this socket does not answer as it should.
    Broken(PathBuf, io::Error),
    /// The successor is not ready in time, for this reason.
    Late(String),
}

impl fmt::Display for TakeoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the router that runs is not taken over, and goes on: ")?;
        match self {
            Self::Refused(socket, reason) => write!(f, "{}: {reason}", socket.display()),
            Self::Version(socket) => write!(
                f,
                "{}: its version has another way to be taken over: stop it, then start this one",
                socket.display()
            ),
            Self::Broken(socket, error) => write!(f, "{}: {error}", socket.display()),
            Self::Late(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for TakeoverError {}

/// The router that a starting one takes over.
#[derive(Debug)]
pub(super) struct Predecessor {
    socket: PathBuf,
    stream: UnixStream,
    process: u32,
    items: Vec<(Given, OwnedFd)>,
    /// Whether it has told its routes and neighbours.
    has_told: bool,
}

impl Predecessor {
    /// Asks the router at a control socket to be taken over. Returns `None` if there is none.
    pub(super) fn meet(socket: &Path) -> Result<Option<Self>, TakeoverError> {
        let broken = |error| TakeoverError::Broken(socket.to_owned(), error);
        let mut stream = match UnixStream::connect(socket) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(broken(error)),
        };
        stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
        writeln!(stream, "{QUESTION}").map_err(broken)?;
        let (line, descriptors) = receive(&stream).map_err(broken)?;
        let offer = api::read::<Offer>(&line).map_err(|error| match error {
            AnswerError::Refused(reason) if reason.starts_with("no question") => {
                TakeoverError::Version(socket.to_owned())
            }
            AnswerError::Refused(reason) => TakeoverError::Refused(socket.to_owned(), reason),
            AnswerError::Other(_) => TakeoverError::Version(socket.to_owned()),
        })?;
        if offer.protocol != PROTOCOL {
            return Err(TakeoverError::Version(socket.to_owned()));
        }
        if offer.items.len() != descriptors.len() {
            return Err(broken(io::Error::other("it gave other descriptors than it said")));
        }
        let items = offer.items.into_iter().zip(descriptors).collect();
        Ok(Some(Self { socket: socket.to_owned(), stream, process: offer.process, items, has_told: false }))
    }

    /// Returns the number of its process.
    pub(super) const fn process(&self) -> u32 {
        self.process
    }

    /// Returns its control socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the error of a question that it does not answer.
    fn broken(&self, error: AskError) -> TakeoverError {
        TakeoverError::Broken(self.socket.clone(), io::Error::other(error.to_string()))
    }

    /// Takes the first descriptor of an item, if it is offered.
    pub(super) fn take(&mut self, item: &Given) -> Option<OwnedFd> {
        let at = self.items.iter().position(|(offered, _)| offered == item)?;
        Some(self.items.remove(at).1)
    }

    /// Returns whether an item is offered.
    pub(super) fn has(&self, item: &Given) -> bool {
        self.items.iter().any(|(offered, _)| offered == item)
    }

    /// Takes the listener of the control socket.
    pub(super) fn control(&mut self) -> Option<UnixListener> {
        self.take(&Given::Control).map(UnixListener::from)
    }

    /// Takes the listener of the metrics, if it listens at this address.
    pub(super) fn metrics(&mut self, address: SocketAddr) -> Option<TcpListener> {
        self.take(&Given::Metrics { address }).map(TcpListener::from)
    }

    /// Takes the listener of a feed, if it listens at this address.
    pub(super) fn feed(&mut self, name: &str, address: SocketAddr) -> Option<TcpListener> {
        self.take(&Given::Feed { name: name.to_owned(), address }).map(TcpListener::from)
    }

    /// Lets its packet sockets on a device refuse frames, at once.
    pub(super) fn refuse_packets(&mut self, device: u32) -> io::Result<()> {
        while let Some(socket) = self.take(&Given::Packets { device }) {
            Socket::inherited(socket).refuse_frames()?;
        }
        Ok(())
    }

    /// Lets it close its AF_XDP sockets. A router that has ended has closed them.
    pub(super) fn release(&mut self) -> Result<(), TakeoverError> {
        let mut answer = [0; RELEASED.len() + 1];
        let released = writeln!(self.stream, "{RELEASE}").and_then(|()| self.stream.read_exact(&mut answer));
        match released {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe) => Ok(()),
            Err(error) => Err(TakeoverError::Broken(self.socket.clone(), error)),
        }
    }

    /// Ends it.
    pub(super) fn end(mut self) {
        // If it has ended by itself, the device is this router's all the same.
        let _ = writeln!(self.stream, "{DONE}");
    }
}

/// The router that takes over from this one.
#[derive(Debug)]
pub(super) struct Successor {
    stream: UnixStream,
    process: Option<u32>,
    line: Vec<u8>,
}

/// What a successor wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// The AF_XDP sockets are to be closed.
    Release,
    /// It forwards: this router is to end.
    Done,
    /// It has ended, or says what cannot be understood: this router goes on.
    GivenUp,
}

impl Successor {
    /// Offers a client what a successor needs. The client's socket must block.
    pub(super) fn offer(stream: UnixStream, items: &[(Given, BorrowedFd<'_>)]) -> io::Result<Self> {
        let offer = Offer {
            protocol: PROTOCOL,
            process: std::process::id(),
            items: items.iter().map(|(item, _)| item.clone()).collect(),
        };
        stream.set_write_timeout(Some(PATIENCE))?;
        let descriptors: Vec<BorrowedFd<'_>> = items.iter().map(|&(_, descriptor)| descriptor).collect();
        send(&stream, &serde_json::to_string(&offer)?, &descriptors)?;
        let process = rustix::net::sockopt::socket_peercred(&stream).ok();
        let process = process.map(|peer| peer.pid.as_raw_nonzero().get().unsigned_abs());
        stream.set_nonblocking(true)?;
        Ok(Self { stream, process, line: Vec::new() })
    }

    /// Returns the number of its process, if the kernel knows it.
    pub(super) const fn process(&self) -> Option<u32> {
        self.process
    }

    /// Returns its next wish, if it has one now.
    pub(super) fn wish(&mut self) -> Option<Wish> {
        let mut bytes = [0; 64];
        loop {
            if let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
                let line = String::from_utf8_lossy(&self.line[..end]).into_owned();
                self.line.drain(..=end);
                return Some(match &*line {
                    RELEASE => Wish::Release,
                    DONE => Wish::Done,
                    _ => Wish::GivenUp,
                });
            }
            match self.stream.read(&mut bytes) {
                Ok(read) if read > 0 && self.line.len() < bytes.len() => {
                    self.line.extend_from_slice(&bytes[..read]);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return None;
                }
                _ => return Some(Wish::GivenUp),
            }
        }
    }

    /// Says that the sockets are closed.
    pub(super) fn released(&mut self) {
        // A successor that does not read gives up by itself.
        let _ = writeln!(self.stream, "{RELEASED}");
    }
}

impl AsRawFd for Successor {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

/// Asks the router at the control socket to be taken over, if the configuration wants that and there is one.
pub(super) fn meet(
    config: &Config,
    log: &mut dyn FnMut(Level, &str),
) -> Result<Option<Predecessor>, TakeoverError> {
    if !config.take_over {
        return Ok(None);
    }
    let socket = &config.socket;
    cannot(config).map_or(Ok(()), |why| Err(TakeoverError::Refused(socket.clone(), why)))?;
    let predecessor = Predecessor::meet(socket)?;
    let text = match &predecessor {
        Some(predecessor) => format!("taking over from process {}", predecessor.process()),
        None => format!("no router answers at {}: there is none to take over", socket.display()),
    };
    log(Level::Note, &text);
    Ok(predecessor)
}

/// Returns why a router with this configuration cannot be taken over, or cannot take over.
fn cannot(config: &Config) -> Option<String> {
    config.interfaces.iter().filter(|line| !line.removed).find_map(|line| {
        let why = match line.backend {
            Backend::Packet { .. } | Backend::Xdp { .. } | Backend::Tap { .. } => return None,
            Backend::Dpdk { .. } => "is a port of DPDK, which one process has",
            Backend::Pcap { .. } => "is a file",
        };
        Some(format!("interface {} {why}: stop the one, then start the other", line.name))
    })
}

/// Sends a line, with descriptors.
fn send(stream: &UnixStream, line: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
    // A message has at least a byte; spaces in front of JSON mean nothing.
    for some in descriptors.chunks(DESCRIPTORS) {
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(some));
        sendmsg(stream, &[IoSlice::new(b" ")], &mut ancillary, SendFlags::NOSIGNAL)?;
    }
    let mut stream = stream;
    stream.write_all(line.as_bytes())?;
    stream.write_all(b"\n")
}

/// Receives a line, with descriptors.
fn receive(stream: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let (mut line, mut descriptors, mut bytes) = (Vec::new(), Vec::new(), vec![0; 4096]);
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
    while line.last() != Some(&b'\n') {
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let read = recvmsg(stream, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(&bytes[..read]);
        if line.len() > LONGEST {
            return Err(io::Error::other("its answer does not end"));
        }
    }
    let line = String::from_utf8(line).map_err(io::Error::other)?;
    Ok((line.trim().to_owned(), descriptors))
}

#[cfg(test)]
mod tests;
