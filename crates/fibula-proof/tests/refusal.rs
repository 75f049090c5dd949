//! Memory that is refused at any moment of a change: the n-th request fails, for n from one on until the change needs no
//! more. Whatever fails, the structure or table is as it was, and takes the same change later.

use fibula::fib::registry::{Engine, Update};
use fibula::fib::{Applied, Fib};
use fibula::live::{Options, Reader, Table, TableError, TableKey};
use fibula::memory::Limits;
use fibula::net::{Change, Key, NextHop, Prefix, Route, RouteSlice, Toy};
use fibula::rib::{DualRib, Rib};
use fibula_proof::allocator::{ALWAYS_GRANTED_BYTES, Refusal, TestAllocator, refuse};
use fibula_proof::subject::Tested;
use fibula_proof::tables::{Model, Random};
use fibula_proof::toy::{self, hop};
use fibula_proof::verdict::edges;

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

/// Refusals of one scenario at most: more would not end.
const MOST: usize = 20_000;

/// One request fails, or memory has run out from that one on.
const WAYS: [bool; 2] = [false, true];

/// Requests that are refused first.
const STARTS: [usize; 3] = [1, 2, 5];

/// Changes of all lengths, with next hops at the edges of the widths of values.
fn change<K: Key>(random: &mut Random, model: &Model<K>) -> Change<K> {
    match model.change(random, 9) {
        Change::Insert(route) => {
            let id = [1, 2, 3, 254, 255, 256, 65_534, 65_536, 70_000][random.below(9)];
            Change::Insert(Route::new(route.prefix, hop(id)))
        }
        removal => removal,
    }
}

/// Changes, and the routes after them.
type Batch<K> = (Vec<Change<K>>, Vec<Route<K>>);

/// Batches of changes, each with the routes after it.
struct Batches<K: Key> {
    first: Vec<Route<K>>,
    batches: Vec<Batch<K>>,
}

impl<K: Key> Batches<K> {
    /// Changes prefixes of at least a length.
    fn new(routes: usize, sizes: &[usize], least_len: u8) -> Self {
        let mut random = Random(31);
        let mut model = Model::random(&mut random, routes, 9);
        let first = model.routes();
        let batches = sizes
            .iter()
            .map(|&size| {
                let any = core::iter::repeat_with(|| change(&mut random, &model));
                let long = any.filter(|change| change.prefix().len() >= least_len);
                let changes: Vec<_> = long.take(size).collect();
                changes.iter().for_each(|&change| model.apply(change));
                (changes, model.routes())
            })
            .collect();
        Self { first, batches }
    }

    /// Returns the routes before a batch.
    fn before(&self, batch: usize) -> &[Route<K>] {
        batch.checked_sub(1).map_or(&self.first, |before| &self.batches[before].1)
    }
}

/// Applies changes in place, unless the structure has to be built anew. Returns whether it has not.
fn apply<K: Key>(fib: &mut dyn Fib<K>, changes: &[Change<K>], after: &[Route<K>]) -> bool {
    let after = RouteSlice::new(after).unwrap();
    fib.updatable().unwrap().apply(changes, &after).unwrap() == Applied::InPlace
}

