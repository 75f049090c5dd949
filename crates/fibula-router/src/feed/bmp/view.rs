//! Selects routes from the messages of a router about its peers, and collects their changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fibula::net::{Dual, Family};
use fibula_feed::bmp::{self, Distinguisher, PeerHeader, PeerId, PeerTable};
use fibula_feed::event::{Action, Event, Path, Peer};
use fibula_feed::mrt::{self, Fault, Mention, Skipped};

use crate::config::{BmpPolicy, BmpView};
use crate::feed::Place;
use crate::feed::best::{Best, Change};
use crate::feed::state::{Count, State};

/// The routes to take.
#[derive(Debug, Clone)]
pub struct Views {
    /// The tables of the router.
    pub view: BmpView,
    /// The routes of peers: before or after the router's policy.
    pub policy: BmpPolicy,
    /// The VRFs of the router, each with our VRF.
    pub vrfs: Arc<[(Distinguisher, u16)]>,
    /// Limit of routes of all peers together.
    pub routes: usize,
}

/// The routes of a router's peers, and the changes since they were last taken.
#[derive(Debug)]
pub struct View {
    views: Views,
    /// Indexed by the router's VRFs.
    tables: Vec<Best>,
    peers: HashMap<PeerId, PeerState>,
    /// The peer of the present message, and the number of its table.
    current: Option<(Peer, usize)>,
    changes: Vec<Change>,
    /// Prefixes whose routes are kept until their peer has sent new routes, or is complete.
    leftover: BTreeSet<Place>,
    /// A peer began to send routes after the router's policy.
    restarted: bool,
    overrun: Option<String>,
    counts: Vec<(Count, u64)>,
    error: Option<String>,
}

/// The state of a peer.
#[derive(Debug)]
struct PeerState {
    peer: Peer,
    table: usize,
    /// Families that are not complete yet.
    open: Dual<bool>,
    families: Dual<bool>,
    /// Its routes after the policy are sent, and are taken.
    post_policy: bool,
}

impl View {
    /// Creates a view without routes.
    #[must_use]
    pub fn new(views: Views) -> Self {
        Self {
            tables: views.vrfs.iter().map(|&(_, vrf)| Best::new(vrf, views.routes)).collect(),
            views,
            peers: HashMap::new(),
            current: None,
            changes: Vec::new(),
            leftover: BTreeSet::new(),
            restarted: false,
            overrun: None,
            counts: Vec::new(),
            error: None,
        }
    }

    /// Adds one to a counter.
    pub(super) fn count(&mut self, what: Count) {
        match self.counts.iter_mut().find(|count| count.0 == what) {
            Some(count) => count.1 += 1,
            None => self.counts.push((what, 1)),
        }
    }

    /// Moves the counts and the last error to `state`.
    pub(super) fn tell(&mut self, state: &mut State, now_ns: u64) {
        self.counts.drain(..).for_each(|(what, by)| state.count(what, by));
        if let Some(error) = self.error.take() {
            state.error(error, now_ns);
        }
    }

    /// Returns the number of routes of all peers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.iter().map(Best::len).sum()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the limit that was passed, if any. Some routes are then missing.
    pub(super) fn overrun(&mut self) -> Option<String> {
        let routes = self.views.routes;
        let is_over = self.len() > routes;
        let why = || format!("more routes of peers than {routes}: raise 'routes'");
        self.overrun.take().or_else(|| is_over.then(why))
    }

    /// Takes the changes.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Takes the prefixes whose routes were kept and were not sent again.
    pub(super) fn take_leftover(&mut self) -> BTreeSet<Place> {
        std::mem::take(&mut self.leftover)
    }

    /// Returns whether a peer began to send other routes since the last call.
    pub(super) fn take_restarted(&mut self) -> bool {
        std::mem::take(&mut self.restarted)
    }

    /// Returns whether all peers that are up are complete.
    pub(super) fn is_complete(&self) -> bool {
        !self.peers.is_empty() && self.peers.values().all(|told| told.open == Dual::new(false, false))
    }

