//! What the conformance suite cannot know: the entries of an example, and where the limits are.

use crate::fib::Fib;
use crate::memory::Limits;
use crate::net::{NextHop, Prefix, Route, RouteSlice};

use super::Dir248;
use super::layout::SEGMENT;

fn route(addr: u32, len: u8, id: u32) -> Route<u32> {
    Route::new(Prefix::new(addr, len).unwrap(), NextHop::new(id).unwrap())
}

fn build(routes: &[Route<u32>]) -> Result<Dir248<u32>, String> {
    Dir248::build(&RouteSlice::new(routes).unwrap(), Limits::default()).map_err(|error| {
        assert!(error.is_limit());
        error.to_string()
    })
}

/// The worked example of the DXR paper, section 3.1, with its host route led elsewhere so that it stays.
#[test]
fn only_a_divided_24_takes_a_segment() {
    let table = [
        route(0, 0, 1),
        route(0x0100_0000, 8, 2),
        route(0x0102_0000, 16, 3),
        route(0x0102_0300, 24, 4),
        route(0x0102_0405, 32, 4),
    ];
    let fib = build(&table).unwrap();
    fib.check().unwrap();
    assert_eq!(fib.next_hops, [0, 1, 2, 3, 4]);
    assert_eq!(fib.first[0x0001_0202..=0x0001_0205], [3, 4, SEGMENT, 3]);
    let mut segment = [3; 256];
    segment[5] = 4;
    assert_eq!(fib.segments, segment);
    assert_eq!(fib.memory().lookup_bytes, (32 << 20) + 512 + 5 * 4);
}

#[test]
fn the_last_segment_fits_and_one_more_is_refused() {
    let mut routes: Vec<_> = (0..32_768).map(|at| route(at << 8, 32, 1)).collect();
    let fib = build(&routes).unwrap();
    assert_eq!(fib.first[32_766..=32_768], [SEGMENT | 32_766, SEGMENT | 32_767, 0]);
    assert_eq!((fib.lookup(32_767 << 8), fib.lookup((32_767 << 8) + 1)), (NextHop::new(1), None));
    routes.push(route(0xffff_ffff, 32, 1));
    assert_eq!(build(&routes).unwrap_err(), "dir-24-8: at most 32768 segments, this table needs 32769");
}

#[test]
fn the_last_next_hop_fits_and_one_more_is_refused() {
    let id = |at: u32| u32::MAX - at;
    let mut routes: Vec<_> = (0..32_767).map(|at| route(at << 8, 24, id(at))).collect();
    let fib = build(&routes).unwrap();
    assert_eq!(fib.lookup(32_766 << 8), NextHop::new(id(32_766)));
    routes.push(route(0xffff_ff00, 24, 1));
    routes.push(route(0xffff_ffff, 32, 2));
    assert_eq!(build(&routes).unwrap_err(), "dir-24-8: at most 32767 next hops, this table needs 32769");
}
