//! Installs routes of the RIB in the tables. Has no clock and no thread.
//!
//! A path of the RIB has one number among the fabric's next hops for as long as a route has the path. The meaning of the number
//! may change. For example, when a link goes down or a next-hop object changes, a new fabric is enough, and no route is touched.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fibula::Table;
use fibula::live::{TableError, TableKey};
use fibula::net::{Change, Dual, IpPrefix, Key, NextHop, Prefix, Route};
use fibula::rib::{DualRib, Rib as RibOf};

use super::error::ControlError;
use super::hops::Hops;
use super::plan::near;
use crate::feed::path::{Out, Path, Way, shares};
use crate::feed::reply::Verdict;
use crate::feed::{Choice, Place, Rib, lock};
use crate::forward::fabric::{Hop, Interface, Vrf};

/// Prefixes that are taken at once and discarded, because everything is compared anyway.
const BATCH: usize = 1 << 13;
/// Number of changes that are tried together after a table has refused all of them at once.
const PART: usize = 64;
// Number of such parts that may be refused in one call. Later parts go back untried, so that a full table does not hold up the
// main thread.
const MOST_REFUSED: usize = 16;

/// A prefix and the route to use for it.
pub type News = (Place, Option<Choice>);

/// Changes taken from the RIB.
#[derive(Debug, Default)]
pub struct Taken {
    /// Changed prefixes, with the routes to use for them.
    pub news: Vec<News>,
    /// Compare all routes instead.
    pub everything: bool,
    /// Next hops have a new meaning, or are new.
    pub hops: bool,
    /// More changes wait in the RIB.
    pub more: bool,
}

impl Taken {
    /// Returns `true` if nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.news.is_empty() && !self.everything && !self.hops
    }

    /// Takes the changed prefixes, at most `most` of them.
    fn take_places(&mut self, rib: &mut Rib, most: usize) {
        if rib.take_everything() {
            self.everything = true;
            // Discard the waiting prefixes, because the comparison includes them.
            while !rib.take(BATCH).is_empty() {}
        }
        while self.news.len() < most {
            let news = rib.take(most - self.news.len());
            if news.is_empty() {
                break;
            }
            self.news.extend(news);
        }
        self.more = rib.is_dirty();
    }
}

/// The number of each path's next hop.
#[derive(Debug, Default)]
pub struct Install {
    numbers: Vec<Option<NextHop>>,
}

impl Install {
    /// Takes changes from the RIB: gives new paths their numbers, and resolves them with the present interfaces. Returns at most
    /// `most` prefixes with their routes, and whether next hops have changed. `own`, if given, replaces the routes of the
    /// configuration, and all paths are resolved again. `devices` maps each of the kernel's devices to its interface.
    pub fn take(
        &mut self,
        rib: &Mutex<Rib>,
        (interfaces, devices): (&[Interface], &BTreeMap<u32, u16>),
        hops: &mut Hops,
        own: Option<Vec<DualRib>>,
        most: usize,
    ) -> Taken {
        let mut rib = lock(rib);
        let mut taken = Taken::default();
        let fresh = rib.take_fresh();
        let objects_changed = rib.take_objects_changed();
        for &path in &fresh {
            let content = rib.expand(path).and_then(|path| content(&path, interfaces, devices, hops));
            let number = hops.reserve();
            self.set(path, Some(number));
            rib.set_fresh(path, content.is_some());
            taken.hops |= hops.set(number, content);
        }
        if own.is_some() || objects_changed {
            let paths = rib.paths(own.is_none());
            let mut active = Vec::with_capacity(paths.len());
            for path in paths {
                let content = rib.expand(path).and_then(|path| content(&path, interfaces, devices, hops));
                active.push((path, content.is_some()));
                // A path that leads nowhere keeps its meaning until its routes have gone. Otherwise, packets would be dropped
                // before the tables use another route.
                if let (Some(number), Some(content)) = (self.number(path), content) {
                    taken.hops |= hops.set(number, Some(content));
                }
            }
            rib.set_active(active);
        }
        if let Some(own) = own {
            rib.set_own(own);
        }
        taken.take_places(&mut rib, most);
        taken
    }

