//! A table in maps: made, pinned, opened, looked up in from user space, compared with routes.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fibula::Table;
use fibula::fib::registry;
use fibula::live::{self, Listener, Rooms, Stored, Structure, TableError};
use fibula::net::{Dual, Family, Key, NextHop, Route};
use fibula::rib::{DualRib, Rib};

use crate::arena;
use crate::error::BpfError;
use crate::layout::{ARRAYS, Backend, Engine, LAYOUT, MAGIC, ROOM_MOST, at};
use crate::sys::{self, ARRAY, MMAPABLE, MapForm, Mapping};

/// How maps are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The engine, which says the family.
    pub engine: Engine,
    /// The room of each array, as a binary logarithm of bytes. A map takes twice its room, because new words are written next to those in
    /// use.
    /// Programs for arrays must be compiled with the same rooms.
    pub rooms: [u8; ARRAYS],
    /// The kind of map.
    pub backend: Backend,
}

impl Options {
    /// Returns the options of an engine with the rooms that `fibula_bpf.h` has unless a program says otherwise.
    #[must_use]
    pub const fn of(engine: Engine) -> Self {
        Self { engine, rooms: engine.default_rooms(), backend: Backend::Arrays }
    }

    /// Returns these options with an arena, where each array has all the room that programs reach: it takes no memory before it is
    /// written.
    #[must_use]
    pub const fn in_arena(self) -> Self {
        Self { rooms: [ROOM_MOST; ARRAYS], backend: Backend::Arena, ..self }
    }

    /// Returns these options with room for at least these words twice, and for next hops up to this one in each value.
    ///
    /// # Errors
    /// [`BpfError::Room`] if an array needs more room than programs can reach.
    pub fn with_room_for(mut self, words: &[usize; ARRAYS], greatest: u32) -> Result<Self, BpfError> {
        for (array, (&bytes, &words)) in self.engine.word_bytes().iter().zip(words).enumerate() {
            // The entries stay as many, unless values become wider.
            let times = if array == 0 && self.engine.family() == Family::Ipv4 { 1 } else { 2 };
            let needed = (words * times * bytes).next_power_of_two().trailing_zeros() as u8;
            self.rooms[array] = self.rooms[array].max(needed);
        }
        if let Some(room) = self.engine.entries_room(greatest) {
            self.rooms[0] = self.rooms[0].max(room);
        }
        self.checked()
    }

    /// Returns these options with room for at least `bytes` bytes in each array but the entries.
    ///
    /// # Errors
    /// [`BpfError::Room`] if programs cannot reach `bytes` bytes.
    pub fn with_at_least(mut self, bytes: usize) -> Result<Self, BpfError> {
        // A size beyond the powers of two of this machine is beyond programs too.
        let room = bytes.checked_next_power_of_two().map_or(u8::MAX, |bytes| bytes.trailing_zeros() as u8);
        for at in &mut self.rooms[1..self.engine.word_bytes().len()] {
            *at = room.max(*at);
        }
        self.checked()
    }

    /// Returns these options unless a room is too large.
    fn checked(self) -> Result<Self, BpfError> {
        let all = self.rooms.iter().enumerate().take(self.engine.word_bytes().len());
        match all.into_iter().find(|&(_, &room)| !(6..=ROOM_MOST).contains(&room)) {
            Some((array, &room)) => Err(BpfError::Room { array, room }),
            None => Ok(self),
        }
    }

    /// Returns the bytes of maps that the kernel takes at once. An arena takes none before it is written.
    #[must_use]
    pub fn map_bytes(&self) -> u64 {
        let rooms = match self.backend {
            Backend::Arrays => &self.rooms[..self.engine.word_bytes().len()],
            Backend::Arena => &[],
        };
        rooms.iter().map(|&room| 2u64 << room).sum::<u64>() + u64::from(self.header_bytes())
    }

    fn header_bytes(&self) -> u32 {
        self.engine.header_bytes(self.backend)
    }

