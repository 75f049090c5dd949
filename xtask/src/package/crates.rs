//! The crates that a program is linked with, as cargo resolves them for one target and set of features. Crates that only run while it is
//! compiled (build scripts, macros) are not among them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use super::compile::Program;
use crate::Outcome;
use crate::programs::{output, root};

/// A crate, and those that it is linked with.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: String,
    pub(crate) authors: Vec<String>,
    pub(crate) repository: Option<String>,
    /// Its sources.
    pub(crate) folder: PathBuf,
    /// Whether it is of this workspace.
    pub(crate) is_ours: bool,
    /// SHA-256 of its archive in the registry.
    pub(crate) checksum: Option<String>,
    /// The crates that it depends on.
    pub(crate) needs: BTreeSet<(String, String)>,
}

/// What `cargo metadata` says of a crate.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    license_file: Option<String>,
    authors: Vec<String>,
    repository: Option<String>,
    manifest_path: PathBuf,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Returns the crates of a program by name and version; the first of the order is not special.
pub(crate) fn of(program: &Program, target: &str) -> Outcome<BTreeMap<(String, String), Crate>> {
    let tree =
        ["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", "|{p}"];
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(tree).args(["--package", program.package, "--target", target]);
    if !program.features.is_empty() {
        cargo.args(["--features", program.features]);
    }
    let edges = edges(&output(&mut cargo)?)?;
    let metadata =
        ["metadata", "--locked", "--format-version", "1", "--all-features", "--filter-platform", target];
    let metadata: Metadata =
        serde_json::from_str(&output(Command::new("cargo").current_dir(root()).args(metadata))?)?;
    let sums = checksums(&std::fs::read_to_string(root().join("Cargo.lock"))?);
    let mut crates = BTreeMap::new();
    for package in metadata.packages {
        let id = (package.name, package.version);
        let Some(needs) = edges.get(&id) else { continue };
        let file = package.license_file.map(|file| format!("as in {file}"));
        crates.insert(
            id.clone(),
            Crate {
                licence: package.license.or(file).ok_or_else(|| format!("{} names no licence", id.0))?,
                authors: package.authors,
                repository: package.repository,
                folder: package.manifest_path.parent().ok_or("a manifest without a folder")?.to_owned(),
                is_ours: package.source.is_none(),
                checksum: sums.get(&id).cloned(),
                needs: needs.clone(),
                name: id.0,
                version: id.1,
            },
        );
    }
    match edges.keys().find(|id| !crates.contains_key(*id)) {
        Some((name, version)) => Err(format!("cargo metadata does not know {name} {version}").into()),
        None => Ok(crates),
    }
}

type Edges = BTreeMap<(String, String), BTreeSet<(String, String)>>;

/// Reads lines such as `2|name v1.0.0 (/path)`: a depth, and a crate that the last one of a lesser depth needs.
fn edges(tree: &str) -> Outcome<Edges> {
    let mut edges = Edges::new();
    let mut above: Vec<(String, String)> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (depth, rest) = line.split_once('|').ok_or_else(|| format!("cargo tree says '{line}'"))?;
        let depth: usize = depth.parse()?;
        let mut words = rest.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let id = (name, version.ok_or_else(|| format!("cargo tree says '{line}'"))?.to_owned());
        edges.entry(id.clone()).or_default();
        above.truncate(depth);
        if let Some(parent) = above.last() {
            edges.entry(parent.clone()).or_default().insert(id.clone());
        }
        above.push(id);
    }
    Ok(edges)
}

/// Returns the checksums of a lock file.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut sums = BTreeMap::new();
    for entry in lock.split("[[package]]") {
        let field = |name: &str| {
            let line = entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
            line.strip_suffix('"').map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) = (field("name"), field("version"), field("checksum")) {
            sums.insert((name, version), sum);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_becomes_edges() {
        let tree = "0|a v1.0.0 (/x)\n1|b v2.0.0\n2|c v3.0.0\n1|c v3.0.0 (*)\n";
        let edges = edges(tree).unwrap();
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(edges[&id("a", "1.0.0")], [id("b", "2.0.0"), id("c", "3.0.0")].into());
        assert_eq!(edges[&id("b", "2.0.0")], [id("c", "3.0.0")].into());
        assert!(edges[&id("c", "3.0.0")].is_empty());
    }

    #[test]
    fn checksums_of_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        let sums = checksums(lock);
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[&("a".to_owned(), "1.0.0".to_owned())], "00ff");
    }
}
