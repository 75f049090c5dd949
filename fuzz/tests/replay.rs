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

/// Random inputs for each target.
const ROUNDS: usize = 33;

fn survives_random_bytes(target: fn(&[u8])) {
    let mut random = fibula_proof::tables::Random(11);
    for _ in 0..ROUNDS {
        let bytes: Vec<u8> = (0..random.below(400)).map(|_| random.bits() as u8).collect();
        target(&bytes);
    }
}

/// Two tests for each target, so that they run side by side.
macro_rules! replayed {
    ($($name:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
        $(mod $name {
            #[test]
            fn corpus() {
                super::replay(stringify!($name));
            }

            #[test]
            fn random_bytes() {
                super::survives_random_bytes(|bytes| fibula_fuzz::run(stringify!($name), bytes));
            }
        })*
    };
}

replayed! { address bird changes columns csv file forms hops json live log maxmind mrt router text vrfs }

#[test]
fn every_target_is_replayed() {
    let targets: Vec<&str> = fibula_fuzz::TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(targets, REPLAYED);
}
