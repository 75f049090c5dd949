//! The sessions of a server: chooses the connection whose routes are the feed's, and enters its messages. Has no clock and does
//! no I/O.

use core::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use fibula::net::IpPrefix;

use super::answers::Answers;
use super::keeper::{Keeper, Times};
use super::state::{Count, Phase, State, Stranger};
use super::{Rib, lock};

/// How long connections are refused after a session has passed a limit. Doubles each further time, up to 64 times this.
const PAUSE_NS: u64 = 1_000_000_000;
const MOST_DOUBLED: u32 = 6;

/// How long a connection may take to send its first whole message.
const SILENCE_NS: u64 = 10_000_000_000;

/// A protocol of feeds.
pub trait Protocol {
    /// The state of a connection.
    type Connection: fmt::Debug;
    /// Whether a connection from another address replaces the session. A connection from the same address always does.
    const MOVES: bool;

    /// Returns the number of the feed in the RIB.
    fn feed(&self) -> usize;
    /// Creates the state of a new connection.
    fn connect(&self) -> Self::Connection;
    /// Reads bytes, while the RIB is not locked. Returns whether they completed at least one valid message.
    fn take(&self, connection: &mut Self::Connection, bytes: &[u8]) -> bool;
    /// Enters the messages that were read into the RIB, all at once, so that changes that came together are seen together.
    ///
    /// # Errors
    /// Why to close the connection. Messages before the fault have been entered.
    fn enter(
        &self,
        connection: &mut Self::Connection,
        rib: &mut Rib,
        keeper: &mut Keeper,
        now_ns: u64,
    ) -> Result<(), End>;
    /// Notes that routes which the session has not sent again were removed.
    fn swept(&self, connection: &mut Self::Connection, rib: &mut Rib);
}

/// Why a connection must be closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Its bytes cannot be decoded any further.
    Broken(String),
    /// It has passed a limit.
    Overrun(String),
}

/// Why a connection of a feed is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionError {
    /// A newer session has replaced the session with this peer.
    Replaced(SocketAddr),
    /// Another peer has the session.
    Taken {
        /// The other end of the connection that is closed.
        peer: SocketAddr,
        /// The other end of the session.
        session: SocketAddr,
    },
    /// It has sent no whole message in ten seconds, or while others waited for a place.
    Silent(SocketAddr),
    /// Its bytes end it.
    Ended {
        /// The other end of the connection.
        peer: SocketAddr,
        /// Why.
        end: End,
    },
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced(peer) => write!(f, "a newer session has taken the place of {peer}"),
            Self::Taken { peer, session } => {
                write!(f, "connection of {peer} closed: the session is that of {session}")
            }
            Self::Silent(peer) => {
                write!(f, "connection of {peer} closed: it sent no whole message in time")
            }
            Self::Ended { peer, end: End::Broken(why) | End::Overrun(why) } => write!(f, "{peer}: {why}"),
        }
    }
}

impl core::error::Error for SessionError {}

/// The connections that are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Prefixes of addresses that may connect. If the list is empty, all may.
    pub allow: Vec<IpPrefix>,
    /// Most connections at once.
    pub sessions: usize,
}

/// Connections to one feed. The session is the last connection that has sent a complete message. Others are closed.
#[derive(Debug)]
pub struct Sessions<P: Protocol> {
    limits: Limits,
    protocol: P,
    keeper: Keeper,
    connections: Vec<Connection<P::Connection>>,
    next: u64,
    /// Number of successive sessions that have passed a limit.
    overruns: u32,
    refuse_until_ns: u64,
}

#[derive(Debug)]
struct Connection<C> {
    number: u64,
    peer: SocketAddr,
    since_ns: u64,
    inner: C,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It has not sent a complete message yet.
    New,
    /// Its routes are the feed's.
    Session,
    /// Another connection has replaced it.
    Replaced,
    /// It has said nothing for too long, or while others waited for its place.
    Silent,
}

