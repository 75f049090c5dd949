//! The code of each engine at the time of its measurement: a digest of its files and of those that they use. A record with these digests
//! lists the engines that have changed since. Comments, white space, imports, tests, and the names and folders of files do not count, nor
//! does, for a record of lookups, code that only changes in place use.
//!
//! Of an engine's folder, [`FIRST`] are the files where lookups and builds begin. They use another file of a folder when one of them, or
//! another file that they use, names its module and one of the items that it defines, or defines a type that it extends with an `impl`;
//! and a file that engines share when they name one of its items. Names that two files define count for both: rather is an engine
//! marked too early than too late. The folder of another engine counts as the engine's own where it is named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fibula_workload::engines::entries;

/// Marks a figure that was measured before its code changed.
pub(super) const STALE: &str = "†";

/// The folders whose folders are engines.
const LISTS: [&str; 2] = ["crates/fibula/src/engines", "crates/fibula-published/src"];

/// The files of an engine's folder where its lookups and its build begin.
const FIRST: [&str; 6] = ["mod", "layout", "lookup", "kernel", "scalar", "build"];

/// The files of an engine's folder that extend its types for neither lookups nor builds.
const OTHERS: [&str; 3] = ["check", "change", "update"];

/// Code that engines share.
const SHARED: [&str; 7] = [
    "crates/fibula/src/fib/parts",
    "crates/fibula/src/fib/contract.rs",
    "crates/fibula/src/simd",
    "crates/fibula/src/memory",
    "crates/fibula/src/net/key.rs",
    "crates/fibula/src/net/prefix.rs",
    "crates/fibula-published/src/bloom",
];

/// Digests by the names of engines.
pub(super) type Digests = BTreeMap<String, String>;

/// The work of an engine that a record measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Lookups and builds.
    Lookups,
    /// Changes too.
    Changes,
}

/// A plan of measurements of a scope.
pub trait Measures {
    /// The work that is measured.
    const SCOPE: Scope;
}

/// Returns the digests of the checkout that this program was built in; none outside of a checkout.
pub(super) fn today(scope: Scope) -> &'static Digests {
    static TODAY: [OnceLock<Digests>; 2] = [const { OnceLock::new() }; 2];
    TODAY[scope as usize].get_or_init(|| {
        let checkout = option_env!("FIBULA_CHECKOUT").map(Path::new);
        checkout.and_then(|checkout| of(checkout, scope).ok()).unwrap_or_default()
    })
}

/// Returns the digests of the engines of the registry in a checkout.
fn of(checkout: &Path, scope: Scope) -> io::Result<Digests> {
    let mut shared = Vec::new();
    for path in SHARED {
        for file in files(&checkout.join(path))? {
            shared.push(SourceFile::read(&file)?);
        }
    }
    let mut folders = Vec::new();
    for list in LISTS {
        for entry in fs::read_dir(checkout.join(list))? {
            let folder = entry?.path();
            if folder.join("lookup.rs").is_file() {
                folders.push(Folder::read(&folder)?);
            }
        }
    }
    // An engine is of the folder that has its name as a text; variants whose names are made are of that which begins so.
    let folder = |name: &str| {
        let literal = format!("\"{name}\"");
        let begins = |folder: &&Folder| name.starts_with(&format!("{}-", folder.name));
        folders.iter().find(|folder| folder.has(&literal)).or_else(|| folders.iter().find(begins))
    };
    let names = entries(fibula_published::ENGINES).into_iter().map(|entry| entry.name);
    Ok(names
        .filter_map(|name| Some((name.to_owned(), folder(name)?.digest(scope, &folders, &shared))))
        .collect())
}

/// An engine's folder.
struct Folder {
    name: String,
    files: Vec<SourceFile>,
}

impl Folder {
    fn read(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().replace('_', "-");
        let files = files(path)?.iter().map(|file| SourceFile::read(file)).collect::<io::Result<_>>()?;
        Ok(Self { name, files })
    }

    fn has(&self, token: &str) -> bool {
        self.files.iter().any(|file| file.tokens.contains(token))
    }

