//! `docs/claims.toml` shows what the sentences of documents rest on; here it is held to the documents, the tests and the records.
//!
//! Every sentence of these documents with a figure or a word such as "never" has a claim, and every claim has something that shows it.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// The documents whose sentences must all be listed.
const DOCUMENTS: [&str; 2] = ["README.md", "SECURITY.md"];

/// Words that make a sentence a claim.
const WORDS: [&str; 8] = ["never", "every", "all", "always", "fastest", "nothing", "none", "least"];

/// What a figure is counted in, where it makes a sentence a claim.
const UNITS: [&str; 22] = [
    "ns", "us", "ms", "s", "%", "bytes", "byte", "KB", "MB", "GB", "KiB", "MiB", "GiB", "M/s", "million",
    "times", "keys", "looks", "loads", "tables", "bits", "or",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    claim: Vec<Claim>,
}

/// A claim of a document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    /// The sentence, or a part of it that no other sentence of the document has.
    text: String,
    /// The document.
    r#where: String,
    /// What shows it: one of these at least.
    #[serde(default)]
    shown_by: Vec<Shown>,
}

/// What shows a claim.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Shown {
    /// A test that runs with all others: its file, and the name of its function or the text that names it.
    Test { file: String, name: String },
    /// A benchmark record, whose day the text has beside it, and what the record must say.
    Record { file: String, says: Vec<Says> },
    /// A text that a file has.
    Has { file: String, text: String },
    /// A text that a file lacks.
    Lacks { file: String, text: String },
    /// A standard.
    Rfc(u32),
    /// Nothing: the sentence claims nothing, for this reason.
    NoClaim(String),
}

/// What a benchmark record says, by the rows of one thread and of engines of this project's lists.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Says {
    /// No engine has a higher median in calls of these sizes; of all sizes, where none is named.
    Fastest { engine: String, traffic: String, batches: Vec<u64> },
    /// An engine makes so many million lookups a second or more.
    AtLeast { engine: String, traffic: String, batch: u64, millions: f64 },
    /// An engine takes so many bytes a prefix, to the digits that are given.
    BytesAPrefix { engine: String, is: String },
    /// An engine takes so many bytes, to the whole of 10^6.
    Megabytes { engine: String, is: u64 },
    /// No engine takes fewer bytes a prefix.
    LeastBytes { engine: String },
}

