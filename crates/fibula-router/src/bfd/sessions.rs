//! Which sessions have failed. Has no clock: the caller passes the time.
//!
//! A failure counts at once, and the end of a failure too, unless the session flaps: then its neighbour stays out of use for a second
//! after it is up again, for two after the next failure, and so on.

use std::collections::BTreeMap;

use super::message::{SessionKey, SessionNotice, SessionState};

const SECOND_NS: u64 = 1_000_000_000;
/// The longest time that a neighbour stays out of use after its session is up again.
const MOST_HELD_NS: u64 = 60 * SECOND_NS;
/// Earlier failures are forgotten if the last one is further back than this, the time for which the session was held not counted.
const CALM_NS: u64 = 60 * SECOND_NS;
/// How long a failure stays in force that bfdd does not confirm after its connection has ended: it may be started again.
const KEPT_NS: u64 = 60 * SECOND_NS;
/// Most sessions. Each has a peer that an operator has configured, so more are a fault.
const MOST: usize = 16_384;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its state, as bfdd told it last.
    pub state: SessionState,
    /// Whether its neighbour is dead.
    pub is_dead: bool,
    /// When the neighbour is used again; `None` if that has not been decided, or it is in use.
    pub due_ns: Option<u64>,
    /// All failures.
    pub failures: u64,
    /// Failures that came soon after each other.
    recent: u32,
    /// The time of the last one.
    failed_ns: u64,
    /// Since when bfdd is gone, without another that has told of it.
    unnamed_ns: Option<u64>,
}

/// A change of a session, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChange {
    /// It has failed, with this diagnostic.
    Failed(u8),
    /// It is up again, and its neighbour is used again in so many nanoseconds.
    Held(u64),
    /// Its neighbour is used again.
    Restored,
}

/// What happened to all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// Failures.
    pub failures: u64,
    /// Ends of failures that were put off, because the session flapped.
    pub damped: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// Sessions that were refused because there was no room.
    pub refused: u64,
}

/// All sessions.
#[derive(Debug, Default)]
pub struct BfdSessions {
    sessions: BTreeMap<SessionKey, Session>,
    counts: SessionCounts,
    /// The earliest time at which a timer may end.
    next_ns: u64,
}

impl BfdSessions {
    /// Takes a message of bfdd. Returns the change, if there is one.
    pub fn take(&mut self, notice: SessionNotice, now_ns: u64) -> Option<(SessionKey, SessionChange)> {
        let (key, state) = match notice {
            SessionNotice::State(key, state) => (key, state),
            SessionNotice::Gone(key) => {
                let gone = self.sessions.remove(&key)?;
                return gone.is_dead.then_some((key, SessionChange::Restored));
            }
            SessionNotice::Malformed => {
                self.counts.malformed += 1;
                return None;
            }
            SessionNotice::Accepted | SessionNotice::Other => return None,
        };
        if !self.sessions.contains_key(&key) && self.sessions.len() >= MOST {
            self.counts.refused += 1;
            return None;
        }
        let session = self.sessions.entry(key.clone()).or_insert(Session {
            state,
            is_dead: false,
            due_ns: None,
            failures: 0,
            recent: 0,
            failed_ns: 0,
            unnamed_ns: None,
        });
        (session.state, session.unnamed_ns, self.next_ns) = (state, None, 0);
        let change = session.enter(state, now_ns)?;
        match change {
            SessionChange::Failed(_) => self.counts.failures += 1,
            SessionChange::Held(_) => self.counts.damped += 1,
            SessionChange::Restored => {}
        }
        Some((key, change))
    }

    /// Notes that the connection with bfdd has ended. What it said last holds for a while. The next one names all of its sessions.
    pub fn ended(&mut self, now_ns: u64) {
        for session in self.sessions.values_mut() {
            session.unnamed_ns.get_or_insert(now_ns);
        }
        self.next_ns = 0;
    }

    /// Runs the timers. Returns the sessions whose neighbours are used again.
    pub fn tick(&mut self, now_ns: u64) -> Vec<SessionKey> {
        let (mut restored, mut next_ns) = (Vec::new(), u64::MAX);
        if now_ns < self.next_ns {
            return restored;
        }
        self.sessions.retain(|key, session| {
            let is_due = session.due_ns.take_if(|due_ns| now_ns >= *due_ns).is_some();
            let is_forgotten = session.unnamed_ns.is_some_and(|since_ns| now_ns >= since_ns + KEPT_NS);
            if (is_due || is_forgotten) && std::mem::take(&mut session.is_dead) {
                restored.push(key.clone());
            }
            let unnamed_ns = session.unnamed_ns.map(|since_ns| since_ns + KEPT_NS);
            next_ns = [session.due_ns, unnamed_ns].into_iter().flatten().fold(next_ns, u64::min);
            !is_forgotten
        });
        self.next_ns = next_ns;
        restored
    }