    /// Returns the names of the maps in pins, the header first, with the bytes of a value. Of an arena, the kernel says 0.
    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        let mut sizes = vec![(HEADER, self.header_bytes())];
        match self.backend {
            Backend::Arrays => {
                let rooms = self.rooms.iter().take(self.engine.word_bytes().len());
                sizes.extend(FILES.into_iter().zip(rooms.map(|&room| 2 << room)));
            }
            Backend::Arena => sizes.push((OF_ARENA, 0)),
        }
        sizes
    }

    /// Refuses a program that was compiled for another family, engine, layout, room or kind of map: for loaders that take pinned maps without a look at
    /// their sizes, such as aya, before they load it. `name` is the name in `FIBULA_IPV4(name)` or `FIBULA_IPV6(name)`, and `maps` are the
    /// names of the object's maps with the bytes of a value.
    ///
    /// # Errors
    /// When a map has another size than one of these options, or is missing.
    pub fn refuse_other<'m>(
        &self,
        name: &str,
        maps: impl IntoIterator<Item = (&'m str, u32)>,
    ) -> Result<(), BpfError> {
        let sizes = self.map_sizes().into_iter();
        let mut wanted: BTreeMap<String, u32> =
            sizes.map(|(map, bytes)| (format!("{name}_{map}"), bytes)).collect();
        let begin = format!("{name}_");
        let ours = maps.into_iter().filter(|(map, _)| {
            let rest = map.strip_prefix(&begin);
            rest.is_some_and(|rest| rest == HEADER || rest == OF_ARENA || rest.parse::<u8>().is_ok())
        });
        for (map, bytes) in ours {
            let pinned = wanted.remove(map);
            if pinned != Some(bytes) {
                return Err(BpfError::Program { map: map.to_owned(), bytes, pinned: pinned.unwrap_or(0) });
            }
        }
        wanted.pop_first().map_or(Ok(()), |(map, pinned)| Err(BpfError::Program { map, bytes: 0, pinned }))
    }

    /// Returns the lines of C that a program of these options has before it includes `fibula_bpf.h`.
    #[must_use]
    pub fn c_header(&self) -> String {
        let (constant, family) = self.engine.c_names();
        let mut lines = String::new();
        if family == "IPV4" {
            lines += &format!("#define FIBULA_IPV4_ENGINE {constant}\n");
        }
        if self.backend == Backend::Arena {
            return lines + "#define FIBULA_ARENA\n";
        }
        for (array, room) in self.rooms.iter().enumerate().take(self.engine.word_bytes().len()) {
            lines += &format!("#define FIBULA_{family}_ROOM_{array} {room}\n");
        }
        lines
    }
}

/// How long a change waits for programs that may still read units of earlier versions.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a live table of routes with the engines of these maps, for each family that is named.
///
/// A change waits for programs longer than in other tables, up to half a minute, where [`retired_bytes`](live::Options::retired_bytes) of units
/// are replaced and a follower's grace period has not ended. It took up to a second in which programs filled a processor.
///
/// # Errors
/// As for [`Table::from_routes`].
pub fn live_table(routes: DualRib, engines: &[Engine]) -> Result<Table, TableError> {
    let mut options = live::Options { patience: PATIENCE, ..live::Options::default() };
    for engine in engines {
        if engine.family() == Family::Ipv4
            && let Ok(found) = registry::find(engine.name())
        {
            options.ipv4 = found;
        }
    }
    Table::from_routes(routes, options)
}

/// The maps of a table. A clone is another handle to the same maps.
#[derive(Debug, Clone)]
pub struct BpfTable {
    pub(crate) maps: Arc<Maps>,
}

#[derive(Debug)]
pub(crate) struct Maps {
    pub(crate) options: Options,
    pub(crate) header: Mapping,
    pub(crate) arrays: Vec<Mapping>,
    /// The page of an arena that has the word of the header that lookups read.
    page: Option<Mapping>,
    /// The header map, and the arrays or the arena; none in memory alone.
    descriptors: Vec<OwnedFd>,
    /// Where they are pinned, if they are.
    pub(crate) pin: std::sync::Mutex<Option<PathBuf>>,
}

