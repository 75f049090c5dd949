//! What the conformance suite cannot know: the stored form of an example, where the limits are, and that the stretched
//! formats exceed them.

use fibula::fib::Fib;
use fibula::net::{Ipv4Key, Key, NextHop, Prefix, Route, RouteSlice, Toy};
use fibula::unstable::memory::Limits;
use fibula::unstable::parts::lanes;

use super::entries::Entries;
use super::geometry::Split;
use super::layout::{Form, SHORT};
use super::{Dxr, Format, Options, Search};

const DRAWN: Split = Split { size_bits: 12, position_bits: 19, shift: 0 };

fn route<K: Ipv4Key>(addr: u128, len: u8, id: u32) -> Route<K> {
    Route::new(Prefix::new(K::from_bits(addr), len).unwrap(), NextHop::new(id).unwrap())
}

fn build<K: Ipv4Key>(k: u8, format: Format, routes: &[Route<K>]) -> Result<Dxr<K>, String> {
    let options = Options { k, format, search: Search::EarlyStop };
    let fib = Dxr::build(&RouteSlice::new(routes).unwrap(), options, Limits::default());
    let fib = fib.map_err(|error| {
        assert!(error.is_limit());
        error.to_string()
    })?;
    fib.check().unwrap();
    Ok(fib)
}

fn branch_free<K: Ipv4Key>(k: u8, format: Format, routes: &[Route<K>]) -> Dxr<K> {
    let options = Options { k, format, search: Search::BranchFree };
    Dxr::build(&RouteSlice::new(routes).unwrap(), options, Limits::default()).unwrap()
}

/// Returns a chunk as it is stored: whether it is short, and base and next hop of each searched entry; one entry for a
/// next hop in a direct entry.
fn chunk<K: Ipv4Key>(fib: &Dxr<K>, index: usize) -> (bool, Vec<(u16, u32)>) {
    let Form::Compact(form) = &fib.form else { panic!("not the paper's format") };
    let direct = form.direct(index);
    if let (true, word) = form.in_place(direct) {
        return (false, vec![(0, word)]);
    }
    let (chunk, short) = (form.chunk(direct), direct & SHORT != 0);
    let half = |entry: usize| chunk.first + (entry << chunk.stride);
    let base = |half: usize| if short { form.ranges[half] >> 8 } else { form.ranges[half] };
    let entries = (0..chunk.entries).map(|at| (base(half(at)), form.answer(chunk, half(at))));
    (short, entries.collect())
}

const A: u32 = 1;
const B: u32 = 2;
const C: u32 = 3;
const D: u32 = 4;

fn example() -> Vec<Route<u32>> {
    vec![
        route(0, 0, A),
        route(0x0100_0000, 8, B),
        route(0x0102_0000, 16, C),
        route(0x0102_0300, 24, D),
        route(0x0102_0405, 32, C),
    ]
}

#[test]
fn the_worked_example_for_every_k() {
    for k in 16..=24 {
        for format in [Format::Drawn, Format::Stretched] {
            let fib = build(k, format, &example()).unwrap();
            // All other direct entries hold a next hop.
            let scale = 1 << (k - 16);
            let (at, short): (usize, Vec<(u16, u32)>) = match k {
                ..=21 => (0x102 * scale, vec![(0, C), (3, D), (4, C)]),
                22 => (0x4080, vec![(0, C), (3, D)]),
                23 => (0x8101, vec![(0, C), (1, D)]),
                _ => (0x0001_0203, vec![(0, D)]),
            };
            assert_eq!(chunk(&fib, at), (k < 24, short), "k = {k}");
            for index in (0..1 << k).filter(|&index| index != at) {
                // The /16 that the index lies in, and the /24 where it is as long.
                let next_hop = match (index >> (k - 16), k, index) {
                    (..0x100 | 0x200.., ..) => A,
                    (0x102, ..) => C,
                    _ => B,
                };
                assert_eq!(chunk(&fib, index), (false, vec![(0, next_hop)]), "k = {k}, chunk {index:#x}");
            }
            let statistics = fib.statistics();
            assert_eq!(statistics.split, Some(DRAWN));
            let short_ranges = match k {
                ..=21 => 4,
                22 | 23 => 2,
                _ => 0,
            };
            assert_eq!((statistics.chunks, statistics.long_ranges), (usize::from(k < 24), 0));
            assert_eq!(statistics.short_ranges, short_ranges, "an odd short chunk is padded");
            assert_eq!(statistics.paper_bytes(), Some((4u64 << k) + 2 * short_ranges as u64 + 24 * 5));
            let memory = fib.memory();
            assert_eq!(memory.lookup_bytes, (4 << k) + 2 * short_ranges + 4 * 5);
            assert_eq!(memory.held_bytes(), memory.lookup_bytes);
        }
    }
}

