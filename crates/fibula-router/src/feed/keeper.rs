//! What becomes of the routes of a session when it ends and another begins. Has no clock: the time is told.

use super::Rib;
use super::state::{Count, Phase};

/// How long routes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// After the end of a session: then all of its routes go.
    pub keep_ns: u64,
    /// After the beginning of a session: then the routes go that it has not told again, when it is quiet, and in twice this time
    /// in any case.
    pub sweep_ns: u64,
    /// How long a session says nothing when it is quiet.
    pub quiet_ns: u64,
}

/// Keeps the routes of a feed over sessions.
#[derive(Debug)]
pub struct Keeper {
    feed: usize,
    times: Times,
    /// When the session began, if there is one that has not been swept after.
    began_ns: Option<u64>,
    heard_ns: u64,
    /// Since when the session has said that it has told everything.
    complete_ns: Option<u64>,
    /// When the last session ended, if its routes are kept.
    gone_ns: Option<u64>,
}

impl Keeper {
    /// Makes the keeper of a feed's routes.
    #[must_use]
    pub const fn new(feed: usize, times: Times) -> Self {
        Self { feed, times, began_ns: None, heard_ns: 0, complete_ns: None, gone_ns: None }
    }

    /// A session begins.
    pub fn began(&mut self, rib: &mut Rib, now_ns: u64) {
        rib.begin(self.feed);
        rib.reset_answers(self.feed);
        let state = &mut rib.feed(self.feed).state;
        state.forget_overrun();
        state.enter(Phase::Synchronising, now_ns);
        (self.began_ns, self.heard_ns, self.gone_ns) = (Some(now_ns), now_ns, None);
        self.complete_ns = None;
    }

    /// A part of the routes is told again, without a new session.
    pub fn again(&mut self, rib: &mut Rib, now_ns: u64) {
        rib.feed(self.feed).state.enter(Phase::Synchronising, now_ns);
        (self.began_ns, self.complete_ns) = (Some(now_ns), None);
    }

    /// The session says whether it has told everything: then the rest goes as soon as that has been so for the time of a silence.
    pub fn complete(&mut self, is_complete: bool, now_ns: u64) {
        self.complete_ns = is_complete.then(|| self.complete_ns.unwrap_or(now_ns));
    }

    /// The session has said something.
    pub const fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    /// The session has ended.
    pub fn ended(&mut self, rib: &mut Rib, now_ns: u64) {
        rib.reset_answers(self.feed);
        let state = &mut rib.feed(self.feed).state;
        (state.peers, state.peer_routes) = (None, None);
        state.enter(Phase::Kept, now_ns);
        (self.began_ns, self.gone_ns) = (None, Some(now_ns));
    }

    /// Lets time pass. Returns the number of routes that went.
    pub fn tick(&mut self, rib: &mut Rib, now_ns: u64) -> usize {
        rib.feed(self.feed).state.tick(now_ns);
        if let Some(gone_ns) = self.gone_ns
            && now_ns.saturating_sub(gone_ns) >= self.times.keep_ns
        {
            self.gone_ns = None;
            return rib.expire(self.feed, now_ns);
        }
        if let Some(began_ns) = self.began_ns {
            let (passed, quiet) = (now_ns.saturating_sub(began_ns), now_ns.saturating_sub(self.heard_ns));
            let is_quiet = passed >= self.times.sweep_ns && quiet >= self.times.quiet_ns;
            let is_complete =
                self.complete_ns.is_some_and(|at| now_ns.saturating_sub(at) >= self.times.quiet_ns);
            if is_quiet || is_complete || passed >= self.times.sweep_ns.saturating_mul(2) {
                self.began_ns = None;
                let count = rib.sweep(self.feed, None, Count::Swept);
                rib.sweep_objects(self.feed);
                rib.feed(self.feed).state.enter(Phase::Established, now_ns);
                return count;
            }
        }
        0
    }

    /// Returns whether the session is to be closed so that it tells everything again: routes were refused, and there is room now.
    #[must_use]
    pub fn wants_again(&self, rib: &Rib) -> bool {
        rib.feeds()[self.feed].state.is_overrun && self.began_ns.is_none() && rib.has_room_again(self.feed)
    }
}
