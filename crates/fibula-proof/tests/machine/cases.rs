//! The cases of `testdata/`, for every registry entry of their family.

use fibula::fib::registry::Engine;
use fibula::net::{Key, RouteSlice, Toy};
use libtest_mimic::Trial;

use fibula_proof::case::{self, Case};
use fibula_proof::subject::{Subject, Tested};
use fibula_proof::tables::Model;
use fibula_proof::verdict::{Failure, answers, sound};

pub(super) fn trials() -> Result<Vec<Trial>, Failure> {
    let mut trials = Vec::new();
    for (file, case) in case::all()? {
        trials.extend(match case.family.as_str() {
            "ipv4" => family::<u32>(&file, &case),
            "ipv6" => family::<u128>(&file, &case),
            "toy3" => family::<Toy<3>>(&file, &case),
            "toy8" => family::<Toy<8>>(&file, &case),
            "toy16" => family::<Toy<16>>(&file, &case),
            other => return Err(format!("{file}: '{}': no family '{other}'", case.name).into()),
        });
    }
    Ok(trials)
}

fn family<K: Tested>(file: &str, case: &Case) -> Vec<Trial> {
    let kind = format!("case-{file}-{}", case.name.replace([' ', ',', '.'], "-"));
    let one = |engine: Engine<K>| {
        let case = case.clone();
        crate::trial(&kind, engine, move |engine| run(engine, &case))
    };
    K::entries().into_iter().map(one).collect()
}

fn run<K: Key>(engine: Engine<K>, case: &Case) -> Result<(), Failure> {
    let mut model = Model::<K>::default();
    case.routes::<K>()?.into_iter().for_each(|route| model.apply(fibula::net::Change::Insert(route)));
    let routes = model.routes();
    let mut subject = Subject::build_updatable(engine, &RouteSlice::new(&routes)?)?;
    sound(&*subject.fib, engine.name, &routes)?;
    let (keys, expected) = Case::answers::<K>(&case.answers)?;
    answers(&*subject.fib, &engine, &routes, &keys, &expected)?;

    let changes = case.changes::<K>()?;
    changes.iter().for_each(|&change| model.apply(change));
    let after = model.routes();
    subject.apply(&changes, &RouteSlice::new(&after)?)?;
    sound(&*subject.fib, engine.name, &after)?;
    let (keys, expected) = Case::answers::<K>(&case.answers_after)?;
    answers(&*subject.fib, &engine, &after, &keys, &expected)
}
