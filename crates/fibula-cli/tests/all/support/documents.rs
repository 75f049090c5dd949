//! Documents, and the commands in their blocks.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the hand-written documents that people read, by their paths from the root.
pub(crate) fn documents() -> Vec<String> {
    let mut all = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for folder in ["docs", "docs/guide"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        all.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    all.retain(|path| !read(path).starts_with("<!-- Generated"));
    all.sort();
    all
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A block of a document.
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
    /// Nothing is between the block before it and this one.
    pub(crate) follows: bool,
}

/// Returns the blocks of a document.
pub(crate) fn blocks(document: &str) -> Vec<Block> {
    let (mut blocks, mut open, mut follows) = (Vec::new(), None::<Block>, false);
    for line in document.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Block { language: language.to_owned(), text: String::new(), follows });
            }
            (Some(_), Some(_)) => {
                blocks.extend(open.take());
                follows = true;
            }
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => follows &= line.is_empty(),
        }
    }
    assert!(open.is_none(), "a block does not end");
    blocks
}

/// Returns the commands of a block in the language `sh`, without the comments after them.
pub(crate) fn commands(script: &str) -> Vec<String> {
    let joined = script.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.split(" #").next().unwrap_or(line).trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// Returns the reason why no test runs a command, if docs/commands.tsv has one.
pub(crate) fn not_run(list: &str, command: &str) -> Option<String> {
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| line.split_once('\t').expect("a beginning, a tab, a reason"));
    rows.filter(|(begins, _)| command.starts_with(begins)).map(|(_, why)| why.to_owned()).next()
}

/// Checks that a program knows the words and options of a command, by what it prints as help for these words.
pub(crate) fn check_words(program: &str, command: &str) {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let ends = |word: &&&str| !["<", ">", "|", "&&", "--"].contains(*word);
    let words: Vec<&str> = words.iter().take_while(ends).copied().collect();
    let subcommands = words.iter().take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    // Of `paper multibit`, the second word is an argument: its help is that of the first.
    let help = (0..=subcommands.count().min(2)).rev().find_map(|count| {
        let output = Command::new(program).args(&words[..count]).arg("--help").output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    });
    let help = help.unwrap_or_else(|| panic!("{command}: no help"));
    let known: Vec<&str> =
        help.split(|letter: char| letter.is_whitespace() || ",[]=".contains(letter)).collect();
    for option in words.iter().filter(|word| word.starts_with('-')) {
        let name = option.split('=').next().unwrap();
        assert!(known.contains(&name), "'{command}': {name} is not in the help");
    }
}
