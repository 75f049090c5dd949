//! Why a file was not loaded.

use core::fmt;
use std::io;
use std::sync::Arc;

use fibula::file::FileError;
use fibula::memory::OutOfMemory;

use super::choice::PeerName;
use super::report::{BadLine, Truncation};
use super::routes::{Misfit, Refusal};
use crate::compression::{Compression, OtherForm, Size};
use crate::document;
use crate::mrt::Fault;
use crate::next_hops::NextHopsError;

/// Why a file was not loaded. Prints with the file's name, and the line if there is one.
#[derive(Debug)]
pub struct LoadError {
    name: Arc<str>,
    /// Boxed, because results are as large as their errors and most calls succeed.
    kind: Box<LoadErrorKind>,
}

#[derive(Debug)]
pub(super) enum LoadErrorKind {
    Open(io::Error),
    Read {
        bytes: u64,
        error: io::Error,
    },
    Damaged {
        compression: Compression,
        bytes: u64,
        error: io::Error,
    },
    /// The compressed stream needs more memory than it may take.
    Window(io::Error),
    /// The file has a form that is not read.
    OtherForm {
        compression: Compression,
        form: OtherForm,
    },
    /// The compiled table is refused.
    Compiled(FileError),
    /// The file ends as a MaxMind database, and is none that can be read.
    MaxMind(Box<maxminddb::MaxMindDbError>),
    /// The compiled table can be looked up in, and has no routes.
    WithoutRoutes,
    /// There was neither a route nor a record in this many bytes.
    Unsettled {
        bytes: u64,
    },
    /// Most lines are not routes: how many of how many, and the first one.
    NoRoutes {
        bad: u64,
        lines: u64,
        first: Option<BadLine>,
    },
    /// The text is in a known form that is not read: its name, and the form to use instead.
    Unread {
        form: &'static str,
        instead: &'static str,
    },
    /// The columns that hold the routes are not found.
    NoColumns(String),
    /// No route is in the VRF that is read: its name, and those that the file has.
    NoVrf {
        name: Box<str>,
        others: Vec<String>,
    },
    Line(BadLine),
    Truncated(Truncation),
    Fault(Fault),
    Memory {
        place: LoadPosition,
        error: OutOfMemory,
    },
    /// The routes of all peers, which are counted to choose one, take too much memory.
    Counting {
        place: LoadPosition,
        error: OutOfMemory,
    },
    NextHops {
        place: LoadPosition,
        error: NextHopsError,
    },
    /// A value does not fit the type that was asked for.
    Type {
        place: LoadPosition,
        misfit: Box<Misfit>,
    },
    Mixed {
        place: LoadPosition,
    },
    NoPeer {
        names: Vec<PeerName>,
        peers: usize,
    },
    TooLongToReadTwice {
        limit_bytes: usize,
    },
    /// The source is an empty list of files.
    NoFile,
    Threads(io::Error),
    Stopped(io::Error),
}

/// Where loading stopped.
#[derive(Debug, Clone, Copy)]
pub(super) enum LoadPosition {
    Line(u64),
    /// A byte of the decompressed file, approximately.
    Byte(u64),
    End,
}

impl fmt::Display for LoadPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Byte(byte) => write!(f, ": near byte {byte}"),
            Self::End => f.write_str(": at its end"),
        }
    }
}

impl Refusal {
    pub(super) fn at(self, place: LoadPosition) -> LoadErrorKind {
        match self {
            Self::Memory(error) => LoadErrorKind::Memory { place, error },
            Self::NextHops(error) => LoadErrorKind::NextHops { place, error },
            Self::Type(misfit) => LoadErrorKind::Type { place, misfit },
            Self::Mixed => LoadErrorKind::Mixed { place },
            Self::Stopped(error) => LoadErrorKind::Stopped(error),
        }
    }
}

impl LoadError {
    pub(super) fn new(name: &Arc<str>, kind: LoadErrorKind) -> Self {
        Self { name: Arc::clone(name), kind: Box::new(kind) }
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the line at which loading stopped, counted from 1; `None` if no line was at fault.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match &*self.kind {
            LoadErrorKind::Line(bad) => Some(bad.line()),
            LoadErrorKind::Memory { place: LoadPosition::Line(line), .. }
            | LoadErrorKind::Counting { place: LoadPosition::Line(line), .. }
            | LoadErrorKind::Type { place: LoadPosition::Line(line), .. }
            | LoadErrorKind::NextHops { place: LoadPosition::Line(line), .. } => Some(*line),
            _ => None,
        }
    }

