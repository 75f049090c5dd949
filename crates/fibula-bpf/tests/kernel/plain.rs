//! The header of programs, compiled as plain C, against the routes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::process::Command;

use fibula::rib::Rib;
use fibula_bpf::{BpfTable, Engine, Options};
use fibula_proof::verdict::{Failure, edges};
use libtest_mimic::{Completion, Trial};

use super::support::{
    PATTERNS, Words, compile, crate_path, defines, done, hostile, judge, keys_of, narrow, no_compiler,
    read_words, rib_of, table_of, trial, write_words,
};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = of_family::<u32>();
    trials.extend(of_family::<u128>());
    trials
}

fn of_family<K: Words>() -> Vec<Trial> {
    let all = K::ENGINES.iter().flat_map(|&engine| {
        let name = |kind: &str| format!("plain/{kind}/{}", engine.name());
        let real = move || match (no_compiler(), std::env::var_os("FIBULA_DATA")) {
            (Some(reason), _) => Ok(Completion::ignored_with(reason)),
            (_, None) => Ok(Completion::ignored_with("FIBULA_DATA is not set")),
            (_, Some(folder)) => {
                let path = Path::new(&folder).join(format!("{}.txt.xz", K::REAL));
                let loaded = fibula_feed::Loader::new(fibula_feed::LoadOptions::default()).load(&path)?;
                full::<K>(engine, &K::one(loaded.ribs))?;
                Ok(Completion::Completed)
            }
        };
        [
            trial(name("narrow"), no_compiler, move || narrow_tables::<K>(engine)),
            trial(name("hostile"), no_compiler, move || {
                let rib = hostile::<K>(20_000, 77);
                let keys = edges(rib.iter().map(|route| route.prefix));
                Programs::new()?.compare(engine, &rib, &keys)
            }),
            trial(name("shaped"), no_compiler, move || full::<K>(engine, &rib_of(K::shaped(100_000)))),
            Trial::ignorable_test(format!("plain/real/{}", engine.name()), real),
        ]
    });
    all.collect()
}

fn full<K: Words>(engine: Engine, rib: &Rib<K>) -> Result<(), Failure> {
    let keys: Vec<K> = PATTERNS.iter().flat_map(|pattern| keys_of(pattern, rib, 1 << 18)).collect();
    Programs::new()?.compare(engine, rib, &keys)
}

/// Tables of three bits, at every place where engines cut keys. `FIBULA_TABLES=all` has all of them, and with `FIBULA_SHARE=3/12`
/// one part in twelve, from the third on.
fn narrow_tables<K: Words>(engine: Engine) -> Result<(), Failure> {
    let shifts: &[u8] = if K::BITS == 32 { &[0, 6, 7, 13] } else { &[0, 62, 79, 90] };
    let all = std::env::var_os("FIBULA_TABLES").is_some_and(|which| which == "all");
    const TABLES: usize = 14_348_907;
    let (step, each) = if all { (1, 1 << 14) } else { (1_021, 1 << 13) };
    let (share, shares) = share()?;
    let mut programs = Programs::new()?;
    for &shift in shifts {
        let places = u128::from(K::BITS - 3 - shift).min(14) as u32;
        let each = each.min(1 << places);
        for first in (0..TABLES).step_by(step * each).skip(share - 1).step_by(shares) {
            let rib = narrow::<K>(shift, first, step, each);
            let mut keys = Vec::new();
            for table in 0..each as u128 {
                for part in 0..8u128 {
                    let bits = table << (3 + shift) | part << shift;
                    keys.extend([bits, bits | ((1 << shift) - 1)].map(K::from_bits));
                }
            }
            programs.compare(engine, &rib, &keys)?;
        }
    }
    Ok(())
}

/// Returns the part that is wanted: k of n.
fn share() -> Result<(usize, usize), Failure> {
    let Ok(wanted) = std::env::var("FIBULA_SHARE") else { return Ok((1, 1)) };
    let parts = wanted.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts
        .filter(|&(k, n): &(usize, usize)| (1..=n).contains(&k))
        .ok_or_else(|| format!("FIBULA_SHARE: '{wanted}' is no share: 1/12 to 12/12 are").into())
}

/// The header compiled as plain C, once for each set of options.
struct Programs {
    folder: tempfile::TempDir,
    compiled: BTreeMap<Vec<String>, PathBuf>,
}

impl Programs {
    fn new() -> Result<Self, Failure> {
        Ok(Self { folder: tempfile::tempdir()?, compiled: BTreeMap::new() })
    }

    fn program(&mut self, options: &Options) -> Result<&Path, Failure> {
        let number = self.compiled.len();
        match self.compiled.entry(defines(options)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let program = self.folder.path().join(format!("plain-{number}"));
                let source = crate_path("tests/c/plain.c");
                compile(&source, &[&new.key()[..], &["-static".to_owned()]].concat(), &[], &program)?;
                Ok(new.insert(program))
            }
        }
    }

    /// Compares answers of the header, and of lookups in user space, with those of the routes.
    fn compare<K: Words>(&mut self, engine: Engine, rib: &Rib<K>, keys: &[K]) -> Result<(), Failure> {
        let table = table_of(rib, engine)?;
        let options = Options::fitting(engine, &table, 254)?;
        let maps = BpfTable::in_memory(&options)?;
        maps.fill(&table)?;
        let file = self.folder.path().join("words");
        let (state, arrays) = maps.image();
        let words = [state].into_iter().chain(arrays.into_iter().flatten());
        write_words(&file, words.chain(keys.iter().flat_map(|key| key.words())))?;
        let program = self.program(&options)?;
        // FIBULA_BPF_CC compiles for another machine, which FIBULA_BPF_RUN emulates.
        let mut run = match std::env::var_os("FIBULA_BPF_RUN") {
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(program);
                command
            }
            None => Command::new(program),
        };
        let found = read_words(&done(run.arg(file))?.stdout);
        judge(keys, &found, rib, "plain C")?;
        let found: Vec<u32> = keys.iter().map(|key| maps.get(address(*key)).unwrap_or(u32::MAX)).collect();
        judge(keys, &found, rib, "user space")
    }
}

fn address<K: Words>(key: K) -> std::net::IpAddr {
    let bits = key.to_bits();
    if K::BITS == 32 { (bits as u32).to_be_bytes().into() } else { bits.to_be_bytes().into() }
}
