//! Listens for the program that sends routes, and reads its messages as fast as they arrive.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Mutex;

use super::Rib;
use super::keeper::Times;
use super::sessions::{Limits, Protocol, Sessions};
use super::state::Stranger;
use crate::config::{Accounts, PASSWD};
use crate::kernel::{peer, sys};

/// How long the server waits for input.
const TURN_MS: i32 = 100;
/// How long the server waits for input while answers will be due soon.
const SOON_MS: i32 = 5;
/// Bytes read at once.
const CHUNK: usize = 1 << 16;

/// Keep-alive: seconds of silence before the first probe, seconds between probes, and unanswered probes before the connection
/// ends. Together this is a minute.
const SILENCE_S: i32 = 30;
const INTERVAL_S: i32 = 10;
const TIMES_ASKED: i32 = 3;

/// Where and how to listen.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address. It is a loopback address, unless configured otherwise.
    pub listen: SocketAddr,
    /// The connections that are accepted.
    pub limits: Limits,
    /// The accounts of this machine whose programs may connect.
    pub accounts: Accounts,
    /// How long routes are kept.
    pub times: Times,
}

/// A server for one feed.
#[derive(Debug)]
pub struct Server<P: Protocol> {
    listener: TcpListener,
    accounts: Accounts,
    sessions: Sessions<P>,
    streams: Vec<Stream>,
    next_tick_ns: u64,
    chunk: Box<[u8]>,
    /// Answers will be due soon.
    is_soon: bool,
}

/// A connection.
#[derive(Debug)]
struct Stream {
    number: u64,
    stream: TcpStream,
    /// Bytes that the peer has not taken yet.
    unsent: Vec<u8>,
}

/// The next step for a connection.
enum Outcome {
    Open,
    Closed(Option<String>),
}

impl<P: Protocol> Server<P> {
    /// Listens.
    ///
    /// # Errors
    /// When the server cannot listen at the address.
    pub fn open(options: Options, protocol: P) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen)?;
        Self::with(listener, options, protocol)
    }

    /// Like [`open`](Self::open), with a listener that is there: that of a router that is taken over.
    ///
    /// # Errors
    /// When the system refuses to change the listener.
    pub fn with(listener: TcpListener, options: Options, protocol: P) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let sessions = Sessions::new(options.limits, options.times, protocol);
        let accounts = options.accounts;
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Ok(Self { listener, accounts, sessions, streams: Vec::new(), next_tick_ns: 0, chunk, is_soon: false })
    }

    /// Returns the address at which the server listens.
    ///
    /// # Errors
    /// When the system does not return it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the listener, for a router that takes over.
    ///
    /// # Errors
    /// When the process has no more descriptors.
    pub fn listener(&self) -> io::Result<TcpListener> {
        self.listener.try_clone()
    }

    /// Keeps the routes that the RIB has already, those of another router, as if their session had just ended.
    pub fn inherit(&mut self, rib: &Mutex<Rib>) {
        self.sessions.inherit(rib, sys::now_ns());
    }

    /// Waits for input, and handles it.
    pub fn turn(&mut self, rib: &Mutex<Rib>) {
        let mut fds = vec![sys::readable(&self.listener)];
        fds.extend(self.streams.iter().map(|stream| match stream.unsent.is_empty() {
            true => sys::readable(&stream.stream),
            false => sys::readable_or_writable(&stream.stream),
        }));
        // A signal may end the wait early, which does no harm.
        let _ = sys::poll(&mut fds, if self.is_soon { SOON_MS } else { TURN_MS });
        self.is_soon = false;
        let now_ns = sys::now_ns();
        while let Ok((stream, peer)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok()
                && keep_alive(&stream).is_ok()
                && let Some(number) =
                    self.sessions.accept(rib, peer, stranger(&self.accounts, &stream, peer), now_ns)
            {
                self.streams.push(Stream { number, stream, unsent: Vec::new() });
            }
        }
        let mut at = 0;
        while at < self.streams.len() {
            match self.read_and_write(at, rib, now_ns) {
                Outcome::Closed(why) => self.close(at, why, rib, now_ns),
                Outcome::Open => at += 1,
            }
        }
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + u64::from(TURN_MS.unsigned_abs()) * 1_000_000;
            if let Some((number, why)) = self.sessions.tick(rib, now_ns)
                && let Some(at) = self.streams.iter().position(|stream| stream.number == number)
            {
                self.close(at, Some(why), rib, now_ns);
            }
        }
    }

    fn read_and_write(&mut self, at: usize, rib: &Mutex<Rib>, now_ns: u64) -> Outcome {
        match self.read(at, rib, now_ns) {
            Outcome::Open => self.write(at, rib),
            closed @ Outcome::Closed(_) => closed,
        }
    }

    /// Writes as much as the peer takes, at most a chunk, without waiting.
    fn write(&mut self, at: usize, rib: &Mutex<Rib>) -> Outcome {
        let Stream { number, stream, unsent } = &mut self.streams[at];
        if unsent.is_empty() {
            self.is_soon |= self.sessions.outgoing(rib, *number, unsent, CHUNK);
        }
        if unsent.is_empty() {
            return Outcome::Open;
        }
        match stream.write(unsent) {
            Ok(written) => {
                unsent.drain(..written);
                Outcome::Open
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Outcome::Open
            }
            Err(error) => Outcome::Closed(Some(error.to_string())),
        }
    }

    /// Reads a chunk, so that no connection holds up another.
    fn read(&mut self, at: usize, rib: &Mutex<Rib>, now_ns: u64) -> Outcome {
        let Stream { number, stream, .. } = &mut self.streams[at];
        let read = match stream.read(&mut self.chunk) {
            Ok(0) => return Outcome::Closed(None),
            Ok(read) => read,
            // Nothing to read. Call `bytes` all the same, because it also closes a connection that was replaced.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(error) => return Outcome::Closed(Some(error.to_string())),
        };
        match self.sessions.bytes(rib, *number, &self.chunk[..read], now_ns) {
            Ok(()) => Outcome::Open,
            Err(why) => Outcome::Closed(Some(why.to_string())),
        }
    }

    fn close(&mut self, at: usize, why: Option<String>, rib: &Mutex<Rib>, now_ns: u64) {
        let Stream { number, .. } = self.streams.swap_remove(at);
        self.sessions.ended(rib, number, why, now_ns);
    }
}

/// Returns why a connection from this machine is one of a stranger, if it is. Others are judged by their addresses.
fn stranger(accounts: &Accounts, stream: &TcpStream, peer: SocketAddr) -> Option<Stranger> {
    if *accounts == Accounts::Any {
        return None;
    }
    let Ok(own) = stream.local_addr() else { return Some(Stranger::Unknown) };
    if !peer::is_local(peer, own) {
        return None;
    }
    let Ok(Some(number)) = peer::account(peer, own) else { return Some(Stranger::Unknown) };
    // Read each time, because an account may come with a package while the router runs.
    let passwd = || std::fs::read_to_string(PASSWD).unwrap_or_default();
    (!accounts.permit(number, passwd)).then_some(Stranger::Account(number))
}

/// Turns on keep-alive, so that a connection ends if its peer has vanished without closing it.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let fd = stream.as_fd();
    sys::set_number(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    for (name, number) in
        [(libc::TCP_KEEPIDLE, SILENCE_S), (libc::TCP_KEEPINTVL, INTERVAL_S), (libc::TCP_KEEPCNT, TIMES_ASKED)]
    {
        sys::set_number(fd, libc::IPPROTO_TCP, name, number)?;
    }
    Ok(())
}
