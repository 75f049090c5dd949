//! Streams of changes: every structure of the registry against the model.

use fibula::memory::Limits;
use fibula::net::{Change, NextHop, Prefix, Route, RouteSlice, Toy};
use fibula_proof::subject::{self, Tested};

/// Structures that are larger than this when empty are left out: each change rebuilds them. Their small forms, for the
/// toy widths, take part.
const EMPTY_BYTES: usize = 1 << 20;

/// The longest stream; longer ones only slow the search.
const CHANGES: usize = 200;

pub(crate) fn follow(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0..64, rest)) => family::<Toy<8>>(rest),
        Some((64..128, rest)) => family::<Toy<16>>(rest),
        Some((128..192, rest)) => family::<u32>(rest),
        Some((_, rest)) => family::<u128>(rest),
        None => {}
    }
}

/// A change is a byte for what happens, one for the length, and the address; every eighth or so ends a batch.
fn family<K: Tested>(bytes: &[u8]) {
    let width = size_of::<K::Bytes>();
    let mut batches = vec![Vec::new()];
    let mut keys = vec![K::ZERO, K::MAX];
    for record in bytes.chunks_exact(2 + width).take(CHANGES) {
        let mut address = K::Bytes::default();
        address.as_mut().copy_from_slice(&record[2..]);
        let key = K::from_network(address);
        let len = (u16::from(record[1]) % (u16::from(K::BITS) + 1)) as u8;
        let prefix = Prefix::masked(key, len).expect("the length fits");
        keys.push(key);
        let change = match NextHop::new(u32::from(record[0] & 7)) {
            Some(next_hop) => Change::Insert(Route::new(prefix, next_hop)),
            None => Change::Remove(prefix),
        };
        batches.last_mut().expect("there is a batch").push(change);
        if record[0] >= 224 {
            batches.push(Vec::new());
        }
    }
    for engine in K::entries() {
        let limits = Limits::within(EMPTY_BYTES);
        if engine.build(&RouteSlice::new(&[]).expect("nothing is in order"), limits).is_err() {
            continue;
        }
        if let Err(failure) = subject::follow(engine, &batches, &keys) {
            panic!("{}", failure.message().unwrap_or("a structure failed"));
        }
    }
}
