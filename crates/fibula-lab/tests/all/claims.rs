//! Claims of documents that rest on records: where an engine has other code today than in its record, the document says so.

use std::fs;
use std::path::Path;

use fibula_lab::bench::{Measures, Record, Scope};
use serde::Deserialize;
use serde_json::Value;

/// The plan of a record, whatever its fields.
#[derive(Deserialize)]
struct AnyPlan<const CHANGES: bool> {}

impl<const CHANGES: bool> Measures for AnyPlan<CHANGES> {
    const SCOPE: Scope = if CHANGES { Scope::Changes } else { Scope::Lookups };
}

/// Returns whether a record of lookups, or of changes, is out of date for an engine. What is no record is not.
fn is_stale<const CHANGES: bool>(text: &str, engine: &str) -> bool {
    serde_json::from_str::<Record<AnyPlan<CHANGES>, Value>>(text).is_ok_and(|record| record.is_stale(engine))
}

/// What a document says of figures whose code has changed since.
const MARKS: [&str; 2] = ["other code today", "measured before"];

/// The engines that the evidence of a record names.
fn engines(says: &toml::Value, found: &mut Vec<String>) {
    match says {
        toml::Value::Table(table) => {
            for (key, value) in table {
                match value.as_str() {
                    Some(name) if key == "engine" || key == "than" => found.push(name.to_owned()),
                    _ => engines(value, found),
                }
            }
        }
        toml::Value::Array(all) => all.iter().for_each(|says| engines(says, found)),
        _ => {}
    }
}

/// Returns the claims of a list whose documents do not say that the code of an engine has changed.
fn unmarked(
    list: &str,
    document: &dyn Fn(&str) -> String,
    is_stale: &dyn Fn(&str, &str) -> bool,
) -> Vec<String> {
    let list: toml::Table = list.parse().unwrap();
    let mut found = Vec::new();
    for claim in list["claim"].as_array().unwrap() {
        let (text, place) = (claim["text"].as_str().unwrap(), claim["where"].as_str().unwrap());
        for shown in claim["shown_by"].as_array().unwrap() {
            let Some(record) = shown.get("record") else { continue };
            let file = record["file"].as_str().unwrap();
            let mut names = Vec::new();
            engines(&record["says"], &mut names);
            let stale = names.iter().find(|name| is_stale(file, name));
            let is_marked = || MARKS.iter().any(|mark| document(place).contains(mark));
            if let Some(name) = stale.filter(|_| !is_marked()) {
                found.push(format!("{place}: '{text}': {name} has other code today than in {file}"));
            }
        }
    }
    found
}

#[test]
fn documents_say_where_the_code_of_an_engine_has_changed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let is_stale_in = |file: &str, engine: &str| {
        let judge = if file.starts_with("records/updates/") { is_stale::<true> } else { is_stale::<false> };
        judge(&document(file), engine)
    };
    let found = unmarked(&document("docs/claims.toml"), &document, &is_stale_in);
    assert!(found.is_empty(), "{}", found.join("\n"));
    // A record of before there were digests is stale, or today's digests are missing and no record can be.
    let mut record: Value = serde_json::from_str(&document("records/amd-epyc-zen-4/dfz4-2023.json")).unwrap();
    record.as_object_mut().unwrap().remove("sources");
    assert!(is_stale::<false>(&record.to_string(), "dir-24-8"));
}

#[test]
fn a_document_without_a_mark_is_found() {
    let list = |place: &str, says: &str| {
        format!(
            "[[claim]]\ntext = \"a\"\nwhere = \"{place}\"\nshown_by = [{{ record = {{ file = \"r\", says = [{says}] }} }}]"
        )
    };
    let document =
        |place: &str| if place == "marked" { "the engine has other code today" } else { "" }.to_owned();
    let is_stale = |_: &str, engine: &str| engine == "old";
    let found = |place, says| unmarked(&list(place, says), &document, &is_stale);
    for says in [
        "{ fastest = { engine = \"old\" } }",
        "{ value = { of = { engine = \"old\" } } }",
        "{ ratio = { of = { engine = \"new\" }, to = { engine = \"old\" } } }",
        "{ faster = { engine = \"new\", than = \"old\" } }",
    ] {
        assert_eq!(found("plain", says), ["plain: 'a': old has other code today than in r"], "{says}");
        assert!(found("marked", says).is_empty());
    }
    assert!(found("plain", "{ fastest = { engine = \"new\" } }").is_empty());
}
