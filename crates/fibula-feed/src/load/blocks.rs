//! Blocks of MRT records, decoded by several threads where they are allowed.
//!
//! One thread reads, decompresses and finds the records; others decode them; one consumes the events in order. The
//! events of a block come in batches. The number of blocks and batches in flight is bounded, and so is their memory.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use fibula::net::Family;

use super::choice::{PeerCounts, Wanted, slot};
use super::framer::{Block, Framer};
use super::live::Change;
use crate::event::{Action, Event, Path, Peer};
use crate::filter::Filter;
use crate::mrt::{self, Fault, FaultKind, Header, Mention, PeerIndexTable, Record, Sink, Skipped};
use crate::value::{Facts, Value};

/// Some of the events of a block, in order.
#[derive(Default)]
pub(super) struct Batch {
    /// Where the block begins.
    pub(super) offset: u64,
    pub(super) events: Vec<Event>,
    pub(super) faults: Vec<Fault>,
    pub(super) skipped: BTreeMap<Skipped, u64>,
    /// The changes made by updates, if the routes of all peers are counted.
    pub(super) changes: Vec<(Peer, Change)>,
    /// Counts for the peers that occur in it.
    pub(super) counts: Vec<PeerCounts>,
    /// The list of peers, if the block begins with one.
    pub(super) listed: Option<Arc<PeerIndexTable>>,
    /// Number of records, routes and peers examined.
    pub(super) steps: u64,
}

/// Most events, faults or peers of a batch.
const BATCH: usize = 4096;
/// Most bytes of path attributes that the events of a batch keep, as they were encoded.
const BATCH_ATTRIBUTE_BYTES: usize = 256 << 10;

/// Decodes blocks. The fields choose the events that are kept.
pub(super) struct BlockDecoder<'a> {
    pub(super) wanted: &'a Wanted,
    /// Keep this family only.
    pub(super) family: Option<Family>,
    /// Whether to report all changes, to count the routes of all peers.
    pub(super) counting: bool,
    /// Whether the events keep their path attributes.
    pub(super) attributes: bool,
    /// Which events to take.
    pub(super) filter: &'a Filter,
    /// The values that become the label of a route; the next hop if there are none.
    pub(super) values: &'a [Value],
}

/// Scratch space that a thread keeps between blocks, so that the cost of a block depends on its content, not on the
/// number of listed peers.
#[derive(Default)]
pub(super) struct Scratch {
    listed: Vec<ListedPeer>,
    batch: u32,
}

/// A peer of the list: where it occurred last.
#[derive(Clone, Copy, Default)]
struct ListedPeer {
    batch: u32,
    /// Its index in the counts of that batch.
    place: usize,
    /// One more than the offset of the record.
    record: u64,
}

impl BlockDecoder<'_> {
    /// Decodes a block and passes its batches to `emit`, until that returns false.
    pub(super) fn decode(&self, block: Block, scratch: &mut Scratch, emit: &mut dyn FnMut(Batch) -> bool) {
        let Block { offset, bytes, peers, begins_with_peers, faults, gaps } = block;
        let mut gatherer = Gatherer::new(self, scratch, emit, offset);
        gatherer.batch.faults = faults;
        gatherer.batch.listed = peers.clone().filter(|_| begins_with_peers);
        let mut gaps = gaps.into_iter().peekable();
        let mut at = 0;
        while gatherer.goes_on {
            gatherer.offset = offset + at as u64;
            if let Some((_, lost)) = gaps.next_if(|gap| gap.0 == at) {
                gatherer.fault(FaultKind::Lost { bytes: lost as u64 }.at(0));
                at += lost;
                continue;
            }
            let Some(header) = Header::read(&bytes[at..]) else { break };
            let end = at + header.record_bytes();
            let record = Record { header, body: bytes.slice(at + Header::BYTES..end) };
            gatherer.batch.steps += 1;
            if !self.filter.is_in_time(header.time.seconds) {
                at = end;
                continue;
            }
            if let Err(fault) = mrt::decode(&record, peers.as_deref(), &mut gatherer) {
                gatherer.fault(fault);
            }
            at = end;
        }
        gatherer.flush();
    }

    /// Returns whether routes of the peer are wanted, of IPv4 and of IPv6.
    fn wants(&self, peer: &Peer) -> [bool; 2] {
        [Family::Ipv4, Family::Ipv6]
            .map(|of| self.family.is_none_or(|only| only == of) && self.wanted.includes(peer, of))
    }
}

struct Gatherer<'a> {
    decoder: &'a BlockDecoder<'a>,
    scratch: &'a mut Scratch,
    emit: &'a mut dyn FnMut(Batch) -> bool,
    batch: Batch,
    /// Whether the peers of `batch.counts` are wanted, of IPv4 and of IPv6.
    wanted: Vec<[bool; 2]>,
    /// Indices in `batch.counts` of the peers that are named in their records.
    named: HashMap<Peer, usize>,
    /// Index of the peer that occurred last.
    last: Option<usize>,
    attribute_bytes: usize,
    goes_on: bool,
    block_offset: u64,
    /// Offset of the current record.
    offset: u64,
}

