//! The code of each engine at the time of its measurement: a digest of its own files and of those that it uses. A record with these digests
//! lists the engines that have changed since. Comments, white space, imports, tests, and the names and folders of files do not count.
//!
//! A file outside an engine's folder is one that it uses when the engine, or another file that it uses, names one of the items that
//! the file defines. Names that two files define count for both: rather is an engine marked too early than too late.

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

/// Returns the digests of the checkout that this program was built in; none outside of a checkout.
pub(super) fn today() -> &'static Digests {
    static TODAY: OnceLock<Digests> = OnceLock::new();
    TODAY.get_or_init(|| {
        let checkout = option_env!("FIBULA_CHECKOUT").map(Path::new);
        checkout.and_then(|checkout| of(checkout).ok()).unwrap_or_default()
    })
}

/// Returns the digests of the engines of the registry in a checkout.
fn of(checkout: &Path) -> io::Result<Digests> {
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
    Ok(names.filter_map(|name| Some((name.to_owned(), folder(name)?.digest(&shared)))).collect())
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
        self.files.iter().any(|file| file.tokens.iter().any(|one| one == token))
    }

    fn digest(&self, shared: &[SourceFile]) -> String {
        let mut used: Vec<&SourceFile> = self.files.iter().collect();
        let mut rest: Vec<&SourceFile> = shared.iter().collect();
        let mut at = 0;
        while let Some(source) = used.get(at).copied() {
            let (more, less) = rest.into_iter().partition(|other| source.names(other));
            used.extend::<Vec<&SourceFile>>(more);
            rest = less;
            at += 1;
        }
        // In the order of their contents: a file's name and place do not count.
        let mut digests: Vec<u64> = used.iter().map(|source| source.digest).collect();
        digests.sort_unstable();
        format!("{:016x}", hash(digests.iter().flat_map(|digest| digest.to_le_bytes())))
    }
}

/// A file's code.
struct SourceFile {
    tokens: Vec<String>,
    defines: BTreeSet<String>,
    digest: u64,
}

impl SourceFile {
    fn read(path: &Path) -> io::Result<Self> {
        Ok(Self::new(&fs::read_to_string(path)?))
    }

    fn new(text: &str) -> Self {
        let all = tokens(text);
        let defines = defined(&all);
        let code = compiled(&all);
        let digest = hash(code.iter().flat_map(|token| token.bytes().chain([b'\n'])));
        Self { tokens: all, defines, digest }
    }

    fn names(&self, other: &Self) -> bool {
        self.tokens.iter().any(|token| other.defines.contains(token))
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
    let (mut depth, mut is_public) = (0, false);
    for (at, token) in tokens.iter().enumerate() {
        let next = |by: usize| tokens.get(at + by).map_or("", String::as_str);
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ if depth > 0 => continue,
            "macro_rules" => drop(names.insert(next(2).to_owned())),
            "pub" => {
                is_public = true;
                continue;
            }
            // pub(crate), pub(in ...), and words before `fn`.
            "(" | ")" | "in" | "crate" | "super" | "self" | "unsafe" | "async" | "extern" | ":" => continue,
            "const" if next(1) == "fn" => continue,
            kind if is_public && KINDS.contains(&kind) => drop(names.insert(next(1).to_owned())),
            _ => {}
        }
        is_public = false;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> u64 {
        SourceFile::new(text).digest
    }

    #[test]
    fn every_engine_has_the_digest_of_its_own_folder() {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let digests = of(&checkout).unwrap();
        for entry in entries(fibula_published::ENGINES) {
            assert!(digests.contains_key(entry.name), "no folder has the code of {}", entry.name);
        }
        assert_eq!(digests["dxr-16"], digests["dxr-18"]);
        assert_ne!(digests["dir-18-lines"], digests["dir-17-bitmap"]);
        assert_eq!(&digests, today());
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
        let folder = |text: &str| Folder { name: "e".to_owned(), files: vec![SourceFile::new(text)] };
        let engine = folder("fn lookup() { Ranges::find() }");
        let parts = |ranges: &str, deep: &str, other: &str| {
            [
                format!("pub(crate) struct Ranges; impl Ranges {{ fn find() {{ {ranges} }} }}"),
                format!("pub const fn deep() -> u32 {{ {deep} }}"),
                format!("pub struct Other; fn g() {{ {other} }}"),
            ]
            .map(|text| SourceFile::new(&text))
        };
        let before = engine.digest(&parts("deep()", "1", "1"));
        assert_eq!(before, engine.digest(&parts("deep()", "1", "2")), "a file that it does not use");
        assert_ne!(before, engine.digest(&parts("deep()", "2", "1")), "a file that a part uses");
        assert_ne!(before, engine.digest(&parts("deep() + 1", "1", "1")));
        let mut moved = parts("deep()", "1", "1");
        moved.reverse();
        assert_eq!(before, engine.digest(&moved));
    }
}
