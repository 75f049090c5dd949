//! The table of operations in the documentation of `map`, compared with the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const TYPES: [&str; 5] = ["PrefixMap", "IpPrefixMap", "PrefixSet", "SharedPrefixMap", "Pinned"];

/// Traits whose methods are operations too.
const TRAITS: [&str; 3] = ["Extend", "FromIterator", "IntoIterator"];

const DOCUMENTATION: &str = include_str!("mod.rs");

macro_rules! sources {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!($name, ".rs")))),*]
    };
}

/// Modules by name, without those of tests.
const SOURCES: [(&str, &str); 20] = sources!(
    "address_operations" "addresses" "aggregate" "compiled" "compiled_covers" "entry" "ip" "iter" "join" "prefix_map"
    "range" "serde" "set" "set_operations" "shared" "shared_bulk" "shared_read" "shared_reader" "slab" "traits"
);

/// Returns what is before the angle bracket that closes the one at the beginning, and what is after it.
fn generics(text: &str) -> (&str, &str) {
    let mut depth = 0;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        depth += i32::from(letter == '<') - i32::from(letter == '>' && before != '-');
        if depth == 0 {
            return if at == 0 { ("", text) } else { text.split_at(at + 1) };
        }
        before = letter;
    }
    panic!("no end of the generics of {text:?}")
}

/// Returns the trait, if any, and the type of an implementation.
fn implementation(header: &str) -> (Option<&str>, &str) {
    let (_, rest) = generics(header.strip_prefix("impl").unwrap());
    let first_word = |text: &str| text.find(['<', ' ', '{']).unwrap_or(text.len());
    let rest = rest.trim_start();
    let first = &rest[..first_word(rest)];
    match rest.split_once(" for ") {
        Some((_, of)) => (Some(first), &of[..first_word(of)]),
        None => (None, first),
    }
}

/// Returns the operations of each type. The sources are formatted: what is in an implementation is indented.
fn operations() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut operations = BTreeMap::<String, BTreeSet<&str>>::new();
    let mut add = |name: &str, of: &str| {
        if let Some(of) = TYPES.iter().find(|&&known| known == of) {
            operations.entry(name.to_owned()).or_default().insert(of);
        }
    };
    for (_, source) in SOURCES {
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            // Operations on two sets are defined by a macro.
            if let Some(rest) = line.strip_prefix("operation!(") {
                let arguments = if rest.is_empty() { lines.next().unwrap().trim() } else { rest };
                let (name, _) = arguments.split_once(',').unwrap();
                let of = if source.contains("PrefixSet<K> {") { "PrefixSet" } else { "AddressSet" };
                add(name, of);
            }
            if !line.starts_with("impl") {
                continue;
            }
            let mut header = line.to_owned();
            while !header.contains('{') {
                header = header + " " + lines.next().unwrap().trim();
            }
            let (of_trait, of) = implementation(&header);
            if of_trait.is_some_and(|name| !TRAITS.contains(&name)) || header.ends_with("{}") {
                continue;
            }
            let start = if of_trait.is_some() { "    fn " } else { "    pub fn " };
            for line in lines.by_ref().take_while(|&line| line != "}") {
                if let Some(rest) = line.strip_prefix(start) {
                    add(&rest[..rest.find(['<', '(']).unwrap()], of);
                }
            }
        }
    }
    operations
}

/// Returns the section as it should be, in lines of the documentation.
fn expected() -> String {
    let operations = operations();
    let mut text = String::from("//!\n//! |");
    TYPES.iter().for_each(|name| write!(text, " | [`{name}`]").unwrap());
    text += " |\n//! |---|---|---|---|---|---|\n";
    for (name, of) in operations.iter().filter(|(_, of)| of.len() > 1) {
        write!(text, "//! | `{name}`").unwrap();
        TYPES.iter().for_each(|known| text += if of.contains(known) { " | yes" } else { " |" });
        text += " |\n";
    }
    text += "//!\n//! Operations of one type alone:\n//!\n";
    for known in TYPES {
        let mut line = format!("//! - [`{known}`] has");
        for (name, _) in operations.iter().filter(|(_, of)| of.len() == 1 && of.contains(known)) {
            if line.len() + name.len() > 112 {
                text = text + &line + "\n";
                line = "//!  ".to_owned();
            }
            write!(line, " `{name}`,").unwrap();
        }
        if let Some(line) = line.strip_suffix(',') {
            text = text + line + "\n";
        }
    }
    text
}

#[test]
fn the_table_of_operations_is_as_the_sources() {
    let (_, rest) =
        DOCUMENTATION.split_once("<!-- of the sources -->\n").expect("the beginning of the table");
    let (written, _) = rest.split_once("//!\n//! <!-- end -->\n").expect("the end of the table");
    let expected = expected();
    assert!(written == expected, "the table in map/mod.rs should be:\n{expected}");
}

#[test]
fn every_module_of_maps_is_among_the_sources() {
    for line in DOCUMENTATION.lines() {
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            let is_known = SOURCES.iter().any(|&(known, _)| known == name) || name.ends_with("tests");
            assert!(is_known, "operations_tests.rs does not read {name}.rs");
        }
    }
}

#[test]
fn implementations_are_read() {
    for (header, of_trait, of) in [
        ("impl<K: Key, V> PrefixMap<K, V> {", None, "PrefixMap"),
        ("impl<V> Pinned<'_, SharedPrefixMap<V>> {", None, "Pinned"),
        ("impl<K: Key, P: Into<Prefix<K>>> Extend<P> for PrefixSet<K> {", Some("Extend"), "PrefixSet"),
        ("impl<V, F: Fn(u32) -> V> Set {", None, "Set"),
    ] {
        assert_eq!(implementation(header), (of_trait, of));
    }
}
