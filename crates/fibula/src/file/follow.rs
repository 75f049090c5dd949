//! Follows a file that is replaced by newer versions.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fib::registry::Engines;
use crate::memory::Limits;

use super::error::{FileError, FileErrorKind};
use super::format::HEADER_BYTES;
use super::table::TableFile;

/// Follows a file that is replaced by renaming: a process that answers from it gets each new table without a restart.
///
/// One thread calls [`poll`](Self::poll) now and then. Each thread that looks addresses up takes [`table`](Self::table) for a
/// batch or longer. The table before is freed, or unmapped, with the last `Arc` of it.
///
/// ```
/// use fibula::file::{self, Contents, Follower};
/// use fibula::net::{NextHop, Route};
/// use fibula::rib::Rib;
///
/// # let folder = std::env::temp_dir().join(format!("fibula-follower-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("table.fibula");
/// let mut rib = Rib::<u32>::default();
/// let mut contents = Contents::default();
/// let fib = fibula::fib::build(&rib)?;
/// contents.v4.fib = Some(&*fib);
/// file::save(&path, &contents)?;
///
/// let mut follower = Follower::open(&path)?;
/// assert!(follower.table().lookup([192, 0, 2, 1]).is_none());
///
/// rib.insert(Route::new("192.0.2.0/24".parse()?, NextHop::try_from(1)?))?;
/// let fib = fibula::fib::build(&rib)?;
/// contents.v4.fib = Some(&*fib);
/// file::save(&path, &contents)?;
/// assert!(follower.poll()?);
/// assert!(follower.table().lookup([192, 0, 2, 1]).is_some());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    way: OpenMode,
    engines: Engines,
    /// The file that is served, or that was refused last.
    seen: Stamp,
    /// Of the table.
    stamp: FileStamp,
    table: Arc<TableFile>,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy)]
enum OpenMode {
    Copy(Limits),
    Map,
}

impl Follower {
    /// Opens a copy of the file, and later copies of the files that replace it.
    ///
    /// # Errors
    /// As for [`TableFile::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::open_within(path, Limits::default())
    }

    /// Like [`open`](Self::open), within `limits`, which count all that is kept of the file together.
    ///
    /// # Errors
    /// As for [`TableFile::open`].
    pub fn open_within(path: impl AsRef<Path>, limits: Limits) -> Result<Self, FileError> {
        Self::open_with(path, limits, Engines::OWN)
    }

    /// Maps the file, and later the files that replace it.
    ///
    /// # Errors
    /// As for [`TableFile::map`].
    pub fn map(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::map_with(path, Engines::OWN)
    }

    /// Like [`open_within`](Self::open_within), with a list of engines that files may have.
    ///
    /// # Errors
    /// As for [`TableFile::open`].
    #[doc(hidden)]
    pub fn open_with(path: impl AsRef<Path>, limits: Limits, engines: Engines) -> Result<Self, FileError> {
        Self::new(path.as_ref(), OpenMode::Copy(limits), engines)
    }

    /// Like [`map`](Self::map), with a list of engines that files may have.
    ///
    /// # Errors
    /// As for [`TableFile::map`].
    #[doc(hidden)]
    pub fn map_with(path: impl AsRef<Path>, engines: Engines) -> Result<Self, FileError> {
        Self::new(path.as_ref(), OpenMode::Map, engines)
    }

    fn new(path: &Path, way: OpenMode, engines: Engines) -> Result<Self, FileError> {
        let (stamp, table) = load(path, way, engines);
        let (stamp, table) = (stamp.map_err(|error| FileErrorKind::io("opened")(error).at(path))?, table?);
        let table = Arc::new(table);
        Ok(Self { path: path.to_owned(), way, engines, seen: stamp.seen.clone(), stamp, table })
    }

    /// Checks whether the file was replaced, which takes one system call, and opens the new one. Returns whether
    /// [`table`](Self::table) has changed.
    ///
    /// # Errors
    /// When the new file cannot be opened or is refused. The table before is kept. A file that was refused for its contents
    /// is not tried again until it is replaced. However, errors of the system are returned at every call while they last.
    pub fn poll(&mut self) -> Result<bool, FileError> {
        let failed = |error| FileErrorKind::io("opened")(error).at(&self.path);
        if Stamp::of(&fs::metadata(&self.path).map_err(failed)?) == self.seen {
            return Ok(false);
        }
        // The file may have been replaced again since the check, so the stamp is taken from the file that is opened.
        let (stamp, table) = load(&self.path, self.way, self.engines);
        let stamp = stamp.map_err(failed)?;
        match table {
            Ok(table) => {
                self.seen = stamp.seen.clone();
                (self.stamp, self.table) = (stamp, Arc::new(table));
                Ok(true)
            }
            Err(error) => {
                // For errors of the system the stamp stays as it was, so that the next call tries again.
                if error.is_of_the_file() {
                    self.seen = stamp.seen;
                }
                Err(error)
            }
        }
    }

    /// Returns the stamp of the table that was opened last.
    #[must_use]
    pub fn stamp(&self) -> FileStamp {
        self.stamp.clone()
    }

    /// Returns the table that was opened last.
    #[must_use]
    pub fn table(&self) -> &Arc<TableFile> {
        &self.table
    }
}

