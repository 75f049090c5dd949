//! Readers of a table, in the middle of its changes.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use fibula::live::{Listener, Reader, Stored, Structure};
use fibula::net::NextHop;

/// Stores of a turn that lookups are made at: one of a short prefix may be tens of thousands.
const LOOKS: usize = 12;

/// What lookups have found since it was emptied, for each sample, and how often they were made.
pub type Seen = Arc<Mutex<(Vec<BTreeSet<Option<NextHop>>>, usize)>>;

/// Looks addresses up at every store of a table.
pub struct Watch {
    pub reader: Reader,
    pub samples: Arc<[IpAddr]>,
    pub seen: Seen,
}

impl Watch {
    fn look(&mut self) {
        let mut seen = self.seen.lock().unwrap();
        seen.1 += 1;
        if seen.1 > LOOKS {
            return;
        }
        let pinned = self.reader.pin();
        for (sample, seen) in self.samples.iter().zip(&mut seen.0) {
            seen.insert(pinned.lookup(*sample));
        }
    }
}

impl Listener for Watch {
    fn structure(&mut self, _: &Structure<'_>) {
        self.look();
    }

    fn stored(&mut self, _: &Stored<'_>) {
        self.look();
    }

    fn published(&mut self, _: u64) {
        self.look();
    }
}
