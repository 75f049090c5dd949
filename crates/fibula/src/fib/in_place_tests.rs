//! What readers see of an engine that changes in place, wherever the writer is: narrow keys, so that all addresses are
//! looked up whenever something has been stored. Each engine calls this for itself, because to compile all of them for
//! narrow keys takes minutes.

use std::collections::VecDeque;
use std::sync::Arc;

use super::in_place::{InPlace, Mirrored, Publication, RetiredUnit, StoredWords};
use super::registry::BuildInPlace;
use super::{Applied, Fib};
use crate::memory::{Limits, Words};
use crate::net::{Change, Key, NextHop, Prefix, Route};
use crate::random::Random;
use crate::rib::Rib;

/// Answers of all addresses.
type Answers = Vec<Option<NextHop>>;

fn keys<K: Key>() -> Vec<K> {
    (0..1u128 << K::BITS).map(K::from_bits).collect()
}

fn answers<K: Key>(fib: &dyn Fib<K>) -> Answers {
    let keys = keys::<K>();
    let mut found = vec![None; keys.len()];
    fib.lookup_batch(&keys, &mut found);
    let one_by_one: Answers = keys.iter().map(|&key| fib.lookup_key(key)).collect();
    assert_eq!(found, one_by_one, "batches and single lookups");
    found
}

/// A copy of arrays that has only what was told of them.
#[derive(Default)]
pub struct Mirror {
    arrays: Vec<Vec<u64>>,
    /// Arrays that take the place of others when all is published.
    coming: Vec<(usize, Vec<u64>)>,
}

impl Mirror {
    /// Stores the words, from the first one on.
    pub fn store(&mut self, array: u8, first: usize, words: Words<'_>, is_whole: bool) {
        let (number, end) = (usize::from(array), first + words.len());
        if is_whole {
            assert_eq!(first, 0);
            self.coming.retain(|&(array, _)| array != number);
            self.coming.push((number, words.iter().collect()));
            return;
        }
        let coming = self.coming.iter_mut().find(|(array, _)| *array == number);
        let to = coming.map_or_else(|| &mut self.arrays[number], |(_, words)| words);
        to.resize(to.len().max(end), 0);
        to[first..end].iter_mut().zip(words.iter()).for_each(|(to, word)| *to = word);
    }

    /// Everything that was stored is published.
    pub fn published(&mut self) {
        for (array, words) in self.coming.drain(..) {
            self.arrays.resize(self.arrays.len().max(array + 1), Vec::new());
            self.arrays[array] = words;
        }
    }

    /// Asserts that no array has more words than its room.
    pub fn assert_within(&self, rooms: &super::in_place::Rooms) {
        let words: Vec<usize> = self.arrays.iter().map(Vec::len).collect();
        assert_eq!(rooms.exceeded_by(&words), None);
    }

    /// Asserts that it has the words in use of an engine.
    pub fn assert_equals<K: Key>(&self, editor: &dyn InPlace<K>) {
        let mut now = Self::default();
        editor.emit(&mut now);
        now.published();
        let mut is_free: Vec<_> = now.arrays.iter().map(|words| vec![false; words.len()]).collect();
        for (array, words) in editor.free_words() {
            is_free[usize::from(array)][words].fill(true);
        }
        assert_eq!(self.arrays.len(), now.arrays.len());
        for (number, (words, is_free)) in now.arrays.iter().zip(&is_free).enumerate() {
            for (at, (&word, _)) in
                words.iter().zip(is_free).enumerate().filter(|(_, (_, is_free))| !**is_free)
            {
                assert_eq!(self.arrays[number].get(at), Some(&word), "word {at} of array {number}");
            }
        }
    }

    /// Asserts that an engine of these words answers so.
    pub fn assert_answers<K: Key>(
        &self,
        mirrored: &Mirrored<K>,
        is: impl Fn(K, Option<NextHop>) -> bool,
        keys: &[K],
    ) {
        let fib = mirrored(&self.arrays);
        for &key in keys {
            let found = fib.lookup_key(key);
            assert!(is(key, found), "{}: {found:?} in a mirror", key.address());
        }
    }
}

impl Publication for Mirror {
    fn retire(&mut self, retired: RetiredUnit) {
        panic!("{retired:?} is retired by what is only told of");
    }

    fn listens(&self) -> bool {
        true
    }

    fn stored(&mut self, stored: StoredWords<'_>) {
        assert!(stored.first + stored.words.len() <= stored.room);
        self.store(stored.array, stored.first, stored.words, stored.is_whole);
    }
}

