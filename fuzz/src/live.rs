//! A live table, with everything that its callers and readers may do: against the routes as a model, and a reader that stays
//! pinned.

use std::time::Duration;

use fibula::fib::registry::Engine;
use fibula::live::{Options, Outcome, Pinned, Reader, Table, TableError, TableKey};
use fibula::memory::Limits;
use fibula::net::{Change, Key, NextHop, Prefix, Route};
use fibula::rib::DualRib;
use fibula_proof::subject::Tested;
use fibula_proof::tables::Model;

/// Structures that change in place, and one that is built anew.
const V4: &[&str] = &["dir-17-bitmap", "dxr-16", "range-search"];
const V6: &[&str] = &["dir-btree", "planb", "range-search"];

/// The longest stream; longer ones only slow the search.
const RECORDS: usize = 150;

/// Bytes of a record.
const RECORD: usize = 6;

/// One family: the routes as models, and the changes that the next call makes.
#[derive(Default)]
struct Family<K: Key> {
    /// What the routes of the table are.
    routes: Model<K>,
    /// What lookups see: all routes but for changes that wait.
    visible: Model<K>,
    changes: Vec<Change<K>>,
    /// What lookups saw since the reader was pinned.
    seen: Vec<Model<K>>,
    keys: Vec<K>,
}

impl<K: TableKey> Family<K> {
    /// Reads a change from bytes, in a small part of the space so that prefixes meet.
    /// Pins see nothing of it, so it returns `false`.
    fn change(&mut self, record: [u8; RECORD]) -> bool {
        let [_, id, len, one, two, three] = record.map(u128::from);
        let bits = u32::from(K::BITS);
        let address = (one << 16 | two << 8 | three) << (bits - 24) | two << (bits / 2) | three;
        let len = (len % (u128::from(K::BITS) + 1)) as u8;
        let prefix = Prefix::masked(K::from_bits(address), len).expect("the length fits");
        let id = [id as u32 % 8, 254 + id as u32 % 4, 65_534 + id as u32 % 4, 0][id as usize % 4];
        let change = match NextHop::new(id) {
            Some(next_hop) => Change::Insert(Route::new(prefix, next_hop)),
            None => Change::Remove(prefix),
        };
        self.changes.push(change);
        self.keys.extend([prefix.addr(), prefix.last()]);
        false
    }

    /// Takes over what a call has done with the changes.
    fn called(&mut self, is_made: bool, is_published: bool) {
        let changes = core::mem::take(&mut self.changes);
        if is_made {
            changes.into_iter().for_each(|change| self.routes.apply(change));
        }
        if is_published {
            self.visible = self.routes.clone();
            self.seen.push(self.visible.clone());
        }
    }

    /// A reader is pinned from now on.
    fn pinned(&mut self) {
        self.seen = vec![self.visible.clone()];
    }

    /// Compares the routes with the table's, and what a new pin sees with the visible ones.
    fn compare(&self, table: &Table, new: &Pinned<'_>) {
        let mut routes = Vec::new();
        table.for_each::<K>(|route| routes.push(route)).expect("no thread panicked");
        assert_eq!(routes, self.routes.routes());
        let mut found = vec![None; self.keys.len()];
        new.lookup_batch(&self.keys, &mut found);
        for (&key, &found) in self.keys.iter().zip(&found) {
            assert_eq!((found, new.lookup(key)), (answer(&self.visible, key), found), "{}", key.address());
        }
    }

    /// Compares what the pinned reader sees: the version of its pin if only atomic changes were made since, else for each
    /// address that of some version since.
    fn compare_pinned(&self, pin: &Pinned<'_>, atomic: bool) {
        let versions = if atomic { &self.seen[..1] } else { &self.seen[..] };
        for &key in &self.keys {
            let found = pin.lookup(key);
            let is_right = versions.iter().any(|version| answer(version, key) == found);
            assert!(is_right, "{}: {found:?} through a pin", key.address());
        }
    }
}

fn answer<K: Key>(routes: &Model<K>, key: K) -> Option<NextHop> {
    routes.lookup(key).map(|route| route.next_hop)
}

/// What the first byte of a record does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    ChangeV4,
    ChangeV6,
    ApplyV4,
    ApplyV6,
    Atomic,
    Flush,
    Maintain,
    Pin,
    Unpin,
}

impl Act {
    fn of(byte: u8) -> Self {
        match byte {
            0..90 => Self::ChangeV4,
            90..150 => Self::ChangeV6,
            150..180 => Self::ApplyV4,
            180..204 => Self::ApplyV6,
            204..222 => Self::Atomic,
            222..230 => Self::Flush,
            230..238 => Self::Maintain,
            238..248 => Self::Pin,
            248.. => Self::Unpin,
        }
    }
}

fn engine_of<K: Tested>(name: &str) -> Engine<K> {
    K::entries().into_iter().find(|engine| engine.name == name).expect("it is in the list")
}

