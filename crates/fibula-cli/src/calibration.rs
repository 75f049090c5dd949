//! The costs of lookups on this machine: measured once, and kept in a file that is read from then on.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fibula::auto::Machine;
use fibula::simd::{Isa, Present};
use fibula_workload::calibrate;
use fibula_workload::machine::Machine as Described;
use tempfile::NamedTempFile;

use crate::messages::Messages;

/// Most bytes of a calibration: a few lines, and one for each engine.
const MOST_BYTES: u64 = 16_384;

/// The line that names the processor.
const CPU: &str = "cpu ";

/// The line that names the program: engines get faster from version to version, and are slow where they are not optimised.
const PROGRAM: &str = if cfg!(debug_assertions) {
    concat!("program ", env!("CARGO_PKG_VERSION"), " debug")
} else {
    concat!("program ", env!("CARGO_PKG_VERSION"))
};

/// Returns this machine, from the file in the user's cache. The file is read, or the machine measured, once a process: both families
/// of a table ask.
pub(crate) fn cached(messages: Messages) -> Machine {
    static CACHED: OnceLock<Machine> = OnceLock::new();
    *CACHED.get_or_init(|| here(None, messages))
}

/// Returns this machine, from the file at this path, or from that in the user's cache. Where there is no such file, the machine is
/// measured in about 0.15 s and the file is written. No trouble with the file stops the command: the machine is measured then, and
/// a warning says why if the user has named the file.
pub(crate) fn here(path: Option<&Path>, messages: Messages) -> Machine {
    let described = Described::this();
    let best = best_set();
    let measure = || calibrate(described.l2_bytes(), &[best]);
    let cpu = described.name();
    let in_cache = in_cache(&described.slug(), |name| env::var_os(name).map(PathBuf::from));
    let Some(file) = path.map(Path::to_owned).or(in_cache) else { return measure() };
    let trouble = match read(&file, &cpu, best.isa()) {
        Ok(Some(machine)) => return machine,
        Ok(None) => None,
        Err(trouble) => Some(trouble),
    };
    let machine = measure();
    // The user may have named a file with something else in it, so only a new file is written there.
    let is_ours = path.is_none() || trouble.is_none();
    let trouble =
        if is_ours { write(&file, &cpu, &machine).err().map(|error| error.to_string()) } else { trouble };
    if let (Some(path), Some(trouble)) = (path, trouble) {
        messages.warning(format_args!("{}: {trouble}; measured this machine again", path.display()));
    }
    machine
}

/// Returns the path of the calibration in the user's cache, if there is one: the XDG Base Directory Specification ignores paths that
/// are not absolute.
fn in_cache(slug: &str, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("fibula").join(format!("calibration-{slug}.txt")))
}

/// The best instruction set of this machine, which lookups run with unless another is forced.
fn best_set() -> Present {
    Present::all().last().expect("plain code runs everywhere")
}

/// Reads a calibration with rates for this instruction set; `None` if there is no file.
fn read(path: &Path, cpu: &str, isa: Isa) -> Result<Option<Machine>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    // A pipe or a device might never end.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("not a file".to_owned());
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(|error| error.to_string())?;
    match text.lines().find_map(|line| line.strip_prefix(CPU)) {
        Some(named) if named == cpu => match text.parse::<Machine>() {
            Ok(machine) if machine.has_rates(isa) && text.lines().any(|line| line == PROGRAM) => {
                Ok(Some(machine))
            }
            Ok(_) => Err("a calibration by another version of fibula".to_owned()),
            Err(error) => Err(error.to_string()),
        },
        Some(other) => Err(format!("a calibration of another processor, {other}")),
        None => Err("not a calibration".to_owned()),
    }
}

/// Writes the whole file or none, so that no other process reads a part.
fn write(path: &Path, cpu: &str, machine: &Machine) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    write!(file, "{CPU}{cpu}\n{PROGRAM}\n{machine}")?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_that_of_the_user() {
        let of = |xdg: Option<&str>, home: Option<&str>| {
            in_cache("cpu", |name| if name == "HOME" { home } else { xdg }.map(PathBuf::from))
        };
        let file = |cache: &str| Some(Path::new(cache).join("fibula/calibration-cpu.txt"));
        assert_eq!(of(Some("/cache"), Some("/home/me")), file("/cache"));
        assert_eq!(of(None, Some("/home/me")), file("/home/me/.cache"));
        assert_eq!(of(Some("cache"), Some("/home/me")), file("/home/me/.cache"));
        assert_eq!(of(Some(""), None), None);
    }

    #[test]
    fn a_calibration_is_read_back_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/calibration.txt");
        let best = best_set();
        let read = |path: &Path, cpu: &str| read(path, cpu, best.isa());
        assert_eq!(read(&path, "one"), Ok(None));
        let machine = calibrate(None, &[best]);
        write(&path, "one", &machine).unwrap();
        // As exact as the text.
        let found = read(&path, "one").unwrap().unwrap();
        assert_eq!(found.to_string(), machine.to_string());
        assert!(read(&path, "another").unwrap_err().contains("another processor, one"));
        assert!(read(folder.path(), "one").is_err());
        let text = fs::read_to_string(&path).unwrap();
        for damaged in [&text[..text.len() / 2], "", "cpu one\n", &text.replace("step_ns", "steps")] {
            fs::write(&path, damaged).unwrap();
            assert!(read(&path, "one").is_err(), "{damaged}");
        }
        // By another version, and without the engines' rates, as an earlier one wrote them.
        fs::write(&path, text.replace(PROGRAM, "program 0.0.0")).unwrap();
        assert!(read(&path, "one").unwrap_err().contains("another version"));
        write(&path, "one", &machine.without_rates()).unwrap();
        assert!(read(&path, "one").unwrap_err().contains("another version"));
    }
}
