//! An MRT file cut into blocks of whole records.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;

use super::MAX_UNSETTLED_BYTES;
use crate::mrt::{Fault, FaultKind, Frame, Header, MAX_RECORD_BYTES, PeerIndexTable, Record};

/// Whole records one after another.
pub(super) struct Block {
    /// Where the first begins in the decompressed file.
    pub(super) offset: u64,
    pub(super) bytes: Bytes,
    /// The list of peers that applies to all of them.
    pub(super) peers: Option<Arc<PeerIndexTable>>,
    /// Whether that list is the first record of this block.
    pub(super) begins_with_peers: bool,
    /// Faults between this block and the one before.
    pub(super) faults: Vec<Fault>,
    /// Runs of bytes that belong to no record, in order: where in the block, and how many.
    pub(super) gaps: Vec<(usize, usize)>,
}

impl Block {
    /// Returns the bytes that it takes while it waits to be decoded.
    pub(super) fn held_bytes(&self) -> usize {
        let table = self.peers.as_ref().filter(|_| self.begins_with_peers);
        self.bytes.len() + table.map_or(0, |peers| size_of_val(peers.peers()))
    }
}

/// Finds the records in the bytes of a reader.
pub(super) struct Framer<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    /// Where `start` is in the decompressed file.
    offset: u64,
    ended: bool,
    failure: Option<io::Error>,
    peers: Option<Arc<PeerIndexTable>>,
    records: u64,
    /// Whether a record with a body was found.
    settled: bool,
    /// Bytes skipped just before `start`.
    lost_bytes: u64,
    steps: u64,
}

impl<R: Read> Framer<R> {
    /// Bytes of a block, which may exceed this by one record.
    pub(super) const BLOCK_BYTES: usize = 256 << 10;
    /// Most damaged places of a block.
    const GAPS: usize = 1024;
    /// Longer runs of lost bytes are not copied into a block.
    const GAP_BYTES: usize = 4 << 10;

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
            settled: false,
            lost_bytes: 0,
            steps: 0,
        }
    }

    pub(super) fn input(&self) -> &R {
        &self.input
    }

    /// Returns the number of records found so far.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of places examined and bytes moved so far: the cost of finding the records.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes the error that ended the input, if there was one. All complete records have been returned before.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Returns whether reading was given up because the beginning holds no record.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.settled && self.offset >= MAX_UNSETTLED_BYTES
    }

    /// Returns the next block; `None` after the last.
    pub(super) fn next(&mut self) -> Option<Block> {
        let mut found = Found::default();
        while !self.is_unsettled() {
            let len = self.frame(&mut found);
            if len > 0 || (self.ended && !found.faults.is_empty()) {
                return Some(self.block(len, found));
            }
            if self.ended {
                break;
            }
            self.fill();
        }
        None
    }

    fn block(&mut self, len: usize, found: Found) -> Block {
        let Found { faults, gaps, begins_with_peers } = found;
        let offset = self.offset;
        let rest = self.buffer.len() - self.start - len;
        // The buffer itself becomes the block where that leaves less to copy.
        let bytes = if self.start == 0 && rest <= len {
            self.steps += rest as u64;
            let rest = self.buffer.split_off(len);
            Bytes::from(core::mem::replace(&mut self.buffer, rest))
        } else {
            self.steps += len as u64;
            let bytes = Bytes::copy_from_slice(&self.buffer[self.start..self.start + len]);
            self.start += len;
            bytes
        };
        self.offset += len as u64;
        Block { offset, bytes, peers: self.peers.clone(), begins_with_peers, faults, gaps }
    }

    /// Returns the length of the records at the beginning of the buffer, with short damage between them. Skips damage
    /// before them.
    fn frame(&mut self, found: &mut Found) -> usize {
        let mut len = 0;
        while len < Self::BLOCK_BYTES {
            let bytes = &self.buffer[self.start + len..];
            match Frame::counted(bytes, self.ended, &mut self.steps) {
                Frame::Record(header) => {
                    // The decoder reads the length from the bytes of the block, so the length that was recognised is
                    // written there.
                    let place = self.start + len + Header::BYTES - 4;
                    self.buffer[place..place + 4].copy_from_slice(&header.len.to_be_bytes());
                    // Another list of peers applies from here on, so this is where the next block begins.
                    if is_peer_table(&header) && len > 0 {
                        break;
                    }
                    self.report_lost(found);
                    if is_peer_table(&header) {
                        self.read_peers(header, found);
                    }
                    len += header.record_bytes();
                    self.records += 1;
                    self.settled |= header.len > 0;
                }
                Frame::More => break,
                Frame::Lost(count) if len == 0 => self.pass_over(count),
                Frame::Lost(count) => {
                    if count > Self::GAP_BYTES || found.gaps.len() == Self::GAPS {
                        break;
                    }
                    found.gaps.push((len, count));
                    len += count;
                }
                Frame::Cut if len > 0 => break,
                Frame::Cut => {
                    let rest = bytes.len();
                    self.report_lost(found);
                    if rest > 0 {
                        found.faults.push(FaultKind::EndsEarly { bytes: rest as u64 }.at_byte(self.offset));
                        self.skip(rest);
                    }
                    break;
                }
            }
        }
        len
    }

    fn read_peers(&mut self, header: Header, found: &mut Found) {
        let record = &self.buffer[self.start..self.start + header.record_bytes()];
        self.steps += record.len() as u64;
        let record = Record { header, body: Bytes::copy_from_slice(&record[Header::BYTES..]) };
        // The old list is freed first, so that both do not exist at the same time.
        self.peers = None;
        match PeerIndexTable::read(&record) {
            Some(Ok(peers)) => {
                self.peers = Some(Arc::new(peers));
                found.begins_with_peers = true;
            }
            Some(Err(fault)) => found.faults.push(fault.shifted(self.offset)),
            None => {}
        }
    }

    /// Skips bytes that belong to no record. Damage that does not fit into the buffer comes in several pieces.
    fn pass_over(&mut self, count: usize) {
        self.lost_bytes += count as u64;
        self.skip(count);
    }

    /// Reports the damage that ends here, as one fault.
    fn report_lost(&mut self, found: &mut Found) {
        let bytes = core::mem::take(&mut self.lost_bytes);
        if bytes > 0 {
            found.faults.push(FaultKind::Lost { bytes }.at_byte(self.offset - bytes));
        }
    }

    fn skip(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    /// Reads at least as many bytes as the buffer holds, so that each byte is examined and moved a few times at most,
    /// however long a record or a damaged place is.
    fn fill(&mut self) {
        let rest = self.buffer.len() - self.start;
        self.steps += rest as u64;
        self.buffer.drain(..self.start);
        self.start = 0;
        let most = MAX_RECORD_BYTES + Header::BYTES + Self::BLOCK_BYTES;
        let wanted = most.saturating_sub(rest).clamp(Self::BLOCK_BYTES, rest.max(Self::BLOCK_BYTES));
        self.buffer.reserve_exact(wanted);
        self.buffer.resize(rest + wanted, 0);
        let mut end = rest;
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

/// The faults and the damage found while a block was assembled.
#[derive(Default)]
struct Found {
    faults: Vec<Fault>,
    gaps: Vec<(usize, usize)>,
    begins_with_peers: bool,
}

fn is_peer_table(header: &Header) -> bool {
    (header.kind, header.subtype) == (13, 1)
}
