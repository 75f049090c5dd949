//! The cookbook: its examples run, and print what `docs/guide/cookbook.md` shows.

#[path = "../../../fibula/examples/from_prefix_trie.rs"]
#[expect(dead_code, reason = "`main` prints, for people")]
mod from_prefix_trie;
#[path = "../../../fibula/examples/from_pytricia.rs"]
#[expect(dead_code, reason = "`main` prints, for people")]
mod from_pytricia;
#[path = "../../../fibula/examples/from_rte_fib.rs"]
#[expect(dead_code, reason = "`main` prints, for people")]
mod from_rte_fib;

const COOKBOOK: &str = include_str!("../../../../docs/guide/cookbook.md");

/// Whether the cookbook shows this output, the whole of it in one block.
fn assert_shown(printed: &[u8]) {
    let printed = str::from_utf8(printed).unwrap();
    assert!(
        COOKBOOK.contains(&format!("```text\n{printed}```")),
        "docs/guide/cookbook.md does not show:\n{printed}"
    );
}

#[test]
fn from_rte_fib() {
    let mut printed = Vec::new();
    from_rte_fib::run(&mut printed).unwrap();
    assert_shown(&printed);
}

#[test]
fn from_prefix_trie() {
    let mut printed = Vec::new();
    from_prefix_trie::run(&mut printed).unwrap();
    assert_shown(&printed);
}

#[test]
fn from_pytricia() {
    let mut printed = Vec::new();
    from_pytricia::run(&mut printed).unwrap();
    assert_shown(&printed);
}