impl<'a> Gatherer<'a> {
    fn new(
        decoder: &'a BlockDecoder<'a>,
        scratch: &'a mut Scratch,
        emit: &'a mut dyn FnMut(Batch) -> bool,
        offset: u64,
    ) -> Self {
        let mut gatherer = Self {
            decoder,
            scratch,
            emit,
            batch: Batch::default(),
            wanted: Vec::new(),
            named: HashMap::new(),
            last: None,
            attribute_bytes: 0,
            goes_on: true,
            block_offset: offset,
            offset,
        };
        gatherer.begin();
        gatherer
    }

    fn begin(&mut self) {
        self.batch.offset = self.block_offset;
        self.wanted.clear();
        self.named = HashMap::new();
        self.last = None;
        self.attribute_bytes = 0;
        self.scratch.batch = self.scratch.batch.wrapping_add(1);
        if self.scratch.batch == 0 {
            // The batch numbers start over, so old ones must not look like new ones.
            self.scratch.listed.clear();
            self.scratch.batch = 1;
        }
    }

    /// Passes the batch on and begins another.
    fn flush(&mut self) {
        let batch = core::mem::take(&mut self.batch);
        self.goes_on = self.goes_on && (self.emit)(batch);
        self.begin();
    }

    fn add(&mut self, peer: &Peer) -> usize {
        self.batch.steps += 1;
        self.batch.counts.push(PeerCounts::new(*peer));
        self.wanted.push(self.decoder.wants(peer));
        self.batch.counts.len() - 1
    }

    fn change(&mut self, peer: &Peer, change: Change) {
        if self.decoder.counting {
            self.batch.changes.push((*peer, change));
            if self.batch.changes.len() >= BATCH {
                self.flush();
            }
        }
    }

    /// Returns the index in the counts of the peer with this index in the list, and whether it is its first route of
    /// the record: with path identifiers there may be several, all of one prefix.
    fn listed(&mut self, peer: &Peer, index: u16) -> (usize, bool) {
        let index = usize::from(index);
        if index >= self.scratch.listed.len() {
            self.batch.steps += (index + 1 - self.scratch.listed.len()) as u64;
            self.scratch.listed.resize(index + 1, ListedPeer::default());
        }
        let before = self.scratch.listed[index];
        let (batch, record) = (self.scratch.batch, self.offset + 1);
        let place = if before.batch == batch { before.place } else { self.add(peer) };
        self.scratch.listed[index] = ListedPeer { batch, place, record };
        (place, before.record != record)
    }

    /// Returns the index in the counts of a peer that is named in its record. Usually it is the same peer as before.
    fn named(&mut self, peer: &Peer) -> usize {
        if let Some(last) = self.last.filter(|&last| self.batch.counts[last].peer == *peer) {
            return last;
        }
        let place = match self.named.get(peer) {
            Some(&place) => place,
            None => {
                let place = self.add(peer);
                self.named.insert(*peer, place);
                place
            }
        };
        self.last = Some(place);
        place
    }
}

impl Sink for Gatherer<'_> {
    fn wants(&mut self, peer: &Peer, index: Option<u16>, path: &Path, mention: Mention) -> bool {
        if !self.goes_on {
            return false;
        }
        if self.batch.counts.len() >= BATCH {
            self.flush();
        }
        self.batch.steps += 1;
        let (place, first) = match index {
            Some(index) => self.listed(peer, index),
            None => (self.named(peer), true),
        };
        let counts = &mut self.batch.counts[place];
        let slot = slot(path.prefix.family());
        match mention {
            Mention::Listed | Mention::Announced => counts.announced[slot] += 1,
            Mention::Withdrawn => counts.withdrawn[slot] += 1,
        }
        counts.listed[slot] += u64::from(mention == Mention::Listed && first);
        let wanted = self.wanted[place][slot];
        match mention {
            Mention::Listed => {}
            Mention::Announced => self.change(peer, Change::Announced(*path)),
            Mention::Withdrawn => self.change(peer, Change::Withdrawn(*path)),
        }
        wanted
    }

    fn event(&mut self, event: Event) {
        let Some(mut event) = self.decoder.filter.judge(event, None) else { return };
        // The end of a session concerns both families.
        if let Some(peer) = event.peer.filter(|_| event.ends_session()) {
            let place = self.named(&peer);
            let unwanted = self.wanted[place] == [false; 2];
            self.change(&peer, Change::SessionEnd);
            if unwanted {
                return;
            }
        }
        let label = match self.decoder.values {
            [] => None,
            values => Facts::of(&event, None).map(|facts| facts.label(values)),
        };
        if let Action::Announce(route) = &mut event.action {
            if let Some(label) = label {
                route.next_hop = label;
            }
            match &route.attributes {
                Some(attributes) if self.decoder.attributes => {
                    // All routes of a message share their attributes.
                    let last = self.batch.events.last().and_then(Event::attributes);
                    if last.is_none_or(|last| !Arc::ptr_eq(last, attributes)) {
                        self.attribute_bytes += attributes.encoded_bytes();
                    }
                }
                _ => route.attributes = None,
            }
        }
        if self.batch.events.is_empty() {
            self.batch.events.reserve(64);
        }
        self.batch.events.push(event);
        if self.batch.events.len() >= BATCH || self.attribute_bytes >= BATCH_ATTRIBUTE_BYTES {
            self.flush();
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.batch.faults.push(fault.shifted(self.offset));
        if self.batch.faults.len() >= BATCH {
            self.flush();
        }
    }

    fn skipped(&mut self, kind: Skipped, offset: usize) {
        let count = self.batch.skipped.entry(kind).or_default();
        *count += 1;
        // The place of the first is enough for an error.
        if *count == 1 && kind.loses_routes() {
            self.fault(FaultKind::LeftOut(kind).at(offset));
        }
    }
}

