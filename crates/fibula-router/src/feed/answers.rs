//! Answers to a daemon that wants to know what has become of its routes: once a route is in a table, or a table has refused it, its own
//! message goes back. Does no I/O.
//!
//! Everything here is bounded. A daemon that does not read leaves its answers waiting; past the bound, a route gets none, which is
//! counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use super::Place;
use super::fpm::Reply;

/// Most bytes of answers that wait to be sent.
const MOST_READY: usize = 4 << 20;
/// What a route that waits takes beside its message, about.
const OVERHEAD: usize = 128;

/// What has become of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the table.
    Installed,
    /// The table, or a limit, has refused it, or it cannot be forwarded by.
    Refused,
}

/// A route that has not been answered yet.
#[derive(Debug)]
struct Waiting {
    reply: Reply,
    told: Told,
}

/// What the daemon knows of a route that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The tables have not been looked at yet.
    New,
    /// It is not in its table, as another feed's route is used or it leads nowhere: nothing was said.
    Unused,
    /// It was said that it was refused; it may still be installed.
    Refused,
}

/// What there is to tell a daemon.
#[derive(Debug)]
pub struct Answers {
    waiting: BTreeMap<Place, Waiting>,
    /// How many bytes these take, and at most.
    held: usize,
    limit: usize,
    /// How many are [`Told::New`].
    new: usize,
    /// Those that are to be looked at although their tables do not change.
    again: BTreeSet<Place>,
    /// How far all of them have been looked at, while that goes on.
    walk: Option<Option<Place>>,
    ready: VecDeque<Box<[u8]>>,
    ready_bytes: usize,
}

impl Answers {
    /// Bytes of routes that wait, unless chosen otherwise: about a million routes.
    pub const LIMIT: usize = 192 << 20;

    /// Makes answers for a feed that has told nothing yet; routes that wait may take `limit` bytes.
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

    /// Returns whether there is something to send, or will be within moments.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.new > 0 || !self.ready.is_empty()
    }

    /// Forgets everything: the daemon has gone, and tells its routes anew when it is back. Returns how many answers were ready.
    pub fn reset(&mut self) -> usize {
        let unsent = self.ready.len();
        *self = Self::new(self.limit);
        unsent
    }

    /// The daemon has told a route. With `again`, its prefix does not change in the table. Returns `false` if there is no room.
    pub(super) fn expect(&mut self, place: Place, reply: Reply, again: bool) -> bool {
        self.forget(place);
        let held = self.held + reply.len() + OVERHEAD;
        if held > self.limit {
            return false;
        }
        self.held = held;
        self.new += 1;
        self.waiting.insert(place, Waiting { reply, told: Told::New });
        if again {
            self.again.insert(place);
        }
        true
    }

    /// A route has gone, or its message is another one: the one before gets no answer.
    pub(super) fn forget(&mut self, place: Place) {
        if let Some(waiting) = self.waiting.remove(&place) {
            self.held -= waiting.reply.len() + OVERHEAD;
            self.new -= usize::from(waiting.told == Told::New);
        }
    }

    /// A route is refused before it comes to a table. Returns `false` if there is no room for the answer.
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

    /// All routes that wait are to be looked at.
    pub(super) const fn walk(&mut self) {
        self.walk = Some(None);
    }

    /// Returns whether a route waits.
    pub(super) fn is_waiting(&self, place: Place) -> bool {
        self.waiting.contains_key(&place)
    }

    /// Takes routes, at most `most`, that are to be looked at although their tables have not just changed: none while answers wait
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

    /// Says what has become of a route that waits; `None`: it is not used. Returns whether that makes an answer.
    pub(super) fn settle(&mut self, place: Place, verdict: Option<Verdict>) -> bool {
        let Some(waiting) = self.waiting.get(&place) else { return false };
        match verdict {
            None if waiting.told == Told::New => self.mark(place, Told::Unused),
            None => {}
            Some(Verdict::Refused) if waiting.told == Told::Refused => {}
            Some(verdict) => {
                if !self.push(waiting.reply.bytes(verdict)) {
                    self.again.insert(place);
                    return false;
                }
                match verdict {
                    Verdict::Installed => self.forget(place),
                    Verdict::Refused => self.mark(place, Told::Refused),
                }
                return true;
            }
        }
        false
    }

    fn mark(&mut self, place: Place, told: Told) {
        if let Some(waiting) = self.waiting.get_mut(&place) {
            self.new -= usize::from(waiting.told == Told::New);
            waiting.told = told;
        }
    }

    /// Moves answers to the end of `bytes` while these are fewer than `most`.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>, most: usize) {
        while bytes.len() < most
            && let Some(answer) = self.ready.pop_front()
        {
            self.ready_bytes -= answer.len();
            bytes.extend_from_slice(&answer);
        }
    }
}
