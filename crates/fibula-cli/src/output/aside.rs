//! The new file, kept aside under a temporary name until it is complete.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use super::target::folder;

/// The file that is aside now, for the thread that handles signals. The lock is held wherever a file appears or
/// disappears, so that a signal finds it either aside or in place.
static NOW: Mutex<Option<PathBuf>> = Mutex::new(None);

fn now() -> MutexGuard<'static, Option<PathBuf>> {
    NOW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the file that is aside. No other appears, and none is renamed, until the guard is dropped.
#[cfg(unix)]
pub(super) fn remove_now() -> impl Drop {
    let mut now = now();
    if let Some(path) = now.take() {
        // The command ends by the signal, whether this works or not.
        let _ = std::fs::remove_file(path);
    }
    now
}

pub(super) struct Aside {
    /// None once it is in place.
    file: Option<NamedTempFile>,
    path: PathBuf,
}

impl Aside {
    /// Returns a file beside `path`, which has the metadata `old` if it exists.
    pub(super) fn create(path: &Path, old: Option<&Metadata>) -> io::Result<Self> {
        #[cfg(unix)]
        super::signals::handle()?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".fibula-").suffix(".part");
        #[cfg(unix)]
        if old.is_none() {
            use std::os::unix::fs::PermissionsExt;
            // Less the umask, as any new file.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut now = now();
        let file = builder.tempfile_in(folder(path)).map_err(|error| beside(&error))?;
        *now = Some(file.path().to_owned());
        let aside = Self { file: Some(file), path: path.to_owned() };
        drop(now);
        if let Some(old) = old {
            keep_mode(aside.file(), old)?;
        }
        Ok(aside)
    }

    pub(super) fn file(&self) -> &File {
        self.file.as_ref().map(NamedTempFile::as_file).expect("it is there until `commit`, which consumes it")
    }

    /// Puts the file in the place of the old one.
    pub(super) fn commit(mut self) -> io::Result<()> {
        self.file().sync_all()?;
        let mut now = now();
        if let Some(file) = self.file.take() {
            file.persist(&self.path)?;
        }
        *now = None;
        drop(now);
        sync_folder(folder(&self.path))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let mut now = now();
        if self.file.take().is_some() {
            *now = None;
        }
    }
}

/// Returns the folder's error, with a way out: a file may be writable where its folder is not.
fn beside(error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("cannot create a file in its folder ({error}); write to standard output instead"),
    )
}

/// Gives the new file the old one's owner, where that is allowed, and its mode.
#[cfg(unix)]
fn keep_mode(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let new = file.metadata()?;
    let same_owner = (new.uid(), new.gid()) == (old.uid(), old.gid())
        || fchown(file, Some(old.uid()), Some(old.gid())).is_ok();
    // The set-id bits are for the old owner only.
    let kept = if same_owner { 0o7777 } else { 0o777 };
    file.set_permissions(std::fs::Permissions::from_mode(old.mode() & kept))
}

#[cfg(not(unix))]
fn keep_mode(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Makes the new name last. Some file systems cannot sync a folder, and say so.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error)
            if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
