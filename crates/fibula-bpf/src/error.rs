//! Why maps could not be made, opened or followed.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fibula::live::TableError;

/// The reason why a table in maps could not be made, opened or followed. Nothing half-made is left.
#[derive(Debug)]
#[non_exhaustive]
pub enum BpfError {
    /// The kernel does not let this process use BPF.
    Permission,
    /// The path is in no file system of BPF.
    NoBpffs(PathBuf),
    /// The kernel lacks a feature: its name, and the version that has it.
    Kernel {
        /// The feature.
        feature: &'static str,
        /// The first version of Linux that has it.
        since: &'static str,
    },
    /// Something is pinned there already.
    Exists(PathBuf),
    /// The path has pins of something else than a table of Fibula.
    Foreign {
        /// The path.
        path: PathBuf,
        /// The difference.
        said: String,
    },
    /// The pinned table has another layout.
    Layout {
        /// The path.
        path: PathBuf,
        /// The layout that it has.
        found: u32,
    },
    /// The table has another engine than the maps, or none of the family.
    Engine {
        /// The engine of the maps.
        maps: &'static str,
        /// The engine of the table.
        table: String,
    },
    /// Another process follows a table there.
    Busy {
        /// The path.
        path: PathBuf,
        /// Its process, if the header map has it.
        process: u64,
    },
    /// A room that no program could read.
    Room {
        /// The array.
        array: usize,
        /// Its room, as a binary logarithm of bytes.
        room: u8,
    },
    /// A program was compiled for other maps.
    Program {
        /// The first map that differs.
        map: String,
        /// The bytes of the program's, 0 if it has none.
        bytes: u32,
        /// The bytes of the pinned one, 0 if there is none.
        pinned: u32,
    },
    /// The table refuses: its words have no room in the maps, or it is broken.
    Table(TableError),
    /// A system call failed.
    System {
        /// The call.
        what: String,
        /// The error.
        error: io::Error,
    },
}

impl BpfError {
    pub(crate) fn system(what: impl Into<String>, error: io::Error) -> Self {
        Self::System { what: what.into(), error }
    }

    /// Returns the error of a call about a map.
    pub(crate) fn of_map(what: &str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Permission,
            Some(libc::ENOSYS) => Self::Kernel { feature: "bpf(2)", since: "3.18" },
            _ => Self::system(what, error),
        }
    }

    /// Returns the error of a call that makes an array map that can be mapped.
    pub(crate) fn of_array(error: io::Error) -> Self {
        match error.raw_os_error() {
            // A flag that the kernel does not know. All other arguments are right on every kernel.
            Some(libc::EINVAL) => Self::Kernel { feature: "array maps that can be mapped", since: "5.5" },
            _ => Self::of_map("make a map", error),
        }
    }

    /// Returns the error of a call that makes an arena.
    pub(crate) fn of_arena(error: io::Error) -> Self {
        match error.raw_os_error() {
            // A kind of map that the kernel does not know, or, before 5.16, an argument. All of them are right on every kernel with arenas.
            Some(libc::EINVAL | libc::E2BIG) => Self::Kernel { feature: "arenas", since: "6.9" },
            Some(libc::EOPNOTSUPP) => {
                Self::Kernel { feature: "arenas on this processor", since: "6.9 on x86-64, 6.10 on arm64" }
            }
            _ => Self::of_map("make an arena", error),
        }
    }

    /// Returns the error of mapping an arena at its place.
    pub(crate) fn of_place(place: u64, error: io::Error) -> Self {
        let what = match error.raw_os_error() {
            Some(libc::EEXIST) => {
                format!("map an arena at {place:#x}, where this process has something else")
            }
            _ => format!("map an arena at {place:#x}"),
        };
        Self::of_map(&what, error)
    }

    pub(crate) fn foreign(path: &Path, said: impl Into<String>) -> Self {
        Self::Foreign { path: path.to_owned(), said: said.into() }
    }
}

impl fmt::Display for BpfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission => f.write_str(
                "the kernel refuses BPF to this process: run it as root or with CAP_BPF (Linux 5.8 and later); loaders of programs need \
                 CAP_PERFMON and CAP_NET_ADMIN too",
            ),
            Self::NoBpffs(path) => write!(
                f,
                "{}: not in a file system of BPF: mount -t bpf bpf /sys/fs/bpf, and pin below that",
                path.display()
            ),
            Self::Kernel { feature, since } => {
                write!(f, "this kernel has no {feature}: Linux {since} and later have")
            }
            Self::Exists(path) => {
                write!(f, "{}: something is pinned there: unload it, or take another path", path.display())
            }
            Self::Foreign { path, said } => {
                write!(f, "{}: not a table of Fibula: {said}", path.display())
            }
            Self::Layout { path, found } => write!(
                f,
                "{}: a table of layout {found}, and this version has layout {}: load it again, and compile programs again",
                path.display(),
                crate::LAYOUT
            ),
            Self::Engine { maps, table } => {
                write!(f, "the maps are of {maps}, the table is of {table}: load maps of the table's engine")
            }
            Self::Busy { path, process } => {
                write!(f, "{}: process {process} follows a table there: end it first", path.display())
            }
            Self::Room { array, room } => write!(
                f,
                "array {array} cannot have 2^{room} bytes: programs reach at most 2^{}",
                crate::layout::ROOM_MOST
            ),
            Self::Program { map, bytes, pinned } => write!(
                f,
                "the program was compiled for other maps: {map} has {bytes} bytes in it, and {pinned} where it is pinned; compile it \
                 after the lines of 'fibula bpf header --pin FOLDER'"
            ),
            Self::Table(error) => error.fmt(f),
            Self::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl core::error::Error for BpfError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Table(error) => Some(error),
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<TableError> for BpfError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_kernel_name_what_is_missing() {
        let of = |number| BpfError::of_array(io::Error::from_raw_os_error(number)).to_string();
        assert_eq!(
            of(libc::EINVAL),
            "this kernel has no array maps that can be mapped: Linux 5.5 and later have"
        );
        assert_eq!(of(libc::ENOSYS), "this kernel has no bpf(2): Linux 3.18 and later have");
        assert!(of(libc::EPERM).contains("CAP_BPF"));
        assert!(of(libc::ENOMEM).starts_with("make a map: "));
        let of = |number| BpfError::of_arena(io::Error::from_raw_os_error(number)).to_string();
        for number in [libc::EINVAL, libc::E2BIG] {
            assert_eq!(of(number), "this kernel has no arenas: Linux 6.9 and later have");
        }
        assert!(of(libc::EOPNOTSUPP).contains("no arenas on this processor"));
    }
}
