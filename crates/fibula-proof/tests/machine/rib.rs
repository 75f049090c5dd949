//! The RIB against a model: exact and longest match, covers, subnets, parents, overlaps, order, walks.

use fibula::memory::Limits;
use fibula::net::{Change, Key, NextHop, Prefix, Route, Routes, Toy};
use fibula::rib::Rib;
use libtest_mimic::Trial;

use fibula_proof::tables::{Model, Random};
use fibula_proof::toy::{hop, keys, prefixes};
use fibula_proof::verdict::Failure;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("rib-tables/toy3", || every_table().map_err(Failure::from)),
        Trial::test("rib-changes/toy8", || changes::<Toy<8>>(400, 600)),
        Trial::test("rib-changes/toy16", || changes::<Toy<16>>(100, 1_500)),
        Trial::test("rib-changes/ipv4", || changes::<u32>(30, 3_000)),
        Trial::test("rib-changes/ipv6", || changes::<u128>(30, 3_000)),
    ]
}

fn require(holds: bool, what: &str, context: &dyn std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("rib: {what}: {context:?}")) }
}

/// Every query about one prefix.
fn ask<K: Key>(rib: &Rib<K>, model: &Model<K>, prefix: Prefix<K>) -> Result<(), String> {
    let route = |(&prefix, &next_hop): (&Prefix<K>, &NextHop)| Route::new(prefix, next_hop);
    let routes = || model.0.iter().map(route);
    let inside: Vec<_> = routes().filter(|route| prefix.covers(route.prefix)).collect();
    let around: Vec<_> = routes().filter(|route| route.prefix.covers(prefix)).collect();
    let proper = around.iter().rfind(|route| route.prefix != prefix).copied();
    require(rib.get(prefix) == model.0.get(&prefix).copied(), "get", &prefix)?;
    require(rib.contains(prefix) == model.0.contains_key(&prefix), "contains", &prefix)?;
    require(rib.subnets(prefix).collect::<Vec<_>>() == inside, "subnets", &prefix)?;
    require(rib.covers(prefix).collect::<Vec<_>>() == around, "covers", &prefix)?;
    require(rib.parent(prefix) == proper, "parent", &prefix)?;
    require(Routes::parent(rib, prefix) == proper, "parent of Routes", &prefix)?;
    require(rib.overlaps(prefix) != (inside.is_empty() && around.is_empty()), "overlaps", &prefix)?;
    let mut walked = Vec::new();
    let _ = rib.visit(prefix, &mut |route| {
        walked.push(route);
        std::ops::ControlFlow::Continue(())
    });
    require(walked == inside, "visit", &prefix)?;
    walked.clear();
    let _ = rib.visit_from_parent(prefix, &mut |route| {
        walked.push(route);
        std::ops::ControlFlow::Continue(())
    });
    let expected: Vec<_> = proper.into_iter().chain(inside).collect();
    require(walked == expected, "visit_from_parent", &prefix)
}

fn whole<K: Key>(rib: &Rib<K>, model: &Model<K>) -> Result<(), String> {
    rib.check().map_err(|error| format!("rib: {error}"))?;
    require(rib.len() == model.0.len(), "len", &rib.len())?;
    require(rib.is_empty() == model.0.is_empty(), "is_empty", &rib.len())?;
    require(rib.iter().collect::<Vec<_>>() == model.routes(), "order", &rib.len())
}

fn address<K: Key>(rib: &Rib<K>, model: &Model<K>, key: K) -> Result<(), String> {
    let expected = model.lookup(key);
    require(rib.lookup_prefix(key) == expected, "lookup_prefix", &key)?;
    require(rib.lookup(key) == expected.map(|route| route.next_hop), "lookup", &key)
}

/// Each of the 2^15 tables of three bits, reached from its neighbour by one change, and queried for everything.
fn every_table() -> Result<(), String> {
    type K = Toy<3>;
    let (prefixes, keys) = (prefixes::<K>(), keys::<K>());
    let mut rib = Rib::<K>::default();
    let mut model = Model::<K>::default();
    for step in 1..1u32 << 15 {
        // The binary-reflected Gray code changes the bit at the lowest set bit of the step.
        let prefix = prefixes[step.trailing_zeros() as usize];
        let change = if model.0.contains_key(&prefix) {
            Change::Remove(prefix)
        } else {
            Change::Insert(Route::new(prefix, hop(1 + step % 5)))
        };
        let before = model.0.get(&prefix).copied();
        let old = match change {
            Change::Insert(route) => rib.insert(route).map_err(|error| error.to_string())?,
            Change::Remove(prefix) => rib.remove(prefix),
        };
        require(old == before, "what was there before", &change)?;
        model.apply(change);
        whole(&rib, &model)?;
        keys.iter().try_for_each(|&key| address(&rib, &model, key))?;
        prefixes.iter().try_for_each(|&prefix| ask(&rib, &model, prefix))?;
    }
    Ok(())
}

/// Random batches of changes.
fn changes<K: Key>(rounds: usize, count: usize) -> Result<(), Failure> {
    let mut random = Random(5);
    let mut model = Model::<K>::random(&mut random, count / 2, 9);
    let mut rib = Rib::new(Limits::default());
    rib.apply(&model.routes().into_iter().map(Change::Insert).collect::<Vec<_>>())?;
    for _ in 0..rounds {
        let mut batch = Vec::new();
        for _ in 0..random.below(count / 10) {
            let change = model.change(&mut random, 9);
            model.apply(change);
            batch.push(change);
        }
        rib.apply(&batch)?;
        whole(&rib, &model)?;
        for change in batch.iter().take(20) {
            ask(&rib, &model, change.prefix())?;
            ask(&rib, &model, random.prefix(&[change.prefix()]))?;
        }
        for _ in 0..50 {
            let key = random.key();
            address(&rib, &model, key)?;
        }
    }
    let mut cleared = rib.clone();
    cleared.clear();
    whole(&cleared, &Model::default())?;
    cleared.apply(&model.routes().into_iter().map(Change::Insert).collect::<Vec<_>>())?;
    whole(&cleared, &model)?;
    for prefix in model.0.keys() {
        rib.remove(*prefix);
    }
    whole(&rib, &Model::default())?;
    Ok(())
}