    /// Does the same as [`take`](Self::take), but `number` returns the numbers of paths. Several paths may have the same number. With
    /// `is_other`, its answers may have changed, and it is called again for all paths.
    pub fn take_numbered(
        &mut self,
        rib: &Mutex<Rib>,
        number: impl Fn(&Path) -> Option<NextHop>,
        is_other: bool,
        most: usize,
    ) -> Taken {
        let mut rib = lock(rib);
        let mut taken = Taken::default();
        let now = |rib: &Rib, path| rib.expand(path).and_then(|path| number(&path));
        for path in rib.take_fresh() {
            let found = now(&rib, path);
            self.set(path, found);
            rib.set_fresh(path, found.is_some());
        }
        if rib.take_objects_changed() || is_other {
            let paths = rib.paths(!is_other).into_iter().map(|path| (path, now(&rib, path)));
            let moved: Vec<_> = paths.filter(|&(path, found)| self.number(path) != found).collect();
            // Once without and once with the new number, so that its routes are chosen again even where both lead somewhere.
            rib.set_active(moved.iter().map(|&(path, _)| (path, false)));
            for &(path, found) in &moved {
                self.set(path, found);
            }
            rib.set_active(moved.into_iter().map(|(path, found)| (path, found.is_some())));
        }
        taken.take_places(&mut rib, most);
        taken
    }

    fn set(&mut self, path: u32, number: Option<NextHop>) {
        let at = path as usize;
        self.numbers.resize(self.numbers.len().max(at + 1), None);
        self.numbers[at] = number;
    }

    fn number(&self, path: u32) -> Option<NextHop> {
        self.numbers.get(path as usize).copied().flatten()
    }

    fn chosen(&self, choice: Choice) -> Option<NextHop> {
        match choice {
            Choice::Own(number) => Some(number),
            Choice::Path(path) => self.number(path),
        }
    }

    /// Returns the next hop that a table should have for a prefix.
    #[must_use]
    pub fn wanted(&self, rib: &Rib, place: Place) -> Option<NextHop> {
        rib.choose(place).and_then(|choice| self.chosen(choice))
    }

    /// Enters the taken changes into the tables, new routes first, and counts the routes of each table. Changes that a table
    /// refuses go back to the RIB.
    ///
    /// # Errors
    /// When a table refuses changes, with the name of its VRF. All other changes are made.
    pub fn enter(
        &self,
        rib: &Mutex<Rib>,
        taken: &Taken,
        vrfs: &[Vrf],
        counts: &mut [Dual<usize>],
    ) -> Result<(), ControlError> {
        let mut outcome = Ok(());
        for (number, (vrf, counts)) in vrfs.iter().zip(counts).enumerate() {
            let mine = |news: &&News| usize::from(news.0.0) == number;
            let changes = if taken.everything {
                self.all_changes(rib, number, vrf)
            } else {
                self.changes(taken.news.iter().filter(mine), vrf)
            };
            let Refused { prefixes, everything, error } = match changes {
                Ok(changes) => apply(vrf, &changes, counts),
                Err(error) => Refused {
                    prefixes: taken.news.iter().filter(mine).map(|news| news.0.1).collect(),
                    everything: taken.everything,
                    error: Some(error),
                },
            };
            if let Some(error) = error {
                let places = prefixes.into_iter().map(|prefix| (number as u16, prefix));
                lock(rib).put_back(places, everything);
                outcome = Err(ControlError::Install { vrf: vrf.name.clone(), error });
            }
        }
        self.answer(rib, taken, vrfs);
        outcome
    }

