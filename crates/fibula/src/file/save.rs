//! Writes a file beside the old one and puts it in its place.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Contents;
use super::error::{FileError, Kind};

/// Writes a file, in place of the one of this name if there is one.
///
/// It is written under another name in the same folder (`.NAME.NUMBER.part`), synced, and renamed, and then the folder is
/// synced. So whatever ends the process or the machine meanwhile, the name is that of the old file or of the new one, whole;
/// and who has the old file open or mapped keeps it. Only what ends the process leaves the other name behind.
///
/// # Errors
/// When files cannot hold an engine, or the system refuses; the old file is then as it was.
pub fn save(path: impl AsRef<Path>, contents: &Contents<'_>) -> Result<(), FileError> {
    save_with(&mut System, path.as_ref(), contents)
}

/// What saving asks of the system, so that tests can end it anywhere.
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
    // A link leads to the file that is replaced.
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

/// Files that this process has made aside.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Returns the name of a file beside another one, which no other process or thread uses.
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
        // A file of this name is left from an earlier process of the same number.
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

    /// Makes the new name last. Some file systems cannot sync a folder, and say so; other systems than Unix have no call for
    /// it.
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
        // There is nothing to do where this fails too.
        let _ = fs::remove_file(path);
    }
}
