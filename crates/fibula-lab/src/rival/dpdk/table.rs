//! A table of DPDK's as a contestant.

use core::error::Error;
use core::marker::PhantomData;
use core::ops::Range;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fibula::fib::BuildError;
use fibula::fib::registry::Role;
use fibula::memory::Memory;
use fibula::net::{Change, Family, Key, NextHop, Prefix, Routes};

use super::form::{self, Form, Kind};
use super::survey::Survey;
use super::sys::{Call, Config, Handle, Keys, Room};
use crate::bench::{Bounds, Contestant, Kernel, KeyPrefetch, Native, Prepared, Shape, Structure};

/// Whether to request huge pages, as our engines do.
const HUGE_PAGES: bool = true;

const FIRST_ENTRIES: u64 = 1 << 24;
const GROUP_ENTRIES: u64 = 256;

/// The most groups a table of `rte_lpm` may need. Each search for a free one starts at the first, so the time for all grows with
/// the square of their number; so many take seconds.
const LPM_GROUPS: u64 = 1 << 16;

/// Returns the bytes that a library keeps for a route besides its table: two tree nodes in a pool, with their places in
/// the pool's ring; a rule; a hash table entry with its place in a ring.
const fn route_bytes(kind: Kind) -> u64 {
    match kind {
        Kind::Fib | Kind::Fib6 => 2 * 192 + 2 * 2 * 8,
        Kind::Lpm => 8,
        Kind::Lpm6 => 256,
    }
}

/// And for everything else.
const REST_BYTES: u64 = 16 << 20;

/// Returns all forms of one family.
pub(super) fn contestants<K: Key>() -> Vec<Contestant<K>> {
    let shared = Rc::new(Shared::default());
    form::of::<K>()
        .map(|&form| {
            let shared = Rc::clone(&shared);
            Contestant {
                name: form.name.to_owned(),
                rival: true,
                kernels: vec![Kernel::of_rival(form.isa)],
                role: Role::Published,
                bounds: Bounds::NONE,
                build: Box::new(move |routes| {
                    let table = shared.table(form, routes)?;
                    Ok(Structure::Native(Box::new(Rival { table, form, family: PhantomData::<fn(K)> })))
                }),
            }
        })
        .collect()
}

/// The table of `rte_lpm`, while it is in use.
#[derive(Default)]
struct Shared {
    lpm: RefCell<Weak<Table>>,
}

impl Shared {
    fn table<K: Key>(&self, form: Form, routes: &dyn Routes<K>) -> Result<Arc<Table>, Box<dyn Error>> {
        if form.kind != Kind::Lpm {
            return Ok(Arc::new(Table::build(form, Survey::new(routes), routes)?));
        }
        let survey = Survey::new(routes);
        if let Some(table) = self.lpm.borrow().upgrade()
            && table.survey == survey
        {
            return Ok(table);
        }
        let table = Arc::new(Table::build(form, survey, routes)?);
        *self.lpm.borrow_mut() = Arc::downgrade(&table);
        Ok(table)
    }
}

/// A table with its survey, size and build time.
struct Table {
    handle: Handle,
    survey: Survey,
    memory: Memory,
    build_time: Duration,
}

impl Table {
    fn build<K: Key>(form: Form, survey: Survey, routes: &dyn Routes<K>) -> Result<Self, Box<dyn Error>> {
        let groups = reserve(form, &survey)?;
        let (first, group) = (FIRST_ENTRIES << form.entry, GROUP_ENTRIES << form.entry);
        let beside = survey.routes as u64 * route_bytes(form.kind) + REST_BYTES;
        let config = Config {
            kind: form.kind,
            lookup: form.lookup,
            entry: form.entry,
            // A default route is two routes in rte_lpm and rte_lpm6, and no library creates a table for no routes.
            routes: u32::try_from(survey.routes + 2)?,
            groups: groups as u32,
            huge_pages: u32::from(HUGE_PAGES),
            heap_bytes: first + (groups + 64) * group + beside,
        };
        memory_for(form, config.heap_bytes)?;
        let refused =
            |error| format!("{}: DPDK makes no table with lookups for {} here: {error}", form.name, form.isa);
        // The memory is obtained before the clock starts, as in programs that use DPDK.
        let room = Room::new(config).map_err(refused)?;
        let begin = Instant::now();
        let mut handle = room.make().map_err(refused)?;
        let mut count = 0_usize;
        routes.try_for_each(Prefix::ALL, |route| {
            count += 1;
            add(&mut handle, form, route.prefix, route.next_hop).map_err(|error| {
                let of = survey.routes;
                format!("{}: DPDK refuses {} (route {count} of {of}): {error}", form.name, route.prefix)
            })
        })?;
        let build_time = begin.elapsed();
        let mapped_bytes = usize::try_from(handle.allocated())?.next_multiple_of(4096);
        let memory = Memory {
            lookup_bytes: usize::try_from(first + survey.groups * group)?,
            allocated_bytes: 0,
            mapped_bytes,
            huge_bytes: if HUGE_PAGES { mapped_bytes } else { 0 },
        };
        Ok(Self { handle, survey, memory, build_time })
    }
}