    /// Settles the routes of feeds that wait for a verdict: the routes that have just been entered, and routes that their daemon
    /// sent again. Returns whether there is more to do.
    pub fn answer(&self, rib: &Mutex<Rib>, taken: &Taken, vrfs: &[Vrf]) -> bool {
        let mut rib = lock(rib);
        if !rib.has_unanswered() {
            return false;
        }
        let news = taken.news.iter().map(|news| news.0);
        let places = rib.take_unanswered(news, taken.everything, BATCH);
        // A map, because each place of a feed is looked up among the news.
        let entered: BTreeMap<Place, Option<Choice>> = taken.news.iter().copied().collect();
        for (feed, place) in places {
            let verdict = match rib.used(feed, place) {
                None => Some(None),
                Some(path) => {
                    let Some(Ok(found)) = vrfs.get(usize::from(place.0)).map(|vrf| vrf.table.get(place.1))
                    else {
                        continue;
                    };
                    let is_refused = || entered.get(&place) == Some(&Some(Choice::Path(path)));
                    match self.number(path) {
                        number @ Some(_) if number == found => Some(Some(Verdict::Installed)),
                        // If the route has changed since it was taken, it has no verdict yet, because another turn enters it.
                        _ => is_refused().then_some(Some(Verdict::Refused)),
                    }
                }
            };
            if let Some(verdict) = verdict {
                rib.settle(feed, place, verdict);
            }
        }
        rib.has_unanswered_again()
    }

    /// Returns the changes of a table: insertions, then removals, so that no address is without a route in between.
    fn changes<'n>(&self, news: impl Iterator<Item = &'n News>, vrf: &Vrf) -> Result<Changes, TableError> {
        let (mut changes, mut gone) = (Changes::default(), Changes::default());
        for &((_, prefix), choice) in news {
            let (before, after) = (vrf.table.get(prefix)?, choice.and_then(|choice| self.chosen(choice)));
            match (prefix, after) {
                _ if before == after => {}
                (IpPrefix::V4(prefix), Some(after)) => changes.v4.push(insert(prefix, after)),
                (IpPrefix::V6(prefix), Some(after)) => changes.v6.push(insert(prefix, after)),
                (IpPrefix::V4(prefix), None) => gone.v4.push(Change::Remove(prefix)),
                (IpPrefix::V6(prefix), None) => gone.v6.push(Change::Remove(prefix)),
            }
        }
        changes.v4.append(&mut gone.v4);
        changes.v6.append(&mut gone.v6);
        Ok(changes)
    }

    fn all_changes(&self, rib: &Mutex<Rib>, number: usize, vrf: &Vrf) -> Result<Changes, TableError> {
        let wanted = lock(rib).all(number, |path| self.number(path))?;
        let have = vrf.table.routes()?;
        Ok(Changes { v4: changes(&have.v4, &wanted.v4), v6: changes(&have.v6, &wanted.v6) })
    }

    /// Frees paths that no route has. Returns the numbers of their next hops. These may be used again once no worker can still
    /// have found them in a table.
    pub fn collect(&mut self, rib: &Mutex<Rib>) -> Vec<NextHop> {
        let paths = lock(rib).collect();
        paths.into_iter().filter_map(|path| self.numbers.get_mut(path as usize)?.take()).collect()
    }
}

/// Changes of a table.
#[derive(Debug, Default)]
struct Changes {
    v4: Vec<Change<u32>>,
    v6: Vec<Change<u128>>,
}

/// Changes that a table refused, and why.
#[derive(Debug, Default)]
struct Refused {
    prefixes: Vec<IpPrefix>,
    everything: bool,
    error: Option<TableError>,
}

/// Makes changes in a table.
fn apply(vrf: &Vrf, changes: &Changes, counts: &mut Dual<usize>) -> Refused {
    let mut refused = Refused::default();
    family(&vrf.table, &changes.v4, &mut counts.v4, &mut refused);
    family(&vrf.table, &changes.v6, &mut counts.v6, &mut refused);
    refused
}

