//! The routes of all peers of a VRF. The best route of each prefix becomes the feed's.

use fibula::memory::Limits;
use fibula::net::{IpPrefix, NextHop};
use fibula_feed::event::{Action, Event};
use fibula_feed::select::{AdjRibsIn, AdjRibsInError};
use fibula_feed::{Label, NextHops};

use super::path::{Out, Path, Way};
use super::routes::Full;
use super::state::Count;
use super::{Place, Rib};

/// Memory of a route in the worst case: it has a path of its own, with an identifier, and is the only one of its prefix.
const ROUTE_BYTES: usize = 256;
const LEAST_BYTES: usize = 64 << 20;

/// A change of the best route of a prefix: the new one, or `None` if there is none.
pub type Change = (Place, Option<BestRoute>);

/// The best route of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BestRoute {
    /// Where it leads.
    pub path: Path,
    /// The AS that announced it first; 0 if its AS path does not say.
    pub origin: u32,
}

/// The routes of all peers of a VRF.
#[derive(Debug)]
pub struct Best {
    vrf: u16,
    routes: AdjRibsIn,
    next_hops: NextHops,
    news: Vec<(IpPrefix, Option<NextHop>)>,
}

impl Best {
    /// Creates an empty set for a VRF, with memory for about `limit` routes.
    #[must_use]
    pub fn new(vrf: u16, limit: usize) -> Self {
        let memory_bytes = Some(limit.saturating_mul(ROUTE_BYTES).saturating_add(LEAST_BYTES));
        let limits = Limits { memory_bytes, ..Limits::default() };
        Self { vrf, routes: AdjRibsIn::new(limits), next_hops: NextHops::new(limits), news: Vec::new() }
    }

    /// Applies an event of a peer, and appends the changes of best routes.
    ///
    /// # Errors
    /// When memory runs out. The routes then differ from the peer's.
    pub fn apply(&mut self, mut event: Event, changes: &mut Vec<Change>) -> Result<(), AdjRibsInError> {
        note_origin(&mut event);
        let Self { vrf, routes, next_hops, news } = self;
        let done = routes.apply(event, next_hops, |prefix, next_hop| news.push((prefix, next_hop)));
        changes.extend(news.drain(..).map(|(prefix, number)| {
            let label = number.and_then(|number| next_hops.label(number));
            ((*vrf, prefix), label.and_then(|label| best_route(*vrf, label)))
        }));
        done
    }

    /// Returns the number of routes of all peers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes.routes()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Puts the AS that announced a route beside the next hop of the route. Two routes with one next hop then differ if their ASes do.
fn note_origin(event: &mut Event) {
    if let Action::Announce(route) = &mut event.action
        && let Some(origin) = route.attributes.as_ref().and_then(|attributes| attributes.origin_as())
    {
        let next_hop = std::mem::replace(&mut route.next_hop, Label::Absent);
        route.next_hop = Label::Fields([next_hop, Label::Number(origin)].into());
    }
}

/// Returns the route to a next hop. It leaves by the interface of the VRF whose network contains the next hop.
fn best_route(vrf: u16, label: &Label) -> Option<BestRoute> {
    let (next_hop, origin) = match label.fields() {
        [next_hop, Label::Number(origin)] => (next_hop, *origin),
        [next_hop] => (next_hop, 0),
        _ => return None,
    };
    match next_hop {
        Label::Address(address) => {
            let path = Path::Ways([Way::new(Some(*address), Out::Near(vrf))].into());
            Some(BestRoute { path, origin })
        }
        _ => None,
    }
}

/// Enters changes into the RIB. If there is no room for them, the routes of earlier sessions that have not been sent again are
/// removed first. This happens once a pass of marking, and `has_swept` notes it.
///
/// # Errors
/// When the feed or a VRF has reached its limit of routes. The remaining changes are not entered.
pub fn enter(rib: &mut Rib, feed: usize, changes: Vec<Change>, has_swept: &mut bool) -> Result<(), Full> {
    let lacks_room = |of_vrf: &[Change]| rib.room(feed, of_vrf[0].0.0) < of_vrf.len();
    let is_tight = changes.chunk_by(|a, b| a.0.0 == b.0.0).any(lacks_room);
    if is_tight && !std::mem::replace(has_swept, true) {
        rib.sweep(feed, None, Count::Swept);
    }
    for (place, route) in changes {
        match route {
            Some(BestRoute { path, origin }) => rib.insert_from(feed, place, 0, path, origin).map(drop)?,
            None => drop(rib.remove(feed, place, None)),
        }
    }
    Ok(())
}
