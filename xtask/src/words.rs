//! Words of the sources: type names that mean several things within a crate, circles of imports, and how comments are written. All
//! are compared with the committed lists and counts, which may only get better.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::circles;
use crate::programs::root;
use crate::{End, Outcome};

/// Folders whose prose is counted, each with everything below it.
const FOLDERS: [&str; 22] = [
    "bindings/c/src",
    "bindings/python/src",
    "crates/fibula/src",
    "crates/fibula/src/engines",
    "crates/fibula/src/file",
    "crates/fibula/src/hops",
    "crates/fibula/src/live",
    "crates/fibula/src/map",
    "crates/fibula/src/simd",
    "crates/fibula/src/vrf",
    "crates/fibula-bpf/src",
    "crates/fibula-cli/src",
    "crates/fibula-column/src",
    "crates/fibula-feed/src",
    "crates/fibula-gpu/src",
    "crates/fibula-lab/src",
    "crates/fibula-published/src",
    "crates/fibula-router/src",
    "crates/fibula-router/src/control",
    "crates/fibula-router/src/forward",
    "crates/fibula-workload/src",
    "xtask/src",
];

/// Folders whose entries are of one kind, one folder each: engines, instruction sets, rivals, back ends. A name that each of them
/// has for the same part, such as `Editor`, means one thing.
const LISTS: [&str; 6] = [
    "crates/fibula/src/engines",
    "crates/fibula/src/simd",
    "crates/fibula-published/src",
    "crates/fibula-lab/src/rival",
    "crates/fibula-lab/src/paper",
    "crates/fibula-router/src/io",
];

/// How far a count for 1,000 lines may get worse before it is a difference: a few lines of a small folder are no trend.
const SLACK: f64 = 1.0;

/// The committed counts.
#[derive(Serialize, Deserialize)]
struct Record {
    /// By crate, the type names that are defined in several folders of it, with these folders.
    names: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    /// By crate, files that import each other in a circle.
    circles: BTreeMap<String, BTreeSet<Vec<String>>>,
    prose: BTreeMap<String, Prose>,
}

/// How the comments of a folder are written; tests are left out.
#[derive(Serialize, Deserialize, Default)]
struct Prose {
    code_lines: usize,
    comment_lines: usize,
    /// Comments within code, which are not documentation, for 1,000 lines of code.
    inline_per_1000: f64,
    /// For 1,000 lines of comments: the word "what".
    what_per_1000: f64,
    of_which_per_1000: f64,
    anew_per_1000: f64,
    /// "because", "however" and "for example" together.
    reasons_per_1000: f64,
}

fn file() -> PathBuf {
    root().join("records/words.json")
}

/// Prints and writes the counts.
pub(crate) fn record() -> Outcome<End> {
    let record = count()?;
    for (folder, prose) in &record.prose {
        let Prose {
            inline_per_1000, what_per_1000, of_which_per_1000, anew_per_1000, reasons_per_1000, ..
        } = prose;
        println!(
            "{folder:36} inline {inline_per_1000:5.1}, what {what_per_1000:5.1}, of which {of_which_per_1000:4.1}, \
             anew {anew_per_1000:4.1}, reasons {reasons_per_1000:4.1}"
        );
    }
    let names: usize = record.names.values().map(BTreeMap::len).sum();
    let circles: usize = record.circles.values().flatten().map(Vec::len).sum();
    println!("{circles} files that import each other in a circle");
    println!("{names} type names that are defined in several folders of a crate");
    fs::write(file(), serde_json::to_string_pretty(&record)? + "\n")?;
    Ok(End::Good)
}

/// Compares with the committed counts.
pub(crate) fn check() -> Outcome<End> {
    let before: Record = serde_json::from_str(&fs::read_to_string(file())?)?;
    let now = count()?;
    let mut worse = Vec::new();
    for (name, names) in &now.names {
        let none = BTreeMap::new();
        let listed = before.names.get(name).unwrap_or(&none);
        for (word, folders) in names.iter().filter(|(word, _)| !listed.contains_key(*word)) {
            let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
            worse.push(format!("{name}: the type name {word} means several things: {}", folders.join(", ")));
        }
    }
    for (name, names) in &before.names {
        for word in
            names.keys().filter(|&word| !now.names.get(name).is_some_and(|names| names.contains_key(word)))
        {
            worse.push(format!("{name}: {word} is listed and means one thing now: take it off the list"));
        }
    }
    for (name, circles) in &now.circles {
        let of = |circles: &BTreeSet<Vec<String>>| -> BTreeSet<String> {
            circles.iter().flatten().cloned().collect()
        };
        let listed = before.circles.get(name).map(of).unwrap_or_default();
        let new: Vec<String> = of(circles).difference(&listed).cloned().collect();
        if !new.is_empty() {
            worse.push(format!("{name}: these files import each other in a circle: {}", new.join(", ")));
        }
    }
    for (name, circles) in &before.circles {
        let gone = circles.difference(now.circles.get(name).unwrap_or(&BTreeSet::new())).count();
        if gone > 0 {
            worse.push(format!("{name}: circles of imports have gone: take them off the list"));
        }
    }
    for (folder, now) in &now.prose {
        let Some(before) = before.prose.get(folder) else {
            worse.push(format!("{folder}: not in the record"));
            continue;
        };
        let rows = [
            ("\"what\"", now.what_per_1000, before.what_per_1000),
            ("\"of which\"", now.of_which_per_1000, before.of_which_per_1000),
            ("\"anew\"", now.anew_per_1000, before.anew_per_1000),
            ("lines of code without a comment", 1e3 - now.inline_per_1000, 1e3 - before.inline_per_1000),
            ("lines of comments without a reason", 1e3 - now.reasons_per_1000, 1e3 - before.reasons_per_1000),
        ];
        for (what, now, before) in rows.into_iter().filter(|(_, now, before)| *now > before + SLACK) {
            worse.push(format!("{folder}: {what}: {now:.1} in 1,000, and {before:.1} before"));
        }
    }
    worse.iter().for_each(|line| println!("{line}"));
    if worse.is_empty() {
        println!("records/words.json: names and prose are as recorded, or better");
        return Ok(End::Good);
    }
    println!("where that is meant: cargo xtask words");
    Ok(End::Differs)
}