/// A reader that looks whenever the writer has stored something, and one of a mirror.
struct Stops<'a, K: Key> {
    fib: Arc<dyn Fib<K>>,
    mirror: &'a mut Mirror,
    mirrored: Mirrored<K>,
    before: Answers,
    after: Answers,
    stops: usize,
    retired: Vec<RetiredUnit>,
}

impl<K: Key> Publication for Stops<'_, K> {
    fn retire(&mut self, retired: RetiredUnit) {
        self.retired.push(retired);
    }

    fn listens(&self) -> bool {
        true
    }

    fn stored(&mut self, stored: StoredWords<'_>) {
        self.stops += 1;
        for (at, found) in answers(&*self.fib).into_iter().enumerate() {
            let (before, after) = (self.before[at], self.after[at]);
            assert!(found == before || found == after, "{at}: {found:?}, not {before:?} or {after:?}");
        }
        if cfg!(miri) {
            return;
        }
        self.mirror.stored(stored);
        let one_of_both = |key: K, found| {
            let at = key.to_bits() as usize;
            found == self.before[at] || found == self.after[at]
        };
        self.mirror.assert_answers(&self.mirrored, one_of_both, &keys());
    }
}

/// An engine, its routes, and what readers may still be in.
struct Stopped<K: Key> {
    build: BuildInPlace<K>,
    rib: Rib<K>,
    editor: Box<dyn InPlace<K>>,
    retired: VecDeque<RetiredUnit>,
    stops: usize,
    mirror: Mirror,
}

impl<K: Key> Stopped<K> {
    fn new(build: BuildInPlace<K>, rib: Rib<K>) -> Self {
        let editor = build(&rib, Limits::default()).unwrap();
        let mut mirror = Mirror::default();
        editor.emit(&mut mirror);
        mirror.published();
        Self { build, rib, editor, retired: VecDeque::new(), stops: 0, mirror }
    }

    /// Publishes what is prepared, and stops at each store.
    fn publish(&mut self, shadow: bool) {
        let fib = self.editor.reading();
        let before = answers(&*fib);
        let after: Answers =
            keys::<K>().into_iter().map(|key| self.rib.lookup_prefix(key)).map(hop_of).collect();
        // Readers of the entries before see nothing of what is published in a shadow.
        let visible = if shadow { before.clone() } else { after.clone() };
        let mut stops = Stops {
            fib: Arc::clone(&fib),
            mirror: &mut self.mirror,
            mirrored: self.editor.mirrored(),
            before: before.clone(),
            after: visible,
            stops: 0,
            retired: Vec::new(),
        };
        if shadow {
            self.editor.make_shadow().unwrap();
            self.editor.publish_shadow(&mut stops);
            assert_eq!(answers(&*fib), before, "old entries");
        } else {
            self.editor.publish(&mut stops);
        }
        assert_eq!(answers(&*self.editor.reading()), after);
        assert!(stops.stops >= usize::from(before != after), "no store was told of");
        self.stops += stops.stops;
        self.retired.extend(stops.retired);
        if cfg!(miri) {
            return;
        }
        self.mirror.published();
        self.mirror.assert_equals(&*self.editor);
        let is_after = |key: K, found| found == after[key.to_bits() as usize];
        self.mirror.assert_answers(&self.editor.mirrored(), is_after, &keys());
    }

    fn change(&mut self, changes: &[Change<K>], random: &mut Random) {
        let before = answers(&*self.editor.reading());
        let rib = self.rib.clone();
        self.rib.apply(changes).unwrap();
        let mut prefixes: Vec<Prefix<K>> = changes.iter().map(Change::prefix).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        if random.below(8) == 0 {
            // Prepared, and taken back.
            let _ = self.editor.prepare(&prefixes, &self.rib, random.below(2) == 0).unwrap();
            self.editor.abandon();
            assert_eq!(answers(&*self.editor.reading()), before);
            self.editor.check(self.retired.make_contiguous()).unwrap();
            self.rib = rib;
            return;
        }
        let shadow = random.below(5) == 0;
        match self.editor.prepare(&prefixes, &self.rib, shadow).unwrap() {
            Applied::InPlace => {
                assert_eq!(answers(&*self.editor.reading()), before, "nothing is seen of what is prepared");
                self.publish(shadow);
            }
            Applied::NeedsRebuild(_) => {
                *self = Self { stops: self.stops, ..Self::new(self.build, self.rib.clone()) };
            }
        }
        self.editor.check(self.retired.make_contiguous()).unwrap();
    }

