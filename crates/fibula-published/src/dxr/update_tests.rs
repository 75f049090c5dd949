//! What the conformance suite cannot know of changes in place: what is rebuilt and what is left alone, where the limits
//! are, and that threads do what one does.

use fibula::fib::Applied;
use fibula::fib::Fib;
use fibula::net::{Ipv4Key, NextHop, Prefix, Route, RouteSlice, Toy};
use fibula::rib::Rib;
use fibula::unstable::in_place::{InPlace, RetiredUnit};
use fibula::unstable::memory::Limits;
use fibula::unstable::parts::lanes;
use fibula::unstable::testing::Random;

use super::check::Walked;
use super::editor::Editor;
use super::layout::{LiveCompact, LiveWide};
use super::room::Room;
use super::written::{CHUNKS, NEXT_HOPS};
use super::{Dxr, Format, Options, Search};

/// Returns a route of a table like those of the Internet, and some that are not.
fn random_route(random: &mut Random) -> Route<u32> {
    let near = 0x0a00_0000 + (random.below(4) as u32 * 0x3100_0000) + ((random.below(64) as u32) << 16);
    let addr = near | random.below(1 << 16) as u32;
    let len = match random.below(100) {
        0..60 => 24,
        60..80 => 17 + random.below(7) as u8,
        80..88 => 25 + random.below(8) as u8,
        88..94 => 32,
        94..99 => 8 + random.below(9) as u8,
        _ => random.below(9) as u8,
    };
    let ids = if random.below(20) == 0 { 1 << 31 } else { 9 };
    Route::new(Prefix::masked(addr, len).unwrap(), NextHop::new(1 + random.below(ids) as u32).unwrap())
}

fn options(k: u8, format: Format, search: Search) -> Options {
    Options { k, format, search }
}

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

fn prefix(text: &str) -> Prefix<u32> {
    text.parse().unwrap()
}

fn rib(routes: impl IntoIterator<Item = Route<u32>>) -> Rib<u32> {
    let mut rib = Rib::default();
    insert(&mut rib, routes);
    rib
}

fn insert(rib: &mut Rib<u32>, routes: impl IntoIterator<Item = Route<u32>>) {
    for route in routes {
        rib.insert(route).unwrap();
    }
}

/// Publishes what is prepared, and frees what that retires, which is returned.
fn publish<K: Ipv4Key, F: Room + Walked>(editor: &mut Editor<K, F>) -> Vec<RetiredUnit> {
    let mut retired = Vec::new();
    let most = editor.retires();
    editor.publish(&mut retired);
    assert!(retired.len() <= most);
    editor.check(&retired).unwrap();
    retired.iter().for_each(|&unit| editor.free(unit));
    editor.check(&[]).unwrap();
    retired
}

fn churn<F: Room + Walked>(options: Options, rounds: usize) {
    let mut random = Random(7);
    let mut rib = rib((0..20_000).map(|_| random_route(&mut random)).collect::<Vec<_>>());
    let mut editor = Editor::<u32, F>::build(&rib, options, Limits::default()).unwrap();
    editor.check(&[]).unwrap();
    let mut retired = Vec::new();
    for round in 0..rounds {
        let mut prefixes = Vec::new();
        let count = [1, 5, 64, 400][round % 4];
        while prefixes.len() < count {
            let route = random_route(&mut random);
            if random.below(2) == 0 {
                rib.insert(route).unwrap();
                prefixes.push(route.prefix);
            } else if let Some(known) = rib.lookup_prefix(route.prefix.addr()) {
                rib.remove(known.prefix);
                prefixes.push(known.prefix);
            }
        }
        prefixes.sort_unstable();
        // Some changes are swept by several threads, on a machine with one processor too.
        (editor.threads, editor.together_from) = (3, if round % 3 == 1 { 1 } else { 100 });
        if let Applied::NeedsRebuild(reason) = editor.prepare(&prefixes, &rib, false).unwrap() {
            // In so few chunks that holes hardly fit.
            assert_eq!(reason, "free places too small for chunks");
            editor = Editor::build(&rib, options, Limits::default()).unwrap();
            retired.clear();
            assert_eq!(editor.prepare(&prefixes, &rib, false).unwrap(), Applied::InPlace);
            assert_eq!(editor.written.stores.len(), 0);
        }
        if round % 5 == 1 {
            editor.abandon();
            editor.check(&retired).unwrap();
            assert_eq!(editor.prepare(&prefixes, &rib, false).unwrap(), Applied::InPlace);
        }
        let old = editor.reading();
        if round % 3 == 0 {
            editor.make_shadow().unwrap();
            editor.publish_shadow(&mut retired);
        } else {
            editor.publish(&mut retired);
        }
        drop(old);
        editor.check(&retired).unwrap();
        if round % 2 == 0 {
            retired.drain(..).for_each(|unit| editor.free(unit));
        }
        editor.tidy(16).unwrap();
        editor.publish(&mut retired);
        editor.check(&retired).unwrap();
        let mut keys = Vec::new();
        for &prefix in &prefixes {
            let (first, last) = (prefix.addr(), prefix.last());
            keys.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
        }
        keys.extend(rib.iter().step_by(1 + round % 7).map(|route| route.prefix.last().wrapping_add(1)));
        let fib = editor.reading();
        for &key in &keys {
            assert_eq!(fib.lookup_key(key), rib.lookup(key), "{key:x}");
        }
        if round % 4 == 0 {
            lanes::agree(&*editor.table, &keys);
        }
    }
    retired.drain(..).for_each(|unit| editor.free(unit));
    for _ in 0..50 {
        if editor.prepare(&[], &rib, false).unwrap() != Applied::InPlace {
            editor = Editor::build(&rib, options, Limits::default()).unwrap();
        }
        editor.tidy(1 << 14).unwrap();
        publish(&mut editor);
    }
    let fresh = Dxr::build(&rib, options, Limits::default()).unwrap().memory().lookup_bytes;
    let bytes = editor.reading().memory().lookup_bytes;
    assert!(bytes * 4 < fresh * 5, "{bytes}, {fresh}");
}

