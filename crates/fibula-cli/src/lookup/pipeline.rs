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
use crate::messages::{self, Messages};
use crate::text::thousands;

/// Bad lines that are reported one by one.
const REPORTED: usize = 5;

/// Counts of lines, and the first of those that are not addresses.
#[derive(Debug, Clone, Default)]
pub(super) struct LineCounts {
    pub(super) lines: usize,
    pub(super) bad: usize,
    pub(super) matched: usize,
    /// Lines with a quote that encloses no field.
    unclosed: usize,
    /// The first of them, by its number among these lines, from 1.
    first_unclosed: Option<usize>,
    /// The faults of lines, by their numbers.
    first_bad: Vec<(usize, String)>,
}

impl LineCounts {
    /// Counts a bad line, by its number. Its fault is worked out for the first few alone.
    #[cold]
    pub(super) fn bad(&mut self, line: usize, what: impl FnOnce() -> String) {
        self.bad += 1;
        if self.first_bad.len() < REPORTED {
            self.first_bad.push((line, what()));
        }
    }

    /// Counts the last line as one with a quote that encloses no field.
    #[cold]
    pub(super) fn unclosed(&mut self) {
        self.unclosed += 1;
        self.first_unclosed = self.first_unclosed.or(Some(self.lines));
    }

    /// Adds the counts of the lines that follow, and warns of those that are bad. `input` is the name for a line, `before` how
    /// many lines come before all that are counted.
    ///
    /// # Errors
    /// If a line was misread and `strict` says that none may be.
    pub(super) fn add(
        &mut self,
        next: Self,
        (input, before): (&str, usize),
        strict: bool,
        messages: Messages,
    ) -> Result<(), Failure> {
        let lines = self.lines;
        for (at, what) in next.first_bad {
            let line = format!("{input} {}{what}", thousands(before + lines + at));
            if strict {
                return Err(Failure::BadInput(line));
            }
            if self.first_bad.len() < REPORTED {
                messages.warning(&line);
                self.first_bad.push((0, line));
            }
        }
        if let (Some(at), None) = (next.first_unclosed, self.first_unclosed) {
            self.first_unclosed = Some(before + lines + at);
            if strict {
                return Err(Failure::BadInput(format!(
                    "{input} {}{UNCLOSED}",
                    thousands(before + lines + at)
                )));
            }
        }
        self.lines += next.lines;
        self.bad += next.bad;
        self.unclosed += next.unclosed;
        self.matched += next.matched;
        Ok(())
    }

    /// Says how many lines were not addresses, if not all of them were reported: with --quiet too, because nothing is left out
    /// without a word.
    pub(super) fn summary(&self, input: &str, messages: Messages) {
        let (count, plural) = (thousands(self.bad), if self.bad == 1 { "" } else { "s" });
        let what = match (input, self.bad) {
            ("row", _) => "had no IP address",
            (_, 1) => "was not an IP address",
            _ => "were not IP addresses",
        };
        match self.first_bad.first() {
            Some((_, first)) if messages.is_quiet() => {
                messages::warning(format_args!("{count} {input}{plural} in all {what}; the first: {first}"));
            }
            _ if self.bad > REPORTED => {
                messages.warning(format_args!("{count} {input}{plural} in all {what}"));
            }
            _ => {}
        }
        if let Some(first) = self.first_unclosed {
            let (first, count) = (thousands(first), thousands(self.unclosed));
            let more = if self.unclosed > 1 { format!("; {count} {input}s in all") } else { String::new() };
            messages::warning(format_args!("{input} {first}{UNCLOSED}: it is read as text{more}"));
        }
    }
}

const UNCLOSED: &str = " has a quote that is not closed before a separator or the end of a line";

/// Bytes of answers that are handed over before a chunk is done: a line may be short, and the label of its route long.
const FULL: usize = 1 << 20;

/// The answers of a chunk.
pub(super) struct Out<'a> {
    pub(super) bytes: Vec<u8>,
    /// Takes the answers so far, and gives an empty buffer for those to come.
    hand_over: &'a mut dyn FnMut(Vec<u8>) -> Vec<u8>,
}