#[test]
fn the_loops_take_their_steps() {
    // Eight ranges in one chunk.
    let routes: Vec<Route<u32>> =
        (0..8).map(|at| route(0x0102_0000 | at << 8, 24, 1 + at as u32 % 2)).collect();
    let options = |search| Options { k: 16, format: Format::Stretched, search };
    let slice = RouteSlice::new(&routes).unwrap();
    let steps = |search| {
        let fib = Dxr::build(&slice, options(search), Limits::default()).unwrap();
        assert_eq!(chunk(&fib, 0x102).1.len(), 9);
        [0x0101_0000, 0x0102_0400, 0x0102_0200, 0x0102_0000, 0x0102_08ff].map(|key| fib.search_steps(key))
    };
    // No chunk; the middle entry; the middle of the lower half; the first entry; the last.
    assert_eq!(steps(Search::EarlyStop), [0, 1, 2, 3, 2]);
    assert_eq!(steps(Search::BranchFree), [0, 4, 4, 4, 4]);
}

/// Host routes on every other address from the start of a /16 on: `2 * count` ranges in its chunk, or one more.
fn crowd(count: u128) -> Vec<Route<u32>> {
    (0..count).map(|at| route(0x0102_0000 | at << 1, 32, 7)).collect()
}

#[test]
fn the_size_limit() {
    let fib = build(16, Format::Drawn, &crowd(2_048)).unwrap();
    assert_eq!(fib.statistics().chunk_entries_max, 4_096);
    assert_eq!((fib.lookup_key(0x0102_0ffe), fib.lookup_key(0x0102_0fff)), (NextHop::new(7), None));
    assert_eq!(
        build(16, Format::Drawn, &crowd(2_049)).unwrap_err(),
        "dxr: at most 4096 entries in a chunk, this table needs 4098"
    );
    // Another split holds it, up to all the addresses of a chunk.
    let fib = build(16, Format::Stretched, &crowd(2_049)).unwrap();
    assert_eq!(fib.statistics().split, Some(Split { size_bits: 13, position_bits: 18, shift: 0 }));
    let fib = build(16, Format::Stretched, &crowd(32_768)).unwrap();
    assert_eq!(fib.statistics().chunk_entries_max, 65_536);
    assert_eq!(fib.lookup_key(0x0102_fffe), NextHop::new(7));
    assert_eq!(fib.lookup_key(0x0102_ffff), None);
}

/// One host route in each of the first `count` chunks of k = 20: three long entries a chunk, two in the first.
fn spread(count: u128) -> Vec<Route<u32>> {
    (0..count).map(|at| route(at << 12 | if at == 0 { 0 } else { 9 }, 32, 1 + at as u32 % 300)).collect()
}

#[test]
fn the_position_limit_and_how_far_stretching_reaches() {
    // The last chunk starts at unit 524,285; another one would start at 2^19.
    let fib = build(20, Format::Drawn, &spread(174_763)).unwrap();
    assert_eq!(fib.statistics().split, Some(DRAWN));
    assert_eq!(fib.lookup_key(174_762 << 12 | 9), NextHop::new(1 + 174_762 % 300));
    assert_eq!(
        build(20, Format::Drawn, &spread(174_764)).unwrap_err(),
        "dxr: at most 524287 units of 4 bytes before the last chunk, this table needs 524288"
    );
    // Sizes up to 3 take two bits, which leaves 29 for the position.
    let fib = build(20, Format::Stretched, &spread(174_764)).unwrap();
    assert_eq!(fib.statistics().split, Some(Split { size_bits: 2, position_bits: 29, shift: 0 }));
    for at in [1, 174_762, 174_763u32] {
        let keys = [8, 9, 10].map(|low| fib.lookup_key(at << 12 | low));
        assert_eq!(keys, [None, NextHop::new(1 + at % 300), None]);
    }
}

