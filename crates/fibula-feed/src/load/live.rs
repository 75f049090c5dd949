//! How many routes each peer has at the end of a feed.

use fibula::memory::OutOfMemory;
use fibula::net::{Family, IpPrefix};

use super::choice::{PeerCounts, Tally, slot};
use crate::event::{Path, Peer};
use crate::ledger::{Ledger, Map};

/// A change that an update makes for a peer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Announced(Path),
    Withdrawn(Path),
    SessionEnd,
}

/// The paths that peers have announced in updates and not withdrawn. Paths of table dumps are only counted, in the
/// tally.
#[derive(Debug)]
pub(super) struct Live {
    ledger: Ledger,
    peers: Map<Peer, Paths>,
}

/// Smaller than [`Path`], because there may be millions.
type Ipv4Path = (u32, u8, Option<u32>);
type Ipv6Path = ([u64; 2], u8, Option<u32>);

#[derive(Debug)]
struct Paths {
    v4: Map<Ipv4Path, ()>,
    v6: Map<Ipv6Path, ()>,
}

impl Paths {
    fn new(ledger: &Ledger) -> Self {
        Self { v4: Map::new(ledger), v6: Map::new(ledger) }
    }

    fn insert(&mut self, Path { prefix, id }: Path) -> Result<(), OutOfMemory> {
        match prefix {
            IpPrefix::V4(prefix) => self.v4.insert((prefix.addr(), prefix.len(), id), ()).map(|_| ()),
            IpPrefix::V6(prefix) => self.v6.insert((halves(prefix.addr()), prefix.len(), id), ()).map(|_| ()),
        }
    }

    /// Removes the path; returns whether it was present.
    fn remove(&mut self, Path { prefix, id }: Path) -> bool {
        match prefix {
            IpPrefix::V4(prefix) => self.v4.remove(&(prefix.addr(), prefix.len(), id)).is_some(),
            IpPrefix::V6(prefix) => self.v6.remove(&(halves(prefix.addr()), prefix.len(), id)).is_some(),
        }
    }
}

/// Returns an address as two halves. A `u128` would double the size of a path because of its alignment.
fn halves(addr: u128) -> [u64; 2] {
    [(addr >> 64) as u64, addr as u64]
}

impl Live {
    pub(super) fn new(ledger: &Ledger) -> Self {
        Self { ledger: ledger.clone(), peers: Map::new(ledger) }
    }

    /// Follows an update of the peer. If updates follow a table dump in one feed, the routes of the dump are only
    /// counted: withdrawing a path that no update announced decreases that count.
    pub(super) fn follow(
        &mut self,
        peer: Peer,
        change: Change,
        tally: &mut Tally,
    ) -> Result<(), OutOfMemory> {
        match change {
            Change::Announced(path) => {
                let ledger = &self.ledger;
                self.peers.get_or_insert_with(peer, || Paths::new(ledger))?.insert(path)
            }
            Change::Withdrawn(path) => {
                if !self.peers.get_mut(&peer).is_some_and(|paths| paths.remove(path)) {
                    let listed = &mut tally.of(peer)?.listed[slot(path.prefix.family())];
                    *listed = listed.saturating_sub(1);
                }
                Ok(())
            }
            Change::SessionEnd => {
                self.peers.remove(&peer);
                tally.of(peer)?.listed = [0; 2];
                Ok(())
            }
        }
    }

    /// Returns the number of routes that the peer has now.
    pub(super) fn routes(&self, counts: &PeerCounts) -> [u64; 2] {
        let paths = self.peers.get(&counts.peer);
        let announced = paths.map_or([0; 2], |paths| [paths.v4.len(), paths.v6.len()]);
        [Family::Ipv4, Family::Ipv6].map(|family| {
            let slot = slot(family);
            counts.listed[slot] + announced[slot] as u64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_small() {
        assert_eq!((size_of::<Ipv4Path>(), size_of::<Ipv6Path>()), (16, 32));
    }

    #[test]
    fn routes_are_what_is_announced_and_not_withdrawn() {
        let ledger = Ledger::new(None);
        let mut tally = Tally::new(&ledger);
        let mut live = Live::new(&ledger);
        let peer = Peer { address: "192.0.2.1".parse().unwrap(), asn: 1 };
        let path = |prefix: &str, id| Path { prefix: prefix.parse().unwrap(), id };
        let mut now = |changes: &[Change]| {
            changes.iter().for_each(|&change| live.follow(peer, change, &mut tally).unwrap());
            live.routes(tally.of(peer).unwrap())
        };
        let (eight, nine, six) = (path("10.0.0.0/8", None), path("10.0.0.0/9", None), path("::/0", None));
        let identified = path("10.0.0.0/8", Some(0));
        assert_eq!(now(&[Change::Announced(eight), Change::Announced(eight)]), [1, 0]);
        assert_eq!(now(&[Change::Announced(nine), Change::Announced(six)]), [2, 1]);
        assert_eq!(
            now(&[Change::Announced(identified), Change::Withdrawn(path("10.0.0.0/10", None))]),
            [3, 1]
        );
        assert_eq!(now(&[Change::Withdrawn(eight), Change::Withdrawn(eight)]), [2, 1]);
        assert_eq!(now(&[Change::Withdrawn(six)]), [2, 0]);
        assert_eq!(now(&[Change::SessionEnd]), [0, 0]);
        assert_eq!(now(&[Change::Announced(six)]), [0, 1]);
    }
}