    /// Returns the sessions whose neighbours are dead.
    pub fn dead(&self) -> impl Iterator<Item = &SessionKey> {
        self.sessions.iter().filter(|session| session.1.is_dead).map(|session| session.0)
    }

    /// Returns all sessions.
    pub fn all(&self) -> impl Iterator<Item = (&SessionKey, &Session)> {
        self.sessions.iter()
    }

    /// Returns what happened so far.
    #[must_use]
    pub fn counts(&self) -> SessionCounts {
        self.counts
    }
}

impl Session {
    fn enter(&mut self, state: SessionState, now_ns: u64) -> Option<SessionChange> {
        match state {
            SessionState::Up if self.is_dead => {
                if self.due_ns.is_some() {
                    return None;
                }
                let held_ns = self.held_ns();
                if held_ns > 0 {
                    self.due_ns = Some(now_ns + held_ns);
                    return Some(SessionChange::Held(held_ns));
                }
                self.is_dead = false;
                Some(SessionChange::Restored)
            }
            // 0: it has not been up. 5 (path down): bfdd has let go of it, as the link is down, which is seen elsewhere, or an operator
            // has deleted it. 7: an operator has ended it. RFC 5882, section 3.2: none of them says that the neighbour is dead.
            SessionState::AdminDown | SessionState::Down(5 | 7) => {
                self.due_ns = None;
                std::mem::take(&mut self.is_dead).then_some(SessionChange::Restored)
            }
            SessionState::Up | SessionState::Init | SessionState::Down(0) => None,
            SessionState::Down(diagnostic) => {
                let was_due = self.due_ns.take().is_some();
                // bfdd says it again on a new connection.
                if self.is_dead && !was_due {
                    return None;
                }
                let is_calm = now_ns.saturating_sub(self.failed_ns) > CALM_NS + self.held_ns();
                self.recent = if self.failures == 0 || is_calm { 1 } else { self.recent.saturating_add(1) };
                (self.is_dead, self.failed_ns) = (true, now_ns);
                self.failures += 1;
                Some(SessionChange::Failed(diagnostic))
            }
        }
    }

    /// Returns how long the neighbour stays out of use after the session is up again: nothing after a first failure.
    fn held_ns(&self) -> u64 {
        match self.recent {
            0 | 1 => 0,
            recent => SECOND_NS.saturating_mul(1 << (recent - 2).min(32)).min(MOST_HELD_NS),
        }
    }
}

