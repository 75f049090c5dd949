//! The routes of the configuration and of all feeds. For each prefix, the route with the lowest administrative distance that
//! leads somewhere is used.

mod answers;
mod walk;

use std::collections::BTreeSet;

use fibula::map::IpPrefixMap;
use fibula::net::{Family, Key, NextHop, Route};
use fibula::rib::{DualRib, Rib as RibOf, RibError};

use super::Place;
use super::history::{History, What};
use super::path::{Object, Path, Paths, Way};
use super::routes::{Effect, Full, Gone, Routes};
use super::state::{Count, Phase};

/// Most prefixes that may wait to be taken. With more, everything is compared instead.
const MOST_DIRTY: usize = 1 << 21;
/// Most ways of a route, and members of a next-hop group. More are cut, so that neither the memory of a path nor the steps to
/// expand it depend on what a peer sends.
pub const MOST_MEMBERS: usize = 64;

/// The route that is used for a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A route of the configuration or of the machine, with its next hop.
    Own(NextHop),
    /// A route of a feed, with the number of its path.
    Path(u32),
}

/// All routes.
#[derive(Debug, Default)]
pub struct Rib {
    /// Routes of the configuration and of the machine's interfaces, by VRF: nearer than any feed.
    own: Vec<DualRib>,
    feeds: Vec<Routes>,
    /// Numbers of feeds, the nearest first.
    order: Vec<usize>,
    /// Most routes of all feeds together, by VRF.
    vrf_limits: Vec<Option<usize>>,
    paths: Paths,
    dirty: BTreeSet<Place>,
    /// Prefixes that are taken first. Without this set, prefixes that change all the time would keep others waiting.
    taking: BTreeSet<Place>,
    /// More prefixes have changed than are kept, so all must be compared.
    everything: bool,
    objects_changed: bool,
    /// Some route has come with the AS that announced it.
    has_origins: bool,
    history: History,
}

impl Rib {
    /// Creates a RIB of these feeds. Of two feeds with the same distance, the first is nearer.
    #[must_use]
    pub fn new(feeds: Vec<Routes>) -> Self {
        let mut order: Vec<usize> = (0..feeds.len()).collect();
        order.sort_by_key(|&feed| feeds[feed].distance);
        Self { feeds, order, ..Self::default() }
    }

    /// Returns the feeds.
    #[must_use]
    pub fn feeds(&self) -> &[Routes] {
        &self.feeds
    }

    /// Returns the feeds whose first full table is not there yet, and neither is that of the router before (`inherited`): forwarding
    /// waits for them.
    pub fn awaited<'s>(&'s self, inherited: &'s [bool]) -> impl Iterator<Item = &'s Routes> {
        let feeds = self.feeds.iter().zip(inherited);
        feeds.filter(|(feed, inherited)| !feed.state.has_table && !**inherited).map(|(feed, _)| feed)
    }

    /// Sets the time with which changes are recorded.
    pub fn set_time(&mut self, now_ns: u64) {
        self.history.set_time(now_ns);
    }

    /// Returns the last changes of all routes.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Limits the history to `most` changes from here on.
    pub fn keep_history(&mut self, most: usize) {
        self.history = History::new(most);
    }

    /// Returns a feed, to change its state.
    pub fn feed(&mut self, feed: usize) -> &mut Routes {
        &mut self.feeds[feed]
    }

    /// Sets the limit of routes of all feeds together, for each VRF. Existing routes stay.
    pub fn limit_vrfs(&mut self, limits: Vec<Option<usize>>) {
        self.vrf_limits = limits;
    }

    /// Sets the limit on the bytes of all paths and next-hop objects. What is there stays.
    pub fn limit_paths(&mut self, bytes: Option<usize>) {
        self.paths.set_limit(bytes);
    }

    /// Returns the bytes of all paths and next-hop objects.
    #[must_use]
    pub fn path_bytes(&self) -> usize {
        self.paths.bytes()
    }

    /// Returns the limit of routes of all feeds together in a VRF, if there is one.
    #[must_use]
    pub fn vrf_limit(&self, vrf: usize) -> Option<usize> {
        self.vrf_limits.get(vrf).copied().flatten()
    }

