//! Memory: structures report what the allocator gave them, limits hold at every moment, and a refusal changes nothing.

use fibula::fib::registry::{Engine, Update};
use fibula::fib::{Applied, WithLength};
use fibula::memory::Limits;
use fibula::net::{Change, Key, Prefix, Route, RouteSlice, Toy};
use fibula::rib::Rib;
use fibula_proof::allocator::{ALWAYS_GRANTED_BYTES, TestAllocator, measure};
use fibula_proof::instruction_sets;
use fibula_proof::subject::Tested;
use fibula_proof::tables::{Model, Random};
use fibula_proof::toy::hop;
use fibula_proof::verdict::edges;
use fibula_workload::table::{Profile, TableSpec, generate};

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

/// Steps between no memory and enough.
const STEPS: usize = 24;

fn each_line(run: impl Fn(&str, &dyn Line)) {
    for engine in fibula_published::engines::<u32>() {
        run(&format!("{}, IPv4", engine.name), &engine);
    }
    for engine in fibula_published::engines::<u128>() {
        run(&format!("{}, IPv6", engine.name), &engine);
    }
}

/// The three tests of a registry entry, for either family.
trait Line {
    fn counts(&self, name: &str);
    fn limits(&self, name: &str);
    fn refusals(&self, name: &str);
}

fn table<K: Key>(routes: usize) -> Model<K> {
    Model::random(&mut Random(7), routes, 50)
}

fn within(memory_bytes: usize) -> Limits {
    Limits::within(memory_bytes)
}

/// Without mappings, so that the allocator sees every request.
const ALLOCATED: Limits = Limits { memory_bytes: None, huge_pages: false };

/// Rounds of changes that are refused at first.
const ROUNDS: usize = 8;

/// What only lines of some kinds have.
trait InPlaceLine<K: Key> {
    /// Whether what `build` returns can change, not only what `build_updatable` does.
    fn is_changed_as_built(&self) -> bool;

    /// Changes that are refused at any allocation leave the structure as it was.
    fn refusals_beside(&self, name: &str);
}

/// Bytes of a form of DXR with a few hundred routes.
const LARGE: usize = 1 << 20;

impl<K: Key> InPlaceLine<K> for Engine<K> {
    fn is_changed_as_built(&self) -> bool {
        self.build(&RouteSlice::new(&[]).unwrap(), Limits::default()).unwrap().updatable().is_some()
    }

    fn refusals_beside(&self, name: &str) {
        let mut model = table::<K>(500);
        let mut random = Random(9);
        let before = model.routes();
        let mut fib = self.build_updatable(&RouteSlice::new(&before).unwrap(), Limits::default()).unwrap();
        // Forms of DXR with more chunks do the same for more of them, which takes minutes.
        if name.starts_with("dxr-") && fib.memory().lookup_bytes > LARGE {
            return;
        }
        let mut refused = 0;
        for round in 0..ROUNDS {
            let keys = edges(model.0.keys().copied());
            let mut expected = vec![None; keys.len()];
            fib.lookup_batch(&keys, &mut expected);
            let changes: Vec<_> = (0..1 + 100 * round).map(|_| model.change(&mut random, 9)).collect();
            changes.iter().for_each(|&change| model.apply(change));
            let after = model.routes();
            let after = RouteSlice::new(&after).unwrap();
            // Ever more until it is enough.
            for bytes in (0..).map(|step: usize| step * step * 64) {
                let result = measure(Some(bytes), || fib.updatable().unwrap().apply(&changes, &after)).0;
                if result.is_ok() {
                    break;
                }
                assert!(result.unwrap_err().out_of_memory().is_some(), "{name}");
                let mut answers = vec![None; keys.len()];
                fib.lookup_batch(&keys, &mut answers);
                assert_eq!(answers, expected, "{name}");
                refused += 1;
            }
            fib.check().unwrap();
        }
        assert!(refused > 20, "{name}: {refused}");
    }
}

