//! Runs the test machine: `cargo test -p fibula-proof --test machine [NAME]`. Its tests are made for each registry entry.
//! With `FIBULA_SHARE=3/40` it runs one in forty of them, from the third on.

mod answers;
mod cases;
mod conformance;
mod data;
mod hops;
mod maps;
mod properties;
mod rib;
mod sets;
mod toy_pairs;
mod toy_tables;
mod vrfs;

use std::process::ExitCode;

use fibula::fib::registry::{self, Engine, Role};
use fibula::net::{Key, NextHop, Route, RouteSlice};
use fibula::rib::Rib;
use fibula::simd::Present;
use libtest_mimic::{Arguments, Completion, Trial};

use fibula_proof::instruction_sets;
use fibula_proof::subject::{Subject, Tested};
use fibula_proof::verdict::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = match all().and_then(|trials| share(trials, &arguments)) {
        Ok(trials) => trials,
        Err(failure) => {
            eprintln!("the test machine cannot start: {}", failure.message().unwrap_or("unknown reason"));
            return ExitCode::FAILURE;
        }
    };
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        println!("{}\n", instruction_sets::summary());
    }
    conclusion.exit_code()
}

/// All tests of the machine.
///
/// # Errors
/// When the cases cannot be read, or a forced instruction set is absent.
fn all() -> Result<Vec<Trial>, Failure> {
    instruction_sets::forced()?;
    let mut trials = Vec::new();
    trials.extend(answers::trials());
    trials.extend(toy_tables::trials());
    trials.extend(toy_pairs::trials());
    trials.extend(conformance::trials());
    trials.extend(properties::trials());
    trials.extend(rib::trials());
    trials.extend(maps::trials());
    trials.extend(hops::trials());
    trials.extend(sets::trials());
    trials.extend(vrfs::trials());
    trials.extend(cases::trials()?);
    trials.extend(data::trials());
    Ok(trials)
}

/// Keeps every n-th of the tests that the arguments choose, where `FIBULA_SHARE` is `k/n`: the shares 1 to n are all of them.
///
/// # Errors
/// When it is set to something else.
fn share(trials: Vec<Trial>, arguments: &Arguments) -> Result<Vec<Trial>, Failure> {
    let Ok(wanted) = std::env::var("FIBULA_SHARE") else { return Ok(trials) };
    let parts = wanted.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    let Some((k, n)) = parts.filter(|&(k, n): &(usize, usize)| (1..=n).contains(&k)) else {
        return Err(format!("FIBULA_SHARE: '{wanted}' is no share: 1/40 to 40/40 are").into());
    };
    let is_chosen = |trial: &Trial| match &arguments.filter {
        Some(filter) if arguments.exact => trial.name() == filter,
        Some(filter) => trial.name().contains(filter.as_str()),
        None => true,
    };
    Ok(trials.into_iter().filter(is_chosen).skip(k - 1).step_by(n).collect())
}

/// Returns whether all cases are wanted, also those that take hours.
fn all_cases() -> bool {
    std::env::var("FIBULA_TABLES").is_ok_and(|which| which == "all")
}

/// Returns whether an engine takes part in few tests: those of papers have all others in the scheduled part, with the feature
/// `exhaustive`, since they change seldom and take most of the time.
fn takes_few<K: Key>(engine: &Engine<K>) -> bool {
    // The library has this one for IPv6.
    !cfg!(feature = "exhaustive") && registry::is_published(engine.name) && engine.name != "planb"
}

/// A test of one registry entry. Its name is `kind/engine/family`.
fn trial<K: Key>(
    kind: &str,
    engine: Engine<K>,
    run: impl FnOnce(Engine<K>) -> Result<(), Failure> + Send + 'static,
) -> Trial {
    refusable_trial(kind, engine, |engine| run(engine).map(|()| Completion::Completed))
}

/// A test of one registry entry on a table that it may refuse: it is then ignored, with the reason.
fn refusable_trial<K: Key>(
    kind: &str,
    engine: Engine<K>,
    run: impl FnOnce(Engine<K>) -> Result<Completion, Failure> + Send + 'static,
) -> Trial {
    let name = format!("{kind}/{}/{}", engine.name, fibula_proof::case::family_name::<K>());
    Trial::ignorable_test(name, move || run(engine))
}

/// The answers of the most obvious oracle that can hold the table and is not the one under test; of the RIB where there
/// is none.
fn oracle<K: Tested>(judged: &str, routes: &[Route<K>], keys: &[K]) -> Result<Vec<Option<NextHop>>, Failure> {
    let fits = |engine: &Engine<K>| match engine.role {
        Role::Oracle { routes_limit } => routes.len() <= routes_limit && engine.name != judged,
        Role::Published | Role::Described | Role::Own => false,
    };
    let Some(engine) = K::entries().into_iter().find(fits) else {
        let mut rib = Rib::default();
        routes.iter().try_for_each(|&route| rib.insert(route).map(drop))?;
        return Ok(keys.iter().map(|&key| rib.lookup(key)).collect());
    };
    let oracle = Subject::build(engine, &RouteSlice::new(routes)?)?;
    let mut answers = vec![None; keys.len()];
    oracle.fib.lookup_batch_on(Present::SCALAR, keys, &mut answers);
    Ok(answers)
}
