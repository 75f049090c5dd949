//! The routes and next-hop objects of one feed.

use std::collections::BTreeMap;

use fibula::map::IpPrefixMap;
use fibula::net::Family;

use super::Place;
use super::answers::Answers;
use super::path::{Object, Path, Paths};
pub use super::state::Full;
use super::state::State;

/// A route of a feed: the one with the lowest metric of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number of its path.
    pub(super) path: u32,
    pub(super) metric: u32,
    /// The AS that announced it first; 0 if the feed does not say.
    pub(super) origin: u32,
    /// The pass of marking in which the feed last sent it.
    mark: u32,
}

/// The effect of a message on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The feed's best route of the prefix has changed.
    Changed,
    /// The best route is the same: another route is better, or the route was the same before.
    Same,
    /// The message contradicts the known routes of the feed. Its routes must be read again.
    Unexpected,
}

/// The result of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inserted {
    pub(super) effect: Effect,
    /// Number of its path. `before` is the number of its earlier path.
    pub(super) path: u32,
    pub(super) before: Option<u32>,
}

/// A route that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) metric: u32,
    /// Number of its path.
    pub(super) path: u32,
}

/// The routes of a feed.
#[derive(Debug)]
pub struct Routes {
    /// Name for operators.
    pub name: String,
    /// Administrative distance. If two feeds have a route of the same prefix, the nearer one is used.
    pub distance: u8,
    /// Limit of routes, and also of next-hop objects.
    pub limit: usize,
    /// State and counters for operators.
    pub state: State,
    /// Answers to the daemon about its routes, if it wants them.
    pub answers: Option<Answers>,
    pub(super) vrfs: Vec<IpPrefixMap<Entry>>,
    /// Further routes of a prefix with other metrics.
    more: BTreeMap<Place, Vec<Entry>>,
    /// Number of these routes in each VRF.
    more_counts: Vec<usize>,
    objects: BTreeMap<u32, (Object, u32)>,
    mark: u32,
}

impl Routes {
    /// Creates a feed without routes, for this number of VRFs.
    #[must_use]
    pub fn new(name: impl Into<String>, distance: u8, limit: usize, vrfs: usize) -> Self {
        Self {
            name: name.into(),
            distance,
            limit,
            state: State::default(),
            answers: None,
            vrfs: (0..vrfs).map(|_| IpPrefixMap::new()).collect(),
            more: BTreeMap::new(),
            more_counts: vec![0; vrfs],
            objects: BTreeMap::new(),
            mark: 0,
        }
    }