impl<K: Key> Line for Engine<K> {
    /// `memory()` is what the counting allocator saw, after a build and after changes.
    fn counts(&self, name: &str) {
        let mut model = table::<K>(2_000);
        let routes = model.routes();
        let slice = RouteSlice::new(&routes).unwrap();
        let (fib, usage) = measure(None, || self.build(&slice, ALLOCATED).unwrap());
        let own = size_of_val(&*fib);
        let held = fib.memory();
        assert_eq!(usage.live_bytes as usize, held.allocated_bytes + own, "{name}: after the build");
        assert_eq!((held.mapped_bytes, held.huge_bytes), (0, 0), "{name}");
        let (fib, usage) = measure(None, || self.build(&slice, Limits::default()).unwrap());
        let memory = fib.memory();
        assert_eq!(usage.live_bytes as usize, memory.allocated_bytes + own, "{name}: after the build");
        assert!(memory.lookup_bytes <= memory.allocated_bytes + memory.mapped_bytes, "{name}: {memory:?}");
        assert!(memory.lookup_bytes > 0, "{name}: {memory:?}");
        let mut fib = fib;
        if fib.updatable().is_none() {
            return;
        }
        let before = memory.allocated_bytes;
        let mut random = Random(8);
        let changes: Vec<_> = (0..500).map(|_| model.change(&mut random, 50)).collect();
        changes.iter().for_each(|&change| model.apply(change));
        let routes = model.routes();
        let slice = RouteSlice::new(&routes).unwrap();
        let ((), usage) = measure(None, || {
            fib.updatable().unwrap().apply(&changes, &slice).unwrap();
        });
        let grown = fib.memory().allocated_bytes as isize - before as isize;
        assert_eq!(usage.live_bytes, grown, "{name}: after changes");
    }

    /// A build under a limit stays under it at every moment or refuses, naming the limit; one that the allocator
    /// refuses does not abort; neither leaves anything behind.
    fn limits(&self, name: &str) {
        let routes = table::<K>(2_000).routes();
        let slice = RouteSlice::new(&routes).unwrap();
        let (fib, full) = measure(None, || self.build(&slice, ALLOCATED).unwrap());
        drop(fib);
        let mut refused = [0; 2];
        for step in 0..=STEPS {
            let limit = full.peak_bytes as usize * 3 * step / STEPS;
            let (result, usage) = measure(None, || {
                self.build(&slice, within(limit)).map(|fib| assert!(fib.memory().held_bytes() <= limit))
            });
            assert!(
                usage.peak_bytes as usize <= limit + ALWAYS_GRANTED_BYTES,
                "{name}: {usage:?} under {limit}"
            );
            assert_eq!(usage.live_bytes, 0, "{name}: something is left of a build under {limit}");
            if let Err(error) = result {
                assert_eq!(error.out_of_memory().unwrap().limit_bytes, Some(limit), "{name}");
                assert!(error.to_string().contains("memory limit"), "{error}");
                refused[0] += 1;
            }
            let (_, usage) = measure(Some(limit), || self.build(&slice, Limits::default()).map(drop));
            assert_eq!(usage.live_bytes, 0, "{name}: something is left of a build with {limit} there");
            let (result, usage) = measure(Some(limit), || self.build(&slice, ALLOCATED).map(drop));
            assert_eq!(usage.live_bytes, 0, "{name}: something is left of a build with {limit} there");
            if let Err(error) = result {
                assert_eq!(error.out_of_memory().unwrap().limit_bytes, None, "{name}");
                refused[1] += 1;
            }
        }
        assert!(refused.iter().all(|&count| count > 5 && count < STEPS), "{name}: {refused:?}");
    }

