//! What a table costs, and where the format ends.

use super::layout::{CHUNK, CHUNKS_MAX, PAD, Sail};
use fibula::fib::{BuildError, Fib};
use fibula::net::{NextHop, Prefix, Route, RouteSlice};
use fibula::unstable::memory::Limits;

fn build(routes: &[Route<u32>]) -> Result<Sail<u32>, BuildError> {
    let sail = Sail::build(&RouteSlice::new(routes).unwrap(), Limits::default())?;
    sail.check().unwrap();
    Ok(sail)
}

fn route(address: u32, len: u8, id: u32) -> Route<u32> {
    Route::new(Prefix::masked(address, len).unwrap(), NextHop::new(id).unwrap())
}

/// The chapter's picture.
#[test]
fn a_prefix_is_pushed_to_the_levels_that_it_needs() {
    let sail =
        build(&[route(0x0a00_0000, 8, 1), route(0x0a01_0200, 24, 2), route(0x0a01_0304, 32, 3)]).unwrap();
    assert_eq!(sail.levels.each_ref().map(|level| level.len() - PAD), [1 << 16, 256, 256]);
    assert_eq!([0x0a00, 0x0a01, 0x0b00].map(|at| sail.levels[0][at]), [1, CHUNK, 0]);
    assert_eq!([1, 2, 3].map(|at| sail.levels[1][at]), [1, 2, CHUNK]);
    assert_eq!([3, 4, 5].map(|at| sail.levels[2][at]), [1, 3, 1]);
    for (key, id) in [(0x0a01_0203, 2), (0x0a01_0304, 3), (0x0a01_0305, 1), (0x0b00_0000, 0)] {
        assert_eq!(sail.lookup_key(key), NextHop::new(id));
    }
}

#[test]
fn a_level_has_32_768_chunks() {
    let slash_17s = |count: u32| (0..count).map(|at| route(at << 16, 17, 1)).collect::<Vec<_>>();
    assert!(build(&slash_17s(1 << 15)).is_ok());
    let exceeded = build(&slash_17s((1 << 15) + 3)).unwrap_err();
    assert_eq!(exceeded.exceeded(), Some(("chunks of level 24", CHUNKS_MAX, CHUNKS_MAX + 3)));
    let hosts = |count: u32| (0..count).map(|at| route(at << 8, 32, 1)).collect::<Vec<_>>();
    assert!(build(&hosts(1 << 15)).is_ok());
    let exceeded = build(&hosts((1 << 15) + 1)).unwrap_err();
    assert_eq!(exceeded.exceeded(), Some(("chunks of level 32", CHUNKS_MAX, CHUNKS_MAX + 1)));
}

#[test]
fn a_dictionary_has_32_767_next_hops() {
    let hops = |count: u32| (0..count).map(|at| route(at << 16, 16, u32::MAX - at)).collect::<Vec<_>>();
    let sail = build(&hops((1 << 15) - 1)).unwrap();
    assert_eq!(sail.lookup_key(7 << 16), NextHop::new(u32::MAX - 7));
    let exceeded = build(&hops(1 << 15)).unwrap_err();
    assert_eq!(exceeded.exceeded(), Some(("next hops", (1 << 15) - 1, 1 << 15)));
}
