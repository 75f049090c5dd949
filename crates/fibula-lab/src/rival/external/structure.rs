//! An engine in another program, as a contestant.

use core::error::Error;
use core::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fibula::memory::Memory;
use fibula::net::{Change, Key, NextHop, Prefix, Routes};

use super::External;
use super::program::{Answer, ChildProgram};
use crate::bench::{Native, Prepared, Shape, Spent};

/// An engine in another program.
pub(super) struct Remote<K> {
    line: Mutex<Connection<K>>,
    memory: Memory,
    build_time: Duration,
}

/// The connection to the program.
struct Connection<K> {
    name: &'static str,
    program: ChildProgram,
    /// The keys that the program has.
    keys: Vec<K>,
    /// Why it no longer answers, if it has failed.
    failure: Option<String>,
}

/// Starts the program and makes it build the table.
pub(super) fn build<K: Key>(
    external: &External,
    routes: &dyn Routes<K>,
) -> Result<Remote<K>, Box<dyn Error>> {
    let name = external.name;
    let named = |error: String| format!("{name}: {error}");
    let command = (external.start)().map_err(named)?;
    let program = ChildProgram::start(command, external.limit).map_err(named)?;
    let mut line = Connection { name, program, keys: Vec::new(), failure: None };
    let mut request = format!("table {name} {} {}\n", K::FAMILY.name(), routes.len()).into_bytes();
    routes.try_for_each(Prefix::ALL, |route| {
        push(&mut request, route.prefix, route.next_hop.id());
        Ok::<(), String>(())
    })?;
    let [time, lookup_bytes, allocated_bytes] = line.numbers(request, "built")?;
    let (Some(time), Some(lookup_bytes), Some(allocated_bytes)) = (time, lookup_bytes, allocated_bytes)
    else {
        return Err(format!("{name}: it does not say what it built").into());
    };
    let memory = Memory {
        lookup_bytes: usize::try_from(lookup_bytes)?,
        allocated_bytes: usize::try_from(allocated_bytes)?,
        mapped_bytes: 0,
        huge_bytes: 0,
    };
    Ok(Remote { line: Mutex::new(line), memory, build_time: Duration::from_nanos(time) })
}

/// Adds a route in the form of the protocol.
fn push<K: Key>(request: &mut Vec<u8>, prefix: Prefix<K>, next_hop: u32) {
    request.extend_from_slice(prefix.addr().to_network().as_ref());
    request.push(prefix.len());
    request.extend_from_slice(&next_hop.to_le_bytes());
}

impl<K: Key> Connection<K> {
    /// Sends a request, unless one has failed before.
    fn ask(&mut self, request: Vec<u8>) -> Result<Answer, String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let answer = self.program.ask(request);
        let answer = answer.and_then(|answer| match answer.line.strip_prefix("refused") {
            Some(reason) => Err(reason.trim().to_owned()),
            None => Ok(answer),
        });
        answer.map_err(|error| self.fail(&error))
    }

    fn fail(&mut self, error: &str) -> String {
        let failure = format!("{}: {error}", self.name);
        self.failure = Some(failure.clone());
        failure
    }

    /// Sends a request whose answer is this word and `N` numbers, some of which may be absent.
    fn numbers<const N: usize>(&mut self, request: Vec<u8>, word: &str) -> Result<[Option<u64>; N], String> {
        let answer = self.ask(request)?;
        let mut words = answer.line.split(' ');
        let known = words.next() == Some(word);
        let numbers: Option<Vec<Option<u64>>> = words
            .map(|word| match word {
                "-" => Some(None),
                number => number.parse().ok().map(Some),
            })
            .collect();
        match numbers.and_then(|numbers| numbers.try_into().ok()) {
            Some(numbers) if known => Ok(numbers),
            _ => Err(self.fail(&format!("'{}' is not an answer", answer.line))),
        }
    }

    /// Makes sure that the program has these keys, and returns the number of the first. Timed runs use some of the
    /// keys that were checked, which the program has already.
    fn load(&mut self, keys: &[K]) -> Result<usize, String> {
        if let Some(first) = self.keys.windows(keys.len().max(1)).position(|window| window == keys) {
            return Ok(first);
        }
        let mut request = format!("keys {}\n", keys.len()).into_bytes();
        for key in keys {
            request.extend_from_slice(key.to_network().as_ref());
        }
        let [] = self.numbers(request, "ready")?;
        self.keys = keys.to_vec();
        Ok(0)
    }

    /// Gets the answers to all keys that the program has.
    fn answers(&mut self, shape: Shape) -> Result<Vec<u32>, String> {
        let (shape, batch) = words(shape);
        let answer = self.ask(format!("answer {shape} {batch}\n").into_bytes())?;
        let words = answer.bytes.as_chunks().0;
        if answer.line != format!("answers {}", self.keys.len()) || words.len() != self.keys.len() {
            let (line, found) = (answer.line, words.len());
            return Err(
                self.fail(&format!("'{line}' and {found} answers do not answer {} keys", self.keys.len()))
            );
        }
        Ok(words.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect())
    }
}