impl<P: Protocol> Sessions<P> {
    /// Creates a feed without connections.
    #[must_use]
    pub fn new(limits: Limits, times: Times, protocol: P) -> Self {
        let keeper = Keeper::new(protocol.feed(), times);
        Self { limits, protocol, keeper, connections: Vec::new(), next: 0, overruns: 0, refuse_until_ns: 0 }
    }

    /// Keeps the routes that the RIB has already, as if their session had just ended.
    pub fn inherit(&mut self, rib: &Mutex<Rib>, now_ns: u64) {
        self.keeper.ended(&mut lock(rib), now_ns);
    }

    /// Accepts a connection, and returns its number. Returns `None` if the connection must be closed, as that of a stranger must.
    pub fn accept(
        &mut self,
        rib: &Mutex<Rib>,
        peer: SocketAddr,
        stranger: Option<Stranger>,
        now_ns: u64,
    ) -> Option<u64> {
        let mut rib = lock(rib);
        let state = self.state(&mut rib);
        if let Some(stranger) = stranger {
            state.meet(stranger);
        }
        if let Some(why) =
            stranger.map(|stranger| stranger.to_string()).or_else(|| self.refuses(peer.ip(), now_ns))
        {
            state.count(Count::Closed, 1);
            state.error(format!("connection of {peer} refused: {why}"), now_ns);
            return None;
        }
        state.count(Count::Sessions, 1);
        self.next += 1;
        let inner = self.protocol.connect();
        // A place is given up for one that waits, so that silent connections keep nobody out. The oldest goes, because a peer that
        // has just connected is about to speak.
        if self.open() >= self.limits.sessions
            && let Some(oldest) = self.connections.iter_mut().find(|connection| connection.role == Role::New)
        {
            oldest.role = Role::Silent;
        }
        self.connections.push(Connection {
            number: self.next,
            peer,
            since_ns: now_ns,
            inner,
            role: Role::New,
        });
        Some(self.next)
    }

    /// Returns why a connection is refused, if it is.
    fn refuses(&self, address: IpAddr, now_ns: u64) -> Option<String> {
        let Limits { allow, sessions } = &self.limits;
        if !allow.is_empty() && !allow.iter().any(|prefix| prefix.contains(address.to_canonical())) {
            Some("its address is not in the list 'allow'".into())
        } else if now_ns < self.refuse_until_ns {
            Some("the session before was past a limit".into())
        } else if self.open() >= *sessions
            && !self.connections.iter().any(|connection| connection.role == Role::New)
        {
            Some(format!("there are {} already", self.open()))
        } else {
            None
        }
    }

    /// Returns the number of connections that are not about to be closed.
    fn open(&self) -> usize {
        self.connections.iter().filter(|connection| connection.role != Role::Silent).count()
    }

