//! Every registry entry x every batch length and key shape x {built, grown from empty, after shuffled changes},
//! at the real widths and the 16-bit toy.

use fibula::fib::registry::{Engine, Role};
use fibula::fib::{Match, WithLength};
use fibula::memory::Limits;
use fibula::net::{Change, Keys, Prefix, Route, RouteSlice, Toy};
use libtest_mimic::Trial;

use crate::properties::is_large;
use crate::{oracle, takes_few, trial};
use fibula_proof::instruction_sets;
use fibula_proof::subject::{Subject, Tested};
use fibula_proof::tables::{Model, Random};
use fibula_proof::toy::hop;
use fibula_proof::verdict::{Failure, batches, edges, sound};

/// Routes of the small tables, and rounds with each.
const SIZES: [(usize, usize); 6] = [(0, 1), (1, 8), (2, 8), (10, 4), (100, 2), (500, 1)];

/// Routes of the large table: more than fit into the first block of any structure.
const LARGE: usize = 20_000;

/// Of how many calls one is followed by a check where a table grows in a structure that is or becomes large with few routes,
/// unless `FIBULA_TABLES=all`: such a check takes seconds.
const CHECKED_OF_LARGE: usize = 22;

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = family::<Toy<16>>();
    trials.extend(family::<u32>());
    trials.extend(family::<u128>());
    trials
}

fn family<K: Tested>() -> Vec<Trial> {
    let mut trials = Vec::new();
    for engine in K::entries() {
        trials.push(trial("built", engine, built));
        if takes_few(&engine) {
            continue;
        }
        trials.push(trial("chains", engine, chains));
        trials.push(trial("grown", engine, grown));
        trials.push(trial("shuffled", engine, shuffled));
        trials.push(trial("with-length", engine, with_length));
        if !matches!(engine.role, Role::Oracle { routes_limit } if routes_limit < LARGE) {
            trials.push(trial("large", engine, large));
        }
    }
    trials
}

fn judge<K: Tested>(subject: &Subject<K>, model: &Model<K>, random: &mut Random) -> Result<(), Failure> {
    let routes = model.routes();
    let mut keys = edges(model.0.keys().copied());
    keys.extend((0..300).map(|_| random.key::<K>()));
    keys.extend(model.0.keys().take(300).map(|&prefix| random.inside(prefix)));
    // In a fixed order, kernels would see ascending keys only.
    for at in (1..keys.len()).rev() {
        keys.swap(at, random.below(at + 1));
    }
    let name = subject.engine.name;
    let expected = oracle(name, &routes, &keys)?;
    sound(&*subject.fib, name, &routes)?;
    fibula_proof::verdict::answers(&*subject.fib, &subject.engine, &routes, &keys, &expected)?;
    batches(&*subject.fib, &subject.engine, &routes, &keys, &expected)
}

fn built<K: Tested>(engine: Engine<K>) -> Result<(), Failure> {
    for (count, rounds) in SIZES {
        for round in 0..rounds {
            let mut random = Random((count * 100 + round) as u64);
            let model = Model::<K>::random(&mut random, count, 1 + round as u32 * 90);
            let subject = Subject::build(engine, &RouteSlice::new(&model.routes())?)?;
            judge(&subject, &model, &mut random)?;
        }
    }
    Ok(())
}

/// Every prefix length, one inside another: the deepest nesting there is, at both ends of the space and between,
/// and each length alone.
fn chains<K: Tested>(engine: Engine<K>) -> Result<(), Failure> {
    let mut random = Random(10);
    let alternating = K::from_bits(u128::MAX / 3);
    for anchor in [K::ZERO, K::MAX, alternating, alternating.not()] {
        let chain = (0..=K::BITS).map(|len| Prefix::masked(anchor, len).expect("the length fits"));
        let mut model = Model::<K>::default();
        for prefix in chain.clone() {
            model.apply(Change::Insert(Route::new(prefix, hop(1 + u32::from(prefix.len())))));
        }
        judge(&Subject::build(engine, &RouteSlice::new(&model.routes())?)?, &model, &mut random)?;
        for prefix in chain {
            let route = [Route::new(prefix, hop(7))];
            let subject = Subject::build(engine, &RouteSlice::new(&route)?)?;
            let keys = edges([prefix].into_iter());
            let expected: Vec<_> = keys.iter().map(|&key| prefix.contains(key).then_some(hop(7))).collect();
            fibula_proof::verdict::answers(&*subject.fib, &engine, &route, &keys, &expected)?;
            sound(&*subject.fib, engine.name, &route)?;
        }
    }
    Ok(())
}

