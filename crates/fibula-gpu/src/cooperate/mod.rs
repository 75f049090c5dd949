//! Processor and coprocessor look up one stream of addresses together (section 4.4 of the Bloomfwd paper).
//!
//! The addresses are cut into chunks. The device takes chunks from the front, a buffer at a time, and the processor's threads
//! take them from the back, until the two ends meet. Each answer is written at the index of its address, so answers stay in order
//! whichever side found them.
//!
//! With one buffer, sending, lookups and fetching follow one another (the paper's `sync`). With two or more, one buffer is
//! filled and sent while another is looked up (`async`, double buffering). The calling thread manages the device.
//!
//! How much the device takes at once follows from the rates of both, which are measured while they work: first with small
//! buffers (the profiling phase), then with as much as its share of the addresses left, so that both end at about the same time.
//! [`Share::Fixed`] divides as the caller says, for measurements.
//!
//! When the device fails, the processor answers the addresses that are left or were under way, and the report says so.

mod stream;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use fibula::fib::Fib;
use fibula::live::{Table, TableKey};
use fibula::net::{Key, NextHop};

use crate::device::{Device, Lane, Loaded};
use crate::error::GpuError;
use crate::follow::Follower;
use crate::image::{Image, Images, put_keys};

use stream::{Claim, Stream};

/// How addresses are divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Share {
    /// By rates that are measured on the way.
    Measured,
    /// This share to the device, from 0 to 1.
    Fixed(f64),
}

/// How processor and device work together.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Addresses of a buffer. The paper chooses 2 Mi: nearly the best rate, at half the delay of 4 Mi.
    pub buffer_keys: usize,
    /// Buffers: 1 for synchronous work, 2 for double buffering.
    pub buffers: usize,
    /// Threads of the processor that look up, beside the one that manages the device. 0 leaves all to the device.
    pub threads: usize,
    /// How addresses are divided.
    pub share: Share,
    /// Addresses that a thread takes at once, no more than a buffer has.
    pub chunk_keys: usize,
    /// How far the copy of a live table may lag behind, if one is followed. A refresh waits until the lookups in progress are
    /// done.
    pub refresh: Duration,
}

impl Default for Options {
    /// Returns double buffering with one core left to the manager.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self {
            buffer_keys: 1 << 21,
            buffers: 2,
            threads: Self::threads_of(cores, true),
            share: Share::Measured,
            chunk_keys: 1 << 14,
            refresh: Duration::from_millis(10),
        }
    }
}

impl Options {
    /// Returns how many threads look up on so many cores. With `leaves_one`, a core is left to the manager of the device, as in the
    /// paper.
    #[must_use]
    pub fn threads_of(cores: usize, leaves_one: bool) -> usize {
        if leaves_one { cores.saturating_sub(1) } else { cores.max(1) }
    }
}

/// A structure that looks addresses up on the processor.
pub trait Processor<K: Key>: Sync {
    /// Returns the function that one thread looks up with.
    ///
    /// # Errors
    /// When it cannot look up.
    fn worker(&self) -> Result<Worker<'_, K>, GpuError>;
}

/// Looks up addresses in one thread.
pub type Worker<'a, K> = Box<dyn FnMut(&[K], &mut [Option<NextHop>]) + 'a>;

/// Addresses of a call of a structure.
const BATCH: usize = 256;

impl<K: Key> Processor<K> for dyn Fib<K> + '_ {
    fn worker(&self) -> Result<Worker<'_, K>, GpuError> {
        Ok(Box::new(|keys, results| {
            for (keys, results) in keys.chunks(BATCH).zip(results.chunks_mut(BATCH)) {
                self.lookup_batch(keys, results);
            }
        }))
    }
}

/// A worker has a reader, and pins the table once a chunk.
impl<K: TableKey> Processor<K> for Table {
    fn worker(&self) -> Result<Worker<'_, K>, GpuError> {
        let failed = |error| GpuError::Failed { what: "read the table", said: format!("{error}") };
        let mut reader = self.reader().map_err(failed)?;
        Ok(Box::new(move |keys, results| {
            let pin = reader.pin();
            for (keys, results) in keys.chunks(BATCH).zip(results.chunks_mut(BATCH)) {
                pin.lookup_batch(keys, results);
            }
        }))
    }
}