    /// Readers move on: some of what was retired is free. Sometimes none does for long.
    fn free(&mut self, random: &mut Random) {
        let stalls = random.below(100) < 60;
        while self.retired.len() > 40 || !stalls && !self.retired.is_empty() && random.below(4) > 0 {
            let Some(retired) = self.retired.pop_front() else { break };
            self.editor.free(retired);
        }
        self.editor.tidy(4).unwrap();
        if self.editor.retires() > 0 {
            self.publish(false);
        }
        self.editor.check(self.retired.make_contiguous()).unwrap();
    }
}

fn hop_of<K: Key>(route: Option<Route<K>>) -> Option<NextHop> {
    route.map(|route| route.next_hop)
}

/// What the routes of changes are like.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Short prefixes with few next hops, which engines have as plain values. Where there are others, most changes need objects or a wider
    /// array, and all that is done for values alone is hardly tried.
    Plain,
    /// All lengths, and next hops at the edges of the widths of values.
    AtEdges,
}

fn change<K: Key>(random: &mut Random, kind: Kind) -> Change<K> {
    // All lengths, the long ones more often: there are more such prefixes.
    let (longest, next_hops): (u8, &[u32]) = match kind {
        // The part of a toy that its tables search; the rest is for objects.
        Kind::Plain => (K::BITS - K::BITS / 4, &[1, 2, 3, 4, 5]),
        Kind::AtEdges => (K::BITS, &[1, 2, 3, 254, 255, 256, 65_534, 65_536, 70_000]),
    };
    let len = random.below(u64::from(longest) + 1).max(random.below(u64::from(longest) + 1)) as u8;
    let prefix = Prefix::masked(K::from_bits(u128::from(random.below(1 << K::BITS))), len).unwrap();
    let id = next_hops[random.below(next_hops.len() as u64) as usize];
    match random.below(3) {
        0 => Change::Remove(prefix),
        _ => Change::Insert(Route::new(prefix, NextHop::new(id).unwrap())),
    }
}

/// Gives a prefix another next hop in the call that takes the only route inside it away, for prefixes of every length: values alone
/// change then, but not wherever there was a value.
fn replace_around<K: Key>(stopped: &mut Stopped<K>, random: &mut Random) {
    let insert = |prefix, id| Change::Insert(Route::new(prefix, NextHop::new(id).unwrap()));
    for len in (0..K::BITS).flat_map(|len| [len; 2]) {
        let key = K::from_bits(u128::from(random.below(1 << K::BITS)));
        let [outer, inner] = [len, len + 1].map(|len| Prefix::masked(key, len).unwrap());
        for changes in [
            &[insert(outer, 1), insert(inner, 2)][..],
            &[insert(outer, 3), Change::Remove(inner)],
            &[insert(inner, 2)],
            &[Change::Remove(outer), Change::Remove(inner)],
        ] {
            stopped.change(changes, random);
        }
        stopped.free(random);
    }
}

/// Changes an engine in so many calls, and stops the writer after each store. Under Miri, which is a thousand times as
/// slow, in few, with narrow keys only and without a mirror: that one copies all arrays at each store, and shares nothing.
pub fn stops<K: Key>(build: BuildInPlace<K>, rounds: usize) {
    if cfg!(miri) && K::BITS > 8 {
        return;
    }
    let rounds = match K::BITS {
        _ if !cfg!(miri) => rounds,
        0..=3 => 15,
        _ => 2,
    };
    let mut random = Random(u64::from(K::BITS));
    if !cfg!(miri) {
        replace_around(&mut Stopped::new(build, Rib::default()), &mut random);
    }
    for kind in [Kind::Plain, Kind::AtEdges] {
        let mut stopped = Stopped::new(build, Rib::default());
        for round in 0..rounds {
            let count = [1, 1, 2, 5, 30][round % 5];
            let changes: Vec<Change<K>> = (0..count).map(|_| change(&mut random, kind)).collect();
            stopped.change(&changes, &mut random);
            stopped.free(&mut random);
        }
        assert!(stopped.stops > rounds / 4 || cfg!(miri), "{} stops", stopped.stops);
    }
}

/// The same for keys of several widths.
#[macro_export]
#[doc(hidden)]
macro_rules! __stops_at_every_store {
    ($build:expr) => {
        #[test]
        fn every_address_answers_as_before_or_after_at_every_store() {
            use $crate::net::Toy;
            use $crate::unstable::testing::stops;

            stops::<Toy<8>>($build, 300);
            stops::<Toy<10>>($build, 60);
        }
    };
}

pub use __stops_at_every_store as stops_at_every_store;
