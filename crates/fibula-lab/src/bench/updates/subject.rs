//! An engine that is changed: ours in a live table, or a rival.

use std::time::{Duration, Instant};

use fibula::fib::registry::Update;
use fibula::live::{Options, Table, TableKey};
use fibula::net::{Change, NextHop, Route, RouteSlice};
use fibula::rib::DualRib;

use crate::bench::contestant::Contestant;
use crate::bench::native::{Native, Shape, Structure};

/// An engine that is changed.
pub(super) struct Subject<K: TableKey> {
    pub(super) name: String,
    pub(super) rival: bool,
    pub(super) update: Update,
    of: BuiltSubject<K>,
    /// Why it no longer takes part.
    pub(super) failure: Option<String>,
}

enum BuiltSubject<K: TableKey> {
    Table(Table),
    Rival(Box<dyn Native<K>>),
    /// It could not be built.
    Nothing,
}

fn built<K: TableKey>(contestant: &Contestant<K>, routes: &[Route<K>]) -> Result<Structure<K>, String> {
    let routes = RouteSlice::new(routes).map_err(|error| error.to_string())?;
    (contestant.build)(&routes).map_err(|error| error.to_string())
}

/// The time that changes took, and their number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChangeTimes {
    pub(super) time: Duration,
    pub(super) changes: usize,
    pub(super) rebuilt: usize,
}

impl<K: TableKey> Subject<K> {
    /// Builds it: ours of `base`, a rival of `more`, which has room for all routes that there will be, without those that
    /// `excess` removes.
    pub(super) fn new(
        contestant: &Contestant<K>,
        base: &DualRib,
        more: &[Route<K>],
        excess: &[Change<K>],
    ) -> Self {
        let line = fibula_published::find::<K>(&contestant.name);
        let of = match line {
            Ok(line) if !contestant.rival => {
                let options = Options::default().with_engine(line);
                Table::from_routes(base.clone(), options)
                    .map(BuiltSubject::Table)
                    .map_err(|error| error.to_string())
            }
            _ => built(contestant, more).and_then(|built| match built {
                Structure::Native(mut native) => native.apply(excess).map(|_| BuiltSubject::Rival(native)),
                Structure::Fib(_) => Err("it has no changes of its own".to_owned()),
            }),
        };
        let (of, failure) = match of {
            Ok(of) => (of, None),
            Err(error) => (BuiltSubject::Nothing, Some(error)),
        };
        let mut subject = Self {
            name: contestant.name.clone(),
            rival: contestant.rival,
            update: Update::InPlace,
            of,
            failure,
        };
        subject.try_out(more.iter().find(|route| !excess.contains(&Change::Remove(route.prefix))));
        subject
    }

    /// Removes a route and adds it again, to see whether the engine changes in place: some that can be changed by
    /// themselves are built anew in a live table.
    fn try_out(&mut self, route: Option<&Route<K>>) {
        let Some(&route) = route else { return };
        match self.apply(&[Change::Remove(route.prefix), Change::Insert(route)], 1) {
            Ok(done) if done.rebuilt > 0 => self.update = Update::Rebuild,
            Ok(_) => {}
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }

    /// Returns its table, if it is ours.
    pub(super) fn table(&self) -> Option<&Table> {
        match &self.of {
            BuiltSubject::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Makes these changes, so many in a call.
    pub(super) fn apply(&mut self, changes: &[Change<K>], batch: usize) -> Result<ChangeTimes, String> {
        let mut done = ChangeTimes { changes: changes.len(), ..ChangeTimes::default() };
        match &mut self.of {
            BuiltSubject::Table(table) => {
                let begin = Instant::now();
                for changes in changes.chunks(batch) {
                    done.rebuilt += table.apply(changes).map_err(|error| error.to_string())?.rebuilt;
                }
                done.time = begin.elapsed();
            }
            BuiltSubject::Rival(native) => done.time = native.apply(changes)?,
            BuiltSubject::Nothing => return Err("it was not built".to_owned()),
        }
        Ok(done)
    }

    /// Returns its answers.
    pub(super) fn answers(&self, keys: &[K]) -> Result<Vec<Option<NextHop>>, String> {
        let mut answers = vec![None; keys.len()];
        match &self.of {
            BuiltSubject::Table(table) => {
                let mut reader = table.reader().map_err(|error| error.to_string())?;
                reader.pin().lookup_batch(keys, &mut answers);
            }
            BuiltSubject::Rival(native) => {
                let mut prepared = native.prepare(keys, keys.len());
                prepared.lookup(Shape::Batch(keys.len()), 0..keys.len());
                prepared.take(&mut answers);
            }
            BuiltSubject::Nothing => {}
        }
        Ok(answers)
    }
}
