//! The modules of the command form no circle: what uses a module is not used by it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module by its path within the crate: `["table", "convert"]`. The root is empty.
type Module = Vec<String>;

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
}

fn module(source: &Path, file: &Path) -> Module {
    let path = file.strip_prefix(source).unwrap().with_extension("");
    let mut parts: Module = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if ["mod", "lib", "main"].contains(&parts.last().unwrap().as_str()) {
        parts.pop();
    }
    parts
}

/// Returns every path named by a tree such as `a::{b, c::{self, d}}`; `self` is replaced by the path it means.
fn paths(tree: &str) -> Vec<Vec<String>> {
    let Some((head, rest)) = tree.split_once('{') else {
        let parts = tree.split("::").map(|part| part.split(" as ").next().unwrap().trim().to_owned());
        return vec![parts.filter(|part| part != "self").collect()];
    };
    let head: Vec<String> =
        head.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    let (mut depth, mut start, mut branches) = (0, 0, Vec::new());
    let inner = rest.strip_suffix('}').unwrap();
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&inner[start..]);
    let branches = branches.into_iter().map(str::trim).filter(|branch| !branch.is_empty());
    branches.flat_map(paths).map(|path| [&head[..], &path].concat()).collect()
}

/// The modules that a file names in its `use` and `mod` lines. Those of tests within it are indented, and left out.
fn uses(text: &str, own: &Module, all: &BTreeSet<Module>) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find("use ") {
        let begins_line = at == 0
            || rest[..at].ends_with('\n')
            || ["\npub(crate) ", "\npub "].iter().any(|word| rest[..at].ends_with(word));
        let statement = &rest[at + 4..];
        let end = statement.find(';').unwrap_or(statement.len());
        if begins_line {
            for path in paths(&statement[..end].replace('\n', " ")) {
                let path = match path[0].as_str() {
                    "crate" => path[1..].to_vec(),
                    "super" => {
                        let up = path.iter().take_while(|part| *part == "super").count();
                        [&own[..own.len() - up], &path[up..]].concat()
                    }
                    _ => [&own[..], &path].concat(),
                };
                let longest = (0..=path.len()).rev().map(|len| path[..len].to_vec());
                found.extend(longest.into_iter().find(|module| all.contains(module)));
            }
        }
        rest = &rest[at + 4..];
    }
    for line in text.lines() {
        let name = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").strip_prefix("mod ");
        if let Some(name) = name.and_then(|name| name.strip_suffix(';')) {
            found.insert([&own[..], &[name.to_owned()]].concat());
        }
    }
    found.remove(own);
    found
}

/// Follows the uses from the end of `way`, and returns the first circle met.
fn circle(
    graph: &BTreeMap<Module, BTreeSet<Module>>,
    way: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
) -> Option<Vec<Module>> {
    let last = way.last().unwrap().clone();
    for next in graph.get(&last).into_iter().flatten() {
        if let Some(at) = way.iter().position(|module| module == next) {
            return Some(way[at..].to_vec());
        }
        if !done.contains(next) {
            way.push(next.clone());
            if let Some(circle) = circle(graph, way, done) {
                return Some(circle);
            }
            way.pop();
        }
    }
    done.insert(last);
    None
}

fn circle_in(sources: &[(Module, String)]) -> Option<Vec<Module>> {
    let all: BTreeSet<Module> = sources.iter().map(|(module, _)| module.clone()).collect();
    let graph = sources.iter().map(|(module, text)| (module.clone(), uses(text, module, &all))).collect();
    let mut done = BTreeSet::new();
    all.iter().find_map(|module| circle(&graph, &mut vec![module.clone()], &mut done))
}

#[test]
fn no_module_uses_what_uses_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&source, &mut all);
    all.retain(|file| !file.ends_with("main.rs"));
    let read = |file: &PathBuf| (module(&source, file), std::fs::read_to_string(file).unwrap());
    let sources: Vec<_> = all.iter().map(read).collect();
    assert!(sources.len() > 30, "{}", sources.len());
    assert_eq!(circle_in(&sources), None);
}

#[test]
fn circles_are_found() {
    let of = |name: &str, text: &str| {
        let parts = name.split('/').filter(|part| !part.is_empty()).map(str::to_owned);
        (parts.collect::<Module>(), text.to_owned())
    };
    let circle = |sources: &[(&str, &str)]| {
        let sources: Vec<_> = sources.iter().map(|(name, text)| of(name, text)).collect();
        circle_in(&sources).is_some()
    };
    let root = ("", "mod a;\nmod b;\n");
    assert!(!circle(&[root, ("a", "use crate::b::{self, x};\n"), ("b", "use std::io;\n")]));
    assert!(circle(&[root, ("a", "use crate::b::{\n    self,\n    x,\n};\n"), ("b", "use crate::a::y;\n")]));
    // A child and its parent, by `super`; the tests within a file are part of it.
    assert!(circle(&[root, ("a", "mod c;\n"), ("a/c", "use super::{d::e, f};\n"), ("b", "")]));
    assert!(!circle(&[root, ("a", "mod c;\n"), ("a/c", "use super::super::b::x;\n"), ("b", "")]));
    assert!(!circle(&[
        root,
        ("a", "mod c;\nmod d;\npub(crate) use c::x;\n"),
        ("a/c", "use super::d::e;\n"),
        ("a/d", "mod tests {\n    use super::*;\n}\n"),
        ("b", "")
    ]));
}
