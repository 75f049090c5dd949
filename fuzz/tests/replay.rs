//! Replays the corpora, so that every test run tries what a fuzzer has found.

use std::path::Path;

fn replay(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        fibula_fuzz::run(name, &std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{name}: an empty corpus proves nothing");
}

/// A test for each target, so that they run side by side.
macro_rules! replayed {
    ($($name:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*
    };
}

replayed! { address changes file hops live mrt router text vrfs }

#[test]
fn every_target_is_replayed() {
    let targets: Vec<&str> = fibula_fuzz::TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(targets, REPLAYED);
}

#[test]
fn random_bytes_are_survived() {
    let mut random = fibula_proof::tables::Random(11);
    for round in 0..300 {
        let bytes: Vec<u8> = (0..random.below(400)).map(|_| random.bits() as u8).collect();
        let (_, target) = fibula_fuzz::TARGETS[round % fibula_fuzz::TARGETS.len()];
        target(&bytes);
    }
}