/// Counts of a call, by device and processor.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Report {
    /// Addresses that the device looked up.
    pub device_keys: usize,
    /// Addresses that the processor looked up, those of a failed device included.
    pub processor_keys: usize,
    /// Of these, how many the device had begun with.
    pub redone_keys: usize,
    /// The share of the device by the rates of both after the call; `None` while one of them is not known.
    pub share: Option<f64>,
    /// The buffers that the device answered, in the order of their addresses.
    pub batches: Vec<Batch>,
    /// Times that the copy of a live table was refreshed, and the bytes sent for that.
    pub refreshes: usize,
    /// See [`refreshes`](Self::refreshes).
    pub refresh_bytes: u64,
    /// Why the device looked up no further.
    pub failure: Option<GpuError>,
}

/// A buffer that the device answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// The number of its first address.
    pub first: usize,
    /// Its addresses.
    pub keys: usize,
    /// The version of the live table by which they were answered; 0 for a structure that does not change.
    pub version: u64,
}

/// Addresses a second.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    device: f64,
    processor: f64,
}

impl Rates {
    /// Returns the device's share of work that both do.
    fn share(self) -> Option<f64> {
        let known = self.device > 0.0 && self.processor > 0.0;
        known.then(|| self.device / (self.device + self.processor))
    }
}

/// A table on a device, and how it is used together with the processor.
pub struct Cooperative<K> {
    options: Options,
    lanes: Vec<Box<dyn Lane>>,
    loaded: Arc<dyn Loaded>,
    rates: Rates,
    /// The follower of a live table, and the device that holds the copy.
    follower: Option<(Follower, Arc<dyn Device>)>,
    failure: Option<GpuError>,
    keys: core::marker::PhantomData<fn(K)>,
}

impl<K> core::fmt::Debug for Cooperative<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { options, rates, failure, .. } = self;
        f.debug_struct("Cooperative")
            .field("options", options)
            .field("rates", rates)
            .field("failure", failure)
            .finish()
    }
}

impl<K: Key> Cooperative<K> {
    /// Makes buffers for the one table that was [loaded](Device::load).
    ///
    /// # Errors
    /// When the device or the system has too little memory, or the device fails.
    pub fn new(loaded: Arc<dyn Loaded>, options: Options) -> Result<Self, GpuError> {
        let buffer_keys = options.buffer_keys.max(1);
        // A buffer has room for one chunk at least.
        let chunk_keys = options.chunk_keys.clamp(1, buffer_keys);
        let options = Options { buffer_keys, chunk_keys, ..options };
        Ok(Self {
            lanes: lanes(&*loaded, &options)?,
            loaded,
            options,
            rates: Rates::default(),
            follower: None,
            failure: None,
            keys: core::marker::PhantomData,
        })
    }

    /// Returns why the device is no longer used.
    #[must_use]
    pub fn failure(&self) -> Option<&GpuError> {
        self.failure.as_ref()
    }

    /// Divides addresses in another way from now on.
    pub fn set_share(&mut self, share: Share) {
        self.options.share = share;
    }

    /// Looks up addresses, the calling thread managing the device. The processor looks up in `processor`, which must have the
    /// routes that the device has.
    ///
    /// # Errors
    /// When the lengths differ, or the processor cannot look up. A device that fails is not an error: the report says so, and all
    /// answers are there.
    pub fn lookup<P: Processor<K> + ?Sized>(
        &mut self,
        processor: &P,
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) -> Result<Report, GpuError> {
        if keys.len() != results.len() {
            return Err(GpuError::Room { keys: keys.len(), room: results.len() });
        }
        // Before anything is claimed: whatever the device does, this thread can answer.
        let mut own = processor.worker()?;
        let stream = Mutex::new(Stream::new(keys, results, self.options.chunk_keys));
        if let Share::Fixed(share) = self.options.share {
            lock(&stream).divide(share.clamp(0.0, 1.0));
        }
        if self.failure.is_some() {
            lock(&stream).close_front();
        }
        let done = AtomicUsize::new(0);
        let begin = Instant::now();
        let mut report = Report { failure: self.failure.clone(), ..Report::default() };
        thread::scope(|scope| {
            for _ in 0..self.options.threads {
                let (stream, done) = (&stream, &done);
                // A thread that cannot be, or cannot look up, leaves its work to the others.
                let _ = thread::Builder::new().spawn_scoped(scope, move || {
                    if let Ok(mut worker) = processor.worker() {
                        work(stream, &mut worker, done);
                    }
                });
            }
            let mut left = self.manage(&stream, &done, begin, &mut report);
            for (keys, results) in left.iter_mut().flat_map(|claim| &mut claim.chunks) {
                own(keys, results);
                report.redone_keys += keys.len();
            }
            done.fetch_add(report.redone_keys, Ordering::Relaxed);
            // Nothing of the back is left to the device any more.
            lock(&stream).close_front();
            work(&stream, &mut own, &done);
        });
        report.processor_keys = done.load(Ordering::Relaxed);
        report.batches.sort_unstable_by_key(|batch| batch.first);
        report.share = self.rates.share();
        Ok(report)
    }

