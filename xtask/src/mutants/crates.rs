//! The small crates that folders are tested in: which sources they have, and how they are made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::programs::{root, target};

/// A folder of sources, and the tests that must notice its mutants.
pub(super) struct Folder {
    pub(super) name: &'static str,
    pub(super) small: &'static Small,
    /// The sources of the small crate that are mutated.
    pub(super) under: &'static str,
    pub(super) tests: &'static [&'static str],
}

/// A small crate.
pub(super) struct Small {
    pub(super) name: &'static str,
    /// Folders of the workspace, with the files and folders that are copied out of each. The first one gives mutants their names.
    pub(super) sources: &'static [(&'static str, &'static [&'static str])],
    /// Files that get another name.
    rename: &'static [(&'static str, &'static str)],
    /// Replacements in the renamed files.
    replace: &'static [(&'static str, &'static str)],
    /// Files and folders of the whole crate that it includes or that its tests read, copied as they are, but for Rust.
    data: &'static [&'static str],
    /// Files whose module `tests` is cut off.
    without_tests: &'static [&'static str],
    package: Package,
}

/// Where a small crate's manifest and its `lib.rs` come from.
enum Package {
    /// Modules of the library, listed by this `lib.rs`.
    Library(&'static str),
    /// The whole crate with this manifest, over the library itself, which is compiled once.
    Whole(&'static str),
}

/// The modules of the library that depend on no engine, and the tests of the test machine for routing tables, with just enough of its
/// harness to run as one test.
static CORE: Small = Small {
    name: "core",
    sources: &[
        ("crates/fibula/src", &["check.rs", "memory", "net", "radix", "random.rs", "rib", "simd"]),
        ("crates/fibula-proof/src", &["tables.rs", "toy.rs"]),
        ("crates/fibula-proof/tests/machine", &["rib.rs"]),
    ],
    rename: &[("crates/fibula-proof/tests/machine/rib.rs", "machine.rs")],
    // Fewer tables and rounds, because these tests run without optimisation.
    replace: &[
        ("1u32 << 15", "1u32 << 11"),
        ("(400, 600)", "(40, 600)"),
        ("(100, 1_500)", "(10, 1_500)"),
        ("(30, 3_000)", "(6, 1_000)"),
    ],
    data: &[],
    without_tests: &[],
    package: Package::Library(include_str!("templates/core.rs")),
};

/// The building blocks of engines, with engines that use each of them, judged by a model.
static PARTS: Small = Small {
    name: "parts",
    sources: &[
        (
            "crates/fibula/src",
            &[
                "check.rs",
                "memory",
                "net",
                "radix",
                "random.rs",
                "rib",
                "simd",
                "fib/contract.rs",
                "fib/in_place.rs",
                "fib/in_place_tests.rs",
                "fib/parts",
                "fib/registry.rs",
                "fib/sections.rs",
                "engines/binary_trie",
                "engines/dir_17_bitmap",
                "engines/dir_18_lines",
                "engines/dir_btree",
                "engines/planb",
                "engines/range_btree",
            ],
        ),
        ("crates/fibula-proof/src", &["tables.rs", "toy.rs"]),
    ],
    rename: &[],
    replace: &[],
    data: &[],
    // Its tests need the whole list of engines.
    without_tests: &["fib/contract.rs"],
    package: Package::Library(include_str!("templates/parts.rs")),
};

static FEED: Small = Small {
    name: "feed",
    sources: &[("crates/fibula-feed/src", &["."])],
    rename: &[],
    replace: &[],
    data: &["tests/data"],
    without_tests: &[],
    package: Package::Whole("crates/fibula-feed/Cargo.toml"),
};

/// The whole library: what these folders do needs engines, and tables that change.
static LIBRARY: Small = Small {
    name: "library",
    sources: &[("crates/fibula/src", &["."])],
    rename: &[],
    replace: &[],
    data: &["choose.md", "src"],
    without_tests: &[],
    package: Package::Whole("crates/fibula/Cargo.toml"),
};

static ROUTER: Small = Small {
    name: "router",
    sources: &[("crates/fibula-router/src", &["."])],
    rename: &[],
    replace: &[],
    data: &["src"],
    without_tests: &[],
    package: Package::Whole("crates/fibula-router/Cargo.toml"),
};

/// Tests of what loading makes of records and lines, without those that take seconds unoptimised.
macro_rules! with_loading {
    ($($test:literal),*) => {
        &[
            $($test,)*
            "load::tests::",
            "load::peers_tests::",
            "load::skipped_tests::",
            "load::loader_tests::",
            "--skip=damage_inside_a_stream",
            "--skip=damaged_files_say",
            "--skip=progress_is_told",
            "--skip=that_must_be_read_twice",
        ]
    };
}

/// **The list** of folders.
pub(super) static FOLDERS: &[Folder] = &[
    Folder { name: "net", small: &CORE, under: "src/net/", tests: &["net::", "rib_trials::"] },
    Folder { name: "radix", small: &CORE, under: "src/radix/", tests: &["radix::", "rib_trials::"] },
    Folder { name: "rib", small: &CORE, under: "src/rib/", tests: &["rib::", "rib_trials::"] },
    Folder { name: "memory", small: &CORE, under: "src/memory/", tests: &["memory::"] },
    Folder {
        name: "parts",
        small: &PARTS,
        under: "src/fib/parts/",
        // Without two tests that take seconds.
        tests: &[
            "parts::",
            "conformance::",
            "dir_18_lines::",
            "range_btree::",
            "--skip=slots_change_form",
            "--skip=next_hops_at_the_edge",
        ],
    },
    Folder { name: "mrt", small: &FEED, under: "src/mrt/", tests: with_loading!("mrt::") },
    Folder { name: "bgp", small: &FEED, under: "src/bgp/", tests: with_loading!("mrt::", "bgp::") },
    Folder { name: "text", small: &FEED, under: "src/text/", tests: with_loading!("text::") },
    Folder {
        name: "event",
        small: &FEED,
        under: "src/event.rs",
        tests: with_loading!("event::", "mrt::", "text::"),
    },
    Folder { name: "file", small: &LIBRARY, under: "src/file/", tests: &["file::"] },
    Folder { name: "hops", small: &LIBRARY, under: "src/hops/", tests: &["hops::", "vrf::"] },
    Folder { name: "map", small: &LIBRARY, under: "src/map/", tests: &["map::", "--skip=readers_see_whole"] },
    Folder { name: "vrf", small: &LIBRARY, under: "src/vrf/", tests: &["vrf::"] },
    Folder {
        name: "packet",
        small: &ROUTER,
        under: "src/packet/",
        tests: &["packet::", "forward::", "neighbour::", "acl::", "--skip=fields_are_in_the_guide"],
    },
];

/// Where everything about mutants is built and kept.
pub(super) fn work() -> PathBuf {
    target().join("mutants")
}

impl Small {
    /// Returns its folder.
    pub(super) fn folder(&self) -> PathBuf {
        work().join(self.name)
    }

    /// Writes the crate, leaving files alone that have not changed, so that cargo need not compile them.
    pub(super) fn generate(&self) -> Outcome<PathBuf> {
        let folder = self.folder();
        let wanted = self.files()?;
        for (path, text) in &wanted {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            if fs::read_to_string(&path).ok().as_deref() != Some(text) {
                fs::write(&path, text)?;
            }
        }
        for path in sources(&folder.join("src"))? {
            if !wanted.contains_key(path.strip_prefix(&folder)?) {
                fs::remove_file(path)?;
            }
        }
        if let Package::Whole(manifest) = &self.package {
            for data in self.data {
                copy(&root().join(manifest).with_file_name("").join(data), &folder.join(data))?;
            }
        }
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(folder)
    }

    /// Returns its files, by their paths in it.
    fn files(&self) -> Outcome<BTreeMap<PathBuf, String>> {
        let mut files = BTreeMap::from([("Cargo.toml".into(), self.manifest()?)]);
        if let Package::Library(lib) = self.package {
            files.insert("src/lib.rs".into(), format!("#![allow(warnings)]\n{lib}"));
        }
        for (origin, parts) in self.sources {
            let origin = root().join(origin);
            for source in parts.iter().map(|part| sources(&origin.join(part))) {
                for path in source? {
                    // Chapters are not copied.
                    let mut text = fs::read_to_string(&path)?.replace(CHAPTER, "//");
                    for other in ELSEWHERE {
                        text = text.replace(&format!("\n{other}"), &format!("\n{SKIP}\n{other}"));
                    }
                    let within = path.strip_prefix(&origin)?;
                    let (place, renamed) =
                        self.place(&path)?.map_or((within, false), |to| (Path::new(to), true));
                    if self.without_tests.iter().any(|file| Path::new(file) == place) {
                        text.truncate(text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len()));
                    }
                    for (old, new) in self.replace.iter().filter(|_| renamed) {
                        if !text.contains(old) {
                            return Err(format!("{} has no '{old}'", path.display()).into());
                        }
                        text = text.replace(old, new);
                    }
                    files.insert(Path::new("src").join(place), text);
                }
            }
        }
        Ok(files)
    }

    /// Returns the other name of a file, if it gets one.
    fn place(&self, path: &Path) -> Outcome<Option<&'static str>> {
        let path = path.strip_prefix(root())?;
        Ok(self.rename.iter().find(|(from, _)| Path::new(from) == path).map(|(_, to)| *to))
    }

