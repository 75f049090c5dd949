//! Tests VRFs in pairs of small tables, through small changes of every third table, and while many come and go.

use std::collections::BTreeMap;
use std::time::Duration;

use fibula::live::TableKey;
use fibula::net::{Change, Dual, Key, NextHop, Prefix, Route};
use fibula::rib::{DualRib, Rib};
use fibula::vrf::{Options, Vrf, Vrfs, internals};
use libtest_mimic::Trial;

use fibula_proof::instruction_sets;
use fibula_proof::tables::{Model, Random};
use fibula_proof::toy::hop;
use fibula_proof::verdict::Failure;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("vrf-pairs/ipv4", || pairs::<u32>(|rib| DualRib::new(rib, Rib::default()))),
        Trial::test("vrf-pairs/ipv6", || pairs::<u128>(|rib| DualRib::new(Rib::default(), rib))),
        Trial::test("vrf-changes/ipv4", changes::<u32>),
        Trial::test("vrf-changes/ipv6", changes::<u128>),
        Trial::test("vrf-streams/blocks", || streams(1 << 14)),
        Trial::test("vrf-streams/both", || streams(12)),
        Trial::test("vrf-streams/structures", || streams(0)),
    ]
}

/// The prefixes within two bits, in the middle of a key so that trees of several windows have them.
fn prefixes<K: Key>() -> Vec<Prefix<K>> {
    let at = K::BITS / 2 + 1;
    let of_len = |len: u8| {
        (0..1_u128 << len)
            .map(move |bits| Prefix::masked(K::from_bits(bits << (K::BITS - at - len)), at + len))
    };
    (0..=2).flat_map(of_len).map(|prefix| prefix.expect("the length fits")).collect()
}

/// Every table in which each prefix is absent or has one of two next hops, but for the first, which has one or none: 1,458.
fn tables<K: Key>(first: u32) -> Vec<Vec<Route<K>>> {
    let mut all: Vec<Vec<Route<K>>> = vec![Vec::new()];
    for (at, prefix) in prefixes().into_iter().enumerate() {
        let hops = if at == 0 { 1 } else { 2 };
        let with = |table: &Vec<Route<K>>, hop: NextHop| {
            let mut table = table.clone();
            table.push(Route::new(prefix, hop));
            table
        };
        let more: Vec<_> =
            all.iter().flat_map(|table| (0..hops).map(move |id| with(table, hop(first + id)))).collect();
        all.extend(more);
    }
    all
}