    /// Feeds the device until nothing is left for it. Returns the addresses that it began with and did not answer.
    fn manage<'a>(
        &mut self,
        stream: &Mutex<Stream<'a, K>>,
        done: &AtomicUsize,
        begin: Instant,
        report: &mut Report,
    ) -> Vec<Claim<'a, K>> {
        let mut flight: VecDeque<Flight<'a, K>> = VecDeque::new();
        let mut free: Vec<usize> = (0..self.lanes.len()).collect();
        let failed = loop {
            match self.feed(stream, &mut flight, &mut free, report) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => break error,
            }
            let Some(Flight { lane, claim, .. }) = flight.front_mut() else { return Vec::new() };
            match self.lanes[*lane].wait() {
                Ok(words) => deliver(words, claim),
                Err(error) => break error,
            }
            if let Some(Flight { lane, claim, version }) = flight.pop_front() {
                free.push(lane);
                report.device_keys += claim.keys;
                report.batches.push(Batch { first: claim.first, keys: claim.keys, version });
            }
            self.learn(report.device_keys, done.load(Ordering::Relaxed), begin.elapsed());
        };
        self.failure = Some(failed.clone());
        report.failure = Some(failed);
        lock(stream).close_front();
        flight.into_iter().map(|flight| flight.claim).collect()
    }

    /// Fills and starts a buffer. Returns whether there may be another one to start now. A claim that cannot be sent is among those
    /// under way.
    fn feed<'a>(
        &mut self,
        stream: &Mutex<Stream<'a, K>>,
        flight: &mut VecDeque<Flight<'a, K>>,
        free: &mut Vec<usize>,
        report: &mut Report,
    ) -> Result<bool, GpuError> {
        if self.failure.is_some() {
            return Ok(false);
        }
        let Some(&lane) = free.last() else { return Ok(false) };
        if self.follower.as_ref().is_some_and(|(follower, _)| follower.is_due(self.options.refresh)) {
            // The table may only change while nothing reads it.
            if !flight.is_empty() {
                return Ok(false);
            }
            let bytes = self.refresh()?;
            report.refreshes += usize::from(bytes > 0);
            report.refresh_bytes += bytes;
        }
        let version = self.follower.as_ref().map_or(0, |(follower, _)| follower.version());
        let claim = {
            let mut stream = lock(stream);
            let keys = self.worth(stream.left());
            stream.claim_front(keys)
        };
        let Some(claim) = claim else { return Ok(false) };
        free.pop();
        let sent = fill(&mut *self.lanes[lane], &claim, self.loaded.key_words());
        flight.push_back(Flight { lane, claim, version });
        sent.map(|()| true)
    }

    /// Returns how many of the addresses that are left the device is to take at once: at most a buffer.
    fn worth(&self, left: usize) -> usize {
        let share = if self.options.threads == 0 { Some(1.0) } else { self.rates.share() };
        let keys = match (self.options.share, share) {
            (Share::Fixed(_), _) => left,
            // The profiling phase: enough to tell the rate, little enough to leave the rest to be divided.
            (Share::Measured, None) => left / PROFILED,
            (Share::Measured, Some(share)) if share < 1.0 => {
                (left as f64 * share / self.lanes.len() as f64) as usize
            }
            (Share::Measured, Some(_)) => left,
        };
        keys.min(self.options.buffer_keys)
    }

    /// Sends the device the changes of a live table. A table that has outgrown its place goes to another. Returns the bytes.
    fn refresh(&mut self) -> Result<u64, GpuError> {
        let Some((follower, device)) = &mut self.follower else { return Ok(0) };
        match follower.refresh(&*self.loaded) {
            Err(GpuError::Room { .. }) => {}
            sent => return sent,
        }
        let image = follower.whole()?;
        // Frees the buffers before memory is requested for the new table. The old table goes when the new one is there.
        self.lanes.clear();
        let bytes = 4 * image.words().len() as u64;
        self.loaded = place(&**device, image)?;
        self.lanes = lanes(&*self.loaded, &self.options)?;
        Ok(bytes)
    }

    /// Learns the rates from the work of both since the beginning of the call.
    fn learn(&mut self, device_keys: usize, processor_keys: usize, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let rate = |keys: usize, before: f64| match keys {
            0 => before,
            keys => keys as f64 / seconds,
        };
        self.rates.device = rate(device_keys, self.rates.device);
        self.rates.processor = rate(processor_keys, self.rates.processor);
    }
}