    /// Changes that are refused leave the structure as it was.
    fn refusals(&self, name: &str) {
        match self.update {
            Update::Rebuild => return,
            Update::InPlace if !self.is_changed_as_built() => return self.refusals_beside(name),
            Update::InPlace => {}
        }
        let mut model = table::<K>(500);
        let before = model.routes();
        let keys = edges(model.0.keys().copied());
        let slice = RouteSlice::new(&before).unwrap();
        let mut random = Random(9);
        let changes: Vec<_> = (0..2_000).map(|_| model.change(&mut random, 9)).collect();
        changes.iter().for_each(|&change| model.apply(change));
        let after = model.routes();
        let after = RouteSlice::new(&after).unwrap();
        // The least limit of a coarse scale under which the structure can be built.
        let (limit, mut fib) = (1..)
            .map(|step| step * 4_096)
            .find_map(|limit| Some((limit, self.build(&slice, within(limit)).ok()?)))
            .unwrap();
        let mut expected = vec![None; keys.len()];
        fib.lookup_batch(&keys, &mut expected);
        let untouched = |fib: &dyn fibula::fib::Fib<K>| {
            let mut answers = vec![None; keys.len()];
            fib.lookup_batch(&keys, &mut answers);
            assert_eq!(answers, expected, "{name}");
            fib.check().unwrap();
        };
        let error = fib.updatable().unwrap().apply(&changes, &after).unwrap_err();
        assert_eq!(error.out_of_memory().unwrap().limit_bytes, Some(limit), "{name}");
        untouched(&*fib);
        // An allocator that has nothing left.
        let mut fib = self.build(&slice, Limits::default()).unwrap();
        let error = measure(Some(0), || fib.updatable().unwrap().apply(&changes, &after)).0.unwrap_err();
        assert_eq!(error.out_of_memory().unwrap().limit_bytes, None, "{name}");
        untouched(&*fib);
        // Taking routes out never needs memory.
        let removals: Vec<_> = before.iter().map(|route| Change::Remove(route.prefix)).collect();
        let empty = RouteSlice::new(&[]).unwrap();
        measure(Some(0), || fib.updatable().unwrap().apply(&removals, &empty)).0.unwrap();
        assert_eq!(fib.lookup(before[0].prefix.addr()), None, "{name}");
        fib.check().unwrap();
    }
}

#[test]
fn memory_is_what_the_allocator_gave() {
    each_line(|name, line| line.counts(name));
}

#[test]
fn limits_hold_at_every_moment() {
    each_line(|name, line| line.limits(name));
}

#[test]
fn refused_changes_leave_the_structure_as_it_was() {
    each_line(|name, line| line.refusals(name));
}

/// Batches that remove, insert and bring back, under limits at which they just fit and just do not.
fn batches_at_the_limit<K: Key>(engine: Engine<K>) {
    let mut random = Random(12);
    let mut outcomes = [0; 2];
    // Less than the structure has without routes is never enough.
    let nothing = engine.build(&RouteSlice::new(&[]).unwrap(), Limits::default()).unwrap();
    let nothing = nothing.memory().held_bytes() / 64 * 64;
    for round in 0..1_000 {
        let mut model = Model::<K>::random(&mut random, 2 + round % 40, 5);
        let before = model.routes();
        let changes: Vec<_> = (0..1 + random.below(30))
            .map(|_| {
                let change = model.change(&mut random, 5);
                model.apply(change);
                change
            })
            .collect();
        let (slice, after) = (RouteSlice::new(&before).unwrap(), model.routes());
        let fits = |steps: usize| engine.build(&slice, within(nothing + steps * 64)).is_ok();
        let mut most = 1;
        while !fits(most) {
            most *= 2;
        }
        let mut too_few = most / 2;
        while most - too_few > 1 {
            let middle = usize::midpoint(too_few, most);
            *(if fits(middle) { &mut most } else { &mut too_few }) = middle;
        }
        let least = nothing + most * 64;
        let limit = least + random.below((least - nothing) / 2 + 64);
        let mut fib = engine.build(&slice, within(limit)).unwrap();
        let (result, usage) =
            measure(None, || fib.updatable().unwrap().apply(&changes, &RouteSlice::new(&after).unwrap()));
        let held = fib.memory().held_bytes();
        assert!(held <= limit && usage.peak_bytes <= limit as isize, "{}: {held} of {limit}", engine.name);
        let is_in_place = matches!(result, Ok(Applied::InPlace));
        let now = if is_in_place { after } else { before };
        // One that must be built anew is as it was, too.
        if is_in_place || result.is_err() {
            outcomes[usize::from(is_in_place)] += 1;
        }
        fib.check().unwrap();
        let expected = Model(now.iter().map(|route| (route.prefix, route.next_hop)).collect());
        for key in edges(now.iter().map(|route| route.prefix).chain(changes.iter().map(Change::prefix))) {
            let right = expected.lookup(key).map(|route| route.next_hop);
            assert_eq!(fib.lookup(key), right, "{}: {}", engine.name, key.address());
        }
    }
    assert!(outcomes.iter().all(|&count| count > 20), "{}: {outcomes:?}", engine.name);
}

