//! The sessions of a server: whose bytes count, and what they say. Has no clock and does no I/O.

use std::sync::Mutex;

use super::{Frames, Keeper, Times};
use crate::feed::enter::Entrance;
use crate::feed::netlink::Message;
use crate::feed::state::Count;
use crate::feed::{Rib, lock};

/// What sessions may be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a frame.
    pub frame_bytes: usize,
    /// Most connections at once.
    pub sessions: usize,
}

/// Connections to one feed. Of several, the last that sends a frame is the session, and others are closed.
#[derive(Debug)]
pub struct Sessions {
    limits: Limits,
    entrance: Entrance,
    keeper: Keeper,
    connections: Vec<Connection>,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    /// What it is called in errors.
    peer: String,
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

impl Sessions {
    /// Makes a feed without connections.
    #[must_use]
    pub const fn new(limits: Limits, times: Times, entrance: Entrance) -> Self {
        let keeper = Keeper::new(entrance.feed, times);
        Self { limits, entrance, keeper, connections: Vec::new(), next: 0 }
    }

    /// Takes a connection, and returns its number; `None` if there are too many: it is to be closed.
    pub fn accept(&mut self, rib: &Mutex<Rib>, peer: String, now_ns: u64) -> Option<u64> {
        let mut rib = lock(rib);
        let state = &mut rib.feed(self.entrance.feed).state;
        if self.connections.len() >= self.limits.sessions {
            state.count(Count::Closed, 1);
            let count = self.connections.len();
            state.error(format!("connection of {peer} refused: there are {count} already"), now_ns);
            return None;
        }
        state.count(Count::Sessions, 1);
        self.next += 1;
        let frames = Frames::new(self.limits.frame_bytes);
        self.connections.push(Connection { number: self.next, peer, frames, role: Role::New });
        Some(self.next)
    }

    /// Enters what a connection has sent at once: changes that came together are seen together.
    ///
    /// # Errors
    /// Why the connection is to be closed.
    pub fn bytes(&mut self, rib: &Mutex<Rib>, number: u64, bytes: &[u8], now_ns: u64) -> Result<(), String> {
        let Some(at) = self.position(number) else { return Ok(()) };
        let connection = &mut self.connections[at];
        if connection.role == Role::Replaced {
            return Err(format!("a newer session has taken the place of {}", connection.peer));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let mut messages: Vec<Message> = Vec::new();
        let done = connection.frames.feed(bytes, |message| messages.push(message));
        let mut rib = lock(rib);
        if !messages.is_empty() {
            if self.connections[at].role == Role::New {
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
        done.map_err(|broken| {
            let state = &mut rib.feed(self.entrance.feed).state;
            state.count(Count::Malformed, 1);
            state.count(Count::Closed, 1);
            format!("{}: {broken}", self.connections[at].peer)
        })
    }

    /// A connection has ended: by itself, or for a reason.
    pub fn ended(&mut self, rib: &Mutex<Rib>, number: u64, why: Option<String>, now_ns: u64) {
        let Some(at) = self.position(number) else { return };
        let connection = self.connections.swap_remove(at);
        let mut rib = lock(rib);
        if let Some(why) = why {
            rib.feed(self.entrance.feed).state.error(why, now_ns);
        }
        if connection.role == Role::Session {
            self.keeper.ended(&mut rib, now_ns);
        }
    }

    /// Lets time pass: to be called a few times a second. Returns a connection that is to be closed so that it tells everything again,
    /// and why.
    pub fn tick(&mut self, rib: &Mutex<Rib>, now_ns: u64) -> Option<(u64, String)> {
        let mut rib = lock(rib);
        self.keeper.tick(&mut rib, now_ns);
        if !self.keeper.wants_again(&rib) {
            return None;
        }
        let session = self.connections.iter().find(|connection| connection.role == Role::Session)?;
        rib.feed(self.entrance.feed).state.count(Count::Resynchronised, 1);
        Some((session.number, "there is room again: the session is to begin anew".into()))
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.connections.iter().position(|connection| connection.number == number)
    }
}