/// Returns the meaning of a diagnostic (RFC 5880, section 4.1).
#[must_use]
pub const fn diagnostic(number: u8) -> &'static str {
    match number {
        0 => "no diagnostic",
        1 => "its time has run out",
        2 => "its echoes do not come back",
        3 => "the neighbour says that it is down",
        4 => "the forwarding plane was reset",
        5 => "the path is down",
        6 => "a path after it is down",
        7 => "an operator has ended it",
        8 => "a path back to it is down",
        _ => "a diagnostic that is not known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn key(last: u8) -> SessionKey {
        SessionKey { peer: [10, 0, 0, last].into(), device: Some("eth0".to_owned()) }
    }

    fn state(last: u8, state: SessionState) -> SessionNotice {
        SessionNotice::State(key(last), state)
    }

    fn change(sessions: &mut BfdSessions, of: SessionState, now_ns: u64) -> Option<SessionChange> {
        let change = sessions.take(state(1, of), now_ns);
        assert!(change.as_ref().is_none_or(|change| change.0 == key(1)));
        change.map(|change| change.1)
    }

    fn dead(sessions: &BfdSessions) -> Vec<SessionKey> {
        sessions.dead().cloned().collect()
    }

    #[test]
    fn a_failure_counts_at_once_and_so_does_its_end() {
        let mut sessions = BfdSessions::default();
        assert_eq!(change(&mut sessions, SessionState::Up, 0), None);
        assert_eq!(change(&mut sessions, SessionState::Down(1), 5), Some(SessionChange::Failed(1)));
        assert_eq!(dead(&sessions), [key(1)]);
        // The neighbour is heard, but nothing says that it can be reached.
        assert_eq!(change(&mut sessions, SessionState::Init, 6), None);
        assert_eq!(change(&mut sessions, SessionState::Down(1), 6), None);
        assert_eq!(dead(&sessions), [key(1)]);
        assert_eq!(change(&mut sessions, SessionState::Up, 7), Some(SessionChange::Restored));
        assert_eq!((dead(&sessions), sessions.counts().failures), (vec![], 1));
    }

    #[test]
    fn sessions_that_were_not_up_or_are_ended_by_an_operator_kill_nobody() {
        let mut sessions = BfdSessions::default();
        for of in
            [SessionState::Down(0), SessionState::Down(5), SessionState::Down(7), SessionState::AdminDown]
        {
            assert_eq!(change(&mut sessions, of, 0), None);
        }
        for end in [SessionState::AdminDown, SessionState::Down(5), SessionState::Down(7)] {
            change(&mut sessions, SessionState::Up, 0);
            change(&mut sessions, SessionState::Down(3), 1);
            assert_eq!(change(&mut sessions, end, 2), Some(SessionChange::Restored), "{end:?}");
            assert_eq!(dead(&sessions), []);
        }
        change(&mut sessions, SessionState::Down(3), 3);
        let gone = sessions.take(SessionNotice::Gone(key(1)), 4);
        assert_eq!((gone, dead(&sessions)), (Some((key(1), SessionChange::Restored)), vec![]));
        assert_eq!(sessions.all().count(), 0);
    }

    /// A router that starts learns of sessions that have failed before.
    #[test]
    fn a_session_that_is_down_at_first_sight_has_failed_if_bfdd_says_why() {
        let mut sessions = BfdSessions::default();
        assert_eq!(change(&mut sessions, SessionState::Down(1), 0), Some(SessionChange::Failed(1)));
        assert_eq!(dead(&sessions), [key(1)]);
    }

    #[test]
    fn a_session_that_flaps_is_held_longer_and_longer() {
        let (mut sessions, mut now_ns) = (BfdSessions::default(), 0);
        let mut held = Vec::new();
        for _ in 0..12 {
            assert_eq!(change(&mut sessions, SessionState::Down(1), now_ns), Some(SessionChange::Failed(1)));
            now_ns += 100 * MS;
            match change(&mut sessions, SessionState::Up, now_ns) {
                Some(SessionChange::Held(held_ns)) => {
                    assert_eq!(change(&mut sessions, SessionState::Up, now_ns), None);
                    assert_eq!(sessions.tick(now_ns + held_ns - 1), []);
                    assert_eq!(dead(&sessions), [key(1)]);
                    now_ns += held_ns;
                    assert_eq!(sessions.tick(now_ns), [key(1)]);
                    held.push(held_ns / SECOND_NS);
                }
                other => assert_eq!(other, Some(SessionChange::Restored)),
            }
            assert_eq!(dead(&sessions), []);
            now_ns += 100 * MS;
        }
        assert_eq!(held, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]);
        assert_eq!((sessions.counts().failures, sessions.counts().damped), (12, 11));
        // Calm for long enough: the next failure is a first one.
        now_ns += CALM_NS + MOST_HELD_NS;
        change(&mut sessions, SessionState::Down(1), now_ns);
        assert_eq!(change(&mut sessions, SessionState::Up, now_ns), Some(SessionChange::Restored));
    }

    #[test]
    fn a_failure_while_it_is_held_begins_again() {
        let mut sessions = BfdSessions::default();
        for _ in 0..2 {
            change(&mut sessions, SessionState::Down(1), 0);
            change(&mut sessions, SessionState::Up, 0);
        }
        assert_eq!(change(&mut sessions, SessionState::Down(1), MS), Some(SessionChange::Failed(1)));
        assert_eq!(sessions.tick(SECOND_NS), [], "it is not up any more");
        assert_eq!(change(&mut sessions, SessionState::Up, 2 * MS), Some(SessionChange::Held(2 * SECOND_NS)));
    }

    #[test]
    fn the_last_word_of_a_bfdd_that_is_gone_holds_for_a_while() {
        let mut sessions = BfdSessions::default();
        for last in [1, 2, 3] {
            sessions.take(state(last, SessionState::Down(1)), 0);
        }
        sessions.ended(10);
        sessions.take(state(3, SessionState::Down(1)), 15);
        sessions.ended(20);
        // The first is up again under the next bfdd, the second is new to it and the third unknown.
        assert!(sessions.take(state(1, SessionState::Up), 30).is_some());
        assert!(sessions.take(state(2, SessionState::Down(0)), 30).is_none());
        assert_eq!(sessions.tick(20 + KEPT_NS - 1), []);
        assert_eq!(dead(&sessions), [key(2), key(3)]);
        assert_eq!(sessions.tick(20 + KEPT_NS), [key(3)]);
        assert_eq!(dead(&sessions), [key(2)]);
        assert_eq!(sessions.tick(u64::MAX), []);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut sessions = BfdSessions::default();
        for n in 0..MOST as u32 + 5 {
            let key = SessionKey { peer: n.to_be_bytes().into(), device: None };
            sessions.take(SessionNotice::State(key, SessionState::Up), 0);
        }
        sessions.take(SessionNotice::Malformed, 0);
        assert_eq!(sessions.all().count(), MOST);
        assert_eq!((sessions.counts().refused, sessions.counts().malformed), (5, 1));
    }
}