    /// Returns its manifest, outside the workspace.
    fn manifest(&self) -> Outcome<String> {
        let own = match self.package {
            Package::Library(_) => format!(
                "[package]\nname = \"fibula-{}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{DEPENDENCIES}",
                self.name
            ),
            Package::Whole(path) => {
                outside(&fs::read_to_string(root().join(path))?, &root().join("crates").canonicalize()?)
            }
        };
        Ok(own + PROFILE)
    }
}

/// Rewrites the manifest of a crate so that it compiles outside the workspace. It then depends on the crates in this folder. Programs and
/// tests with files of their own are left out.
fn outside(manifest: &str, crates: &Path) -> String {
    let mut lines = Vec::new();
    let mut is_left_out = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            // The lints would fail the build at a mutant's first unused name.
            is_left_out = line.starts_with("[[") || line == "[lints]";
        }
        if is_left_out {
            continue;
        }
        let path = |name: &str| format!("path = {:?}", crates.join(name).display().to_string());
        let ours = line.split_once([' ', '.']).filter(|(name, _)| name.starts_with("fibula"));
        match (ours, line.strip_suffix(".workspace = true")) {
            (Some((name, _)), Some(_)) => lines.push(format!("{name} = {{ {} }}", path(name))),
            (Some((name, _)), None) => lines.push(line.replace("workspace = true", &path(name))),
            (None, Some("version")) => lines.push("version = \"0.1.0\"".to_owned()),
            (None, Some("edition")) => lines.push("edition = \"2024\"".to_owned()),
            (None, Some(_)) => {}
            (None, None) => lines.push(line.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

/// Copies a file or a folder, leaving files alone that have not changed, and those of Rust.
fn copy(from: &Path, to: &Path) -> Outcome {
    let failed = |error| format!("{}: {error}", from.display());
    if from.is_dir() {
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if from.extension().is_some_and(|extension| extension == "rs") {
        return Ok(());
    }
    let content = fs::read(from).map_err(failed)?;
    if fs::read(to).ok().as_ref() != Some(&content) {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        fs::write(to, content)?;
    }
    Ok(())
}

const CHAPTER: &str = "#![doc = include_str!(\"chapter.md\")]";

/// How items begin that Linux has not. No test can notice their mutants here.
const ELSEWHERE: [&str; 2] = ["#[cfg(not(unix))]", "#[cfg(not(all("];

/// Tells cargo-mutants to leave an item alone, and the compiler nothing.
const SKIP: &str = "#[cfg_attr(windows, mutants::skip)]";

const DEPENDENCIES: &str = "\
[dependencies]
ipnet = { version = \"2.11\", default-features = false }
libc = \"0.2\"
";

const PROFILE: &str = "
[workspace]

[profile.dev]
opt-level = 0
debug = false

[profile.dev.package.\"*\"]
opt-level = 2
";

/// Returns the Rust files of a folder, or the file itself, in order.
pub(super) fn sources(path: &Path) -> Outcome<BTreeSet<PathBuf>> {
    if path.is_file() {
        return Ok(BTreeSet::from([path.to_owned()]));
    }
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(sources(&path)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_that_a_small_crate_names_exists() {
        for folder in FOLDERS {
            for (origin, parts) in folder.small.sources {
                for part in *parts {
                    let path = root().join(origin).join(part);
                    assert!(path.exists(), "{}: {}", folder.name, path.display());
                }
            }
            let files = folder.small.files().unwrap();
            let under = folder.under;
            assert!(files.keys().any(|path| path.starts_with(under)), "{}: {under}", folder.name);
            for file in folder.small.without_tests {
                assert!(!files[&Path::new("src").join(file)].contains("mod tests {"), "{file}");
            }
        }
    }

    #[test]
    fn items_of_other_systems_are_left_alone() {
        let files = CORE.files().unwrap();
        for path in ["src/memory/buffer.rs", "src/memory/mapped.rs"] {
            let text = &files[Path::new(path)];
            let (_, skipped) = text.split_once(SKIP).unwrap();
            assert!(skipped.starts_with("\n#[cfg(not(all(") && !skipped.contains(SKIP), "{path}");
        }
    }

    #[test]
    fn every_source_under_a_folder_is_of_its_origin() {
        for folder in FOLDERS {
            let origin = root().join(folder.small.sources[0].0);
            let path = origin.join(folder.under.trim_start_matches("src/"));
            assert!(path.exists(), "{}", path.display());
        }
    }

    #[test]
    fn a_manifest_leaves_the_workspace() {
        let text = "[package]\nname = \"x\"\nversion.workspace = true\nkeywords.workspace = true\n\n[dependencies]\n\
                    fibula = { workspace = true, features = [\"serde\"] }\nfibula-feed.workspace = true\nmemchr = \"2.7\"\n\n\
                    [[test]]\nname = \"all\"\n\n[lints]\nworkspace = true\n";
        let expected = "[package]\nname = \"x\"\nversion = \"0.1.0\"\n\n[dependencies]\n\
                        fibula = { path = \"/crates/fibula\", features = [\"serde\"] }\n\
                        fibula-feed = { path = \"/crates/fibula-feed\" }\nmemchr = \"2.7\"\n\n";
        assert_eq!(outside(text, Path::new("/crates")), expected);
    }
}