impl Maps {
    /// Returns the word that lookups read. There is one, so that programs and followers never have different ones.
    pub(crate) fn state(&self) -> &AtomicU32 {
        self.page.as_ref().unwrap_or(&self.header).word(at::STATE)
    }
}

/// The words in use of some maps, and how they are read: of one moment.
pub(crate) struct Words<'a> {
    maps: &'a Maps,
    pub(crate) engine: Engine,
    pub(crate) number: u32,
    halves: u32,
}

impl Words<'_> {
    fn byte(&self, array: usize, byte: u64) -> usize {
        let room = self.maps.options.rooms[array];
        (byte & ((1 << room) - 1)) as usize + (((self.halves >> array & 1) as usize) << room)
    }

    pub(crate) fn word(&self, array: usize, index: u32) -> u32 {
        self.maps.arrays[array].load(self.byte(array, u64::from(index) * 4))
    }

    pub(crate) fn long(&self, array: usize, index: u64) -> u64 {
        self.maps.arrays[array].long(self.byte(array, index.wrapping_mul(8))).load(Ordering::Acquire)
    }
}

/// The content of a header map.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// How the maps were made.
    pub options: Options,
    /// The number by which words are read, and its name.
    pub number: (&'static str, u32),
    /// Which half of each array is in use.
    pub halves: [u8; ARRAYS],
    /// How many structures the maps have had.
    pub generation: u64,
    /// The version of the table that they follow.
    pub version: u64,
    /// Routes of the family. Counted once a second while a table is followed.
    pub routes: u64,
    /// Bytes of words in use.
    pub bytes: u64,
    /// Seconds since 1970 when a follower last showed that it lives; 0 if none has.
    pub heartbeat: u64,
    /// The process that follows, or that did last without ending properly; 0 for none.
    pub follower: u64,
    /// Whether a process follows now.
    pub is_followed: bool,
}

impl BpfTable {
    /// Makes maps, without words: lookups find no route.
    ///
    /// # Errors
    /// When the kernel refuses: see [`BpfError`].
    pub fn create(options: &Options) -> Result<Self, BpfError> {
        let options = options.checked()?;
        let engine = options.engine;
        let make = |bytes: u32, part: &str| {
            let form = MapForm {
                kind: ARRAY,
                key_bytes: 4,
                value_bytes: bytes,
                entries: 1,
                flags: MMAPABLE,
                extra: 0,
            };
            let name = format!("{}_{part}", engine.map_name());
            let made = sys::create_map(form, &name, None).or_else(|error| {
                if error.raw_os_error() != Some(libc::EPERM) {
                    return Err(error);
                }
                // Before 5.11, this is how the limit on locked memory shows too.
                sys::lift_memlock();
                sys::create_map(form, &name, None)
            });
            made.map_err(BpfError::of_array)
        };
        let mut descriptors = Vec::new();
        for (part, bytes) in options.map_sizes() {
            descriptors.push(match part {
                OF_ARENA => arena::create(engine.family(), &format!("{}_{part}", engine.map_name()))?,
                _ => make(bytes, part)?,
            });
        }
        Ok(Self::of(options, descriptors)?.begun())
    }

    /// Makes the same as [`create`](Self::create), in memory of this process alone, which needs no right and no kernel of a kind.
    /// For tests, and to try the size of a table.
    ///
    /// # Errors
    /// When memory runs out, or a room is too large.
    pub fn in_memory(options: &Options) -> Result<Self, BpfError> {
        let options = options.checked()?;
        let memory = |bytes: usize| {
            Mapping::anonymous(bytes).map_err(|error| BpfError::system("reserve memory", error))
        };
        let header = memory(options.header_bytes() as usize)?;
        let rooms = options.rooms.into_iter().take(options.engine.word_bytes().len());
        let arrays = rooms.map(|room| memory(2 << room)).collect::<Result<_, _>>()?;
        let (descriptors, pin) = Default::default();
        Ok(Self { maps: Arc::new(Maps { options, header, arrays, page: None, descriptors, pin }) }.begun())
    }

