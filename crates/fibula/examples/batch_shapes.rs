//! Measures the cost of the shapes of a batch: `cargo run --release -p fibula --example batch_shapes`.
//!
//! The table is a single default route, so that little but the conversion of keys is timed: its share is at its largest.
//! Figures are medians of nine passes over 2^20 keys, the shapes taking turns.

use std::hint::black_box;
use std::time::Instant;

use fibula::fib::registry;
use fibula::memory::Limits;
use fibula::net::{Key, Keys, NextHop, Prefix, Route, RouteSlice, Strided};

const COUNT: usize = 1 << 20;
const PASSES: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    shapes::<u32>(60)?;
    shapes::<u128>(80)
}

fn shapes<K: Key>(stride: usize) -> Result<(), Box<dyn std::error::Error>> {
    let route = [Route::new(Prefix::ALL, NextHop::new(1).ok_or("1 is not 0")?)];
    let fib = registry::find::<K>(if K::BITS == 32 { "range-btree" } else { "planb" })?
        .build(&RouteSlice::new(&route)?, Limits::default())?;
    let spread =
        |at: usize| K::from_bits((at as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    let keys: Vec<K> = (0..COUNT).map(spread).collect();
    let network: Vec<K::Bytes> = keys.iter().map(|key| key.to_network()).collect();
    let mut records = vec![0; stride * COUNT];
    for (record, address) in records.chunks_mut(stride).zip(&network) {
        record[26..][..address.as_ref().len()].copy_from_slice(address.as_ref());
    }
    let strided = Strided::<K>::new(&records, 26, stride, COUNT).ok_or("the records are too short")?;
    let shapes = [
        ("host order", Keys::Host(&keys)),
        ("network order", Keys::Network(&network)),
        ("strided", Keys::Strided(strided)),
    ];
    let mut results = vec![None; COUNT];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..PASSES {
        for ((_, shape), times) in shapes.iter().zip(&mut times) {
            let start = Instant::now();
            fib.batch(*shape).run(black_box(&mut results));
            times.push(start.elapsed().as_secs_f64() * 1e9 / COUNT as f64);
        }
    }
    for ((name, _), times) in shapes.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{} {name:14} {:6.2} ns a key", K::FAMILY, times[PASSES / 2]);
    }
    Ok(())
}