/// Returns the words of the protocol for a shape.
fn words(shape: Shape) -> (&'static str, usize) {
    match shape {
        Shape::Single => ("single", 1),
        Shape::Batch(batch) => ("batch", batch),
        Shape::Dependent => ("dependent", 1),
    }
}

impl<K: Key> Remote<K> {
    /// If a thread panicked halfway, the wrong answer shows it.
    fn line(&self) -> MutexGuard<'_, Connection<K>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> Native<K> for Remote<K> {
    fn memory(&self) -> Memory {
        self.memory
    }

    fn prepare(&self, keys: &[K], _room: usize) -> Box<dyn Prepared + '_> {
        Box::new(RemoteKeys { of: self, keys: keys.to_vec(), answers: None, taken: 0..0 })
    }

    fn build_time(&self) -> Option<Duration> {
        Some(self.build_time)
    }

    fn apply(&mut self, changes: &[Change<K>]) -> Result<Duration, String> {
        let mut request = format!("change {}\n", changes.len()).into_bytes();
        for change in changes {
            let (prefix, next_hop) = match *change {
                Change::Insert(route) => (route.prefix, route.next_hop.id()),
                Change::Remove(prefix) => (prefix, 0),
            };
            push(&mut request, prefix, next_hop);
        }
        let mut line = self.line();
        match line.numbers(request, "changed")? {
            [Some(time)] => Ok(Duration::from_nanos(time)),
            [None] => Err(line.fail("it does not say what changes took")),
        }
    }

    fn failure(&self) -> Option<String> {
        self.line().failure.clone()
    }
}

/// Keys to look up. Once a request fails, no more are sent, and the row has the error.
struct RemoteKeys<'a, K: Key> {
    of: &'a Remote<K>,
    keys: Vec<K>,
    /// All answers, in one shape: one request for each block would be slow.
    answers: Option<(Shape, Vec<u32>)>,
    taken: Range<usize>,
}

impl<K: Key> RemoteKeys<'_, K> {
    fn ask(&mut self, shape: Shape) -> Result<(), String> {
        if self.answers.as_ref().is_none_or(|(answered, _)| *answered != shape) {
            let mut line = self.of.line();
            let first = line.load(&self.keys)?;
            let answers = line.answers(shape)?;
            self.answers = Some((shape, answers[first..first + self.keys.len()].to_vec()));
        }
        Ok(())
    }
}

impl<K: Key> Prepared for RemoteKeys<'_, K> {
    fn lookup(&mut self, shape: Shape, keys: Range<usize>) {
        self.taken = keys;
        if self.ask(shape).is_err() {
            self.answers = None;
        }
    }

    fn time(&mut self, shape: Shape, passes: usize) -> Option<Spent> {
        let mut line = self.of.line();
        let none = Spent { wall: Duration::ZERO, thread: None };
        let Ok(first) = line.load(&self.keys) else { return Some(none) };
        let ((shape, batch), count) = (words(shape), self.keys.len());
        let request = format!("time {shape} {batch} {first} {count} {passes}\n");
        match line.numbers(request.into_bytes(), "time") {
            Ok([Some(wall), thread]) => {
                Some(Spent { wall: Duration::from_nanos(wall), thread: thread.map(Duration::from_nanos) })
            }
            Ok([None, _]) => {
                line.fail("it does not say what lookups took");
                Some(none)
            }
            Err(_) => Some(none),
        }
    }

    fn take(&mut self, results: &mut [Option<NextHop>]) {
        // Only the answers of the last block, as for every engine.
        let first = self.taken.end.saturating_sub(results.len());
        let answers = self.answers.as_ref().map_or(&[][..], |(_, answers)| &answers[first..]);
        for (at, result) in results.iter_mut().enumerate() {
            *result = NextHop::new(answers.get(at).copied().unwrap_or(u32::MAX));
        }
    }
}
