//! Next hops, groups and shared maps against models: every number, every member and every value after every change.

use std::collections::{BTreeMap, BTreeSet};

use fibula::Table;
use fibula::hops::{HopsError, NextHops, Resolved};
use fibula::live::Options;
use fibula::map::SharedPrefixMap;
use fibula::net::{IpPrefix, NextHop, Prefix};
use libtest_mimic::Trial;

use fibula_proof::tables::Random;
use fibula_proof::verdict::Failure;

/// Maps for each kind of values, each with changes of its own. `FIBULA_TABLES=all` has four times as many.
const SHARED_MAPS: u64 = 3;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("hops-changes/few", || changes(60, 3, 150)),
        Trial::test("hops-changes/many", || changes(10, 24, 600)),
        Trial::test("hops-shared-maps/own", || shared_maps(SHARED_MAPS, 500, false)),
        Trial::test("hops-shared-maps/interning", || shared_maps(SHARED_MAPS, 500, true)),
    ]
}

fn require(holds: bool, what: &str, context: &dyn std::fmt::Debug) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(format!("hops: {what}: {context:?}").into()) }
}

/// A next hop as the model has it: its value, unless it is withdrawn.
#[derive(Debug, Clone, PartialEq)]
struct Hop {
    value: Option<u32>,
    holds: u32,
}

/// A group: its members with their weights, and the member of each flow when last looked at.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    members: BTreeMap<NextHop, u32>,
    holds: u32,
    /// Whether its members were replaced: another group may then have the same ones.
    is_changed: bool,
    flows: Vec<Option<NextHop>>,
}

#[derive(Debug, Default)]
struct Model {
    hops: BTreeMap<NextHop, Hop>,
    groups: BTreeMap<NextHop, Group>,
    routes: BTreeMap<u8, NextHop>,
}

const FLOWS: u32 = 256;

impl Model {
    /// Returns what may be in use: what is held, or routes or groups have.
    fn used(&self) -> BTreeSet<NextHop> {
        let routes: BTreeSet<_> = self.routes.values().copied().collect();
        let groups = self.groups.iter().filter(|(id, group)| group.holds > 0 || routes.contains(id));
        let mut used: BTreeSet<_> = groups.clone().map(|(&id, _)| id).collect();
        used.extend(groups.flat_map(|(_, group)| group.members.keys().copied()));
        used.extend(self.hops.iter().filter(|(_, hop)| hop.holds > 0).map(|(&id, _)| id));
        used.extend(routes);
        used
    }

    /// Forgets what is not in use.
    fn forget(&mut self) {
        let used = self.used();
        self.groups.retain(|id, _| used.contains(id));
        self.hops.retain(|id, _| used.contains(id));
    }

    fn held_hops(&self) -> Vec<NextHop> {
        self.hops.iter().filter(|(_, hop)| hop.holds > 0).map(|(&id, _)| id).collect()
    }

    fn live(&self, group: &Group) -> Vec<NextHop> {
        group.members.keys().copied().filter(|id| self.hops[id].value.is_some()).collect()
    }
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> Option<T> {
    (!from.is_empty()).then(|| from[random.below(from.len())])
}

fn members(random: &mut Random, model: &Model) -> Vec<(NextHop, u32)> {
    let held = model.held_hops();
    let mut members = BTreeMap::new();
    for _ in 0..1 + random.below(5) {
        if let Some(id) = pick(random, &held) {
            members.insert(id, 1 + random.below(5) as u32);
        }
    }
    members.into_iter().collect()
}

/// Weights without their common factor.
fn reduced(members: &[(NextHop, u32)]) -> BTreeMap<NextHop, u32> {
    let common = (1..=5).rev().find(|factor| members.iter().all(|(_, weight)| weight % factor == 0));
    members.iter().map(|&(id, weight)| (id, weight / common.unwrap_or(1))).collect()
}

/// What a change may do to flows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Effect {
    Nothing,
    /// Flows of this member go to others.
    Went(NextHop),
    /// Flows of groups of this member go to it, or to others to balance.
    Came(NextHop),
    /// Flows of this group go to other members.
    Changed(NextHop),
}

