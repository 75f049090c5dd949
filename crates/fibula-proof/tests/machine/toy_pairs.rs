//! Eight bits: every set of one or two of the 511 prefixes, 130,816 sets, at all 256 addresses; and from each
//! set every single insert, removal and change of a next hop that stays within two prefixes.

use fibula::fib::registry::{Engine, Update};
use fibula::net::{Change, NextHop, Route, RouteSlice, Toy};
use libtest_mimic::Trial;

use crate::{takes_few, trial};
use fibula_proof::subject::{Subject, Tested};
use fibula_proof::toy::{hop, keys, paint, prefixes};
use fibula_proof::verdict::{Failure, answers, sound};

type K = Toy<8>;

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for engine in K::entries().into_iter().filter(|engine| !takes_few(engine)) {
        trials.push(trial("pairs", engine, pairs));
        if engine.update == Update::InPlace {
            trials.push(trial("pair-changes", engine, pair_changes));
        }
    }
    trials
}

struct Judge {
    keys: Vec<K>,
    expected: Vec<Option<NextHop>>,
}

impl Judge {
    fn new() -> Self {
        let keys = keys::<K>();
        Self { expected: vec![None; keys.len()], keys }
    }

    fn judge(&mut self, subject: &Subject<K>, routes: &[Route<K>]) -> Result<(), Failure> {
        paint(routes, &mut self.expected);
        answers(&*subject.fib, &subject.engine, routes, &self.keys, &self.expected)?;
        sound(&*subject.fib, subject.engine.name, routes)
    }
}

fn pairs(engine: Engine<K>) -> Result<(), Failure> {
    let prefixes = prefixes::<K>();
    let mut judge = Judge::new();
    for (at, &first) in prefixes.iter().enumerate() {
        let one = [Route::new(first, hop(1))];
        judge.judge(&Subject::build(engine, &RouteSlice::new(&one)?)?, &one)?;
        for &second in &prefixes[at + 1..] {
            // Different next hops, and equal ones, which merge.
            for id in [2, 1] {
                let two = [one[0], Route::new(second, hop(id))];
                judge.judge(&Subject::build(engine, &RouteSlice::new(&two)?)?, &two)?;
            }
        }
    }
    Ok(())
}

fn pair_changes(engine: Engine<K>) -> Result<(), Failure> {
    let prefixes = prefixes::<K>();
    let mut judge = Judge::new();
    for (at, &first) in prefixes.iter().enumerate() {
        let one = Route::new(first, hop(1));
        let mut subject = Subject::build_updatable(engine, &RouteSlice::new(&[])?)?;
        let mut step = |change: Change<K>, after: &[Route<K>]| {
            subject.apply(&[change], &RouteSlice::new(after)?)?;
            judge.judge(&subject, after)
        };
        // From none to one, its next hop changed, and back to none.
        let other = Route::new(first, hop(3));
        step(Change::Insert(one), &[one])?;
        step(Change::Insert(other), &[other])?;
        step(Change::Remove(first), &[])?;
        step(Change::Insert(one), &[one])?;
        for &second in &prefixes[at + 1..] {
            let (two, changed) = (Route::new(second, hop(2)), Route::new(second, hop(1)));
            step(Change::Insert(two), &[one, two])?;
            step(Change::Insert(changed), &[one, changed])?;
            step(Change::Insert(other), &[other, changed])?;
            step(Change::Remove(first), &[changed])?;
            step(Change::Insert(one), &[one, changed])?;
            step(Change::Remove(second), &[one])?;
        }
    }
    Ok(())
}