    /// Returns the number of routes that all feeds together have in a VRF.
    #[must_use]
    pub fn len_of(&self, vrf: usize) -> usize {
        self.feeds.iter().map(|feed| feed.len_of(vrf)).sum()
    }

    /// Returns how many more routes of a VRF a feed may have.
    #[must_use]
    pub fn room(&self, feed: usize, vrf: u16) -> usize {
        let (routes, vrf) = (&self.feeds[feed], usize::from(vrf));
        let room = self.vrf_limit(vrf).map_or(usize::MAX, |limit| limit.saturating_sub(self.len_of(vrf)));
        room.min(routes.limit.saturating_sub(routes.len()))
    }

    /// Returns whether a feed is well below a limit that it had reached. If so, it pays that the feed sends everything again. It
    /// is enough that one full VRF has room again, because a VRF that stays full must not hold up the others.
    #[must_use]
    pub fn has_room_again(&self, feed: usize) -> bool {
        // An eighth of room at least. Otherwise, a feed at its limit would be read again on every change.
        let below = |count: usize, limit: usize| count < limit - limit / 8;
        let (routes, state) = (&self.feeds[feed], &self.feeds[feed].state);
        let vrf_has_room = |&vrf: &u16| {
            let vrf = usize::from(vrf);
            self.vrf_limit(vrf).is_none_or(|limit| below(self.len_of(vrf), limit))
        };
        if state.lacks_memory && !self.paths.has_bytes(self.paths.bytes() / 7) {
            return false;
        }
        let is_at_own = state.is_full || state.full_vrfs.is_empty();
        is_at_own && below(routes.len().max(routes.objects()), routes.limit)
            || state.full_vrfs.iter().any(vrf_has_room)
    }

    fn touch(&mut self, place: Place) {
        if self.everything {
            return;
        }
        self.dirty.insert(place);
        if self.dirty.len() > MOST_DIRTY {
            // The comparison of everything includes these prefixes. Clearing the list bounds its memory.
            self.dirty.clear();
            self.everything = true;
        }
    }

    /// Replaces the routes of the configuration and of the machine, by VRF.
    pub fn set_own(&mut self, own: Vec<DualRib>) {
        let before = std::mem::replace(&mut self.own, own);
        let none = DualRib::default();
        let mut places = Vec::new();
        for vrf in 0..before.len().max(self.own.len()) {
            let (before, after) = (before.get(vrf).unwrap_or(&none), self.own.get(vrf).unwrap_or(&none));
            let changed = after.iter().filter(|&(prefix, number)| before.get(prefix) != Some(number));
            let gone = before.iter().filter(|&(prefix, _)| after.get(prefix).is_none());
            places.extend(changed.chain(gone).map(|(prefix, _)| (vrf as u16, prefix)));
        }
        self.history.record_all(None, What::Replaced, places.iter().map(|&place| (place, 0, None)));
        places.into_iter().for_each(|place| self.touch(place));
    }

    /// Adds a route of a feed, with its first [`MOST_MEMBERS`] ways. It replaces the route of the same prefix and metric.
    ///
    /// # Errors
    /// When the feed or the VRF has reached its limit of routes. The feed is then marked overrun.
    pub fn insert(&mut self, feed: usize, place: Place, metric: u32, path: Path) -> Result<Effect, Full> {
        self.insert_from(feed, place, metric, path, 0)
    }

    /// Like [`insert`](Self::insert), with the AS that announced the route first, which does not matter to where it leads; 0: not known.
    ///
    /// # Errors
    /// See [`insert`](Self::insert).
    pub fn insert_from(
        &mut self,
        feed: usize,
        place: Place,
        metric: u32,
        mut path: Path,
        origin: u32,
    ) -> Result<Effect, Full> {
        if let Path::Ways(ways) = &mut path
            && ways.len() > MOST_MEMBERS
        {
            self.feeds[feed].state.count(Count::Cut, 1);
            *ways = ways[..MOST_MEMBERS].into();
        }
        self.has_origins |= origin != 0;
        let vrf = usize::from(place.0);
        let has_room = self.vrf_limit(vrf).is_none_or(|limit| self.len_of(vrf) < limit);
        let routes = &mut self.feeds[feed];
        match routes.insert(place, metric, (path, origin), has_room, &mut self.paths) {
            Ok(done) => {
                routes.state.count(Count::Inserted, 1);
                if done.before != Some(done.path) {
                    let what = if done.before.is_some() { What::Replaced } else { What::Inserted };
                    self.history.record(Some(feed), what, place, metric, self.paths.get(done.path));
                }
                if done.effect == Effect::Changed {
                    self.touch(place);
                }
                Ok(done.effect)
            }
            Err(full) => {
                routes.state.refuse(full, place.0);
                self.history.record(Some(feed), What::Refused, place, metric, None);
                Err(full)
            }
        }
    }

