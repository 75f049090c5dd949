//! A monitoring station for BMP (RFC 7854). Routers send it the routes that their peers announce, or the routes that they use.
//!
//! A session begins with all routes, and a station cannot request any. Therefore, damaged messages and passed limits end the
//! session, so that the router sends everything again. Meanwhile, the routes of the earlier session stay. The ends of tables
//! (End-of-RIB) show when the remaining ones can be removed.

mod view;

use fibula_feed::bmp::{self, Frame, Message, Peers};

pub use view::{View, Views};

use super::keeper::Keeper;
use super::sessions::{End, Protocol};
use super::state::Count;
use super::{Rib, best};

/// The protocol BMP, for a server.
#[derive(Debug)]
pub struct Bmp {
    /// Number of the feed in the RIB.
    pub feed: usize,
    /// The routes to take from a router.
    pub views: Views,
    /// Most bytes of a message.
    pub frame_bytes: usize,
    /// Most peers.
    pub peers: usize,
}

/// A connection of a router.
#[derive(Debug)]
pub struct Connection {
    bytes: Vec<u8>,
    peers: Peers,
    view: View,
    end: Option<End>,
    /// The routes of an earlier session were removed early, to make room.
    has_swept: bool,
}

impl Bmp {
    /// Returns whether messages were read. The first invalid message ends the connection.
    fn read(&self, connection: &mut Connection, at: &mut usize) -> bool {
        let Connection { bytes, peers, view, end, .. } = connection;
        let mut any = false;
        while end.is_none() {
            let header = match Frame::next(&bytes[*at..], self.frame_bytes) {
                Frame::Message(header) => header,
                Frame::More => break,
                Frame::TooLong(header) => {
                    let Self { frame_bytes, .. } = self;
                    let why = format!("message of {} bytes: raise 'frame_bytes' ({frame_bytes})", header.len);
                    *end = Some(End::Overrun(why));
                    break;
                }
                Frame::Damaged(fault) => {
                    *end = Some(End::Broken(fault.to_string()));
                    break;
                }
            };
            let from = *at;
            *at += header.len as usize;
            let message = Message::new(header, &bytes[from..*at]);
            view.count(Count::Messages);
            if let Err(fault) = bmp::decode(&message, peers, view) {
                let kind = bmp::KINDS.iter().find(|kind| kind.number == header.kind);
                *end = Some(End::Broken(format!("{}, {fault}", kind.map_or("message", |kind| kind.name))));
                break;
            }
            // Limits are checked after each message, so that a session stops close to the limit.
            any = true;
            if peers.len() > self.peers {
                *end = Some(End::Overrun(format!("more peers than {}: raise 'peers'", self.peers)));
            } else if let Some(why) = view.overrun() {
                *end = Some(End::Overrun(why));
            }
        }
        any
    }
}

impl Protocol for Bmp {
    type Connection = Connection;
    const MOVES: bool = false;

    fn feed(&self) -> usize {
        self.feed
    }

    fn connect(&self) -> Connection {
        let view = View::new(self.views.clone());
        Connection { bytes: Vec::new(), peers: Peers::default(), view, end: None, has_swept: false }
    }

    fn take(&self, connection: &mut Connection, bytes: &[u8]) -> bool {
        connection.bytes.extend_from_slice(bytes);
        let mut at = 0;
        let any = self.read(connection, &mut at);
        connection.bytes.drain(..at);
        any
    }

    fn enter(
        &self,
        connection: &mut Connection,
        rib: &mut Rib,
        keeper: &mut Keeper,
        now_ns: u64,
    ) -> Result<(), End> {
        let Connection { peers, view, end, has_swept, .. } = connection;
        let state = &mut rib.feed(self.feed).state;
        view.tell(state, now_ns);
        (state.peers, state.peer_routes) = (Some(peers.len()), Some(view.len()));
        if view.take_restarted() {
            keeper.again(rib, now_ns);
        }
        keeper.complete(view.is_complete(), now_ns);
        let changes = view.take_changes();
        let entered = best::enter(rib, self.feed, changes, has_swept);
        match (end.take(), entered) {
            (Some(end), _) => Err(end),
            (None, Err(full)) => Err(End::Overrun(full.to_string())),
            (None, Ok(())) => Ok(()),
        }
    }

    fn swept(&self, connection: &mut Connection, rib: &mut Rib) {
        for place in connection.view.take_leftover() {
            rib.remove(self.feed, place, None);
        }
    }
}

#[cfg(test)]
mod tests;