#[test]
fn changes_in_place_answer_like_a_fresh_build() {
    churn::<LiveCompact>(options(16, Format::Stretched, Search::EarlyStop), 40);
    churn::<LiveCompact>(options(18, Format::Stretched, Search::BranchFree), 40);
    churn::<LiveCompact>(options(20, Format::Drawn, Search::EarlyStop), 8);
    churn::<LiveWide>(options(18, Format::Wide, Search::BranchFree), 40);
}

#[test]
fn a_dirty_chunk_is_rebuilt_once_and_one_that_stays_the_same_is_left() {
    let options = options(18, Format::Stretched, Search::EarlyStop);
    let slash_24 = |at: u32, id| Route::new(Prefix::masked(0x0a00_0000 + (at << 8), 24).unwrap(), hop(id));
    let mut routes = rib((0..256).map(|at| slash_24(at, 1 + at % 3)));
    let mut editor = Editor::<u32, LiveCompact>::build(&routes, options, Limits::default()).unwrap();
    // All /24s of two chunks of four.
    let prefixes: Vec<_> = (0..128).map(|at| slash_24(at, 1).prefix).collect();
    insert(&mut routes, (0..128).map(|at| slash_24(at, 1 + at % 2)));
    assert_eq!(editor.prepare(&prefixes, &routes, false).unwrap(), Applied::InPlace);
    assert_eq!(editor.written.stores.len(), 2);
    assert_eq!(publish(&mut editor).len(), 2);
    // A shorter route that others hide, and one that changes the addresses after them.
    routes.insert(Route::new(prefix("10.0.0.0/17"), hop(5))).unwrap();
    assert_eq!(editor.prepare(&[prefix("10.0.0.0/17")], &routes, false).unwrap(), Applied::InPlace);
    assert_eq!((editor.retires(), publish(&mut editor).len()), (0, 0));
    routes.insert(Route::new(prefix("10.0.0.0/15"), hop(5))).unwrap();
    assert_eq!(editor.prepare(&[prefix("10.0.0.0/15")], &routes, false).unwrap(), Applied::InPlace);
    // Chunks of one next hop retire nothing but what that replaced: "no route", which keeps its code.
    assert_eq!((editor.written.stores.len(), publish(&mut editor).len()), (4, 0));
    assert_eq!(editor.reading().lookup_key(0x0a01_ffff), NextHop::new(5));
}

#[test]
fn codes_come_back_with_the_last_chunk_that_has_them() {
    let options = options(16, Format::Stretched, Search::EarlyStop);
    let mut routes = rib([("10.0.0.0/24", 7), ("10.1.0.0/24", 7), ("10.2.0.0/16", 8)].map(route));
    let mut editor = Editor::<u32, LiveCompact>::build(&routes, options, Limits::default()).unwrap();
    let mut change = |text: &str, id| {
        routes.insert(Route::new(prefix(text), hop(id))).unwrap();
        assert_eq!(editor.prepare(&[prefix(text)], &routes, false).unwrap(), Applied::InPlace);
        let mut retired = Vec::new();
        editor.publish(&mut retired);
        editor.check(&retired).unwrap();
        let end = editor.written.codes.end();
        let arrays = retired.iter().map(|unit| unit.array).collect::<Vec<_>>();
        retired.into_iter().for_each(|unit| editor.free(unit));
        assert_eq!(editor.reading().lookup_key(prefix(text).addr()), NextHop::new(id));
        (arrays, end)
    };
    // "No route", 7 and 8 have codes; the next one is the fourth.
    assert_eq!(change("10.0.0.0/24", 9), (vec![CHUNKS], 4));
    assert_eq!(change("10.1.0.0/24", 9), (vec![CHUNKS, NEXT_HOPS], 4));
    // The code of 7 is free. Two more take it and a new one.
    assert_eq!(change("10.2.0.0/16", 10), (vec![NEXT_HOPS], 4));
    assert_eq!(change("10.3.0.0/16", 11), (vec![], 4));
    assert_eq!(change("10.4.0.0/16", 12), (vec![], 5));
}