fn large<K: Tested>(engine: Engine<K>) -> Result<(), Failure> {
    let mut random = Random(1);
    let model = Model::<K>::random(&mut random, LARGE, 1_000);
    let subject = Subject::build(engine, &RouteSlice::new(&model.routes())?)?;
    judge(&subject, &model, &mut random)
}

fn grown<K: Tested>(engine: Engine<K>) -> Result<(), Failure> {
    let mut random = Random(2);
    let mut model = Model::<K>::default();
    let mut subject = Subject::build_updatable(engine, &RouteSlice::new(&[])?)?;
    let goal = Model::<K>::random(&mut random, 300, 20);
    let mut routes = goal.routes();
    for at in (1..routes.len()).rev() {
        routes.swap(at, random.below(at + 1));
    }
    let checked = if is_large(engine)? && !crate::all_cases() { CHECKED_OF_LARGE } else { 1 };
    for (at, some) in routes.chunks(7).enumerate() {
        let changes: Vec<_> = some.iter().map(|&route| Change::Insert(route)).collect();
        changes.iter().for_each(|&change| model.apply(change));
        let after = model.routes();
        subject.apply(&changes, &RouteSlice::new(&after)?)?;
        if at % checked == 0 {
            sound(&*subject.fib, engine.name, &after)?;
        }
    }
    judge(&subject, &model, &mut random)
}

fn shuffled<K: Tested>(engine: Engine<K>) -> Result<(), Failure> {
    let mut random = Random(3);
    let mut model = Model::<K>::random(&mut random, 200, 5);
    let mut subject = Subject::build_updatable(engine, &RouteSlice::new(&model.routes())?)?;
    for round in 0..60 {
        let mut changes = Vec::new();
        for _ in 0..random.below(12) {
            let change = model.change(&mut random, 5);
            model.apply(change);
            changes.push(change);
        }
        let after = model.routes();
        subject.apply(&changes, &RouteSlice::new(&after)?)?;
        sound(&*subject.fib, engine.name, &after)?;
        let keys = edges(changes.iter().map(Change::prefix));
        fibula_proof::verdict::answers(
            &*subject.fib,
            &engine,
            &after,
            &keys,
            &oracle(engine.name, &after, &keys)?,
        )?;
        if round % 20 == 19 {
            judge(&subject, &model, &mut random)?;
        }
    }
    Ok(())
}

/// The length of the matched prefix, against the model.
fn with_length<K: Tested>(engine: Engine<K>) -> Result<(), Failure> {
    let mut random = Random(4);
    let model = Model::<K>::random(&mut random, 300, 3);
    let routes = model.routes();
    let fib = WithLength::build(&engine, &RouteSlice::new(&routes)?, Limits::default())?;
    fib.check()?;
    let mut keys = edges(model.0.keys().copied());
    keys.extend((0..700).map(|_| random.key::<K>()));
    let network: Vec<K::Bytes> = keys.iter().map(|key| key.to_network()).collect();
    let mut results = vec![None; keys.len()];
    let mut again = results.clone();
    let expected: Vec<_> = keys
        .iter()
        .map(|&key| {
            let route = model.lookup(key)?;
            Some(Match { next_hop: route.next_hop, prefix_len: route.prefix.len() })
        })
        .collect();
    let name = engine.name;
    for isa in instruction_sets::of(&engine) {
        fib.batch(&keys[..]).isa(isa).run(&mut results);
        fib.batch(Keys::Network(&network)).isa(isa).run(&mut again);
        let isa = isa.isa();
        if again != results {
            return Err(format!("{name}, {isa}: the shape of the keys changes the answers").into());
        }
        if let Some(at) = (0..keys.len()).find(|&at| results[at] != expected[at]) {
            let (address, got, right) = (keys[at].address(), results[at], expected[at]);
            return Err(format!("{name}, {isa}: {address}: {got:?}, not {right:?}").into());
        }
    }
    for (&key, &right) in keys.iter().zip(&expected) {
        let got = fib.lookup(key);
        if got != right {
            return Err(format!("{name}: {}: {got:?}, not {right:?}", key.address()).into());
        }
    }
    Ok(())
}
