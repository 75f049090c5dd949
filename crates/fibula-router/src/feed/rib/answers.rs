//! What daemons are told of what has become of their routes.

use super::{Choice, Rib};
use crate::feed::Place;
use crate::feed::answers::{Answers, Verdict};
use crate::feed::fpm::Reply;
use crate::feed::routes::Effect;
use crate::feed::state::Count;

impl Rib {
    /// A feed has told a route of a prefix, or taken it back: without `effect`, it has none now that could be used. With `reply`, it is
    /// to be told what becomes of the route.
    pub(in crate::feed) fn expect_answer(
        &mut self,
        feed: usize,
        place: Place,
        reply: Option<Reply>,
        effect: Option<Effect>,
    ) {
        let routes = &mut self.feeds[feed];
        let Some(answers) = &mut routes.answers else { return };
        answers.forget(place);
        let Some(reply) = reply else { return };
        let (has_room, count) = match effect {
            // The prefix of one that is as it was is not looked at otherwise.
            Some(effect) => (answers.expect(place, reply, effect != Effect::Changed), None),
            None => (answers.refuse(&reply), Some(Count::NotInstalled)),
        };
        if !has_room {
            routes.state.count(Count::Unacknowledged, 1);
        } else if let Some(count) = count {
            routes.state.count(count, 1);
        }
    }

    /// The daemon of a feed has gone, or comes anew: what it has not been told is not told any more.
    pub(in crate::feed) fn reset_answers(&mut self, feed: usize) {
        let routes = &mut self.feeds[feed];
        if let Some(answers) = &mut routes.answers {
            routes.state.count(Count::Unacknowledged, answers.reset() as u64);
        }
    }

    /// Moves answers for the daemon of a feed to the end of `bytes` while these are fewer than `most`.
    pub(in crate::feed) fn take_answers(&mut self, feed: usize, bytes: &mut Vec<u8>, most: usize) {
        if let Some(answers) = &mut self.feeds[feed].answers {
            answers.take(bytes, most);
        }
    }

    /// Returns whether any feed waits to be told of its routes.
    #[must_use]
    pub fn has_unanswered(&self) -> bool {
        self.feeds.iter().any(|feed| feed.answers.as_ref().is_some_and(|answers| answers.waiting() > 0))
    }

    /// Returns the routes that feeds wait to be told of, and that may be in the tables now: those of `news`, which have just been
    /// entered, and others, at most `most`. With `everything`, all are looked at from here on.
    pub fn take_unanswered(
        &mut self,
        news: impl Iterator<Item = Place> + Clone,
        everything: bool,
        most: usize,
    ) -> Vec<(usize, Place)> {
        let mut found = Vec::new();
        for (feed, routes) in self.feeds.iter_mut().enumerate() {
            let Some(answers) = routes.answers.as_mut().filter(|answers| answers.waiting() > 0) else {
                continue;
            };
            found.extend(news.clone().filter(|&place| answers.is_waiting(place)).map(|place| (feed, place)));
            if everything {
                answers.walk();
            }
            found.extend(answers.take_again(most).into_iter().map(|place| (feed, place)));
        }
        found
    }

    /// Returns whether there are more routes to look at, although nothing is new.
    #[must_use]
    pub fn has_unanswered_again(&self) -> bool {
        self.feeds.iter().any(|feed| feed.answers.as_ref().is_some_and(Answers::has_again))
    }

    /// Says what has become of a route of a feed; `None`: another one is used, or it leads nowhere.
    pub fn settle(&mut self, feed: usize, place: Place, verdict: Option<Verdict>) {
        let routes = &mut self.feeds[feed];
        let Some(answers) = &mut routes.answers else { return };
        if answers.settle(place, verdict) {
            let count = match verdict {
                Some(Verdict::Refused) => Count::NotInstalled,
                _ => Count::Acknowledged,
            };
            routes.state.count(count, 1);
        }
    }

    /// Returns the path that the table is to have for a prefix, if it is that of a feed's route.
    #[must_use]
    pub fn used(&self, feed: usize, place: Place) -> Option<u32> {
        match self.choice(place)? {
            (Some(of), Choice::Path(path)) if of == feed => Some(path),
            _ => None,
        }
    }
}
