//! Properties that the conformance suite cannot test: the entries of an example, and where the limits are.

use crate::fib::Fib;
use crate::fib::parts::lanes;
use crate::memory::Limits;
use crate::net::{NextHop, Prefix, Route, RouteSlice};

use super::Dir248;
use super::layout::{PAD, SEGMENT};

fn route(addr: u32, len: u8, id: u32) -> Route<u32> {
    Route::new(Prefix::new(addr, len).unwrap(), NextHop::new(id).unwrap())
}

fn build(routes: &[Route<u32>]) -> Result<Dir248<u32>, String> {
    Dir248::build(&RouteSlice::new(routes).unwrap(), Limits::default()).map_err(|error| {
        assert!(error.is_limit());
        error.to_string()
    })
}

/// The worked example of the DXR paper, section 3.1, with another next hop for its host route so that it stays.
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
    assert_eq!(fib.next_hops, None, "codes are ids");
    assert_eq!(fib.first[0x0001_0202..=0x0001_0205], [3, 4, SEGMENT, 3]);
    let mut segment = [3; 256 + PAD];
    segment[5] = 4;
    segment[256] = 0;
    assert_eq!(fib.segments[..], segment);
    assert_eq!(fib.memory().lookup_bytes, (32 << 20) + 512 + 2 * 2);
    // The ids move to a dictionary as soon as one of them takes 16 bits.
    let wide =
        table.map(|route| Route { next_hop: NextHop::new(route.next_hop.id() + 32_764).unwrap(), ..route });
    let fib = build(&wide).unwrap();
    fib.check().unwrap();
    assert_eq!(fib.next_hops, Some(vec![0, 32_765, 32_766, 32_767, 32_768]));
    assert_eq!(fib.segments[..], segment);
    assert_eq!(fib.memory().lookup_bytes, (32 << 20) + 512 + 2 * 2 + 5 * 4);
}

#[test]
fn the_last_segment_fits_and_one_more_is_refused() {
    let mut routes: Vec<_> = (0..32_768).map(|at| route(at << 8, 32, 1)).collect();
    let fib = build(&routes).unwrap();
    assert_eq!(fib.first[32_766..=32_768], [SEGMENT | 32_766, SEGMENT | 32_767, 0]);
    assert_eq!((fib.lookup_key(32_767 << 8), fib.lookup_key((32_767 << 8) + 1)), (NextHop::new(1), None));
    routes.push(route(0xffff_ffff, 32, 1));
    assert_eq!(build(&routes).unwrap_err(), "dir-24-8: at most 32768 segments, this table needs 32769");
}

#[test]
fn the_last_next_hop_fits_and_one_more_is_refused() {
    let id = |at: u32| u32::MAX - at;
    let mut routes: Vec<_> = (0..32_767).map(|at| route(at << 8, 24, id(at))).collect();
    let fib = build(&routes).unwrap();
    assert_eq!(fib.lookup_key(32_766 << 8), NextHop::new(id(32_766)));
    routes.push(route(0xffff_ff00, 24, 1));
    routes.push(route(0xffff_ffff, 32, 2));
    assert_eq!(build(&routes).unwrap_err(), "dir-24-8: at most 32767 next hops, this table needs 32769");
}

/// Both ends of the space, of segments and of the first table's entries, in both forms.
#[test]
fn every_set_answers_as_single_lookups_do() {
    for least in [1, 1 << 15] {
        let divided = [0, 1, 255, 256, 257, 0x0102_0380, 0x7fff_ffff, 0xffff_fe00, 0xffff_ff00, u32::MAX];
        let mut routes: Vec<_> =
            (1..=divided.len() as u32).zip(divided).map(|(id, addr)| route(addr, 32, id)).collect();
        routes.extend((0..200).map(|at| route(at << 24 | 0x0010_0000, 13, 20 + at)));
        routes
            .iter_mut()
            .for_each(|route| route.next_hop = NextHop::new(route.next_hop.id() - 1 + least).unwrap());
        routes.sort_by_key(|route| route.prefix);
        let fib = build(&routes).unwrap();
        assert_eq!(fib.next_hops.is_none(), least == 1);
        let beside =
            divided.iter().flat_map(|&addr| (0..7).map(move |by| addr.wrapping_add(by).wrapping_sub(3)));
        let spread = (0..500u32).map(|at| at.wrapping_mul(0x9e37_79b9));
        let mut keys: Vec<u32> = spread.chain(beside).collect();
        lanes::agree(&fib, &keys);
        // Only keys of divided /24s.
        keys.retain(|key| key >> 8 == 0 || key >> 8 == 0x00ff_ffff);
        lanes::agree(&fib, &keys);
    }
}

/// A table without segments, and a table without routes.
#[test]
fn every_set_answers_where_there_are_no_segments() {
    for routes in [&[route(0x0a00_0000, 8, 7)][..], &[]] {
        let fib = build(routes).unwrap();
        fib.check().unwrap();
        assert_eq!(fib.segments[..], [0; PAD]);
        lanes::agree(
            &fib,
            &[0, 1, 0x09ff_ffff, 0x0a00_0000, 0x0aff_ffff, 0x0b00_0000, 0x8000_0000, u32::MAX, 5],
        );
    }
}
