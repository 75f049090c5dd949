//! The files of an engine folder depend on each other in one direction: no file imports a file that imports it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files of a folder, each with the siblings that it names, `mod` apart.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The folders of the engines.
fn engines() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let lists = ["fibula/src/engines", "fibula-published/src", "examples/engine/src"]
        .map(|list| fs::read_dir(crates.join(list)).unwrap());
    let folders = lists.into_iter().flatten().map(|entry| entry.unwrap().path());
    folders.filter(|path| path.join("lookup.rs").exists()).collect()
}

/// The source without comments.
fn code(path: &Path) -> String {
    let source = fs::read_to_string(path).unwrap();
    source.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect()
}

/// The first name of each path that follows `prefix`, alone or in a list in braces.
fn names_after<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    fn first(path: &str) -> &str {
        let path = path.trim_start();
        &path[..path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len())]
    }
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let before = &code[..at];
        // `super::super::x` and `crate::fib::x` name no sibling.
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let after = &code[at + prefix.len()..];
        let Some(list) = after.strip_prefix('{') else {
            names.push(first(after));
            continue;
        };
        let (mut depth, mut begin) = (0, 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    names.push(first(&list[begin..at]));
                    begin = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    names
}

/// What each file of a folder imports of its siblings. A name that `mod.rs` takes from a file counts as that file.
fn imports(folder: &Path) -> Imports {
    let files: BTreeMap<String, String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), code(&path)))
        .collect();
    let root = &files["mod"];
    let mut homes = BTreeMap::new();
    for file in files.keys() {
        for name in names_after(root, &format!("use {file}::")) {
            homes.insert(name, file.as_str());
        }
    }
    let siblings = |code: &str| {
        let names = names_after(code, "super::").into_iter();
        let names = names.map(|name| *homes.get(name).unwrap_or(&name));
        names.filter(|&name| files.contains_key(name)).map(str::to_owned).collect()
    };
    let files = files.iter().filter(|(file, _)| *file != "mod");
    files.map(|(file, code)| (file.clone(), siblings(code))).collect()
}

/// A circle of imports, if there is one: its files, the first one again at the end.
fn circle(imports: &Imports) -> Option<Vec<String>> {
    fn walk(imports: &Imports, path: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        let file = path[path.len() - 1].clone();
        if path[..path.len() - 1].contains(&file) {
            return true;
        }
        if done.contains(&file) {
            return false;
        }
        for next in &imports[&file] {
            path.push(next.clone());
            if walk(imports, path, done) {
                return true;
            }
            path.pop();
        }
        done.insert(file);
        false
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|file| {
        let mut path = vec![file.clone()];
        walk(imports, &mut path, &mut done).then(|| {
            let last = &path[path.len() - 1];
            path[path.iter().position(|file| file == last).unwrap()..].to_vec()
        })
    })
}

#[test]
fn no_file_of_an_engine_imports_one_that_imports_it() {
    let engines = engines();
    assert!(engines.len() >= 11, "{engines:?}");
    for folder in engines {
        let imports = imports(&folder);
        assert_eq!(circle(&imports), None, "{}", folder.display());
    }
}

/// `layout.rs` is what all others build on, `scalar.rs` what kernels and dispatch share, and `lookup.rs` alone picks a
/// kernel.
#[test]
fn layouts_know_no_lookups_and_kernels_are_picked_in_one_file() {
    let mut kernels = 0;
    for folder in engines() {
        let imports = imports(&folder);
        let place = folder.display();
        kernels += usize::from(imports.contains_key("kernel"));
        assert_eq!(imports.contains_key("kernel"), imports.contains_key("scalar"), "{place}");
        for (file, siblings) in imports.iter().filter(|(file, _)| *file != "tests") {
            assert!(!siblings.contains("lookup"), "{place}: {file}.rs imports lookup.rs");
            assert!(file == "lookup" || !siblings.contains("kernel"), "{place}: {file}.rs imports kernel.rs");
            assert!(file != "layout" || !siblings.contains("scalar"), "{place}: {file}.rs imports scalar.rs");
        }
    }
    assert!(kernels >= 8, "{kernels}");
}

#[test]
fn a_circle_is_found_through_lists_and_reexports() {
    let code = "use super::{NAME, b::{X, Y}, c};\nuse crate::fib::super_x;\nfn f() { super::d::g(); }";
    assert_eq!(names_after(code, "super::"), ["NAME", "b", "c", "d"]);
    let imports = |list: &[(&str, &[&str])]| -> Imports {
        list.iter()
            .map(|(file, all)| ((*file).to_owned(), all.iter().map(|&name| name.to_owned()).collect()))
            .collect()
    };
    assert_eq!(circle(&imports(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])), None);
    let found = circle(&imports(&[("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &["b"])])).unwrap();
    assert_eq!(found, ["b", "c", "d", "b"]);
}
