//! Writes a file next to the old one and renames it over the old one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Contents;
use super::error::{FileError, FileErrorKind};

/// Writes a file. If there is one of this name, it is replaced.
///
/// The file is written under another name in the same folder (`.NAME.NUMBER.part`), synced and renamed. Then the folder is
/// synced. So if the process or the machine ends meanwhile, the name belongs to the old file or to the new one, and that file
/// is whole. A process that has the old file open or mapped keeps it. The other name is left over only if the process or
/// the machine ends before the renaming, until the next save of this name.
///
/// The new file has the mode of the one that it replaces, and its owner and group where the process may set them. If there is
/// none, the mode is that of any new file.
///
/// # Errors
/// When files cannot hold an engine of these contents, or the system refuses. The old file is then unchanged.
pub fn save(path: impl AsRef<Path>, contents: &Contents<'_>) -> Result<(), FileError> {
    save_with(&mut System, path.as_ref(), contents)
}

/// The system calls of saving, as a trait so that tests can end it at any of them.
pub(super) trait Disk {
    type File: Write;

    /// Creates a file that shall replace another one, if there is one: with its mode and its owner.
    fn create(&mut self, path: &Path, replaced: &Path) -> io::Result<Self::File>;
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
    // If the path is a link, the file that it leads to is replaced or made, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| match fs::read_link(path) {
        Ok(place) => folder(path).join(place),
        Err(_) => path.to_owned(),
    });
    let failed = |error| FileErrorKind::io("written")(error).at(path);
    // In the same folder, because a rename is atomic only within a file system.
    let aside = beside(&target).map_err(failed)?;
    let file = disk.create(&aside, &target).map_err(failed)?;
    let mut out = BufWriter::with_capacity(64 << 10, file);
    let written = contents.write(&mut out).map_err(|error| error.of(path)).and_then(|()| {
        // The errors of bytes that were still in the buffer come here, before the file is synced.
        let mut file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        disk.sync(&mut file).map_err(failed)
    });
    if let Err(error) = written.and_then(|()| disk.rename(&aside, &target).map_err(failed)) {
        disk.remove(&aside);
        return Err(error);
    }
    // Only this makes the rename durable.
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

/// Removes the files of earlier saves of this name that ended before the renaming: nobody holds their locks.
fn remove_abandoned(target: &Path) {
    let (Some(name), Ok(entries)) = (target.file_name(), fs::read_dir(folder(target))) else { return };
    let mut begin = OsString::from(".");
    begin.push(name);
    begin.push(".");
    for entry in entries.filter_map(Result::ok) {
        let found = entry.file_name();
        let (found, begin) = (found.as_encoded_bytes(), begin.as_encoded_bytes());
        let numbers = found.strip_prefix(begin).and_then(|rest| rest.strip_suffix(b".part"));
        let is_ours = numbers.is_some_and(|numbers| {
            numbers.contains(&b'-') && numbers.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
        });
        if is_ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // If it cannot be removed, the next save tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Creates a file. One that replaces another is its owner's alone until it has the mode of that.
fn create_new(path: &Path, is_private: bool) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    options.open(path)
}

/// Returns whether the file is still the one of this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |met: fs::Metadata| (met.dev(), met.ino());
    match (file.metadata().map(place), fs::metadata(path).map(place)) {
        (Ok(own), Ok(found)) => own == found,
        // It was taken for abandoned before it was locked.
        (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => false,
        _ => true,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Gives the file the mode of another one, and its owner and group where that is allowed.
#[cfg(unix)]
fn keep_mode(file: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let new = file.metadata()?;
    let same_owner = (new.uid(), new.gid()) == (old.uid(), old.gid())
        || fchown(file, Some(old.uid()), Some(old.gid())).is_ok();
    // The set-id bits are for the old owner only.
    let kept = if same_owner { 0o7777 } else { 0o777 };
    file.set_permissions(fs::Permissions::from_mode(old.mode() & kept))
}

#[cfg(not(unix))]
fn keep_mode(_: &File, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// The file system.
struct System;

impl Disk for System {
    type File = File;

    fn create(&mut self, path: &Path, replaced: &Path) -> io::Result<File> {
        remove_abandoned(replaced);
        let old = fs::metadata(replaced).ok();
        loop {
            let file = create_new(path, old.is_some()).or_else(|error| match error.kind() {
                // A file of this name is left over from an earlier process with the same process number.
                io::ErrorKind::AlreadyExists => {
                    fs::remove_file(path).and_then(|()| create_new(path, old.is_some()))
                }
                _ => Err(error),
            })?;
            // Whoever else saves takes a file without a lock for an abandoned one. Some file systems have no locks.
            let _ = file.lock();
            if !is_at(&file, path) {
                continue;
            }
            if let Some(old) = &old {
                keep_mode(&file, old)?;
            }
            return Ok(file);
        }
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
