//! The header of programs, compiled as plain C, against the routes.

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
                let path = std::path::Path::new(&folder).join(format!("{}.txt.xz", K::REAL));
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
                compare(engine, &rib, &keys)
            }),
            trial(name("shaped"), no_compiler, move || full::<K>(engine, &rib_of(K::shaped(100_000)))),
            Trial::ignorable_test(format!("plain/real/{}", engine.name()), real),
        ]
    });
    all.collect()
}

fn full<K: Words>(engine: Engine, rib: &Rib<K>) -> Result<(), Failure> {
    let keys: Vec<K> = PATTERNS.iter().flat_map(|pattern| keys_of(pattern, rib, 1 << 18)).collect();
    compare(engine, rib, &keys)
}

/// Tables of three bits, at every place where engines cut keys. `FIBULA_TABLES=all` has all of them.
fn narrow_tables<K: Words>(engine: Engine) -> Result<(), Failure> {
    let shifts: &[u8] = if K::BITS == 32 { &[0, 6, 7, 13] } else { &[0, 62, 79, 90] };
    let all = std::env::var_os("FIBULA_TABLES").is_some_and(|which| which == "all");
    const TABLES: usize = 14_348_907;
    let (step, each) = if all { (1, 1 << 14) } else { (1_021, 1 << 13) };
    for &shift in shifts {
        let mut first = 0;
        while first < TABLES {
            let rib = narrow::<K>(shift, first, step, each);
            let mut keys = Vec::new();
            let places = u128::from(K::BITS - 3 - shift).min(14) as u32;
            for table in 0..each.min(1 << places) as u128 {
                for part in 0..8u128 {
                    let bits = table << (3 + shift) | part << shift;
                    keys.extend([bits, bits | ((1 << shift) - 1)].map(K::from_bits));
                }
            }
            compare(engine, &rib, &keys)?;
            first += step * each.min(1 << places);
        }
    }
    Ok(())
}

/// Compares answers of the header, and of lookups in user space, with those of the routes.
fn compare<K: Words>(engine: Engine, rib: &Rib<K>, keys: &[K]) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let table = table_of(rib, engine)?;
    let options = Options::fitting(engine, &table, 254)?;
    let maps = BpfTable::in_memory(&options)?;
    maps.fill(&table)?;
    let program = folder.path().join("plain");
    compile(
        &crate_path("tests/c/plain.c"),
        &[defines(&options), vec!["-static".to_owned()]].concat(),
        &[],
        &program,
    )?;
    let file = folder.path().join("words");
    let (state, arrays) = maps.image();
    let words = [state].into_iter().chain(arrays.into_iter().flatten());
    write_words(&file, words.chain(keys.iter().flat_map(|key| key.words())))?;
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

fn address<K: Words>(key: K) -> std::net::IpAddr {
    let bits = key.to_bits();
    if K::BITS == 32 { (bits as u32).to_be_bytes().into() } else { bits.to_be_bytes().into() }
}
