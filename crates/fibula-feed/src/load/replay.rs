//! A table dump and the updates after it, in files that follow each other.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::compression::Decompressor;

/// Files that are read one after the other, each decompressed.
pub(super) struct Chain {
    paths: Vec<PathBuf>,
    /// The number of the next file.
    next: usize,
    current: Option<Decompressor<File>>,
}

impl Chain {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, next: 0, current: None }
    }

    /// Returns the files from the beginning.
    pub(super) fn again(self) -> Self {
        Self::new(self.paths)
    }
}

impl Read for Chain {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(file) = &mut self.current {
                let at = &self.paths[self.next - 1];
                let count = file.read(buf).map_err(|error| named(at, &error))?;
                if count > 0 || buf.is_empty() {
                    return Ok(count);
                }
                self.current = None;
            }
            let Some(path) = self.paths.get(self.next) else { return Ok(0) };
            self.next += 1;
            self.current =
                Some(File::open(path).and_then(Decompressor::new).map_err(|error| named(path, &error))?);
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The beginning of a file of MRT.
struct MrtHead {
    seconds: u32,
    is_dump: bool,
    path: PathBuf,
}

/// The type of records of table dumps, and of the newer ones.
const DUMPS: [u16; 2] = [12, 13];

/// Returns the files that make up the table at a time, in the order in which they are read. These are the latest table
/// dump until then and the updates after it, by the times of their first records. A folder means the files in it.
pub(super) fn plan(paths: &[PathBuf], until: Option<u32>) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            for entry in std::fs::read_dir(path).map_err(|error| named(path, &error))? {
                let entry = entry.map_err(|error| named(path, &error))?;
                let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
                if !is_hidden && entry.path().is_file() {
                    files.push(entry.path());
                }
            }
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    let mut heads = Vec::new();
    for path in &files {
        let head = head(path).map_err(|error| named(path, &error))?;
        // Files that begin later do not change the table.
        if until.is_none_or(|until| head.seconds <= until) {
            heads.push(head);
        }
    }
    if heads.is_empty() && !files.is_empty() {
        let why = "nothing is recorded until the time that was named: every file begins later";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // Files of the same time stay in the order of their names.
    heads.sort_by_key(|head| head.seconds);
    let dump = heads.iter().rposition(|head| head.is_dump);
    let dumped = dump.map_or(0, |dump| heads[dump].seconds);
    let mut chosen: Vec<PathBuf> = dump.into_iter().map(|dump| heads[dump].path.clone()).collect();
    let updates: Vec<&MrtHead> = heads.iter().filter(|head| !head.is_dump).collect();
    for (at, head) in updates.iter().enumerate() {
        // A file whose updates all come before the dump is left out, because the dump includes them.
        let ends_before = updates.get(at + 1).is_some_and(|next| next.seconds <= dumped);
        if !ends_before {
            chosen.push(head.path.clone());
        }
    }
    Ok(chosen)
}

fn head(path: &Path) -> io::Result<MrtHead> {
    let mut bytes = [0; 12];
    let not_mrt = || io::Error::new(io::ErrorKind::InvalidData, "not an MRT file; a replay needs MRT files");
    File::open(path).and_then(Decompressor::new)?.read_exact(&mut bytes).map_err(|error| {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => not_mrt(),
            _ => error,
        }
    })?;
    if !crate::mrt::begins_with_header(&bytes) {
        return Err(not_mrt());
    }
    let seconds = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let is_dump = DUMPS.contains(&u16::from_be_bytes([bytes[4], bytes[5]]));
    Ok(MrtHead { seconds, is_dump, path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record without content.
    fn record(seconds: u32, kind: u8) -> Vec<u8> {
        [&seconds.to_be_bytes()[..], &[0, kind, 0, 1, 0, 0, 0, 0]].concat()
    }

    #[test]
    fn the_latest_dump_and_the_updates_after_it_are_read() {
        let folder = std::env::temp_dir().join(format!("fibula-replay-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.join(name), bytes).unwrap();
        write("a-updates", record(50, 16));
        write("b-updates", record(90, 16));
        write("c-updates", record(110, 16));
        write("d-updates", record(205, 16));
        write("y-rib", record(100, 13));
        write("z-rib", record(200, 13));
        write(".hidden", vec![1]);
        let names = |until: Option<u32>| -> Vec<String> {
            let paths = plan(std::slice::from_ref(&folder), until).unwrap();
            paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(None), ["z-rib", "c-updates", "d-updates"]);
        assert_eq!(names(Some(204)), ["z-rib", "c-updates"]);
        assert_eq!(names(Some(150)), ["y-rib", "b-updates", "c-updates"]);
        assert_eq!(names(Some(95)), ["a-updates", "b-updates"]);
        let error = plan(std::slice::from_ref(&folder), Some(1)).err().unwrap().to_string();
        assert!(error.ends_with("every file begins later"), "{error}");
        let mut bytes = Vec::new();
        Chain::new(plan(std::slice::from_ref(&folder), Some(150)).unwrap()).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [record(100, 13), record(90, 16), record(110, 16)].concat());
        write("text", b"10.0.0.0/8 1 and more\n".to_vec());
        let error = plan(std::slice::from_ref(&folder), None).unwrap_err().to_string();
        assert!(error.ends_with("text: not an MRT file; a replay needs MRT files"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