/// The first and last addresses of all prefixes, and those beside them.
fn keys<K: Key>() -> Vec<K> {
    let mut keys: Vec<K> = prefixes::<K>()
        .into_iter()
        .flat_map(|prefix| {
            [Some(prefix.addr()), Some(prefix.last()), prefix.addr().previous(), prefix.last().next()]
        })
        .flatten()
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn rib<K: Key>(routes: &[Route<K>]) -> Result<Rib<K>, Failure> {
    let mut rib = Rib::default();
    routes.iter().try_for_each(|&route| rib.insert(route).map(drop))?;
    Ok(rib)
}

/// The longest match, by its definition.
fn answer<K: Key>(routes: &[Route<K>], key: K) -> Option<NextHop> {
    let covers = routes.iter().filter(|route| route.prefix.contains(key));
    covers.max_by_key(|route| route.prefix.len()).map(|route| route.next_hop)
}

/// Columns of both VRFs, rows by turns, with every instruction set.
fn judge<K: TableKey>(vrfs: &Vrfs, of: &[(Vrf, &[Route<K>])], keys: &[K]) -> Result<(), Failure> {
    let mut reader = vrfs.reader()?;
    let pin = reader.pin();
    let rows: Vec<Vrf> = keys.iter().flat_map(|_| of.iter().map(|&(vrf, _)| vrf)).collect();
    let column: Vec<K> = keys.iter().flat_map(|&key| of.iter().map(move |_| key)).collect();
    let expected: Vec<_> =
        keys.iter().flat_map(|&key| of.iter().map(move |&(_, routes)| answer(routes, key))).collect();
    let mut found = vec![None; rows.len()];
    for isa in instruction_sets::of(&internals::engines::<K>()[0]) {
        pin.batch(&rows, &column[..]).isa(isa).run(&mut found);
        if let Some(at) = (0..rows.len()).find(|&at| found[at] != expected[at]) {
            let (vrf, key) = (rows[at], column[at].address());
            return Err(format!("{key} in {vrf}: {:?}, not {:?}; {of:?}", found[at], expected[at]).into());
        }
    }
    Ok(())
}

/// Every 7th table beside some fifty others: what one VRF has is never seen in the other, and what is dropped is gone.
fn pairs<K: TableKey>(both: fn(Rib<K>) -> DualRib) -> Result<(), Failure> {
    let vrfs = Vrfs::with_options(Options { patience: Duration::ZERO, ..Options::default() })?;
    let [one, two] = [vrfs.create()?, vrfs.create()?];
    let keys = keys::<K>();
    let (left, right) = (tables::<K>(1), tables::<K>(2));
    for (at, left) in left.iter().enumerate().step_by(7) {
        vrfs.swap(one, &mut both(rib(left)?))?;
        for right in right.iter().skip(at % 5).step_by(31) {
            vrfs.swap(two, &mut both(rib(right)?))?;
            judge(&vrfs, &[(one, left), (two, right)], &keys)?;
        }
        vrfs.check()?;
    }
    vrfs.delete(two)?;
    judge(&vrfs, &[(one, &left[left.len() - 1 - (left.len() - 1) % 7]), (two, &[])], &keys)
}

/// From every 3rd table every change of one prefix, and back.
fn changes<K: TableKey>() -> Result<(), Failure> {
    let vrfs = Vrfs::new()?;
    let [one, two] = [vrfs.create()?, vrfs.create()?];
    let keys = keys::<K>();
    for table in tables::<K>(1).iter().step_by(3) {
        let fill: Vec<_> = table.iter().map(|&route| Change::Insert(route)).collect();
        vrfs.apply(one, &fill)?;
        vrfs.apply(two, &fill)?;
        for prefix in prefixes::<K>() {
            let there = table.iter().find(|route| route.prefix == prefix);
            let other = there.map_or(1, |route| 3 - route.next_hop.id());
            let mut after: Vec<_> = table.iter().copied().filter(|route| route.prefix != prefix).collect();
            if there.is_some() {
                vrfs.apply(one, &[Change::Remove(prefix)])?;
                judge(&vrfs, &[(one, &after), (two, table)], &keys)?;
            }
            vrfs.apply(one, &[Change::Insert(Route::new(prefix, hop(other)))])?;
            after.push(Route::new(prefix, hop(other)));
            judge(&vrfs, &[(one, &after), (two, table)], &keys)?;
            vrfs.apply(one, &[there.map_or(Change::Remove(prefix), |&route| Change::Insert(route))])?;
        }
        vrfs.check()?;
        let empty: Vec<_> = table.iter().map(|route| Change::Remove(route.prefix)).collect();
        vrfs.apply(one, &empty)?;
        vrfs.apply(two, &empty)?;
    }
    Ok(())
}

type Tables = Dual<Model<u32>, Model<u128>>;

/// VRFs that are made, changed, swapped and dropped at random, with tables of up to so many routes in blocks.
fn streams(small_routes: usize) -> Result<(), Failure> {
    let vrfs = Vrfs::with_options(Options { small_routes, ..Options::default() })?;
    let mut models: BTreeMap<Vrf, Tables> = BTreeMap::new();
    let mut random = Random(31);
    for round in 0..150 {
        let there: Vec<Vrf> = models.keys().copied().collect();
        if there.len() < 3 || random.below(12) == 0 {
            let vrf = vrfs.create()?;
            models.insert(vrf, Tables::default());
            continue;
        }
        let vrf = there[random.below(there.len())];
        if random.below(15) == 0 {
            vrfs.delete(vrf)?;
            models.remove(&vrf);
        } else {
            let changes = Dual { v4: some(&mut random), v6: some(&mut random) };
            let model = models.entry(vrf).or_default();
            vrfs.apply_atomic(vrf, &changes.v4, &changes.v6)?;
            changes.v4.into_iter().for_each(|change| model.v4.apply(change));
            changes.v6.into_iter().for_each(|change| model.v6.apply(change));
        }
        if round % 20 == 0 {
            vrfs.maintain()?;
            vrfs.check()?;
        }
        let v4: Vec<_> = models.iter().map(|(&vrf, tables)| (vrf, tables.v4.routes())).collect();
        let v6: Vec<_> = models.iter().map(|(&vrf, tables)| (vrf, tables.v6.routes())).collect();
        judged(&vrfs, &v4)?;
        judged(&vrfs, &v6)?;
    }
    Ok(())
}

/// Judges all tables at the edges of the prefixes of one of them.
fn judged<K: TableKey>(vrfs: &Vrfs, all: &[(Vrf, Vec<Route<K>>)]) -> Result<(), Failure> {
    let of: Vec<_> = all.iter().map(|(vrf, routes)| (*vrf, &routes[..])).collect();
    let Some((_, longest)) = of.iter().max_by_key(|(_, routes)| routes.len()) else { return Ok(()) };
    let keys: Vec<K> =
        longest.iter().take(40).flat_map(|route| [route.prefix.addr(), route.prefix.last()]).collect();
    judge(vrfs, &of, &keys)
}

/// Some changes in a small part of the space.
fn some<K: Key>(random: &mut Random) -> Vec<Change<K>> {
    let mut anchors: Vec<Prefix<K>> = Vec::new();
    (0..random.below(12))
        .map(|_| {
            let prefix = random.prefix(&anchors);
            anchors.push(prefix);
            let large = [1, 1 << 14, 1 << 15, 1 << 20][random.below(4)];
            match random.below(4) {
                0 => Change::Remove(prefix),
                _ => Change::Insert(Route::new(prefix, hop(large + random.below(3) as u32))),
            }
        })
        .collect()
}