    /// Enters the bytes of a connection, all at once, so that changes that came together are seen together.
    ///
    /// # Errors
    /// Why the connection must be closed.
    pub fn bytes(
        &mut self,
        rib: &Mutex<Rib>,
        number: u64,
        bytes: &[u8],
        now_ns: u64,
    ) -> Result<(), SessionError> {
        let Some(at) = self.position(number) else { return Ok(()) };
        let connection = &mut self.connections[at];
        let peer = connection.peer;
        if connection.role == Role::Replaced {
            return Err(SessionError::Replaced(peer));
        }
        let is_late = now_ns.saturating_sub(connection.since_ns) >= SILENCE_NS;
        if connection.role == Role::Silent || bytes.is_empty() && connection.role == Role::New && is_late {
            lock(rib).feed(self.protocol.feed()).state.count(Count::Closed, 1);
            return Err(SessionError::Silent(peer));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        // Decode before locking, so that a slow decoder does not hold up other feeds and the main thread.
        let any = self.protocol.take(&mut connection.inner, bytes);
        let is_new = connection.role == Role::New;
        let mut rib = lock(rib);
        if any {
            if is_new {
                self.begin(at, &mut rib, now_ns)?;
            }
            self.keeper.heard(now_ns);
        }
        let inner = &mut self.connections[at].inner;
        let entered = self.protocol.enter(inner, &mut rib, &mut self.keeper, now_ns);
        entered.map_err(|end| {
            // Only the session may pause its feed: whatever another connection sends is that connection's fault alone.
            let end = match end {
                End::Overrun(why) if self.connections[at].role != Role::Session => End::Broken(why),
                end => end,
            };
            self.end(&end, &mut rib, now_ns);
            SessionError::Ended { peer, end }
        })
    }

    /// Makes a connection the session. Returns an error if it must be closed instead.
    fn begin(&mut self, at: usize, rib: &mut Rib, now_ns: u64) -> Result<(), SessionError> {
        let peer = self.connections[at].peer;
        for other in self.connections.iter_mut().filter(|other| other.role == Role::Session) {
            // A connection from the same address is taken for the same peer after a restart, so it may take over at once.
            if !P::MOVES && other.peer.ip() != peer.ip() {
                rib.feed(self.protocol.feed()).state.count(Count::Closed, 1);
                return Err(SessionError::Taken { peer, session: other.peer });
            }
            other.role = Role::Replaced;
        }
        self.connections[at].role = Role::Session;
        let full_vrfs = std::mem::take(&mut self.state(rib).full_vrfs);
        self.keeper.began(rib, now_ns);
        if self.overruns > 0 {
            // `began` has cleared these. However, the feed may lack routes until a session is complete.
            let state = self.state(rib);
            (state.is_overrun, state.full_vrfs) = (true, full_vrfs);
        }
        Ok(())
    }

    /// Counts the end of a connection by its reason.
    fn end(&mut self, end: &End, rib: &mut Rib, now_ns: u64) {
        let state = self.state(rib);
        state.count(Count::Closed, 1);
        match end {
            End::Broken(_) => state.count(Count::Malformed, 1),
            End::Overrun(_) => {
                state.is_overrun = true;
                state.count(Count::Refused, 1);
                state.count(Count::Resynchronised, 1);
                self.refuse_until_ns = now_ns + (PAUSE_NS << self.overruns.min(MOST_DOUBLED));
                self.overruns += 1;
            }
        }
    }

    /// Appends answers for the peer of a connection to `bytes` until it has `most` bytes or more. Returns whether more will be
    /// due within moments.
    pub fn outgoing(&self, rib: &Mutex<Rib>, number: u64, bytes: &mut Vec<u8>, most: usize) -> bool {
        let is_session = |at: usize| self.connections[at].role == Role::Session;
        if !self.position(number).is_some_and(is_session) {
            return false;
        }
        let (mut rib, feed) = (lock(rib), self.protocol.feed());
        rib.take_answers(feed, bytes, most);
        rib.feeds()[feed].answers.as_ref().is_some_and(Answers::is_due)
    }

    /// Removes a connection that has ended by itself, or for the reason `why`.
    pub fn ended(&mut self, rib: &Mutex<Rib>, number: u64, why: Option<String>, now_ns: u64) {
        let Some(at) = self.position(number) else { return };
        let connection = self.connections.swap_remove(at);
        let mut rib = lock(rib);
        if let Some(why) = why {
            self.state(&mut rib).error(why, now_ns);
        }
        if connection.role == Role::Session {
            self.keeper.ended(&mut rib, now_ns);
        }
    }

    /// Runs the timers. Call it a few times a second. Returns a connection that must be closed so that it sends everything again,
    /// and why.
    pub fn tick(&mut self, rib: &Mutex<Rib>, now_ns: u64) -> Option<(u64, String)> {
        let mut rib = lock(rib);
        let before = self.state(&mut rib).phase;
        self.keeper.tick(&mut rib, now_ns);
        let at = self.connections.iter().position(|connection| connection.role == Role::Session)?;
        if before != Phase::Established && self.state(&mut rib).phase == Phase::Established {
            self.protocol.swept(&mut self.connections[at].inner, &mut rib);
            if self.overruns > 0 {
                self.overruns = 0;
                self.state(&mut rib).forget_overrun();
            }
        }
        if !self.keeper.wants_again(&rib) {
            return None;
        }
        self.state(&mut rib).count(Count::Resynchronised, 1);
        Some((self.connections[at].number, "there is room again: restarting the session".into()))
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.connections.iter().position(|connection| connection.number == number)
    }

    fn state<'r>(&self, rib: &'r mut Rib) -> &'r mut State {
        &mut rib.feed(self.protocol.feed()).state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Anything;

