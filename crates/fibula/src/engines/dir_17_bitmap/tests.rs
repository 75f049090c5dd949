//! Properties that the conformance suite cannot test: the forms that a table takes, and what they cost.

use super::layout::{Entry, STEP_MAX};
use super::update::Editor;
use super::{Dir17Bitmap, NAME};
use crate::fib::Fib;
use crate::fib::parts::lanes::{agree, answers};
use crate::memory::{Cell, Limits};
use crate::net::{NextHop, Prefix, Route, RouteSlice};

fn build(table: &[(&str, u32)]) -> Dir17Bitmap<u32> {
    let route = |&(prefix, id): &(&str, u32)| Route::new(prefix.parse().unwrap(), NextHop::new(id).unwrap());
    of(table.iter().map(route).collect())
}

fn of(mut routes: Vec<Route<u32>>) -> Dir17Bitmap<u32> {
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    let fib = Dir17Bitmap::build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
    fib.check().unwrap();
    fib
}

fn entry(fib: &Dir17Bitmap<u32>, key: u32) -> Entry {
    Entry(fib.direct[(key >> 15) as usize].read())
}

#[test]
fn every_length_of_a_batch_is_answered() {
    // Enough deeper slots to be answered in vectors, with keys around their host routes.
    let host = |at: u32| Prefix::masked(at << 9 | 5, if at.is_multiple_of(3) { 24 } else { 32 }).unwrap();
    let fib = of((0..6400).map(|at| Route::new(host(at), NextHop::new(1 + at % 300).unwrap())).collect());
    let slot = |at: u32| at.wrapping_mul(0x9e37_79b9) >> 18 << 8;
    let keys: Vec<u32> = (0..1200u32).map(|at| slot(at) | [4, 5, 6, 255][at as usize % 4]).collect();
    agree(&fib, &keys);
}

#[test]
fn values_are_as_wide_as_their_unit_needs() {
    let table =
        [("10.0.0.0/24", 254), ("10.1.0.0/24", 255), ("10.2.0.0/24", 65_534), ("10.3.0.0/24", 65_535)];
    let fib = build(&table);
    let widths = [0x0a00_0000, 0x0a01_0000, 0x0a02_0000, 0x0a03_0000].map(|key| entry(&fib, key).width());
    assert_eq!(widths, [0, 1, 1, 2]);
    answers(&fib, &[(0x0a00_00ff, 254), (0x0a01_0001, 255), (0x0a02_0002, 65_534), (0x0a03_0003, 65_535)]);
}

#[test]
fn a_unit_of_one_value_is_shared_and_a_half_of_one_value_has_no_bitmap() {
    let table = [("10.0.0.0/8", 2), ("11.0.0.0/18", 3), ("11.0.64.0/24", 4), ("12.0.0.0/18", 5)];
    let fib = build(&table);
    assert_eq!(entry(&fib, 0x0a00_0000), entry(&fib, 0x0aff_ffff));
    assert_eq!(entry(&fib, 0x0a00_0000).0 & Entry::UNIFORM, Entry::UNIFORM);
    let mixed = entry(&fib, 0x0b00_0000);
    assert!(mixed.is_uniform(0) && !mixed.is_uniform(1) && mixed.offset() == 0);
    // A bitmap and a word of values, twice; and two words each for no route and for the /8.
    let words = 2 * 2 + 2 * 2 + super::layout::PADDING;
    assert_eq!(fib.memory().lookup_bytes, 4 * (1 << 17) + 8 * words);
    answers(
        &fib,
        &[
            (0x0a12_3456, 2),
            (0x0b00_3fff, 3),
            (0x0b00_40ff, 4),
            (0x0b00_4100, 0),
            (0x0b00_8000, 0),
            (0x0c00_0000, 5),
            (0x0c00_4000, 0),
        ],
    );
}

#[test]
fn a_second_host_route_of_a_unit_takes_eight_bytes_and_a_value() {
    let one = [("10.0.0.0/8", 1), ("10.1.2.0/24", 2), ("10.1.9.0/24", 3), ("10.1.2.77/32", 4)];
    let two = [&one[..], &[("10.1.9.255/32", 5)]].concat();
    let (one, two) = (build(&one), build(&two));
    assert_eq!(two.memory().lookup_bytes - one.memory().lookup_bytes, 8);
    let expected = [
        (0x0a01_024c, 2),
        (0x0a01_024d, 4),
        (0x0a01_024e, 2),
        (0x0a01_09fe, 3),
        (0x0a01_09ff, 5),
        (0x0b00_0000, 0),
    ];
    answers(&two, &expected);
}

#[test]
fn slots_change_form_behind_one_stretch_and_eight_changes() {
    let mut table = vec![("10.1.2.0/24", 1)];
    let hosts = ["0/32", "2/32", "4/31", "128/25", "8/32", "10/32", "12/32", "14/32", "66/32", "70/31"];
    let hosts: Vec<String> = hosts.iter().map(|host| format!("10.1.2.{host}")).collect();
    for count in 0..=hosts.len() {
        let inside = |last: u32| {
            let at = match last {
                0 => 0,
                2 => 1,
                4 | 5 => 2,
                128.. => 3,
                8 => 4,
                10 => 5,
                12 => 6,
                14 => 7,
                66 => 8,
                70 | 71 => 9,
                _ => usize::MAX,
            };
            at < count
        };
        let keys: Vec<_> =
            (0..256).map(|last| (0x0a01_0200 | last, if inside(last) { 2 } else { 1 })).collect();
        answers(&build(&table), &keys);
        table.extend(hosts.get(count).map(|host| (&**host, 2)));
    }
}

#[test]
fn next_hops_at_the_edge_of_every_width_are_answered() {
    let ids =
        [253, 254, 255, 256, 65_534, 65_535, 65_536, 1 << 23, (1 << 23) - 1, 1 << 31, u32::MAX - 1, u32::MAX];
    for id in ids {
        let fib = build(&[("10.1.2.0/24", id), ("10.1.2.9/32", 7), ("10.1.4.0/24", id), ("12.0.0.0/7", id)]);
        let expected = [
            (0x0a01_0208, id),
            (0x0a01_0209, 7),
            (0x0a01_0300, 0),
            (0x0a01_0401, id),
            (0x0c00_0000, id),
            (0x0dff_ffff, id),
            (0x0e00_0000, 0),
        ];
        answers(&fib, &expected);
    }
}

#[test]
fn places_count_more_words_where_units_need_them() {
    // Every second address of these /24s is a host route: 4 words of changes and 32 of values each.
    let hosts = (0..128_000).flat_map(|slot: u32| (0..128).map(move |at| slot << 8 | at << 1));
    let route = |addr: u32| Route::new(Prefix::host(addr), NextHop::new(1 + addr % 7).unwrap());
    let fib = of(hosts.map(route).collect());
    assert!(fib.step > 0 && fib.step <= STEP_MAX, "{}", fib.step);
    answers(&fib, &[(0, 1), (1, 0), (0x01f3_0002, 1 + 0x01f3_0002 % 7), (0x01f3_0003, 0), (0xff00_0000, 0)]);
}

#[test]
fn a_limit_on_memory_is_kept() {
    let route = Route::<u32>::new("10.0.0.0/24".parse().unwrap(), NextHop::new(1).unwrap());
    let error = Dir17Bitmap::build(&RouteSlice::new(&[route]).unwrap(), Limits::within(1 << 18)).unwrap_err();
    assert!(error.out_of_memory().is_some() && error.engine() == NAME);
}

crate::fib::in_place_tests::stops_at_every_store!(|routes, limits| Ok(Box::new(Editor::build(
    routes, limits
)?)));