    /// Returns the bad line at which a strict load stopped, or the first bad line if most lines are bad.
    #[must_use]
    pub fn bad_line(&self) -> Option<&BadLine> {
        match &*self.kind {
            LoadErrorKind::Line(bad) => Some(bad),
            LoadErrorKind::NoRoutes { first, .. } => first.as_ref(),
            _ => None,
        }
    }

    /// Returns the cut in the compressed stream at which a strict load stopped.
    #[must_use]
    pub fn truncation(&self) -> Option<&Truncation> {
        match &*self.kind {
            LoadErrorKind::Truncated(truncation) => Some(truncation),
            _ => None,
        }
    }

    /// Returns the memory that the load needed and could not get.
    #[must_use]
    pub fn out_of_memory(&self) -> Option<OutOfMemory> {
        match &*self.kind {
            LoadErrorKind::Memory { error, .. } | LoadErrorKind::Counting { error, .. } => Some(*error),
            _ => None,
        }
    }

    /// Returns the system's error if the file could not be opened or read.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match &*self.kind {
            LoadErrorKind::Open(error) | LoadErrorKind::Read { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns the damage of an MRT file at which a strict load stopped.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match &*self.kind {
            LoadErrorKind::Fault(fault) => Some(fault),
            _ => None,
        }
    }

    /// Returns the error that the event callback returned.
    ///
    /// # Errors
    /// This error, if it has another cause.
    pub fn stopped(self) -> Result<io::Error, Self> {
        match *self.kind {
            LoadErrorKind::Stopped(error) => Ok(error),
            kind => Err(Self { name: self.name, kind: Box::new(kind) }),
        }
    }

    /// Returns the names given for peers, if no peer of the file has any of them.
    #[must_use]
    pub fn unknown_peers(&self) -> Option<&[PeerName]> {
        match &*self.kind {
            LoadErrorKind::NoPeer { names, .. } => Some(names),
            _ => None,
        }
    }

    /// Returns whether the content is at fault, rather than the system or a limit.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        matches!(
            *self.kind,
            LoadErrorKind::Line(_)
                | LoadErrorKind::Truncated(_)
                | LoadErrorKind::Damaged { .. }
                | LoadErrorKind::Fault(_)
                | LoadErrorKind::OtherForm { .. }
                | LoadErrorKind::Compiled(_)
                | LoadErrorKind::MaxMind(_)
                | LoadErrorKind::WithoutRoutes
                | LoadErrorKind::Unread { .. }
                | LoadErrorKind::NoColumns(_)
                | LoadErrorKind::NoVrf { .. }
                | LoadErrorKind::Unsettled { .. }
                | LoadErrorKind::NoRoutes { .. }
                | LoadErrorKind::Type { .. }
        )
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &*self.kind {
            LoadErrorKind::Open(error) => write!(f, "{name}: cannot be opened: {error}"),
            LoadErrorKind::Read { bytes, error } => {
                write!(f, "{name}: cannot be read after byte {bytes}: {error}")
            }
            LoadErrorKind::Damaged { compression, bytes, error } => {
                write!(
                    f,
                    "{name}: the {compression} stream is damaged, noticed at byte {bytes} of the file: {error}"
                )
            }
            LoadErrorKind::Window(error) => write!(f, "{name}: {error}"),
            LoadErrorKind::OtherForm { compression, form } => other_form(f, name, *compression, *form),
            // It names the file, if it knows it.
            LoadErrorKind::Compiled(error) if error.path().is_some() => error.fmt(f),
            LoadErrorKind::Compiled(error) => write!(f, "{name}: {error}"),
            LoadErrorKind::MaxMind(error) => write!(f, "{name}: not a readable MaxMind database: {error}"),
            LoadErrorKind::WithoutRoutes => write!(
                f,
                "{name}: compiled without its routes, which are needed here; make it again with them, or use the table that it \
                 was made from"
            ),
            LoadErrorKind::Unsettled { bytes } => {
                write!(f, "{name}: no route in the first {} MiB", bytes >> 20)
            }
            LoadErrorKind::NoRoutes { bad, lines, first } => {
                write!(f, "{name}: not a routing table: ")?;
                match lines {
                    1 => f.write_str("its only line is not a route")?,
                    _ if bad == lines => write!(f, "none of its first {lines} lines is a route")?,
                    _ => write!(f, "{bad} of its first {lines} lines are not routes")?,
                }
                if let Some(first) = first {
                    write!(f, "; line {}, column {}: ", first.line(), first.error().column())?;
                    write!(f, "{}: '{}'", first.error().reason(), first.excerpt())?;
                }
                write!(f, "; read are {}, and more: docs/guide/routes.md", document::families())
            }
            LoadErrorKind::Unread { form, instead } => write!(f, "{name}: {form} is not read; {instead}"),
            LoadErrorKind::NoColumns(reason) => write!(f, "{name}: {reason}"),
            LoadErrorKind::NoVrf { name: vrf, others } => {
                let more = if others.len() > 8 { ", and others" } else { "" };
                let others = others[..others.len().min(8)].join(", ");
                write!(f, "{name}: no route is in the VRF '{vrf}'; choose one with --vrf: {others}{more}")
            }
            LoadErrorKind::Line(bad) => bad.fmt(f),
            LoadErrorKind::Truncated(truncation) => truncation.fmt(f),
            LoadErrorKind::Fault(fault) => write!(f, "{name}: {fault}"),
            LoadErrorKind::Memory { place, error } => {
                write!(f, "{name}{place}: the table cannot grow: {error}")
            }
            LoadErrorKind::Counting { place, error } => write!(
                f,
                "{name}{place}: to find the peer with most routes those of all peers are counted: {error}; name a peer, \
                 or take the best path of all peers"
            ),
            LoadErrorKind::NextHops { place, error } => write!(f, "{name}{place}: {error}"),
            LoadErrorKind::Type { place, misfit } => {
                let text: String = misfit.text.chars().take(40).collect();
                let more = if text.len() < misfit.text.len() { "..." } else { "" };
                let (value, text, kind) = (&misfit.value, text.escape_debug(), misfit.kind);
                write!(f, "{name}{place}: the value '{value}' is '{text}{more}', which is not of type {kind}")
            }
            LoadErrorKind::Mixed { place } => write!(
                f,
                "{name}{place}: updates follow a table dump with several paths a prefix: choose one peer, or load the \
                 dump alone"
            ),
            LoadErrorKind::NoPeer { names, peers } => {
                let names: Vec<String> = names.iter().map(PeerName::to_string).collect();
                write!(f, "{name}: no peer matches {} (the file has {peers} peers)", names.join(" or "))
            }
            LoadErrorKind::TooLongToReadTwice { limit_bytes } => write!(
                f,
                "{name}: to find the peer with most routes the stream is read twice, and at most {} of it can be kept: \
                 name a peer, take the best path of all peers, or give a file instead of a stream",
                Size(*limit_bytes as u64)
            ),
            LoadErrorKind::NoFile => f.write_str("no file to load"),
            LoadErrorKind::Stopped(error) => error.fmt(f),
            LoadErrorKind::Threads(error) => {
                write!(f, "{name}: cannot start a thread to decode it: {error}")
            }
        }
    }
}

