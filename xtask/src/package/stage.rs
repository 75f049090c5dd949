//! The files of a package, below a folder that stands for the root of the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::release::Release;
use crate::Outcome;
use crate::programs::run;

/// A folder with the files of a package.
pub(crate) struct Stage<'a> {
    pub(crate) root: PathBuf,
    pub(crate) release: &'a Release,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(release: &'a Release, root: PathBuf) -> Outcome<Self> {
        fs::create_dir_all(&root)?;
        Ok(Self { root, release })
    }

    /// Returns where a path of the machine is, in a folder that exists.
    pub(crate) fn at(&self, path: &str) -> Outcome<PathBuf> {
        let path = self.root.join(path.trim_start_matches('/'));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(path)
    }

    pub(crate) fn text(&self, path: &str, text: impl AsRef<[u8]>) -> Outcome {
        self.with_mode(path, text.as_ref(), 0o644)
    }

    pub(crate) fn program(&self, path: &str, from: &Path) -> Outcome {
        self.with_mode(path, &fs::read(from)?, 0o755)
    }

    fn with_mode(&self, path: &str, bytes: &[u8], mode: u32) -> Outcome {
        let path = self.at(path)?;
        fs::write(&path, bytes)?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
    }

    /// Writes a text that is compressed, without a name and a time in it.
    pub(crate) fn gzip(&self, path: &str, text: impl AsRef<[u8]>) -> Outcome {
        self.text(path, text)?;
        run(self.release.command("gzip").arg("-9nf").arg(self.at(path)?))
    }

    /// Sets the modes of folders, which otherwise depend on the umask, and the time of everything.
    pub(crate) fn finish(&self) -> Outcome {
        run(self
            .release
            .command("find")
            .arg(&self.root)
            .args(["-type", "d", "-exec", "chmod", "755", "{}", "+"]))?;
        let time = format!("@{}", self.release.epoch);
        run(self
            .release
            .command("find")
            .arg(&self.root)
            .args(["-exec", "touch", "-h", "-d", &time, "{}", "+"]))
    }

    /// Returns the paths of all files and links, from the root on, in order.
    pub(crate) fn files(&self) -> Outcome<Vec<String>> {
        let mut files = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                } else {
                    files.push(format!("/{}", entry.path().strip_prefix(&self.root)?.display()));
                }
            }
        }
        files.sort();
        Ok(files)
    }
}