    /// Writes the words of the header map that stay.
    fn begun(self) -> Self {
        let Maps { options, header, .. } = &*self.maps;
        let engine = options.engine;
        let family = if engine.family() == Family::Ipv4 { 4 } else { 6 };
        for (at, word) in [(at::LAYOUT, LAYOUT), (at::FAMILY, family), (at::ENGINE, engine.number())] {
            header.word(at).store(word, Ordering::Relaxed);
        }
        for (array, &room) in options.rooms.iter().enumerate() {
            header.word(at::ROOMS + 4 * array).store(room.into(), Ordering::Relaxed);
        }
        header.word(at::MAGIC).store(MAGIC, Ordering::Release);
        self
    }

    /// Returns the word of the header map that lookups read, and all words of each array. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn image(&self) -> (u32, Vec<Vec<u32>>) {
        let words = |map: &Mapping| map.words().map(|word| word.load(Ordering::Relaxed)).collect();
        (self.maps.state().load(Ordering::Relaxed), self.maps.arrays.iter().map(words).collect())
    }

    /// Says that the maps have another layout. For tests.
    #[doc(hidden)]
    pub fn set_layout(&self, layout: u32) {
        self.maps.header.word(at::LAYOUT).store(layout, Ordering::Relaxed);
    }

    /// Writes words of any content, as a process with the right to can. For tests.
    #[doc(hidden)]
    pub fn scribble(&self, state: u32, mut word: impl FnMut() -> u32) {
        for (map, room) in self.maps.arrays.iter().zip(self.maps.options.rooms) {
            // An arena has room for more than a test fills.
            for half in [0, 1].map(|half| half << room) {
                let bytes = (half..half + (1 << room.min(24))).step_by(4);
                bytes.for_each(|byte| map.word(byte).store(word(), Ordering::Relaxed));
            }
        }
        self.maps.state().store(state, Ordering::Release);
    }

    fn of(options: Options, descriptors: Vec<OwnedFd>) -> Result<Self, BpfError> {
        let map = |fd: &OwnedFd, bytes: usize| {
            Mapping::of(fd.as_fd(), bytes).map_err(|error| BpfError::of_map("map a map", error))
        };
        let header = map(&descriptors[0], options.header_bytes() as usize)?;
        let sizes = descriptors[1..].iter().zip(options.rooms);
        let (arrays, page) = match options.backend {
            Backend::Arrays => (sizes.map(|(fd, room)| map(fd, 2 << room)).collect::<Result<_, _>>()?, None),
            Backend::Arena => arena::map(&descriptors[1]).map(|(arrays, page)| (arrays, Some(page)))?,
        };
        let pin = std::sync::Mutex::new(None);
        Ok(Self { maps: Arc::new(Maps { options, header, arrays, page, descriptors, pin }) })
    }

    /// Pins the maps in a new folder: `h` is the header, `0` and so on are the arrays, and `a` is the arena. It is there whole or not at all.
    ///
    /// # Errors
    /// When something is there, the path is in no file system of BPF, or the kernel refuses.
    pub fn pin(&self, folder: &Path) -> Result<(), BpfError> {
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        if !sys::is_bpffs(parent).map_err(|error| BpfError::system(parent.display().to_string(), error))? {
            return Err(BpfError::NoBpffs(folder.to_owned()));
        }
        if folder.symlink_metadata().is_ok() {
            return Err(BpfError::Exists(folder.to_owned()));
        }
        if self.maps.descriptors.is_empty() {
            let error = io::Error::from(io::ErrorKind::Unsupported);
            return Err(BpfError::system("pin a table in memory", error));
        }
        let mut name = folder.file_name().unwrap_or_default().to_owned();
        name.push(format!("_new_{}", std::process::id()));
        let coming = parent.join(name);
        let failed = |error: io::Error| BpfError::of_map(&format!("pin at {}", folder.display()), error);
        fs::create_dir(&coming).map_err(failed)?;
        let mut pinned = (|| {
            for (fd, (name, _)) in self.maps.descriptors.iter().zip(self.maps.options.map_sizes()) {
                sys::pin(fd.as_fd(), &coming.join(name))?;
            }
            Ok(())
        })();
        if pinned.is_ok() {
            pinned = fs::rename(&coming, folder);
        }
        if let Err(error) = pinned {
            for (name, _) in self.maps.options.map_sizes() {
                let _ = fs::remove_file(coming.join(name));
            }
            let _ = fs::remove_dir(&coming);
            return Err(failed(error));
        }
        *self.lock() = Some(folder.to_owned());
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<PathBuf>> {
        self.maps.pin.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Opens pinned maps.
    ///
    /// # Errors
    /// When there are none, or they are of something else or of another layout.
    pub fn open(folder: &Path) -> Result<Self, BpfError> {
        let get = |name: &str| {
            let path = folder.join(name);
            sys::open_pin(&path).map_err(|error| match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) if path.exists() => BpfError::Permission,
                _ => BpfError::foreign(&path, error.to_string()),
            })
        };
        let form = |fd: &OwnedFd, name: &str| {
            let (_, form) =
                sys::map_form(fd.as_fd()).map_err(|error| BpfError::of_map("read a map's form", error))?;
            let MapForm { kind, key_bytes, entries, flags, .. } = form;
            if (kind, key_bytes, entries, flags & MMAPABLE) == (ARRAY, 4, 1, MMAPABLE) {
                return Ok(form);
            }
            Err(BpfError::foreign(&folder.join(name), "not an array map of one mapped entry"))
        };
        let header = get(HEADER)?;
        let bytes = form(&header, HEADER)?.value_bytes;
        if bytes < 256 {
            return Err(BpfError::foreign(folder, "its header map is too small"));
        }
        let mapping = Mapping::of(header.as_fd(), bytes as usize)
            .map_err(|error| BpfError::of_map("map the header", error))?;
        let word = |at| mapping.load(at);
        if word(at::MAGIC) != MAGIC {
            return Err(BpfError::foreign(folder, "its header map has another first word"));
        }
        if word(at::LAYOUT) != LAYOUT {
            return Err(BpfError::Layout { path: folder.to_owned(), found: word(at::LAYOUT) });
        }
        let engine = Engine::of_number(word(at::ENGINE));
        let engine = engine.and_then(|engine| {
            let mut all = [Backend::Arrays, Backend::Arena].into_iter();
            all.find(|&backend| engine.header_bytes(backend) == bytes).map(|backend| (engine, backend))
        });
        let (engine, backend) =
            engine.ok_or_else(|| BpfError::foreign(folder, "an engine that this version lacks"))?;
        let mut rooms = [0; ARRAYS];
        let mut descriptors = vec![header];
        for array in 0..engine.word_bytes().len() {
            rooms[array] = word(at::ROOMS + 4 * array).min(255) as u8;
            if backend == Backend::Arena {
                continue;
            }
            let fd = get(FILES[array])?;
            if u64::from(form(&fd, FILES[array])?.value_bytes) != 2u64 << rooms[array].min(40) {
                return Err(BpfError::foreign(
                    folder,
                    format!("array {array} has another size than its header says"),
                ));
            }
            descriptors.push(fd);
        }
        let mut options = Options { engine, rooms, backend };
        if backend == Backend::Arena {
            let fd = get(OF_ARENA)?;
            arena::refuse_other(&fd, &folder.join(OF_ARENA))?;
            descriptors.push(fd);
            options = options.in_arena();
        }
        let table = Self::of(options.checked()?, descriptors)?;
        *table.lock() = Some(folder.to_owned());
        Ok(table)
    }

    /// Returns how the maps were made.
    #[must_use]
    pub fn options(&self) -> Options {
        self.maps.options
    }

    /// Returns the maps: the header map, then the arrays or the arena.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.maps.descriptors.iter().map(OwnedFd::as_fd)
    }

    /// Returns the content of the header map.
    #[must_use]
    pub fn state(&self) -> State {
        let Maps { options, header, .. } = &*self.maps;
        let state = self.maps.state().load(Ordering::Acquire);
        let long = |at| header.long(at).load(Ordering::Acquire);
        let folder = self.lock().clone();
        // Shared, so that two processes that ask do not take one another for a follower.
        let is_locked = |folder: &Path| File::open(folder).is_ok_and(|file| file.try_lock_shared().is_err());
        State {
            options: *options,
            number: (options.engine.number_name(), state >> 8),
            halves: core::array::from_fn(|array| (state >> array & 1) as u8),
            generation: long(at::GENERATION),
            version: long(at::VERSION),
            routes: long(at::ROUTES),
            bytes: long(at::BYTES),
            heartbeat: long(at::HEARTBEAT),
            follower: long(at::FOLLOWER),
            is_followed: folder.as_deref().is_some_and(is_locked),
        }
    }

    pub(crate) fn words(&self) -> Words<'_> {
        let state = self.maps.state().load(Ordering::Acquire);
        Words { maps: &self.maps, engine: self.maps.options.engine, number: state >> 8, halves: state & 0xff }
    }

    /// Looks an address up in the maps, as programs do. Returns 0 for no route.
    ///
    /// # Errors
    /// The family of the maps, when the address is of the other one.
    pub fn get(&self, address: IpAddr) -> Result<u32, Family> {
        match (address, self.maps.options.engine.family()) {
            (IpAddr::V4(address), Family::Ipv4) => Ok(self.words().lookup_v4(address.into())),
            (IpAddr::V6(address), Family::Ipv6) => Ok(self.words().lookup_v6(address.into())),
            (_, family) => Err(family),
        }
    }

    /// Compares the maps with routes, at both ends of each prefix and next to them. Returns the number of addresses, and the first
    /// that differs with the answers of the maps and of the routes.
    #[must_use]
    pub fn check(&self, routes: &DualRib) -> (usize, Option<(IpAddr, u32, u32)>) {
        match self.maps.options.engine.family() {
            Family::Ipv4 => self.compare(&routes.v4),
            Family::Ipv6 => self.compare(&routes.v6),
        }
    }

    fn compare<K: Key>(&self, rib: &Rib<K>) -> (usize, Option<(IpAddr, u32, u32)>) {
        let mut count = 0;
        let ends = [K::from_bits(0), K::from_bits(u128::MAX >> (128 - u32::from(K::BITS)))];
        let of_route = |route: Route<K>| {
            let (first, last) = (route.prefix.addr().to_bits(), route.prefix.last().to_bits());
            let all = u128::MAX >> (128 - u32::from(K::BITS));
            [first, last, first.wrapping_sub(1) & all, last.wrapping_add(1) & all].map(K::from_bits)
        };
        for key in ends.into_iter().chain(rib.iter().flat_map(of_route)) {
            let bits = key.to_bits();
            let address: IpAddr =
                if K::BITS == 32 { (bits as u32).to_be_bytes().into() } else { bits.to_be_bytes().into() };
            let found = self.get(address).unwrap_or(0);
            let right = rib.lookup_prefix(key).map_or(0, |route| NextHop::id(route.next_hop));
            count += 1;
            if found != right {
                return (count, Some((address, found, right)));
            }
        }
        (count, None)
    }
}

