//! VRFs that are made, filled, changed, swapped and dropped, against a model of each.

use std::collections::BTreeMap;
use std::time::Duration;

use fibula::Pinned;
use fibula::live::TableError;
use fibula::live::TableKey;
use fibula::net::{Change, Dual, Key, NextHop, Prefix, Route};
use fibula::rib::DualRib;
use fibula::vrf::{Options, Vrf, Vrfs};
use fibula_proof::tables::Model;

/// The longest stream; longer ones only slow the search.
const RECORDS: usize = 120;

/// Bytes of a record.
const RECORD: usize = 6;

/// Most VRFs.
const VRFS: u32 = 5;

type Tables = Dual<Model<u32>, Model<u128>>;

/// The models, and what the next calls use.
#[derive(Default)]
struct World {
    models: BTreeMap<Vrf, Tables>,
    changes: Dual<Vec<Change<u32>>, Vec<Change<u128>>>,
    keys: Dual<Vec<u32>, Vec<u128>>,
}

/// Reads a change from bytes, in a small part of the space so that prefixes meet.
fn change<K: Key>(record: [u8; RECORD], changes: &mut Vec<Change<K>>, keys: &mut Vec<K>) {
    let [_, id, len, one, two, three] = record.map(u128::from);
    let bits = u32::from(K::BITS);
    let address = (one << 16 | two << 8 | three) << (bits - 24) | two << (bits / 2) | three;
    let len = (len % (u128::from(K::BITS) + 1)) as u8;
    let prefix = Prefix::masked(K::from_bits(address), len).expect("the length fits");
    let id = [id as u32 % 8, 32_766 + id as u32 % 4, 0][id as usize % 3];
    changes.push(match NextHop::new(id) {
        Some(next_hop) => Change::Insert(Route::new(prefix, next_hop)),
        None => Change::Remove(prefix),
    });
    keys.extend([prefix.addr(), prefix.last()]);
}

impl World {
    /// Does what a record says.
    fn act(&mut self, vrfs: &Vrfs, record: [u8; RECORD]) {
        let vrf = Vrf::new(u32::from(record[1]) % (VRFS + 1));
        match record[0] % 16 {
            0..=4 => change(record, &mut self.changes.v4, &mut self.keys.v4),
            5..=8 => change(record, &mut self.changes.v6, &mut self.keys.v6),
            9 | 10 => self.create(vrfs),
            11 => self.delete(vrfs, vrf),
            12 => self.swap(vrfs, vrf),
            13 => vrfs.maintain().expect("nothing is refused"),
            _ => self.apply(vrfs, vrf),
        }
    }

    fn create(&mut self, vrfs: &Vrfs) {
        match vrfs.create() {
            Ok(vrf) => assert!(self.models.insert(vrf, Tables::default()).is_none(), "{vrf} is in use"),
            Err(error) => {
                assert_eq!((error, self.models.len()), (TableError::NoVrfLeft { vrfs: VRFS }, VRFS as usize));
            }
        }
    }

    fn delete(&mut self, vrfs: &Vrfs, vrf: Vrf) {
        match (vrfs.delete(vrf), self.models.remove(&vrf)) {
            (Ok(routes), Some(model)) => same(&routes, &model),
            (routes, model) => assert!(routes.is_err() && model.is_none(), "{vrf}"),
        }
    }

    /// The changes make the new routes.
    fn swap(&mut self, vrfs: &Vrfs, vrf: Vrf) {
        let changes = std::mem::take(&mut self.changes);
        let (mut routes, mut model) = (DualRib::default(), Tables::default());
        routes.v4.apply(&changes.v4).expect("memory");
        routes.v6.apply(&changes.v6).expect("memory");
        follow_all(&mut model, &changes);
        let swapped = vrfs.swap(vrf, &mut routes);
        match self.models.get_mut(&vrf) {
            Some(of_vrf) => {
                swapped.expect("nothing is refused");
                same(&routes, of_vrf);
                *of_vrf = model;
            }
            None => {
                assert_eq!(swapped, Err(TableError::UnknownVrf(vrf)));
                same(&routes, &model);
            }
        }
    }

    fn apply(&mut self, vrfs: &Vrfs, vrf: Vrf) {
        let changes = std::mem::take(&mut self.changes);
        let applied = vrfs.apply_atomic(vrf, &changes.v4, &changes.v6);
        match self.models.get_mut(&vrf) {
            Some(model) => {
                applied.expect("nothing is refused");
                follow_all(model, &changes);
            }
            None => assert_eq!(applied, Err(TableError::UnknownVrf(vrf))),
        }
    }

    /// Compares columns of all keys in all VRFs with the models.
    fn compare(&self, vrfs: &Vrfs) {
        let mut reader = vrfs.reader().expect("memory for a reader");
        let pin = reader.pin();
        self.column(&pin, &self.keys.v4, |tables| &tables.v4);
        self.column(&pin, &self.keys.v6, |tables| &tables.v6);
    }

    fn column<K: TableKey>(&self, pin: &Pinned<'_, Vrfs>, keys: &[K], of: fn(&Tables) -> &Model<K>) {
        let rows: Vec<Vrf> = (0..=VRFS).flat_map(|vrf| keys.iter().map(move |_| Vrf::new(vrf))).collect();
        let keys: Vec<K> = keys.repeat(VRFS as usize + 1);
        let mut found = vec![None; keys.len()];
        pin.lookup_batch(&rows, &keys, &mut found);
        for ((&vrf, &key), &found) in rows.iter().zip(&keys).zip(&found) {
            let model = self.models.get(&vrf).map(of);
            let expected = model.and_then(|model| model.lookup(key)).map(|route| route.next_hop);
            assert_eq!((found, pin.lookup(vrf, key)), (expected, expected), "{} in {vrf}", key.address());
        }
    }
}

fn follow_all(model: &mut Tables, changes: &Dual<Vec<Change<u32>>, Vec<Change<u128>>>) {
    changes.v4.iter().for_each(|&change| model.v4.apply(change));
    changes.v6.iter().for_each(|&change| model.v6.apply(change));
}

fn same(routes: &DualRib, model: &Tables) {
    assert!(routes.v4.iter().eq(model.v4.routes()) && routes.v6.iter().eq(model.v6.routes()));
}

/// Follows a stream of records.
///
/// # Panics
/// On the first difference, and when an invariant does not hold.
pub(crate) fn follow(bytes: &[u8]) {
    let options = Options { vrfs: VRFS, small_routes: 6, patience: Duration::ZERO, ..Options::default() };
    let vrfs = Vrfs::with_options(options).expect("memory for nothing");
    let mut world = World::default();
    for record in bytes.as_chunks().0.iter().take(RECORDS) {
        world.act(&vrfs, *record);
    }
    world.compare(&vrfs);
    vrfs.check().unwrap_or_else(|error| panic!("{error}"));
}