    /// Returns the digest of the engine, in a house of these folders and shared files.
    fn digest(&self, scope: Scope, folders: &[Self], shared: &[SourceFile]) -> String {
        let (mut used, own): (Vec<&SourceFile>, Vec<_>) = self
            .files
            .iter()
            .partition(|file| scope == Scope::Changes || FIRST.contains(&file.stem.as_str()));
        let others = folders.iter().filter(|other| !std::ptr::eq(self, *other));
        let borrowed =
            others.filter(|other| self.has(&other.name.replace('-', "_"))).flat_map(|other| &other.files);
        let mut own: Vec<&SourceFile> = own.into_iter().chain(borrowed).collect();
        let mut shared: Vec<&SourceFile> = shared.iter().collect();
        let mut at = 0;
        while let Some(source) = used.get(at).copied() {
            at += 1;
            // The list of an engine's bodies names those of changes too.
            if scope == Scope::Lookups && source.stem == "mod" {
                continue;
            }
            for (files, uses) in [
                (&mut own, &SourceFile::uses as &dyn Fn(&SourceFile, &SourceFile) -> bool),
                (&mut shared, &SourceFile::names),
            ] {
                let (more, less) = files.iter().partition::<Vec<&SourceFile>, _>(|other| uses(source, other));
                used.extend(more);
                *files = less;
            }
        }
        // In the order of their contents: a file's name and place do not count.
        let mut digests: Vec<u64> = used.iter().map(|source| source.digest).collect();
        digests.sort_unstable();
        format!("{:016x}", hash(digests.iter().flat_map(|digest| digest.to_le_bytes())))
    }
}

/// A file's code.
struct SourceFile {
    /// Its name without the ending.
    stem: String,
    tokens: BTreeSet<String>,
    defines: BTreeSet<String>,
    /// The types of its `impl`s.
    extends: BTreeSet<String>,
    digest: u64,
}

impl SourceFile {
    fn read(path: &Path) -> io::Result<Self> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self::new(stem, &fs::read_to_string(path)?))
    }

    fn new(stem: String, text: &str) -> Self {
        let all = tokens(text);
        let defines = defined(&all);
        let code = compiled(&all);
        let digest = hash(code.iter().flat_map(|token| token.bytes().chain([b'\n'])));
        Self { stem, defines, extends: extended(&all), digest, tokens: all.into_iter().collect() }
    }

    fn names(&self, other: &Self) -> bool {
        other.defines.iter().any(|name| self.tokens.contains(name))
    }

    /// Returns whether another file of its folder counts with it.
    fn uses(&self, other: &Self) -> bool {
        let names = self.tokens.contains(&other.stem) && self.names(other);
        let is_extended = || !self.defines.is_disjoint(&other.extends);
        names || !OTHERS.contains(&other.stem.as_str()) && is_extended()
    }
}

