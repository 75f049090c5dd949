//! Real tables, where `FIBULA_DATA` names their folder: every structure against the oracle at the first and last address of
//! every prefix, their neighbours, and millions of random addresses. An engine may refuse a table that is beyond the limits of its
//! registry entry, if [`is_beyond`] names the two; that test is then ignored, with the reason.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use fibula::fib::registry::{Engine, Role};
use fibula::net::{Key, NextHop};
use fibula::rib::Rib;
use libtest_mimic::{Completion, Trial};

use crate::{Failure, oracle};
use fibula_proof::instruction_sets;
use fibula_proof::subject::{Subject, Tested};
use fibula_proof::tables::Random;
use fibula_proof::verdict::edges;

/// The variable that names the folder of real tables.
pub(super) const FIBULA_DATA: &str = "FIBULA_DATA";

/// The tables that are looked for.
const TABLES: [&str; 5] =
    ["dfz4-2023", "dfz4-2023-origin-as", "pch4-2015", "dfz6-2024", "dfz6-2024-origin-as"];

/// Random addresses looked up in each: two million, or ten with `FIBULA_TABLES=all`.
fn random_keys() -> usize {
    if crate::all_cases() { 10_000_000 } else { 2_000_000 }
}

/// Keys looked up in an oracle for which the table is too large.
const SAMPLE: usize = 200;

/// Of this many keys, one is also looked up alone.
const ALONE: usize = 16;

/// Whether a table is known to be beyond the limits of an engine: it has more next hops, or more objects for these, than the engine's
/// entries can name. Another engine that refuses a table fails its test.
fn is_beyond(table: &str, engine: &str) -> bool {
    let names_few = ["dir-24-8", "sail", "vrf-block"].contains(&engine) || engine.starts_with("dxr-");
    names_few && table.ends_with("-origin-as")
}

/// The folder, where the variable is set.
pub(super) fn folder() -> Option<PathBuf> {
    std::env::var_os(FIBULA_DATA).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub(super) fn trials() -> Vec<Trial> {
    TABLES
        .iter()
        .flat_map(|&table| if table.contains('6') { family::<u128>(table) } else { family::<u32>(table) })
        .collect()
}

/// A table with its probes and their answers.
struct Table<K> {
    rib: Rib<K>,
    keys: Vec<K>,
    expected: Vec<Option<NextHop>>,
}

pub(super) trait Loaded: Tested {
    fn rib(table: fibula_feed::LoadedRoutes) -> Rib<Self>;
}

impl Loaded for u32 {
    fn rib(table: fibula_feed::LoadedRoutes) -> Rib<Self> {
        table.ribs.v4
    }
}

impl Loaded for u128 {
    fn rib(table: fibula_feed::LoadedRoutes) -> Rib<Self> {
        table.ribs.v6
    }
}

fn family<K: Loaded>(table: &'static str) -> Vec<Trial> {
    let loaded: Arc<OnceLock<Result<Table<K>, String>>> = Arc::default();
    let one = |engine: Engine<K>| {
        let loaded = Arc::clone(&loaded);
        crate::refusable_trial(&format!("data-{table}"), engine, move |engine| {
            if folder().is_none() {
                return Ok(Completion::ignored_with(format!("{FIBULA_DATA} is not set")));
            }
            let name = table;
            let table = loaded.get_or_init(|| load(name).map_err(|failure| message(&failure)));
            judge(name, engine, table.as_ref().map_err(|message| Failure::from(message.as_str()))?)
        })
    };
    K::entries().into_iter().map(one).collect()
}

fn message(failure: &Failure) -> String {
    failure.message().unwrap_or("the table could not be loaded").to_owned()
}

fn load<K: Loaded>(name: &str) -> Result<Table<K>, Failure> {
    let folder = folder().ok_or(format!("{FIBULA_DATA} is not set"))?;
    let path = folder.join(format!("{name}.txt.xz"));
    let table = fibula_feed::Loader::new(fibula_feed::LoadOptions::default()).load(&path)?;
    let rib = K::rib(table);
    if rib.is_empty() {
        return Err(format!("{}: no route of this family", path.display()).into());
    }
    let mut random = Random(6);
    let mut keys = edges(rib.iter().map(|route| route.prefix));
    let routes: Vec<_> = rib.iter().collect();
    // Random over the whole space for IPv4; IPv6 is too sparse for that, so half of its keys are inside prefixes.
    keys.extend((0..random_keys()).map(|at| {
        let prefix = routes[random.below(routes.len())].prefix;
        if K::BITS == 128 && at % 2 == 0 { random.inside(prefix) } else { random.key() }
    }));
    let expected = oracle("", &routes, &keys)?;
    Ok(Table { rib, keys, expected })
}

fn judge<K: Key>(file: &str, engine: Engine<K>, table: &Table<K>) -> Result<Completion, Failure> {
    let subject = match Subject::build_within_limits(engine, &table.rib)? {
        Ok(subject) => subject,
        Err(refusal) if is_beyond(file, engine.name) => {
            return Ok(Completion::ignored_with(format!("beyond its limits: {refusal}")));
        }
        Err(refusal) => return Err(format!("{} refuses {file}: {refusal}", engine.name).into()),
    };
    subject.fib.check()?;
    let count = match engine.role {
        Role::Oracle { routes_limit } if routes_limit < table.rib.len() => SAMPLE,
        _ => table.keys.len(),
    };
    // The sample is spread over all keys.
    let step = table.keys.len() / count;
    let keys: Vec<K> = table.keys.iter().step_by(step).copied().collect();
    let expected: Vec<_> = table.expected.iter().step_by(step).copied().collect();
    let name = engine.name;
    if let Some(at) = (0..keys.len()).step_by(ALONE).find(|&at| subject.fib.lookup(keys[at]) != expected[at])
    {
        return Err(format!("{name}: {}: another answer when looked up alone", keys[at].address()).into());
    }
    if matches!(engine.role, Role::Oracle { .. })
        && let Some(at) = (0..keys.len()).find(|&at| table.rib.lookup(keys[at]) != expected[at])
    {
        return Err(format!("{name}: {}: the RIB answers differently", keys[at].address()).into());
    }
    let mut results = vec![None; keys.len()];
    for isa in instruction_sets::of(&engine) {
        results.fill(NextHop::new(u32::MAX));
        subject.fib.lookup_batch_on(isa, &keys, &mut results);
        let mut wrong = (0..keys.len()).filter(|&at| results[at] != expected[at]);
        if let Some(at) = wrong.next() {
            let (address, got, right) = (keys[at].address(), results[at], expected[at]);
            let more = format!("and {} more of {} keys", wrong.count(), keys.len());
            let isa = isa.isa();
            return Err(format!("{name}, {isa}: {address}: {got:?} where {right:?} is right, {more}").into());
        }
    }
    Ok(Completion::Completed)
}
