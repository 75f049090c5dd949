//! Follows a table: every word that it stores is stored in the maps, in its order.

use core::time::Duration;
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fibula::Table;
use fibula::live::{Listener, Reader, Rooms, Stored, Structure};
use fibula::net::{Dual, Family};

use crate::error::BpfError;
use crate::grace::{Grace, Waiting};
use crate::layout::{ARRAYS, at};
use crate::table::{BpfTable, Maps};

/// How a table is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FollowOptions {
    /// How to wait until programs have left replaced words.
    pub grace: Grace,
    /// The order of stores.
    #[doc(hidden)]
    pub order: Order,
}

/// The order of stores of a publication. For the test that the table's order is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(hidden)]
pub enum Order {
    /// The order in which the table names the stores to its listener.
    #[default]
    AsTold,
    /// The other way round, with some time between: wrong on purpose.
    Reversed,
    /// The same order, for this number of stores. Before the next store the follower prints a line and waits, so that a test can kill it
    /// there. Words of whole arrays do not count.
    Halted(u64),
}

impl Order {
    fn halt(self, shared: &Shared) {
        let Self::Halted(most) = self else { return };
        if shared.stores.fetch_add(1, Ordering::Relaxed) < most {
            return;
        }
        let mut out = io::stdout();
        let _ = out.write_all(b"halted\n").and_then(|()| out.flush());
        loop {
            thread::park();
        }
    }
}

impl BpfTable {
    /// Writes all words of a table that does not change. The table loses its listener.
    ///
    /// # Errors
    /// When the table has another engine, or no room here.
    pub fn fill(&self, table: &Table) -> Result<(), BpfError> {
        self.clone().follow(table).map(drop)
    }

    /// Writes all words of a table, and from then on every change, until the follower is dropped. The table has no other listener.
    ///
    /// # Errors
    /// As for [`fill`](Self::fill), and when another process follows a table in pinned maps.
    pub fn follow(self, table: &Table) -> Result<Follower, BpfError> {
        Follower::start(vec![self], table, FollowOptions::default())
    }
}

/// Keeps maps up to date with a table until it is dropped. Maps then have the words of that moment.
#[derive(Debug)]
pub struct Follower {
    tables: Vec<BpfTable>,
    table: Table,
    shared: Arc<Shared>,
    /// The thread of turns, and that of heartbeats.
    threads: Vec<JoinHandle<()>>,
    /// Locked folders of pins.
    _locks: Vec<File>,
}

/// The state that the listener, the threads and the handle share.
#[derive(Debug)]
struct Shared {
    waiting: Waiting,
    is_ended: AtomicBool,
    /// Publications, and grace periods that have ended.
    published: AtomicU64,
    turns: AtomicU64,
    /// Stores, where the order counts them.
    stores: AtomicU64,
    /// The last error, after which the maps do not follow any more.
    failed: Mutex<Option<BpfError>>,
}

