//! An open table file.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::fib::registry::Engines;
use crate::memory::{Limits, Memory};
use crate::net::{IntoIpAddr, NextHop};

use super::column::{ColumnValue, StoredColumn};
use super::error::{FileError, FileErrorKind};
use super::open::{self, Opened};
use super::part::Part;

/// An open table file: a copy of it, or the file where it lies.
///
/// Its engines are `Send + Sync` and are shared by reference, as built engines are.
#[derive(Debug)]
pub struct TableFile {
    /// The IPv4 part.
    pub v4: Part<u32>,
    /// The IPv6 part.
    pub v6: Part<u128>,
    columns: Vec<StoredColumn>,
    /// Which engines it may have.
    engines: Engines,
    /// The file if it is mapped. One thread at a time reads it.
    mapped: Option<Mutex<File>>,
}

impl TableFile {
    /// Opens a copy of a file, with default [`Limits`] and in huge pages where there are any. Every checksum is verified, and
    /// every invariant of engines and routes, so that lookups cannot meet damage.
    ///
    /// # Errors
    /// When the file is not a table file, newer than this code, truncated or altered, or memory runs out.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::open_within(path, Limits::default())
    }

    /// Like [`open`](Self::open), within `limits`, which count all that is kept of the file together.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_within(path: impl AsRef<Path>, limits: Limits) -> Result<Self, FileError> {
        Self::open_with(path, limits, Engines::OWN)
    }

    /// Like [`open_within`](Self::open_within), with a list of engines that the file may have.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_with(path: impl AsRef<Path>, limits: Limits, engines: Engines) -> Result<Self, FileError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| FileErrorKind::io("opened")(error).at(path))?;
        Self::copy_with(&file, limits, engines).map_err(|error| error.of(path))
    }

    /// Opens a copy of the bytes of a file, as [`open_within`](Self::open_within) does.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn copy_of(input: impl Read + Seek, limits: Limits) -> Result<Self, FileError> {
        Self::copy_with(input, limits, Engines::OWN)
    }

    /// Like [`copy_of`](Self::copy_of), with a list of engines that the file may have: more for tests of engines in other crates, fewer for small
    /// programs.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    #[doc(hidden)]
    pub fn copy_with(input: impl Read + Seek, limits: Limits, engines: Engines) -> Result<Self, FileError> {
        Ok(Self::new(open::copy(input, limits, engines).map_err(FileErrorKind::nowhere)?, engines, None))
    }

    /// Opens a file where it lies, without copying it: all processes that map it share its pages.
    ///
    /// Header and section table are verified; [`verify`](Self::verify) verifies the rest. The file must not change:
    /// replace it by renaming another one over it, as [`save`](super::save) does, and never write into it. If a process writes
    /// into it nevertheless, or the file was damaged before, a lookup may return a wrong answer or panic, and a value may be another one
    /// or missing. However, no access reads outside the file and each ends. If the file gets shorter, the system ends the processes that
    /// use it (`SIGBUS`).
    ///
    /// Engines whose words are not all atomic ([`Engine::is_mapped`](crate::fib::registry::Engine::is_mapped)) are verified copies, as
    /// are values of files of version 1; [`Part::is_mapped`] tells. Where the system maps no files (all but 64-bit Linux with
    /// little-endian words) the whole is a verified copy, as [`is_mapped`](Self::is_mapped) tells.
    ///
    /// # Errors
    /// When the file is not a table file, newer than this code, truncated, or altered in a part that is verified.
    pub fn map(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::map_with(path, Engines::OWN)
    }

    /// Like [`map`](Self::map), with a list of engines that the file may have.
    ///
    /// # Errors
    /// As for [`map`](Self::map).
    #[doc(hidden)]
    pub fn map_with(path: impl AsRef<Path>, engines: Engines) -> Result<Self, FileError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| FileErrorKind::io("opened")(error).at(path))?;
        Self::map_file(file, path, engines)
    }

    /// Like [`map`](Self::map), and verifies every checksum before it returns. It reads the file once and keeps no copy, which suits a
    /// few lookups: a program that makes many is better off with [`open`](Self::open). Damage is found, as by `open`. A false file
    /// whose checksums are right can give any answer, but lookups stay within it.
    ///
    /// # Errors
    /// When the file is not a table file, newer than this code, truncated, or altered anywhere.
    pub fn map_summed(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| FileErrorKind::io("opened")(error).at(path))?;
        Self::map_of(file, path, Engines::OWN, true)
    }

    pub(super) fn map_file(file: File, path: &Path, engines: Engines) -> Result<Self, FileError> {
        Self::map_of(file, path, engines, false)
    }

    fn map_of(file: File, path: &Path, engines: Engines, summed: bool) -> Result<Self, FileError> {
        match open::map(&file, Limits::default(), engines, summed).map_err(|kind| kind.at(path))? {
            Some(opened) => Ok(Self::new(opened, engines, Some(Mutex::new(file)))),
            None => Self::copy_with(&file, Limits::default(), engines).map_err(|error| error.of(path)),
        }
    }

    fn new(Opened { parts, columns }: Opened, engines: Engines, mapped: Option<Mutex<File>>) -> Self {
        Self { v4: parts.v4, v6: parts.v6, columns, engines, mapped }
    }

    /// Returns whether the file is used where it lies.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    /// Verifies every checksum and every invariant again. For a mapped file this is the first time, and it verifies a copy. As
    /// long as no process writes into the file, it is then as good as an opened copy.
    ///
    /// # Errors
    /// The first fault that is found.
    pub fn verify(&self) -> Result<(), FileError> {
        if let Some(file) = &self.mapped {
            // A panic of another thread while it read the file has changed nothing.
            let file = file.lock().unwrap_or_else(PoisonError::into_inner);
            return Self::copy_with(&*file, Limits::default(), self.engines).map(drop);
        }
        let parts = open::verify(&self.v4).and_then(|()| open::verify(&self.v6));
        parts
            .and_then(|()| self.columns.iter().try_for_each(open::verify_column))
            .map_err(FileErrorKind::nowhere)
    }

    /// Returns the next hop of the longest prefix that contains `address`; `None` if no route matches.
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<NextHop> {
        address.by_family(|key| self.v4.lookup(key), |key| self.v6.lookup(key))
    }

    /// Returns the columns of values by id. A file of version 1 with values has one column, [`VALUE`](super::VALUE).
    #[must_use]
    pub fn columns(&self) -> &[StoredColumn] {
        &self.columns
    }

    /// Returns the column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&StoredColumn> {
        self.columns.iter().find(|column| column.name() == name)
    }

    /// Returns the value of an id in the first column, if there is one.
    #[must_use]
    pub fn value(&self, id: NextHop) -> Option<ColumnValue<'static>> {
        self.columns.first()?.value(id)
    }

    /// Returns the memory of engines, routes and columns, mapped memory included.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let columns = self.columns.iter().map(StoredColumn::memory);
        columns.fold(self.v4.memory() + self.v6.memory(), |sum, column| sum + column)
    }
}