    /// Removes the route of a feed with this metric, or all its routes of the prefix.
    pub fn remove(&mut self, feed: usize, place: Place, metric: Option<u32>) -> Effect {
        let routes = &mut self.feeds[feed];
        let before = routes.len();
        let (effect, gone) = routes.remove(place, metric, &mut self.paths);
        routes.state.count(Count::Removed, (before - routes.len()) as u64);
        if let Some(Gone { metric, path }) = gone {
            self.history.record(Some(feed), What::Removed, place, metric, self.paths.get(path));
        }
        if effect == Effect::Changed {
            self.touch(place);
        }
        effect
    }

    /// Returns the path of a route of a feed.
    #[must_use]
    pub fn path_of(&self, feed: usize, place: Place, metric: u32) -> Option<&Path> {
        let mut routes = self.feeds[feed].of(place);
        self.paths.get(routes.find(|route| route.0 == metric)?.1)
    }

    /// Adds or replaces a next-hop object of a feed. Routes that lead to the object follow. A group keeps its first
    /// [`MOST_MEMBERS`] members. A group that has a group, or itself, as a member is refused, as in the kernel: what the object
    /// was before stays.
    ///
    /// # Errors
    /// When the feed has reached its limit of objects.
    pub fn set_object(&mut self, feed: usize, id: u32, mut object: Object) -> Result<(), Full> {
        let routes = &mut self.feeds[feed];
        if let Object::Group(members) = &mut object {
            if members.len() > MOST_MEMBERS {
                routes.state.count(Count::Cut, 1);
                *members = members[..MOST_MEMBERS].into();
            }
            let is_group = |id: u32| matches!(routes.object(id), Some(Object::Group(_)));
            if members.iter().any(|&(member, _)| member == id || is_group(member)) {
                routes.state.count(Count::Nested, 1);
                return Ok(());
            }
        }
        match routes.set_object(id, object, &mut self.paths) {
            Ok(news) => {
                self.objects_changed |= news;
                Ok(())
            }
            Err(full) => {
                routes.state.refuse(full, 0);
                Err(full)
            }
        }
    }

    /// Removes a next-hop object of a feed. Routes that lead to the object then lead nowhere.
    pub fn remove_object(&mut self, feed: usize, id: u32) -> bool {
        let was_there = self.feeds[feed].remove_object(id, &mut self.paths);
        self.objects_changed |= was_there;
        was_there
    }

    /// Begins a pass of marking of a feed. Routes that it sends from here on are marked.
    pub fn begin(&mut self, feed: usize) {
        self.feeds[feed].begin();
    }

    /// Removes the routes of a feed that it has not sent since the pass began, of one family or of both. Returns their number,
    /// and counts them as `what`.
    pub fn sweep(&mut self, feed: usize, family: Option<Family>, what: Count) -> usize {
        let routes = &mut self.feeds[feed];
        let gone = routes.sweep(family, &mut self.paths);
        routes.state.count(what, gone.len() as u64);
        let paths = &self.paths;
        let events = gone.iter().map(|(place, _, gone)| (*place, gone.metric, paths.get(gone.path)));
        let why = if what == Count::Expired { What::Expired } else { What::Swept };
        self.history.record_all(Some(feed), why, events);
        for (place, effect, _) in &gone {
            if *effect == Effect::Changed {
                self.touch(*place);
            }
        }
        gone.len()
    }

    /// Removes the next-hop objects of a feed that it has not sent since the pass began.
    pub fn sweep_objects(&mut self, feed: usize) {
        self.objects_changed |= self.feeds[feed].sweep_objects(&mut self.paths) > 0;
    }

