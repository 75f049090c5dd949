//! A copy of a live table on a device.
//!
//! A [`Listener`] keeps an image of the table's structure in the host's memory, and marks the units of 64
//! words that have changed. The device gets those units alone, or the whole image if more than half has changed or an
//! array has outgrown its room. Only published words are sent, and only while no lookup is under way, so that one
//! version of the table answers every buffer of addresses; the buffer's batch names that version.

use core::ops::Range;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fibula::live::{Listener, Stored, Structure, Table, TableKey};
use fibula::net::Family;

use crate::device::Loaded;
use crate::engine::{self, Engine};
use crate::error::GpuError;
use crate::image::{Image, narrow, narrow_len};

/// Words of a unit that is sent whole.
const UNIT: usize = 64;

/// Words that have been stored and are not published yet.
struct Notification {
    array: usize,
    first: usize,
    /// Where they are among all that have been.
    words: Range<usize>,
}

/// The copy in the host's memory.
struct Mirror {
    family: Family,
    /// The structure that all of it belongs to, if it is another one than before.
    structure: Option<(&'static str, Vec<(&'static str, u32)>)>,
    told: Vec<Notification>,
    words: Vec<u32>,
    image: Option<Image>,
    /// The structure, if no device looks up in it.
    unknown: Option<String>,
    /// By unit of the image, whether it has changed since it was sent.
    changed: Vec<bool>,
    /// Whether all of it has to be sent.
    is_new: bool,
    version: u64,
}

/// The listener's end.
struct Ear(Arc<Mutex<Mirror>>);

impl Ear {
    fn with(&self, family: Option<Family>, with: impl FnOnce(&mut Mirror)) {
        let mut mirror = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if family.is_none_or(|family| family == mirror.family) {
            with(&mut mirror);
        }
    }
}

impl Listener for Ear {
    fn structure(&mut self, structure: &Structure<'_>) {
        let Structure { engine: name, shape, .. } = *structure;
        self.with(Some(structure.family), |mirror| {
            mirror.told.clear();
            mirror.words.clear();
            mirror.structure = Some((name, shape.to_vec()));
        });
    }

    fn stored(&mut self, stored: &Stored<'_>) {
        self.with(Some(stored.family), |mirror| {
            let first = stored.first * stored.words.word_bytes() / size_of::<u32>();
            let start = mirror.words.len();
            mirror.words.resize(start + narrow_len(stored.words), 0);
            narrow(stored.words, &mut mirror.words[start..]);
            mirror.told.push(Notification {
                array: stored.array.into(),
                first,
                words: start..mirror.words.len(),
            });
        });
    }

    fn published(&mut self, version: u64) {
        self.with(None, |mirror| {
            mirror.version = version;
            mirror.publish();
        });
    }
}

impl Mirror {
    /// Takes over the changes that the table has told of.
    fn publish(&mut self) {
        if let Some((name, shape)) = self.structure.take() {
            self.restart(name, &shape);
        }
        self.make_room();
        let Self { told, words, image, changed, .. } = self;
        for Notification { array, first, words: of_words } in told.drain(..) {
            let Some(image) = image else { break };
            let Some(place) = image.place(array) else { continue };
            let at = place.start + first..place.start + first + of_words.len();
            image.words_mut()[at.clone()].copy_from_slice(&words[of_words]);
            changed[at.start / UNIT..at.end.div_ceil(UNIT)].fill(true);
        }
        words.clear();
    }