/// A crowd of 65,536 ranges takes 16 bits of size, which leave 15 bits of position, too few for the other chunks.
#[test]
fn padding_stretches_the_position() {
    let mut routes = crowd(32_768);
    routes.extend((0x200..0x4200).map(|at| route(at << 16 | 9, 32, 7)));
    let fib = build(16, Format::Stretched, &routes).unwrap();
    let statistics = fib.statistics();
    // In fours, 15 bits of size suffice, and 16 of position reach 2^18 units. Three entries are padded to four.
    assert_eq!(statistics.split, Some(Split { size_bits: 15, position_bits: 16, shift: 2 }));
    assert_eq!(statistics.long_ranges, 65_536 + 4 * 0x4000);
    assert_eq!(chunk(&fib, 0x41ff).1, [(0, 0), (9, 7), (10, 0), (10, 0)]);
    for key in [0x41ff_0008, 0x41ff_0009, 0x41ff_000a, 0x0102_fffe, 0x0102_ffff, 0x41ff_ffff] {
        let routed = key & 0xffff == 9 || key == 0x0102_fffe;
        assert_eq!(fib.lookup_key(key), NextHop::new(if routed { 7 } else { 0 }), "{key:#x}");
    }
    // More than the last stretch holds.
    let routes: Vec<_> = (0..0x30).flat_map(|at| crowd_at(at << 16)).collect();
    assert_eq!(
        build(16, Format::Stretched, &routes).unwrap_err(),
        "dxr: at most 1048575 units of 4 bytes before the last chunk, this table needs 3080192"
    );
    build(16, Format::Wide, &routes).unwrap();
}

fn crowd_at(start: u128) -> impl Iterator<Item = Route<u32>> {
    (0..32_768).map(move |at| route(start | at << 1, 32, 7))
}

#[test]
fn the_two_limits_of_next_hops() {
    // One in each /24 with k = 23, whose chunks hold two /24s: all next hops are in ranges.
    let id = |at: u128| u32::MAX - at as u32;
    let ranges = |count| -> Vec<Route<u32>> { (0..count).map(|at| route(at << 8, 24, id(at))).collect() };
    let fib = build(23, Format::Stretched, &ranges(65_535)).unwrap();
    assert_eq!(fib.lookup_key(65_534 << 8), NextHop::new(id(65_534)));
    assert_eq!(
        build(23, Format::Stretched, &ranges(65_536)).unwrap_err(),
        "dxr: at most 65535 next hops in ranges, this table needs 65536"
    );
    // Direct entries have room for more.
    let direct = |count| -> Vec<Route<u32>> { (0..count).map(|at| route(at << 9, 23, id(at))).collect() };
    let fib = build(23, Format::Drawn, &direct(524_287)).unwrap();
    assert_eq!(fib.lookup_key(524_286 << 9), NextHop::new(id(524_286)));
    assert_eq!(
        build(23, Format::Drawn, &direct(524_288)).unwrap_err(),
        "dxr: at most 524287 next hops in direct entries, this table needs 524288"
    );
    build(23, Format::Stretched, &direct(524_288)).unwrap();
    build(23, Format::Wide, &ranges(65_536)).unwrap();
}