/// Returns the text of a file by its path from the root.
type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns what is wrong with a list of claims.
fn faults(list: &str, documents: &[&str], read: Read<'_>) -> Vec<String> {
    let list: List = match toml::from_str(list) {
        Ok(list) => list,
        Err(error) => return vec![error.to_string()],
    };
    let mut faults = Vec::new();
    for claim in &list.claim {
        let text = one_line(&claim.text);
        let mut fault = |what: String| faults.push(format!("{}: '{text}': {what}", claim.r#where));
        let Some(document) = read(&claim.r#where) else {
            fault("there is no such document".to_owned());
            continue;
        };
        let paragraphs = paragraphs(&document);
        let Some(paragraph) = paragraphs.iter().find(|paragraph| paragraph.contains(&text)) else {
            fault("the text is not there".to_owned());
            continue;
        };
        if claim.shown_by.is_empty() {
            fault("nothing shows it".to_owned());
        }
        for shown in &claim.shown_by {
            if let Err(why) = shown.holds(paragraph, read) {
                fault(why);
            }
        }
    }
    for document in documents {
        let claims: Vec<String> = list
            .claim
            .iter()
            .filter(|claim| claim.r#where == *document)
            .map(|claim| one_line(&claim.text))
            .collect();
        for sentence in
            read(document).iter().flat_map(|text| paragraphs(text)).flat_map(|text| sentences(&text))
        {
            if is_claim(&sentence)
                && !claims.iter().any(|text| text.contains(&sentence) || sentence.contains(text))
            {
                faults.push(format!("{document}: '{sentence}': no claim of docs/claims.toml has it"));
            }
        }
    }
    faults
}

impl Shown {
    /// The error says what is wrong.
    fn holds(&self, paragraph: &str, read: Read<'_>) -> Result<(), String> {
        let open = |file: &str| read(file).ok_or_else(|| format!("there is no {file}"));
        match self {
            Self::Test { file, name } => runs(&open(file)?, name).map_err(|why| format!("{file}: {why}")),
            Self::Record { file, says } => {
                let record: Value =
                    serde_json::from_str(&open(file)?).map_err(|error| format!("{file}: {error}"))?;
                let day = record["date"].as_str().ok_or_else(|| format!("{file} has no day"))?;
                if !paragraph.contains(day) {
                    return Err(format!("the paragraph does not say that it was measured on {day}"));
                }
                says.iter().try_for_each(|says| says.holds(&record)).map_err(|why| format!("{file}: {why}"))
            }
            Self::Has { file, text } if open(file)?.contains(text) => Ok(()),
            Self::Has { file, text } => Err(format!("{file} has no '{text}'")),
            Self::Lacks { file, text } if open(file)?.contains(text) => Err(format!("{file} has '{text}'")),
            Self::Lacks { .. } => Ok(()),
            Self::Rfc(number) if *number > 0 => Ok(()),
            Self::Rfc(_) => Err("there is no RFC 0".to_owned()),
            Self::NoClaim(why) if why.is_empty() => Err("no reason is given".to_owned()),
            Self::NoClaim(_) => Ok(()),
        }
    }
}

/// Whether a source has a test of this name that `cargo test` runs: a function with the attribute, or a name made at run time.
fn runs(source: &str, name: &str) -> Result<(), String> {
    if source.contains(&format!("\"{name}")) {
        return Ok(());
    }
    let Some(at) = source.find(&format!("fn {name}(")) else {
        return Err(format!("no test is called '{name}'"));
    };
    // The attributes are the lines above, up to an empty one or the end of what is before.
    let attributes: Vec<&str> = source[..at]
        .lines()
        .rev()
        .skip(usize::from(!source[..at].ends_with('\n')))
        .take_while(|line| line.trim_start().starts_with(['#', '/']))
        .collect();
    let has = |what: &str| attributes.iter().any(|line| line.trim_start().starts_with(what));
    match (has("#[test]"), has("#[ignore")) {
        (true, false) => Ok(()),
        (true, true) => Err(format!("'{name}' is ignored")),
        (false, _) => Err(format!("'{name}' is no test")),
    }
}

impl Says {
    fn holds(&self, record: &Value) -> Result<(), String> {
        let rows: Vec<&Value> =
            record["rows"].as_array().into_iter().flatten().filter(|row| row["rival"] == false).collect();
        let bytes = |name: &str, field: &str| {
            let row = rows.iter().find(|row| row["engine"] == name);
            row.and_then(|row| row[field].as_f64()).ok_or_else(|| format!("no bytes of {name}"))
        };
        match self {
            Self::Fastest { engine, traffic, batches } => {
                let is_meant = |row: &&&Value| {
                    row["traffic"] == *traffic
                        && row["threads"] == 1
                        && row["many_keys"] == false
                        && row["batch"]
                            .as_u64()
                            .is_some_and(|batch| batches.is_empty() || batches.contains(&batch))
                };
                let meant: Vec<_> = rows.iter().filter(is_meant).collect();
                let mut sizes: Vec<u64> = meant.iter().filter_map(|row| row["batch"].as_u64()).collect();
                sizes.sort_unstable();
                sizes.dedup();
                if sizes.is_empty() || batches.iter().any(|batch| !sizes.contains(batch)) {
                    return Err(format!("calls of {batches:?} are not measured"));
                }
                for size in sizes {
                    let rate = |row: &&&&Value| row["mlps_median"].as_f64().unwrap_or(0.0);
                    let of_size = meant.iter().filter(|row| row["batch"] == size);
                    let best = of_size.max_by(|a, b| rate(a).total_cmp(&rate(b))).map(|row| &row["engine"]);
                    if best.is_none_or(|best| best != engine) {
                        return Err(format!(
                            "in calls of {size}, {traffic}, {best:?} is the fastest, not {engine}"
                        ));
                    }
                }
                Ok(())
            }
            Self::AtLeast { engine, traffic, batch, millions } => {
                let is_meant = |row: &&&Value| {
                    row["engine"] == *engine
                        && row["traffic"] == *traffic
                        && row["batch"] == *batch
                        && row["threads"] == 1
                };
                let rates = rows.iter().filter(is_meant).filter_map(|row| row["mlps_median"].as_f64());
                let best = rates.fold(0.0, f64::max);
                if best >= *millions {
                    Ok(())
                } else {
                    Err(format!("{engine} makes {best} million, not {millions}"))
                }
            }
            Self::BytesAPrefix { engine, is } => {
                let digits = is.split_once('.').map_or(0, |(_, digits)| digits.len());
                let found = format!("{:.digits$}", bytes(engine, "bytes_per_prefix")?);
                if found == *is {
                    Ok(())
                } else {
                    Err(format!("{engine} takes {found} bytes a prefix, not {is}"))
                }
            }
            Self::Megabytes { engine, is } => {
                let found = (bytes(engine, "lookup_bytes")? / 1e6).round();
                if found == *is as f64 { Ok(()) } else { Err(format!("{engine} takes {found} MB, not {is}")) }
            }
            Self::LeastBytes { engine } => {
                let own = bytes(engine, "bytes_per_prefix")?;
                let less =
                    rows.iter().find(|row| row["bytes_per_prefix"].as_f64().is_some_and(|bytes| bytes < own));
                less.map_or(Ok(()), |row| Err(format!("{} takes less than {engine}", row["engine"])))
            }
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The paragraphs of Markdown, one a line: code apart, and items, headings and rows of tables each for itself.
fn paragraphs(document: &str) -> Vec<String> {
    let (mut all, mut code) = (vec![String::new()], false);
    for line in document.lines() {
        if line.starts_with("```") {
            code = !code;
        }
        let is_own =
            line.is_empty() || ["- ", "#", "|", "```", "!["].iter().any(|start| line.starts_with(start));
        if is_own {
            all.push(String::new());
        }
        if let Some(paragraph) = all.last_mut().filter(|_| !code && !line.starts_with("```")) {
            paragraph.push_str(line.strip_prefix("- ").unwrap_or(line));
            paragraph.push(' ');
        }
    }
    all.iter().map(|text| one_line(text)).filter(|text| !text.is_empty()).collect()
}

/// The sentences of a paragraph.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let words: Vec<&str> = paragraph.split(' ').collect();
    for (at, word) in words.iter().enumerate() {
        let sentence = all.last_mut().expect("one at least");
        sentence.push_str(if sentence.is_empty() { "" } else { " " });
        sentence.push_str(word);
        let begins = |next: &&str| {
            next.starts_with(|first: char| first.is_uppercase() || first == '`' || first == '[')
        };
        if word.ends_with(['.', '?', '!']) && words.get(at + 1).is_some_and(begins) {
            all.push(String::new());
        }
    }
    all.retain(|sentence| !sentence.is_empty());
    all
}

/// Whether a sentence has a word of [`WORDS`], or a figure that counts one of [`UNITS`].
fn is_claim(sentence: &str) -> bool {
    let bare =
        |word: &str| word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '%').to_owned();
    let words: Vec<String> = sentence.split(' ').map(bare).collect();
    let is_word = |word: &String| WORDS.contains(&word.to_lowercase().as_str());
    let is_figure = |pair: &[String]| {
        pair[0].starts_with(|first: char| first.is_ascii_digit()) && UNITS.contains(&pair[1].as_str())
    };
    words.iter().any(is_word) || words.windows(2).any(is_figure)
}

#[test]
fn every_claim_is_where_it_says_and_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| fs::read_to_string(root.join(file)).ok();
    let list = read("docs/claims.toml").unwrap();
    let faults = faults(&list, &DOCUMENTS, &read);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A repository of a few files.
fn planted(file: &str) -> Option<String> {
    let text = match file {
        "A.md" => {
            "# A\n\nIt is fastest, in 1.8 bytes a prefix\n(measured on 2026-01-02). It never\nwaits.\n\n- Nothing is lost. More text.\n"
        }

        "tests.rs" => {
            "#[test]\nfn runs() {}\n\n#[test]\n#[ignore = \"slow\"]\nfn rests() {}\n\nfn helps() {}\n\ntrial(\"tables-1\");\n"
        }
        "record.json" => {
            r#"{"date": "2026-01-02", "rows": [
            {"engine": "a", "rival": false, "traffic": "match", "threads": 1, "many_keys": false, "batch": 64,
             "mlps_median": 9.0, "bytes_per_prefix": 1.82, "lookup_bytes": 1643912},
            {"engine": "b", "rival": false, "traffic": "match", "threads": 1, "many_keys": false, "batch": 64,
             "mlps_median": 8.0, "bytes_per_prefix": 1.4, "lookup_bytes": 1200000},
            {"engine": "r", "rival": true, "traffic": "match", "threads": 1, "many_keys": false, "batch": 64,
             "mlps_median": 10.0, "bytes_per_prefix": 1.0, "lookup_bytes": 1000000}]}"#
        }
        "dayless.json" => r#"{"rows": []}"#,
        _ => return None,
    };
    Some(text.to_owned())
}

/// The faults of one claim about `A.md`.
fn of(text: &str, shown_by: &str) -> String {
    let list = format!("[[claim]]\ntext = \"{text}\"\nwhere = \"A.md\"\nshown_by = [{shown_by}]\n");
    faults(&list, &[], &planted).join("\n")
}

#[test]
fn each_kind_of_false_claim_is_found() {
    let test = |name: &str| format!("{{ test = {{ file = \"tests.rs\", name = \"{name}\" }} }}");
    let record =
        |file: &str, says: &str| format!("{{ record = {{ file = \"{file}\", says = [{{ {says} }}] }} }}");
    let bytes =
        |is: &str| record("record.json", &format!("bytes-a-prefix = {{ engine = \"a\", is = \"{is}\" }}"));
    let fastest = |engine: &str, batch: u32| {
        record(
            "record.json",
            &format!("fastest = {{ engine = \"{engine}\", traffic = \"match\", batches = [{batch}] }}"),
        )
    };
    let at_least = |millions: u32| {
        format!("at-least = {{ engine = \"a\", traffic = \"match\", batch = 64, millions = {millions}.0 }}")
    };
    let waits = "It never waits";
    for (shown_by, fault) in [
        (String::new(), "nothing shows it"),
        (test("runs"), ""),
        (test("tables-"), ""),
        (test("is_gone"), "no test is called 'is_gone'"),
        (test("rests"), "'rests' is ignored"),
        (test("helps"), "'helps' is no test"),
        (test("runs").replace("tests.rs", "gone.rs"), "there is no gone.rs"),
        (bytes("1.8"), ""),
        (bytes("1.9"), "a takes 1.8 bytes a prefix, not 1.9"),
        (fastest("a", 64), ""),
        (fastest("b", 64), "is the fastest, not b"),
        (fastest("a", 16), "calls of [16] are not measured"),
        (record("record.json", &at_least(9)), ""),
        (record("record.json", &at_least(10)), "a makes 9 million, not 10"),
        (record("record.json", "least-bytes = { engine = \"b\" }"), ""),
        (record("record.json", "least-bytes = { engine = \"a\" }"), "\"b\" takes less than a"),
        (record("record.json", "megabytes = { engine = \"a\", is = 2 }"), ""),
        (record("record.json", "megabytes = { engine = \"a\", is = 3 }"), "a takes 2 MB, not 3"),
        (record("gone.json", "least-bytes = { engine = \"b\" }"), "there is no gone.json"),
        (record("dayless.json", "least-bytes = { engine = \"b\" }"), "dayless.json has no day"),
        ("{ has = { file = \"tests.rs\", text = \"fn helps\" } }".to_owned(), ""),
        ("{ has = { file = \"tests.rs\", text = \"fn gone\" } }".to_owned(), "tests.rs has no 'fn gone'"),
        ("{ lacks = { file = \"tests.rs\", text = \"fn helps\" } }".to_owned(), "tests.rs has 'fn helps'"),
        ("{ lacks = { file = \"gone.rs\", text = \"fn helps\" } }".to_owned(), "there is no gone.rs"),
        ("{ rfc = 0 }".to_owned(), "there is no RFC 0"),
        ("{ no-claim = \"\" }".to_owned(), "no reason is given"),
    ] {
        let found = of(waits, &shown_by);
        assert!(
            if fault.is_empty() { found.is_empty() } else { found.contains(fault) },
            "{shown_by}: '{found}'"
        );
    }
    assert!(of("It always waits", &test("runs")).contains("the text is not there"));
    // A record without its day in the same paragraph.
    assert!(of("Nothing is lost", &bytes("1.8")).contains("does not say that it was measured on 2026-01-02"));
    let list = of(waits, &test("runs")) + "[[claim]]\ntext = \"a\"\nwhere = \"gone.md\"\n";
    assert!(faults(&list, &[], &planted)[0].contains("there is no such document"));
}

#[test]
fn a_sentence_that_no_claim_has_is_found() {
    let list = "[[claim]]\ntext = \"It never waits\"\nwhere = \"A.md\"\nshown_by = [{ rfc = 791 }]\n";
    let found = faults(list, &["A.md"], &planted);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("'It is fastest, in 1.8 bytes a prefix (measured on 2026-01-02).'"),
        "{found:?}"
    );
    assert!(found[1].contains("'Nothing is lost.'"), "{found:?}");
}
