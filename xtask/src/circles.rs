//! Circles of imports: files of a crate each of which imports the next, and the last one the first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::Outcome;

/// The path of a module within its crate; empty for the root.
type Module = Vec<String>;

/// Returns the circles of a crate: for each, its files, by paths below `top`.
pub(crate) fn circles(sources: &[(PathBuf, String)], top: &Path) -> Outcome<BTreeSet<Vec<String>>> {
    let statement = Regex::new(r"(?m)^\s*(?:pub(?:\([a-z :]+\))? )?use ([^;]+);")?;
    let sources: BTreeMap<Module, Vec<Vec<String>>> = sources
        .iter()
        .map(|(path, text)| {
            let own = module(path.strip_prefix(top).unwrap_or(path));
            let uses = statement.captures_iter(text).flat_map(|found| paths(&found[1].replace('\n', " ")));
            let uses = uses.filter_map(|path| absolute(&own, path)).collect();
            (own, uses)
        })
        .collect();
    let graph: BTreeMap<&Module, BTreeSet<&Module>> = sources
        .iter()
        .map(|(own, uses)| {
            let found = uses.iter().filter_map(|path| home(&sources, path, own));
            // A module that re-exports its parts does not depend on them: it is a list of them.
            (own, found.filter(|to| *to != own && !to.starts_with(own)).collect())
        })
        .collect();
    let mut circles = BTreeSet::new();
    for &start in graph.keys() {
        let there = reached(&graph, start);
        let circle: BTreeSet<_> =
            there.iter().filter(|&&other| reached(&graph, other).contains(start)).collect();
        if circle.len() > 1 {
            circles.insert(circle.into_iter().map(|module| module.join("/")).collect());
        }
    }
    Ok(circles)
}

/// Returns the modules that are reached from one.
fn reached<'m>(
    graph: &BTreeMap<&'m Module, BTreeSet<&'m Module>>,
    start: &'m Module,
) -> BTreeSet<&'m Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(next) = open.pop() {
        for &to in graph.get(next).into_iter().flatten() {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}

fn module(file: &Path) -> Module {
    let path = file.with_extension("");
    let mut parts: Module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// Returns every path of a tree such as `a::{b, c::{self, d as e}}`.
fn paths(tree: &str) -> Vec<Vec<String>> {
    let parts = |text: &str| -> Vec<String> {
        let parts =
            text.split("::").map(|part| part.split(" as ").next().unwrap_or_default().trim().to_owned());
        parts.filter(|part| !part.is_empty() && part != "self").collect()
    };
    let Some((head, rest)) = tree.split_once('{') else { return vec![parts(tree)] };
    let (head, inner) = (parts(head), rest.trim_end().strip_suffix('}').unwrap_or(rest));
    let (mut depth, mut start, mut branches) = (0, 0, Vec::new());
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

/// Returns a path from the root of the crate; `None` for paths of other crates.
fn absolute(own: &Module, path: Vec<String>) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "super" => {
            let up = path.iter().take_while(|part| *part == "super").count();
            Some([own.get(..own.len().checked_sub(up)?)?, &path[up..]].concat())
        }
        _ => Some([&own[..], &path].concat()),
    }
}

/// Returns the module that defines the last name of a path. A module that imports the name from another one, by `use`, is
/// passed on to it.
fn home<'m>(
    sources: &'m BTreeMap<Module, Vec<Vec<String>>>,
    path: &[String],
    from: &Module,
) -> Option<&'m Module> {
    let mut path = path.to_vec();
    for _ in 0..8 {
        let (module, rest) = (0..=path.len())
            .rev()
            .find_map(|len| Some((sources.get_key_value(&path[..len])?, &path[len..])))?;
        let next = rest.first().and_then(|name| {
            module.1.iter().find(|used| used.last() == Some(name) && used[..] != path[..] && module.0 != from)
        });
        match next {
            Some(used) => path = used.clone(),
            // Paths of other crates begin at no module of this one.
            None if module.0.is_empty() && rest.len() > 1 => return None,
            None => return Some(module.0),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<_> =
            sources.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
        circles(&sources, Path::new("/top")).unwrap().into_iter().collect()
    }

    #[test]
    fn circles_are_found_by_paths_lists_and_re_exports() {
        let root = ("/top/lib.rs", "mod a;\nmod b;\n");
        let one_way = [root, ("/top/a.rs", "use crate::b::{self, X};"), ("/top/b.rs", "use std::io;")];
        assert!(found(&one_way).is_empty());
        let both =
            [root, ("/top/a.rs", "use crate::b::{\n    Y,\n    X,\n};"), ("/top/b.rs", "use super::a::Z;")];
        assert_eq!(found(&both), [["a", "b"]]);
        // Through the list of a folder.
        let folder = [
            ("/top/lib.rs", "mod f;"),
            ("/top/f/mod.rs", "mod a;\nmod b;\npub use a::X;\npub use b::Y;"),
            ("/top/f/a.rs", "use super::Y;"),
            ("/top/f/b.rs", "use crate::f::X;"),
        ];
        assert_eq!(found(&folder), [["f/a", "f/b"]]);
        // A part that uses its parent, which only lists it, is no circle.
        let part =
            [("/top/f/mod.rs", "mod a;\npub use a::X;\npub struct N;"), ("/top/f/a.rs", "use super::N;")];
        assert!(found(&part).is_empty());
    }
}
