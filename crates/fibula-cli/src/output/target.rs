//! The kind of an output, found without changing it.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::options::STDIN;

/// Links that are followed before they are taken for a circle: as many as Linux follows.
const MOST_LINKS: usize = 40;

pub(super) enum Target {
    Stdout,
    /// A device, a FIFO, or a descriptor of this process.
    Direct {
        path: PathBuf,
        /// Whether it is a file, reached by its descriptor.
        truncate: bool,
    },
    /// A file, links followed, and its present state.
    File {
        path: PathBuf,
        old: Option<Box<Metadata>>,
    },
}

impl Target {
    /// Returns the kind of `path`. A file that may not be written, and a folder that does not exist, are errors.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            if ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].map(Path::new).contains(&&*path) {
                return Ok(Self::Stdout);
            }
            let met = match fs::symlink_metadata(&path) {
                Ok(met) => met,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::metadata(folder(&path))?;
                    return Ok(Self::File { path, old: None });
                }
                Err(error) => return Err(error),
            };
            if met.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            // The links of /proc lead to open files, which need not have a name.
            let descriptor = path.starts_with("/proc") || path.starts_with("/dev/fd");
            if descriptor || !(met.is_file() || met.is_symlink()) {
                return Ok(Self::Direct { truncate: fs::metadata(&path)?.is_file(), path });
            }
            if met.is_file() {
                // A file that is protected from writing is not replaced either.
                File::options().write(true).open(&path)?;
                return Ok(Self::File { path, old: Some(Box::new(met)) });
            }
            path = folder(&path).join(fs::read_link(&path)?);
        }
        Err(io::Error::other("too many symbolic links"))
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::Direct { path, .. } | Self::File { path, .. } => Some(path),
        }
    }

    /// Refuses an input that is this file, by whatever name, and one that cannot be opened. FIFOs are left alone: opening
    /// one is an event for its writer.
    pub(super) fn refuse_input(&self, input: &Path) -> Result<(), Failure> {
        if crate::fetch::url(input).is_some() {
            return Ok(());
        }
        let stdin = input.as_os_str() == STDIN;
        let met = if stdin { stdin_metadata() } else { fs::metadata(input) };
        let is_file = met.as_ref().is_ok_and(Metadata::is_file);
        if !stdin && (is_file || met.is_err()) {
            File::open(input).map_err(|error| Failure::opening(input, &error))?;
        }
        let own = match self {
            Self::Stdout => stdout_metadata(),
            Self::Direct { path, .. } | Self::File { path, .. } => fs::metadata(path),
        };
        let (Ok(met), Ok(own)) = (met, own) else { return Ok(()) };
        if !(is_file && own.is_file() && same(&met, &own)) {
            return Ok(());
        }
        let input = if stdin { "standard input".to_owned() } else { format!("'{}'", input.display()) };
        Err(Failure::WrongUse(match self.path() {
            None => format!("standard output is the same file as the input {input}; write to another file"),
            Some(path) => format!(
                "the output '{}' is the same file as the input {input}; write to another file",
                path.display()
            ),
        }))
    }
}

/// Returns the folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Without device and inode numbers no two names are known to be one file.
#[cfg(not(unix))]
fn same(_: &Metadata, _: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn metadata_of(stream: impl std::os::fd::AsFd) -> io::Result<Metadata> {
    File::from(stream.as_fd().try_clone_to_owned()?).metadata()
}

#[cfg(not(unix))]
fn metadata_of<T>(_: T) -> io::Result<Metadata> {
    Err(io::ErrorKind::Unsupported.into())
}

fn stdin_metadata() -> io::Result<Metadata> {
    metadata_of(io::stdin())
}

fn stdout_metadata() -> io::Result<Metadata> {
    metadata_of(io::stdout())
}