/// 255 next hops and "no route" fit short entries: the most popular ones.
#[test]
fn short_chunks_take_the_popular_next_hops() {
    let table = |hops: u128| -> Vec<Route<u32>> {
        // The last next hop is in one /24, the others are in two.
        let once = (0..hops).map(|at| route(at << 16, 24, 1_000 + at as u32));
        let again = (0..hops - 1).map(|at| route(0x0200_0000 | at << 16, 24, 1_000 + at as u32));
        once.chain(again).collect()
    };
    let fib = build(16, Format::Stretched, &table(255)).unwrap();
    assert_eq!((fib.statistics().short_ranges, fib.statistics().long_ranges), (509 * 2, 0));
    let fib = build(16, Format::Stretched, &table(256)).unwrap();
    assert_eq!((fib.statistics().short_ranges, fib.statistics().long_ranges), (510 * 2, 2));
    assert!(!chunk(&fib, 255).0, "the least popular one is the one that is long");
    assert_eq!(fib.statistics().next_hops, 256);
}

/// The small geometries reach every stretch, both formats, and padding, with right answers.
#[test]
fn toy_widths_exercise_every_stretch() {
    type K = Toy<8>;
    let mut seen = [0; 4];
    let mut both = [false; 2];
    for seed in 0u32..1_000 {
        let mut bits = seed;
        let mut step = || {
            bits = bits.wrapping_mul(0x9e37_79b1).wrapping_add(0x85eb_ca6b);
            bits >> 16
        };
        let mut routes: Vec<Route<K>> = (0..step() % 250)
            .map(|_| {
                let len = 8 - step() % (1 + seed % 8);
                route(u128::from(step()) & (0xff00 >> len & 0xff), len as u8, 1 + step() % 2)
            })
            .collect();
        routes.sort_by_key(|route| route.prefix);
        routes.dedup_by_key(|route| route.prefix);
        if seed % 7 == 0 {
            // All keys, once in order and once not.
            let keys: Vec<K> = (0..530).map(|at| K::from_bits(at * if at < 256 { 1 } else { 91 })).collect();
            lanes::agree(&branch_free(4, Format::Stretched, &routes), &keys);
            lanes::agree(&branch_free(4, Format::Wide, &routes), &keys);
        }
        let fib = build(4, Format::Stretched, &routes).unwrap();
        for key in (0..256).map(K::from_bits) {
            let covers = routes.iter().filter(|route| route.prefix.contains(key));
            let longest = covers.max_by_key(|route| route.prefix.len()).map(|route| route.next_hop);
            assert_eq!(fib.lookup_key(key), longest, "{routes:?}");
        }
        let statistics = fib.statistics();
        seen[usize::from(statistics.split.unwrap().shift)] += 1;
        both[0] |= statistics.short_ranges > 0;
        both[1] |= statistics.long_ranges > 0;
    }
    assert!(both[0] && both[1], "{both:?}");
    assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
}

/// Short, long and full chunks, next hops in direct entries, and no chunks at all; at both ends of the space and of
/// each chunk.
#[test]
fn every_set_answers_as_single_lookups_do() {
    let mut routes = crowd(32_768);
    routes.push(route(0, 32, 1));
    routes.push(route(0xffff_ffff, 32, 2));
    routes.extend((0..300).map(|at| route(0x0a00_0000 | at << 16, 24, 3 + at as u32)));
    routes.extend((0..64).map(|at| route(0x1400_0000 | at << 10, 23, 3 + at as u32 % 2)));
    routes.extend((0..100).map(|at| route((0x50 + at) << 24, 9, 400 + at as u32)));
    routes.sort_by_key(|route| route.prefix);
    let ends = routes.iter().flat_map(|route| [route.prefix.addr(), route.prefix.last()]);
    let beside = ends.step_by(61).flat_map(|key| [key.wrapping_sub(1), key, key.wrapping_add(1)]);
    let spread = (0..500u32).map(|at| at.wrapping_mul(0x9e37_79b9));
    let mut keys: Vec<u32> = spread.chain(beside).chain([0, 1, u32::MAX - 1, u32::MAX]).collect();
    keys.sort_by_key(|key| key.wrapping_mul(0x85eb_ca6b));
    for (k, routes) in [(16, &routes[..]), (18, &routes), (24, &routes), (18, &[]), (18, &routes[..1])] {
        for format in [Format::Stretched, Format::Wide] {
            lanes::agree(&branch_free(k, format, routes), &keys);
        }
    }
}