    /// Removes all routes and objects of a feed that did not come back in time. Returns the number of routes.
    pub fn expire(&mut self, feed: usize, now_ns: u64) -> usize {
        // A new pass unmarks everything, so the sweep removes all.
        self.begin(feed);
        let count = self.sweep(feed, None, Count::Expired);
        self.sweep_objects(feed);
        self.feeds[feed].state.enter(Phase::Down, now_ns);
        count
    }

    /// Returns the route that is used for a prefix.
    #[must_use]
    pub fn choose(&self, place: Place) -> Option<Choice> {
        self.choice(place).map(|choice| choice.1)
    }

    /// Like [`choose`](Self::choose), with the number of the feed.
    #[must_use]
    pub fn choice(&self, place: Place) -> Option<(Option<usize>, Choice)> {
        let own = self.own.get(usize::from(place.0)).and_then(|own| own.get(place.1));
        own.map(|number| (None, Choice::Own(number))).or_else(|| {
            self.order.iter().find_map(|&feed| {
                let path = self.feeds[feed].get(place)?.path;
                self.paths.is_active(path).then_some((Some(feed), Choice::Path(path)))
            })
        })
    }

    /// Returns whether a feed has ever told which AS announces a prefix.
    #[must_use]
    pub fn has_origins(&self) -> bool {
        self.has_origins
    }

    /// Returns the AS that announces a prefix: by the route that is used, otherwise by the nearest feed that has another route of the same
    /// prefix and knows. 0 if none does, or if the prefix is the configuration's or a network of the machine.
    #[must_use]
    pub fn origin_of(&self, place: Place) -> u32 {
        let Some((Some(used), _)) = self.choice(place) else { return 0 };
        let others = self.order.iter().filter(|&&feed| feed != used);
        let mut origins = std::iter::once(&used)
            .chain(others)
            .filter_map(|&feed| self.feeds[feed].get(place).map(|entry| entry.origin));
        origins.find(|&origin| origin != 0).unwrap_or(0)
    }

    /// Returns whether more prefixes have changed than are kept. The owner of the tables must then compare them with
    /// [`all`](Self::all).
    pub fn take_everything(&mut self) -> bool {
        if std::mem::take(&mut self.everything) {
            self.taking.clear();
            return true;
        }
        false
    }

    /// Takes at most `most` changed prefixes, with the routes that are used now.
    pub fn take(&mut self, most: usize) -> Vec<(Place, Option<Choice>)> {
        if self.taking.is_empty() {
            std::mem::swap(&mut self.taking, &mut self.dirty);
        }
        let places: Vec<Place> = std::iter::from_fn(|| self.taking.pop_first()).take(most).collect();
        if !self.dirty.is_empty() {
            // A prefix that has changed again since is up to date with this turn.
            for place in &places {
                self.dirty.remove(place);
            }
        }
        places.into_iter().map(|place| (place, self.choose(place))).collect()
    }

    /// Gives back prefixes that could not be entered, or all prefixes.
    pub fn put_back(&mut self, places: impl IntoIterator<Item = Place>, everything: bool) {
        self.everything |= everything;
        places.into_iter().for_each(|place| self.touch(place));
    }

