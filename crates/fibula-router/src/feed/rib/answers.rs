//! Answers to daemons about their routes.

use super::{Choice, Rib};
use crate::feed::Place;
use crate::feed::answers::Answers;
use crate::feed::reply::Reply;
use crate::feed::reply::Verdict;
use crate::feed::routes::Effect;
use crate::feed::state::Count;

impl Rib {
    /// Notes that a feed has sent a route of a prefix, or withdrawn it. `effect` is `None` if the feed now has no route that
    /// could be used. With `reply`, the feed gets an answer about the route.
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
            // The prefix of an unchanged route is not dirty, so nothing else would check it.
            Some(effect) => (answers.expect(place, reply, effect != Effect::Changed), None),
            None => (answers.refuse(&reply), Some(Count::NotInstalled)),
        };
        if !has_room {
            routes.state.count(Count::Unacknowledged, 1);
        } else if let Some(count) = count {
            routes.state.count(count, 1);
        }
    }

    /// Discards all answers of a feed, because its daemon has gone or begins again.
    pub(in crate::feed) fn reset_answers(&mut self, feed: usize) {
        let routes = &mut self.feeds[feed];
        if let Some(answers) = &mut routes.answers {
            routes.state.count(Count::Unacknowledged, answers.reset() as u64);
        }
    }

    /// Appends answers for the daemon of a feed to `bytes` until it has `most` bytes or more.
    pub(in crate::feed) fn take_answers(&mut self, feed: usize, bytes: &mut Vec<u8>, most: usize) {
        if let Some(answers) = &mut self.feeds[feed].answers {
            answers.take(bytes, most);
        }
    }

    /// Returns whether any feed waits for answers about its routes.
    #[must_use]
    pub fn has_unanswered(&self) -> bool {
        self.feeds.iter().any(|feed| feed.answers.as_ref().is_some_and(|answers| answers.waiting() > 0))
    }

    /// Returns the waiting routes that may be in the tables now. These are the routes of `news`, which have just been entered,
    /// and at most `most` others. With `everything`, all waiting routes are checked from here on.
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

    /// Returns whether there are more routes to check, although nothing is new.
    #[must_use]
    pub fn has_unanswered_again(&self) -> bool {
        self.feeds.iter().any(|feed| feed.answers.as_ref().is_some_and(Answers::has_again))
    }

    /// Sets the verdict of a feed's route; `None` means that another route is used, or that it leads nowhere.
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

    /// Returns the path that the table should have for a prefix, if it belongs to a feed's route.
    #[must_use]
    pub fn used(&self, feed: usize, place: Place) -> Option<u32> {
        match self.choice(place)? {
            (Some(of), Choice::Path(path)) if of == feed => Some(path),
            _ => None,
        }
    }
}
