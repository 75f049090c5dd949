//! The pages of the guide for operators and analysts: every command runs, and prints what the page says.

use std::path::Path;
use std::process::Command;

use crate::support::Folder;

/// A block of a page: its language and its lines.
fn blocks(page: &str) -> Vec<(String, String)> {
    let (mut blocks, mut open) = (Vec::new(), None::<(String, String)>);
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block does not end");
    blocks
}

fn check(page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let folder = Folder::new();
    let bin = Path::new(env!("CARGO_BIN_EXE_fibula")).parent().unwrap();
    let search = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let blocks = blocks(&text);
    let mut ran = 0;
    for (at, (language, script)) in blocks.iter().enumerate().filter(|(_, block)| block.0 == "sh") {
        let output = Command::new("sh")
            .args(["-e", "-c", script])
            .current_dir(folder.path())
            .env("PATH", &search)
            .env_remove("FIBULA_TABLE")
            .env_remove("FIBULA_ISA")
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{page}, {language} block:\n{script}{err}");
        let expected = blocks.get(at + 1).filter(|next| next.0 == "text").map_or("", |next| &next.1);
        assert_eq!(out, expected, "{page}:\n{script}{err}");
        ran += 1;
    }
    assert!(ran >= 5, "{page} has {ran} blocks");
}

#[test]
fn the_page_for_operators_is_true() {
    check("operators.md");
}

#[test]
fn the_page_for_analysts_is_true() {
    check("analysts.md");
}

#[test]
fn the_page_about_rpki_is_true() {
    check("rpki.md");
}
