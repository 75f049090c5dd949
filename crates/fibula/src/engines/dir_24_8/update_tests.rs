//! Changes in place: the words that are stored, the limits, and the lengths that tables reach.

use core::sync::atomic::AtomicU32;

use crate::fib::in_place::{InPlace, Publication, RetiredUnit, StoredWords, TIDY};
use crate::fib::parts::lanes;
use crate::fib::{Applied, Fib};
use crate::memory::Limits;
use crate::net::{NextHop, Prefix, Route};
use crate::random::Random;
use crate::rib::Rib;

use super::Dir248;
use super::layout::half;
use super::update::Editor;
use super::written::Run;

crate::fib::in_place_tests::stops_at_every_store!(|routes, limits| {
    Ok(Box::new(Editor::build(routes, limits)?))
});

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

/// Routes, their tables, and the notifications of changes.
struct Changing {
    rib: Rib<u32>,
    editor: Editor<u32>,
    emitted: Emitted,
}

/// Arrays and words that were stored, and units that were retired.
#[derive(Default)]
struct Emitted {
    stored: Vec<(u8, usize)>,
    retired: Vec<RetiredUnit>,
}

impl Publication for Emitted {
    fn retire(&mut self, retired: RetiredUnit) {
        self.retired.push(retired);
    }

    fn listens(&self) -> bool {
        true
    }

    fn stored(&mut self, stored: StoredWords<'_>) {
        self.stored.push((stored.array, stored.words.len()));
    }
}

impl Changing {
    fn new(routes: impl IntoIterator<Item = (u32, u8, u32)>) -> Self {
        let mut rib = Rib::default();
        for (addr, len, id) in routes {
            rib.insert(Route::new(Prefix::masked(addr, len).unwrap(), hop(id))).unwrap();
        }
        let editor = Editor::build(&rib, Limits::default()).unwrap();
        editor.check(&[]).unwrap();
        Self { rib, editor, emitted: Emitted::default() }
    }

    /// Prepares a route, or its removal if the id is 0.
    fn prepare(&mut self, addr: u32, len: u8, id: u32) -> Applied {
        let prefix = Prefix::masked(addr, len).unwrap();
        let _ = match NextHop::new(id) {
            Some(next_hop) => self.rib.insert(Route::new(prefix, next_hop)).unwrap(),
            None => self.rib.remove(prefix),
        };
        self.editor.prepare(&[prefix], &self.rib, false).unwrap()
    }

    /// Changes a route in place. Returns the stored words, and the number of retired segments.
    fn change(&mut self, addr: u32, len: u8, id: u32) -> (Vec<(u8, usize)>, usize) {
        assert_eq!(self.prepare(addr, len, id), Applied::InPlace);
        self.editor.publish(&mut self.emitted);
        let Emitted { stored, retired } = core::mem::take(&mut self.emitted);
        retired.iter().for_each(|&unit| self.editor.free(unit));
        (stored, retired.len())
    }

    fn assert_answers(&self, keys: &[u32]) {
        self.editor.check(&[]).unwrap();
        let fib = self.editor.reading();
        for &key in keys {
            let expected = self.rib.lookup_prefix(key).map(|route| route.next_hop);
            assert_eq!(fib.lookup_key(key), expected, "{key:x}");
        }
    }
}

#[test]
fn codes_of_a_change_that_is_taken_back_are_too() {
    // The id is larger than the largest code, so the table numbers its next hops.
    let mut changing = Changing::new([(0, 8, 70_000)]);
    assert_eq!(changing.prepare(0, 9, 70_001), Applied::InPlace);
    changing.editor.abandon();
    changing.editor.check(&[]).unwrap();
}

#[test]
fn a_run_stores_its_entries_and_no_others() {
    const WORDS: usize = 4;
    for first in 0..2 * WORDS {
        for count in 1..=2 * WORDS - first {
            let words: [AtomicU32; WORDS] =
                core::array::from_fn(|at| AtomicU32::new(0x0101_0101 * at as u32));
            let mut expected: Vec<u16> = (0..2 * WORDS).map(|at| half(&words, at)).collect();
            expected[first..first + count].fill(0x8765);
            let run = Run { first: first as u32, count: count as u32, entry: 0x8765 };
            run.store(&words, run.words());
            assert!((0..2 * WORDS).map(|at| half(&words, at)).eq(expected), "{first} {count}");
        }
    }
}

