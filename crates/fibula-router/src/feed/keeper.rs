//! Keeps the routes of a session when it ends and until another one has replaced them. Has no clock: the caller passes the time.

use super::Rib;
use super::state::{Count, Phase};

/// How long routes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Time after the end of a session until all of its routes are removed.
    pub keep_ns: u64,
    /// Time after the beginning of a session until the routes are removed that it has not sent again. They are removed once the
    /// session is quiet, and after twice this time in any case.
    pub sweep_ns: u64,
    /// How long a session must be silent to count as quiet. 0: its silence says nothing, because it reports when it is complete.
    pub quiet_ns: u64,
}

/// Keeps the routes of a feed from one session to the next.
#[derive(Debug)]
pub struct Keeper {
    feed: usize,
    times: Times,
    /// Begin of the session. `None` if there is no session, or if old routes have already been swept.
    began_ns: Option<u64>,
    heard_ns: u64,
    /// Time since which the session has reported that it is complete.
    complete_ns: Option<u64>,
    /// End of the last session, if its routes are being kept.
    gone_ns: Option<u64>,
}

impl Keeper {
    /// Creates the keeper of a feed's routes.
    #[must_use]
    pub const fn new(feed: usize, times: Times) -> Self {
        Self { feed, times, began_ns: None, heard_ns: 0, complete_ns: None, gone_ns: None }
    }

    /// Notes that a session begins.
    pub fn began(&mut self, rib: &mut Rib, now_ns: u64) {
        // Do not remove anything yet: routes that the session sends again stay in use without a gap.
        rib.begin(self.feed);
        rib.reset_answers(self.feed);
        let state = &mut rib.feed(self.feed).state;
        state.forget_overrun();
        state.enter(Phase::Synchronising, now_ns);
        (self.began_ns, self.heard_ns, self.gone_ns) = (Some(now_ns), now_ns, None);
        self.complete_ns = None;
    }

    /// Notes that a part of the routes is sent again, without a new session.
    pub fn again(&mut self, rib: &mut Rib, now_ns: u64) {
        rib.feed(self.feed).state.enter(Phase::Synchronising, now_ns);
        (self.began_ns, self.complete_ns) = (Some(now_ns), None);
    }

    /// Notes whether the session has sent everything. If it has, the remaining routes are removed after the time of a silence.
    pub fn complete(&mut self, is_complete: bool, now_ns: u64) {
        self.complete_ns = is_complete.then(|| self.complete_ns.unwrap_or(now_ns));
    }

    /// Notes that the session has sent something.
    pub const fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    /// Notes that the session has ended.
    pub fn ended(&mut self, rib: &mut Rib, now_ns: u64) {
        rib.reset_answers(self.feed);
        let state = &mut rib.feed(self.feed).state;
        (state.peers, state.peer_routes) = (None, None);
        state.enter(Phase::Kept, now_ns);
        (self.began_ns, self.gone_ns) = (None, Some(now_ns));
    }

    /// Runs the timers. Returns the number of routes removed.
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
            let is_quiet = self.times.quiet_ns > 0 && quiet >= self.times.quiet_ns;
            rib.feed(self.feed).state.has_table |= is_quiet;
            let is_quiet = passed >= self.times.sweep_ns && is_quiet;
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

    /// Returns whether to close the session so that it sends everything again. This is so if routes were refused and there is
    /// room now.
    #[must_use]
    pub fn wants_again(&self, rib: &Rib) -> bool {
        rib.feeds()[self.feed].state.is_overrun && self.began_ns.is_none() && rib.has_room_again(self.feed)
    }
}
