//! Random tables and change streams that shrink to the smallest failing one.

use fibula::fib::registry::Engine;
use fibula::net::{Change, Key, Prefix, Route, RouteSlice, Toy};
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::{all_cases, takes_few, trial};
use fibula_proof::subject::{Subject, Tested, follow};
use fibula_proof::toy::hop;
use fibula_proof::verdict::Failure;

/// Random cases a registry entry and family. Fixed seed: a run that passed passes again; the rest is left to fuzzing.
const CASES: u32 = 200;

/// Cases of structures that are or become large with few routes, unless `FIBULA_TABLES=all`: changes rebuild them, or their
/// check takes long. Their small forms for the toy widths get all cases.
const CASES_OF_LARGE: u32 = 8;

/// Bytes from which on an empty structure is large.
const LARGE_BYTES: usize = 4 << 20;

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = family::<Toy<16>>();
    trials.extend(family::<u32>());
    trials.extend(family::<u128>());
    trials
}

fn family<K: Tested>() -> Vec<Trial> {
    let lines = K::entries().into_iter().filter(|engine| !takes_few(engine));
    lines.map(|engine| trial("change-streams", engine, change_streams)).collect()
}

/// An address with few distinct bit patterns, so that prefixes meet.
fn addresses<K: Key>() -> impl Strategy<Value = K> {
    prop_oneof![
        any::<u128>().prop_map(K::from_bits),
        Just(K::MAX),
        (0..K::BITS).prop_map(|shift| K::from_bits(1 << shift)),
        // A handful of blocks in which most prefixes lie, and noise in the last bits.
        (0u128..4, 0u128..32).prop_map(|(block, rest)| K::from_bits(block << (K::BITS - 3) | rest)),
    ]
}

fn changes<K: Key>() -> impl Strategy<Value = Change<K>> {
    (addresses::<K>(), 0..=K::BITS, 0u32..6).prop_map(|(addr, len, id)| {
        let prefix = Prefix::masked(addr, len).expect("the length fits");
        if id == 0 { Change::Remove(prefix) } else { Change::Insert(Route::new(prefix, hop(id))) }
    })
}

/// Returns whether a structure is large when empty, or expands short prefixes of 128 bits into millions.
pub(super) fn is_large<K: Key>(engine: Engine<K>) -> Result<bool, Failure> {
    let empty = Subject::build(engine, &RouteSlice::new(&[])?)?.fib.memory().held_bytes();
    Ok(empty >= LARGE_BYTES || K::BITS == 128 && engine.name.starts_with("bloomfwd"))
}

fn change_streams<K: Key>(engine: Engine<K>) -> Result<(), Failure> {
    let batches = prop::collection::vec(prop::collection::vec(changes::<K>(), 0..12), 1..8);
    let cases = if is_large(engine)? && !all_cases() { CASES_OF_LARGE } else { CASES };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let outcome = runner.run(&(batches, prop::collection::vec(addresses::<K>(), 16)), |(batches, keys)| {
        follow(engine, &batches, &keys).map_err(|failure| {
            TestCaseError::fail(failure.message().unwrap_or("a structure failed").to_owned())
        })
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, (batches, _))) => Err(format!("{reason}\nafter {batches:?}").into()),
        Err(TestError::Abort(reason)) => Err(format!("the property could not run: {reason}").into()),
    }
}