impl Shared {
    fn fail(&self, error: BpfError) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn take_error(&self) -> Option<BpfError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// How long a follower waits for those who only ask whether somebody follows: they hold their lock for microseconds.
const ASKED: Duration = Duration::from_secs(2);

/// Returns the lock that the one follower of a folder of pins holds, or `None` if another process has it.
///
/// Whoever asks for the state of maps takes the lock shared for a moment, which is no reason to refuse a follower.
fn claim(folder: &Path) -> io::Result<Option<File>> {
    let begin = Instant::now();
    loop {
        let lock = File::open(folder)?;
        match lock.try_lock() {
            Ok(()) => return Ok(Some(lock)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        let is_followed = lock.try_lock_shared().is_err();
        drop(lock);
        if is_followed || begin.elapsed() > ASKED {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Between heartbeats.
const BEAT: Duration = Duration::from_secs(1);

impl Follower {
    /// Writes all words of a table into maps of different families, and every change from then on.
    ///
    /// # Errors
    /// When the table has other engines than the maps, or no room in them; when another process follows a table in the same pins;
    /// when there is no way to wait for programs.
    pub fn start(tables: Vec<BpfTable>, table: &Table, options: FollowOptions) -> Result<Self, BpfError> {
        let mut locks = Vec::new();
        for maps in &tables {
            let folder = maps.maps.pin.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(folder) = folder {
                let lock =
                    claim(&folder).map_err(|error| BpfError::system(folder.display().to_string(), error))?;
                let Some(lock) = lock else {
                    let process = maps.state().follower;
                    return Err(BpfError::Busy { path: folder, process });
                };
                locks.push(lock);
            }
        }
        let shared = Arc::new(Shared {
            waiting: Waiting::of(options.grace)?,
            is_ended: AtomicBool::new(false),
            published: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            stores: AtomicU64::new(0),
            failed: Mutex::new(None),
        });
        // Programs may still read the words that the last follower replaced.
        shared.waiting.wait()?;
        let mut ear =
            Ear { v4: None, v6: None, shared: Arc::clone(&shared), order: options.order, held: Vec::new() };
        let mut rooms = Dual::new(Rooms::default(), Rooms::default());
        for maps in &tables {
            let (ear, rooms) = match maps.options().engine.family() {
                Family::Ipv4 => (&mut ear.v4, &mut rooms.v4),
                Family::Ipv6 => (&mut ear.v6, &mut rooms.v6),
            };
            *ear = Some(FamilyEar::of(maps));
            *rooms = maps.options().rooms_in_words();
        }
        let readers = [table.reader()?, table.reader()?];
        table.listen_within(ear, rooms)?;
        if let Some(error) = shared.take_error() {
            table.stop_listening()?;
            return Err(error);
        }
        let mut follower = Self {
            tables,
            table: table.clone(),
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            _locks: locks,
        };
        for maps in &follower.tables {
            maps.maps.header.long(at::FOLLOWER).store(std::process::id().into(), Ordering::Relaxed);
        }
        beat(&follower.tables, table);
        let no_thread = |error| BpfError::system("start a thread", error);
        let of_turns = Arc::clone(&shared);
        let thread = thread::Builder::new().name("fibula-bpf".to_owned());
        follower.threads.push(thread.spawn(move || turns(&of_turns, readers)).map_err(no_thread)?);
        let (maps, table) = (follower.tables.clone(), table.clone());
        // Not in the thread of turns: to count routes waits for a change, and a change may wait for a turn.
        let thread = thread::Builder::new().name("fibula-bpf-beat".to_owned());
        follower.threads.push(thread.spawn(move || beats(&shared, &maps, &table)).map_err(no_thread)?);
        Ok(follower)
    }

    /// Returns the maps.
    #[must_use]
    pub fn tables(&self) -> &[BpfTable] {
        &self.tables
    }

    /// Returns the number of grace periods that have ended, and the way of waiting.
    #[must_use]
    pub fn turns(&self) -> (u64, &'static str) {
        (self.shared.turns.load(Ordering::Relaxed), self.shared.waiting.name())
    }

    /// Returns the error after which the maps do not follow any more, once.
    ///
    /// # Errors
    /// The error.
    pub fn health(&self) -> Result<(), BpfError> {
        self.shared.take_error().map_or(Ok(()), Err)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // First, so that no store comes after the maps are said to have no follower.
        let _ = self.table.stop_listening();
        self.shared.is_ended.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
        beat(&self.tables, &self.table);
        for maps in &self.tables {
            maps.maps.header.long(at::FOLLOWER).store(0, Ordering::Relaxed);
        }
    }
}

/// Two readers take turns, so that one of them is always pinned, and a unit that is replaced is free again only when a grace period
/// has begun and ended since.
fn turns(shared: &Shared, [mut first, mut second]: [Reader; 2]) {
    let mut pinned = first.pin();
    let mut seen = 0;
    while !shared.is_ended.load(Ordering::Acquire) {
        let published = shared.published.load(Ordering::Acquire);
        if published == seen {
            thread::park_timeout(IDLE);
            continue;
        }
        seen = published;
        let next = second.pin();
        if !waited(shared) {
            return;
        }
        drop(pinned);
        pinned = first.pin();
        if !waited(shared) {
            return;
        }
        drop(next);
        shared.turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits for a grace period. Where that fails, it returns only at the end, while the caller's pins hold all that was replaced. Changes
/// are refused then, so no words are used again too early.
fn waited(shared: &Shared) -> bool {
    let Err(error) = shared.waiting.wait() else { return true };
    shared.fail(error);
    while !shared.is_ended.load(Ordering::Acquire) {
        thread::park();
    }
    false
}

/// The longest time after a change until a turn begins.
const IDLE: Duration = Duration::from_millis(20);

/// Shows every second that the follower lives.
fn beats(shared: &Shared, maps: &[BpfTable], table: &Table) {
    while !shared.is_ended.load(Ordering::Acquire) {
        beat(maps, table);
        thread::park_timeout(BEAT);
    }
}

/// Shows that the follower lives.
fn beat(maps: &[BpfTable], table: &Table) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for maps in maps {
        let header = &maps.maps.header;
        let routes = match maps.options().engine.family() {
            Family::Ipv4 => table.len_of::<u32>(),
            Family::Ipv6 => table.len_of::<u128>(),
        };
        if let Ok(routes) = routes {
            header.long(at::ROUTES).store(routes as u64, Ordering::Relaxed);
        }
        header.long(at::HEARTBEAT).store(now, Ordering::Release);
    }
}

/// The listener.
struct Ear {
    v4: Option<FamilyEar>,
    v6: Option<FamilyEar>,
    shared: Arc<Shared>,
    order: Order,
    /// Stores that are made the other way round.
    held: Vec<(Family, usize, usize, u64)>,
}

/// One family of the listener.
struct FamilyEar {
    maps: Arc<Maps>,
    /// Which half of each array takes the stores, and which halves become those of lookups with the next publication.
    halves: u32,
    flips: u32,
    /// Whether lookups may still be in the other half of an array.
    is_left: u32,
    /// The number by which words are read.
    number: u32,
    /// Bytes in use of each array.
    used: [usize; ARRAYS],
    /// Whether the structure is another engine's.
    is_foreign: bool,
}

impl FamilyEar {
    fn of(maps: &BpfTable) -> Self {
        let state = maps.maps.state().load(Ordering::Acquire);
        let maps = Arc::clone(&maps.maps);
        let (halves, number) = (state & 0xff, state >> 8);
        Self { maps, halves, flips: 0, is_left: 0, number, used: [0; ARRAYS], is_foreign: false }
    }

    /// Returns the byte of the first word of a store, or refuses one that has no room, which caps and engines exclude.
    fn place(&mut self, stored: &Stored<'_>) -> Option<(usize, usize)> {
        let array = usize::from(stored.array);
        let bytes = *self.maps.options.engine.word_bytes().get(array)?;
        let (room, end) = (1 << self.maps.options.rooms[array], (stored.first + stored.words.len()) * bytes);
        if bytes != stored.words.word_bytes() || end > room {
            return None;
        }
        let used = &mut self.used[array];
        *used = if stored.is_whole { end } else { end.max(*used) };
        Some((array, stored.first * bytes + if self.halves >> array & 1 == 1 { room } else { 0 }))
    }

    fn store(&self, array: usize, byte: usize, word: u64) {
        let to = &self.maps.arrays[array];
        // Release, because programs follow a word to those that were stored before it.
        match self.maps.options.engine.word_bytes()[array] {
            8 => to.long(byte).store(word, Ordering::Release),
            _ => to.word(byte).store(word as u32, Ordering::Release),
        }
    }

    fn published(&mut self, version: u64) {
        let header = &self.maps.header;
        let state = self.number << 8 | self.halves;
        let long = |at: usize, value: u64| header.long(at).store(value, Ordering::Relaxed);
        if self.maps.state().load(Ordering::Relaxed) != state {
            fence(Ordering::Release);
            // One store, by which lookups go over to the new words and to how they are read.
            self.maps.state().store(state, Ordering::Release);
            long(at::GENERATION, header.long(at::GENERATION).load(Ordering::Relaxed) + 1);
        }
        self.is_left |= self.flips;
        self.flips = 0;
        long(at::BYTES, self.used.iter().sum::<usize>() as u64);
        header.long(at::VERSION).store(version, Ordering::Release);
    }
}

impl Ear {
    fn of(&mut self, family: Family) -> Option<&mut FamilyEar> {
        let ear = match family {
            Family::Ipv4 => self.v4.as_mut(),
            Family::Ipv6 => self.v6.as_mut(),
        };
        ear.filter(|ear| !ear.is_foreign)
    }
}

impl Listener for Ear {
    fn structure(&mut self, structure: &Structure<'_>) {
        let Some(ear) = self.of(structure.family) else { return };
        let engine = ear.maps.options.engine;
        let number = structure.shape.iter().find(|(name, _)| *name == engine.number_name());
        match number {
            Some(&(_, number)) if structure.engine == engine.name() && number < 64 => ear.number = number,
            _ => {
                ear.is_foreign = true;
                let table = structure.engine.to_owned();
                self.shared.fail(BpfError::Engine { maps: engine.name(), table });
            }
        }
    }

    fn stored(&mut self, stored: &Stored<'_>) {
        let order = self.order;
        let shared = Arc::clone(&self.shared);
        let Some(ear) = self.of(stored.family) else { return };
        if stored.is_whole {
            let bit = 1 << stored.array;
            if ear.is_left & bit != 0 {
                // Lookups that began before the last publication of a whole array may be in the half that is written now.
                if let Err(error) = shared.waiting.wait() {
                    shared.fail(error);
                    ear.is_foreign = true;
                    return;
                }
                ear.is_left = 0;
            }
            if ear.flips & bit == 0 {
                ear.flips |= bit;
                ear.halves ^= bit;
            }
        }
        let Some((array, first)) = ear.place(stored) else {
            ear.is_foreign = true;
            let said = format!("array {} of {}", stored.array, ear.maps.options.engine.name());
            shared.fail(BpfError::system(said, io::ErrorKind::StorageFull.into()));
            return;
        };
        let bytes = stored.words.word_bytes();
        let words = stored.words.iter().zip((first..).step_by(bytes));
        if order == Order::Reversed && !stored.is_whole {
            let family = stored.family;
            self.held.extend(words.map(|(word, byte)| (family, array, byte, word)));
            return;
        }
        for (word, byte) in words {
            if !stored.is_whole {
                order.halt(&shared);
            }
            ear.store(array, byte, word);
        }
    }

    fn published(&mut self, version: u64) {
        while let Some((family, array, byte, word)) = self.held.pop() {
            if let Some(ear) = self.of(family) {
                ear.store(array, byte, word);
            }
        }
        for ear in [&mut self.v4, &mut self.v6].into_iter().flatten().filter(|ear| !ear.is_foreign) {
            self.order.halt(&self.shared);
            ear.published(version);
        }
        // The thread of turns looks at this within milliseconds: to wake it here would be a system call for each change.
        self.shared.published.fetch_add(1, Ordering::Release);
    }
}
