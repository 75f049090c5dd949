//! The tables of the VRFs.

use std::rc::Rc;

use fibula::net::{Key, NextHop, Prefix, Route};
use fibula::rib::{DualRib, Rib};
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::random::Random;
use fibula_workload::table::{Profile, TableSpec, generate};

use super::Outcome;

/// The routes of a VRF, in order.
#[derive(Clone)]
pub(super) struct VrfTables {
    pub(super) v4: Rc<Vec<Route<u32>>>,
    pub(super) v6: Rc<Vec<Route<u128>>>,
}

impl VrfTables {
    /// Returns the RIBs.
    pub(super) fn ribs(&self) -> DualRib {
        DualRib::new(rib(&self.v4), rib(&self.v6))
    }
}

/// Returns the RIB of these routes.
pub(super) fn rib<K: Key>(routes: &[Route<K>]) -> Rib<K> {
    let mut rib = Rib::default();
    for &route in routes {
        rib.insert(route).expect("memory for the routes");
    }
    // Filled one by one, it has room for more.
    rib.shrink();
    rib
}

/// Number of full tables, of templates, and routes of the others.
const FULL: usize = 10;
const TEMPLATES: u64 = 100;
const LEAST: f64 = 10.0;
const MOST: f64 = 1000.0;

/// Returns where the full tables come from.
pub(super) fn source() -> &'static str {
    if std::env::var_os("FIBULA_DATA").is_some() { "dfz4-2023 and dfz6-2024" } else { "generated" }
}

/// Returns so many VRFs, the full ones first.
pub(super) fn all(count: usize) -> Outcome<Vec<VrfTables>> {
    let base = base()?;
    let mut random = Random::new(15);
    let mut all = vec![base.clone()];
    for _ in 1..FULL {
        let v4 = Rc::new(other(&base.v4, &mut random));
        all.push(VrfTables { v4, v6: Rc::new(other(&base.v6, &mut random)) });
    }
    let templates: Vec<VrfTables> = (0..TEMPLATES).map(|_| small(&base, &mut random)).collect();
    while all.len() < count {
        let next = if random.below(2) == 0 {
            templates[random.below(TEMPLATES) as usize].clone()
        } else {
            small(&base, &mut random)
        };
        all.push(next);
    }
    Ok(all)
}

fn base() -> Outcome<VrfTables> {
    let Some(folder) = std::env::var_os("FIBULA_DATA") else {
        let v4 = Rc::new(generate(&TableSpec::ipv4(), &Profile::ipv4())?);
        return Ok(VrfTables { v4, v6: Rc::new(generate(&TableSpec::ipv6(), &Profile::ipv6())?) });
    };
    let path = |name: &str| std::path::Path::new(&folder).join(name).to_string_lossy().into_owned();
    let load = |name: &str| Loader::new(LoadOptions::default()).load(path(name).as_str());
    let (v4, v6) = (load("dfz4-2023.txt.xz")?.ribs.v4, load("dfz6-2024.txt.xz")?.ribs.v6);
    Ok(VrfTables { v4: Rc::new(v4.iter().collect()), v6: Rc::new(v6.iter().collect()) })
}

/// Returns a table of which 1 % of the routes are others: half have another next hop, a quarter is missing, and as many are
/// new, each the sibling of one that is there.
fn other<K: Key>(base: &[Route<K>], random: &mut Random) -> Vec<Route<K>> {
    let mut routes = Vec::with_capacity(base.len());
    let mut new = Vec::new();
    for &route in base {
        match random.below(400) {
            0 | 1 => {
                let next_hop = base[random.below(base.len() as u64) as usize].next_hop;
                routes.push(Route::new(route.prefix, next_hop));
            }
            2 => {}
            3 if route.prefix.len() != 0 => {
                let bit = 1_u128 << (K::BITS - route.prefix.len());
                let sibling = K::from_bits(route.prefix.addr().to_bits() ^ bit);
                let prefix = Prefix::masked(sibling, route.prefix.len()).expect("a length that fits");
                routes.push(route);
                new.push(Route::new(prefix, route.next_hop));
            }
            _ => routes.push(route),
        }
    }
    routes.extend(new);
    routes.sort_by_key(|route| route.prefix);
    routes.dedup_by_key(|route| route.prefix);
    routes
}

/// Returns the tables of a small VRF.
fn small(base: &VrfTables, random: &mut Random) -> VrfTables {
    let part = random.below(1 << 32) as f64 / f64::from(1 << 16) / f64::from(1 << 16);
    let count = (LEAST * (MOST / LEAST).powf(part)).round() as usize;
    let v6 = count / 4;
    VrfTables { v4: Rc::new(some(&base.v4, count - v6, random)), v6: Rc::new(some(&base.v6, v6, random)) }
}

/// Returns so many routes of a table, with next hops of the VRF.
pub(super) fn some<K: Key>(base: &[Route<K>], count: usize, random: &mut Random) -> Vec<Route<K>> {
    let mut routes: Vec<Route<K>> = Vec::with_capacity(count);
    while routes.len() < count {
        while routes.len() < count {
            let prefix = base[random.below(base.len() as u64) as usize].prefix;
            let next_hop = NextHop::new(1 + random.below(256) as u32).expect("not zero");
            routes.push(Route::new(prefix, next_hop));
        }
        routes.sort_by_key(|route| route.prefix);
        routes.dedup_by_key(|route| route.prefix);
    }
    routes
}
