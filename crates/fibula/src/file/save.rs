//! Writes a file next to the old one and renames it over the old one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Contents;
use super::error::{FileError, Kind};

/// Writes a file. If there is one of this name, it is replaced.
///
/// The file is written under another name in the same folder (`.NAME.NUMBER.part`), synced and renamed. Then the folder is
/// synced. So if the process or the machine ends meanwhile, the name belongs to the old file or to the new one, and that file
/// is whole. A process that has the old file open or mapped keeps it. The other name is left over only if the process or
/// the machine ends before the renaming.
///
/// # Errors
/// When files cannot hold an engine of these contents, or the system refuses. The old file is then unchanged.
pub fn save(path: impl AsRef<Path>, contents: &Contents<'_>) -> Result<(), FileError> {
    save_with(&mut System, path.as_ref(), contents)
}

/// The system calls of saving, as a trait so that tests can end it at any of them.
pub(super) trait Disk {
    type File: Write;

    fn create(&mut self, path: &Path) -> io::Result<Self::File>;
    fn sync(&mut self, file: &mut Self::File) -> io::Result<()>;
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    fn sync_folder(&mut self, folder: &Path) -> io::Result<()>;
    fn remove(&mut self, path: &Path);
}

pub(super) fn save_with<D: Disk>(
    disk: &mut D,
    path: &Path,
    contents: &Contents<'_>,
) -> Result<(), FileError> {
    // If the path is a link, the file that it leads to is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = |error| Kind::io("written")(error).at(path);
    let aside = beside(&target).map_err(failed)?;
    let file = disk.create(&aside).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let written = contents.write(&mut out).map_err(|error| error.of(path)).and_then(|()| {
        let mut file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        disk.sync(&mut file).map_err(failed)
    });
    if let Err(error) = written.and_then(|()| disk.rename(&aside, &target).map_err(failed)) {
        disk.remove(&aside);
        return Err(error);
    }
    disk.sync_folder(folder(&target)).map_err(failed)
}

/// The number of temporary files that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Returns the name of a file next to another one, which no other process or thread uses.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut aside = OsString::from(".");
    aside.push(name);
    aside.push(format!(".{}-{}.part", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
    Ok(folder(path).join(aside))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file system.
struct System;

impl Disk for System {
    type File = File;

    fn create(&mut self, path: &Path) -> io::Result<File> {
        // A file of this name is left over from an earlier process with the same process number.
        File::create_new(path).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| File::create_new(path)),
            _ => Err(error),
        })
    }

    fn sync(&mut self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Makes the new name durable. Some file systems cannot sync a folder, and report that. Systems other than Unix have no call
    /// for it.
    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        if !cfg!(unix) {
            return Ok(());
        }
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            Err(error)
                if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn remove(&mut self, path: &Path) {
        // If this fails too, there is nothing else to do.
        let _ = fs::remove_file(path);
    }
}
