//! `docs/claims.toml` shows what the sentences of documents rest on; here it is held to the documents, the tests and the records.
//!
//! Every sentence of a hand-written document that [`Kind`] takes for a claim is in the list, and every claim of the list has
//! something that shows it. Generated documents are made of records, and a step compares them with what their command makes.

use std::fs;
use std::path::Path;

use serde::Deserialize;

mod generated;
mod planted;
mod sentences;
mod shown;

use sentences::{Kind, beside, claims, one_line, paragraphs};
use shown::Shown;

/// Documents outside [`FOLDERS`]. CHANGELOG.md is not checked, because it describes earlier versions.
const DOCUMENTS: [&str; 4] = ["README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Folders of documents, and the chapters of the library's engines.
const FOLDERS: [&str; 4] = ["docs", "docs/guide", "docs/adr", "crates/fibula/src/engines"];

/// The sentence that marks the figures of a decision as those of its day.
const OF_BEFORE: &str = "\n\nThe figures of this decision were measured before 20";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    claim: Vec<Claim>,
}

/// A claim of a document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    /// The sentence, or a part of it that no other paragraph of the document has.
    text: String,
    /// The document.
    r#where: String,
    /// The evidence: one of these at least.
    #[serde(default)]
    shown_by: Vec<Shown>,
}

/// Returns the text of a file by its path from the root.
type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns what is wrong with a list of claims, and with documents that have claims which are not in it.
fn faults(list: &str, documents: &[&str], read: Read<'_>) -> Vec<String> {
    let list: List = match toml::from_str(list) {
        Ok(list) => list,
        Err(error) => return vec![error.to_string()],
    };
    let mut faults = Vec::new();
    for claim in &list.claim {
        let wrong = claim.faults(read).into_iter();
        faults.extend(wrong.map(|wrong| format!("{}: '{}': {wrong}", claim.r#where, one_line(&claim.text))));
    }
    for document in documents {
        let Some(text) = read(document) else {
            faults.push(format!("there is no {document}"));
            continue;
        };
        let text = match generated::without(&text, read) {
            Ok(text) => text,
            Err(why) => {
                faults.push(format!("{document}: {why}"));
                continue;
            }
        };
        let unlisted = list.unlisted(document, &text);
        faults.extend(
            unlisted.iter().map(|text| format!("{document}: '{text}': no claim of docs/claims.toml has it")),
        );
    }
    faults
}

impl List {
    /// The claims of a document that are not in the list.
    fn unlisted(&self, document: &str, text: &str) -> Vec<String> {
        let kind = Kind::of(document);
        if kind == Kind::Decision && text.contains(OF_BEFORE) {
            return Vec::new();
        }
        let listed: Vec<String> = self
            .claim
            .iter()
            .filter(|claim| claim.r#where == document)
            .map(|claim| one_line(&claim.text))
            .collect();
        let is_listed =
            |sentence: &String| listed.iter().any(|text| text.contains(sentence) || sentence.contains(text));
        claims(kind, text).into_iter().filter(|sentence| !is_listed(sentence)).collect()
    }
}

impl Claim {
    /// The fault.
    fn faults(&self, read: Read<'_>) -> Vec<String> {
        let Some(document) = read(&self.r#where) else {
            return vec!["there is no such document".to_owned()];
        };
        let (text, paragraphs) = (one_line(&self.text), paragraphs(&document));
        let places: Vec<usize> = (0..paragraphs.len()).filter(|&at| paragraphs[at].contains(&text)).collect();
        let &[place] = places.as_slice() else {
            return vec![match places.len() {
                0 => "the text is not there".to_owned(),
                several => format!("{several} paragraphs have this text"),
            }];
        };
        if self.shown_by.is_empty() {
            return vec!["nothing shows it".to_owned()];
        }
        let beside = beside(&paragraphs, place);
        self.shown_by.iter().filter_map(|shown| shown.holds(&beside, read).err()).collect()
    }
}

/// The paths of all documents.
fn documents(root: &Path) -> Vec<String> {
    let mut all: Vec<String> = DOCUMENTS.iter().map(|&name| name.to_owned()).collect();
    for folder in FOLDERS {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let chapter = format!("{folder}/{name}/chapter.md");
            if name.ends_with(".md") {
                all.push(format!("{folder}/{name}"));
            } else if root.join(&chapter).exists() {
                all.push(chapter);
            }
        }
    }
    all.sort();
    all
}

#[test]
fn every_claim_is_where_it_says_and_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| fs::read_to_string(root.join(file)).ok();
    let list = read("docs/claims.toml").unwrap();
    let documents = documents(&root);
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let faults = faults(&list, &documents, &read);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