impl Out<'_> {
    /// Hands over the lines so far, if they are many. Called after each line.
    #[inline]
    pub(super) fn relieve(&mut self) {
        if self.bytes.len() >= FULL {
            self.bytes = (self.hand_over)(std::mem::take(&mut self.bytes));
        }
    }
}

/// Answers something at once, after the text that is there; returns both, and the counts.
pub(super) fn answered(
    text: Vec<u8>,
    answer: impl FnOnce(&mut Out<'_>) -> Result<LineCounts, Failure>,
) -> Result<(Vec<u8>, LineCounts), Failure> {
    let mut all = Vec::new();
    let mut hand_over = |text: Vec<u8>| {
        all.extend_from_slice(&text);
        Vec::new()
    };
    let mut out = Out { bytes: text, hand_over: &mut hand_over };
    let tally = answer(&mut out)?;
    let rest = out.bytes;
    all.extend_from_slice(&rest);
    Ok((all, tally))
}

/// Answers the lines of chunks.
pub(super) trait Worker: Send {
    /// Appends the answers of a chunk to `out`. `first` is true for the first chunk of all.
    fn answer(&mut self, chunk: &[u8], first: bool, out: &mut Out<'_>) -> Result<LineCounts, Failure>;
}

/// Takes the answers of a chunk, or a part of them.
pub(super) type Write<'a> = &'a mut dyn FnMut(&[u8], LineCounts) -> Result<(), Failure>;

/// An answered chunk, or a part of one.
struct Done {
    out: Vec<u8>,
    tally: LineCounts,
    is_last: bool,
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

/// Whether the workers shall stop before the chunk that has just arrived.
pub(super) type IsOver<'a> = &'a (dyn Fn() -> bool + Sync);

/// Reads all chunks, answers them by the workers, and calls `write` with the answers in order. `failed` makes a failure of
/// the error of a read. Each chunk that arrives is handed out only if `is_over` says no. Otherwise the run ends, the chunk stays the
/// next one, and the result is true.
pub(super) fn run<R: Read + Send>(
    chunks: &mut Chunks<R>,
    workers: Vec<Box<dyn Worker + '_>>,
    is_over: IsOver<'_>,
    failed: &(dyn Fn(&io::Error) -> Failure + Sync),
    write: Write<'_>,
) -> Result<bool, Failure> {
    let (inputs, outputs) = (Pool::default(), Pool::default());
    let is_start = !chunks.is_under_way();
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
                let mut first = is_start && index == 0;
                for chunk in receiver {
                    let mut hand_over = |out| {
                        let tally = LineCounts::default();
                        // The writer receives nothing more once it has stopped, which the end of the chunk shows.
                        let _ = result.send(Ok(Done { out, tally, is_last: false }));
                        outputs.take()
                    };
                    let mut out = Out { bytes: outputs.take(), hand_over: &mut hand_over };
                    let tally = worker.answer(&chunk, first, &mut out);
                    let out = out.bytes;
                    first = false;
                    inputs.give(chunk);
                    if result.send(tally.map(|tally| Done { out, tally, is_last: true })).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, work).map_err(|error| threads(&error))?;
        }
        let reader = {
            let inputs = &inputs;
            let read = move || deal(chunks, &dealt, inputs, is_over);
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

fn deal<R: Read>(
    chunks: &mut Chunks<R>,
    to: &[SyncSender<Vec<u8>>],
    inputs: &Pool,
    is_over: IsOver<'_>,
) -> io::Result<bool> {
    for sender in to.iter().cycle() {
        let (mut chunk, was_under_way) = (inputs.take(), chunks.is_under_way());
        if !chunks.next(&mut chunk)? {
            break;
        }
        if is_over() {
            chunks.give_back(chunk, was_under_way);
            return Ok(true);
        }
        if sender.send(chunk).is_err() {
            break;
        }
    }
    Ok(false)
}

fn collect(
    done: &[Receiver<Result<Done, Failure>>],
    outputs: &Pool,
    write: Write<'_>,
) -> Result<(), Failure> {
    for results in done.iter().cycle() {
        loop {
            // The first that has nothing more had its turn after the last chunk.
            let Ok(result) = results.recv() else { return Ok(()) };
            let Done { out, tally, is_last } = result?;
            write(&out, tally)?;
            outputs.give(out);
            if is_last {
                break;
            }
        }
    }
    Ok(())
}
