//! Chunks of lines, answered by several threads and written in their order.
//!
//! One thread reads and splits, others answer, this one writes. Each of them holds one chunk and has one more waiting, so
//! the memory is bounded. Chunks go around: the first thread gets every n-th, and so their order is known.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

use super::chunks::Chunks;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::text::thousands;

/// Bad lines that are reported one by one.
pub(super) const REPORTED: usize = 5;

/// Counts of lines, and the first of those that are not addresses.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) lines: usize,
    pub(super) bad: usize,
    pub(super) matched: usize,
    /// What is wrong with a line, by its number among these lines, from 1.
    pub(super) first_bad: Vec<(usize, String)>,
}

impl Tally {
    /// Adds the counts of the lines that follow.
    pub(super) fn add(&mut self, next: Self) {
        let room = REPORTED.saturating_sub(self.first_bad.len());
        let lines = self.lines;
        self.first_bad.extend(next.first_bad.into_iter().take(room).map(|(at, what)| (lines + at, what)));
        self.lines += next.lines;
        self.bad += next.bad;
        self.matched += next.matched;
    }
}

/// Answers the lines of chunks.
pub(super) trait Worker: Send {
    /// Appends the answers of a chunk to `out`. `first` is true for the first chunk of all.
    fn answer(&mut self, chunk: &[u8], first: bool, out: &mut Vec<u8>) -> Result<Tally, Failure>;
}

/// Takes the answers of a chunk.
pub(super) type Write<'a> = &'a mut dyn FnMut(&[u8], Tally) -> Result<(), Failure>;

/// An answered chunk.
struct Done {
    out: Vec<u8>,
    tally: Tally,
}

/// Buffers that are used again.
#[derive(Default)]
struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// Reads all chunks, answers them by the workers, and calls `write` with the answers in order. `failed` makes a failure of
/// the error of a read.
pub(super) fn run<R: Read + Send>(
    chunks: Chunks<R>,
    workers: Vec<Box<dyn Worker + '_>>,
    failed: &(dyn Fn(&io::Error) -> Failure + Sync),
    write: Write<'_>,
) -> Result<(), Failure> {
    let (inputs, outputs) = (Pool::default(), Pool::default());
    thread::scope(|scope| {
        let mut dealt: Vec<SyncSender<Vec<u8>>> = Vec::new();
        let mut done: Vec<Receiver<Result<Done, Failure>>> = Vec::new();
        for (index, mut worker) in workers.into_iter().enumerate() {
            let (sender, receiver) = sync_channel::<Vec<u8>>(1);
            let (result, results) = sync_channel(1);
            dealt.push(sender);
            done.push(results);
            let (inputs, outputs) = (&inputs, &outputs);
            let work = move || {
                let mut first = index == 0;
                for chunk in receiver {
                    let mut out = outputs.take();
                    let tally = worker.answer(&chunk, first, &mut out);
                    first = false;
                    inputs.give(chunk);
                    // The writer receives nothing more once it has stopped.
                    if result.send(tally.map(|tally| Done { out, tally })).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, work).map_err(|error| threads(&error))?;
        }
        let reader = {
            let inputs = &inputs;
            let read = move || deal(chunks, &dealt, inputs);
            thread::Builder::new().spawn_scoped(scope, read).map_err(|error| threads(&error))?
        };
        let written = collect(&done, &outputs, write);
        // Threads that wait to hand something over stop where nothing receives it.
        drop(done);
        written?;
        let read = reader.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
        read.map_err(|error| failed(&error))
    })
}

fn threads(error: &io::Error) -> Failure {
    Failure::BadInput(format!("no thread can be started: {error}"))
}

fn deal<R: Read>(mut chunks: Chunks<R>, to: &[SyncSender<Vec<u8>>], inputs: &Pool) -> io::Result<()> {
    for sender in to.iter().cycle() {
        let mut chunk = inputs.take();
        if !chunks.next(&mut chunk)? || sender.send(chunk).is_err() {
            break;
        }
    }
    Ok(())
}

fn collect(
    done: &[Receiver<Result<Done, Failure>>],
    outputs: &Pool,
    write: Write<'_>,
) -> Result<(), Failure> {
    for results in done.iter().cycle() {
        // The first that has nothing more had its turn after the last chunk.
        let Ok(result) = results.recv() else { break };
        let Done { out, tally } = result?;
        write(&out, tally)?;
        outputs.give(out);
    }
    Ok(())
}

/// Warns of the first lines that are not addresses. `before` lines came before these, of which some were reported.
pub(super) fn report(next: &Tally, before: usize, reported: usize, input: &str, messages: Messages) {
    let room = REPORTED.saturating_sub(reported);
    for (line, what) in next.first_bad.iter().take(room) {
        messages.warning(format_args!("{input} {}{what}", thousands(before + line)));
    }
}

/// Says how many lines were not addresses, if not all of them were reported.
pub(super) fn summary(tally: &Tally, input: &str, messages: Messages) {
    if tally.bad > REPORTED {
        messages.warning(format_args!("{} {input}s in all were not IP addresses", thousands(tally.bad)));
    }
}