fn route((text, id): (&str, u32)) -> Route<u32> {
    Route::new(prefix(text), hop(id))
}

/// Changes these routes in a table that has others, and returns why it has to be built anew.
fn reason(k: u8, before: Vec<Route<u32>>, more: Vec<Route<u32>>) -> Applied {
    let mut routes = rib(before);
    let options = options(k, Format::Stretched, Search::EarlyStop);
    let mut editor = Editor::<u32, LiveCompact>::build(&routes, options, Limits::default()).unwrap();
    let key = more[more.len() - 1].prefix.addr();
    let answer = editor.reading().lookup_key(key);
    let prefixes: Vec<_> = more.iter().map(|route| route.prefix).collect();
    insert(&mut routes, more);
    let applied = editor.prepare(&prefixes, &routes, false).unwrap();
    if applied != Applied::InPlace {
        // Nothing is prepared then.
        assert_eq!((editor.retires(), editor.written.codes.fresh().len()), (0, 0));
        assert_eq!(editor.reading().lookup_key(key), answer);
        editor.check(&[]).unwrap();
        match Editor::build(&routes, options, Limits::default()) {
            Ok(anew) => editor = anew,
            Err(refused) => {
                assert!(refused.is_limit());
                return applied;
            }
        }
        editor.check(&[]).unwrap();
    } else {
        publish(&mut editor);
    }
    assert_eq!(editor.reading().lookup_key(key), routes.lookup(key));
    applied
}

#[test]
fn what_the_format_has_no_room_for_is_built_anew() {
    let hosts = |first: u32, count: u32| -> Vec<Route<u32>> {
        (0..count).map(|at| Route::new(Prefix::host(first + 2 * at), hop(7))).collect()
    };
    // Sizes of 12 bits: 4,096 ranges, two a host route.
    assert_eq!(reason(16, Vec::new(), hosts(0x0a00_0000, 2_048)), Applied::InPlace);
    let size = "a chunk with more ranges than its size can say";
    assert_eq!(reason(16, Vec::new(), hosts(0x0a00_0000, 2_049)), Applied::NeedsRebuild(size));
    // With 1,500 of them, there are bits for as many again.
    assert_eq!(reason(16, hosts(0x0a00_0000, 1_500), hosts(0x0a00_0000, 4_000)), Applied::InPlace);
    // Positions of 19 bits, three units a host route alone in its chunk.
    let spread = |count: u32| -> Vec<Route<u32>> {
        (0..count).map(|at| Route::new(Prefix::host(at << 12 | 9), hop(7))).collect()
    };
    assert_eq!(reason(20, Vec::new(), spread(174_762)), Applied::InPlace);
    let places = "more ranges than there is room for";
    assert_eq!(reason(20, Vec::new(), spread(174_763)), Applied::NeedsRebuild(places));
    assert_eq!(reason(20, spread(100_000), spread(200_000)), Applied::InPlace);
    // Next hops in ranges have 16 bits, and so has the array of those that a small table may come to have.
    let hops = |count: u32| -> Vec<Route<u32>> {
        (0..count).map(|at| Route::new(Prefix::masked(at << 8, 24).unwrap(), hop(1_000 + at))).collect()
    };
    assert_eq!(reason(22, Vec::new(), hops(65_535)), Applied::InPlace);
    let codes = "more next hops than there is room for";
    let mut one_more = hops(65_535);
    one_more.push(Route::new(prefix("20.0.0.0/8"), hop(1)));
    assert_eq!(reason(22, Vec::new(), one_more), Applied::NeedsRebuild(codes));
    // A larger table has room for more, but ranges cannot name them.
    let direct = (0..20_000).map(|at| Route::new(Prefix::masked(at << 10, 22).unwrap(), hop(100_000 + at)));
    let ranges =
        (0..46_000).map(|at| Route::new(Prefix::masked(0x8000_0000 | at << 8, 24).unwrap(), hop(1 + at)));
    let names = "more next hops than ranges can name";
    assert_eq!(reason(22, direct.collect(), ranges.collect()), Applied::NeedsRebuild(names));
}