#[test]
fn a_change_stores_the_entries_that_it_meets() {
    let mut table = Changing::new([(10 << 24, 8, 1), (0x0a01_0300, 24, 3)]);
    let keys = [0, 0x0a01_0202, 0x0a01_0203, 0x0a01_0204, 0x0a01_0300, 0x0a01_0400, 0x0aff_ffff, 0x0b00_0000];
    // A segment, and the word with its entry.
    assert_eq!(table.change(0x0a01_0203, 32, 2), (vec![(1, 128), (0, 1)], 0));
    table.assert_answers(&keys);
    // Another segment, made from the first one; and none if all addresses have the same answers as before.
    assert_eq!(table.change(0x0a01_0204, 30, 3), (vec![(1, 128), (0, 1)], 1));
    assert_eq!(table.change(0x0a01_0205, 32, 3), (vec![], 0));
    table.assert_answers(&keys);
    // With another next hop for the /8, the entry still has a segment, but a new one. The listener gets the words in pieces.
    let (stored, retired) = table.change(10 << 24, 8, 4);
    assert_eq!((stored.iter().filter(|stored| stored.0 == 1).count(), retired), (1, 1));
    assert_eq!(stored.iter().filter(|stored| stored.0 == 0).map(|stored| stored.1).sum::<usize>(), 1 << 15);
    table.assert_answers(&keys);
    // It collapses when its addresses have one next hop again.
    assert_eq!([30, 32].map(|len| table.change(0x0a01_0205, len, 0).1), [1, 1]);
    assert_eq!(table.change(0x0a01_0203, 32, 0), (vec![(0, 1)], 1));
    table.assert_answers(&keys);
    assert_eq!(table.editor.reading().memory().lookup_bytes, (32 << 20) + 512 * 2);
    // A route that replaces everything below it, segments included.
    assert_eq!(table.change(0x0a01_02ff, 32, 5).1, 0);
    let whole = Prefix::masked(10 << 24, 8).unwrap();
    let below: Vec<_> = table.rib.subnets(whole).map(|route| route.prefix).collect();
    for prefix in below {
        let _ = table.rib.remove(prefix);
    }
    assert_eq!(table.change(0, 0, 6).1, 1);
    table.assert_answers(&keys);
}

#[test]
fn changes_that_need_more_than_entries_can_say_are_refused() {
    // Ids of 15 bits are codes.
    let mut table = Changing::new([(10 << 24, 8, 1)]);
    assert_eq!(
        table.prepare(11 << 24, 8, 1 << 15),
        Applied::NeedsRebuild("a next hop that entries have no room for")
    );
    let _ = table.rib.remove(Prefix::masked(11 << 24, 8).unwrap());
    table.assert_answers(&[10 << 24, 11 << 24]);
    assert_eq!(table.change(12 << 24, 8, (1 << 15) - 1), (vec![(0, 1 << 12); 8], 0));
    table.assert_answers(&[10 << 24, 11 << 24, 12 << 24, 13 << 24]);

    // As many other next hops as there are codes. Listeners get new codes before the entries that have them.
    let mut table = Changing::new((0..32_766).map(|at| (at << 8, 24, u32::MAX - at)));
    assert_eq!(table.change(5 << 8, 24, 1), (vec![(2, 1), (0, 1)], 0));
    let reason = "more next hops than entries can name";
    for id in [2, 3] {
        assert_eq!(table.prepare(7 << 8 | 3, 32, id), Applied::NeedsRebuild(reason));
        let _ = table.rib.remove(Prefix::masked(7 << 8 | 3, 32).unwrap());
        table.assert_answers(&[5 << 8, 7 << 8, 7 << 8 | 3]);
    }
    assert_eq!(table.change(7 << 8, 24, 1), (vec![(0, 1)], 0));

    // As many segments as there are numbers. A change of one needs another segment for the new answers.
    let mut table = Changing::new((0..32_768).map(|at| (at << 8, 32, 1)));
    let reason = "more segments than entries can number";
    assert_eq!(table.prepare(9 << 8 | 1, 32, 2), Applied::NeedsRebuild(reason));
    let _ = table.rib.remove(Prefix::masked(9 << 8 | 1, 32).unwrap());
    table.assert_answers(&[0, 1, 9 << 8, 9 << 8 | 1, 32_767 << 8]);
    assert_eq!(table.change(8 << 8, 32, 0).1, 1);
    assert_eq!(table.change(9 << 8 | 1, 32, 2).1, 1);
    table.assert_answers(&[0, 1, 8 << 8, 9 << 8, 9 << 8 | 1, 32_767 << 8]);
}

/// A limit of a few kilobytes beyond what was built.
#[test]
fn changes_that_have_no_memory_leave_the_table_as_it_was() {
    let mut rib = Rib::<u32>::default();
    rib.insert(Route::new(Prefix::masked(10 << 24, 8).unwrap(), hop(1))).unwrap();
    let mut editor = Editor::build(&rib, Limits::within((32 << 20) + (40 << 10))).unwrap();
    let mut refused = 0;
    for at in 0..200 {
        let prefix = Prefix::masked(10 << 24 | at << 8, 32).unwrap();
        rib.insert(Route::new(prefix, hop(2))).unwrap();
        if editor.prepare(&[prefix], &rib, false).is_err() {
            refused += 1;
            let _ = rib.remove(prefix);
        } else {
            // There is no room for a copy of the entries.
            assert!(editor.make_shadow().is_err());
            editor.publish(&mut Vec::new());
        }
        assert_eq!(
            editor.reading().lookup_key(prefix.addr()),
            rib.lookup_prefix(prefix.addr()).map(|route| route.next_hop)
        );
    }
    assert!((100..190).contains(&refused), "{refused}");
    editor.check(&[]).unwrap();
}

