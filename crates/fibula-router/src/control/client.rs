//! Queries a running router over its control socket.

use core::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fibula::net::IpPrefix;
use serde::de::DeserializeOwned;

use crate::api::{
    self, AnswerError, Bfd, Comparison, Explanation, Feed, Filters, FoundRoute, ListedRoute, ListingEnd,
    Neighbour, Stats, Top, TopBy, TraceEnd,
};

/// How long the client waits for an answer, or for the next line of a listing.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a comparison may take, because the kernel's table may have to be read several times.
const PATIENCE_VERIFY: Duration = Duration::from_secs(600);

/// Why a query has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum AskError {
    /// No router answers at this socket, or not in time, or its answer ends early.
    NoAnswer(PathBuf, io::Error),
    /// The router refused the question, or its answer is something else.
    Answer(AnswerError),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The system's words for it are of a resource that is unavailable.
            Self::NoAnswer(socket, error) if error.kind() == io::ErrorKind::WouldBlock => {
                let socket = socket.display();
                write!(f, "the router at {socket} does not answer in time: it is busy, or stopped; ask again")
            }
            Self::NoAnswer(socket, error) => {
                let socket = socket.display();
                write!(f, "no router answers at {socket}: {error}; is one running, and is it yours?")
            }
            Self::Answer(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AskError {}

impl From<AnswerError> for AskError {
    fn from(error: AnswerError) -> Self {
        Self::Answer(error)
    }
}

/// An answer of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered<A> {
    /// The answer.
    pub answer: A,
    /// The line of JSON that it was read from. It also has the fields that a newer router adds.
    pub line: String,
}

/// Queries the counters of ports, VRFs and comparisons.
///
/// # Errors
/// When no router answers at `socket`, or it answers something else.
pub fn stats(socket: &Path) -> Result<Answered<Stats>, AskError> {
    ask(socket, "stats", PATIENCE)
}

/// Queries the neighbours and own addresses.
///
/// # Errors
/// When no router answers at `socket`, or it answers something else.
pub fn neighbours(socket: &Path) -> Result<Answered<Vec<Neighbour>>, AskError> {
    ask(socket, "neigh", PATIENCE)
}

/// Queries the feeds and their states.
///
/// # Errors
/// When no router answers at `socket`, or it answers something else.
pub fn feeds(socket: &Path) -> Result<Answered<Vec<Feed>>, AskError> {
    ask(socket, "feeds", PATIENCE)
}

/// Queries the sessions of BFD.
///
/// # Errors
/// When no router answers at `socket`, or it answers something else.
pub fn bfd(socket: &Path) -> Result<Answered<Bfd>, AskError> {
    ask(socket, "bfd", PATIENCE)
}

/// Queries the rules and their hits.
///
/// # Errors
/// When no router answers at `socket`, or it answers something else.
pub fn filters(socket: &Path) -> Result<Answered<Filters>, AskError> {
    ask(socket, "filters", PATIENCE)
}

/// Queries what would become of a packet that comes by an interface.
///
/// # Errors
/// When no router answers at `socket`, when it refuses, or when it answers something else.
pub fn explain(socket: &Path, packet: &PacketQuestion<'_>) -> Result<Answered<Explanation>, AskError> {
    let PacketQuestion { source, destination, input, protocol, ports, dscp } = packet;
    let question =
        format!("explain {source} {destination} {input} {protocol} {} {} {dscp}", ports.0, ports.1);
    ask(socket, &question, PATIENCE)
}

/// An imagined packet, which the router explains.
#[derive(Debug, Clone, Copy)]
pub struct PacketQuestion<'n> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Name of the interface on which it comes.
    pub input: &'n str,
    /// Protocol: a name or a number.
    pub protocol: &'n str,
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Code point: a name or a number.
    pub dscp: &'n str,
}

/// Traces the first `count` packets that a filter matches, for at most so many seconds. Calls `each` with every packet.
///
/// # Errors
/// When no router answers at `socket`, when it refuses, or when its answer ends early or is something else. Also returns the
/// errors of `each`.
pub fn trace<E: From<AskError>>(
    socket: &Path,
    (count, seconds): (u64, u64),
    filter: &str,
    mut each: impl FnMut(&Answered<Explanation>) -> Result<(), E>,
) -> Result<Answered<TraceEnd>, E> {
    let no_answer = |error| AskError::NoAnswer(socket.to_owned(), error);
    let patience = Duration::from_secs(seconds) + PATIENCE;
    let stream = send(socket, &format!("trace {count} {seconds} {filter}"), patience).map_err(no_answer)?;
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(no_answer)?;
        match api::read::<Explanation>(&line) {
            Ok(answer) => each(&Answered { answer, line })?,
            // The end is a line of another form, so a trace without it was cut off.
            Err(error) => match api::read::<TraceEnd>(&line) {
                Ok(answer) => return Ok(Answered { answer, line }),
                Err(_) => return Err(AskError::Answer(error).into()),
            },
        }
    }
    Err(no_answer(io::ErrorKind::UnexpectedEof.into()).into())
}