    /// Returns the number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        (0..self.vrfs.len()).map(|vrf| self.len_of(vrf)).sum()
    }

    /// Returns the number of routes of a VRF.
    #[must_use]
    pub fn len_of(&self, vrf: usize) -> usize {
        self.vrfs.get(vrf).map_or(0, |map| map.len() + self.more_counts[vrf])
    }

    /// Returns `true` if the feed has no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of next-hop objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Returns a next-hop object.
    pub(super) fn object(&self, id: u32) -> Option<&Object> {
        self.objects.get(&id).map(|object| &object.0)
    }

    pub(super) fn get(&self, place: Place) -> Option<Entry> {
        self.vrfs.get(usize::from(place.0))?.get(place.1).copied()
    }

    /// Returns all routes of a prefix: metrics and numbers of paths.
    pub(super) fn of(&self, place: Place) -> impl Iterator<Item = (u32, u32)> {
        let more = self.more.get(&place).map_or(&[][..], Vec::as_slice);
        self.get(place).into_iter().chain(more.iter().copied()).map(|entry| (entry.metric, entry.path))
    }

    /// Adds a route. It replaces the route of the same prefix and metric. `has_room` is whether its VRF may have another route.
    pub(super) fn insert(
        &mut self,
        place: Place,
        metric: u32,
        (path, origin): (Path, u32),
        has_room: bool,
        paths: &mut Paths,
    ) -> Result<Inserted, Full> {
        let full = if self.len() >= self.limit { Some(Full::Feed) } else { (!has_room).then_some(Full::Vrf) };
        let vrf = usize::from(place.0);
        if !paths.has_room(&path) {
            return Err(Full::Memory);
        }
        let Some(map) = self.vrfs.get_mut(vrf) else { return Err(Full::Feed) };
        let best = map.get_mut(place.1);
        let new = |paths: &mut Paths, mark| Entry { path: paths.take(path), metric, origin, mark };
        let done = |effect, path, before| Ok(Inserted { effect, path, before });
        match best {
            Some(best) if best.metric == metric => {
                let before = std::mem::replace(best, new(paths, self.mark));
                paths.count(before.path, false);
                let effect = if before.path == best.path { Effect::Same } else { Effect::Changed };
                done(effect, best.path, Some(before.path))
            }
            Some(best) => {
                let others = self.more.entry(place).or_default();
                if let Some(other) = others.iter_mut().find(|other| other.metric == metric) {
                    let before = std::mem::replace(other, new(paths, self.mark));
                    paths.count(before.path, false);
                    return done(Effect::Same, other.path, Some(before.path));
                }
                if let Some(full) = full {
                    if others.is_empty() {
                        self.more.remove(&place);
                    }
                    return Err(full);
                }
                let mut entry = new(paths, self.mark);
                let path = entry.path;
                let nearer = metric < best.metric;
                if nearer {
                    std::mem::swap(&mut entry, best);
                }
                others.push(entry);
                self.more_counts[vrf] += 1;
                done(if nearer { Effect::Changed } else { Effect::Same }, path, None)
            }
            None => {
                if let Some(full) = full {
                    return Err(full);
                }
                let entry = new(paths, self.mark);
                if map.try_insert(place.1, entry).is_err() {
                    paths.count(entry.path, false);
                    return Err(Full::Feed);
                }
                done(Effect::Changed, entry.path, None)
            }
        }
    }

    /// Removes the route of a prefix and metric, or all routes of the prefix. Also returns the removed route; of several, the
    /// best one.
    pub(super) fn remove(
        &mut self,
        place: Place,
        metric: Option<u32>,
        paths: &mut Paths,
    ) -> (Effect, Option<Gone>) {
        let Some(best) = self.get(place) else { return (Effect::Same, None) };
        let gone = |entry: Entry| Some(Gone { metric: entry.metric, path: entry.path });
        let (vrf, others) = (usize::from(place.0), self.more.get_mut(&place));
        match (metric, others) {
            (Some(metric), Some(others)) if metric != best.metric => {
                let Some(at) = others.iter().position(|other| other.metric == metric) else {
                    return (Effect::Unexpected, None);
                };
                let other = others.swap_remove(at);
                paths.count(other.path, false);
                self.more_counts[vrf] -= 1;
                if others.is_empty() {
                    self.more.remove(&place);
                }
                (Effect::Same, gone(other))
            }
            (Some(metric), None) if metric != best.metric => (Effect::Unexpected, None),
            (Some(_), Some(others)) => {
                // The route with the next metric is the best now.
                let next = (0..others.len()).min_by_key(|&at| others[at].metric).unwrap_or(0);
                let next = others.swap_remove(next);
                self.more_counts[vrf] -= 1;
                if others.is_empty() {
                    self.more.remove(&place);
                }
                if let Some(entry) = self.vrfs[vrf].get_mut(place.1) {
                    *entry = next;
                }
                paths.count(best.path, false);
                (Effect::Changed, gone(best))
            }
            (metric, others) => {
                if metric.is_none()
                    && let Some(others) = others
                {
                    others.iter().for_each(|other| paths.count(other.path, false));
                    self.more_counts[vrf] -= others.len();
                    self.more.remove(&place);
                }
                self.vrfs[vrf].remove(place.1);
                paths.count(best.path, false);
                (Effect::Changed, gone(best))
            }
        }
    }

    /// Adds or replaces a next-hop object. Returns whether it has changed.
    pub(super) fn set_object(&mut self, id: u32, object: Object, paths: &mut Paths) -> Result<bool, Full> {
        let (mark, full) = (self.mark, self.objects.len() >= self.limit);
        let more = object.bytes();
        let less = self.objects.get(&id).map_or(0, |known| known.0.bytes());
        if !paths.has_bytes(more.saturating_sub(less)) {
            return Err(Full::Memory);
        }
        if less > 0 || !full {
            paths.charge(more, less);
        }
        match self.objects.get_mut(&id) {
            Some(known) => {
                known.1 = mark;
                let news = known.0 != object;
                known.0 = object;
                Ok(news)
            }
            None if full => Err(Full::Feed),
            None => Ok(self.objects.insert(id, (object, mark)).is_none()),
        }
    }

    /// Removes a next-hop object. Returns whether it existed.
    pub(super) fn remove_object(&mut self, id: u32, paths: &mut Paths) -> bool {
        let gone = self.objects.remove(&id);
        paths.charge(0, gone.as_ref().map_or(0, |object| object.0.bytes()));
        gone.is_some()
    }

    /// Begins a pass of marking. Routes that the feed sends from here on are marked.
    pub(super) fn begin(&mut self) {
        self.mark = self.mark.wrapping_add(1);
    }

    /// Removes the routes that the feed has not sent since the pass began, of one family or of both. Returns them, each with the
    /// effect on its prefix.
    pub(super) fn sweep(&mut self, family: Option<Family>, paths: &mut Paths) -> Vec<(Place, Effect, Gone)> {
        let mark = self.mark;
        let old = |place: &Place, entry: &Entry| {
            entry.mark != mark && family.is_none_or(|family| place.1.family() == family)
        };
        let mut places = Vec::new();
        for (vrf, map) in self.vrfs.iter().enumerate() {
            let found = map.iter().map(|(prefix, entry)| ((vrf as u16, prefix), *entry));
            places.extend(
                found.filter(|(place, entry)| old(place, entry)).map(|found| (found.0, found.1.metric)),
            );
        }
        for (place, entries) in &self.more {
            places
                .extend(entries.iter().filter(|entry| old(place, entry)).map(|entry| (*place, entry.metric)));
        }
        let remove = |(place, metric)| {
            let (effect, gone) = self.remove(place, Some(metric), paths);
            Some((place, effect, gone?))
        };
        places.into_iter().filter_map(remove).collect()
    }

    /// Removes the next-hop objects that the feed has not sent since the pass began. Returns their number.
    pub(super) fn sweep_objects(&mut self, paths: &mut Paths) -> usize {
        let (before, mark) = (self.objects.len(), self.mark);
        self.objects.retain(|_, object| {
            let stays = object.1 == mark;
            paths.charge(0, if stays { 0 } else { object.0.bytes() });
            stays
        });
        before - self.objects.len()
    }
}