fn load(
    path: &Path,
    way: OpenMode,
    engines: Engines,
) -> (io::Result<FileStamp>, Result<TableFile, FileError>) {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            // Both results need the error, which cannot be cloned.
            let again = io::Error::new(error.kind(), error.to_string());
            return (Err(error), Err(FileErrorKind::io("opened")(again).at(path)));
        }
    };
    // Before the file is read, so that a change while it is read is noticed later.
    let stamp = FileStamp::of(&file);
    let table = match way {
        OpenMode::Copy(limits) => {
            TableFile::copy_with(&file, limits, engines).map_err(|error| error.of(path))
        }
        OpenMode::Map => TableFile::map_file(file, path, engines),
    };
    (stamp, table)
}

/// Which file it is: its place on the disk, its size, its times and the checksum of its header. Two processes that have equal stamps have
/// the same table. As text it goes into logs, and beside a path that another process shall open.
///
/// ```
/// use fibula::file::{self, Contents, FileStamp, Follower};
///
/// # let folder = std::env::temp_dir().join(format!("fibula-stamp-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("table.fibula");
/// file::save(&path, &Contents::default())?;
/// let mut follower = Follower::open(&path)?;
/// let before = follower.stamp();
/// assert_eq!(before, FileStamp::of(&std::fs::File::open(&path)?)?);
/// file::save(&path, &Contents::default())?;
/// assert!(follower.poll()? && follower.stamp().to_string() != before.to_string());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamp {
    seen: Stamp,
    /// Of the first bytes, as far as there are any.
    header_crc: u32,
}

impl FileStamp {
    /// Returns the stamp of a file, whatever is in it. Reads its first bytes, and leaves it at its beginning.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn of(file: &File) -> io::Result<Self> {
        let seen = Stamp::of(&file.metadata()?);
        let mut head = Vec::new();
        // From the beginning and back, because callers read the same file.
        let mut input = file;
        input.rewind()?;
        input.take(HEADER_BYTES as u64).read_to_end(&mut head)?;
        input.rewind()?;
        Ok(Self { seen, header_crc: crc32fast::hash(&head) })
    }
}

impl core::fmt::Display for FileStamp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        #[cfg(unix)]
        self.seen.inode.iter().try_for_each(|number| write!(f, "{number:x}-"))?;
        #[cfg(not(unix))]
        if let Some(since) =
            self.seen.modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        {
            write!(f, "{:x}-", since.as_nanos())?;
        }
        write!(f, "{:x}-{:08x}", self.seen.bytes, self.header_crc)
    }
}

/// Distinguishes a file from one that replaced it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
    /// The device, the file's number on it, and when that file was changed.
    #[cfg(unix)]
    inode: [i64; 4],
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        // Numbers of files are reused and times are coarse, so only all of these together distinguish two files.
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: [
                metadata.dev().cast_signed(),
                metadata.ino().cast_signed(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ],
        }
    }
}