fn assert_answers<K: Key>(name: &str, fib: &dyn Fib<K>, routes: &[Route<K>]) {
    let keys = toy::keys::<K>();
    let (mut found, mut expected) = (vec![None; keys.len()], vec![None; keys.len()]);
    fib.lookup_batch(&keys, &mut found);
    toy::paint(routes, &mut expected);
    assert_eq!(found, expected, "{name}");
    fib.check().unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Refuses each request of one batch, in structures that took the batches before. Returns how many were refused.
fn refuse_each<K: Key>(engine: &Engine<K>, batches: &Batches<K>, batch: usize, stays: bool) -> usize {
    let name = format!("{}, batch {batch}", engine.name);
    let (changes, after) = &batches.batches[batch];
    let before = batches.before(batch);
    let changed_before = || {
        let first = RouteSlice::new(&batches.first).unwrap();
        let mut fib = engine.build_updatable(&first, Limits::default()).unwrap();
        let are_in_place =
            batches.batches[..batch].iter().all(|(changes, after)| apply(&mut *fib, changes, after));
        are_in_place.then_some(fib)
    };
    let Some(mut unrefused) = changed_before() else { return 0 };
    let is_in_place = apply(&mut *unrefused, changes, after);
    for number in 1..MOST {
        let Some(mut fib) = changed_before() else { return 0 };
        let routes = RouteSlice::new(after).unwrap();
        let refusal = Refusal { number, least_bytes: 0, stays };
        let (result, refused) = refuse(refusal, || fib.updatable().unwrap().apply(changes, &routes));
        match result {
            Err(error) => {
                assert!(error.out_of_memory().is_some() && refused, "{name}: {error}");
                assert_answers(&name, &*fib, before);
                assert_eq!(apply(&mut *fib, changes, after), is_in_place, "{name}: later");
                if !is_in_place {
                    assert_answers(&name, &*fib, before);
                    continue;
                }
            }
            // What is only of use, a list with more room or a move, may be done without.
            Ok(Applied::InPlace) => {}
            Ok(Applied::NeedsRebuild(_)) => return number - 1,
        }
        assert_answers(&name, &*fib, after);
        // It goes on as if nothing had been refused.
        if let Some((changes, after)) = batches.batches.get(batch + 1)
            && apply(&mut *fib, changes, after)
        {
            assert_answers(&name, &*fib, after);
        }
        if !refused {
            return number - 1;
        }
    }
    panic!("{name}: more than {MOST} requests");
}

#[test]
fn structures_that_change_in_place_survive_every_refusal() {
    fn structures<K: Tested>(routes: usize, sizes: &[usize], takes_part: impl Fn(&str) -> bool) {
        let batches = Batches::<K>::new(routes, sizes, 0);
        let lines = K::entries().into_iter().filter(|line| line.update == Update::InPlace);
        for engine in lines.filter(|line| takes_part(line.name)) {
            let mut refused = 0;
            for batch in 0..sizes.len() {
                refused +=
                    WAYS.map(|stays| refuse_each(&engine, &batches, batch, stays)).iter().sum::<usize>();
            }
            let is_live = ["dir-", "dxr-"].iter().any(|&name| engine.name.starts_with(name));
            let least = if is_live { 100 } else { 1 };
            assert!(refused > least, "{}: {refused} refusals", engine.name);
        }
    }
    // With so few bits, tries of several bits a node have all nodes before they change.
    let has_all_nodes = |name: &str| name.starts_with("multibit");
    structures::<Toy<3>>(4, &[1, 3, 6, 1, 8], |name| !has_all_nodes(name));
    structures::<Toy<8>>(40, &[1, 5, 40, 2, 80], |name| !has_all_nodes(name));
    structures::<Toy<16>>(40, &[1, 5, 40, 2, 80], has_all_nodes);
}

/// What a call does to a table.
#[derive(Debug, Clone, Copy)]
enum Call {
    Apply,
    /// Whose entries and roots are boxed: what cannot be requested fallibly is small.
    Atomic,
    /// What waits is published.
    Flush,
    /// The structure is made of fewer routes.
    Aggregated,
}

/// Options under which the calls of a scenario do what it is about.
fn options<K: Key>(engine: Engine<K>, call: Call) -> Options {
    let mut options =
        Options { aggregate: matches!(call, Call::Aggregated), ..Options::default() }.with_engine(engine);
    if matches!(call, Call::Flush) {
        options.coalesce = core::time::Duration::from_secs(1_000);
    }
    options
}

/// A table that took batches, a reader of it, and one that has been pinned since before the last of them.
fn table<K: Tabled>(batches: &Batches<K>, batch: usize, options: Options) -> (Table, Reader) {
    let mut rib = Rib::<K>::default();
    batches.first.iter().for_each(|&route| {
        rib.insert(route).unwrap();
    });
    let table = Table::from_routes(K::dual(rib), options).unwrap();
    for (changes, _) in &batches.batches[..batch] {
        let _ = table.apply(changes).unwrap();
    }
    let _ = table.flush().unwrap();
    let reader = table.reader().unwrap();
    (table, reader)
}

/// A key whose routes make a table.
trait Tabled: TableKey {
    fn dual(rib: Rib<Self>) -> DualRib;

    /// Changes of this family, and none of the other.
    fn atomic(table: &Table, changes: &[Change<Self>]) -> Result<(), TableError>;
}

impl Tabled for u32 {
    fn dual(rib: Rib<Self>) -> DualRib {
        DualRib::new(rib, Rib::default())
    }

    fn atomic(table: &Table, changes: &[Change<Self>]) -> Result<(), TableError> {
        table.apply_atomic(changes, &[]).map(drop)
    }
}

impl Tabled for u128 {
    fn dual(rib: Rib<Self>) -> DualRib {
        DualRib::new(Rib::default(), rib)
    }

    fn atomic(table: &Table, changes: &[Change<Self>]) -> Result<(), TableError> {
        table.apply_atomic(&[], changes).map(drop)
    }
}

fn call<K: Tabled>(table: &Table, call: Call, changes: &[Change<K>]) -> Result<(), TableError> {
    match call {
        Call::Apply | Call::Aggregated => table.apply(changes).map(drop),
        Call::Atomic => K::atomic(table, changes),
        Call::Flush => table.flush().map(drop),
    }
}

/// What readers and callers see of a table.
#[derive(Debug, PartialEq)]
struct Seen {
    answers: Vec<Option<NextHop>>,
    routes: Vec<Option<NextHop>>,
    len: usize,
    waiting: usize,
}

fn see<K: Tabled>(table: &Table, reader: &mut Reader, keys: &[K], prefixes: &[Prefix<K>]) -> Seen
where
    fibula::net::IpPrefix: From<Prefix<K>>,
{
    let mut answers = vec![None; keys.len()];
    reader.pin().lookup_batch(keys, &mut answers);
    let routes = prefixes.iter().map(|&prefix| table.get(prefix).unwrap()).collect();
    let waiting = table.statistics().unwrap().totals.waiting;
    Seen { answers, routes, len: table.len().unwrap(), waiting }
}

/// Refuses each request of a call. Returns how many were refused.
fn refuse_each_of_table<K: Tabled>(
    engine: &'static str,
    batches: &Batches<K>,
    batch: usize,
    kind: Call,
    stays: bool,
) -> usize
where
    fibula::net::IpPrefix: From<Prefix<K>>,
{
    let name = format!("{engine}, batch {batch}, {kind:?}");
    let (changes, after) = &batches.batches[batch];
    let prefixes: Vec<_> = changes.iter().map(Change::prefix).collect();
    let keys = edges(prefixes.iter().copied().chain(after.iter().map(|route| route.prefix)));
    let model = Model(after.iter().map(|route| (route.prefix, route.next_hop)).collect());
    let expected: Vec<_> = keys.iter().map(|&key| model.lookup(key).map(|route| route.next_hop)).collect();
    // Boxes cannot be requested fallibly: of roots, and of structures, which are larger here than elsewhere.
    let least_bytes = if matches!(kind, Call::Atomic) { 2 * ALWAYS_GRANTED_BYTES } else { 0 };
    let mut refusals = 0;
    let engine = fibula_published::find::<K>(engine).unwrap();
    // Each try leaves lists with more room, so that the next one comes further: from several beginnings.
    for first in STARTS {
        let (table, mut reader) = table(batches, batch, options(engine, kind));
        let mut stalled = reader.clone();
        let pin = stalled.pin();
        if matches!(kind, Call::Flush) {
            let _ = table.apply(changes).unwrap();
        }
        let before = see(&table, &mut reader, &keys, &prefixes);
        let rebuilt = table.statistics().unwrap().totals.rebuilt;
        let mut numbers = first..MOST;
        loop {
            let number = numbers.next().expect("the call succeeds some time");
            let refusal = Refusal { number, least_bytes, stays };
            let (result, refused) = refuse(refusal, || call(&table, kind, changes));
            refusals += usize::from(refused);
            let Err(error) = result else { break };
            assert!(refused, "{name}: {error}");
            assert_eq!(see(&table, &mut reader, &keys, &prefixes), before, "{name}: {error}");
            table.check().unwrap();
        }
        assert_eq!(table.statistics().unwrap().totals.rebuilt, rebuilt, "{name}: in place");
        let now = see(&table, &mut reader, &keys, &prefixes);
        assert_eq!((&now.answers, now.len, now.waiting), (&expected, after.len(), 0), "{name}");
        drop(pin);
        let _ = table.maintain().unwrap();
        table.check().unwrap();
        assert_eq!(table.statistics().unwrap().retired_bytes, 0, "{name}");
    }
    refusals
}

#[test]
fn tables_survive_every_refusal() {
    fn tables<K: Tabled>(engine: &'static str)
    where
        fibula::net::IpPrefix: From<Prefix<K>>,
    {
        // Of shorter prefixes, `dxr` sweeps the routes in threads, which the standard library cannot start without memory.
        let batches = Batches::<K>::new(30, &[2, 8, 3], 8);
        let scenarios = [
            (0, Call::Apply, true),
            (2, Call::Apply, false),
            (1, Call::Atomic, false),
            (1, Call::Flush, false),
            (1, Call::Aggregated, false),
        ];
        let refused: usize = scenarios
            .into_iter()
            .map(|(batch, kind, stays)| refuse_each_of_table(engine, &batches, batch, kind, stays))
            .sum();
        assert!(refused > 20, "{engine}: {refused} refusals");
    }
    tables::<u32>("dir-17-bitmap");
    tables::<u32>("dxr-16");
    tables::<u32>("dir-24-8");
    tables::<u128>("dir-btree");
}
