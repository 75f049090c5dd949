//! MRT files in blocks of whole records, decoded by several threads where they are allowed.
//!
//! One thread reads, decompresses and finds the records; others decode; one takes the events in their order. A bounded
//! number of blocks is under way at any time, so that memory is bounded too.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use fibula::net::Family;

use super::choice::{PeerCounts, Tally, Wanted, slot};
use crate::event::{Event, Path, Peer};
use crate::mrt::{self, Fault, FaultKind, Frame, Header, Mention, PeerTable, Record, Sink, Skipped};

/// Whole records one behind another.
pub(super) struct Block {
    /// Where the first begins in the decompressed file.
    pub(super) offset: u64,
    bytes: Bytes,
    /// The list of peers that counts for all of them.
    peers: Option<Arc<PeerTable>>,
    /// Of the places between this block and the one before.
    faults: Vec<Fault>,
}

/// Finds records in what a reader gives.
pub(super) struct Framer<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    /// Where `start` is in the decompressed file.
    offset: u64,
    ended: bool,
    failure: Option<io::Error>,
    peers: Option<Arc<PeerTable>>,
    records: u64,
}

impl<R: Read> Framer<R> {
    /// Bytes of a block, or a record more.
    const BLOCK_BYTES: usize = 256 << 10;

    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            ended: false,
            failure: None,
            peers: None,
            records: 0,
        }
    }

    pub(super) fn input(&self) -> &R {
        &self.input
    }

    /// Records found so far.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// What ended the input, if it was an error. All records that were complete have been handed out.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// The next block; none behind the last.
    pub(super) fn next(&mut self) -> Option<Block> {
        let mut faults = Vec::new();
        loop {
            let len = self.frame(&mut faults);
            if len > 0 || (self.ended && !faults.is_empty()) {
                let offset = self.offset;
                let bytes = Bytes::copy_from_slice(&self.buffer[self.start..self.start + len]);
                self.skip(len);
                return Some(Block { offset, bytes, peers: self.peers.clone(), faults });
            }
            if self.ended {
                return None;
            }
            self.fill();
        }
    }

    /// Length of the records that stand together at the beginning of the buffer. Damage in front of them is passed over.
    fn frame(&mut self, faults: &mut Vec<Fault>) -> usize {
        let mut len = 0;
        while len < Self::BLOCK_BYTES {
            let bytes = &self.buffer[self.start + len..];
            match Frame::next(bytes, self.ended) {
                Frame::Record(header) => {
                    let record = &bytes[..header.record_bytes()];
                    if is_peer_table(&header) {
                        // Another list of peers counts from here on: for the next block.
                        if len > 0 {
                            break;
                        }
                        let record =
                            Record { header, body: Bytes::copy_from_slice(&record[Header::BYTES..]) };
                        self.peers = match PeerTable::read(&record) {
                            Some(Ok(peers)) => Some(Arc::new(peers)),
                            Some(Err(fault)) => {
                                faults.push(fault.shifted(self.offset));
                                None
                            }
                            None => unreachable!("its header says that it is one"),
                        };
                    }
                    len += header.record_bytes();
                    self.records += 1;
                }
                Frame::More => break,
                _ if len > 0 => break,
                Frame::Lost(count) => {
                    faults.push(FaultKind::Lost { bytes: count as u64 }.at_byte(self.offset));
                    self.skip(count);
                }
                Frame::Cut => {
                    let rest = bytes.len();
                    if rest > 0 {
                        faults.push(FaultKind::EndsEarly { bytes: rest as u64 }.at_byte(self.offset));
                        self.skip(rest);
                    }
                    break;
                }
            }
        }
        len
    }

    fn skip(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    fn fill(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        let from = self.buffer.len();
        self.buffer.resize(from + Self::BLOCK_BYTES, 0);
        let mut end = from;
        while end < self.buffer.len() {
            match self.input.read(&mut self.buffer[end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    end += count;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.failure = Some(error);
                    self.ended = true;
                }
            }
            break;
        }
        self.buffer.truncate(end);
    }
}

fn is_peer_table(header: &Header) -> bool {
    (header.kind, header.subtype) == (13, 1)
}

/// What a block says.
pub(super) struct Decoded {
    pub(super) offset: u64,
    pub(super) events: Vec<Event>,
    pub(super) faults: Vec<Fault>,
    pub(super) skipped: BTreeMap<Skipped, u64>,
    pub(super) peers: Tally,
}

/// Decodes a block; of the routes, those of the peers that are wanted and of the family, if one is asked for.
pub(super) fn decode(block: Block, wanted: &Wanted, family: Option<Family>) -> Decoded {
    let Block { offset, bytes, peers, faults } = block;
    let table = peers.as_ref().map_or(&[][..], |peers| peers.peers());
    let is_wanted = |peer: &Peer| {
        [Family::Ipv4, Family::Ipv6]
            .map(|of| family.is_none_or(|only| only == of) && wanted.includes(peer, of))
    };
    let mut gatherer = Gatherer {
        is_wanted: &is_wanted,
        counts: table.iter().map(|&peer| (PeerCounts::new(peer), is_wanted(&peer))).collect(),
        listed: table.len(),
        last: None,
        events: Vec::new(),
        faults,
        offset: 0,
        skipped: BTreeMap::new(),
    };
    let mut at = 0;
    while let Some(header) = Header::read(&bytes[at..]) {
        let end = at + header.record_bytes();
        let record = Record { header, body: bytes.slice(at + Header::BYTES..end) };
        gatherer.offset = offset + at as u64;
        if let Err(fault) = mrt::decode(&record, peers.as_deref(), &mut gatherer) {
            gatherer.fault(fault);
        }
        at = end;
    }
    let mut peers = Tally::default();
    gatherer.counts.iter().for_each(|(counts, _)| peers.add(counts));
    let Gatherer { events, faults, skipped, .. } = gatherer;
    Decoded { offset, events, faults, skipped, peers }
}