/// One random change of both.
fn change(
    hops: &NextHops<u32>,
    model: &mut Model,
    random: &mut Random,
    most: usize,
) -> Result<Effect, Failure> {
    let held = model.held_hops();
    let groups: Vec<_> =
        model.groups.iter().filter(|(_, group)| group.holds > 0).map(|(&id, _)| id).collect();
    let (hop, group) = (pick(random, &held), pick(random, &groups));
    match (random.below(12), hop, group) {
        (0..=2, ..) if held.len() < most => {
            let (value, used) = (random.below(1 << 20) as u32, model.used());
            let id = hops.add(value)?;
            require(!used.contains(&id), "a number in use is not given out", &id)?;
            model.hops.insert(id, Hop { value: Some(value), holds: 1 });
        }
        (3 | 4, Some(id), _) => {
            let value = random.below(1 << 20) as u32;
            hops.change(id, value)?;
            let hop = model.hops.get_mut(&id).expect("it is held");
            if hop.value.replace(value).is_none() {
                return Ok(Effect::Came(id));
            }
        }
        (5, Some(id), _) => {
            let hop = model.hops.get_mut(&id).expect("it is held");
            require(hops.withdraw(id)? == hop.value.take().is_some(), "withdraw", &id)?;
            return Ok(Effect::Went(id));
        }
        (6, Some(id), _) => {
            hops.release(id)?;
            model.hops.get_mut(&id).expect("it is held").holds -= 1;
        }
        (7 | 8, Some(_), _) => add_group(hops, model, &members(random, model))?,
        (9, _, Some(id)) => {
            hops.release(id)?;
            model.groups.get_mut(&id).expect("it is held").holds -= 1;
        }
        (10, Some(_), Some(id)) => {
            let members = members(random, model);
            let group = model.groups.get_mut(&id).expect("it is held");
            match hops.change_group(id, &members) {
                Err(HopsError::Shared { .. }) => require(group.holds > 1, "a group is shared", &id)?,
                Err(error) => return Err(error.into()),
                Ok(()) => {
                    require(group.holds == 1, "a shared group does not change", &id)?;
                    (group.members, group.is_changed) = (reduced(&members), true);
                    return Ok(Effect::Changed(id));
                }
            }
        }
        (11, ..) => {
            let block = random.below(6) as u8;
            let prefix: IpPrefix = Prefix::<u32>::masked(u32::from(block) << 24, 8)?.into();
            match if random.below(2) == 0 { hop } else { group } {
                Some(id) => {
                    let _ = hops.routed().insert(prefix, id)?;
                    model.routes.insert(block, id);
                }
                None => {
                    let _ = hops.routed().remove(prefix)?;
                    model.routes.remove(&block);
                }
            }
        }
        _ => {}
    }
    Ok(Effect::Nothing)
}

fn add_group(hops: &NextHops<u32>, model: &mut Model, members: &[(NextHop, u32)]) -> Result<(), Failure> {
    let (equal, used) = (reduced(members), model.used());
    let id = hops.add_group(members)?;
    let is_known = |group: &Group| group.holds > 0 && !group.is_changed && group.members == equal;
    let known = model.groups.values().any(is_known);
    match model.groups.get_mut(&id).filter(|group| group.members == equal) {
        Some(group) => group.holds += 1,
        None => {
            require(!known, "equal groups are one", &members)?;
            require(!used.contains(&id), "a number in use is not given out", &id)?;
            let group = Group { members: equal, holds: 1, is_changed: false, flows: Vec::new() };
            model.groups.insert(id, group);
        }
    }
    Ok(())
}