/// Returns the number of groups to reserve, if next hops and groups fit into the entries.
fn reserve(form: Form, survey: &Survey) -> Result<u64, BuildError> {
    let next_hops = (1_u64 << form.bits) - 1;
    if u64::from(survey.next_hop_max) > next_hops {
        let need = u64::from(survey.next_hop_max);
        return Err(BuildError::limit(form.name, "next hops (numbered from 1)", next_hops, need));
    }
    // An entry holds a next hop or the number of a group.
    let limit = match form.kind {
        Kind::Lpm => 1 << 24,
        Kind::Lpm6 => 1 << 21,
        Kind::Fib | Kind::Fib6 => next_hops,
    };
    if survey.groups > limit {
        return Err(BuildError::limit(form.name, "groups of 256 entries (tbl8)", limit, survey.groups));
    }
    if form.kind == Kind::Lpm && survey.groups > LPM_GROUPS {
        let what =
            "groups of 256 entries, as it looks for a free one from the first on, which takes many minutes";
        return Err(BuildError::limit(form.name, what, LPM_GROUPS, survey.groups));
    }
    let wanted = if form.kind == Kind::Fib6 { survey.groups_reserved } else { survey.groups };
    // The libraries refuse 0.
    Ok(wanted.clamp(1, limit))
}

/// Refuses a table that takes more memory than the machine has left, because the system would kill the program.
fn memory_for(form: Form, bytes: u64) -> Result<(), String> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let left = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    match left.map(|kilobytes| kilobytes * 1024) {
        Some(left) if left < bytes => Err(format!(
            "{}: takes about {} MB of memory, the machine has {} MB left",
            form.name,
            bytes >> 20,
            left >> 20
        )),
        _ => Ok(()),
    }
}

/// Adds a route in the library's form.
fn add<K: Key>(handle: &mut Handle, form: Form, prefix: Prefix<K>, next_hop: NextHop) -> Result<(), String> {
    let add = |key: Keys<'_>, len| handle.add(key, len, next_hop.id());
    with_parts(form, prefix, add)
}

/// Calls `each` with the prefix in the library's form; with its two halves, where the library has no such prefix.
fn with_parts<K: Key>(
    form: Form,
    prefix: Prefix<K>,
    mut each: impl FnMut(Keys<'_>, u8) -> Result<(), String>,
) -> Result<(), String> {
    let mut one = |prefix: Prefix<K>| match K::FAMILY {
        Family::Ipv6 => each(Keys::V6(&[prefix.addr().to_bits().to_be_bytes()]), prefix.len()),
        _ => each(Keys::V4(&[prefix.addr().to_bits() as u32]), prefix.len()),
    };
    match (form.kind, prefix.halves()) {
        (Kind::Lpm | Kind::Lpm6, Some((low, high))) if prefix.len() == 0 => one(low).and_then(|()| one(high)),
        _ => one(prefix),
    }
}

/// Keys in the form of the libraries.
enum NativeKeys {
    V4(Vec<u32>),
    V6(Vec<[u8; 16]>),
}

impl NativeKeys {
    fn new<K: Key>(keys: &[K]) -> Self {
        match K::FAMILY {
            Family::Ipv6 => Self::V6(keys.iter().map(|key| key.to_bits().to_be_bytes()).collect()),
            _ => Self::V4(keys.iter().map(|key| key.to_bits() as u32).collect()),
        }
    }

    #[inline]
    fn part(&self, range: Range<usize>) -> Keys<'_> {
        match self {
            Self::V4(keys) => Keys::V4(&keys[range]),
            Self::V6(keys) => Keys::V6(&keys[range]),
        }
    }
}

/// A table in one of its forms.
struct Rival<K> {
    table: Arc<Table>,
    form: Form,
    family: PhantomData<fn(K)>,
}

impl<K: Key> Rival<K> {
    fn call(&self, shape: Shape) -> Call {
        match shape {
            Shape::Single => Call::Single,
            Shape::Dependent => Call::Dependent,
            Shape::Batch(_) if self.form.x4 => Call::BatchX4,
            Shape::Batch(_) => Call::Batch,
        }
    }
}

impl<K: Key> Native<K> for Rival<K> {
    fn memory(&self) -> Memory {
        self.table.memory
    }

    fn prepare(&self, keys: &[K], room: usize) -> Box<dyn Prepared + '_> {
        let keys = NativeKeys::new(keys);
        Box::new(NativeLookup { rival: self, keys, answers: vec![SPOILT; room], last: Call::Batch })
    }

    fn key_prefetch(&self) -> KeyPrefetch {
        KeyPrefetch::Loop
    }

    fn build_time(&self) -> Option<Duration> {
        Some(self.table.build_time)
    }

    fn apply(&mut self, changes: &[Change<K>]) -> Result<Duration, String> {
        let table = Arc::get_mut(&mut self.table).ok_or("another contestant shares its table")?;
        let begin = Instant::now();
        for change in changes {
            match *change {
                Change::Insert(route) => add(&mut table.handle, self.form, route.prefix, route.next_hop)?,
                Change::Remove(prefix) => {
                    with_parts(self.form, prefix, |key, len| table.handle.delete(key, len))?;
                }
            }
        }
        Ok(begin.elapsed())
    }
}

/// No library gives this answer: in each of the forms it is a next hop that no table has.
const SPOILT: u64 = 0xdddd_dddd_dddd_dddd;

struct NativeLookup<'a, K> {
    rival: &'a Rival<K>,
    keys: NativeKeys,
    answers: Vec<u64>,
    /// The kind of call that gave the answers.
    last: Call,
}

impl<K: Key> Prepared for NativeLookup<'_, K> {
    fn lookup(&mut self, shape: Shape, keys: Range<usize>) {
        self.last = self.rival.call(shape);
        self.rival.table.handle.lookup(self.last, self.keys.part(keys), &mut self.answers);
    }

    fn take(&mut self, results: &mut [Option<NextHop>]) {
        let mut next_hops = vec![0; results.len()];
        self.rival.table.handle.next_hops(self.last, &self.answers, &mut next_hops);
        for (result, id) in results.iter_mut().zip(next_hops) {
            *result = NextHop::new(id);
        }
        self.answers.fill(SPOILT);
    }
}