fn options(byte: u8) -> Options {
    let coalesce = if byte & 1 == 0 { Duration::ZERO } else { Duration::from_secs(1_000) };
    // The tightest have hardly room for an empty table.
    let memory_bytes = (byte & 2 != 0).then(|| 600_000 + usize::from(byte >> 5) * 100_000);
    let retired_bytes = if byte & 4 == 0 { Options::default().retired_bytes } else { 2_000 };
    let engine = usize::from(byte >> 3 & 3) % V4.len();
    let limits = Limits { memory_bytes, ..Limits::default() };
    let (ipv4, ipv6, patience) = (engine_of(V4[engine]), engine_of(V6[engine]), Duration::ZERO);
    Options { ipv4, ipv6, limits, retired_bytes, patience, coalesce, ..Options::default() }
}

/// A table, the models, and a reader that pins anew after each call.
struct Machine {
    table: Table,
    v4: Family<u32>,
    v6: Family<u128>,
    reader: Reader,
}

impl Machine {
    /// Does what a record says, other than for the pinned reader. Returns whether pins may see it that began before.
    fn step(&mut self, record: [u8; RECORD]) -> bool {
        let act = Act::of(record[0]);
        let Self { table, v4, v6, reader } = self;
        let result = match act {
            Act::ChangeV4 => return v4.change(record),
            Act::ChangeV6 => return v6.change(record),
            Act::ApplyV4 => table.apply(&v4.changes),
            Act::ApplyV6 => table.apply(&v6.changes),
            Act::Atomic => table.apply_atomic(&v4.changes, &v6.changes),
            Act::Flush => table.flush(),
            Act::Maintain => table.maintain(),
            Act::Pin | Act::Unpin => return false,
        };
        let is_published = is_published(&result, act);
        // Changes that a call does not make are left for a later one, those that were refused are not.
        let takes = |of: Act| act == of || act == Act::Atomic;
        let (changes4, changes6) = (v4.changes.clone(), v6.changes.clone());
        v4.called(takes(Act::ApplyV4) && result.is_ok(), is_published);
        v6.called(takes(Act::ApplyV6) && result.is_ok(), is_published);
        if !takes(Act::ApplyV4) {
            v4.changes = changes4;
        }
        if !takes(Act::ApplyV6) {
            v6.changes = changes6;
        }
        if matches!(act, Act::Atomic | Act::Flush | Act::Maintain) || result.is_err() {
            table.check().expect("a table is sound after each call");
        }
        let pin = reader.pin();
        v4.compare(table, &pin);
        v6.compare(table, &pin);
        act != Act::Atomic
    }
}

/// Returns whether a call has published all changes until then.
fn is_published(result: &Result<Outcome, TableError>, act: Act) -> bool {
    match result {
        Ok(outcome) => {
            let waits = !matches!(act, Act::ApplyV4 | Act::ApplyV6);
            assert!(outcome.waiting == 0 || !waits, "{outcome:?} after {act:?}");
            outcome.waiting == 0
        }
        Err(TableError::Poisoned) => panic!("{result:?}"),
        // Too little memory, or the pinned reader stalls the table.
        Err(_) => false,
    }
}

/// The first byte chooses options; each record is a change for a later call, a call, or a step of the pinned reader.
pub(crate) fn follow(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let Ok(table) = Table::from_routes(DualRib::default(), options(first)) else { return };
    let (mut v4, mut v6) = (Family::<u32>::default(), Family::<u128>::default());
    v4.keys.extend([0, u32::MAX]);
    v6.keys.extend([0, u128::MAX]);
    let (Ok(reader), Ok(mut holder)) = (table.reader(), table.reader()) else { return };
    let mut machine = Machine { table, v4, v6, reader };
    let mut records = bytes.as_chunks::<RECORD>().0.iter().take(RECORDS);
    let mut has_ended = false;
    while !has_ended {
        has_ended = true;
        let mut pin = holder.pin();
        let mut atomic = true;
        machine.pinned();
        for record in records.by_ref() {
            match Act::of(record[0]) {
                Act::Unpin => {
                    has_ended = false;
                    break;
                }
                Act::Pin => {
                    pin.refresh();
                    atomic = true;
                    machine.pinned();
                }
                _ => {
                    atomic &= !machine.step(*record);
                    machine.v4.compare_pinned(&pin, atomic);
                    machine.v6.compare_pinned(&pin, atomic);
                }
            }
        }
        drop(pin);
        for record in records.by_ref() {
            if Act::of(record[0]) == Act::Pin {
                has_ended = false;
                break;
            }
            machine.step(*record);
        }
    }
    machine.end();
}

impl Machine {
    fn pinned(&mut self) {
        self.v4.pinned();
        self.v6.pinned();
    }

    /// Without pinned readers nothing is refused but for memory, and what was retired is free.
    fn end(&mut self) {
        let Self { table, .. } = self;
        if table.maintain().is_ok() {
            let statistics = table.statistics().expect("no thread panicked");
            assert_eq!((statistics.retired_bytes, statistics.totals.waiting), (0, 0));
        }
        table.check().expect("a table is sound in the end");
    }
}