struct Gatherer<'a> {
    is_wanted: &'a dyn Fn(&Peer) -> [bool; 2],
    /// The peers of the list, in its order, then those that name themselves in their records.
    counts: Vec<(PeerCounts, [bool; 2])>,
    listed: usize,
    /// Where in `counts` the peer stands that spoke last.
    last: Option<usize>,
    events: Vec<Event>,
    faults: Vec<Fault>,
    /// Of the present record.
    offset: u64,
    skipped: BTreeMap<Skipped, u64>,
}

impl Gatherer<'_> {
    /// Where in `counts` the peer stands. Few peers speak in a block, mostly the same one several times.
    fn place(&mut self, peer: &Peer) -> usize {
        let is_peer = |counts: &(PeerCounts, [bool; 2])| counts.0.peer == *peer;
        if let Some(last) = self.last.filter(|&last| is_peer(&self.counts[last])) {
            return last;
        }
        let found = self.counts[self.listed..].iter().position(is_peer).map(|at| self.listed + at);
        let place = found.unwrap_or_else(|| {
            self.counts.push((PeerCounts::new(*peer), (self.is_wanted)(peer)));
            self.counts.len() - 1
        });
        self.last = Some(place);
        place
    }
}

impl Sink for Gatherer<'_> {
    fn wants(&mut self, peer: &Peer, index: Option<u16>, path: &Path, mention: Mention) -> bool {
        let place = index.map_or_else(|| self.place(peer), usize::from);
        let (counts, wanted) = &mut self.counts[place];
        let slot = slot(path.prefix.family());
        match mention {
            Mention::Listed | Mention::Announced => counts.announced[slot] += 1,
            Mention::Withdrawn => counts.withdrawn[slot] += 1,
        }
        wanted[slot]
    }

    fn event(&mut self, event: Event) {
        // The end of a session concerns both families.
        if let Some(peer) = event.peer.filter(|_| event.ends_session()) {
            let place = self.place(&peer);
            if self.counts[place].1 == [false; 2] {
                return;
            }
        }
        self.events.push(event);
    }

    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault.shifted(self.offset));
    }

    fn skipped(&mut self, kind: Skipped, offset: usize) {
        let count = self.skipped.entry(kind).or_default();
        *count += 1;
        // The place of the first is enough for an error.
        if *count == 1 && kind.loses_routes() {
            self.fault(FaultKind::LeftOut(kind).at(offset));
        }
    }
}

/// Decodes all blocks with up to `threads` threads and hands what they say to `consume`, in order. `between` is called
/// on this thread for every block that was read.
///
/// The outer error is that threads could not be started.
pub(super) fn run<R: Read, T: Send, E: Send>(
    framer: &mut Framer<R>,
    threads: usize,
    decode: impl Fn(Block) -> T + Sync,
    mut consume: impl FnMut(T) -> Result<(), E> + Send,
    between: &mut dyn FnMut(&Framer<R>),
) -> io::Result<Result<(), E>> {
    if threads <= 1 {
        while let Some(block) = framer.next() {
            if let Err(error) = consume(decode(block)) {
                return Ok(Err(error));
            }
            between(framer);
        }
        return Ok(Ok(()));
    }
    let (work, tasks) = sync_channel::<(Block, SyncSender<thread::Result<T>>)>(threads);
    let (order, results) = sync_channel::<Receiver<thread::Result<T>>>(2 * threads);
    let tasks = Mutex::new(tasks);
    thread::scope(|scope| {
        // Both ends of the channels live in here, so that an early return closes them and the threads end.
        let (work, order) = (work, order);
        let (tasks, decode) = (&tasks, &decode);
        for _ in 1..threads {
            thread::Builder::new().spawn_scoped(scope, move || {
                loop {
                    let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((block, result)) = next else { return };
                    // A panic is handed to the one who waits: a thread that ended with it would leave others waiting.
                    let decoded = panic::catch_unwind(AssertUnwindSafe(|| decode(block)));
                    // Nobody waits for it when the consumer has stopped.
                    let _ = result.send(decoded);
                }
            })?;
        }
        let consumer = thread::Builder::new().spawn_scoped(scope, move || {
            for result in results {
                match result.recv() {
                    Ok(Ok(decoded)) => consume(decoded)?,
                    Ok(Err(payload)) => panic::resume_unwind(payload),
                    Err(_) => break,
                }
            }
            Ok(())
        })?;
        while let Some(block) = framer.next() {
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
