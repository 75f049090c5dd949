//! Packages to install, and what goes with them: `.deb`, `.rpm`, static archives, the file system of a container, the licences and the
//! list of what is inside, checksums. The same commit and compiler give the same bytes.
//!
//! ```text
//! release.rs  version, time and names of machines
//! compile.rs  programs and libraries, and where their standard library is from
//! glibc.rs    the oldest C library that programs run with
//! parts.rs    packages, and the files of each
//! stage.rs    files of a package, placed and compressed
//! deb.rs      packages of Debian
//! rpm.rs      packages of RPM
//! archive.rs  static programs: archives, the file system of a container, and .deb for another machine
//! crates.rs   crates that a program is linked with
//! licences.rs their licences as one text
//! sbom.rs     their list as CycloneDX
//! ```

mod archive;
mod compile;
mod crates;
mod deb;
mod glibc;
mod licences;
mod parts;
mod release;
mod rpm;
mod sbom;
mod stage;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use self::compile::Built;
use self::release::Release;
use crate::programs::{root, target};
use crate::{End, Outcome};

/// Kinds of packages that can be asked for.
const KINDS: [&str; 4] = ["deb", "rpm", "archive", "container"];

/// What is made, where, and how it is compiled.
struct Options {
    output: PathBuf,
    /// A profile of cargo in place of those for releases: tests take a faster one.
    profile: Option<String>,
    kinds: Vec<String>,
}

impl Options {
    /// Returns nothing where the arguments are not those of this chore.
    fn of(arguments: &[&str]) -> Option<Self> {
        let mut options = Self { output: target().join("packages"), profile: None, kinds: Vec::new() };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match *argument {
                "--output" => options.output = PathBuf::from(rest.next()?),
                "--profile" => options.profile = Some((*rest.next()?).to_owned()),
                kind if KINDS.contains(&kind) => options.kinds.push(kind.to_owned()),
                _ => return None,
            }
        }
        Some(options)
    }

    fn wants(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind)
    }
}

/// Makes packages. Returns nothing where the arguments are wrong.
pub(crate) fn package(arguments: &[&str]) -> Outcome<Option<End>> {
    let Some(options) = Options::of(arguments) else { return Ok(None) };
    let release = Release::this()?;
    let work = target().join("packaging");
    for folder in [&options.output, &work] {
        // Files of another commit would be in the checksums too.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
    }
    let (output, work) = (options.output.canonicalize()?, work.canonicalize()?);
    let mut made = Vec::new();
    let native = [("deb", deb::missing()), ("rpm", rpm::missing())];
    let mut wanted = Vec::new();
    for (kind, missing) in native {
        match missing {
            _ if !options.wants(kind) => {}
            Some(program) => println!("SKIPPED {kind}: no {program}"),
            None => wanted.push(kind),
        }
    }
    if !wanted.is_empty() {
        let built = Built::for_packages(&release, options.profile.as_deref())?;
        for kind in wanted {
            let work = work.join(kind);
            made.extend(match kind {
                "deb" => deb::make(&release, &built, &work, &output)?,
                _ => rpm::make(&release, &built, &work, &output)?,
            });
        }
        made.extend(sbom::write_all(&release, &built.target, &output)?);
    }
    if options.wants("archive") || options.wants("container") || options.wants("deb") {
        made.extend(archive::make(&release, &options, &work, &output)?);
    }
    if made.is_empty() {
        return Ok(Some(End::Skipped("nothing was made".to_owned())));
    }
    checksums(&output, &mut made)?;
    for file in &made {
        println!("{}", file.display());
    }
    Ok(Some(End::Good))
}

/// Writes the checksums of files, for `sha256sum --check`, and adds them to the files.
fn checksums(output: &Path, made: &mut Vec<PathBuf>) -> Outcome {
    made.sort();
    let mut lines = String::new();
    for file in &*made {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        writeln!(lines, "{}  {name}", sha256(&fs::read(file)?))?;
    }
    let path = output.join("SHA256SUMS");
    fs::write(&path, lines)?;
    made.push(path);
    Ok(())
}

/// Returns a checksum in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a file of this folder's templates.
fn template(name: &str) -> Outcome<String> {
    let path = root().join("xtask/package").join(name);
    Ok(fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let options = Options::of(&["deb", "--profile", "dev", "--output", "/tmp/x"]).unwrap();
        assert!(options.wants("deb") && !options.wants("rpm"));
        assert_eq!((options.profile.as_deref(), options.output.to_str()), (Some("dev"), Some("/tmp/x")));
        assert!(Options::of(&[]).unwrap().wants("container"));
        assert!(Options::of(&["--profile"]).is_none() && Options::of(&["msi"]).is_none());
    }

    #[test]
    fn a_checksum_is_that_of_sha256sum() {
        assert_eq!(sha256(b"")[..16], *"e3b0c44298fc1c14");
    }
}