/// Names of pins: the header, the arrays, the arena.
const HEADER: &str = "h";
const FILES: [&str; ARRAYS] = ["0", "1", "2", "3"];
const OF_ARENA: &str = "a";

/// Removes a pinned table. Programs that have the maps keep them, with the words of this moment.
///
/// # Errors
/// When the path has no table of Fibula, even of another layout, or a process follows a table there.
pub fn unload(folder: &Path) -> Result<(), BpfError> {
    match BpfTable::open(folder) {
        Ok(table) => {
            let state = table.state();
            if state.is_followed {
                return Err(BpfError::Busy { path: folder.to_owned(), process: state.follower });
            }
        }
        // It cannot be read, but it is one.
        Err(BpfError::Layout { .. }) => {}
        Err(other) => return Err(other),
    }
    let failed = |error| BpfError::system(format!("remove {}", folder.display()), error);
    for name in FILES.into_iter().chain([HEADER, OF_ARENA]) {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    fs::remove_dir(folder).map_err(failed)
}

/// Counts the words of a table's arrays.
struct Counting(Arc<std::sync::Mutex<Dual<[usize; ARRAYS]>>>);

impl Listener for Counting {
    fn structure(&mut self, _: &Structure<'_>) {}

    fn stored(&mut self, stored: &Stored<'_>) {
        let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let words = if stored.family == Family::Ipv4 { &mut all.v4 } else { &mut all.v6 };
        if let Some(words) = words.get_mut(usize::from(stored.array)) {
            *words = (*words).max(stored.first + stored.words.len());
        }
    }
}

impl Options {
    /// Returns options for an engine with the default rooms, or more where a table takes more than half of them. The table loses
    /// its listener.
    ///
    /// # Errors
    /// When a thread panicked in a change of the table, and as for [`with_room_for`](Self::with_room_for).
    pub fn fitting(engine: Engine, table: &Table, greatest: u32) -> Result<Self, BpfError> {
        let counts = Arc::new(std::sync::Mutex::new(Dual::default()));
        table.listen(Counting(Arc::clone(&counts)))?;
        table.stop_listening()?;
        let counts = *counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let words = if engine.family() == Family::Ipv4 { counts.v4 } else { counts.v6 };
        Self::of(engine).with_room_for(&words, greatest)
    }

    /// Returns the words that a table may have in each array.
    pub(crate) fn rooms_in_words(&self) -> Rooms {
        let mut rooms = Rooms::default();
        let all = rooms.0.iter_mut().zip(self.rooms).zip(self.engine.word_bytes());
        all.for_each(|((words, room), bytes)| *words = (1 << room) / bytes);
        rooms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_for_other_maps_are_refused_by_the_sizes_of_theirs() {
        let options = Options::of(Engine::DirBtree);
        let own = [("v6_h", 1072), ("v6_0", 2 << 21), ("v6_1", 2 << 22), ("v6_2", 2 << 21)];
        let refused = |maps: &[(&str, u32)]| match options.refuse_other("v6", maps.iter().copied()) {
            Ok(()) => None,
            Err(BpfError::Program { map, bytes, pinned }) => Some((map, bytes, pinned)),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(refused(&own), None);
        // Other maps of the object are its own affair, whatever their names begin with.
        assert_eq!(refused(&[&own[..], &[("v6_counts", 8), ("packets", 8), ("v60_0", 4)]].concat()), None);
        for (at, bytes, pinned) in [(0, 1040, 1072), (1, 2 << 20, 2 << 21), (2, 2 << 23, 2 << 22)] {
            let mut other = own;
            other[at].1 = bytes;
            assert_eq!(refused(&other), Some((own[at].0.to_owned(), bytes, pinned)));
        }
        assert_eq!(refused(&[&own[..], &[("v6_3", 8)]].concat()), Some(("v6_3".to_owned(), 8, 0)));
        assert_eq!(refused(&own[..3]), Some(("v6_2".to_owned(), 0, 2 << 21)));
        let error = options.refuse_other("v6", []).unwrap_err().to_string();
        assert!(error.contains("v6_0 has 0 bytes in it, and 4194304 where it is pinned"), "{error}");
    }
}
