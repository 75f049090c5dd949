//! The cookbook: its examples run, and print what `docs/guide/cookbook.md` shows.

use std::error::Error;
use std::io::Write;

#[path = "../../fibula/examples/from_prefix_trie.rs"]
#[expect(dead_code, reason = "`main` prints, for people")]
mod from_prefix_trie;
#[path = "../../fibula/examples/from_pytricia.rs"]
#[expect(dead_code, reason = "`main` prints, for people")]
mod from_pytricia;
#[path = "../../fibula/examples/from_rte_fib.rs"]
#[expect(dead_code, reason = "`main` prints, for people")]
mod from_rte_fib;

const COOKBOOK: &str = include_str!("../../../docs/guide/cookbook.md");

fn prints_what_is_shown(run: fn(&mut dyn Write) -> Result<(), Box<dyn Error>>) {
    let mut printed = Vec::new();
    run(&mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    assert!(
        COOKBOOK.contains(&format!("```text\n{printed}```")),
        "docs/guide/cookbook.md does not show:\n{printed}"
    );
}

#[test]
fn from_rte_fib() {
    prints_what_is_shown(from_rte_fib::run);
}

#[test]
fn from_prefix_trie() {
    prints_what_is_shown(from_prefix_trie::run);
}

#[test]
fn from_pytricia() {
    prints_what_is_shown(from_pytricia::run);
}
