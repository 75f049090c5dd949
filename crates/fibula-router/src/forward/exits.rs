//! How packets leave by their next hop: worked out once, and used for all packets until something changes.

use crate::neighbour::{Answer, Neighbours};
use crate::packet::ethernet::{Header, IPV4, IPV6, Mac, Tags};

use super::fabric::{Fabric, Hop, neighbour};

/// Number of places. Next hops whose numbers fall on the same place take it from each other.
const PLACES: usize = 256;
/// The key of an empty place: no next hop has such a number.
const EMPTY: u64 = u64::MAX;

/// How packets of a family leave by a next hop with a known neighbour.
// Of one line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Exit {
    key: u64,
    pub(super) port: usize,
    /// Largest packet.
    pub(super) mtu: usize,
    pub(super) interface: u16,
    pub(super) header: Header,
}

/// The exits that a worker knows.
#[derive(Debug)]
pub(super) struct Exits {
    places: Box<[Exit; PLACES]>,
    /// The changes of neighbours that were seen.
    changes: u64,
}

impl Exits {
    pub(super) fn new() -> Self {
        let header = Header::new(Mac::default(), Mac::default(), Tags::NONE, 0);
        let empty = Exit { key: EMPTY, port: 0, mtu: 0, interface: 0, header };
        Self { places: Box::new([empty; PLACES]), changes: 0 }
    }

    /// Forgets all, because the fabric is another one.
    pub(super) fn clear(&mut self) {
        self.places.iter_mut().for_each(|exit| exit.key = EMPTY);
    }

    /// Forgets all if a neighbour has changed, or has to be noted as used again.
    #[inline]
    pub(super) fn refresh(&mut self, neighbours: &Neighbours) {
        // Before any neighbour is read: a change during this burst is then seen by the next one.
        let changes = neighbours.changes();
        if changes != self.changes {
            self.changes = changes;
            self.clear();
        }
    }

    /// Returns the exit of a next hop, if its neighbour is known and its interface is up.
    #[inline]
    pub(super) fn get(
        &mut self,
        fabric: &Fabric,
        neighbours: &Neighbours,
        number: u32,
        v6: bool,
    ) -> Option<&Exit> {
        let key = u64::from(number) << 1 | u64::from(v6);
        let place = key as usize % PLACES;
        if self.places[place].key != key {
            self.places[place] = find(fabric, neighbours, number, v6, key)?;
        }
        Some(&self.places[place])
    }
}

#[cold]
fn find(fabric: &Fabric, neighbours: &Neighbours, number: u32, v6: bool, key: u64) -> Option<Exit> {
    // Not `Connected`, whose neighbours are as many as destinations.
    let Some(Hop::Via { interface, gateway }) = fabric.hops.get(number as usize)?.as_ref() else {
        return None;
    };
    let way = &fabric.interfaces[usize::from(*interface)];
    let to = neighbour(*interface, Some(*gateway), v6, 0);
    if !way.up {
        return None;
    }
    let Answer::Known(mac) = neighbours.get(&to) else { return None };
    let header = Header::new(mac, way.mac, way.tags, if v6 { IPV6 } else { IPV4 });
    Some(Exit { key, port: way.port, mtu: way.mtu, interface: *interface, header })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::network;
    use crate::neighbour::Key;

    #[test]
    fn an_exit_is_that_of_the_present_neighbour() {
        let shared = network(fibula::Table::new().expect("memory for a table"), 1, false);
        let (neighbours, fabric) = (&shared.neighbours, shared.fabric());
        let mut exits = Exits::new();
        let mac = |exits: &mut Exits, number, v6| {
            exits.refresh(neighbours);
            exits.get(&fabric, neighbours, number, v6).map(|exit| exit.header.as_bytes()[..6].to_vec())
        };
        assert_eq!(mac(&mut exits, 1, false), Some(vec![2, 0, 0, 0, 1, 1]));
        assert_eq!(mac(&mut exits, 2, false), Some(vec![2, 0, 0, 0, 1, 2]));
        let header = exits.get(&fabric, neighbours, 1, true).map(|exit| exit.header);
        assert_eq!(header.map(|header| header.as_bytes()[12..].to_vec()), Some(vec![0x86, 0xdd]));
        // Numbers that share a place, and such as mean nothing.
        assert_eq!(mac(&mut exits, 1 + PLACES as u32 / 2, false), None);
        assert_eq!(mac(&mut exits, 0, false), None);
        let key = Key::v4(1, 0x0a00_0101);
        assert!(neighbours.learn(key, Mac([2, 9, 9, 9, 9, 9]), true, true, 0));
        assert_eq!(mac(&mut exits, 1, false), Some(vec![2, 9, 9, 9, 9, 9]));
        neighbours.lose(key, true, 0);
        assert_eq!(mac(&mut exits, 1, false), None);
        assert_eq!(mac(&mut exits, 2, false), Some(vec![2, 0, 0, 0, 1, 2]));
        neighbours.forget_interface(1);
        assert_eq!(mac(&mut exits, 2, false), None);
    }

    /// Exits call for a neighbour once. Without a new call after each tick, a neighbour in constant use would look unused.
    #[test]
    fn use_is_noted_again_after_it_was_taken() {
        let shared = network(fibula::Table::new().expect("memory for a table"), 1, false);
        let (neighbours, fabric) = (&shared.neighbours, shared.fabric());
        let (mut exits, mut probes) = (Exits::new(), Vec::new());
        for round in 1..100 {
            exits.refresh(neighbours);
            assert!(exits.get(&fabric, neighbours, 1, false).is_some());
            let before = neighbours.changes();
            neighbours.tick(round, &mut probes);
            assert!(neighbours.changes() > before, "round {round}");
            let before = neighbours.changes();
            neighbours.tick(round, &mut probes);
            assert_eq!(neighbours.changes(), before, "no neighbour was used since");
        }
    }
}
