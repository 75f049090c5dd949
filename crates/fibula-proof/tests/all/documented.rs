//! Documents name files that exist, each published crate and each feature is where these are listed, and shares of time add up.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files and folders of the repository that a document names within backticks, without those that have a part to fill in.
fn paths(text: &str) -> Vec<&str> {
    const FOLDERS: [&str; 9] =
        ["crates/", "netlab/", "testdata/", "records/", "bindings/", "docs/", "fuzz/", "xtask/", ".ci/"];
    // What a reader replaces by a name.
    const BLANKS: [&str; 4] = ["NAME", "TARGET", "MACHINE", "crates/my-engine"];
    let of_line = |line| str::split(line, '`').skip(1).step_by(2);
    let words = text.lines().flat_map(of_line).flat_map(str::split_whitespace);
    let words = words.map(|word| word.trim_end_matches([':', ',', '.', ';']));
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
    words
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| is_plain(word) && !BLANKS.iter().any(|blank| word.contains(blank)))
        .collect()
}

#[test]
fn documents_name_files_that_exist() {
    let root = root();
    let mut documents: Vec<PathBuf> =
        ["README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)).into();
    for folder in ["docs", "docs/guide"] {
        let files = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        documents.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    let mut count = 0;
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for path in paths(&text) {
            assert!(root.join(path).exists(), "{}: there is no {path}", document.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
    let text = "`docs/a.md`, `fuzz/run TARGET 5` and `records/MACHINE/b.json`\ndocs/c.md `x docs/d.md:`";
    assert_eq!(paths(text), ["docs/a.md", "fuzz/run", "docs/d.md"]);
}

/// The crates that are published, each with its manifest.
fn published() -> Vec<(String, String)> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let manifests = folders.filter_map(|folder| fs::read_to_string(folder.join("Cargo.toml")).ok());
    let manifests = manifests.filter(|manifest| !manifest.contains("\npublish = false\n"));
    let name = |manifest: &str| manifest.split('"').nth(1).unwrap().to_owned();
    manifests.map(|manifest| (name(&manifest), manifest)).collect()
}

#[test]
fn published_crates_share_a_version_and_are_listed() {
    let read = |path| fs::read_to_string(root().join(path)).unwrap();
    let (steps, policy) = (read(".ci/run"), read("docs/policy.md"));
    let step = steps.split_once("\npackage() {").unwrap().1.split_once("\n}\n").unwrap().0;
    let words: Vec<&str> = step.split_whitespace().collect();
    let packages: Vec<&str> =
        words.windows(2).filter(|pair| pair[0] == "--package").map(|pair| pair[1]).collect();
    let crates = published();
    assert!(crates.len() > 8, "{}", crates.len());
    for (name, manifest) in &crates {
        assert!(manifest.contains("\nversion.workspace = true\n"), "{name} has a version of its own");
        assert!(packages.contains(&name.as_str()), "the step `package` of .ci/run leaves {name} out");
        assert!(
            policy.contains(&format!("\n| `{name}` | ")),
            "docs/policy.md does not say what {name} promises"
        );
    }
    assert_eq!(packages.len(), crates.len(), "{packages:?}");
}

/// The crates and features that the rows of the table of features name, each row's in one text.
fn listed_features(policy: &str) -> Vec<[&str; 2]> {
    let section = policy.split_once("\n## Cargo features\n").unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| {
            let mut cells = line.split(" | ");
            Some([cells.next()?, cells.next()?])
        })
        .collect()
}

#[test]
fn every_feature_is_in_the_policy() {
    let read = |path| fs::read_to_string(root().join(path)).unwrap();
    let policy = read("docs/policy.md");
    let listed = listed_features(&policy);
    let mut manifests = published();
    manifests.push(("fibula-c".to_owned(), read("bindings/c/Cargo.toml")));
    let mut features = Vec::new();
    for (name, manifest) in &manifests {
        let manifest: toml::Table = toml::from_str(manifest).unwrap();
        let Some(table) = manifest.get("features") else { continue };
        features.extend(table.as_table().unwrap().keys().map(|feature| [name.clone(), feature.clone()]));
    }
    assert!(features.len() > 8, "{features:?}");
    for [name, feature] in &features {
        let has = |[names, named]: &[&str; 2]| {
            names.contains(&format!("`{name}`")) && *named == format!("`{feature}`")
        };
        assert!(listed.iter().any(has), "docs/policy.md does not have the feature {feature} of {name}");
    }
    for [names, named] in listed.iter().filter(|[_, named]| *named != "none") {
        let is_there = |[name, feature]: &[String; 2]| {
            names.contains(&format!("`{name}`")) && *named == format!("`{feature}`")
        };
        assert!(features.iter().any(is_there), "{names} has no feature {named}");
    }
}

#[test]
fn the_shares_of_the_steps_are_what_they_come_to() {
    let budget = fs::read_to_string(root().join(".ci/budget")).unwrap();
    let lines = budget.lines().filter(|line| !line.starts_with('#'));
    let sum: u32 = lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u32>().unwrap()).sum();
    let (thousands, rest) = (sum / 1_000, sum % 1_000);
    assert!(budget.contains(&format!(" {thousands},{rest:03} together")), "{sum} s together");
}