    /// Begins with another structure. All its arrays follow.
    fn restart(&mut self, name: &str, shape: &[(&'static str, u32)]) {
        let numbers = |engine: &Engine| -> Vec<u32> {
            let number =
                |name: &&str| shape.iter().find(|(found, _)| found == name).map_or(0, |&(_, number)| number);
            engine.numbers.iter().map(number).collect()
        };
        let engine = engine::of_arrays(name);
        self.unknown = engine.is_none().then(|| name.to_owned());
        self.image =
            engine.and_then(|engine| with_rooms(engine, &numbers(engine), &vec![0; engine.arrays.len()]));
        self.changed = vec![false; self.image.as_ref().map_or(0, |image| image.words().len().div_ceil(UNIT))];
        self.is_new = true;
    }

    /// Makes each array as large as the stores that wait for it need.
    fn make_room(&mut self) {
        let Some(image) = &self.image else { return };
        let engine = image.engine();
        let room = |array| image.place(array).map_or(0, |place| place.len());
        if self.told.iter().all(|told| told.first + told.words.len() <= room(told.array)) {
            return;
        }
        let mut rooms: Vec<usize> = (0..engine.arrays.len()).map(room).collect();
        for Notification { array, first, words } in &self.told {
            let needed = first + words.len();
            if let Some(room) = rooms.get_mut(*array).filter(|room| needed > **room) {
                // Some more, so that growth by little does not come here again soon.
                *room = needed + needed / 4;
            }
        }
        let larger = with_rooms(engine, image.numbers(engine.numbers.len()), &rooms).map(|mut larger| {
            for array in 0..engine.arrays.len() {
                if let (Some(from), Some(to)) = (image.place(array), larger.place(array)) {
                    larger.words_mut()[to.start..][..from.len()].copy_from_slice(&image.words()[from]);
                }
            }
            larger
        });
        if larger.is_none() {
            self.unknown = Some(format!("{} of more than 2^32 words", engine.name));
        }
        self.changed = vec![false; larger.as_ref().map_or(0, |image| image.words().len().div_ceil(UNIT))];
        (self.image, self.is_new) = (larger, true);
    }

    /// Returns the words that have to be sent, each run with its first place; none if nothing has changed.
    fn take(&mut self) -> Result<Vec<(usize, Vec<u32>)>, GpuError> {
        let words = self.image()?.words();
        let count = self.changed.iter().filter(|&&changed| changed).count();
        let sent = if self.is_new || 2 * count > self.changed.len() {
            vec![(0, words.to_vec())]
        } else {
            runs(&self.changed)
                .map(|(first, end)| {
                    (first * UNIT, words[first * UNIT..(end * UNIT).min(words.len())].to_vec())
                })
                .collect()
        };
        self.sent();
        Ok(sent)
    }

    /// Returns the image, or says why there is none.
    fn image(&self) -> Result<&Image, GpuError> {
        let unknown = || self.unknown.as_deref().unwrap_or("a structure that does not change in place");
        self.image.as_ref().ok_or_else(|| engine::unknown(unknown()))
    }

    /// Notes that the device has all of it.
    fn sent(&mut self) {
        self.is_new = false;
        self.changed.fill(false);
    }
}

/// Returns an image with room for arrays of so many words.
fn with_rooms(engine: &'static Engine, numbers: &[u32], rooms: &[usize]) -> Option<Image> {
    let mut image = Image::new(engine, numbers);
    for (array, &room) in rooms.iter().enumerate() {
        image.open(room).ok()?;
        image.widen(array);
    }
    Some(image)
}

/// Returns the runs of those that are set: the first of each, and the one after its last.
fn runs(set: &[bool]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut at = 0;
    core::iter::from_fn(move || {
        let first = at + set[at..].iter().position(|&set| set)?;
        let end = first + set[first..].iter().position(|&set| !set).unwrap_or(set.len() - first);
        at = end;
        Some((first, end))
    })
}

/// The device's end.
pub(crate) struct Follower {
    mirror: Arc<Mutex<Mirror>>,
    /// The version that the device has.
    version: u64,
    last: Instant,
}

impl Follower {
    /// Listens to a table.
    pub(crate) fn of<K: TableKey>(table: &Table) -> Result<Self, GpuError> {
        let mirror = Arc::new(Mutex::new(Mirror {
            family: K::FAMILY,
            structure: None,
            told: Vec::new(),
            words: Vec::new(),
            image: None,
            unknown: None,
            changed: Vec::new(),
            is_new: true,
            version: 0,
        }));
        let listening = table.listen(Ear(Arc::clone(&mirror)));
        listening
            .map_err(|error| GpuError::Failed { what: "listen to the table", said: error.to_string() })?;
        Ok(Self { mirror, version: 0, last: Instant::now() })
    }

    /// Returns the image as it is now, to be uploaded as a whole.
    pub(crate) fn whole(&mut self) -> Result<Image, GpuError> {
        let mut mirror = self.mirror.lock().unwrap_or_else(PoisonError::into_inner);
        let image = mirror.image()?.clone();
        mirror.sent();
        (self.version, self.last) = (mirror.version, Instant::now());
        Ok(image)
    }

    /// Returns the version that the device has.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns whether the copy is as old as it may be.
    pub(crate) fn is_due(&self, refresh: Duration) -> bool {
        self.last.elapsed() >= refresh
    }

    /// Sends the words that have changed. Returns the number of bytes.
    ///
    /// # Errors
    /// [`GpuError::Room`] when the table has outgrown its place on the device, and has to be uploaded to another.
    pub(crate) fn refresh(&mut self, loaded: &dyn Loaded) -> Result<u64, GpuError> {
        let (sent, version) = {
            let mut mirror = self.mirror.lock().unwrap_or_else(PoisonError::into_inner);
            (mirror.take()?, mirror.version)
        };
        let mut bytes = 0;
        for (first, words) in &sent {
            loaded.store(*first, words)?;
            bytes += 4 * words.len() as u64;
        }
        (self.version, self.last) = (version, Instant::now());
        Ok(bytes)
    }
}
