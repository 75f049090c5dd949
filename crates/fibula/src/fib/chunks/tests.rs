//! What the conformance suite cannot know: which parts of the format a table reaches, and what they cost.

use super::layout::{Entry, map_place};
use super::{Chunks, Form};
use crate::fib::{BuildError, Fib};
use crate::memory::Limits;
use crate::net::{NextHop, Route, RouteSlice};
use crate::simd::Present;

const FORMS: [Form; 2] = [Form::Rank, Form::Dense];

fn build(form: Form, table: &[(&str, u32)]) -> Result<Chunks<u32>, BuildError> {
    let mut routes: Vec<_> = table
        .iter()
        .map(|&(prefix, id)| Route::new(prefix.parse().unwrap(), NextHop::new(id).unwrap()))
        .collect();
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    Chunks::build(&RouteSlice::new(&routes).unwrap(), form, Limits::default())
}

/// Every key's answer one at a time and in batches of every set, each rotated so that every lane sees it.
fn answers(chunks: &Chunks<u32>, expected: &[(u32, u32)]) {
    chunks.check().unwrap();
    let keys: Vec<u32> = expected.iter().map(|&(key, _)| key).collect();
    let next_hops: Vec<_> = expected.iter().map(|&(_, id)| NextHop::new(id)).collect();
    for (&key, &next_hop) in keys.iter().zip(&next_hops) {
        assert_eq!(chunks.lookup(key), next_hop, "{key:x}");
    }
    for present in Present::all() {
        for turn in 0..keys.len() {
            let of = |at: usize| (at + turn) % keys.len();
            let batch: Vec<u32> = (0..300).map(|at| keys[of(at)]).collect();
            let mut results = vec![None; batch.len()];
            chunks.lookup_batch_on(present, &batch, &mut results);
            for (at, result) in results.iter().enumerate() {
                assert_eq!(*result, next_hops[of(at)], "{} at {at}: {:x}", present.isa(), batch[at]);
            }
        }
    }
}

#[test]
fn a_slot_finds_its_bit() {
    for slot in 0..256 {
        assert_eq!(map_place(slot), (slot / 24, slot % 24));
    }
}

#[test]
fn a_host_route_takes_eight_bytes_and_its_place_in_the_list() {
    for form in FORMS {
        let plain = build(form, &[("10.0.0.0/8", 1), ("10.1.2.0/24", 2), ("10.1.9.0/24", 3)]).unwrap();
        let host =
            build(form, &[("10.0.0.0/8", 1), ("10.1.2.0/24", 2), ("10.1.9.0/24", 3), ("10.1.2.77/32", 4)])
                .unwrap();
        let map = 4 * host.geometry.deep_words() as usize;
        let lookup_bytes = |chunks: &Chunks<u32>| chunks.memory().lookup_bytes;
        // The place of the map, the map, a place in the list, and the chunk.
        assert_eq!(lookup_bytes(&host) - lookup_bytes(&plain), 4 + map + 4 + 8);
        answers(
            &host,
            &[(0x0a01_024c, 2), (0x0a01_024d, 4), (0x0a01_024e, 2), (0x0a01_0900, 3), (0x0b00_0000, 0)],
        );
    }
}

#[test]
fn deeper_chunks_change_form_behind_four_changes() {
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
        for form in FORMS {
            answers(&build(form, &table).unwrap(), &keys(count));
        }
        table.extend(hosts.get(count));
    }
}

#[test]
fn values_are_as_wide_as_their_chunk_needs() {
    for (id, width) in [(254, 0), (255, 1), (65_534, 1), (65_535, 2), (1 << 31, 2), (u32::MAX - 1, 2)] {
        for form in FORMS {
            let chunks = build(form, &[("10.1.2.0/24", id), ("10.1.2.9/32", 7), ("10.3.0.0/24", 9)]).unwrap();
            let entry = |key: u32| Entry(chunks.direct[chunks.geometry.direct(key)]);
            assert_eq!((entry(0x0a03_0000).width(), entry(0x0a03_0000).is_chunk()), (0, true));
            answers(&chunks, &[(0x0a01_0208, id), (0x0a01_0209, 7), (0x0a01_0300, 0), (0x0a03_0001, 9)]);
            let whole = build(form, &[("10.1.2.0/24", id), ("10.1.3.0/24", 7)]).unwrap();
            assert_eq!(Entry(whole.direct[whole.geometry.direct(0x0a01_0200)]).width(), width, "{id}");
        }
    }
}

#[test]
fn next_hops_that_no_entry_or_value_can_hold_are_answered() {
    let table =
        [("10.0.0.0/8", u32::MAX), ("11.0.0.0/8", 1 << 31), ("12.1.2.0/24", u32::MAX), ("12.1.2.3/32", 1)];
    for form in FORMS {
        let chunks = build(form, &table).unwrap();
        answers(
            &chunks,
            &[
                (0x0aff_ffff, u32::MAX),
                (0x0b00_0000, 1 << 31),
                (0x0c01_0202, u32::MAX),
                (0x0c01_0203, 1),
                (0, 0),
            ],
        );
    }
}

#[test]
fn a_limit_on_memory_is_kept() {
    let routes = [Route::new("10.0.0.0/24".parse().unwrap(), NextHop::new(1).unwrap())];
    let error =
        Chunks::<u32>::build(&RouteSlice::new(&routes).unwrap(), Form::Dense, Limits::within(1 << 20));
    assert!(error.unwrap_err().out_of_memory().is_some());
}