/// Writes the form of the file and, if there is a usual way, how to read it.
fn other_form(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    compression: Compression,
    form: OtherForm,
) -> fmt::Result {
    let OtherForm { name: what, remedy } = form;
    write!(f, "{name} is {what}")?;
    if compression != Compression::Plain {
        write!(f, " in {compression}")?;
    }
    match (remedy, compression) {
        (Some(remedy), Compression::Plain) => {
            write!(f, "; unpack it first: {} | fibula ... --table -", remedy.replace("{}", name))
        }
        (Some(remedy), _) => {
            let inner = remedy.replace(" {}", if remedy.starts_with("tar") { " -" } else { "" });
            write!(f, "; unpack it first: {compression} -dc {name} | {inner} | fibula ... --table -")
        }
        (None, _) => f.write_str(", which is not read here"),
    }
}

impl core::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &*self.kind {
            LoadErrorKind::Open(error)
            | LoadErrorKind::Read { error, .. }
            | LoadErrorKind::Damaged { error, .. } => Some(error),
            LoadErrorKind::Threads(error) | LoadErrorKind::Stopped(error) | LoadErrorKind::Window(error) => {
                Some(error)
            }
            LoadErrorKind::Memory { error, .. } | LoadErrorKind::Counting { error, .. } => Some(error),
            LoadErrorKind::NextHops { error, .. } => Some(error),
            LoadErrorKind::Fault(fault) => Some(fault),
            LoadErrorKind::Compiled(error) => Some(error),
            LoadErrorKind::MaxMind(error) => Some(error),
            LoadErrorKind::Line(_)
            | LoadErrorKind::Unread { .. }
            | LoadErrorKind::NoColumns(_)
            | LoadErrorKind::NoVrf { .. }
            | LoadErrorKind::WithoutRoutes
            | LoadErrorKind::Truncated(_)
            | LoadErrorKind::Mixed { .. }
            | LoadErrorKind::Type { .. }
            | LoadErrorKind::OtherForm { .. }
            | LoadErrorKind::Unsettled { .. }
            | LoadErrorKind::NoRoutes { .. }
            | LoadErrorKind::NoPeer { .. }
            | LoadErrorKind::NoFile
            | LoadErrorKind::TooLongToReadTwice { .. } => None,
        }
    }
}
