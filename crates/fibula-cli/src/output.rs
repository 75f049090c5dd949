//! Where a command writes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::failure::Failure;

/// Writes to the file, or to standard output where there is none.
pub(crate) fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(path) = path else {
        let mut out = BufWriter::new(io::stdout());
        write(&mut out)?;
        out.flush()?;
        return Ok(());
    };
    let mut out = BufWriter::new(File::create(path).map_err(|error| cannot_write(path, &error))?);
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    written.map_err(|failure| match failure {
        Failure::Output(error) => cannot_write(path, &error),
        other => other,
    })
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::BadInput(format!("cannot write {}: {error}", path.display()))
}