fn count() -> Outcome<Record> {
    let (mut names, mut circles) = (BTreeMap::new(), BTreeMap::new());
    let crates: Vec<_> = ["crates", "bindings"]
        .into_iter()
        .map(|folder| fs::read_dir(root().join(folder)))
        .collect::<Result<_, _>>()?;
    for folder in crates.into_iter().flatten() {
        let folder = folder?.path().join("src");
        if folder.is_dir() {
            let name =
                folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
            let sources = sources(&folder)?;
            let several = several(&sources, &folder)?;
            if !several.is_empty() {
                names.insert(name.clone(), several);
            }
            let found = circles::circles(&sources, &folder)?;
            if !found.is_empty() {
                circles.insert(name, found);
            }
        }
    }
    let mut prose = BTreeMap::new();
    for folder in FOLDERS {
        prose.insert(folder.to_owned(), written(&sources(&root().join(folder))?)?);
    }
    Ok(Record { names, circles, prose })
}

/// Returns the sources below a folder in order, without tests.
fn sources(folder: &Path) -> Outcome<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "tests" {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs") {
                let text = fs::read_to_string(&path)?;
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
                found.push((path, text));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the type names that are defined in more than one folder.
fn several(sources: &[(PathBuf, String)], top: &Path) -> Outcome<BTreeMap<String, BTreeSet<String>>> {
    let definition =
        Regex::new(r"(?m)^\s*(?:pub(?:\([a-z :]+\))? )?(?:struct|enum|trait|union|type) ([A-Z]\w*)")?;
    let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources {
        let folder = path.parent().and_then(|folder| folder.strip_prefix(top).ok()).unwrap_or(Path::new(""));
        // Associated types of traits and of their implementations have the name that the trait gives them.
        for found in
            definition.captures_iter(text).filter(|found| !found[0].trim_start().starts_with("type "))
        {
            let whole = top.join(folder);
            let list = LISTS.iter().find(|list| whole.starts_with(root().join(list)));
            let folder = match list.and_then(|list| Path::new(list).strip_prefix("crates").ok()) {
                Some(list) => format!("{}/*", list.components().skip(2).collect::<PathBuf>().display()),
                None => folder.to_string_lossy().replace('\\', "/"),
            };
            folders.entry(found[1].to_owned()).or_default().insert(folder);
        }
    }
    folders.retain(|_, folders| folders.len() > 1);
    Ok(folders)
}

fn written(sources: &[(PathBuf, String)]) -> Outcome<Prose> {
    let mut prose = Prose::default();
    let (mut inline, mut text) = (0, String::new());
    for line in sources.iter().flat_map(|(_, text)| text.lines()).map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let within = line.strip_prefix("//");
        match comment.or(within) {
            Some(words) => {
                inline += usize::from(comment.is_none());
                prose.comment_lines += 1;
                text.push_str(words);
                text.push('\n');
            }
            None => prose.code_lines += usize::from(!line.is_empty()),
        }
    }
    let times = |words: &str| -> Outcome<f64> {
        let count = Regex::new(&format!(r"(?i)\b(?:{words})\b"))?.find_iter(&text).count();
        Ok(rate(count, prose.comment_lines))
    };
    prose.what_per_1000 = times("what")?;
    prose.of_which_per_1000 = times(r"of which")?;
    prose.anew_per_1000 = times("anew")?;
    prose.reasons_per_1000 = times("because|however|for example")?;
    prose.inline_per_1000 = rate(inline, prose.code_lines);
    Ok(prose)
}

fn rate(count: usize, lines: usize) -> f64 {
    (count as f64 * 1e4 / lines.max(1) as f64).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> (PathBuf, String) {
        (PathBuf::from(path), text.to_owned())
    }

    #[test]
    fn a_name_of_two_folders_is_found_and_one_of_a_single_folder_is_not() {
        let sources = [
            source("/top/one/a.rs", "pub struct Reader;\nstruct Local;\nimpl X { type Item = u8; }"),
            source("/top/one/b.rs", "struct Local;"),
            source("/top/two/a.rs", "pub(crate) enum Reader {}\nimpl X { type Item = u8; }"),
        ];
        let found = several(&sources, Path::new("/top")).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["Reader"]);
        assert_eq!(found["Reader"], BTreeSet::from(["one".to_owned(), "two".to_owned()]));
    }

    #[test]
    fn words_are_counted_in_comments_and_not_in_code() {
        let text = "/// What it has, because of which.\n// anew\nlet what = anew;\n\nlet for_example = 1;\n";
        let prose = written(&[source("/a.rs", text)]).unwrap();
        assert_eq!((prose.code_lines, prose.comment_lines), (2, 2));
        let rates =
            [prose.what_per_1000, prose.of_which_per_1000, prose.anew_per_1000, prose.reasons_per_1000];
        assert_eq!((rates, prose.inline_per_1000), ([500.0; 4], 500.0));
    }
}