impl<K: TableKey> Cooperative<K> {
    /// Uploads the structure of a live table, and follows its changes from then on: before a buffer is filled, if the copy is
    /// older than [`Options::refresh`]. The table has no other listener then.
    ///
    /// # Errors
    /// As for [`new`](Self::new); when no device looks up in the structure, or a thread panicked in a change of the table.
    pub fn following(device: Arc<dyn Device>, table: &Table, options: Options) -> Result<Self, GpuError> {
        let mut follower = Follower::of::<K>(table)?;
        let image = follower.whole()?;
        let mut this = Self::new(place(&*device, image)?, options)?;
        this.follower = Some((follower, device));
        Ok(this)
    }

    /// Returns the version of the table that the device has.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.follower.as_ref().map_or(0, |(follower, _)| follower.version())
    }
}

/// Addresses that are under way on the device.
struct Flight<'a, K> {
    lane: usize,
    claim: Claim<'a, K>,
    version: u64,
}

/// Returns the buffers.
fn lanes(loaded: &dyn Loaded, options: &Options) -> Result<Vec<Box<dyn Lane>>, GpuError> {
    (0..options.buffers.max(1)).map(|_| loaded.lane(options.buffer_keys)).collect()
}

/// Uploads a live table, with room to grow before all of it has to be uploaded to another place.
fn place(device: &dyn Device, image: Image) -> Result<Arc<dyn Loaded>, GpuError> {
    let room = image.words().len() / 2 + (1 << 16);
    device.load(&Images::from(image), room)
}

/// The part of the addresses left that the device takes at once while its rate is not known.
const PROFILED: usize = 16;

fn lock<'s, 'a, K>(stream: &'s Mutex<Stream<'a, K>>) -> std::sync::MutexGuard<'s, Stream<'a, K>> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks up chunks from the back until none is left.
fn work<K>(stream: &Mutex<Stream<'_, K>>, worker: &mut Worker<'_, K>, done: &AtomicUsize) {
    loop {
        let Some((keys, results)) = lock(stream).claim_back() else { return };
        worker(keys, results);
        done.fetch_add(keys.len(), Ordering::Relaxed);
    }
}

/// Writes the addresses of a claim into a buffer, and starts it.
fn fill<K: Key>(lane: &mut dyn Lane, claim: &Claim<'_, K>, key_words: usize) -> Result<(), GpuError> {
    let mut to = lane.keys()?;
    for (keys, _) in &claim.chunks {
        let (these, rest) = to.split_at_mut(keys.len() * key_words);
        put_keys(keys, key_words, these);
        to = rest;
    }
    lane.start(claim.keys, 0)
}

/// Writes answers where the addresses of a claim are.
fn deliver<K>(mut words: &[u32], claim: &mut Claim<'_, K>) {
    for (_, results) in &mut claim.chunks {
        let (these, rest) = words.split_at(results.len());
        for (result, &word) in results.iter_mut().zip(these) {
            *result = NextHop::new(word);
        }
        words = rest;
    }
}
