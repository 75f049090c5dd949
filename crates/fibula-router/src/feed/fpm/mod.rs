//! A server for FRR's zebra, which connects with its module `dplane_fpm_nl` or the older `fpm` (netlink form). A frame is a
//! header of four bytes, followed by netlink messages (frrouting.org, "Forwarding Plane Manager"; `fpm/fpm.h`).
//!
//! Zebra sends all routes after it connects, without a mark at the end. Therefore, the routes of the earlier session are kept at
//! first, and those that have not been sent again after some time are removed.
//!
//! If configured, zebra gets each route back once it is in the tables or has been refused: see [`Reply`].

use super::Rib;
use super::enter::Entrance;
use super::keeper::Keeper;
use super::netlink::{self, Message};
use super::reply::{FRAME_HEADER, NETLINK, Reply, VERSION};
use super::sessions::{End, Protocol};

/// Why the bytes of a session cannot be decoded any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The version is not supported.
    Version(u8),
    /// The length of a frame is impossible, or above the limit.
    FrameLength(usize),
    /// The frame is not a sequence of netlink messages.
    MessageLength,
}

impl core::fmt::Display for Broken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Version(version) => write!(f, "FPM version {version}: only {VERSION} is known"),
            Self::FrameLength(len) => write!(f, "FPM frame of {len} bytes"),
            Self::MessageLength => f.write_str("FPM frame whose netlink messages do not fit"),
        }
    }
}

/// Splits the bytes of a session into frames.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    limit: usize,
}

impl Frames {
    /// Creates a decoder for frames of at most `limit` bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// Appends bytes, and calls `each` with the head and the body of each message of all complete frames. The remaining bytes
    /// wait for more.
    ///
    /// # Errors
    /// When the session cannot continue. The messages before the fault are valid.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Message, &[u8])) -> Result<(), Broken> {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        let done = loop {
            let Some(header) = self.bytes.get(at..at + FRAME_HEADER) else { break Ok(()) };
            let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let (version, kind) = (header[0], header[1]);
            if version != VERSION {
                break Err(Broken::Version(version));
            }
            if len < FRAME_HEADER || len > self.limit {
                break Err(Broken::FrameLength(len));
            }
            let Some(body) = self.bytes.get(at + FRAME_HEADER..at + len) else { break Ok(()) };
            if kind != NETLINK {
                each(Message::Other, &[]);
            } else if let Err(broken) = messages(body, &mut each) {
                break Err(broken);
            }
            at += len;
        };
        self.bytes.drain(..at);
        done
    }
}

/// Calls `each` with all messages of a frame, or with none if their lengths do not fit.
fn messages(body: &[u8], each: &mut impl FnMut(Message, &[u8])) -> Result<(), Broken> {
    let mut rest = body;
    while !rest.is_empty() {
        // Zeros that pad the frame to a multiple of four.
        if rest.len() < 4 && rest.iter().all(|&byte| byte == 0) {
            break;
        }
        rest = netlink::split(rest).ok_or(Broken::MessageLength)?.2;
    }
    let mut rest = body;
    while let Some((head, body, after)) = netlink::split(rest) {
        each(netlink::decode(head.kind, body), body);
        rest = after;
    }
    Ok(())
}

/// The protocol FPM, for a server.
#[derive(Debug)]
pub struct Fpm {
    /// How to interpret messages.
    pub entrance: Entrance,
    /// Most bytes of a frame.
    pub frame_bytes: usize,
    /// Whether zebra gets answers about its routes.
    pub acknowledge: bool,
}

/// A connection of zebra.
#[derive(Debug)]
pub struct Connection {
    frames: Frames,
    /// Messages, and for routes also the reply to zebra.
    messages: Vec<(Message, Option<Reply>)>,
    broken: Option<Broken>,
}

impl Protocol for Fpm {
    type Connection = Connection;
    const MOVES: bool = true;

    fn feed(&self) -> usize {
        self.entrance.feed
    }

    fn connect(&self) -> Connection {
        Connection { frames: Frames::new(self.frame_bytes), messages: Vec::new(), broken: None }
    }

    fn take(&self, connection: &mut Connection, bytes: &[u8]) -> bool {
        let Connection { frames, messages, broken } = connection;
        let each = |message, body: &[u8]| {
            let is_answered = self.acknowledge && matches!(message, Message::Route(_));
            let reply = if is_answered { Reply::new(body) } else { None };
            messages.push((message, reply));
        };
        *broken = frames.feed(bytes, each).err();
        !messages.is_empty()
    }

    fn enter(&self, connection: &mut Connection, rib: &mut Rib, _: &mut Keeper, _: u64) -> Result<(), End> {
        for (message, reply) in connection.messages.drain(..) {
            let (place, can_forward) = match &message {
                Message::Route(route) => (self.entrance.place(route), route.target.is_some()),
                Message::RouteGone(route) => (self.entrance.place(route), false),
                _ => (None, false),
            };
            // Ignore refusals at a limit. They are counted, and zebra must send the routes again when there is room.
            let entered = self.entrance.message(rib, message);
            if let Some(place) = place.filter(|_| self.acknowledge) {
                let effect = entered.ok().flatten().filter(|_| can_forward);
                rib.expect_answer(self.entrance.feed, place, reply, effect);
            }
        }
        connection.broken.take().map_or(Ok(()), |broken| Err(End::Broken(broken.to_string())))
    }

    fn swept(&self, _: &mut Connection, _: &mut Rib) {}
}

#[cfg(test)]
mod reply_tests;
#[cfg(test)]
mod tests;