#[test]
fn changes_leave_the_segments_about_as_many_as_a_fresh_build_makes() {
    let mut random = Random(5);
    let mut table = Changing::new([]);
    let mut added = Vec::new();
    for round in 0..40_000 {
        // The segments become many, stay so for a while, and become fewer again. Then they need a while to move.
        let most = if round < 24_000 { 8_000 } else { 2_000 };
        if added.len() < most || random.below(2) == 0 && round < 24_000 {
            let addr = (random.below(1 << 14) << 8 | random.below(256)) as u32;
            table.change(addr, 25 + random.below(8) as u8, 1 + random.below(9) as u32);
            added.push(addr);
        } else {
            let addr = added.swap_remove(random.below(added.len() as u64) as usize);
            for len in 25..33 {
                if table.rib.get(Prefix::masked(addr, len).unwrap()).is_some() {
                    table.change(addr, len, 0);
                }
            }
        }
        table.editor.tidy(TIDY).unwrap();
        table.editor.publish(&mut table.emitted);
        core::mem::take(&mut table.emitted).retired.into_iter().for_each(|unit| table.editor.free(unit));
        if round % 8_000 == 7_999 && round != 31_999 {
            table.editor.check(&[]).unwrap();
            let fresh = Dir248::build(&table.rib, Limits::default()).unwrap().memory().lookup_bytes;
            let [now, fresh] =
                [table.editor.reading().memory().lookup_bytes, fresh].map(|bytes| bytes - (32 << 20));
            assert!(4 * now <= 5 * fresh, "round {round}: {now} bytes beside {fresh}");
        }
    }
    let keys: Vec<u32> = added.iter().flat_map(|&addr| [addr, addr ^ 1, addr ^ 0x40, addr ^ 0x80]).collect();
    table.assert_answers(&keys);
    let segments = table.editor.reading().memory().lookup_bytes - (32 << 20);
    assert!(segments > 512 * 1_000, "{segments}");
}

/// Tables of ids and with a dictionary, as they were built and as they have changed.
#[test]
fn every_set_answers_as_single_lookups_do() {
    for least in [0, 1 << 15] {
        let divided = [0, 1, 255, 256, 257, 0x0102_0380, 0x7fff_ffff, 0xffff_fe00, 0xffff_ff00, u32::MAX];
        let hosts = divided.into_iter().zip(least + 1..).map(|(addr, id)| (addr, 32, id));
        let mut table =
            Changing::new(hosts.chain((0..200).map(|at| (at << 24 | 0x0010_0000, 13, least + 20 + at))));
        let beside =
            divided.iter().flat_map(|&addr| (0..7).map(move |by| addr.wrapping_add(by).wrapping_sub(3)));
        let spread = (0..500u32).map(|at| at.wrapping_mul(0x9e37_79b9));
        let mut keys: Vec<u32> = spread.chain(beside).collect();
        lanes::agree(&*table.editor.reading(), &keys);
        for (at, addr) in (0..).zip(divided) {
            table.change(addr ^ 2, 31, least + 300 + at);
            table.change(addr ^ 0x0800_0000, 9, least + 400 + at);
        }
        table.assert_answers(&keys);
        let fib = table.editor.reading();
        lanes::agree(&*fib, &keys);
        // Only keys of divided /24s.
        keys.retain(|key| key >> 8 == 0 || key >> 8 == 0x00ff_ffff);
        lanes::agree(&*fib, &keys);
    }
}

#[test]
fn a_copy_of_the_entries_is_published_at_once() {
    let mut table = Changing::new([(10 << 24, 8, 1), (0x0a01_0203, 32, 2)]);
    let before = table.editor.reading();
    assert_eq!(table.prepare(0x0a01_0204, 31, 3), Applied::InPlace);
    table.editor.make_shadow().unwrap();
    table.editor.publish_shadow(&mut table.emitted);
    let Emitted { stored, retired } = core::mem::take(&mut table.emitted);
    assert_eq!((stored, retired.len()), (vec![(1, 128), (0, 1 << 23)], 1));
    assert_eq!(
        [before.lookup_key(0x0a01_0204), before.lookup_key(0x0a01_0203)],
        [Some(hop(1)), Some(hop(2))]
    );
    drop(before);
    retired.into_iter().for_each(|unit| table.editor.free(unit));
    table.assert_answers(&[0x0a01_0203, 0x0a01_0204, 0x0a01_0206]);
    assert_eq!(table.change(0x0a01_0204, 31, 0).1, 1);
    table.assert_answers(&[0x0a01_0203, 0x0a01_0204, 0x0a01_0206]);
}
