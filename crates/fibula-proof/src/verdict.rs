//! Comparing answers.

use fibula::fib::Fib;
use fibula::fib::registry::Engine;
use fibula::net::{Key, Keys, NextHop, Prefix, Route, Strided};
pub use libtest_mimic::Failed as Failure;

use crate::instruction_sets;

/// Shortest batches that are tried one by one: past the widest vector and its remainder.
pub const BATCHES: usize = 71;

/// Queries `fib` for every key alone, and for all in one batch with every instruction set it has kernels for.
///
/// # Errors
/// Names the first key whose answer is not the expected one, with the table where it is small.
pub fn answers<K: Key>(
    fib: &dyn Fib<K>,
    engine: &Engine<K>,
    routes: &[Route<K>],
    keys: &[K],
    expected: &[Option<NextHop>],
) -> Result<(), Failure> {
    assert_eq!(keys.len(), expected.len());
    for (&key, &right) in keys.iter().zip(expected) {
        let got = fib.lookup(key);
        if got != right {
            return Err(wrong(engine.name, "alone", routes, key, right, got));
        }
    }
    let mut results = vec![None; keys.len()];
    for isa in instruction_sets::of(engine) {
        results.fill(NextHop::new(u32::MAX));
        fib.lookup_batch_on(isa, keys, &mut results);
        if let Some(at) = (0..keys.len()).find(|&at| results[at] != expected[at]) {
            let how = format!("in a batch, {}", isa.isa());
            return Err(wrong(engine.name, &how, routes, keys[at], expected[at], results[at]));
        }
    }
    Ok(())
}

/// Checks the structure's own invariants.
///
/// # Errors
/// Names the broken one.
pub fn sound<K: Key>(fib: &dyn Fib<K>, name: &str, routes: &[Route<K>]) -> Result<(), Failure> {
    fib.check().map_err(|error| format!("{name}: {error}\n{}", as_case::<K>(routes, "")).into())
}

/// Queries in every batch length up to [`BATCHES`] and 256, at three offsets, in every shape of keys, with every
/// instruction set it has kernels for.
///
/// # Errors
/// As [`answers`].
pub fn batches<K: Key>(
    fib: &dyn Fib<K>,
    engine: &Engine<K>,
    routes: &[Route<K>],
    keys: &[K],
    expected: &[Option<NextHop>],
) -> Result<(), Failure> {
    let name = engine.name;
    let network: Vec<K::Bytes> = keys.iter().map(|key| key.to_network()).collect();
    let width = size_of::<K::Bytes>();
    let stride = width + 7;
    let mut records = vec![0xa5; 3 + stride * keys.len() + width];
    for (at, address) in network.iter().enumerate() {
        records[3 + at * stride..][..width].copy_from_slice(address.as_ref());
    }
    for length in (0..BATCHES).chain([256]).filter(|&length| length <= keys.len()) {
        for start in [0, (length * 7) % (keys.len() - length + 1), keys.len() - length] {
            let range = start..start + length;
            let strided = Strided::<K>::new(&records, 3 + start * stride, stride, length)
                .ok_or("the strided keys leave their buffer")?;
            let shapes = [
                ("host order", Keys::Host(&keys[range.clone()])),
                ("network order", Keys::Network(&network[range.clone()])),
                ("strided", Keys::Strided(strided)),
            ];
            for (shape, batch) in shapes {
                for isa in instruction_sets::of(engine) {
                    // One result more than keys, which must stay as it was.
                    let mut results = vec![NextHop::new(u32::MAX); length + 1];
                    fib.lookup_keys_on(isa, batch, &mut results[..length]);
                    let isa = isa.isa();
                    if results[length] != NextHop::new(u32::MAX) {
                        let how = format!("a batch of {length}, {isa}, wrote past its results");
                        return Err(format!("{name}: {how}").into());
                    }
                    if let Some(at) = (0..length).find(|&at| results[at] != expected[start + at]) {
                        let how = format!("as key {at} of a batch of {length}, {shape}, {isa}");
                        let (key, right) = (keys[start + at], expected[start + at]);
                        return Err(wrong(name, &how, routes, key, right, results[at]));
                    }
                }
            }
        }
    }
    Ok(())
}

fn wrong<K: Key>(
    name: &str,
    how: &str,
    routes: &[Route<K>],
    key: K,
    expected: Option<NextHop>,
    got: Option<NextHop>,
) -> Failure {
    let text = |next_hop: Option<NextHop>| next_hop.map_or("no route".to_owned(), |hop| hop.to_string());
    let (address, family) = (key.address(), K::FAMILY);
    let answer = format!("{address} {}", expected.map_or("-".to_owned(), |hop| hop.to_string()));
    format!(
        "{name}: {family} {address}, {how}: {} where {} is right\n{}",
        text(got),
        text(expected),
        as_case::<K>(routes, &answer)
    )
    .into()
}

/// Most routes of a table that is printed whole.
const PRINTED_ROUTES: usize = 24;

/// Returns the table and the answer as a case for `testdata/`, which every found fault should become.
fn as_case<K: Key>(routes: &[Route<K>], answer: &str) -> String {
    if routes.len() > PRINTED_ROUTES {
        return format!("({} routes, too many to print)", routes.len());
    }
    let quoted: Vec<String> =
        routes.iter().map(|route| format!("\"{} {}\"", route.prefix, route.next_hop)).collect();
    let family = crate::case::family_name::<K>();
    format!(
        "[[case]]\nname = \"\"\nfamily = \"{family}\"\nroutes = [{}]\nanswers = [\"{answer}\"]",
        quoted.join(", ")
    )
}

/// Returns the keys that reveal most about `prefixes`: the first and last address of each with their neighbours, and
/// both ends of the space.
#[must_use]
pub fn edges<K: Key>(prefixes: impl Iterator<Item = Prefix<K>>) -> Vec<K> {
    let mut keys = vec![K::ZERO, K::MAX];
    for prefix in prefixes {
        let (first, last) = (prefix.addr(), prefix.last());
        keys.extend([Some(first), Some(last), first.previous(), last.next()].into_iter().flatten());
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