    /// Returns whether prefixes wait to be taken, or may do so once changed next-hop objects have been resolved.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.everything || self.objects_changed || !self.taking.is_empty() || !self.dirty.is_empty()
    }

    /// Returns the routes of a VRF that are used, with the next hops that `number` gives to paths.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn all(&self, vrf: usize, number: impl Fn(u32) -> Option<NextHop>) -> Result<DualRib, RibError> {
        let mut all = DualRib::default();
        // The farthest feed first, because routes of nearer feeds replace those of farther ones. The configuration comes last.
        for &feed in self.order.iter().rev() {
            let Some(map) = self.feeds[feed].vrfs.get(vrf) else { continue };
            for (prefix, entry) in map.iter().filter(|route| self.paths.is_active(route.1.path)) {
                if let Some(number) = number(entry.path) {
                    all.insert(prefix, number)?;
                }
            }
        }
        if let Some(own) = self.own.get(vrf) {
            copy(&own.v4, &mut all.v4)?;
            copy(&own.v6, &mut all.v6)?;
        }
        Ok(all)
    }

    /// Takes the paths that are new since the last call.
    pub fn take_fresh(&mut self) -> Vec<u32> {
        self.paths.take_fresh()
    }

    /// Returns whether next-hop objects have changed since the last call.
    pub fn take_objects_changed(&mut self) -> bool {
        std::mem::take(&mut self.objects_changed)
    }

    /// Returns the numbers of all paths, or of those that lead to next-hop objects.
    #[must_use]
    pub fn paths(&self, only_objects: bool) -> Vec<u32> {
        let wanted =
            |&number: &u32| !only_objects || matches!(self.paths.get(number), Some(Path::Object { .. }));
        self.paths.numbers().filter(wanted).collect()
    }

    /// Returns a path with next-hop objects replaced by their ways. `None` if an object does not exist or has no ways.
    #[must_use]
    pub fn expand(&self, number: u32) -> Option<Path> {
        match self.paths.get(number)? {
            Path::Object { feed, id } => self.expand_object(usize::from(*feed), *id),
            path => Some(path.clone()),
        }
    }

    fn expand_object(&self, feed: usize, id: u32) -> Option<Path> {
        let routes = self.feeds.get(feed)?;
        if matches!(routes.object(id)?, Object::Blackhole) {
            return Some(Path::Blackhole);
        }
        let mut ways = Vec::new();
        ways_of(routes, id, &mut ways);
        if ways.is_empty() { None } else { Some(Path::Ways(ways.into())) }
    }

    /// Sets which paths lead somewhere. Routes of a path for which this changes are chosen again.
    pub fn set_active(&mut self, paths: impl IntoIterator<Item = (u32, bool)>) {
        let mut news: Vec<u32> = Vec::new();
        for (number, active) in paths {
            if self.paths.set_active(number, active) {
                news.push(number);
            }
        }
        if news.is_empty() {
            return;
        }
        news.sort_unstable();
        let mut places = Vec::new();
        for routes in &self.feeds {
            for (vrf, map) in routes.vrfs.iter().enumerate() {
                let found = map.iter().filter(|route| news.binary_search(&route.1.path).is_ok());
                places.extend(found.map(|(prefix, _)| (vrf as u16, prefix)));
            }
        }
        places.into_iter().for_each(|place| self.touch(place));
    }

    /// Sets whether a new path leads somewhere. Its routes need no check, because they have changed anyway.
    pub fn set_fresh(&mut self, number: u32, active: bool) {
        self.paths.set_active(number, active);
    }

    /// Returns the number of routes of a feed that lead nowhere at the moment.
    #[must_use]
    pub fn unresolved(&self, feed: usize) -> usize {
        if self.paths.are_active() {
            return 0;
        }
        let nowhere = |path: u32| !self.paths.is_active(path);
        self.feeds[feed].vrfs.iter().flat_map(IpPrefixMap::values).filter(|entry| nowhere(entry.path)).count()
    }

    /// Frees the paths that no route has, and returns their numbers. Does nothing while changes wait to be taken.
    pub fn collect(&mut self) -> Vec<u32> {
        // A table may still have the path of a route whose removal waits to be taken.
        if self.is_dirty() { Vec::new() } else { self.paths.collect() }
    }
}

fn copy<K: Key>(from: &RibOf<K>, to: &mut RibOf<K>) -> Result<(), RibError> {
    from.iter().try_for_each(|route: Route<K>| to.insert(route).map(drop))
}

/// Appends the ways of an object. A member of a group that is a group itself has none, as in the kernel, so the steps are at most
/// [`MOST_MEMBERS`].
fn ways_of(routes: &Routes, id: u32, ways: &mut Vec<Way>) {
    match routes.object(id) {
        Some(Object::Way(way)) => ways.push(way.clone()),
        Some(Object::Group(members)) => {
            ways.extend(members.iter().filter_map(|&(id, share)| match routes.object(id)? {
                Object::Way(way) => {
                    Some(Way { weight: way.weight.saturating_mul(share.max(1)), ..way.clone() })
                }
                Object::Group(_) | Object::Blackhole => None,
            }));
        }
        Some(Object::Blackhole) | None => {}
    }
}

#[cfg(test)]
mod tests;