/// Makes the changes of a family. If the table has no room for all of them at once, removals are made first, then as many
/// insertions as fit. Otherwise, a table at its limit would never get rid of a route.
fn family<K: TableKey>(table: &Table, changes: &[Change<K>], count: &mut usize, refused: &mut Refused)
where
    Prefix<K>: Into<IpPrefix>,
{
    if changes.is_empty() {
        return;
    }
    let before = table.len();
    if let Err(error) = table.apply(changes) {
        let is_full = matches!(
            error,
            TableError::Routes(_)
                | TableError::Structure(_)
                | TableError::Memory(_)
                | TableError::Room { .. }
        );
        refused.error = Some(error);
        // Smaller parts help only against a full table. After other errors every change goes back to the RIB.
        let mut left = if is_full { MOST_REFUSED } else { 0 };
        let (gone, new): (Vec<_>, Vec<_>) =
            changes.iter().copied().partition(|change| matches!(change, Change::Remove(_)));
        for part in gone.chunks(PART).chain(new.chunks(PART)) {
            if left > 0 && table.apply(part).is_ok() {
                continue;
            }
            // Find the first change that does not fit, and give back the rest of the part.
            let takes = |change: &&Change<K>| left > 0 && table.apply(std::slice::from_ref(*change)).is_ok();
            let made = part.iter().take_while(takes).count();
            left = left.saturating_sub(1);
            refused.prefixes.extend(part[made..].iter().map(|change| change.prefix().into()));
        }
    }
    if let (Ok(before), Ok(after)) = (before, table.len()) {
        // Count by difference, because `table.len()` has both families.
        *count = (*count + after).saturating_sub(before);
    }
}

pub(super) fn changes<K: Key>(have: &RibOf<K>, want: &RibOf<K>) -> Vec<Change<K>> {
    let news = want.iter().filter(|route: &Route<K>| have.get(route.prefix) != Some(route.next_hop));
    let gone = have.iter().filter(|route| !want.contains(route.prefix));
    news.map(Change::Insert).chain(gone.map(|route| Change::Remove(route.prefix))).collect()
}

const fn insert<K>(prefix: Prefix<K>, next_hop: NextHop) -> Change<K>
where
    K: Copy,
{
    Change::Insert(Route { prefix, next_hop })
}

/// Resolves a path with the present interfaces; `None` if it leads nowhere. Ways whose link is down stay: see [`super::failover`].
fn content(
    path: &Path,
    interfaces: &[Interface],
    devices: &BTreeMap<u32, u16>,
    hops: &mut Hops,
) -> Option<Hop> {
    let ways = match path {
        Path::Blackhole => return Some(Hop::Blackhole),
        Path::Unreachable => return Some(Hop::Unreachable),
        Path::Prohibit => return Some(Hop::Prohibit),
        // Not reached, because `expand` has replaced objects by their ways.
        Path::Object { .. } => return None,
        Path::Ways(ways) => ways,
    };
    let mut found: Vec<(Hop, Way)> = Vec::new();
    for way in ways {
        let interface = match (way.out, way.gateway) {
            (Out::Device(device), _) => devices.get(&device).copied(),
            (Out::Near(vrf), Some(gateway)) => {
                near(interfaces, gateway, vrf.into()).map(|number| number as u16)
            }
            (Out::Near(_), None) => None,
        };
        let Some(interface) = interface else { continue };
        let hop = match way.gateway {
            None => Hop::Connected { interface },
            Some(ip) => Hop::Via { interface, gateway: ip.into() },
        };
        found.push((hop, way.clone()));
    }
    if let [(hop, _)] = &found[..] {
        return Some(hop.clone());
    }
    let ways: Vec<Way> = found.iter().map(|way| way.1.clone()).collect();
    let mut members = Vec::new();
    for ((hop, _), share) in found.into_iter().zip(shares(&ways)) {
        // Members get numbers of their own, because a reserved number may change its meaning.
        members.extend(std::iter::repeat_n(hops.member(hop).id(), share));
    }
    (!members.is_empty()).then(|| Hop::Group(members.into()))
}

#[cfg(test)]
mod tests;