/// Bounds the bytes of the blocks that wait or are being decoded. One block is always let in.
struct Gate {
    held_bytes: Mutex<usize>,
    left: Condvar,
    most_bytes: usize,
}

impl Gate {
    fn new(most_bytes: usize) -> Self {
        Self { held_bytes: Mutex::new(0), left: Condvar::new(), most_bytes }
    }

    fn enter(&self, bytes: usize) {
        let mut held = self.held_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while *held > 0 && *held + bytes > self.most_bytes {
            held = self.left.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        *held += bytes;
    }

    fn leave(&self, bytes: usize) {
        *self.held_bytes.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.left.notify_all();
    }
}

/// A block on its way to a thread that decodes it, and the channel for its batches.
type Task = (Block, SyncSender<thread::Result<Batch>>);

/// Decodes all blocks with up to `threads` threads and passes their batches to `consume`, in order. `between` is called
/// on this thread for every block that was read.
///
/// The outer error means that threads could not be started.
pub(super) fn run<R: Read, E: Send>(
    framer: &mut Framer<R>,
    threads: usize,
    decoder: &BlockDecoder<'_>,
    mut consume: impl FnMut(Batch) -> Result<(), E> + Send,
    between: &mut dyn FnMut(&Framer<R>),
) -> io::Result<Result<(), E>> {
    if threads <= 1 {
        let mut scratch = Scratch::default();
        let mut outcome = Ok(());
        while let Some(block) = framer.next() {
            decoder.decode(block, &mut scratch, &mut |batch| {
                outcome = consume(batch);
                outcome.is_ok()
            });
            if outcome.is_err() {
                break;
            }
            between(framer);
        }
        return Ok(outcome);
    }
    let (work, tasks) = sync_channel::<Task>(threads);
    let (order, results) = sync_channel::<Receiver<thread::Result<Batch>>>(2 * threads);
    let tasks = Mutex::new(tasks);
    let gate = Gate::new(2 * threads * Framer::<R>::BLOCK_BYTES);
    thread::scope(|scope| {
        // Both ends of the channels live in here, so that an early return closes them and the threads end.
        let (work, order) = (work, order);
        let (tasks, gate) = (&tasks, &gate);
        for _ in 1..threads {
            thread::Builder::new().spawn_scoped(scope, move || work_through(tasks, gate, decoder))?;
        }
        let consumer = thread::Builder::new().spawn_scoped(scope, move || {
            for result in results {
                for batch in result {
                    consume(batch.unwrap_or_else(|payload| panic::resume_unwind(payload)))?;
                }
            }
            Ok(())
        })?;
        while let Some(block) = framer.next() {
            let held_bytes = block.held_bytes();
            gate.enter(held_bytes);
            let (result, receiver) = sync_channel(1);
            if order.send(receiver).is_err() || work.send((block, result)).is_err() {
                break;
            }
            between(framer);
        }
        drop((work, order));
        Ok(consumer.join().unwrap_or_else(|payload| panic::resume_unwind(payload)))
    })
}

/// Decodes all remaining blocks.
fn work_through(tasks: &Mutex<Receiver<Task>>, gate: &Gate, decoder: &BlockDecoder<'_>) {
    let mut scratch = Scratch::default();
    loop {
        let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((block, result)) = next else { return };
        let held_bytes = block.held_bytes();
        // A panic is passed to the consumer, because a thread that ended with it would leave others waiting.
        let decoded = panic::catch_unwind(AssertUnwindSafe(|| {
            // The consumer receives nothing more once it has stopped.
            decoder.decode(block, &mut scratch, &mut |batch| result.send(Ok(batch)).is_ok());
        }));
        if let Err(payload) = decoded {
            let _ = result.send(Err(payload));
        }
        gate.leave(held_bytes);
    }
}
