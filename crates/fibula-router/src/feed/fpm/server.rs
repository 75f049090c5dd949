//! Listens for zebra, and reads what it sends as fast as it comes.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Frames, Keeper, Times};
use crate::feed::Rib;
use crate::feed::enter::Entrance;
use crate::feed::netlink::Message;
use crate::feed::state::Count;
use crate::kernel::sys;

/// How long the server waits for something to come.
const TURN_MS: i32 = 100;
/// Bytes read at once.
const CHUNK: usize = 1 << 16;

/// Where and how to listen.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address, a loopback one unless the configuration says otherwise.
    pub listen: SocketAddr,
    /// Most bytes of a frame.
    pub frame_bytes: usize,
    /// Most connections at once.
    pub sessions: usize,
    /// How long routes are kept.
    pub times: Times,
}

/// A server for one feed. Of several connections, the last that sends a frame is the session, and others are closed.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    options: Options,
    entrance: Entrance,
    keeper: Keeper,
    connections: Vec<Connection>,
    next_tick_ns: u64,
    chunk: Box<[u8]>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    frames: Frames,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It has sent no frame yet.
    New,
    /// Its routes are the feed's.
    Session,
    /// Another one has taken its place.
    Replaced,
}

/// What is left to do for a connection.
enum Outcome {
    Open,
    Closed(Option<String>),
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn open(options: Options, entrance: Entrance) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let keeper = Keeper::new(entrance.feed, options.times);
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Ok(Self { listener, options, entrance, keeper, connections: Vec::new(), next_tick_ns: 0, chunk })
    }

    /// Returns the address that it listens at.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for something to come, and deals with it.
    pub fn turn(&mut self, rib: &Mutex<Rib>) {
        let mut fds = vec![sys::readable(&self.listener)];
        fds.extend(self.connections.iter().map(|connection| sys::readable(&connection.stream)));
        // A signal may end the wait early, which does no harm.
        let _ = sys::poll(&mut fds, TURN_MS);
        let now_ns = sys::now_ns();
        self.accept(rib, now_ns);
        let mut at = 0;
        while at < self.connections.len() {
            match self.read(at, rib, now_ns) {
                Outcome::Closed(why) => self.close(at, why, rib, now_ns),
                Outcome::Open => at += 1,
            }
        }
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + u64::from(TURN_MS.unsigned_abs()) * 1_000_000;
            self.tick(rib, now_ns);
        }
    }

    fn accept(&mut self, rib: &Mutex<Rib>, now_ns: u64) {
        while let Ok((stream, peer)) = self.listener.accept() {
            let mut rib = lock(rib);
            let state = &mut rib.feed(self.entrance.feed).state;
            if self.connections.len() >= self.options.sessions {
                state.count(Count::Closed, 1);
                state.error(
                    format!("connection of {peer} refused: there are {} already", self.connections.len()),
                    now_ns,
                );
            } else if stream.set_nonblocking(true).is_ok() {
                state.count(Count::Sessions, 1);
                let frames = Frames::new(self.options.frame_bytes);
                self.connections.push(Connection { stream, peer, frames, role: Role::New });
            }
        }
    }

    /// Reads a chunk, so that no connection holds up another, and enters its messages at once: changes that came together are
    /// seen together.
    fn read(&mut self, at: usize, rib: &Mutex<Rib>, now_ns: u64) -> Outcome {
        let connection = &mut self.connections[at];
        if connection.role == Role::Replaced {
            let why = format!("a newer session has taken the place of {}", connection.peer);
            return Outcome::Closed(Some(why));
        }
        let read = match connection.stream.read(&mut self.chunk) {
            Ok(0) => return Outcome::Closed(None),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Outcome::Open;
            }
            Err(error) => return Outcome::Closed(Some(format!("{}: {error}", connection.peer))),
        };
        let (mut messages, peer): (Vec<Message>, _) = (Vec::new(), connection.peer);
        let done = connection.frames.feed(&self.chunk[..read], |message| messages.push(message));
        let mut rib = lock(rib);
        if !messages.is_empty() {
            if connection.role == Role::New {
                for other in self.connections.iter_mut().filter(|other| other.role == Role::Session) {
                    other.role = Role::Replaced;
                }
                self.connections[at].role = Role::Session;
                self.keeper.began(&mut rib, now_ns);
            }
            self.keeper.heard(now_ns);
        }
        for message in messages {
            // What is refused at the limit is counted there, and told again when there is room.
            let _ = self.entrance.message(&mut rib, message);
        }
        match done {
            Ok(()) => Outcome::Open,
            Err(broken) => {
                let state = &mut rib.feed(self.entrance.feed).state;
                state.count(Count::Malformed, 1);
                state.count(Count::Closed, 1);
                Outcome::Closed(Some(format!("{peer}: {broken}")))
            }
        }
    }

    fn close(&mut self, at: usize, why: Option<String>, rib: &Mutex<Rib>, now_ns: u64) {
        let connection = self.connections.swap_remove(at);
        let mut rib = lock(rib);
        if let Some(why) = why {
            rib.feed(self.entrance.feed).state.error(why, now_ns);
        }
        if connection.role == Role::Session {
            self.keeper.ended(&mut rib, now_ns);
        }
    }

    fn tick(&mut self, rib: &Mutex<Rib>, now_ns: u64) {
        let mut guard = lock(rib);
        self.keeper.tick(&mut guard, now_ns);
        let again = self.keeper.wants_again(&guard);
        if again {
            guard.feed(self.entrance.feed).state.count(Count::Resynchronised, 1);
        }
        drop(guard);
        if again
            && let Some(at) = self.connections.iter().position(|connection| connection.role == Role::Session)
        {
            self.close(at, Some("there is room again: the session is to begin anew".into()), rib, now_ns);
        }
    }
}

fn lock(rib: &Mutex<Rib>) -> MutexGuard<'_, Rib> {
    // Every change leaves the RIB whole, so a panic elsewhere is no reason to stop.
    rib.lock().unwrap_or_else(PoisonError::into_inner)
}
