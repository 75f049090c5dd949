//! Lookups whose instructions are counted, as `tests/count.c` makes them in C: count KIND PASSES. Prints the sum of the ids.

use std::error::Error;
use std::hint::black_box;

use engine::engines::{Dir17Bitmap, EngineType};
use engine::fib::Fib;
use engine::memory::Limits;
use engine::net::{NextHop, Prefix, Route};
use engine::rib::Rib;

const ROUTES: usize = 20_000;
const KEYS: usize = 4096;
const BULK: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(kind), Some(passes)) = (arguments.next(), arguments.next()) else {
        return Err("count KIND PASSES".into());
    };
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.rotate_right(8)
    };
    let mut rib = Rib::<u32>::default();
    for _ in 0..ROUTES {
        let (address, length) = (next(), 8 + next() % 17);
        let id = NextHop::try_from(1 + next() % 100)?;
        rib.insert(Route::new(Prefix::masked(address, u8::try_from(length)?)?, id))?;
    }
    let keys: Vec<u32> = (0..KEYS).map(|_| next()).collect();
    // Known by its trait alone, as in the library.
    let fib: Box<dyn Fib<u32>> = black_box(Dir17Bitmap::build(&rib, Limits::default())?);
    let mut found = [None; BULK];
    let id = |next_hop: Option<NextHop>| next_hop.map_or(0, |next_hop| u64::from(u32::from(next_hop)));
    let mut sum = 0;
    for _ in 0..passes.parse::<u32>()? {
        if kind == "bulk" {
            for keys in keys.chunks_exact(BULK) {
                fib.lookup_batch(keys, &mut found);
                sum += id(found[0]);
            }
        } else {
            sum += keys.iter().map(|key| id(fib.lookup(*key))).sum::<u64>();
        }
    }
    println!("{sum}");
    Ok(())
}