    /// Removes the routes of a peer. With `keep` they stay in the feed for now, because new ones will follow.
    fn end(&mut self, peer: Peer, table: usize, keep: bool) {
        let from = self.changes.len();
        self.apply(table, Event { time: Default::default(), peer: Some(peer), action: Action::SessionEnd });
        if keep {
            let gone = self.changes.extract_if(from.., |change| change.1.is_none());
            self.leftover.extend(gone.map(|change| change.0));
        }
    }

    fn apply(&mut self, table: usize, event: Event) {
        let from = self.changes.len();
        if let Err(error) = self.tables[table].apply(event, &mut self.changes) {
            self.overrun = Some(error.to_string());
        }
        if !self.leftover.is_empty() {
            for (place, _) in &self.changes[from..] {
                self.leftover.remove(place);
            }
        }
    }

    /// Returns whether to take routes of a peer from before the policy, or from after it.
    fn is_taken(&mut self, id: &PeerId, post_policy: bool) -> bool {
        let Some(told) = self.peers.get_mut(id) else { return false };
        match (self.views.policy, post_policy) {
            (BmpPolicy::Pre, post) => !post,
            (BmpPolicy::Post, post) => post,
            (BmpPolicy::Either, post) if post == told.post_policy => true,
            (BmpPolicy::Either, false) => false,
            (BmpPolicy::Either, true) => {
                told.post_policy = true;
                told.open = told.families;
                let (peer, table) = (told.peer, told.table);
                self.restarted = true;
                self.end(peer, table, true);
                true
            }
        }
    }
}

impl mrt::Sink for View {
    fn wants(&mut self, _: &Peer, _: Option<u16>, _: &Path, _: Mention) -> bool {
        true
    }

    fn event(&mut self, event: Event) {
        // Use the peer as it was when it came up, because the header may have another AS.
        if let Some((peer, table)) = self.current {
            self.apply(table, Event { peer: Some(peer), ..event });
        }
    }

    fn fault(&mut self, fault: Fault) {
        if !fault.is_warning() {
            self.count(Count::Malformed);
        }
        self.error = Some(match self.current {
            Some((peer, _)) => format!("{peer}: {}", fault.reason()),
            None => fault.reason().to_string(),
        });
    }

    fn skipped(&mut self, _: Skipped, _: usize) {
        self.count(Count::Skipped);
    }
}

impl bmp::Sink for View {
    fn up(&mut self, header: &PeerHeader, families: Dual<bool>) {
        self.down(header, 0);
        let is_ours = match self.views.view {
            BmpView::AdjRibIn => !matches!(header.table, PeerTable::LocRib { .. }),
            BmpView::LocRib => matches!(header.table, PeerTable::LocRib { .. }),
        };
        let vrf = self.views.vrfs.iter().position(|vrf| vrf.0 == header.id.distinguisher);
        if let Some(table) = vrf.filter(|_| is_ours) {
            let told = PeerState { peer: header.peer, table, open: families, families, post_policy: false };
            self.peers.insert(header.id, told);
        }
    }

    fn down(&mut self, header: &PeerHeader, _: u8) {
        if let Some(told) = self.peers.remove(&header.id) {
            self.end(told.peer, told.table, false);
        }
    }

    fn routes(&mut self, header: &PeerHeader) -> bool {
        self.current = None;
        let of_view = match (self.views.view, header.table) {
            (BmpView::LocRib, PeerTable::LocRib { .. }) => true,
            (BmpView::AdjRibIn, PeerTable::AdjRibIn { post_policy }) => {
                !self.peers.contains_key(&header.id) || self.is_taken(&header.id, post_policy)
            }
            _ => false,
        };
        if !of_view {
            self.count(Count::Skipped);
            return false;
        }
        let Some(told) = self.peers.get(&header.id) else {
            self.count(Count::OtherTable);
            return false;
        };
        self.current = Some((told.peer, told.table));
        true
    }

    fn end_of_rib(&mut self, header: &PeerHeader, family: Family) {
        if let Some(told) = self.peers.get_mut(&header.id) {
            match family {
                Family::Ipv6 => told.open.v6 = false,
                _ => told.open.v4 = false,
            }
        }
    }

    fn router(&mut self, _: &str) {}

    fn ends(&mut self, reason: &str) {
        self.error = Some(format!("the router ends the session: {reason}"));
    }
}