/// Returns the sources of a folder, or the file itself, without those of tests.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_test = stem == "tests" || stem.ends_with("_tests");
        if !is_test && (path.is_dir() || path.extension().is_some_and(|extension| extension == "rs")) {
            found.extend(files(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

/// FNV-1a.
fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Cuts Rust into words, texts and signs. Comments go; so does a comma before a closing bracket, which formatting decides.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens: Vec<String> = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let start = i;
        match at(i) {
            c if c.is_whitespace() => {
                i += 1;
                continue;
            }
            '/' if at(i + 1) == '/' => {
                i += chars[i..].iter().take_while(|&&c| c != '\n').count();
                continue;
            }
            '/' if at(i + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 || i >= chars.len() {
                        break;
                    }
                }
                continue;
            }
            'r' if at(i + 1) == '"' || at(i + 1) == '#' && matches!(at(i + 2), '"' | '#') => {
                let marks = chars[i + 1..].iter().take_while(|&&c| c == '#').count();
                i += marks + 2;
                while i < chars.len()
                    && !(at(i) == '"'
                        && chars[i + 1..].iter().take(marks).filter(|&&c| c == '#').count() == marks)
                {
                    i += 1;
                }
                i += 1 + marks;
            }
            '"' => {
                i += 1;
                while i < chars.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            '\'' if at(i + 1) == '\\' => {
                i += 3;
                while i < chars.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            '\'' if at(i + 2) == '\'' => i += 3,
            c if is_word(c) => i += chars[i..].iter().take_while(|&&c| is_word(c)).count(),
            c => {
                if matches!(c, ')' | ']' | '}') && tokens.last().is_some_and(|last| last == ",") {
                    tokens.pop();
                }
                i += 1;
            }
        }
        tokens.push(chars[start..i.min(chars.len())].iter().collect());
    }
    tokens
}

/// Returns the tokens without imports, lines of modules, and items under `#[cfg(test)]`.
fn compiled(tokens: &[String]) -> Vec<&str> {
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let mut kept = Vec::with_capacity(words.len());
    let mut i = 0;
    while i < words.len() {
        let rest = &words[i..];
        if rest.starts_with(&["#", "[", "cfg", "(", "test", ")", "]"]) {
            i += 7 + item(&rest[7..]);
        } else if rest[0] == "use" || rest[0] == "mod" && rest.get(2) == Some(&";") {
            i += item(rest);
        } else {
            kept.push(rest[0]);
            i += 1;
        }
    }
    kept
}

/// Returns the length of an item: to its semicolon, or to the end of its first braces, those of an import apart.
fn item(words: &[&str]) -> usize {
    let is_import = words.iter().take(4).any(|&word| word == "use");
    let mut depth = 0;
    for (at, &word) in words.iter().enumerate() {
        match word {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 && word == "}" && !is_import {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    words.len()
}

/// Returns the names that a file defines for others, outside of all braces.
fn defined(tokens: &[String]) -> BTreeSet<String> {
    const KINDS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
    let mut names = BTreeSet::new();
    let (mut depth, mut is_public, mut is_within) = (0, false, false);
    for (at, token) in tokens.iter().enumerate() {
        let next = |by: usize| tokens.get(at + by).map_or("", String::as_str);
        match token.as_str() {
            // pub(crate), pub(in ...)
            "(" if at > 0 && tokens[at - 1] == "pub" => {
                is_within = true;
                continue;
            }
            ")" if is_within => {
                is_within = false;
                continue;
            }
            _ if is_within => continue,
            "{" => depth += 1,
            "}" => depth -= 1,
            _ if depth > 0 => continue,
            "macro_rules" => drop(names.insert(next(2).to_owned())),
            "pub" => {
                is_public = true;
                continue;
            }
            // Words before `fn`.
            "unsafe" | "async" | "extern" => continue,
            "const" if next(1) == "fn" => continue,
            kind if is_public && KINDS.contains(&kind) => drop(names.insert(next(1).to_owned())),
            _ => {}
        }
        is_public = false;
    }
    names
}

/// Returns the names of the types that a file's `impl`s are of, outside of all braces.
fn extended(tokens: &[String]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let (mut depth, mut at) = (0, 0);
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "impl" if depth == 0 => {
                // The last word outside of angle brackets, before `where`.
                let (mut angles, mut name) = (0, None);
                while let Some(token) =
                    tokens.get(at).filter(|token| !matches!(token.as_str(), "{" | "where"))
                {
                    match token.as_str() {
                        "<" => angles += 1,
                        ">" => angles -= 1,
                        word if angles == 0 && word.starts_with(char::is_alphabetic) => name = Some(word),
                        _ => {}
                    }
                    at += 1;
                }
                names.extend(name.map(str::to_owned));
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> u64 {
        SourceFile::new("lookup".to_owned(), text).digest
    }

    #[test]
    fn every_engine_has_the_digest_of_its_own_folder() {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let digests = of(&checkout, Scope::Lookups).unwrap();
        for entry in entries(fibula_published::ENGINES) {
            assert!(digests.contains_key(entry.name), "no folder has the code of {}", entry.name);
        }
        assert_eq!(digests["dxr-16"], digests["dxr-18"]);
        assert_ne!(digests["dir-18-lines"], digests["dir-17-bitmap"]);
        assert_eq!(&digests, today(Scope::Lookups));
        let with_changes = today(Scope::Changes);
        assert_ne!(digests["dir-btree"], with_changes["dir-btree"]);
    }

    #[test]
    fn formatting_comments_imports_and_tests_do_not_count() {
        let code = "use a::b;\npub fn f(x: u32, y: char) -> u32 { x + if y == '\"' { 1 } else { 2 } }\n";
        let same = "use a::{c, b};\n//! New\nmod z;\npub fn f(\n    x: u32,\n    y: char,\n) -> u32 { /* a /* b */ \" */\n x \
                    + if y == '\"' { 1 } else { 2 } }\n#[cfg(test)]\nmod tests { fn g() { f(3) } }\n";
        assert_eq!(digest(code), digest(same));
        assert_ne!(digest(code), digest(&code.replace("+ if", "- if")));
        assert_ne!(digest(code), digest(&code.replace("'\"'", "' '")));
    }

    #[test]
    fn an_engine_changes_with_the_files_that_it_uses_and_no_others() {
        let folder = |name: &str, files: &[(&str, &str)]| Folder {
            name: name.to_owned(),
            files: files.iter().map(|(stem, text)| SourceFile::new((*stem).to_owned(), text)).collect(),
        };
        // Each file is written with a figure, which another version has otherwise.
        let digest_in = |scope, changed: &str| {
            let figure = |file: &str| if file == changed { "2" } else { "1" };
            let text = |file: &str, text: &str| text.replace("FIGURE", figure(file));
            let engine = folder(
                "e",
                &[
                    ("mod", &text("mod", "fn bodies() { update::Editor::new(FIGURE) }")),
                    ("lookup", &text("lookup", "fn lookup() { Ranges::find(FIGURE) }")),
                    (
                        "build",
                        "use super::plan::Plan; use crate::engines::long_name::lookup::leaf; fn build() { leaf() }",
                    ),
                    (
                        "plan",
                        &text("plan", "pub(in crate::engines) struct Plan; impl Plan { fn of() { FIGURE } }"),
                    ),
                    (
                        "walk",
                        &text(
                            "walk",
                            "impl<K: Key> Walk<K> for super::Plan<K> where K: Ord { fn f() { FIGURE } }",
                        ),
                    ),
                    (
                        "update",
                        &text(
                            "update",
                            "pub(super) struct Editor; impl InPlace for Plan { fn f() { FIGURE } }",
                        ),
                    ),
                    (
                        "prepared",
                        &text("prepared", "pub(super) struct Ranges; impl Editor { fn f() { FIGURE } }"),
                    ),
                ],
            );
            let borrowed = folder(
                "long-name",
                &[
                    ("lookup", &text("borrowed", "pub(in crate::engines) const fn leaf() { FIGURE }")),
                    ("kernel", &text("not borrowed", "pub fn own() { FIGURE }")),
                ],
            );
            let stranger = folder("stranger", &[("lookup", &text("stranger", "pub fn leaf() { FIGURE }"))]);
            let mut shared = [
                ("ranges", "pub(crate) struct Ranges; impl Ranges { fn find() { deep(FIGURE) } }"),
                ("deep", "pub const fn deep() -> u32 { FIGURE }"),
                ("other", "pub struct Other; fn g() { FIGURE }"),
            ]
            .map(|(file, code)| SourceFile::new(file.to_owned(), &text(file, code)));
            if changed == "order" {
                shared.reverse();
            }
            let folders = [engine, borrowed, stranger];
            folders[0].digest(scope, &folders, &shared)
        };
        let digest_with = |changed| digest_in(Scope::Lookups, changed);
        let before = digest_with("none");
        for used in ["mod", "lookup", "plan", "walk", "borrowed", "ranges", "deep"] {
            assert_ne!(before, digest_with(used), "{used}");
        }
        for other in ["update", "prepared", "not borrowed", "stranger", "other", "order"] {
            assert_eq!(before, digest_with(other), "{other}");
        }
        assert_ne!(digest_in(Scope::Changes, "none"), digest_in(Scope::Changes, "update"));
        assert_ne!(digest_in(Scope::Changes, "none"), digest_in(Scope::Changes, "prepared"));
    }
}
