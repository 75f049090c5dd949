//! Answers to a routing daemon about its routes. Once a route is in a table, or a table has refused it, the daemon gets its own
//! message back. Does no I/O.
//!
//! All memory here is bounded. If a daemon does not read, its answers wait. Past the bound, a route gets no answer, and this is
//! counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use super::Place;
use super::reply::{Reply, Verdict};

/// Most bytes of answers that wait to be sent.
const MOST_READY: usize = 4 << 20;
/// Approximate memory of a waiting route, in addition to its message.
const OVERHEAD: usize = 128;

/// A route that has not been answered yet.
#[derive(Debug)]
struct WaitingAnswer {
    reply: Reply,
    told: AnswerState,
}

/// The state of a waiting route, as far as the daemon has been informed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerState {
    /// The table has not been checked yet.
    New,
    /// The route is not in its table, because another feed's route is used or because it leads nowhere. No answer was sent.
    Unused,
    /// The daemon was informed that the route was refused. It may still be installed later.
    Refused,
}

/// Routes of a daemon that wait for a verdict, and answers that wait to be sent.
#[derive(Debug)]
pub struct Answers {
    waiting: BTreeMap<Place, WaitingAnswer>,
    /// Bytes that the waiting routes take. At most `limit`.
    held: usize,
    limit: usize,
    /// Number of routes in state [`AnswerState::New`].
    new: usize,
    /// Routes to check although their tables do not change.
    again: BTreeSet<Place>,
    /// The last route checked, while all of them are being checked.
    walk: Option<Option<Place>>,
    ready: VecDeque<Box<[u8]>>,
    ready_bytes: usize,
}

impl Answers {
    /// Default limit of bytes for waiting routes, enough for about a million of them.
    pub const LIMIT: usize = 192 << 20;

    /// Creates the answers of a feed without routes. Waiting routes may take `limit` bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            held: 0,
            limit,
            new: 0,
            again: BTreeSet::new(),
            walk: None,
            ready: VecDeque::new(),
            ready_bytes: 0,
        }
    }

    /// Returns the number of routes that wait for a verdict.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of answers that wait to be sent.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether answers wait to be sent, or will within moments.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.new > 0 || !self.ready.is_empty()
    }

    /// Forgets everything, because the daemon has gone and sends all routes again when it is back. Returns the number of answers
    /// that were ready.
    pub fn reset(&mut self) -> usize {
        let unsent = self.ready.len();
        *self = Self::new(self.limit);
        unsent
    }

    /// Adds a route that the daemon has sent. Set `again` if the table does not change with it. Returns `false` if there is no
    /// room.
    pub(super) fn expect(&mut self, place: Place, reply: Reply, again: bool) -> bool {
        // At most one answer for each prefix: the daemon has replaced its earlier message.
        self.forget(place);
        let held = self.held + reply.len() + OVERHEAD;
        if held > self.limit {
            return false;
        }
        self.held = held;
        self.new += 1;
        self.waiting.insert(place, WaitingAnswer { reply, told: AnswerState::New });
        if again {
            self.again.insert(place);
        }
        true
    }

    /// Removes a waiting route without an answer, because it has gone or another message has replaced it.
    pub(super) fn forget(&mut self, place: Place) {
        if let Some(waiting) = self.waiting.remove(&place) {
            self.held -= waiting.reply.len() + OVERHEAD;
            self.new -= usize::from(waiting.told == AnswerState::New);
        }
    }

    /// Adds the answer to a route that is refused before it comes to a table. Returns `false` if there is no room for the answer.
    pub(super) fn refuse(&mut self, reply: &Reply) -> bool {
        self.push(reply.bytes(Verdict::Refused))
    }

    fn has_room(&self) -> bool {
        self.ready_bytes < MOST_READY
    }

    fn push(&mut self, bytes: Box<[u8]>) -> bool {
        if !self.has_room() {
            return false;
        }
        self.ready_bytes += bytes.len();
        self.ready.push_back(bytes);
        true
    }

    /// Schedules a check of all waiting routes.
    pub(super) const fn walk(&mut self) {
        self.walk = Some(None);
    }

    /// Returns whether a route waits.
    pub(super) fn is_waiting(&self, place: Place) -> bool {
        self.waiting.contains_key(&place)
    }

    /// Takes at most `most` routes to check although their tables have not just changed. Takes none while too many answers wait
    /// to be sent.
    pub(super) fn take_again(&mut self, most: usize) -> Vec<Place> {
        if !self.has_room() {
            return Vec::new();
        }
        let mut places: Vec<Place> = std::iter::from_fn(|| self.again.pop_first()).take(most).collect();
        if let Some(after) = self.walk {
            let from = after.map_or(Unbounded, Excluded);
            let before = places.len();
            places.extend(self.waiting.range((from, Unbounded)).map(|entry| *entry.0).take(most - before));
            self.walk = (places.len() > before).then(|| places.last().copied());
        }
        places.retain(|place| self.waiting.contains_key(place));
        places
    }

    /// Returns whether there are more that [`take_again`](Self::take_again) would return.
    pub(super) fn has_again(&self) -> bool {
        self.has_room() && (self.walk.is_some() || !self.again.is_empty())
    }

    /// Sets the verdict of a waiting route; `None` means that it is not used. Returns whether this makes an answer.
    pub(super) fn settle(&mut self, place: Place, verdict: Option<Verdict>) -> bool {
        let Some(waiting) = self.waiting.get(&place) else { return false };
        match verdict {
            None if waiting.told == AnswerState::New => self.mark(place, AnswerState::Unused),
            None => {}
            Some(Verdict::Refused) if waiting.told == AnswerState::Refused => {}
            Some(verdict) => {
                if !self.push(waiting.reply.bytes(verdict)) {
                    // No room for the answer now. The route is checked again once the daemon has read some.
                    self.again.insert(place);
                    return false;
                }
                match verdict {
                    Verdict::Installed => self.forget(place),
                    Verdict::Refused => self.mark(place, AnswerState::Refused),
                }
                return true;
            }
        }
        false
    }

    fn mark(&mut self, place: Place, told: AnswerState) {
        if let Some(waiting) = self.waiting.get_mut(&place) {
            self.new -= usize::from(waiting.told == AnswerState::New);
            waiting.told = told;
        }
    }

    /// Appends answers to `bytes` until it has `most` bytes or more.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>, most: usize) {
        while bytes.len() < most
            && let Some(answer) = self.ready.pop_front()
        {
            self.ready_bytes -= answer.len();
            bytes.extend_from_slice(&answer);
        }
    }
}
