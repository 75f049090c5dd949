//! What every structure answers over fixed tables, as a hash, and the bytes that it takes, against `records/answers.tsv`: what must
//! stay when code moves or gets faster. Narrow tables always, full ones where `FIBULA_DATA` names their folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use fibula::fib::registry::Engine;
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice, Toy};
use libtest_mimic::{Completion, Trial};

use crate::data::{FIBULA_DATA, Loaded, folder};
use crate::{Failure, refusable_trial, trial};
use fibula_proof::subject::{Tested, others};
use fibula_proof::tables::Random;
use fibula_proof::toy::{hop, keys, prefixes};

/// Narrow tables: so many, of no route to nearly all prefixes.
const TABLES: u64 = 200;

/// Structures that take minutes over a full table.
const SLOW: [&str; 1] = ["linear"];

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = toys::<3>();
    trials.extend(toys::<8>());
    trials.extend(full::<u32>("dfz4-2023"));
    trials.extend(full::<u128>("dfz6-2024"));
    trials
}

/// The recorded lines, by table and structure.
fn recorded() -> &'static BTreeMap<(String, String), String> {
    static RECORDED: OnceLock<BTreeMap<(String, String), String>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records/answers.tsv");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let line = |line: &str| {
            let mut fields = line.splitn(3, '\t').map(str::to_owned);
            Some(((fields.next()?, fields.next()?), fields.next()?))
        };
        lines.filter_map(line).collect()
    })
}

fn compare(table: &str, name: &str, now: &str) -> Result<(), Failure> {
    match recorded().get(&(table.to_owned(), name.to_owned())) {
        Some(before) if before == now => Ok(()),
        before => Err(format!("records/answers.tsv has {before:?}; now:\n{table}\t{name}\t{now}").into()),
    }
}

/// Not for keys that an enemy chooses.
struct Hash(u64);

impl Hash {
    fn add(&mut self, answer: Option<NextHop>) {
        let word = answer.map_or(0, NextHop::id);
        self.0 = (self.0 ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
}

fn toys<const WIDTH: u8>() -> Vec<Trial>
where
    Toy<WIDTH>: Tested,
{
    let others = others::<Toy<WIDTH>>();
    let entries = Toy::<WIDTH>::entries().into_iter().filter(|entry| !others.contains(entry));
    entries.map(|engine| trial("answers", engine, toy::<WIDTH>)).collect()
}

fn toy<const WIDTH: u8>(engine: Engine<Toy<WIDTH>>) -> Result<(), Failure> {
    let (prefixes, keys) = (in_order_of_length::<WIDTH>(), keys::<Toy<WIDTH>>());
    let (mut hash, mut bytes, mut refused, mut random) = (Hash(1), 0, 0, Random(1));
    for table in 0..TABLES {
        let mut routes = Vec::new();
        for &prefix in &prefixes {
            if random.bits() % TABLES < table {
                // Ids at the edges of what structures store.
                let id = [1, 2, 3, 300, 70_000][(random.bits() % 5) as usize];
                routes.push(Route::new(prefix, hop(id)));
            }
        }
        routes.sort_unstable();
        let Ok(fib) = engine.build(&RouteSlice::new(&routes)?, Limits::default()) else {
            refused += 1;
            continue;
        };
        bytes += fib.memory().lookup_bytes;
        keys.iter().for_each(|&key| hash.add(fib.lookup_key(key)));
        let mut found = vec![None; keys.len()];
        fib.lookup_batch(&keys, &mut found);
        found.iter().for_each(|&found| hash.add(found));
    }
    compare(&format!("toy-{WIDTH}"), engine.name, &format!("{:016x}\t{bytes}\t{refused}", hash.0))
}

fn in_order_of_length<const WIDTH: u8>() -> Vec<Prefix<Toy<WIDTH>>> {
    let mut prefixes = prefixes::<Toy<WIDTH>>();
    prefixes.sort_by_key(|prefix| prefix.len());
    prefixes
}

/// A full table with its probes.
struct Full<K> {
    routes: Vec<Route<K>>,
    keys: Vec<K>,
}

fn full<K: Loaded>(table: &'static str) -> Vec<Trial> {
    let loaded: Arc<OnceLock<Result<Full<K>, String>>> = Arc::default();
    let one = |engine: Engine<K>| {
        let loaded = Arc::clone(&loaded);
        refusable_trial(&format!("full-answers-{table}"), engine, move |engine| {
            let Some(folder) = folder() else {
                return Ok(Completion::ignored_with(format!("{FIBULA_DATA} is not set")));
            };
            let path = folder.join(format!("{table}.txt.xz"));
            let full = loaded.get_or_init(|| load::<K>(&path).map_err(|failure| failure_text(&failure)));
            judge(table, engine, full.as_ref().map_err(|text| Failure::from(text.as_str()))?)
        })
    };
    let mut entries = fibula_published::engines::<K>();
    entries.extend(fibula_published::variants::<K>());
    entries.into_iter().filter(|entry| !SLOW.contains(&entry.name)).map(one).collect()
}

fn failure_text(failure: &Failure) -> String {
    failure.message().unwrap_or("the table could not be loaded").to_owned()
}

fn load<K: Loaded>(path: &Path) -> Result<Full<K>, Failure> {
    let table = fibula_feed::Loader::new(fibula_feed::LoadOptions::default()).load(path)?;
    let routes: Vec<Route<K>> = K::rib(table).iter().collect();
    let mut keys = Vec::new();
    for route in &routes {
        let (first, last) = (route.prefix.addr(), route.prefix.last());
        keys.extend([first, last]);
        keys.extend(last.next());
        keys.extend(first.previous());
    }
    let mut random = Random(1);
    keys.extend((0..1 << 20).map(|_| random.key::<K>()));
    Ok(Full { routes, keys })
}

fn judge<K: Key>(table: &str, engine: Engine<K>, full: &Full<K>) -> Result<Completion, Failure> {
    let slice = RouteSlice::new(&full.routes)?;
    let line = match engine.build(&slice, Limits::default()) {
        Ok(fib) => {
            let mut hash = Hash(1);
            let mut found = vec![None; full.keys.len()];
            fib.lookup_batch(&full.keys, &mut found);
            found.iter().for_each(|&found| hash.add(found));
            full.keys.iter().step_by(7).for_each(|&key| hash.add(fib.lookup_key(key)));
            let (memory, lives) = (fib.memory(), engine.build_updatable(&slice, Limits::default())?);
            let live = lives.memory().lookup_bytes;
            format!("{:016x}\t{}\t{}\t{live}", hash.0, memory.lookup_bytes, memory.held_bytes())
        }
        Err(error) => error.to_string(),
    };
    compare(table, engine.name, &line).map(|()| Completion::Completed)
}