#[test]
fn batches_at_the_limit_go_in_whole_or_not_at_all() {
    fn lines<K: Tested>() {
        let lines = K::entries().into_iter();
        lines
            .filter(|line| line.update == Update::InPlace && line.is_changed_as_built())
            .for_each(batches_at_the_limit);
    }
    lines::<Toy<8>>();
    lines::<u32>();
    lines::<u128>();
}

/// Prefix lengths from any structure, under the limit too.
#[test]
fn match_ids_stay_within_the_limit() {
    let routes: Vec<Route<u32>> =
        (0..20_000).map(|at| Route::new(Prefix::masked(at << 12, 20).unwrap(), hop(at + 1))).collect();
    let slice = RouteSlice::new(&routes).unwrap();
    let linear = fibula_published::find::<u32>("linear").unwrap();
    let mut outcomes = [0; 2];
    for limit in (0..40).map(|step| step * 50_000) {
        let (result, usage) = measure(None, || WithLength::build(&linear, &slice, within(limit)).map(drop));
        // The match ids and the structure each have the limit.
        assert!(usage.peak_bytes as usize <= 2 * limit + ALWAYS_GRANTED_BYTES, "{usage:?} under {limit}");
        assert_eq!(usage.live_bytes, 0);
        outcomes[usize::from(result.is_ok())] += 1;
        // An allocator that has no more must not abort the program.
        let (_, usage) =
            measure(Some(limit), || WithLength::build(&linear, &slice, Limits::default()).map(drop));
        assert_eq!(usage.live_bytes, 0);
    }
    assert!(outcomes.iter().all(|&count| count > 5), "{outcomes:?}");
    let (fib, usage) = measure(None, || WithLength::build(&linear, &slice, Limits::default()).unwrap());
    assert_eq!(usage.live_bytes as usize, fib.memory().allocated_bytes);
}

/// What is charged for match ids is what they take, old and new hash table together: the least limit under which they
/// fit is their peak. The counts are those after which the hash table has just grown.
#[test]
fn match_ids_are_charged_what_they_take() {
    // Its 32 MB never fit the limits below, so nothing but match ids is ever allocated.
    let engine = fibula_published::find::<u32>("dir-24-8").unwrap();
    for count in [449, 897, 3_585] {
        let routes: Vec<Route<u32>> =
            (0..count).map(|at| Route::new(Prefix::masked(at << 12, 20).unwrap(), hop(at + 1))).collect();
        let slice = RouteSlice::new(&routes).unwrap();
        let build = |limit| {
            measure(None, || WithLength::build(&engine, &slice, within(limit)).map(drop).unwrap_err())
        };
        let (_, usage) = build(1 << 20);
        let peak = usage.peak_bytes as usize;
        let refused_by = |limit| build(limit).0.engine();
        assert_eq!(refused_by(peak - 1), "with-length", "{count} ids take {peak} bytes");
        assert_eq!(refused_by(peak + 64), "dir-24-8", "{count} ids take {peak} bytes");
    }
}

