//! What the conformance suite cannot know, tested through the engine that has an overflow: which forms a table takes,
//! and what they cost.

use crate::engines::dir_18_lines::layout::Dir18Lines;
use crate::fib::Fib;
use crate::fib::parts::lanes::answers;
use crate::memory::Limits;
use crate::net::{NextHop, Route, RouteSlice};
use crate::simd::Present;

fn engine(table: &[(&str, u32)]) -> Box<dyn Fib<u32>> {
    with_routes(table, |routes| Box::new(Dir18Lines::build(routes, Limits::default()).unwrap()))
}

fn with_routes<T>(table: &[(&str, u32)], build: impl Fn(&RouteSlice<'_, u32>) -> T) -> T {
    let mut routes: Vec<_> = table
        .iter()
        .map(|&(prefix, id)| Route::new(prefix.parse().unwrap(), NextHop::new(id).unwrap()))
        .collect();
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    build(&RouteSlice::new(&routes).unwrap())
}

#[test]
fn a_second_host_route_of_a_chunk_takes_eight_bytes() {
    let one = [("10.0.0.0/8", 1), ("10.1.2.0/24", 2), ("10.1.9.0/24", 3), ("10.1.2.77/32", 4)];
    let two = [&one[..], &[("10.1.9.255/32", 5)]].concat();
    {
        let (one, two) = (engine(&one), engine(&two));
        assert_eq!(two.memory().lookup_bytes - one.memory().lookup_bytes, 8);
        answers(
            &*two,
            &[
                (0x0a01_024c, 2),
                (0x0a01_024d, 4),
                (0x0a01_024e, 2),
                (0x0a01_09fe, 3),
                (0x0a01_09ff, 5),
                (0x0b00_0000, 0),
            ],
        );
    }
}

/// Where each vector has such a key, it does not matter which of them are looked at.
#[test]
fn one_deeper_key_of_a_batch_is_found_at_every_place() {
    let fib = engine(&[("10.0.0.0/8", 1), ("10.1.2.0/24", 2), ("10.1.2.77/32", 3)]);
    for present in Present::all() {
        for at in 0..300 {
            let mut keys = [0x0a02_0000; 300];
            keys[at] = 0x0a01_024d;
            let mut results = [None; 300];
            fib.lookup_batch_on(present, &keys, &mut results);
            let other = results.iter().position(|&found| found != NextHop::new(1));
            assert_eq!((other, results[at]), (Some(at), NextHop::new(3)), "{}", present.isa());
        }
    }
}

#[test]
fn slots_change_form_behind_one_stretch_and_four_changes() {
    let mut table = vec![("10.1.2.0/24", 1)];
    let hosts =
        ["10.1.2.0/32", "10.1.2.2/32", "10.1.2.4/31", "10.1.2.128/25", "10.1.2.255/32"].map(|host| (host, 2));
    let keys = |count: usize| {
        let inside = |last: u32| match last {
            0 => count > 0,
            2 => count > 1,
            4 | 5 => count > 2,
            255 => count > 3,
            128.. => count > 3,
            _ => false,
        };
        (0..256).map(|last| (0x0a01_0200 | last, if inside(last) { 2 } else { 1 })).collect::<Vec<_>>()
    };
    for count in 0..=hosts.len() {
        answers(&*engine(&table), &keys(count));
        table.extend(hosts.get(count));
    }
}

#[test]
fn next_hops_at_the_edge_of_every_width_are_answered() {
    for id in
        [253, 254, 255, 256, 65_534, 65_535, 65_536, 1 << 23, (1 << 23) - 1, 1 << 31, u32::MAX - 1, u32::MAX]
    {
        let table = [("10.1.2.0/24", id), ("10.1.2.9/32", 7), ("10.1.4.0/24", id), ("12.0.0.0/7", id)];
        {
            let expected = [
                (0x0a01_0208, id),
                (0x0a01_0209, 7),
                (0x0a01_0300, 0),
                (0x0a01_0401, id),
                (0x0c00_0000, id),
                (0x0dff_ffff, id),
                (0x0e00_0000, 0),
            ];
            answers(&*engine(&table), &expected);
        }
    }
}

#[test]
fn a_limit_on_memory_is_kept() {
    with_routes(&[("10.0.0.0/24", 1)], |routes| {
        assert!(Dir18Lines::build(routes, Limits::within(1 << 20)).unwrap_err().out_of_memory().is_some());
    });
}