#[test]
fn popular_next_hops_that_came_late_ask_for_a_rebuild() {
    let options = options(18, Format::Stretched, Search::EarlyStop);
    let slash_24 = |at: u32, id| Route::new(Prefix::masked(0x0a00_0000 + (at << 9), 24).unwrap(), hop(id));
    // So many next hops that no small code is left.
    let mut routes = rib((0..300).map(|at| slash_24(at, 1 + at)));
    let mut editor = Editor::<u32, LiveCompact>::build(&routes, options, Limits::default()).unwrap();
    let mut rebuilt = 0;
    for from in (0..20_000).step_by(100) {
        let new: Vec<_> = (from..from + 100).map(|at| slash_24(1_000 + at, 5_000 + at % 9)).collect();
        let prefixes: Vec<_> = new.iter().map(|route| route.prefix).collect();
        insert(&mut routes, new);
        if editor.prepare(&prefixes, &routes, false).unwrap() == Applied::InPlace {
            publish(&mut editor);
        } else {
            editor = Editor::build(&routes, options, Limits::default()).unwrap();
            rebuilt += 1;
        }
    }
    assert_eq!(rebuilt, 1);
    let fresh = Dxr::build(&routes, options, Limits::default()).unwrap().memory().lookup_bytes;
    assert!(editor.reading().memory().lookup_bytes < fresh + fresh / 8);
}

#[test]
fn what_is_freed_is_not_counted_any_more() {
    let options = options(16, Format::Stretched, Search::EarlyStop);
    let mut routes = rib([route(("10.0.0.0/24", 7))]);
    // Little more than the table takes.
    let limits = Limits { memory_bytes: Some(1 << 20), huge_pages: false };
    let mut editor = Editor::<u32, LiveCompact>::build(&routes, options, limits).unwrap();
    for round in 0..20_000 {
        routes.insert(route(("10.0.0.0/24", 8 + round % 1_000))).unwrap();
        assert_eq!(editor.prepare(&[prefix("10.0.0.0/24")], &routes, false).unwrap(), Applied::InPlace);
        let mut retired = Vec::new();
        if round % 2 == 0 {
            editor.abandon();
        } else {
            editor.publish(&mut retired);
            retired.into_iter().for_each(|unit| editor.free(unit));
        }
    }
    editor.check(&[]).unwrap();
    assert!(editor.memory().held_bytes() < 1 << 19, "{:?}", editor.memory());
}

#[test]
fn all_changes_of_a_small_space_answer_right() {
    type K = Toy<8>;
    let mut random = Random(3);
    for (k, format) in [(1, Format::Wide), (4, Format::Stretched), (3, Format::Stretched), (6, Format::Wide)]
    {
        let options = options(k, format, Search::BranchFree);
        let mut routes: Vec<Route<K>> = Vec::new();
        let mut fib =
            super::update::build::<K>(&RouteSlice::new(&[]).unwrap(), options, Limits::default()).unwrap();
        for _ in 0..400 {
            let (addr, len) = (random.below(256), random.below(9) as u8);
            let changed = Prefix::masked(fibula::net::Key::from_bits(addr.into()), len).unwrap();
            routes.retain(|route| route.prefix != changed);
            if random.below(3) > 0 {
                routes.push(Route::new(changed, hop(1 + random.below(3) as u32)));
            }
            routes.sort_by_key(|route| route.prefix);
            let slice = RouteSlice::new(&routes).unwrap();
            if fib.prepare(&[changed], &slice, false).unwrap() == Applied::InPlace {
                let mut retired = Vec::new();
                fib.publish(&mut retired);
                fib.check(&retired).unwrap();
                retired.into_iter().for_each(|unit| fib.free(unit));
            } else {
                fib = super::update::build::<K>(&slice, options, Limits::default()).unwrap();
            }
            fib.check(&[]).unwrap();
            let reading = fib.reading();
            for key in (0..256).map(fibula::net::Key::from_bits) {
                let covers = routes.iter().filter(|route| route.prefix.contains(key));
                let longest = covers.max_by_key(|route| route.prefix.len()).map(|route| route.next_hop);
                assert_eq!(reading.lookup_key(key), longest, "{routes:?}");
            }
        }
    }
}

#[test]
fn every_address_answers_as_before_or_after_at_every_store() {
    use fibula::unstable::testing::stops;

    const COMPACT: Options = Options { k: 4, format: Format::Stretched, search: Search::EarlyStop };
    const WIDE: Options = Options { k: 4, format: Format::Wide, search: Search::BranchFree };
    stops::<Toy<8>>(|routes, limits| super::update::build(routes, COMPACT, limits), 300);
    stops::<Toy<10>>(|routes, limits| super::update::build(routes, WIDE, limits), 100);
}
