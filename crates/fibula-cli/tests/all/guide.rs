//! Documents: every command runs, and prints what the document says, or is in the list of those that cannot.

use std::path::Path;
use std::process::Command;

use crate::support::Folder;
use crate::support::documents::{blocks, check_words, commands, documents, not_run, read, root};

/// Runs the commands of a document in a folder of their own. Returns how many outputs were compared.
fn check(document: &str) -> usize {
    let (text, list) = (read(document), read("docs/commands.tsv"));
    let folder = Folder::new();
    let bin = Path::new(env!("CARGO_BIN_EXE_fibula")).parent().unwrap();
    let search = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", script]).current_dir(folder.path()).env("PATH", &search);
        let output = shell.env_remove("FIBULA_TABLE").env_remove("FIBULA_ISA").output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{document}:\n{script}{err}");
        (String::from_utf8(output.stdout).unwrap(), err)
    };
    let blocks = blocks(&text);
    let mut compared = 0;
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sh") {
        let commands = commands(&block.text);
        let runs = commands.iter().any(|command| not_run(&list, command).is_none());
        let (out, err) = if commands.iter().all(|command| not_run(&list, command).is_none()) {
            shell(&block.text)
        } else {
            let mut all = (String::new(), String::new());
            for command in commands {
                if not_run(&list, &command).is_some() {
                    exists(document, &command, folder.path());
                    continue;
                }
                let (out, err) = shell(&command);
                all.0 += &out;
                all.1 += &err;
            }
            all
        };
        // Where no command of a block runs here, the list says what compares its output.
        let next = blocks.get(at + 1).filter(|next| runs && next.language == "text" && next.follows);
        if let Some(expected) = next {
            assert_eq!(out, expected.text, "{document}:\n{}{err}", block.text);
            compared += 1;
        }
    }
    compared
}

/// Checks the words of a command that is not run, and makes the files that it would fetch.
fn exists(document: &str, command: &str, folder: &Path) {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[0] {
        "fibula" => check_words(env!("CARGO_BIN_EXE_fibula"), command),
        "cargo" => check_cargo(document, &words[1..]),
        "curl" => {
            let named = words.iter().position(|word| *word == "-o").map(|at| words[at + 1]);
            let name = named.unwrap_or_else(|| words[words.len() - 1].rsplit('/').next().unwrap());
            let stand_in = if name.contains("updates") { "updates.txt" } else { "rib.txt" };
            std::fs::copy(root().join("testdata/documents").join(stand_in), folder.join(name)).unwrap();
        }
        "." => assert!(root().join(words[1]).exists(), "{document}: there is no {}", words[1]),
        // A program that a command before it has compiled.
        path if path.starts_with("./") || path.contains("rivals-venv") => {}
        path if path.contains('/') => {
            assert!(root().join(path).exists(), "{document}: there is no {path}");
        }
        // Programs of others, and the laboratory's, which its own tests check.
        _ => {}
    }
}

/// Checks that packages, tests, examples, features and folders of a command of cargo exist.
fn check_cargo(document: &str, words: &[&str]) {
    let words: Vec<&str> = words.iter().take_while(|word| **word != "--").copied().collect();
    let after = |names: &[&str]| {
        let at = words.iter().position(|word| names.contains(word))?;
        words.get(at + 1).copied()
    };
    let path = after(&["--path"]).map(|path| path.trim_start_matches("/path/to/this/repository/"));
    let folder = match (after(&["-p", "--package"]), path) {
        (Some(package), _) => format!("crates/{package}"),
        (None, Some(path)) => path.to_owned(),
        (None, None) => return,
    };
    let manifest = read(&format!("{folder}/Cargo.toml"));
    let has =
        |text: String| assert!(manifest.contains(&text), "{document}: {folder}/Cargo.toml has no {text}");
    if let Some(name) = after(&["--test", "--bin"]) {
        has(format!("name = \"{name}\""));
    }
    for feature in after(&["--features", "-F"]).into_iter().flat_map(|features| features.split(',')) {
        has(format!("\n{feature} = ["));
    }
    if let Some(name) = after(&["--example"]) {
        let examples = root().join(&folder).join("examples");
        let exists = examples.join(format!("{name}.rs")).exists() || examples.join(name).exists();
        assert!(exists, "{document}: there is no example {name} of {folder}");
    }
}

#[test]
fn the_page_for_operators_is_true() {
    assert!(check("docs/guide/operators.md") >= 5);
}

#[test]
fn the_page_for_analysts_is_true() {
    assert!(check("docs/guide/analysts.md") >= 5);
}

#[test]
fn the_page_about_rpki_is_true() {
    assert!(check("docs/guide/rpki.md") >= 5);
}

#[test]
fn the_readme_is_true() {
    assert!(check("README.md") >= 1);
}

#[test]
fn every_other_document_has_commands_that_run_or_are_listed() {
    let others = ["README.md", "docs/guide/operators.md", "docs/guide/analysts.md", "docs/guide/rpki.md"];
    let documents = documents();
    assert!(documents.len() > 15, "{documents:?}");
    for document in documents.iter().filter(|document| !others.contains(&document.as_str())) {
        check(document);
    }
}

#[test]
fn a_listed_command_is_in_some_document() {
    let texts: Vec<String> = documents().iter().map(|document| read(document)).collect();
    let all: Vec<String> = texts
        .iter()
        .flat_map(|text| blocks(text))
        .filter(|block| block.language == "sh")
        .flat_map(|block| commands(&block.text))
        .collect();
    for line in read("docs/commands.tsv").lines().filter(|line| !line.starts_with('#')) {
        let begins = line.split('\t').next().unwrap();
        assert!(all.iter().any(|command| command.starts_with(begins)), "no document has '{begins}'");
    }
}