/// Queries the largest of the packets that were sampled in the last `seconds`: at most `count` rows.
///
/// # Errors
/// When no router answers at `socket`, when it does not sample or knows no origins, or when it answers something else.
pub fn top(socket: &Path, by: TopBy, seconds: u64, count: u64) -> Result<Answered<Top>, AskError> {
    ask(socket, &format!("top {} {seconds} {count}", by.name()), PATIENCE)
}

/// Makes the router compare everything. This takes minutes if the kernel's tables are large.
///
/// # Errors
/// When no router answers at `socket`, when it refuses because it has too many comparisons to do, or when it answers something
/// else.
pub fn verify(socket: &Path) -> Result<Answered<Comparison>, AskError> {
    ask(socket, "verify", PATIENCE_VERIFY)
}

/// Queries the route of an address in a VRF, with `changes` also the last changes of all prefixes that contain it.
///
/// # Errors
/// When no router answers at `socket`, it has no such VRF, or it answers something else.
pub fn route_of(
    socket: &Path,
    vrf: &str,
    address: IpAddr,
    changes: bool,
) -> Result<Answered<FoundRoute>, AskError> {
    let changes = if changes { " changes" } else { "" };
    ask(socket, &format!("get {vrf} {address}{changes}"), PATIENCE)
}

/// Which routes of a router to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoutesOf<'q> {
    /// Name of the VRF.
    pub vrf: &'q str,
    /// The prefix; `None`: all.
    pub prefix: Option<IpPrefix>,
    /// Also the routes that contain the prefix.
    pub covers: bool,
    /// Also the routes inside it.
    pub inside: bool,
    /// Only routes of the feed of this name.
    pub feed: Option<&'q str>,
    /// Also list the last changes, including the changes of prefixes that no longer have a route.
    pub changes: bool,
}

impl fmt::Display for RoutesOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "show {}", self.vrf)?;
        if let Some(prefix) = self.prefix {
            write!(f, " {prefix}")?;
        }
        let words = [("covers", self.covers), ("inside", self.inside), ("changes", self.changes)];
        for (word, _) in words.iter().filter(|word| word.1) {
            write!(f, " {word}")?;
        }
        // The name is the rest of the line, because it may have spaces.
        self.feed.map_or(Ok(()), |feed| write!(f, " feed={feed}"))
    }
}

/// Queries the routes of a VRF: all routes, or the routes of a prefix. With `covers` the listing also has the routes around the
/// prefix, and with `inside` the routes inside it. Calls `each` with every route, in order.
///
/// # Errors
/// When no router answers at `socket`, when it refuses, or when its answer ends early or is something else. Also returns the
/// errors of `each`.
pub fn list_routes<E: From<AskError>>(
    socket: &Path,
    question: &RoutesOf<'_>,
    mut each: impl FnMut(&Answered<ListedRoute>) -> Result<(), E>,
) -> Result<(), E> {
    let no_answer = |error| AskError::NoAnswer(socket.to_owned(), error);
    let stream = send(socket, &question.to_string(), PATIENCE).map_err(no_answer)?;
    for line in BufReader::new(stream).lines() {
        match read_line(line.map_err(no_answer)?).map_err(AskError::Answer)? {
            Some(route) => each(&route)?,
            None => return Ok(()),
        }
    }
    Err(no_answer(io::ErrorKind::UnexpectedEof.into()).into())
}

/// Reads a line of a listing; `None` is its end.
fn read_line(line: String) -> Result<Option<Answered<ListedRoute>>, AnswerError> {
    match api::read(&line) {
        Ok(answer) => Ok(Some(Answered { answer, line })),
        // The end is a line of another form, so a listing without it was cut off.
        Err(_) if api::read::<ListingEnd>(&line).is_ok() => Ok(None),
        Err(error) => Err(error),
    }
}

fn ask<A: DeserializeOwned>(
    socket: &Path,
    question: &str,
    patience: Duration,
) -> Result<Answered<A>, AskError> {
    let answer = || {
        let mut line = String::new();
        send(socket, question, patience)?.read_to_string(&mut line)?;
        // A router that ends closes its connections without an answer. Report that here: an empty line would read as invalid
        // JSON.
        if line.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
    };
    let mut line = answer().map_err(|error| AskError::NoAnswer(socket.to_owned(), error))?;
    line.truncate(line.trim_end().len());
    Ok(Answered { answer: api::read(&line)?, line })
}

/// Sends a question.
fn send(socket: &Path, question: &str, patience: Duration) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    Ok(stream)
}

#[cfg(test)]
mod tests;