/// Every route and every flow, and which flows of each group have moved.
fn look(hops: &NextHops<u32>, model: &mut Model, effect: Effect) -> Result<(), Failure> {
    hops.check()?;
    let mut reader = hops.reader()?;
    let pin = reader.pin();
    for block in 0..6_u8 {
        let resolved = pin.lookup(u32::from(block) << 24 | 9, 77);
        let Some(&id) = model.routes.get(&block) else {
            require(resolved == Resolved::NoRoute, "an address without a route", &block)?;
            continue;
        };
        match model.hops.get(&id).map(|hop| hop.value) {
            Some(Some(value)) => {
                require(
                    resolved == Resolved::Found { member: id, value: &value },
                    "a route to a hop",
                    &resolved,
                )?;
            }
            Some(None) => require(resolved == Resolved::Withdrawn(id), "a withdrawn hop", &resolved)?,
            None => {
                let is_right = resolved.member().is_some() || resolved == Resolved::Withdrawn(id);
                require(is_right, "a route to a group", &resolved)?;
            }
        }
    }
    let ids: Vec<_> = (0..FLOWS).collect();
    let mut members = vec![None; ids.len()];
    let mut seen = BTreeMap::new();
    for (&id, group) in &model.groups {
        let live = model.live(group);
        let counts = pin.resolve_batch(&vec![Some(id); ids.len()], &ids, &mut members);
        require(counts.found == if live.is_empty() { 0 } else { ids.len() }, "flows are counted", &counts)?;
        for (flow, &member) in members.iter().enumerate() {
            let is_right = member.is_none_or(|member| live.contains(&member));
            require(is_right, "a flow goes to a member that is not withdrawn", &(id, flow, member))?;
            let Some(&before) = group.flows.get(flow) else { continue };
            let may_move = match effect {
                Effect::Nothing => false,
                Effect::Went(gone) => before == Some(gone),
                Effect::Came(come) => group.members.contains_key(&come),
                Effect::Changed(changed) => changed == id,
            };
            require(member == before || may_move, "only the flows move that have to", &(id, flow, effect))?;
        }
        seen.insert(id, members.clone());
    }
    for (id, flows) in seen {
        model.groups.get_mut(&id).expect("it was seen").flows = flows;
    }
    Ok(())
}

fn changes(runs: u64, most: usize, steps: usize) -> Result<(), libtest_mimic::Failed> {
    for run in 0..runs {
        let table = Table::new().map_err(Failure::from)?;
        let hops = NextHops::new(&table).map_err(Failure::from)?;
        let (mut model, mut random) = (Model::default(), Random(run + 1));
        for _ in 0..steps {
            let effect = change(&hops, &mut model, &mut random, most)?;
            model.forget();
            look(&hops, &mut model, effect)?;
        }
        // Everything goes, and all numbers are free in the end.
        for (id, holds) in model.hops.iter().map(|(&id, hop)| (id, hop.holds)) {
            (0..holds).try_for_each(|_| hops.release(id)).map_err(Failure::from)?;
        }
        for (id, holds) in model.groups.iter().map(|(&id, group)| (id, group.holds)) {
            (0..holds).try_for_each(|_| hops.release(id)).map_err(Failure::from)?;
        }
        for &block in model.routes.keys() {
            let prefix = Prefix::<u32>::masked(u32::from(block) << 24, 8).map_err(Failure::from)?;
            let _ = table.remove(prefix).map_err(Failure::from)?;
        }
        for _ in 0..6 {
            hops.maintain().map_err(Failure::from)?;
        }
        hops.check().map_err(Failure::from)?;
        let statistics = hops.statistics().map_err(Failure::from)?;
        require(statistics.free == statistics.numbers, "all numbers are free", &statistics)?;
    }
    Ok(())
}

/// A map that is shared, of both families, against a model.
fn shared_maps(runs: u64, steps: usize, interning: bool) -> Result<(), libtest_mimic::Failed> {
    for run in 0..if crate::all_cases() { 4 * runs } else { runs } {
        one_map(run, steps, interning)?;
    }
    Ok(())
}