    impl Protocol for Anything {
        type Connection = ();
        const MOVES: bool = true;

        fn feed(&self) -> usize {
            0
        }
        fn connect(&self) {}
        fn take(&self, (): &mut (), _: &[u8]) -> bool {
            true
        }
        fn enter(&self, (): &mut (), _: &mut Rib, _: &mut Keeper, _: u64) -> Result<(), End> {
            Ok(())
        }
        fn swept(&self, (): &mut (), _: &mut Rib) {}
    }

    #[test]
    fn a_connection_that_was_replaced_tells_nothing_more() {
        let rib = Mutex::new(Rib::new(vec![super::super::routes::Routes::new("feed", 1, 10, 1)]));
        let times = Times { keep_ns: 1, sweep_ns: 1, quiet_ns: 1 };
        let mut sessions = Sessions::new(Limits { allow: Vec::new(), sessions: 4 }, times, Anything);
        let peer: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let [first, second] = [1, 2].map(|now_ns| sessions.accept(&rib, peer, None, now_ns).unwrap());
        for number in [first, second] {
            assert_eq!(sessions.bytes(&rib, number, b"x", 3), Ok(()));
        }
        assert_eq!(sessions.bytes(&rib, first, b"x", 4), Err(SessionError::Replaced(peer)));
        assert_eq!(sessions.bytes(&rib, second, b"x", 4), Ok(()));
    }

    /// Any number of connections that say nothing take each other's places, and never the session's.
    #[test]
    fn silent_connections_leave_the_session_alone() {
        let rib = Mutex::new(Rib::new(vec![super::super::routes::Routes::new("feed", 1, 10, 1)]));
        let times = Times { keep_ns: 1, sweep_ns: 1, quiet_ns: 1 };
        let mut sessions = Sessions::new(Limits { allow: Vec::new(), sessions: 4 }, times, Anything);
        let peers: [SocketAddr; 2] = ["127.0.0.1:1", "192.0.2.1:1"].map(|text| text.parse().unwrap());
        let session = sessions.accept(&rib, peers[0], None, 1).unwrap();
        assert_eq!(sessions.bytes(&rib, session, b"x", 2), Ok(()));
        for at in 0..100 {
            let silent = sessions.accept(&rib, peers[at % 2], None, 3).expect("a place");
            assert_eq!(sessions.bytes(&rib, silent, b"", 3), Ok(()));
            assert_eq!(sessions.bytes(&rib, session, b"x", 3), Ok(()), "after {at} others");
        }
        let late = SILENCE_NS + 4;
        assert_eq!(sessions.bytes(&rib, session, b"x", late), Ok(()));
        // The last of them has said nothing for too long.
        assert_eq!(sessions.bytes(&rib, session + 100, b"", late), Err(SessionError::Silent(peers[1])));
    }

    #[test]
    fn errors_name_the_connection() {
        let [peer, session] = ["10.0.0.1:1", "[2001:db8::1]:2"].map(|text| text.parse().unwrap());
        let ended = |end| SessionError::Ended { peer, end };
        let cases = [
            (SessionError::Replaced(peer), "a newer session has taken the place of 10.0.0.1:1"),
            (
                SessionError::Taken { peer, session },
                "connection of 10.0.0.1:1 closed: the session is that of [2001:db8::1]:2",
            ),
            (ended(End::Broken("no frame".into())), "10.0.0.1:1: no frame"),
            (ended(End::Overrun("too many".into())), "10.0.0.1:1: too many"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
