//! Where a command writes: standard output, a device, or a file that is replaced whole or not at all.
//!
//! A file is written under a temporary name in its folder, synced, and renamed over the old one once it is complete.
//! Whatever ends the command earlier (an error, a full disk, a size limit, Ctrl-C) leaves the old file as it was and
//! removes the new one; only SIGKILL leaves the new one in the folder, as `.fibula-*.part`.

mod aside;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod stdio;
mod target;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use aside::Aside;
use target::Target;

/// Returns whether standard output was closed when the command started.
pub(crate) fn stdout_is_closed() -> bool {
    #[cfg(unix)]
    return stdio::stdout_is_closed();
    #[cfg(not(unix))]
    false
}

/// An output that was checked and not yet opened.
pub struct Output {
    target: Target,
}

impl Output {
    /// Checks that the output (standard output for `None` and `-`) can be written and is none of the inputs, and that
    /// inputs which are files can be opened. Nothing is created or changed.
    pub fn new<'a>(
        path: Option<&Path>,
        inputs: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<Self, Failure> {
        let target = match path.filter(|path| path.as_os_str() != "-") {
            None => Target::Stdout,
            Some(path) => Target::find(path).map_err(|error| cannot_write(path, &error))?,
        };
        inputs.into_iter().try_for_each(|input| target.refuse_input(input))?;
        Ok(Self { target })
    }

    /// Writes all of the output. It is opened with the first bytes, and takes its place when `write` has succeeded.
    pub(crate) fn write(
        self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut out = BufWriter::new(Opened { target: &self.target, to: None });
        let written = write(&mut out).and_then(|()| Ok(out.flush()?));
        // The buffer is dropped unwritten, because an error left half a row in it.
        let (opened, _) = out.into_parts();
        written.and_then(|()| Ok(opened.finish()?)).map_err(|failure| match (failure, self.target.path()) {
            (Failure::Output(error), Some(path)) => cannot_write(path, &error),
            (failure, _) => failure,
        })
    }
}

/// Writes a whole file, which must be none of the inputs.
///
/// # Errors
/// If it is one, or cannot be written.
pub fn write_file<'a>(
    path: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    content: &[u8],
) -> Result<(), Failure> {
    Output::new(Some(path), inputs)?.write(|out| Ok(out.write_all(content)?))
}

/// Makes a folder and those it is in, where they do not exist.
///
/// # Errors
/// If the system refuses.
pub fn create_folder(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path)
        .map_err(|error| Failure::BadInput(format!("cannot make the folder {}: {error}", path.display())))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::BadInput(format!("cannot write {}: {error}", path.display()))
}

/// Opens the target with the first bytes.
struct Opened<'a> {
    target: &'a Target,
    to: Option<Sink>,
}

enum Sink {
    Stdout(io::Stdout),
    Direct(File),
    Aside(Aside),
}

impl Opened<'_> {
    fn sink(&mut self) -> io::Result<&mut Sink> {
        let sink = match self.to.take() {
            Some(sink) => sink,
            None => match self.target {
                Target::Stdout => Sink::Stdout(io::stdout()),
                Target::Direct { path, truncate } => {
                    Sink::Direct(File::options().write(true).truncate(*truncate).open(path)?)
                }
                Target::File { path, old } => Sink::Aside(Aside::create(path, old.as_deref())?),
            },
        };
        Ok(self.to.insert(sink))
    }

    fn finish(mut self) -> io::Result<()> {
        self.sink()?;
        match self.to {
            Some(Sink::Aside(aside)) => aside.commit(),
            _ => Ok(()),
        }
    }
}

impl Write for Opened<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.sink()? {
            Sink::Stdout(out) => out.write(bytes),
            Sink::Direct(file) => file.write(bytes),
            Sink::Aside(aside) => aside.file().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Some(Sink::Stdout(out)) => out.flush(),
            _ => Ok(()),
        }
    }
}
