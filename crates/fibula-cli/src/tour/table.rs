//! The table of the tour: the user's, or a generated one.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fibula::memory::Limits;
use fibula::net::{Key, NextHop};
use fibula::rib::Rib;
use fibula_workload::table::{Profile, TableSpec, generate};

use crate::failure::Failure;
use crate::load;
use crate::messages::Messages;

/// Next hops as the file writes them; a generated table has numbers.
type Labels = Rc<BTreeMap<NextHop, String>>;

/// The table of one family.
pub(super) struct Toured<K> {
    pub(super) rib: Rib<K>,
    /// Number of different next hops.
    pub(super) next_hops: usize,
    /// How long it took to fill; for a file with both families, to read it.
    pub(super) fill_time: Duration,
    labels: Labels,
}

impl<K: Key> Toured<K> {
    fn new(rib: Rib<K>, fill_time: Duration, labels: Labels) -> Self {
        let next_hops = rib.iter().map(|route| route.next_hop).collect::<HashSet<_>>().len();
        Self { rib, next_hops, fill_time, labels }
    }

    pub(super) fn generated(spec: &TableSpec) -> Result<Self, Failure> {
        let routes = generate::<K>(spec, &Profile::of::<K>())
            .map_err(|error| Failure::WrongUse(format!("{}: {error}", K::FAMILY)))?;
        let mut rib = Rib::new(Limits::default());
        let start = Instant::now();
        for route in routes {
            rib.insert(route).map_err(|error| Failure::BadInput(error.to_string()))?;
        }
        Ok(Self::new(rib, start.elapsed(), Labels::default()))
    }

    /// Returns a next hop as the table writes it.
    pub(super) fn value(&self, next_hop: NextHop) -> String {
        self.labels.get(&next_hop).cloned().unwrap_or_else(|| next_hop.to_string())
    }
}

/// Loads the user's table.
pub(super) fn load(path: &Path, messages: Messages) -> Result<(Toured<u32>, Toured<u128>), Failure> {
    let start = Instant::now();
    let table = load::load(path, messages)?;
    let time = start.elapsed();
    if table.ribs.is_empty() {
        return Err(Failure::BadInput(format!(
            "{}: the table has no routes; without --table the tour generates one",
            path.display()
        )));
    }
    let labels = table.next_hops.iter().map(|(next_hop, label)| (next_hop, label.to_string()));
    let labels: Labels = Rc::new(labels.collect());
    Ok((Toured::new(table.ribs.v4, time, Rc::clone(&labels)), Toured::new(table.ribs.v6, time, labels)))
}
