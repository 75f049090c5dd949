//! What the conformance suite cannot know: the number of ranges.

use fibula::net::{NextHop, Prefix, Route, RouteSlice};
use fibula::unstable::memory::Limits;

use super::RangeSearch;

/// The worked example of the DXR paper, section 3.1, before its chunks: seven merged ranges.
#[test]
fn the_dxr_example_makes_seven_ranges() {
    let table = [("0.0.0.0/0", 1), ("1.0.0.0/8", 2), ("1.2.0.0/16", 3), ("1.2.3.0/24", 4), ("1.2.4.5/32", 3)];
    let mut routes: Vec<Route<u32>> = table
        .iter()
        .map(|&(prefix, id)| Route::new(prefix.parse::<Prefix<u32>>().unwrap(), NextHop::new(id).unwrap()))
        .collect();
    routes.sort();
    let fib = RangeSearch::build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
    assert_eq!(
        fib.starts[..],
        [0, 0x0100_0000, 0x0102_0000, 0x0102_0300, 0x0102_0400, 0x0103_0000, 0x0200_0000]
    );
    assert_eq!(fib.next_hops[..], [1, 2, 3, 4, 3, 2, 1]);
}
