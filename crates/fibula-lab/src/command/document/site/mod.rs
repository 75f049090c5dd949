//! Builds the guides, the documents and the results as a static site, with MkDocs. Nothing of the site is committed.
//!
//! A page may link to a file that is no page, such as a source file: the link then becomes its text, because the site has no
//! such file.

mod links;
mod results;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::generated::Generated;
use crate::command::figures::root;

/// The generator with its theme, in the version that the site is built and looked at with.
const MKDOCS: &str = "mkdocs-material==9.8.2";

/// Pages at the root of the repository, and their names in the site.
const ROOT_PAGES: [(&str, &str); 5] = [
    ("README.md", "index.md"),
    ("ARCHITECTURE.md", "architecture.md"),
    ("CONTRIBUTING.md", "contributing.md"),
    ("SECURITY.md", "security.md"),
    ("CHANGELOG.md", "changelog.md"),
];

/// Pages of the section "Measured" of the navigation.
const RESULTS: [&str; 11] = [
    "benchmarks.md",
    "engines.md",
    "findings.md",
    "papers.md",
    "rivals.md",
    "values.md",
    "tables.md",
    "aggregation.md",
    "router.md",
    "methodology.md",
    "policy.md",
];

pub(super) fn write(generated: &Generated) -> Result<bool, Box<dyn Error>> {
    let site = generated.output.clone().unwrap_or_else(|| root().join("target/site"));
    let source = tempfile::tempdir()?;
    let docs = source.path().join("docs");
    let files = files()?;
    for (from, to) in &files {
        let target = docs.join(to);
        fs::create_dir_all(target.parent().unwrap_or(&docs))?;
        let path = root().join(from);
        if to.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path)?;
            fs::write(target, links::rewrite(&text, from, to, &files))?;
        } else {
            fs::copy(&path, target)?;
        }
    }
    fs::write(docs.join("results.html"), results::page()?)?;
    let config = source.path().join("mkdocs.yml");
    fs::write(&config, configuration(&docs, &files)?)?;

    let mut mkdocs = Command::new(std::env::var_os("MKDOCS").unwrap_or_else(|| "mkdocs".into()));
    mkdocs.args(["build", "--strict", "--quiet", "--clean", "--config-file"]).arg(&config);
    // A note about a later version of the generator, in colours, at each build.
    mkdocs.env("NO_MKDOCS_2_WARNING", "1");
    mkdocs.arg("--site-dir").arg(std::path::absolute(&site)?);
    let built = mkdocs.status().map_err(|error| {
        format!("{}: {error}; to get it: pip install {MKDOCS}", mkdocs.get_program().display())
    })?;
    if !built.success() {
        return Err(format!("mkdocs: {built}").into());
    }
    println!("{} written", site.display());
    Ok(true)
}

/// The files of the site: their paths in the repository and in the site.
type Files = BTreeMap<PathBuf, PathBuf>;

fn files() -> Result<Files, Box<dyn Error>> {
    let mut files: Files = ROOT_PAGES.iter().map(|(from, to)| (from.into(), to.into())).collect();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension != "toml") {
                let to = path.strip_prefix("docs")?.to_owned();
                files.insert(path, to);
            }
        }
    }
    Ok(files)
}

/// Returns the configuration of MkDocs. Nothing is loaded from other hosts.
fn configuration(docs: &Path, files: &Files) -> Result<String, Box<dyn Error>> {
    let mut nav = String::from("  - index.md\n  - Results: results.html\n");
    let mut section = |name: &str, pages: &[PathBuf]| -> Result<(), Box<dyn Error>> {
        nav += &format!("  - {name}:\n");
        for page in pages {
            let title = title(&fs::read_to_string(docs.join(page))?);
            nav += &format!("    - {}: {}\n", serde_json::to_string(&title)?, page.display());
        }
        Ok(())
    };
    let of = |folder: &str| -> Vec<PathBuf> {
        let pages = files.values().filter(|to| to.extension().is_some_and(|extension| extension == "md"));
        pages.filter(|to| to.starts_with(folder)).cloned().collect()
    };
    section("Guide", &of("guide"))?;
    section("Measured", &RESULTS.map(PathBuf::from))?;
    let house: Vec<PathBuf> = ROOT_PAGES[1..].iter().map(|(_, to)| to.into()).collect();
    section("Project", &[&house[..], &["glossary.md".into()]].concat())?;
    section("Decisions", &of("adr"))?;
    Ok(format!("{CONFIGURATION}nav:\n{nav}"))
}

const CONFIGURATION: &str = "\
site_name: Fibula
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.indexes, toc.integrate, content.code.copy]
  palette:
    - {media: '(prefers-color-scheme: light)', scheme: default, primary: white}
    - {media: '(prefers-color-scheme: dark)', scheme: slate, primary: black}
markdown_extensions: [tables, fenced_code, toc]
plugins: [search]
extra: {generator: false}
validation: {nav: {not_found: warn, omitted_files: warn}, links: {not_found: warn, anchors: warn}}
";

/// Returns the first heading of a page.
fn title(text: &str) -> String {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or("Untitled").replace('`', "")
}