fn one_map(run: u64, steps: usize, interning: bool) -> Result<(), Failure> {
    let options = Options::default();
    let map = if interning { SharedPrefixMap::interning(options)? } else { SharedPrefixMap::with(options)? };
    let (mut model, mut random) = (BTreeMap::<IpPrefix, String>::new(), Random(run + 100));
    let mut reader = map.reader()?;
    for step in 0..steps {
        let mut changes = Vec::new();
        for _ in 0..1 + if random.below(9) == 0 { random.below(150) } else { 0 } {
            let prefix: IpPrefix = match random.below(2) {
                0 => Prefix::masked((random.below(1 << 16) << 16) as u32, random.below(17) as u8)?.into(),
                _ => Prefix::masked((random.below(1 << 16) as u128) << 112, random.below(17) as u8)?.into(),
            };
            let value = (random.below(3) > 0).then(|| random.below(40).to_string());
            changes.push((prefix, value));
        }
        if let [(prefix, value)] = &changes[..] {
            let was = match value {
                Some(value) => map.insert(*prefix, value.clone())?,
                None => map.remove(*prefix)?,
            };
            require(was == model.contains_key(prefix), "what there was", prefix)?;
        } else {
            require(map.apply(changes.clone())? == changes.len(), "apply", &changes.len())?;
        }
        for (prefix, value) in changes {
            match value {
                Some(value) => drop(model.insert(prefix, value)),
                None => drop(model.remove(&prefix)),
            }
        }
        if step % 40 == 39 {
            let most = random.below(1 << 17) as u128;
            let is_kept = |prefix: &IpPrefix| match *prefix {
                IpPrefix::V4(prefix) => u128::from(prefix.addr()) <= most << 16,
                IpPrefix::V6(prefix) => prefix.addr() >> 112 <= most,
            };
            let before = model.len();
            model.retain(|prefix, _| is_kept(prefix));
            require(map.retain(|prefix, _| is_kept(&prefix))? == before - model.len(), "retain", &most)?;
        }
        if step % 25 == 24 {
            // Few differences or many.
            let (one_in, value) = (1 + random.below(40), random.below(40).to_string());
            model.values_mut().filter(|_| random.below(one_in) == 0).for_each(|old| old.clone_from(&value));
            map.replace(model.clone())?;
        }
        if step % 50 == 0 {
            map.check()?;
            require(map.len()? == model.len(), "len", &model.len())?;
        }
        let pin = reader.pin();
        let keys: Vec<u32> = (0..70).map(|_| (random.below(1 << 16) as u32) << 16 | 5).collect();
        let mut found = vec![None; keys.len()];
        pin.lookup_batch(&keys, &mut found);
        for (&key, found) in keys.iter().zip(&found) {
            let longest = model.iter().filter(|(prefix, _)| match prefix {
                IpPrefix::V4(prefix) => prefix.contains(key),
                IpPrefix::V6(_) => false,
            });
            let longest = longest.max_by_key(|(prefix, _)| prefix.len()).map(|(_, value)| value);
            require(*found == longest && pin.lookup(key) == longest, "lookup", &key)?;
        }
        let key = (random.below(1 << 16) as u128) << 112 | 5;
        let longest = model.iter().filter(|(prefix, _)| match prefix {
            IpPrefix::V4(_) => false,
            IpPrefix::V6(prefix) => prefix.contains(key),
        });
        let longest = longest.max_by_key(|(prefix, _)| prefix.len()).map(|(_, value)| value);
        require(pin.lookup(key) == longest, "IPv6 lookup", &key)?;
    }
    let mut all = Vec::new();
    map.for_each(|prefix, value| all.push((prefix, value.clone())))?;
    require(all.into_iter().eq(model), "all prefixes in order", &run)?;
    (0..3).try_for_each(|_| map.maintain())?;
    let expected = if interning { 40 } else { usize::MAX };
    require(
        map.value_count()? <= expected.min(map.len()?),
        "values that nothing has are dropped",
        &map.value_count()?,
    )
}
