//! Widths of values, and the lines that direct entries share.

use super::Dir18Lines;
use super::update::Editor;
use crate::fib::Fib;
use crate::memory::Limits;
use crate::net::{NextHop, Prefix, Route, RouteSlice};

/// A table of /24s in the first /8s, with these next hops in turn, and `more`.
fn build(count: u32, id: impl Fn(u32) -> u32, more: &[(&str, u32)]) -> Dir18Lines<u32> {
    let host = |at: u32| Prefix::masked(at << 9, 24).unwrap();
    let mut routes: Vec<_> =
        (0..count).map(|at| Route::new(host(at), NextHop::new(id(at)).unwrap())).collect();
    routes.extend(more.iter().map(|&(p, id)| Route::new(p.parse().unwrap(), NextHop::new(id).unwrap())));
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    let lines = Dir18Lines::build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
    lines.check().unwrap();
    for route in routes.iter().filter(|route| route.prefix.len() >= 24) {
        assert_eq!(lines.lookup_key(route.prefix.addr()), Some(route.next_hop));
    }
    lines
}

#[test]
fn values_are_as_wide_as_most_next_hops_need() {
    assert_eq!(build(6400, |at| 1 + at % 254, &[]).value_bits(), 8);
    // One route of a hundred, then one of fifty, has the smallest next hop that a byte cannot hold.
    assert_eq!(build(6400, |at| if at % 100 == 0 { 255 } else { 1 }, &[]).value_bits(), 8);
    assert_eq!(build(6400, |at| if at % 50 == 0 { 255 } else { 1 }, &[]).value_bits(), 16);
    assert_eq!(build(6400, |at| if at % 50 == 0 { 65_535 } else { 1 }, &[]).value_bits(), 32);
    // The default route counts by the space that it covers.
    assert_eq!(build(6400, |_| 1, &[("0.0.0.0/0", 255)]).value_bits(), 16);
}

#[test]
fn direct_entries_of_one_next_hop_share_a_line() {
    // One line of its own for each 32 of the /24s, then the shared lines of no route, 1, 2 and 300.
    let table = [("10.0.0.0/8", 2), ("11.0.0.0/9", 1), ("12.0.0.0/16", 300)];
    let lines = build(6400, |at| 1 + at % 200, &table);
    assert_eq!(lines.value_bits(), 8);
    let own = lines.shared_from as usize / 64;
    assert_eq!(own, 6400 / 32);
    assert_eq!(lines.lines.len() * 4 / 64 - own, 4);
    let at = |key: u32| lines.direct[(key >> 14) as usize];
    assert_eq!(at(0x0a00_0000), at(0x0aff_ffff));
    assert_ne!(at(0x0a00_0000), at(0x0b00_0000));
    for (key, id) in [(0x0a12_3456, 2), (0x0b01_0203, 1), (0x0c00_ffff, 300), (0x0c01_0000, 0)] {
        assert_eq!(lines.lookup_key(key), NextHop::new(id), "{key:x}");
    }
}

crate::fib::in_place_tests::stops_at_every_store!(|routes, limits| Ok(Box::new(Editor::build(
    routes, limits
)?)));