/// A million IPv4 and a quarter of a million IPv6 routes in at most 120 MB, spare room included.
#[test]
fn full_tables_fit() {
    fn bytes<K: Key>(routes: usize) -> usize {
        let spec = TableSpec { routes, next_hops: 256, seed: 1 };
        let mut rib = Rib::<K>::default();
        for route in generate::<K>(&spec, &Profile::of::<K>()).unwrap() {
            rib.insert(route).unwrap();
        }
        rib.memory().held_bytes()
    }
    let total = bytes::<u32>(1_000_000) + bytes::<u128>(250_000);
    assert!(total <= 120_000_000, "{total}");
}

#[test]
fn lookups_allocate_nothing() {
    fn requests<K: Key>() {
        let routes = table::<K>(2_000).routes();
        let slice = RouteSlice::new(&routes).unwrap();
        let keys = edges(routes.iter().map(|route| route.prefix));
        let mut results = vec![None; keys.len()];
        for engine in fibula_published::engines::<K>() {
            let fib = engine.build(&slice, Limits::default()).unwrap();
            let isas: Vec<_> = instruction_sets::of(&engine).collect();
            let ((), usage) = measure(None, || {
                isas.iter().for_each(|&isa| fib.lookup_batch_on(isa, &keys, &mut results));
                keys.iter().for_each(|&key| assert!(fib.lookup(key).is_none_or(|hop| hop.id() > 0)));
            });
            assert_eq!(usage.peak_bytes, 0, "{}", engine.name);
        }
    }
    requests::<u32>();
    requests::<u128>();
}

fn rib_counts<K: Key>() {
    let routes = table::<K>(2_000).routes();
    let (mut rib, usage) = measure(None, || {
        let mut rib = Rib::<K>::default();
        routes.iter().for_each(|&route| {
            rib.insert(route).unwrap();
        });
        rib
    });
    assert_eq!(usage.live_bytes as usize, rib.memory().allocated_bytes);
    assert!(rib.memory().lookup_bytes <= rib.memory().allocated_bytes);
    let before = rib.memory().allocated_bytes as isize;
    let ((), usage) = measure(None, || {
        routes.iter().step_by(2).for_each(|route| {
            rib.remove(route.prefix);
        });
        rib.shrink();
    });
    assert_eq!(usage.live_bytes, rib.memory().allocated_bytes as isize - before);
}

fn rib_limits<K: Key>() {
    let routes = table::<K>(2_000).routes();
    for step in 1..STEPS {
        let limit = step * 4_000;
        let mut rib = Rib::<K>::new(within(limit));
        let mut held = Vec::with_capacity(routes.len());
        let ((), usage) = measure(None, || {
            for &route in &routes {
                match rib.insert(route) {
                    Ok(_) => held.push(route),
                    Err(error) => assert_eq!(error.out_of_memory().limit_bytes, Some(limit)),
                }
            }
        });
        assert!(usage.peak_bytes as usize <= limit, "{usage:?} under {limit}");
        assert!(rib.memory().allocated_bytes <= limit);
        assert_eq!(rib.iter().collect::<Vec<_>>(), held, "what was refused left a trace");
        rib.check().unwrap();
        // A batch is refused whole.
        let batch: Vec<_> = routes.iter().map(|&route| Change::Insert(route)).collect();
        if held.len() < routes.len() {
            rib.apply(&batch).unwrap_err();
            assert_eq!(rib.iter().collect::<Vec<_>>(), held);
        }
        // A next hop changes, and routes go, where nothing can be allocated.
        if let Some(route) = held.first() {
            let other = Route::new(route.prefix, hop(77));
            measure(Some(0), || rib.apply(&[Change::Insert(other)])).0.unwrap();
            assert_eq!(rib.get(route.prefix), Some(other.next_hop));
            measure(Some(0), || rib.remove(route.prefix)).0.unwrap();
        }
    }
}

#[test]
fn the_rib_counts_and_obeys() {
    rib_counts::<u32>();
    rib_counts::<u128>();
    rib_limits::<u32>();
    rib_limits::<u128>();
}
